"""Logs of evaluations that the tools' own writers made (`make_logs.py`), and damaged ones."""

import json
import shutil
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import crowdppl as cp
from crowdppl import AnnotationError, UnknownNameError
from crowdppl.data.errors import AnnotationWarning
from crowdppl.data.exports import inspect_logs

LOGS = Path(__file__).with_name("logs")
JUDGE = "model_graded_qa (openai/judge)"


def labels(annotations):
    """Labels by task and worker, a list with one for each repeat."""
    frame = annotations.to_frame()
    return frame.groupby(["task", "worker"], sort=False)["label"].agg(list).to_dict()


def log(samples, **header):
    spec = {"task": "sums", "model": "mock/a"}
    return {"version": 2, "status": "success", "eval": spec, "samples": samples} | header


def sample(number, epoch=1, **scores):
    return {"id": number, "epoch": epoch, "scores": {name: {"value": value} for name, value in scores.items()}}


def write(path, content):
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_a_log_with_one_model_has_samples_as_tasks_and_epochs_as_repeats(capsys):
    annotations = cp.read(LOGS / "inspect" / "one.json")
    assert labels(annotations) == {
        (1, "match"): ["C", "C"],
        (1, JUDGE): ["C", "P"],
        (2, "match"): ["I", "C"],
        (2, JUDGE): ["unreadable", "C"],
        (3, "match"): ["I", "I"],
        (3, JUDGE): ["I", "I"],
    }
    said = capsys.readouterr().err
    assert "task = a sample (3 tasks of 1 model)" in said
    assert f"worker = a scorer (match, {JUDGE})" in said
    assert "2 epochs are repeats" in said


def test_values_within_a_value_are_questions_of_their_own_and_one_that_nobody_scored_is_none(tmp_path, capsys):
    value = {"clarity": 3, "truth": {"facts": 2, "sources": 4}, "note": None, "spans": ["a"]}
    path = write(tmp_path / "log.json", log([sample(number, rubric=value) for number in (1, 2)]))
    with pytest.raises(AnnotationError, match=r"question=\['clarity', 'truth\.facts', 'truth\.sources'\]"):
        cp.read(path)
    found = cp.read(path, question=["clarity", "truth.facts"], classes=[1, 2, 3, 4, 5])
    assert found.to_frame()["label"].tolist() == [3, 2, 3, 2]
    said = capsys.readouterr().err
    assert "2 lists of scores left out" in said
    assert "'note' left out, as it has no score" in said


def test_a_folder_with_several_models_has_their_answers_as_tasks(capsys):
    annotations = cp.read(LOGS / "inspect")
    assert list(annotations.tasks) == [f"{i} @ mock/{model}" for model in "ab" for i in (1, 2, 3)]
    assert labels(annotations)["3 @ mock/b", JUDGE] == ["P"]
    said = capsys.readouterr().err
    assert "task = a model's answer to a sample (6 tasks of 2 models)" in said
    assert "two.eval has the status 'cancelled'" in said


def test_partial_credit_orders_the_verdicts_and_a_failed_judge_abstains():
    annotations = cp.read(LOGS / "inspect")
    assert list(annotations.classes) == ["I", "P", "C"]
    assert list(annotations.abstentions) == ["unreadable"]
    assert annotations.kind.distance(3)[0, 2] == 2


def test_no_answer_is_incorrect_unless_it_is_called_an_abstention(capsys):
    assert labels(cp.read(LOGS / "inspect" / "one.json"))[3, "match"] == ["I", "I"]
    assert "N, no answer by the model, is I once" in capsys.readouterr().err
    kept = cp.read(LOGS / "inspect" / "one.json", abstain="N")
    assert labels(kept)[3, "match"] == ["N", "I"]
    assert set(kept.abstentions) == {"N", "unreadable"}
    assert "is I once" not in capsys.readouterr().err


def test_tasks_says_whether_models_and_epochs_make_tasks():
    by_epoch = cp.read(LOGS / "inspect" / "one.json", tasks="epoch")
    assert set(by_epoch.tasks) == {f"{i} @ mock/a #{epoch}" for i in (1, 2, 3) for epoch in (1, 2)}
    by_sample = cp.read(LOGS / "inspect", tasks="sample")
    assert list(by_sample.tasks) == [1, 2, 3]
    assert set(by_sample.workers) == {f"mock/{model}: {scorer}" for model in "ab" for scorer in ("match", JUDGE)}
    assert list(cp.read(LOGS / "inspect" / "one.json", tasks="answer").tasks) == [f"{i} @ mock/a" for i in (1, 2, 3)]
    with pytest.raises(UnknownNameError, match=r"tasks.*'answer'"):
        cp.read(LOGS / "inspect", tasks="answers")


def test_models_are_workers_where_that_is_asked_for_and_targets_are_gold():
    annotations = cp.read(LOGS / "inspect", workers="model")
    assert labels(annotations) == {
        (1, "mock/a"): ["4", "4"],
        (2, "mock/a"): ["5", "6"],
        (3, "mock/a"): ["unreadable", "8"],
        (1, "mock/b"): ["3"],
        (2, "mock/b"): ["6"],
        (3, "mock/b"): ["7"],
    }
    assert [annotations.classes[k] for k in annotations.gold] == ["4", "6", "7"]
    with pytest.raises(AnnotationError, match=r"workers='scorer'"):
        cp.read(LOGS / "deepeval", workers="model")
    with pytest.raises(AnnotationError, match=r"'rubric' is none of 'match'"):
        cp.read(LOGS / "inspect", workers="model", question="rubric")
    with pytest.raises(AnnotationError, match="leave tasks='epoch' out"):
        cp.read(LOGS / "inspect", workers="model", tasks="epoch")


def test_harness_metrics_and_filters_are_workers(capsys):
    annotations = cp.read(LOGS / "harness")
    by = labels(annotations)
    assert by["0 @ org/small", "exact_match,flexible-extract"] == [1]
    assert by["0 @ org/small", "exact_match,strict-match"] == [0]
    assert annotations.n_tasks == 6
    assert "2 logs of lm-evaluation-harness" in capsys.readouterr().err


HARNESS = Path(__file__).with_name("experiments") / "harness"
"""What lm-evaluation-harness wrote of two models that answer sums, and choose one of two answers."""


def test_models_of_the_harness_are_workers_with_the_answers_that_a_filter_read(capsys):
    """Of models that say "It is 5" and "5", so that one filter finds no more than the other model's."""
    annotations = cp.read(HARNESS, workers="model", question="exact_match,number")
    said = {"org/large": ["2", "5", "7", "12", "8", "9"], "org/small": ["2", "5", "7", "unreadable", "8", "9"]}
    assert labels(annotations) == {(n, model): [of[n]] for model, of in said.items() for n in range(6)}
    gold = [annotations.classes[k] for k in annotations.gold]
    assert [gold[n] for n in (0, 2, 4, 5)] == ["2", "7", "8", "9"]  # "So it is 2, and no other number …"
    assert [gold[n].partition(",")[0] for n in (1, 3)] == ["So it is 4", "So it is 1"]
    assert "1 evaluation without such answers left out ('picks')" in capsys.readouterr().err


def test_choices_of_the_harness_are_their_numbers_and_each_evaluation_has_a_reading(capsys):
    annotations = cp.read(HARNESS, workers="model")
    found = labels(annotations)
    targets = ["0", "1"] * 3
    assert [found[f"picks: {n}", "org/large"] for n in range(6)] == [[target] for target in targets]
    assert [found[f"picks: {n}", "org/small"] for n in range(6)] == [[target] for target in targets[::-1]]
    gold = dict(zip(annotations.tasks, (annotations.classes[k] for k in annotations.gold), strict=True))
    assert [gold[f"picks: {n}"] for n in range(6)] == targets
    assert found["sums: 0", "org/small"] == ["It is 2"]
    said = capsys.readouterr().err
    assert "as acc and exact_match,whole read it (question='exact_match,number' takes another's reading)" in said


def test_answers_in_two_files_of_one_name_are_both_read(tmp_path):
    for name in ("first", "second"):
        shutil.copytree(LOGS / "inspect", tmp_path / name)
        log = json.loads((tmp_path / name / "one.json").read_text())
        for each in log["samples"]:
            each["uuid"] += name
        write(tmp_path / name / "one.json", log)
        (tmp_path / name / "two.eval").unlink()
    assert labels(cp.read(tmp_path, workers="model"))[2, "mock/a"] == ["5", "6", "5", "6"]


def test_a_renamed_harness_log_is_known_by_its_fields_and_no_target_becomes_a_worker(tmp_path, capsys):
    file = next((LOGS / "harness" / "org__small").glob("samples_*"))
    named = cp.read(file)
    capsys.readouterr()
    renamed = shutil.copy(file, tmp_path / "small model.jsonl")
    found = cp.read(renamed)
    assert labels(found) == labels(named)
    said = capsys.readouterr().err
    assert "1 log of lm-evaluation-harness" in said
    assert "its model taken to be 'small model'" in said
    lines = [json.loads(line) for line in renamed.read_text().splitlines()]
    old = [{name: value for name, value in line.items() if name not in ("metrics", "filter")} for line in lines]
    renamed.write_text("\n".join(map(json.dumps, old)))
    with pytest.raises(AnnotationError, match=r"line 1: a sample with .*or add them: metrics lists the names"):
        cp.read(renamed)


def test_a_harness_log_without_results_has_the_name_of_its_folder(tmp_path):
    folder = tmp_path / "org__small"
    shutil.copytree(LOGS / "harness" / "org__small", folder)
    next(folder.glob("results_*")).unlink()
    assert next(iter(cp.read(folder, tasks="answer").tasks)) == "0 @ org__small"


def test_values_of_a_scorer_are_questions_of_which_one_or_several_are_read(capsys):
    with pytest.raises(AnnotationError, match=r"'style', 'facts', 'verdict'.*question='style'"):
        cp.read(LOGS / "rubric")
    style = cp.read(LOGS / "rubric", question="style")
    assert labels(style) == {(f"essay-{n}", "judge"): [score] for n, score in enumerate((1, 3, 5, 2))}
    assert style.kind.distance(4)[0, 3] == 3
    both = cp.read(LOGS / "rubric", question=["style", "facts"])
    assert list(both.questions) == ["style", "facts"]
    with pytest.raises(AnnotationError, match=r"no question 'tone'"):
        cp.read(LOGS / "rubric", question="tone")


@pytest.mark.parametrize("question", [["style", "facts"], "style"])
def test_a_rubric_without_a_verdict_is_an_abstention_in_each_of_its_questions(question, tmp_path):
    samples = [sample(i, judge={"style": i % 3 + 1, "facts": 3 - i % 3}, other=i % 3 + 1) for i in range(6)]
    samples.append({"id": 6, "epoch": 1, "scores": {"judge": {"value": float("nan"), "reason": "grader_failed"}}})
    annotations = cp.read(write(tmp_path / "log.json", log(samples)), question=question, tell=False)
    rows = annotations.to_frame()
    assert rows[rows["task"] == 6]["label"].tolist() == ["unreadable"] * (2 if isinstance(question, list) else 1)
    alone = cp.read(tmp_path / "log.json", question="score", tell=False)
    assert list(alone.workers) == ["other"]
    assert not len(alone.abstentions)


def test_scores_of_another_truth_are_read_without_those_that_failed_which_is_said(tmp_path, capsys):
    samples = [sample(i, a=i % 3 + 1, b=3 - i % 3) for i in range(6)]
    samples[2]["scores"]["a"] = {"value": None, "reason": "grader_failed"}
    path = write(tmp_path / "log.json", log(samples))
    annotations = cp.read(path, truth_classes=["bad", "good"])
    assert annotations.n_annotations == 11
    assert list(annotations.classes) == ["bad", "good"]
    assert "1 abstention left out, as truth_classes= is of levels alone" in capsys.readouterr().err
    samples[3]["scores"]["a"]["value"] = 9  # its place is that of the row it is in the log
    with pytest.raises(AnnotationError, match=r"sample 3, .*scorer 'a'"):
        cp.read(write(path, log(samples)), ordered=[1, 2, 3], truth_classes=["bad", "good"])


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ({"model": "openai/judge", "config": {}}, JUDGE),
        (["openai/judge", {"model": "b"}], "model_graded_qa (openai/judge, b)"),
        ({"config": {}}, "model_graded_qa"),
    ],
)
def test_a_judge_is_named_whose_settings_a_log_has(model, name, tmp_path):
    spec = {"task": "sums", "model": "a", "scorers": [{"name": "model_graded_qa", "options": {"model": model}}]}
    samples = [sample(i, model_graded_qa="CI"[i % 2]) for i in range(4)]
    assert list(cp.read(write(tmp_path / "log.json", log(samples, eval=spec)), tell=False).workers) == [name]


def test_questions_that_are_read_together_keep_the_order_that_each_has_alone(tmp_path):
    said = [("C", 1), ("I", 2), ("P", 4), ("C", 3)]
    samples = [sample(number, 1, grade=letter, length=score) for number, (letter, score) in enumerate(said)]
    file = write(tmp_path / "log.json", log(samples))
    with pytest.raises(AnnotationError, match=r"question=\['verdict', 'score'\], each with classes of its own"):
        cp.read(file, tell=False)
    both = cp.read(file, question=["verdict", "score"], tell=False)
    for name in ("verdict", "score"):
        alone = cp.read(file, question=name, tell=False)
        codes, kind = both.question_classes(name)
        assert [both.classes[int(code)] for code in codes] == list(alone.classes)
        assert kind.in_order
        assert alone.kind.in_order


def test_questions_of_true_and_false_have_no_levels_of_the_scores_beside_them(tmp_path, capsys):
    """A rubric's "safe" of true and false was of the classes 0 to 5, since it shares 1 with "helpful"."""
    rubric = [{"helpful": n % 5 + 1, "style": (1, 2, 5)[n % 3], "safe": n % 3 > 0} for n in range(15)]
    samples = [sample(number, 1, judge=values) for number, values in enumerate(rubric)]
    file = write(tmp_path / "log.json", log(samples))
    found = cp.read(file, question=["helpful", "style", "safe"])
    for name, classes in {"helpful": [1, 2, 3, 4, 5], "style": [1, 2, 3, 4, 5], "safe": [0, 1]}.items():
        codes, kind = found.question_classes(name)
        assert ([found.classes[int(code)] for code in codes], kind.in_order) == (classes, len(classes) > 2)
    assert "helpful 1 < 2 < 3 < 4 < 5" in capsys.readouterr().err


def epochs(tmp_path, truth_of):
    """A log of two epochs of 60 samples with two scorers that say a truth by sample and epoch in nine of ten."""
    rng = np.random.default_rng(0)
    samples = []
    for number in range(60):
        for epoch in (1, 2):
            right = truth_of(number, epoch)
            said = {name: "CI"[int(right != (rng.random() < 0.9))] for name in ("a", "b")}
            samples.append(sample(number, epoch, **said))
    return write(tmp_path / "log.json", log(samples))


def test_epochs_whose_answers_differ_in_their_truth_are_warned_of_unless_tasks_are_named(tmp_path):
    path = epochs(tmp_path, lambda number, epoch: (number + epoch) % 2 == 0)
    with pytest.warns(AnnotationWarning, match=r"two scorers agree in \d+% .*one epoch's answer.*tasks='epoch'"):
        cp.read(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cp.read(path, tasks="epoch")
        cp.read(path, tasks="sample")
        cp.read(epochs(tmp_path, lambda number, epoch: number % 2 == 0))


def test_other_files_of_a_folder_are_counted_and_evaluations_too(tmp_path, capsys):
    for name in ("sums", "products"):
        write(tmp_path / f"{name}.json", log([sample(1, a="C"), sample(2, a="I")], eval={"task": name, "model": "m"}))
    write(tmp_path / "notes.json", {})
    shutil.copytree(LOGS / "harness", tmp_path / "harness")
    cp.read(tmp_path, question="verdict")
    said = capsys.readouterr().err
    assert "1 other file left out" in said
    assert "in 3 evaluations" in said


def test_what_is_said_of_logs_is_of_logs_alone(tmp_path):
    (tmp_path / "a.csv").write_text("task,worker,label\n1,a,x\n1,b,y\n")
    for option in ({"tasks": "epoch"}, {"workers": "model"}):
        with pytest.raises(AnnotationError, match=r"of logs.*a\.csv"):
            cp.read(tmp_path / "a.csv", **option)


def test_numbers_are_letters_where_other_scorers_give_letters(tmp_path):
    path = write(tmp_path / "a.json", log([sample(1, a="C", b=1), sample(2, a="I", b=0.0), sample(3, a="I", b=0.5)]))
    annotations = cp.read(path)
    assert labels(annotations)[3, "b"] == ["P"]
    assert labels(annotations)[1, "b"] == ["C"]
    assert list(annotations.classes) == ["I", "P", "C"]


def test_fractions_are_refused_with_the_choice_to_bin(tmp_path):
    path = write(tmp_path / "a.json", log([sample(1, a=0.3), sample(2, a=0.7)]))
    with pytest.raises(AnnotationError, match=r"a\.json, sample 1, epoch 1.*0\.3 is a fraction.*bin"):
        cp.read(path)
    binned = cp.read(path, merge={"0..0.5": "low", "0.5..1": "high"}, ordered=["low", "high"])
    assert labels(binned) == {(1, "a"): ["low"], (2, "a"): ["high"]}


def test_an_answer_that_a_retried_log_has_again_is_read_once(tmp_path, capsys):
    again = [sample(i, a="CI"[i]) | {"uuid": str(i)} for i in range(2)]
    write(tmp_path / "first.json", log(again, status="error"))
    write(tmp_path / "second.json", log([*again, sample(2, a="C") | {"uuid": "2"}]))
    assert cp.read(tmp_path).n_annotations == 3
    assert "2 scores again in another log left out" in capsys.readouterr().err


def test_samples_of_two_evaluations_are_other_tasks(tmp_path):
    for name in ("sums", "products"):
        write(tmp_path / f"{name}.json", log([sample(1, a="C"), sample(2, a="I")], eval={"task": name, "model": "m"}))
    assert set(cp.read(tmp_path).tasks) == {f"{name}: {i}" for name in ("sums", "products") for i in (1, 2)}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (log([sample(1, a="C")], version=3), r"log\.json.*version 3.*inspect log convert"),
        (log([]), r"log\.json.*no score.*inspect score"),
        (log([{"id": 1, "epoch": 1, "error": {}}], status="error"), r"status 'error'.*1 sample with an error left out"),
        (log({"id": 1}), r"log\.json: samples is a dict; a list"),
        (log([{"epoch": 1}]), r"log\.json, samples\[0\].*id"),
        (log([{"id": 1, "epoch": 1, "scores": ["C"]}]), r"log\.json, samples\[0\]: scores"),
        (log([sample(1, a="C")], eval={"model": "m"}), r"log\.json: eval\.task"),
    ],
)
def test_a_log_that_cannot_be_used_is_refused_by_its_place(tmp_path, content, message):
    with pytest.raises(AnnotationError, match=message):
        cp.read(write(tmp_path / "log.json", content))


def test_a_broken_line_of_a_harness_log_is_named(tmp_path):
    path = tmp_path / "samples_x_2026-11-25T08-00-00.0.jsonl"
    path.write_text('{"doc_id": 0, "metrics": ["acc"], "filter": "none", "acc": 1.0}\n{"doc_id": \n')
    with pytest.raises(AnnotationError, match=r"jsonl, line 2: it is no JSON.*remove the line"):
        cp.read(path)
    path.write_text('{"doc_id": 0, "acc": 1.0}\n')
    with pytest.raises(AnnotationError, match=r"jsonl, line 1: .*metrics, filter.*0\.4\.13"):
        cp.read(path)


def packed(path, members, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, json.dumps(content))
    return path


def test_a_deflated_log_is_read_and_no_name_in_it_is_a_path(tmp_path):
    header = log(None)
    folder = tmp_path / "logs"
    folder.mkdir()
    members = {"header.json": header, "samples/1_epoch_1.json": sample(1, a="C")}
    members |= {"samples/2_epoch_1.json": sample(2, a="I"), "samples/../../out.json": {}, "/tmp/out.json": {}}
    annotations = cp.read(packed(folder / "a.eval", members))
    assert list(annotations.tasks) == [1, 2]
    assert [file.name for file in tmp_path.rglob("*")] == ["logs", "a.eval"]


def test_a_file_that_unpacks_to_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(inspect_logs, "LARGEST_SAMPLE", 100)
    with pytest.raises(AnnotationError, match=r"two\.eval, .*json: unpacked it has more than 100 bytes"):
        cp.read(LOGS / "inspect" / "two.eval")


def test_a_damaged_or_unfinished_eval_file_is_refused(tmp_path):
    whole = (LOGS / "inspect" / "two.eval").read_bytes()
    path = tmp_path / "a.eval"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(AnnotationError, match=r"a\.eval is no \.eval file"):
        cp.read(path)
    with zipfile.ZipFile(LOGS / "inspect" / "two.eval") as archive:
        at = archive.getinfo("header.json").header_offset + 60
    path.write_bytes(whole[:at] + bytes(40) + whole[at + 40 :])
    with pytest.raises(AnnotationError, match=r"a\.eval, .*: it cannot be unpacked"):
        cp.read(path)
    with pytest.raises(AnnotationError, match=r"no header\.json.*eval-retry"):
        cp.read(packed(path, {"samples/1_epoch_1.json": sample(1, a="C")}))
