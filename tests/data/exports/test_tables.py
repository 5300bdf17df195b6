"""Tables as people have them: any separator, encoding, compression and column names, and what is said of them."""

import bz2
import gzip
import json
import lzma
import re
import subprocess
import sys

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import crowdppl as cp
from crowdppl import AnnotationError
from crowdppl.data import Ids
from crowdppl.data.errors import AnnotationWarning

FRAME = pd.DataFrame(
    {"task": ["t1", "t1", "t2", "t2", "t3"], "worker": ["ann", "bob", "ann", "bob", "ann"], "label": list("xyxxy")}
)
EXPECTED = cp.Annotations.from_frame(FRAME).to_frame()


def same(annotations):
    return annotations.to_frame().equals(EXPECTED)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_found_out(tmp_path, separator):
    FRAME.assign(text='he said "a, b; c"').to_csv(tmp_path / "a.csv", sep=separator, index=False)
    assert same(cp.read(tmp_path / "a.csv", tell=False))
    assert same(cp.Annotations.from_csv(tmp_path / "a.csv"))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"])
def test_the_encoding_is_found_out(tmp_path, encoding):
    frame = FRAME.replace({"worker": {"ann": "Zoë", "bob": "Łukasz"}})
    (tmp_path / "a.csv").write_bytes(frame.to_csv(index=False).encode(encoding))
    assert cp.read(tmp_path / "a.csv", tell=False).workers == Ids(["Zoë", "Łukasz"])


def test_windows_1252_is_read_with_a_warning(tmp_path):
    text = FRAME.replace({"worker": {"ann": "Zoë"}}).to_csv(index=False)
    (tmp_path / "a.csv").write_bytes(text.encode("cp1252"))
    with pytest.warns(AnnotationWarning, match="is not UTF-8 and is read as cp1252"):
        assert "Zoë" in cp.read(tmp_path / "a.csv", tell=False).workers
    assert "Zoë" in cp.read(tmp_path / "a.csv", encoding="cp1252", tell=False).workers
    with pytest.raises(AnnotationError, match="is no text in utf-8"):
        cp.read(tmp_path / "a.csv", encoding="utf-8", tell=False)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_compressed_files(tmp_path, suffix):
    text = FRAME.to_csv(index=False).encode()
    pack = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": pa.Codec("zstd").compress}
    if suffix == ".zst":
        with pa.output_stream(str(tmp_path / "a.csv.zst"), compression="zstd") as file:
            file.write(text)
    else:
        (tmp_path / f"a.csv{suffix}").write_bytes(pack[suffix](text))
    assert same(cp.read(tmp_path / f"a.csv{suffix}", tell=False))
    (tmp_path / f"bad.csv{suffix}").write_bytes(text)
    with pytest.raises(AnnotationError, match=rf"is no {suffix} file that can be read"):
        cp.read(tmp_path / f"bad.csv{suffix}", tell=False)


@pytest.mark.parametrize(
    "names",
    [
        ("item_id", "annotator", "response"),
        ("Item ID", "rater", "answer"),
        ("example", "WorkerId", "rating"),
        ("question_id", "judge_name", "verdict"),
        ("HITId", "user_id", "class"),
    ],
)
def test_common_names_of_columns_are_known_and_said(tmp_path, capsys, names):
    FRAME.set_axis(list(names), axis=1).to_csv(tmp_path / "a.csv", index=False)
    assert same(cp.read(tmp_path / "a.csv"))
    said = capsys.readouterr().err
    assert f"(task {names[0]!r}, worker {names[1]!r}, label {names[2]!r}): 5 annotations of 3 tasks, 2 workers" in said


def test_ambiguous_and_missing_columns_are_asked_about_by_name(tmp_path):
    FRAME.assign(rater="r").to_csv(tmp_path / "a.csv", index=False)
    assert same(cp.read(tmp_path / "a.csv", tell=False))  # worker is the role's own name
    FRAME.rename(columns={"worker": "annotator"}).assign(rater="r").to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(AnnotationError, match=r"'annotator' and 'rater'.*worker='annotator'"):
        cp.read(tmp_path / "b.csv", tell=False)
    assert same(cp.read(tmp_path / "b.csv", worker="annotator", tell=False))
    FRAME.rename(columns={"worker": "whoever"}).to_csv(tmp_path / "c.csv", index=False)
    with pytest.raises(AnnotationError, match=r"no column 'worker'.*'whoever'.*worker=None"):
        cp.read(tmp_path / "c.csv", tell=False)
    assert not cp.read(tmp_path / "c.csv", worker=None, tell=False).named


def test_a_column_of_gold_labels_is_taken_and_its_contradictions_named(tmp_path, capsys):
    frame = FRAME.assign(label=[0, 1, 0, 0, 1], gold=[0, 0, 1, 1, None])
    frame["gold"] = frame["gold"].astype("Int64")
    frame.to_csv(tmp_path / "a.csv", index=False)
    assert cp.read(tmp_path / "a.csv").gold.tolist() == [0, 1, -1]
    assert "2 gold labels in 'gold'" in capsys.readouterr().err
    assert cp.read(tmp_path / "a.csv", gold=None, tell=False).gold is None
    frame.assign(gold=[0, 1, 1, 1, 1]).to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(AnnotationError, match="task 't1' has the gold labels '0', '1'"):
        cp.read(tmp_path / "b.csv", tell=False)


def test_a_wide_table_has_a_column_for_each_worker(tmp_path, capsys):
    wide = pd.DataFrame({"item": [1, 2, 3, 4], "ann": [0, 1, None, 1], "bob": [0, 0, 1, 1]}).astype("Int64")
    wide.to_csv(tmp_path / "a.csv", index=False)
    annotations = cp.read(tmp_path / "a.csv")
    assert annotations.votes().tolist() == [[2, 0], [1, 1], [0, 1], [0, 2]]
    assert annotations.tasks == Ids([1, 2, 3, 4])
    assert "a row for each task ('item') and a column for each of 2 workers" in capsys.readouterr().err


def test_records_in_json(tmp_path):
    records = FRAME.to_dict("records")
    (tmp_path / "a.json").write_text(json.dumps(records))
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, records)))
    for name in ("a.json", "a.jsonl"):
        assert same(cp.read(tmp_path / name, tell=False))
    (tmp_path / "a.jsonl").write_text('{"task": 1}\nnonsense\n')
    with pytest.raises(AnnotationError, match="line 2: "):
        cp.read(tmp_path / "a.jsonl", tell=False)


def test_excel_with_one_sheet_or_several(tmp_path):
    FRAME.to_excel(tmp_path / "a.xlsx", index=False)
    assert same(cp.read(tmp_path / "a.xlsx", tell=False))
    with pd.ExcelWriter(tmp_path / "b.xlsx") as writer:
        FRAME.to_excel(writer, sheet_name="one", index=False)
        FRAME.to_excel(writer, sheet_name="two", index=False)
    with pytest.raises(AnnotationError, match="several sheets: 'one', 'two'; say which by sheet='one'"):
        cp.read(tmp_path / "b.xlsx", tell=False)
    assert same(cp.read(tmp_path / "b.xlsx", sheet="two", tell=False))
    (tmp_path / "c.xlsx").write_text("task,worker,label\n1,2,3\n")
    with pytest.raises(AnnotationError, match="is no Excel file"):
        cp.read(tmp_path / "c.xlsx", tell=False)


def test_parquet_and_tables_in_memory(tmp_path):
    renamed = FRAME.set_axis(["item", "annotator", "vote"], axis=1)
    renamed.to_parquet(tmp_path / "a.parquet")
    for source in (tmp_path / "a.parquet", renamed, pl.from_pandas(renamed), pa.Table.from_pandas(renamed)):
        assert same(cp.read(source, tell=False))


class ClassLabel:
    names = ("x", "y")

    def int2str(self, code):
        return self.names[code]


class Dataset:
    """What of a Hugging Face dataset is used."""

    def __init__(self):
        self.features = {"task": None, "worker": None, "label": ClassLabel()}

    def to_pandas(self):
        return FRAME.assign(label=[ClassLabel.names.index(label) for label in FRAME["label"]])


def test_a_hugging_face_dataset_keeps_the_names_of_its_classes():
    assert same(cp.read(Dataset(), tell=False))


def test_standard_input():
    text = FRAME.to_csv(index=False)
    code = "import crowdppl as cp; print(cp.read('-').n_annotations)"
    done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "5"
    assert done.stderr == ""
    bad = subprocess.run([sys.executable, "-c", code], input="a,b\n1,2\n", capture_output=True, text=True, check=False)
    assert "standard input has no column 'task'" in bad.stderr


def test_options_of_other_kinds_of_files_are_refused(tmp_path):
    FRAME.to_csv(tmp_path / "a.csv", index=False)
    for option in ({"sheet": "one"}, {"outer": "task"}):
        with pytest.raises(AnnotationError, match="another kind of file"):
            cp.read(tmp_path / "a.csv", tell=False, **option)
    with pytest.raises(AnnotationError, match="not a ndarray"):
        cp.read(np.zeros((2, 2)))
    (tmp_path / "e.csv").write_text("")
    with pytest.raises(AnnotationError, match="the file is empty"):
        cp.read(tmp_path / "e.csv")
    with pytest.raises(FileNotFoundError):
        cp.read(tmp_path / "none.csv")
    with pytest.raises(AnnotationError, match="is no export with questions"):
        cp.read(tmp_path / "a.csv", question="sentiment", tell=False)


def test_reading_a_binary_file_says_that_it_is_none(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00\x00rIHDR")
    with pytest.raises(AnnotationError, match="is no text file"):
        cp.read(tmp_path / "a.csv")


def test_blank_cells_of_a_long_table_are_refused_by_row_and_line_or_dropped(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("task,worker,label,gold\n1,u,2,2\n1,v,,2\n2,u,,1\n3,u,1,1\n3,,1,1\n")
    said = "column 'worker': the value is missing in row 4 (line 6 of a.csv); column 'label': the value is missing in "
    with pytest.raises(AnnotationError, match=re.escape(f"{said}row 1 (line 3 of a.csv), row 2 (line 4 of a.csv);")):
        cp.read(path, tell=False)
    for source in (path, pd.read_csv(path)):
        with pytest.warns(AnnotationWarning, match="missing='drop' left out 3 of 5 rows"):
            found = cp.read(source, missing="drop", tell=False)
        assert (list(found.tasks), list(found.classes), found.gold.tolist()) == ([1, 3], [1, 2], [1, 0])
    (tmp_path / "wide.csv").write_text("task,u,v\n1,a,b\n2,,a\n3,b,\n")
    assert cp.read(tmp_path / "wide.csv", tell=False).n_annotations == 4
    with pytest.raises(AnnotationError, match="missing='drop' is of a table"):
        cp.read(tmp_path / "wide.csv", missing="drop", tell=False)


FORM = pd.DataFrame(
    {
        "Timestamp": ["2024/03/01 10:00", "2024/03/02 10:00", "2024/03/03 10:00", "2024/03/03 10:00"],
        "Email Address": ["a@x", "b@x", "c@x", "d@x"],
        "How far? [one]": ["Agree", "Neutral", "Agree", "Agree"],
        "How far? [two]": ["Neutral", None, "Agree", "Neutral"],
        "Country": ["France", "Peru", "Chad", "Fiji"],
        "How far? [three]": ["Neutral", "Neutral", "Disagree", "Agree"],
        "Old?": ["yes", "no", "no", "no"],
        "Busy?": ["no", "no", "yes", "no"],
    }
)
"""As a form has its answers: the tasks are columns, of two scales; one cell is empty."""


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_answers_to_a_form_have_a_row_for_each_worker(tmp_path, capsys, suffix):
    """The time at which a row was filled in was taken for the task, and the questions for workers."""
    path = tmp_path / f"form{suffix}"
    (FORM.to_csv if suffix == ".csv" else FORM.to_excel)(path, index=False)
    found = cp.read(path)
    said = capsys.readouterr().err
    assert "a row for each worker ('Email Address') and a column for each of 3 tasks" in said
    assert "left out: 'Timestamp', 'Country', 'Old?', 'Busy?'" in said
    assert list(found.tasks) == ["How far? [one]", "How far? [two]", "How far? [three]"]
    assert list(found.workers) == ["a@x", "b@x", "c@x", "d@x"]
    assert list(found.classes) == ["Agree", "Disagree", "Neutral"]
    assert found.n_annotations == 11
    assert found.to_frame().set_index(["task", "worker"]).loc[("How far? [two]", "c@x"), "label"] == "Agree"


def test_who_fills_in_a_form_twice_is_one_worker_and_who_gives_no_address_is_asked_for(capsys):
    """One address twice, or none, made the time at which a row was filled in the worker."""
    twice = FORM.assign(**{"Email Address": ["a@x", "b@x", "a@x", "d@x"]})
    found = cp.read(twice)
    assert "('Email Address')" in (said := capsys.readouterr().err)
    assert "in several rows: 'a@x'" in said
    assert list(found.workers) == ["a@x", "b@x", "d@x"]
    assert found.n_annotations == 11
    unnamed = FORM.assign(**{"Email Address": ["a@x", None, "c@x", "d@x"]})
    with pytest.raises(AnnotationError, match="row 1: column 'Email Address' is empty"):
        cp.read(unnamed)
    by_time = FORM.assign(**{"Timestamp": list("wxyz"), "Email Address": ["a@x", None, None, None]})
    assert list(cp.read(by_time, tell=False).workers) == list("wxyz")
    assert list(cp.read(by_time.assign(**{"Email Address": None}), tell=False).workers) == list("wxyz")


def test_a_table_by_worker_is_known_by_its_column_of_workers_or_said_to_be_one():
    by_worker = pd.DataFrame({"rater": ["a", "b", "c"], "x1": [1, 2, 3], "x2": [1, 1, 3], "x3": [2, 2, 1]})
    assert list(cp.read(by_worker, tell=False).tasks) == ["x1", "x2", "x3"]
    unnamed = by_worker.rename(columns={"rater": "who"})
    assert list(cp.read(unnamed, columns="workers", task="who", tell=False).workers) == ["x1", "x2", "x3"]
    assert list(cp.read(unnamed, columns="tasks", worker="who", tell=False).workers) == ["a", "b", "c"]
    for options, message in (
        ({}, "no column of workers; name it by worker='COL'"),
        ({"worker": "whom"}, "Did you mean worker='who'"),
        ({"worker": None}, "leave it out, or worker=None"),
        ({"task": "who"}, "leave it out, or task='who'"),
        ({"worker": "who", "missing": "drop"}, "a row for each worker, where an empty cell is no annotation"),
    ):
        with pytest.raises(AnnotationError, match=message):
            cp.read(unnamed, columns="tasks", tell=False, **options)
    with pytest.raises(AnnotationError, match="no two columns of few labels"):
        cp.read(unnamed[["who", "x1"]], columns="tasks", worker="who")
    named = by_worker.rename(columns={"rater": "Name"})  # may well be a task's
    assert list(cp.read(named, tell=False).workers) == ["x1", "x2", "x3"]
    repeated = pd.DataFrame({"rater": ["a", "a", "b"], "x1": [1, 2, 3], "x2": [1, 1, 3]})
    with pytest.raises(AnnotationError, match="no column 'task'"):
        cp.read(repeated)
    assert list(cp.read(repeated, columns="tasks", tell=False).workers) == ["a", "b"]


def test_all_columns_of_unknown_names_are_asked_for_at_once(tmp_path):
    """They were asked for one after the other, in three runs."""
    path = tmp_path / "polski.csv"
    path.write_text("Zadanie;Osoba;Ocena\n1;Ann;gut\n1;Bob;gut\n")
    message = r"no column 'task'; .* Say which columns name what by task='COL', worker='COL' and label='COL'\."
    with pytest.raises(AnnotationError, match=message):
        cp.read(path)
    with pytest.raises(AnnotationError, match=r"by worker='COL' and label='COL'\.|no column 'worker'"):
        cp.read(path, task="Zadanie")


def test_places_in_dictionaries_are_listed_where_a_column_is_lacking_and_the_likely_one_is_named(tmp_path):
    """They were not, though --label result.verdict would have done."""
    records = [
        {"sample_id": f"s{i}", "judge": {"name": j, "version": 1}, "result": {"verdict": i % 2, "why": {"text": "so"}}}
        for i in range(9)
        for j in "ab"
    ]
    records[0]["result"] |= {"rare": 1}
    path = tmp_path / "evals.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    places = r"'judge.version', 'result.verdict', 'result.why.text'\. Did you mean label='result.verdict'\?"
    with pytest.raises(AnnotationError, match=places):
        cp.read(path)
    assert cp.read(path, label="result.verdict", tell=False).n_annotations == 18
    of_judges = [record | {"label": 1, "judge": None, "by": record["judge"] | {"judge": "a"}} for record in records]
    for record in of_judges:
        del record["judge"]
    with pytest.raises(AnnotationError, match=r"Did you mean worker='by.judge'\?"):
        cp.read(of_judges)


def test_columns_that_a_long_table_does_not_need_are_named(tmp_path, capsys):
    """Those of wide tables were; a second column of true labels is taken by gold=."""
    rows = [(i, f"doc {i}", f"ann{j}", "no", "10:00", "no", "yes") for i in range(4) for j in range(2)]
    table = pd.DataFrame(rows, columns=["row", "doc", "annotator", "label", "Timestamp", "gold", "truth"])
    table.loc[0, "label"] = "yes"
    path = tmp_path / "a.csv"
    table.to_csv(path, index=False)
    for source in (table, path):
        taken = cp.read(source, gold="truth")
        said = capsys.readouterr().err
        assert (
            "4 gold labels in 'truth'; left out: 'row', 'Timestamp', 'gold' (true labels are taken by gold='gold'; "
            "when='Timestamp' tells how workers change over time)" in said
        )
        assert taken.classes[int(taken.gold[0])] == "yes"
    cp.read(table.drop(columns=["row", "Timestamp", "truth"]))
    assert "left out" not in capsys.readouterr().err
    cp.read(table.assign(helpful="no"), question=["label", "helpful"], gold=None)
    assert "left out: 'row', 'Timestamp', 'gold', 'truth' (true" in capsys.readouterr().err
    many = table.assign(**{f"x{i}": 0 for i in range(20)})
    cp.read(many, label="label")
    assert "'x8' and 11 more (" in capsys.readouterr().err


def test_a_column_of_times_is_said_to_be_taken_or_left_out_and_by_what_it_is_taken(tmp_path, capsys):
    """Where no other column's name was guessed it was left out without a word, and what when= took was not said."""
    table = FRAME.assign(timestamp=pd.date_range("2026-01-01", periods=5))
    table.to_csv(tmp_path / "a.csv", index=False)
    for source in (table, tmp_path / "a.csv"):
        assert cp.read(source).when is None
        assert "; left out: 'timestamp' (when='timestamp' tells how workers change" in capsys.readouterr().err
        assert cp.read(source, when="timestamp").when is not None
        said = capsys.readouterr().err
        assert "when 'timestamp'" in said
        assert "left out" not in said
    pairs = pd.DataFrame({"left": list("abc"), "right": list("bca"), "label": ["left", "right", "left"]})
    pairs["created_at"] = pd.date_range("2026-01-01", periods=3)
    cp.read(pairs)
    assert "left out: 'created_at'\n" in capsys.readouterr().err  # when= is of named workers
    pairs["worker"] = "ann"
    cp.read(pairs)
    assert "left out: 'created_at' (when='created_at' tells" in capsys.readouterr().err
    cp.read(pairs, when="created_at")
    assert ", when 'created_at')" in capsys.readouterr().err
    cp.read(FRAME.pivot(index="task", columns="worker", values="label").assign(timestamp="10:00").reset_index())
    assert "left out: 'timestamp'\n" in capsys.readouterr().err


def test_a_column_of_systems_is_said_to_be_what_judge_ranks_where_it_can(tmp_path, capsys):
    """It was said to be left out, and systems were ranked by it."""
    table = FRAME.assign(system=FRAME["task"].map({"t1": "new", "t2": "old", "t3": "new"}))
    cp.read(table)
    said = capsys.readouterr().err
    assert "'system' is no part of a fit: judge ranks what was judged by it" in said
    assert "left out" not in said
    wide = FRAME.pivot(index="task", columns="worker", values="label").assign(system=["new", "old", "new"])
    cp.read(wide.reset_index())
    assert "'system' is no part of a fit" in capsys.readouterr().err
    cp.read(table.assign(system="only one"))
    assert "left out: 'system'" in capsys.readouterr().err
    pairs = pd.DataFrame({"left": ["a", "b"], "right": ["b", "a"], "judge": 1, "winner": ["left", "right"], "note": ""})
    cp.read(pairs)
    assert capsys.readouterr().err.strip().endswith("1 worker; left out: 'note'")


def test_the_only_column_that_can_be_the_label_is_named_beside_times():
    """Times of which a few stand twice looked like labels, too."""
    rows = [(f"doc {i}", f"ann{j}", ["bad", "good"][i % 2], f"10:{i:02}:{j}") for i in range(30) for j in range(3)]
    table = pd.DataFrame(rows, columns=["Doc ID", "Annotator", "Sentiment", "Timestamp"])
    with pytest.raises(AnnotationError, match=r"By what is in them: label='Sentiment'\?"):
        cp.read(pd.concat([table, table[:5]]))


def test_columns_of_a_rubric_are_asked_about_where_the_column_of_tasks_has_another_name_too():
    table = pd.DataFrame(
        [(f"s{i}", f"r{j}", 1 + (i + j) % 3, 1 + i % 3) for i in range(6) for j in range(3)],
        columns=["summary", "rater", "coherence", "fluency"],
    )
    with pytest.raises(AnnotationError, match=r"task='COL' and label='COL'.*question=\['coherence', 'fluency'\]"):
        cp.read(table)


def test_a_column_for_each_judge_beside_prompts_and_responses_is_asked_about():
    """The response looked like the label, and nothing said how to read the scores."""
    rows = [
        {"prompt_id": f"q{i}", "response": f"text {i}", "a_score": 1 + i % 3, "b_score": 1 + i % 2} for i in range(8)
    ]
    with pytest.raises(AnnotationError, match="pass columns='workers'"):
        cp.read(pd.DataFrame(rows))
    assert list(cp.read(pd.DataFrame(rows), columns="workers", tell=False).workers) == ["a_score", "b_score"]


def test_verdicts_on_pairs_are_known_by_their_columns():
    pairs = [{"pair_id": "p1", "judge": "a", "winner": "A"}, {"pair_id": "p1", "judge": "b", "winner": "B"}]
    found = cp.read(pairs, tell=False)
    assert (list(found.tasks), list(found.workers), list(found.classes)) == (["p1"], ["a", "b"], ["A", "B"])


def test_columns_that_are_called_by_numbers_are_known_by_their_text():
    """Such as workers 1 and 2: a KeyError of pandas went through."""
    by_task = pd.DataFrame({"task": ["a", "b", "c"], 1: ["x", "y", "x"], 2: ["x", "y", "y"]})
    assert list(cp.read(by_task, tell=False).workers) == ["1", "2"]
    assert list(cp.read(by_task.rename(columns={"task": "rater"}), tell=False).tasks) == ["1", "2"]


def test_a_title_above_the_header_of_a_csv_file_is_told(tmp_path):
    path = tmp_path / "titled.csv"
    path.write_text("Campaign of autumn;;\ntask;worker;label\na;b;c\n")
    with pytest.raises(AnnotationError, match="a title: the header"):
        cp.read(path)


def in_excel(path, rows, merged=()):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for area in merged:
        book.active.merge_cells(area)
    book.save(path)
    return path


def test_a_sheet_has_a_title_above_its_header_and_merged_cells(tmp_path, capsys):
    """The title was taken for the header, and all but the first row of a merged cell for empty."""
    header, body = ["Task", "Annotator", "Label", "Note"], FRAME.assign(note="n").to_numpy().tolist()
    path = tmp_path / "crowd.xlsx"
    above = [["Campaign of autumn"], [], header]
    assert same(cp.read(in_excel(path, above + body, merged=["A1:D1"])))
    assert "the header is row 3 of the sheet" in capsys.readouterr().err
    short = [[row[0] if row[1] == "ann" else None, *row[1:]] for row in body]
    assert same(cp.read(in_excel(path, above + short, merged=["A1:D1", "A4:A5", "A6:A7"])))
    assert "; 2 cells have the value of their merged cell" in capsys.readouterr().err
    assert same(cp.read(in_excel(path, [header, *short], merged=["A2:A3", "A4:A5"]), tell=False))
    with pytest.raises(
        AnnotationError, match=r"row 3 of the sheet, row 5 of the sheet; .* fill it in downwards instead"
    ):
        cp.read(in_excel(path, [header, *short]))
    indexed = [[None, *FRAME.columns], *([str(i), *row[:3]] for i, row in enumerate(body))]
    assert same(cp.read(in_excel(path, indexed), tell=False))


@pytest.mark.parametrize("suffix", [".csv", ".xlsx"])
def test_rows_that_are_blank_are_none_and_do_not_move_the_place_of_an_error(tmp_path, suffix):
    """Spreadsheets write ";;" below a table; it was a row without a task, and of a wide table a task called nan."""
    path = tmp_path / f"blank{suffix}"

    def written(*rows):
        frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
        (frame.to_csv if suffix == ".csv" else frame.to_excel)(path, index=False)
        return path

    rows, blank = FRAME.to_numpy().tolist(), [None] * 3
    assert same(cp.read(written(*rows[:2], blank, *rows[2:], blank, blank), tell=False))
    place = "row 6 (line 8" if suffix == ".csv" else "row 8 of the sheet"
    with pytest.raises(AnnotationError, match=f"column 'worker': the value is missing in {re.escape(place)}"):
        cp.read(written(*rows[:2], blank, *rows[2:], ["Total", None, 5]))
    by_task = pd.DataFrame({"task": ["a", "b", None], "ann": ["x", "y", None], "bob": ["x", "x", None]})
    assert list(cp.read(by_task, tell=False).tasks) == ["a", "b"]
    with pytest.raises(AnnotationError, match=r"column 'task': .*missing in row 2"):
        cp.read(by_task.fillna({"ann": "x"}))


@pytest.mark.parametrize("as_pattern", [True, False])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_several_tables_with_equal_columns_are_read_as_one(tmp_path, suffix, as_pattern):
    table = pd.DataFrame(
        [(i, f"w{j}", (i + j) % 3) for i in range(6) for j in range(3)], columns=["item", "who", "topic"]
    )
    folder = tmp_path / "batches"
    folder.mkdir()
    for number, rows in enumerate([slice(0, 5), slice(5, 18)]):
        part = table.iloc[rows][["topic", "item", "who"] if number else ["item", "who", "topic"]]
        write = part.to_csv if suffix == ".csv" else part.to_parquet
        write(folder / f"{number}{suffix}", index=False)
    naming = {"task": "item", "worker": "who", "label": "topic", "tell": False}
    source = str(folder / f"*{suffix}") if as_pattern else folder
    pd.testing.assert_frame_equal(cp.read(source, **naming).to_frame(), cp.read(table, **naming).to_frame())


def test_what_is_wrong_in_one_of_several_tables_is_said_of_that_one(tmp_path):
    (tmp_path / "a.csv").write_text("task,worker,label\n1,ann,x\n2,ann,y\n")
    (tmp_path / "b.csv").write_text("task,worker,label\n1,bob,x\n2,,y\n")
    with pytest.raises(cp.AnnotationError, match=r"row 1 \(line 3 of b\.csv\)"):
        cp.read(tmp_path)
    (tmp_path / "b.csv").write_text("task,rater,label\n1,bob,x\n")
    with pytest.raises(cp.AnnotationError, match=r"a\.csv has no column 'rater', and .*b\.csv has one"):
        cp.read(tmp_path)
    with pytest.raises(cp.AnnotationError, match="no file is named like"):
        cp.read(tmp_path / "*.tsv")
    with pytest.raises(cp.AnnotationError, match=r"cp\.read reads CSV"):
        cp.scan(str(tmp_path / "*.csv"))


def test_a_column_for_each_class_that_is_1_in_one_place_is_refused_with_the_code_that_makes_labels_of_it(tmp_path):
    marks = pd.DataFrame({"good": [1, 0, 0] * 4, "bad": [0, 1, 0] * 4, "mixed": [0, 0, 1] * 4})
    table = pd.DataFrame({"item": [n // 2 for n in range(12)], "rater": ["a", "b"] * 6}).join(marks)
    table.to_csv(tmp_path / "a.csv", index=False)
    for source in (table, tmp_path / "a.csv"):
        with pytest.raises(AnnotationError, match="the one column that is 1 is the label") as refused:
            cp.read(source)
    code = str(refused.value).partition("is the label: ")[2].partition(". Where")[0]
    exec(code, {"table": table})
    found = cp.read(table, tell=False)
    assert (found.n_annotations, set(found.classes)) == (12, {"good", "bad", "mixed"})
    with pytest.raises(AnnotationError, match=r"no column 'label'(?!.*column that is 1)"):
        cp.read(table.drop(columns="label").assign(good=1))


def test_answers_to_an_instruction_are_tasks_by_their_ids_and_a_response_is_no_label_beside_scores(capsys):
    """A file of a judge for each of several answers to each instruction, as of UltraFeedback."""
    rows = [
        {"uid": f"u{n}{model}", "instruction": f"Write about {n}", "response": f"a long text of {model} about {n}"}
        | {"judge": judge, "score": (n + len(judge)) % 5 + 1}
        for judge in ("gpt", "claude")
        for n in range(15)
        for model in "ab"
    ]
    annotations = cp.read(pd.DataFrame(rows), ordered=True)
    assert annotations.n_tasks == 30
    assert annotations.tasks[0] == "u0a"
    assert "task 'uid', worker 'judge', label 'score'" in capsys.readouterr().err
    unique = pd.DataFrame(rows).assign(uid=range(len(rows)))  # the rows' own, of which none has several workers
    assert cp.read(unique, ordered=True, tell=False).n_tasks == 15
    short = pd.DataFrame(rows).assign(response="yes")
    with pytest.raises(AnnotationError, match="'response' and 'score' may all name the labels"):
        cp.read(short)
