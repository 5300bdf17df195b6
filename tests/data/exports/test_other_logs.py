"""Logs of promptfoo, OpenAI's evals, deepeval, langfuse and MLflow.

Those of evals 3.0.1.post1 and deepeval 4.3.1 are by their own writers (`make_logs.py`). promptfoo and langfuse are
written in TypeScript: most of their files are made here by hand, after promptfoo's `EvaluateSummaryV3` and langfuse's
fields of exported scores; `make_experiments.py` runs promptfoo.
"""

import csv
import gc
import json
from pathlib import Path

import pandas as pd
import pytest

import crowdppl as cp
from crowdppl import AnnotationError
from crowdppl.data.errors import AnnotationWarning
from crowdppl.data.exports import deepeval_logs, promptfoo_logs
from crowdppl.data.exports.eval_logs import read_logs

LOGS = Path(__file__).with_name("logs")
PROMPTFOO = Path(__file__).with_name("experiments") / "promptfoo"
"""Results that promptfoo wrote (`make_experiments.py`)."""


def labels(annotations):
    """Labels by task and worker, a list with one for each repeat."""
    frame = annotations.to_frame()
    return frame.groupby(["task", "worker"], sort=False)["label"].agg(list).to_dict()


def write(path, content):
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def assertion(passed, kind="llm-rubric", score=None, error=False, **more):
    metadata = {"graderError": True} if error else {}
    score = float(passed) if score is None else score
    return {"pass": passed, "score": score, "reason": "", "metadata": metadata, "assertion": {"type": kind, **more}}


def result(test, provider, *components, prompt=0, **more):
    return {
        "id": f"{test}-{provider}-{prompt}-{len(more)}",
        "testIdx": test,
        "promptIdx": prompt,
        "provider": {"id": provider, "label": ""},
        "prompt": {"raw": "Answer {{q}}", "label": "Answer\n{{q}}" if prompt else "short"},
        "vars": {"q": f"question {test}"},
        "testCase": {"vars": {"q": f"question {test}"}},
        "failureReason": 0,
        "success": True,
        "score": 1,
        "gradingResult": {"pass": True, "score": 1, "componentResults": list(components)},
    } | more


def promptfoo(path, results, version=3):
    content = {"evalId": "eval-1", "results": {"version": version, "timestamp": "2026", "results": results}}
    return write(path, content | {"config": {"description": "sums"}})


def test_promptfoo_assertions_are_scorers_and_providers_models(tmp_path, capsys):
    judge = {"provider": "openai:judge"}
    rows = [
        result(0, "a", assertion(True), assertion(False, **judge), assertion(True, "equals")),
        result(0, "b", assertion(False), assertion(True, error=True, **judge), assertion(False, "equals")),
        result(1, "a", assertion(True), assertion(True), error="timeout", failureReason=2),
    ]
    annotations = cp.read(promptfoo(tmp_path / "results.json", rows))
    assert labels(annotations) == {
        ("0 @ a", "llm-rubric"): [1],
        ("0 @ a", "llm-rubric (openai:judge)"): [0],
        ("0 @ a", "equals"): [1],
        ("0 @ b", "llm-rubric"): [0],
        ("0 @ b", "llm-rubric (openai:judge)"): ["unreadable"],
        ("0 @ b", "equals"): [0],
    }
    of_lines = tmp_path / "results.jsonl"
    of_lines.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    assert labels(cp.read(of_lines)) == labels(annotations)
    for said in capsys.readouterr().err.splitlines():
        assert "1 log of promptfoo" in said
        assert "1 sample with an error left out" in said


def test_promptfoo_repeats_are_of_one_sample_and_assertions_of_one_kind_are_numbered(tmp_path):
    rows = [result(0, "a", assertion(True), assertion(False)), result(1, "a", assertion(True), assertion(True))]
    rows[1] |= {"vars": rows[0]["vars"], "testCase": rows[0]["testCase"]}
    annotations = cp.read(promptfoo(tmp_path / "results.json", rows))
    assert labels(annotations) == {(0, "llm-rubric"): [1, 1], (0, "llm-rubric 2"): [0, 1]}


def test_promptfoo_prompts_are_part_of_the_model(tmp_path):
    rows = [result(0, "a", assertion(True)), result(0, "a", assertion(False), prompt=1)]
    assert set(cp.read(promptfoo(tmp_path / "results.json", rows)).tasks) == {"0 @ a, short", "0 @ a, prompt 2"}


def test_two_providers_with_one_prompt_are_models_by_their_own_names(tmp_path):
    """promptfoo counts prompts over all providers, so that each of these has another number."""
    rows = [json.loads(line) for line in (PROMPTFOO / "results.jsonl").read_text().splitlines()]
    path = tmp_path / "results.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows if row["promptIdx"] in (0, 2)))
    assert {task.partition(" @ ")[2] for task in cp.read(path, tell=False).tasks} == {"small", "echo"}


def test_a_table_of_promptfoo_has_its_metrics_as_its_lines_have_them(tmp_path, capsys):
    annotations = cp.read(PROMPTFOO / "results.csv")
    of_metrics = {
        of: label for of, label in labels(cp.read(PROMPTFOO / "results.jsonl")).items() if of[1] != "contains"
    }
    assert labels(annotations) == of_metrics
    said = capsys.readouterr().err.splitlines()[0]
    assert "2 samples with an error left out" in said
    assert "4 tests without a metric left out" in said
    assert "`promptfoo eval --output results.json`" in said
    passed = labels(cp.read(PROMPTFOO / "results.csv", question="outcome", tell=False))
    assert [passed[f"{n} @ echo, {{{{sum}}}}", "all assertions"] for n in range(4)] == [[1], [0], [1], [1]]
    with (PROMPTFOO / "results.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    kept = [column for column, name in enumerate(rows[0]) if not name.startswith("Metric: ")]
    with (tmp_path / "plain.csv").open("w", newline="") as file:
        csv.writer(file).writerows([[row[column] for column in kept] for row in rows])
    assert labels(cp.read(tmp_path / "plain.csv", tell=False)) == passed
    rows[1][rows[0].index("Metric: is")] = "high"
    with (tmp_path / "plain.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    with pytest.raises(AnnotationError, match=r"plain\.csv, row 0, .*'Metric: is': 'high' is no number"):
        cp.read(tmp_path / "plain.csv")


def test_a_table_of_promptfoo_beside_its_results_is_not_read_again(capsys):
    assert labels(cp.read(PROMPTFOO)) == labels(cp.read(PROMPTFOO / "results.jsonl"))
    assert "1 table beside results of the same name left out" in capsys.readouterr().err


def test_promptfoo_scores_are_read_where_they_are_asked_for(tmp_path, capsys):
    rows = [result(n, "a", assertion(n > 1, score=n, metric="quality")) for n in range(4)]
    path = promptfoo(tmp_path / "results.json", rows)
    assert [found for (found,) in labels(cp.read(path)).values()] == [0, 0, 1, 1]
    assert "question='score' reads the scores" in capsys.readouterr().err
    assert [found for (found,) in labels(cp.read(path, question="score")).values()] == [0, 1, 2, 3]
    mixed = [result(n, "a", assertion(True, score=n % 2), assertion(True, "similar", score=n / 4)) for n in range(4)]
    with pytest.raises(AnnotationError, match=r"scorer 'similar': 0\.25 is a fraction"):
        cp.read(promptfoo(tmp_path / "mixed.json", mixed), question="score")


@pytest.mark.parametrize(
    ("results", "version", "message"),
    [
        ([], 3, r"results\.json.*there is no score"),
        ([result(0, "a")], 3, r"1 sample without assertions left out"),
        ([{"testIdx": 0}], 3, r"results\[0\].*a provider"),
        ([], 9, r"version 9 .*promptfoo export eval"),
    ],
)
def test_promptfoo_results_that_cannot_be_used_are_refused(tmp_path, results, version, message):
    with pytest.raises(AnnotationError, match=message):
        cp.read(promptfoo(tmp_path / "results.json", results, version))


def test_openai_matches_and_judges_are_scorers_and_an_invalid_choice_abstains(capsys):
    with pytest.warns(AnnotationWarning, match="abstentions only"):
        by_choice = cp.read(LOGS / "openai", question="choice", tell=False)
    assert list(by_choice.classes) == ["N", "Y"]
    annotations = cp.read(LOGS / "openai")
    assert labels(annotations) == {
        ("sums.dev.0", "match"): [1],
        ("sums.dev.1", "match"): [0],
        ("sums.dev.2", "match"): [1],
        ("sums.dev.0", "closedqa (gpt-judge)"): [1],
        ("sums.dev.1", "closedqa (gpt-judge)"): [0],
        ("sums.dev.2", "closedqa (gpt-judge)"): ["unreadable"],
    }
    said = capsys.readouterr().err
    assert "2 logs of OpenAI evals" in said
    assert "judged.jsonl has no final report" in said


def test_choices_of_whole_numbers_are_scores_in_their_order(tmp_path):
    lines = (LOGS / "openai" / "judged.jsonl").read_text().replace('"Y"', '"3"').replace('"N"', '"1"')
    (tmp_path / "judged.jsonl").write_text(lines.replace('"__invalid__"', '"2"'))
    by_choice = cp.read(tmp_path / "judged.jsonl", question="choice", tell=False)
    assert list(by_choice.classes) == [1, 2, 3]
    assert by_choice.kind.in_order


def test_openai_models_are_workers_and_expected_answers_gold():
    annotations = cp.read(LOGS / "openai" / "match.jsonl", workers="model")
    assert labels(annotations) == {(f"sums.dev.{n}", "gpt-a"): [picked] for n, picked in enumerate("457")}
    assert [annotations.classes[k] for k in annotations.gold] == ["4", "6", "7"]  # nobody answered 6


def test_openai_events_without_a_sample_are_refused(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"spec": {"completion_fns": ["a"], "eval_name": "x"}}\n{"type": "match", "data": {}}\n')
    with pytest.raises(AnnotationError, match=r"log\.jsonl, line 2: an event with sample_id and data"):
        cp.read(path)


def output_item(number, model, *results, error=None):
    """An item of a run on OpenAI's platform, with what each grader said."""
    unique = "-a2486074-d803-4445-b431-ad2262e85d47"
    return {
        "object": "eval.run.output_item",
        "id": f"outputitem_{number}{model}",
        "run_id": "run_1",
        "eval_id": "eval_1",
        "datasource_item_id": number,
        "results": [{"name": name + unique, "passed": passed, "score": score} for name, passed, score in results],
        "sample": {"model": model, "error": error},
    }


@pytest.mark.parametrize("shape", ["page", "list", "lines"])
def test_openai_items_of_a_run_have_graders_as_scorers_and_models(shape, tmp_path, capsys):
    items = [
        output_item(n, model, ("match", n != 1, float(n != 1)), ("match", True, 1), ("judge", n == 0, n % 2))
        for n in range(4)
        for model in ("small", "large")
    ]
    items.append(output_item(9, "small", error={"code": "limit"}))
    content = {"page": {"object": "list", "data": items, "has_more": False}, "list": items}.get(shape)
    text = "\n".join(map(json.dumps, items)) if content is None else json.dumps(content)
    path = tmp_path / ("items.jsonl" if shape == "lines" else "items.json")
    path.write_text(text)
    annotations = cp.read(path)
    found = labels(annotations)
    assert set(annotations.workers) == {"match", "match 2", "judge"}
    assert [found[f"{n} @ large", "match"] for n in range(4)] == [[1], [0], [1], [1]]
    assert [found[f"{n} @ small", "judge"] for n in range(4)] == [[1], [0], [0], [0]]
    assert "1 sample with an error left out" in capsys.readouterr().err
    scores = labels(cp.read(path, question="score", tell=False))
    assert [scores[f"{n} @ large", "judge"] for n in range(4)] == [[0], [1], [0], [1]]


def test_openai_items_that_cannot_be_used_are_refused(tmp_path):
    item = output_item(0, "small", ("match", True, 1.0))
    with pytest.raises(
        AnnotationError, match=r"items\.json, item 1: an eval\.run\.output_item with datasource_item_id"
    ):
        cp.read(write(tmp_path / "items.json", [item, {key: item[key] for key in ("object", "results")}]))
    with pytest.raises(AnnotationError, match=r"item 0: a result is 'passed'"):
        cp.read(write(tmp_path / "items.json", [item | {"results": ["passed"]}]))


def test_deepeval_metrics_are_scorers_and_runs_models(capsys):
    annotations = cp.read(LOGS / "deepeval")
    judged = "Correctness [GEval] (gpt-judge)"
    found = labels(annotations)
    assert [found[f"test_case_{n} @ model-a", judged] for n in range(3)] == [[1], [0], ["unreadable"]]
    assert [found[f"test_case_{n} @ model-b", "Exact Match"] for n in range(3)] == [[1], [1], [0]]
    assert "2 logs of deepeval" in capsys.readouterr().err
    with pytest.raises(AnnotationError, match=r"0\.9 is a fraction.*bin"):
        cp.read(LOGS / "deepeval", question="score")


def test_a_test_run_of_deepeval_without_a_test_file_is_one(tmp_path, capsys):
    run = json.loads((LOGS / "deepeval" / "test_run_model-a.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps({"testFile": None, **{k: run[k] for k in run if k != "testFile"}}))
    cp.read(tmp_path / "run.json")
    assert "1 log of deepeval" in capsys.readouterr().err


@pytest.mark.parametrize("link_first", [False, True])
def test_the_latest_test_run_of_deepeval_stands_beside_its_link(link_first, tmp_path, capsys):
    plain = LOGS / "deepeval" / "test_run_model-a.json"
    parts = {"testRunData": json.loads(plain.read_text()), "testRunLink": "https://app.confident-ai.com/run"}
    path = tmp_path / ".latest_test_run.json"
    path.write_text(json.dumps(dict(reversed(parts.items())) if link_first else parts))
    assert labels(cp.read(path)) == labels(cp.read(plain))
    assert capsys.readouterr().err.count("1 log of deepeval") == 2


def test_deepeval_cases_that_cannot_be_used_are_refused(tmp_path):
    with pytest.raises(AnnotationError, match=r"testCases\[0\].*a name"):
        cp.read(write(tmp_path / "run.json", {"testCases": [{}]}))
    with pytest.raises(AnnotationError, match=r"1 test case without metrics left out"):
        cp.read(write(tmp_path / "run.json", {"testCases": [{"name": "a"}]}))


def test_a_log_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(deepeval_logs, "LARGEST", 100)
    with pytest.raises(AnnotationError, match=r"model-a\.json has more than 100 bytes.*split it"):
        cp.read(LOGS / "deepeval")


def score(number, name, value, source="EVAL", kind="NUMERIC", **more):
    own = {"stringValue": value} if kind == "CATEGORICAL" else {"value": value, "stringValue": None}
    base = {"id": f"s{len(more)}{name}{number}{source}", "traceId": f"t{number}", "observationId": None, "value": 0}
    return base | {"name": name, "dataType": kind, "source": source} | own | more


def test_langfuse_names_are_questions_where_several_gave_them(tmp_path, capsys):
    rows = [
        score(n, name, values[n], source, **more)
        for name in ("tone", "facts")
        for source, values, more in (
            ("EVAL", (1, 2, 3), {}),
            ("ANNOTATION", (1, 3, 3), {"authorUserId": "ann"}),
            ("ANNOTATION", (2, 2, 3), {"authorUserId": "bob", "comment": "x"}),
        )
        for n in range(3)
    ]
    path = write(tmp_path / "scores.json", {"data": rows, "meta": {"page": 1}})
    with pytest.raises(AnnotationError, match=r"'tone', 'facts'.*question='tone'"):
        cp.read(path)
    annotations = cp.read(path, question="tone")
    assert set(annotations.workers) == {"EVAL", "ann", "bob"}
    assert labels(annotations)["t1", "ann"] == [3]
    assert annotations.kind.distance(3)[0, 2] == 2
    assert "its name is a question" in capsys.readouterr().err


@pytest.mark.parametrize("style", ["camel", "snake"])
def test_langfuse_names_are_scorers_where_each_has_one_source(tmp_path, style, capsys):
    rows = [score(n, name, "CI"[n % 2], kind="CATEGORICAL") for name in ("judge-a", "judge-b") for n in range(3)]
    rows.append(score(0, "judge-a", "free text", kind="CORRECTION"))
    if style == "snake":
        names = {"traceId": "trace_id", "observationId": "observation_id", "dataType": "data_type"}
        names |= {"stringValue": "string_value"}
        rows = [{names.get(name, name): value for name, value in row.items()} for row in rows]
    path = tmp_path / "scores.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    annotations = cp.read(path)
    assert labels(annotations) == {
        (f"t{n}", judge): ["CI"[n % 2]] for judge in ("judge-a", "judge-b") for n in range(3)
    }
    said = capsys.readouterr().err
    assert "its name is the scorer" in said
    assert "1 score of the type CORRECTION left out" in said


def test_langfuse_truth_values_are_verdicts_and_a_value_that_is_no_number_is_refused(tmp_path):
    rows = [score(n, judge, n % 2, kind="BOOLEAN") for judge in "ab" for n in range(3)]
    assert list(cp.read(write(tmp_path / "scores.json", rows)).classes) == [0, 1]
    rows[4]["value"] = "high"
    with pytest.raises(AnnotationError, match=r"score 5 \('b'\): the value 'high' is no number"):
        cp.read(write(tmp_path / "scores.json", rows))


def test_annotations_of_phoenix_spans_are_scores_by_who_gave_them(tmp_path, capsys):
    given = [("LLM", "", ""), ("HUMAN", "ann", ""), ("HUMAN", "", "bob")]
    rows = [
        {"span_id": f"s{n}", "annotation_name": "right", "annotator_kind": kind, "result.label": ["no", "yes"][n % 2]}
        | {"result.score": n % 2, "id": f"{kind}{user}{own}{n}", "user_id": user, "identifier": own}
        for n in range(4)
        for kind, user, own in given
    ]
    path = tmp_path / "annotations.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    annotations = cp.read(path)
    assert labels(annotations) == {(f"s{n}", who): [n % 2] for n in range(4) for who in ("LLM", "ann", "bob")}
    assert "1 log of Phoenix" in capsys.readouterr().err
    by_label = [{**row, "result.score": None} for row in rows]
    assert list(cp.read(write(tmp_path / "annotations.json", by_label), tell=False).classes) == ["no", "yes"]


def test_the_limit_of_plain_logs_is_one(monkeypatch, tmp_path):
    monkeypatch.setattr(promptfoo_logs, "LARGEST", 100)
    with pytest.raises(AnnotationError, match=r"results\.json has more than 100 bytes"):
        cp.read(promptfoo(tmp_path / "results.json", [result(0, "a", assertion(True))]))


def assessment(number, name, value, kind, who, **more):
    error = {} if value is not None else {"error": {"error_code": "RATE_LIMIT"}}
    given = {
        "assessment_id": f"a-{number}-{name}-{who}-{len(more)}",
        "assessment_name": name,
        "trace_id": f"tr-{number}",
    }
    return given | {"source": {"source_type": kind, "source_id": who}, "feedback": {"value": value} | error} | more


def traces():
    """Of MLflow 3.18: columns of ``search_traces()``, with feedback of people and of judges, one of whom failed."""
    found = []
    for n in range(4):
        given = [
            assessment(n, "right", n % 2 == 0, "LLM_JUDGE", "gpt", span_id=f"s{n}"),
            assessment(n, "right", None if n == 1 else True, "LLM_JUDGE", "claude"),
            assessment(n, "right", False, "HUMAN", "ann"),
            assessment(n, "tone", n + 1.0, "LLM_JUDGE", "gpt"),
            assessment(n, "tone", 2.0, "HUMAN", "ann"),
        ]
        expected = {"assessment_id": f"e-{n}", "assessment_name": "answer", "expectation": {"value": "4"}}
        found.append({"trace_id": f"tr-{n}", "trace": '{"mlflow.traceName": "f"}', "assessments": [*given, expected]})
    found[0]["assessments"].append(assessment(0, "right", True, "HUMAN", "ann", overrides="a-0-right-ann-0"))
    found[2]["assessments"].append(assessment(2, "right", False, "HUMAN", "bob", overrides="a-2-right-gpt-1"))
    return found


def test_feedback_on_traces_of_mlflow_is_by_who_gave_it_and_what_somebody_else_overrode_stays(tmp_path, capsys):
    rows = [row | {"trace": row["trace"].replace("mlflow.traceName", "mlflow.trace.sizeBytes")} for row in traces()]
    with pytest.raises(AnnotationError, match="'right', 'tone'"):
        cp.read(write(tmp_path / "traces.json", rows))
    annotations = cp.read(tmp_path / "traces.json", question="right")
    said = capsys.readouterr().err
    assert all(
        each in said for each in ("1 log of MLflow", "4 expectations", "1 feedback that was given anew left out")
    )
    found = labels(annotations)
    assert [found[f"tr-{n}", "LLM_JUDGE (gpt)"] for n in range(4)] == [[1], [0], [1], [0]]
    assert found["tr-1", "LLM_JUDGE (claude)"] == ["unreadable"]
    assert [found["tr-0", "ann"], found["tr-1", "ann"], found["tr-2", "bob"]] == [[1], [0], [0]]
    infos = [
        {"info": {key: row[key] for key in ("trace_id", "assessments")}, "data": {"tag": row["trace"]}} for row in rows
    ]
    assert labels(cp.read(write(tmp_path / "infos.json", infos), question="right", tell=False)) == found
    frame = pd.DataFrame(rows)
    frame.to_csv(tmp_path / "traces.csv", index=False)
    for source in (frame, tmp_path / "traces.csv"):
        assert labels(cp.read(source, question="right", tell=False)) == found


def test_no_garbage_is_looked_for_while_a_log_is_read(tmp_path):
    """Records stay until all are read: to look through them again and again took two fifths of the time."""
    rows = [result(i, "a", assertion(i % 2 > 0), assertion(True, "equals")) for i in range(2000)]
    looks = []

    def look(phase, info):
        looks.append(info["generation"])

    path = promptfoo(tmp_path / "results.json", rows)
    often = gc.get_threshold()
    gc.set_threshold(700, 10, 10)  # Python's own
    gc.callbacks.append(look)
    try:
        held = read_logs([path], "results", None, None, None, no_answer=False)
    finally:
        gc.callbacks.remove(look)
        gc.set_threshold(*often)
    assert len(held.frame) == 4000
    assert len(looks) <= 4  # before and after
    assert gc.isenabled()
