"""Logs of evaluations in other encodings, cut off, of odd values, and beside other files."""

import json
import shutil
from pathlib import Path

import pytest

import crowdppl as cp
from crowdppl import AnnotationError

HERE = Path(__file__).parent
LOGS = [
    "logs/inspect/one.json",
    "logs/openai/match.jsonl",
    "logs/deepeval/test_run_model-a.json",
    "experiments/braintrust/results.json",
    "experiments/langsmith/table.csv",
    "experiments/promptfoo/results.csv",
    "experiments/promptfoo/results.jsonl",
    "experiments/weave/rows.json",
]


def given(path):
    frame = cp.read(path, tell=False).to_frame()
    return frame.groupby(["task", "worker"], sort=False)["label"].agg(list).to_dict()


@pytest.fixture
def log(request, tmp_path):
    return Path(shutil.copy(HERE / request.param, tmp_path))


@pytest.mark.filterwarnings("ignore:.*is not UTF-8")
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize("log", LOGS, indirect=True)
def test_a_log_is_known_in_any_encoding(log, encoding):
    text = log.read_text(encoding="utf-8").replace("sum", "sümme").replace("fails", "fälls")
    log.write_bytes(text.encode("utf-8"))
    plain = given(log)
    log.write_bytes(text.encode(encoding))
    assert given(log) == plain


@pytest.mark.parametrize("log", [name for name in LOGS if "langsmith" not in name], indirect=True)
def test_a_log_that_is_cut_off_is_refused_by_its_name(log):
    text = log.read_text(encoding="utf-8").rstrip()
    log.write_text(text[: len(text) - 40], encoding="utf-8")
    with pytest.raises(AnnotationError, match=rf"{log.name}"):
        cp.read(log)
    log.write_bytes(text.encode("utf-16")[:-41])
    with pytest.raises(AnnotationError, match=rf"{log.name}"):
        cp.read(log)


def test_a_line_that_is_cut_off_is_named_and_ends_of_lines_in_texts_are_none(tmp_path):
    lines = (HERE / "experiments/promptfoo/results.jsonl").read_text(encoding="utf-8").splitlines()
    path = tmp_path / "results.jsonl"
    rows = [json.loads(line) | {"note": "one\u2028two\x85three"} for line in lines]
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
    assert given(path) == given(HERE / "experiments/promptfoo/results.jsonl")
    path.write_text("\n\n".join([*lines[:3], lines[3][:-9]]), encoding="utf-8")
    with pytest.raises(AnnotationError, match=r"results\.jsonl is no JSON file: line 7: .*; remove the line"):
        cp.read(path)


def test_lists_that_lie_too_deep_are_refused(tmp_path):
    path = tmp_path / "run.json"
    path.write_text('{"summary": {"experiment_name": "x"}, "results": [{"scores": ' + "[" * 10**5)
    with pytest.raises(AnnotationError, match=r"run\.json .*too deep"):
        cp.read(path)


def changed(name, change):
    content = json.loads((HERE / name).read_text(encoding="utf-8"))
    change(content)
    return content


def first_metric(run):
    return run["testCases"][0]["metricsData"][0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            changed("experiments/braintrust/results.json", lambda of: of["results"][0]["scores"].update(exact=[1])),
            r"record 0, scorer 'exact': the value \[1\] is no label; text, a number, true or false is needed",
        ),
        (
            changed("logs/deepeval/test_run_model-a.json", lambda of: first_metric(of).update(success={})),
            r"'test_case_0', scorer .*: the value {} is no label",
        ),
        (
            changed("logs/inspect/one.json", lambda of: of["samples"][0].update(epoch="a")),
            r"samples\[0\]: a sample with an id, .* and epoch, a whole number, is needed",
        ),
        ([{"example_id": ["a"], "execution_time": 1, "feedback.a": 1}], r"record 0: the id of .* \['a'\]; text"),
        ([{"example_id": "a", "execution_time": 1}] * 2 + [{"feedback.a": 1}], r"record 2: there is no id"),
    ],
)  # fmt: skip
def test_values_that_are_none_are_refused_by_their_place(content, message, tmp_path):
    (tmp_path / "run.json").write_text(json.dumps(content))
    with pytest.raises(AnnotationError, match=message):
        cp.read(tmp_path / "run.json")


def test_odd_fields_of_promptfoo_leave_the_verdicts_as_they_are(tmp_path):
    rows = [json.loads(line) for line in (HERE / "experiments/promptfoo/results.jsonl").read_text().splitlines()]
    for row in rows:
        for each in (row["gradingResult"] or {}).get("componentResults", []):
            each["metadata"] = ["a"]
    path = tmp_path / "results.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    assert given(path) == given(HERE / "experiments/promptfoo/results.jsonl")
    path.write_text("\n".join(json.dumps(row | {"promptIdx": "first"}) for row in rows))
    assert {task.partition(" @ ")[2] for task, _ in given(path)} == {"small", "echo"}


def test_files_beside_logs_are_named_and_scorers_of_several_tools_are_one_worker_which_is_said(tmp_path, capsys):
    for name in ("experiments/weave/rows.json", "experiments/braintrust/results.json"):
        shutil.copy(HERE / name, tmp_path)
    (tmp_path / "empty.json").write_text("")
    assert set(cp.read(tmp_path).workers) == {"exact", "short", "judge"}
    said = capsys.readouterr().err
    assert "1 other file left out: 'empty.json'" in said
    assert "one worker in logs of several tools: 'exact'" in said


def test_a_log_without_rows_has_no_score(tmp_path):
    header = (HERE / "experiments/langsmith/table.csv").read_text().partition("\n")[0]
    (tmp_path / "table.csv").write_text(f"{header}\n")
    with pytest.raises(AnnotationError, match=r"table\.csv: .*there is no score; evaluate with a scorer$"):
        cp.read(tmp_path / "table.csv")


def test_tables_beside_notes_are_read_and_the_notes_named(tmp_path, capsys):
    for name in ("ann", "bob"):
        (tmp_path / f"{name}.csv").write_text("task,label\n1,x\n2,y\n3,x\n")
    (tmp_path / "README.md").write_text("notes")
    assert set(cp.read(tmp_path).workers) == {"ann", "bob"}
    assert "1 other file left out: 'README.md'" in capsys.readouterr().err


def test_means_of_the_harness_without_samples_are_refused_with_the_option_that_keeps_these(tmp_path):
    path = next((HERE / "experiments/harness/org__small").glob("results*"))
    with pytest.raises(AnnotationError, match=r"results_.*\.json has results of lm-.*means.*--log_samples"):
        cp.read(path)
    shutil.copy(path, tmp_path)
    with pytest.raises(AnnotationError, match="--log_samples"):
        cp.read(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"%PDF-1.4 \xff", "paper.pdf is a PDF"), (None, "has no files"), (b"notes", r"has neither .*: 'paper\.pdf'")],
)
def test_a_folder_or_a_file_with_nothing_to_read_says_what_it_has(content, message, tmp_path):
    if content is not None:
        (tmp_path / "paper.pdf").write_bytes(content)
    with pytest.raises(AnnotationError, match=message):
        cp.read(tmp_path / "paper.pdf" if "is a PDF" in message else tmp_path)
