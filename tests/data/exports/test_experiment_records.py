"""Records of experiments of Braintrust, Weave and Phoenix, with the fields that these tools write."""

import csv
import json
import re
import warnings
from pathlib import Path

import pytest

import crowdppl as cp
from crowdppl import AnnotationError
from crowdppl.data.errors import AnnotationWarning

EXPERIMENTS = Path(__file__).with_name("experiments")
"""What the tools' own writers made (`make_experiments.py`)."""


def write(path, content):
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def table(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        writer.writerows(rows)
    return path


def labels(annotations):
    frame = annotations.to_frame()
    return frame.groupby(["task", "worker"], sort=False)["label"].agg(list).to_dict()


def braintrust(number, experiment="e1", **scores):
    span = {"id": f"{experiment}-{number}", "span_id": f"{experiment}-s{number}", "dataset_record_id": f"d{number}"}
    span |= {"root_span_id": span["span_id"], "experiment_id": experiment, "input": {"q": "2 + 2?"}, "output": "4"}
    return span | {"scores": scores, "metadata": {"model": "gpt"}, "span_attributes": {"type": "eval"}}


def step(number, **scores):
    return braintrust(number, **scores) | {"span_id": f"step {number}", "span_attributes": {"type": "score"}}


@pytest.mark.parametrize("wrapped", [False, True])
def test_braintrust_has_scorers_and_no_steps_and_a_score_that_is_missing_is_none(wrapped, tmp_path, capsys):
    rows = [braintrust(n, Match=n % 2, Human=None if n else 1) for n in range(4)] + [step(n, Match=1) for n in range(4)]
    annotations = cp.read(write(tmp_path / "run.json", {"events": rows} if wrapped else rows))
    assert labels(annotations) == {(f"d{n}", "Match"): [n % 2] for n in range(4)} | {("d0", "Human"): [1]}
    assert "1 log of Braintrust" in (said := capsys.readouterr().err)
    assert "4 steps of an answer left out" in said


def test_braintrust_experiments_are_models_by_their_files_or_ids(tmp_path):
    for name in ("new", "old"):
        write(tmp_path / f"{name}.json", [braintrust(n, name, A=n % 2, B=1) for n in range(3)])
    assert "d0 @ old" in cp.read(tmp_path, tell=False).tasks
    both = [braintrust(n, name, A=n % 2, B=1) for n in range(3) for name in ("e1", "e2")]
    assert "d0 @ e2" in cp.read(write(tmp_path / "both.json", both), tell=False).tasks


def test_braintrust_trials_are_epochs_and_fractions_are_another_question(tmp_path, capsys):
    rows = [braintrust(n, Match=n % 2) for n in range(3)] * 2
    assert cp.read(write(tmp_path / "run.json", rows)).n_annotations == 6
    assert "2 epochs are repeats" in capsys.readouterr().err
    rows = [braintrust(n, Match=n % 2, Factuality=0.6) for n in range(3)]
    with pytest.raises(AnnotationError, match=r"'verdict', 'fraction' .*; say which by question='verdict'$"):
        cp.read(write(tmp_path / "run.json", rows))


def weave(number, model="Small", op="Evaluation.predict_and_score", **scores):
    inputs = {
        "example": f"weave:///e/p/object/Dataset:d/attr/rows/id/r{number}",
        "model": f"weave:///e/p/object/{model}:v",
    }
    output = {"output": "4", "scores": scores, "model_latency": 0.1}
    return {"id": str(number), "op_name": f"weave:///e/p/op/{op}:x", "inputs": inputs, "output": output}


def test_weave_has_scorers_whose_only_number_is_their_verdict(tmp_path, capsys):
    rows = [weave(n, exact={"correct": n > 0, "why": "text"}, plain=True) for n in range(3)]
    rows += [weave(n, op="Model.predict") for n in range(3)]
    path = tmp_path / "calls.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    given = {(f"r{n}", "exact"): [int(n > 0)] for n in range(3)} | {(f"r{n}", "plain"): [1] for n in range(3)}
    assert labels(cp.read(path)) == given
    assert "3 steps of an answer left out" in capsys.readouterr().err


def test_weave_has_questions_where_a_scorer_gives_several_and_a_table_is_read_as_json_is(tmp_path):
    rows = [weave(n, m, judge={"style": n % 3 + 1, "facts": 3 - n % 3}) for n in range(6) for m in ("Small", "Large")]
    annotations = cp.read(write(tmp_path / "calls.json", rows), question="style", tell=False)
    assert labels(annotations)["r1 @ Large:v", "judge"] == [2]
    flat = [
        {"op_name": row["op_name"], "inputs.example": row["inputs"]["example"], "inputs.model": row["inputs"]["model"]}
        | {f"output.scores.judge.{key}": value for key, value in row["output"]["scores"]["judge"].items()}
        for row in rows
    ]
    same = cp.read(table(tmp_path / "calls.csv", flat), question="style", tell=False)
    assert labels(same) == labels(annotations)
    assert list(same.classes) == [1, 2, 3]


def test_rows_of_weave_are_samples_by_their_order_and_one_that_failed_is_none(tmp_path, capsys):
    path = EXPERIMENTS / "weave" / "rows.json"
    annotations = cp.read(path)
    right = [1, 0, 1, None, 1, 1]
    given = {(n, "exact"): [label] for n, label in enumerate(right) if label is not None}
    assert labels(annotations) == given | {(n, "short"): [1] for n in (0, 1, 2, 4, 5)}
    said = capsys.readouterr().err
    assert "a sample is a row" in said
    assert "1 answer without a score left out" in said
    rows = json.loads(path.read_text())
    assert labels(cp.read(rows, tell=False)) == labels(annotations)
    assert labels(cp.read(write(tmp_path / "a.json", {"rows": rows}), tell=False)) == labels(annotations)
    for name in ("small", "large"):
        write(tmp_path / f"{name}.json", rows)
    (tmp_path / "a.json").unlink()
    assert "4 @ large" in cp.read(tmp_path, tell=False).tasks


def trial(call, **scores):
    return {"predict_and_score_call_id": call, "scorer_call_ids": {}, "model_output": "4", "scores": scores}


def test_results_by_row_of_weaves_api_have_models_and_trials(tmp_path):
    """With the fields of weave 0.54.0's ``V2EvalResultQueryResponse``."""
    models = {"call 1": "weave:///e/p/object/Small:v", "call 2": "weave:///e/p/object/Large:v"}
    rows = [
        {
            "row_digest": f"d{n}",
            "raw_data_row": {"id": f"r{n}", "question": "?"} if n else None,
            "evaluations": [
                {"evaluation_call_id": call, "trials": [trial(f"{call}{n}{t}", right={"ok": n > t}) for t in (0, 1)]}
                for call in models
            ],
        }
        for n in range(3)
    ]
    runs = [{"evaluation_call_id": call, "model_ref": model} for call, model in models.items()]
    content = {"rows": rows, "summary": {"evaluations": runs, "row_count": 3}, "total_rows": 3, "warnings": []}
    annotations = cp.read(write(tmp_path / "results.json", content), tell=False)
    ids = ["d0", "r1", "r2"]
    assert labels(annotations) == {
        (f"{of} @ {model}:v", "right"): [int(n > 0), int(n > 1)]
        for n, of in enumerate(ids)
        for model in ("Small", "Large")
    }
    rows[1]["evaluations"] = [{"trials": 3}]
    with pytest.raises(AnnotationError, match=r"results\.json, row 1: evaluations is to be a list"):
        cp.read(write(tmp_path / "results.json", content))


def test_local_results_of_braintrust_have_inputs_as_samples_and_scorers_that_failed_abstain(tmp_path, capsys):
    path = EXPERIMENTS / "braintrust" / "results.json"
    annotations = cp.read(path)
    right = {"1 + 1": 1, "2 + 3": 0, "2 + 5": 1, "4 + 4": 1, "3 + 6": 1}
    judged = {"1 + 1": 1, "2 + 3": 1, "2 + 5": "unreadable", "3 + 6": 1}
    given = {(task, "exact"): [label] for task, label in right.items()}
    assert labels(annotations) == given | {(task, "judge"): [label] for task, label in judged.items()}
    assert "1 answer with an error left out" in capsys.readouterr().err
    found = json.loads(path.read_text())
    assert labels(cp.read(found, tell=False)) == labels(annotations)
    other = {"summary": {"experimentName": "other"}, "results": [{"input": "1 + 1", "scores": {"exact": 0}}]}
    both = tmp_path / "both.jsonl"
    both.write_text("\n".join(map(json.dumps, (found, other))))
    assert labels(cp.read(both, tell=False))["1 + 1 @ other", "exact"] == [0]


def test_means_of_braintrust_are_refused_with_the_code_that_keeps_each_score():
    with pytest.raises(AnnotationError, match=r"summary\.jsonl has the means of scorers.*result\.as_dict\(\)"):
        cp.read(EXPERIMENTS / "braintrust" / "summary.jsonl")


def phoenix(number, *annotations, repetition=1):
    run = {"example_id": f"x{number}", "repetition_number": repetition, "input": {"q": 1}, "output": "4", "error": None}
    given = [{"name": n, "annotator_kind": "LLM", "label": b, "score": s, "error": e} for n, b, s, e in annotations]
    return run | {"annotations": given}


def test_phoenix_has_scores_or_labels_and_an_evaluator_that_failed_abstains(tmp_path, capsys):
    rows = [
        phoenix(n, ("right", ["wrong", "right"][n % 2], n % 2, None), ("exact", None, n % 2, "x" if n == 2 else None))
        for n in range(4)
    ]
    annotations = cp.read(write(tmp_path / "run.json", rows))
    assert labels(annotations)["x1", "right"] == [1]
    assert labels(annotations)["x2", "exact"] == ["unreadable"]
    assert "question='label' reads the labels" in capsys.readouterr().err
    by_name = cp.read(tmp_path / "run.json", question="label", tell=False)
    assert labels(by_name)["x1", "right"] == ["right"]
    flat = [
        {"example_id": row["example_id"], "repetition_number": 1, "input": json.dumps(row["input"])}
        | {
            f"annotation_{each['name']}_{key}": each[key]
            for each in row["annotations"]
            for key in ("label", "score", "error")
        }
        for row in rows
    ]
    assert labels(cp.read(table(tmp_path / "run.csv", flat), tell=False)) == labels(annotations)


def evaluated(path, **values):
    """A file of Phoenix's runs with a score or a label of each of two evaluators, by turns."""
    rows = []
    for n in range(40):
        given = ((name, of[n % len(of)]) for name, of in values.items())
        rows.append(phoenix(n, *((k, v, None, None) if isinstance(v, str) else (k, None, v, None) for k, v in given)))
    return write(path, rows)


@pytest.mark.parametrize(
    ("right", "questions"),
    [
        ([0, 1], "'score', 'verdict' (score by 'helpful'; verdict by 'right')"),
        ([True, False], "'score', 'verdict' (score by 'helpful'; verdict by 'right')"),
        (["no", "yes"], "'score', 'text' (score by 'helpful'; text by 'right')"),
    ],
)
def test_evaluators_of_several_scales_are_refused_by_their_names(right, questions, tmp_path):
    path = evaluated(tmp_path / "run.json", helpful=[1, 3, 5, 4, 2], right=right)
    with pytest.raises(AnnotationError, match=re.escape(questions)):
        cp.read(path)


def test_evaluators_of_labels_that_share_none_are_questions_by_their_names(tmp_path):
    path = evaluated(tmp_path / "run.json", tone=["calm", "rude"], mood=["Rude ", "kind"], safe=["yes", "no"])
    with pytest.raises(AnnotationError, match=r"'tone, mood', 'safe'.*question=\['tone, mood', 'safe'\]"):
        cp.read(path)
    assert list(cp.read(path, question="safe", tell=False).classes) == ["no", "yes"]
    one = evaluated(tmp_path / "run.json", a=["x", "y"], b=["y", "z"], c=["z"])
    assert list(cp.read(one, tell=False).classes) == ["x", "y", "z"]


def test_scores_of_which_low_ones_alone_are_used_are_of_one_scale(tmp_path):
    path = evaluated(tmp_path / "run.json", helpful=[0, 1, 2], strict=[0, 1, 0])
    assert set(cp.read(path, tell=False).workers) == {"helpful", "strict"}


def test_evaluators_of_scores_of_two_ranges_are_warned_of_and_each_can_be_a_question(tmp_path):
    path = evaluated(tmp_path / "run.json", helpful=[1, 3, 5, 4, 2], style=[7, 10, 1, 4])
    with pytest.warns(AnnotationWarning, match=r"'helpful' gives 1 to 5 and 'style' 1 to 10.*question=\['helpful'"):
        cp.read(path, tell=False)
    assert set(cp.read(path, question="helpful", tell=False).to_frame()["label"]) == {1, 2, 3, 4, 5}
    with pytest.warns(AnnotationWarning, match="answered by one worker alone"):
        both = cp.read(path, question=["helpful", "style"], tell=False)
    codes, kind = both.question_classes("helpful")
    assert ([both.classes[int(code)] for code in codes], kind.in_order) == ([1, 2, 3, 4, 5], True)


def test_a_scorer_that_is_called_as_a_kind_of_values_is_not_taken_for_it(tmp_path):
    path = evaluated(tmp_path / "run.json", score=["no", "yes"], helpful=[1, 3, 5, 4, 2])
    assert list(cp.read(path, question="score", tell=False).workers) == ["helpful"]


def test_a_model_that_is_scored_low_is_no_scorer_of_another_scale(tmp_path):
    for name, scores in (("weak", [1, 2]), ("good", [8, 10])):
        rows = [phoenix(n, ("judge", None, scores[n % 2], None)) for n in range(40)]
        write(tmp_path / f"{name}.json", rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert set(cp.read(tmp_path, tasks="sample", tell=False).workers) == {"weak: judge", "good: judge"}


def test_an_answer_that_failed_is_no_task_whatever_evaluators_gave_to_it(tmp_path, capsys):
    failed = {"output": None, "error": "ValueError('boom')"}
    rows = [phoenix(n, ("right", None, n % 2, None)) | (failed if n == 2 else {}) for n in range(4)]
    assert list(cp.read(write(tmp_path / "run.json", rows)).tasks) == ["x0", "x1", "x3"]
    assert "1 answer with an error left out" in capsys.readouterr().err
    flat = [
        {key: row[key] for key in ("example_id", "repetition_number", "output", "error")}
        | {"annotation_right_score": n % 2}
        for n, row in enumerate(rows)
    ]
    assert list(cp.read(table(tmp_path / "run.csv", flat), tell=False).tasks) == ["x0", "x1", "x3"]


def test_records_that_are_none_are_refused_by_their_place(tmp_path):
    rows = [phoenix(0, ("right", None, 1, None)), phoenix(1, ("right", None, 0, None)) | {"example_id": None}]
    with pytest.raises(AnnotationError, match=r"run\.json, record 1: there is no id"):
        cp.read(write(tmp_path / "run.json", rows))
    with pytest.raises(AnnotationError, match=r"run\.json, record 1: a dictionary is needed"):
        cp.read(write(tmp_path / "run.json", [*rows[:1], 3]))
    with pytest.raises(AnnotationError, match="there is no score"):
        cp.read(write(tmp_path / "run.json", [phoenix(n) for n in range(3)]))
