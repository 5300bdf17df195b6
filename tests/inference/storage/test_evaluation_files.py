"""Labels as JSON Lines, and as one more scorer in inspect_ai's logs: inspect_ai 0.3.285 read such copies."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl import AnnotationError, StorageError

LOGS = Path(__file__).parents[2] / "data" / "exports" / "logs"


@pytest.fixture(scope="module")
def fit():
    return cp.fit("majority_vote", cp.read(LOGS / "inspect", tell=False))


def samples(path):
    return {(each["id"], each["epoch"]): each["scores"] for each in json.loads(path.read_text())["samples"]}


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_jsonl_has_a_line_for_each_task_with_the_expected_score_of_ordered_classes(fit, tmp_path):
    found = lines(fit.write_labels(tmp_path / "labels.jsonl", to="jsonl"))
    assert [each["task"] for each in found] == list(fit.annotations.tasks)
    assert list(found[0]["probabilities"]) == ["I", "P", "C"]
    np.testing.assert_allclose([list(each["probabilities"].values()) for each in found], fit.posterior, atol=1e-6)
    np.testing.assert_allclose([each["expected"] for each in found], fit.expected["expected"], atol=1e-6)
    assert [each["label"] for each in found] == fit.labels["label"].tolist()
    table = pd.read_csv(fit.write_labels(tmp_path / "labels.csv", to="csv"), index_col=0)
    for name in ("expected", "expected_low", "expected_high"):
        np.testing.assert_allclose(table[name], fit.expected[name], atol=1e-6)
    assert table["median"].tolist() == fit.expected["median"].tolist()


def test_jsonl_names_the_question_where_there_are_several_and_no_expected_score_without_an_order(tmp_path):
    rubric = cp.read(LOGS / "rubric", question=["style", "facts"], tell=False)
    found = lines(cp.fit("majority_vote", rubric).write_labels(tmp_path / "labels.jsonl", to="jsonl"))
    assert [(each["task"], each["question"]) for each in found[:2]] == [("essay-0", "style"), ("essay-0", "facts")]
    nominal = cp.fit("majority_vote", cp.read(LOGS / "harness", question=None, tell=False))
    assert all("expected" not in each for each in lines(nominal.write_labels(tmp_path / "n.jsonl", to="jsonl")))


def test_inspect_logs_have_one_more_scorer_on_the_samples_that_were_scored(fit, tmp_path):
    folder = fit.write_labels(tmp_path / "scored", to="inspect", source=LOGS / "inspect")
    assert sorted(file.name for file in folder.iterdir()) == ["one.json", "two.json"]
    one = samples(folder / "one.json")
    labels = fit.labels
    assert {of: scores["crowdppl"]["value"] for of, scores in one.items()} == {
        (sample, epoch): labels.loc[f"{sample} @ mock/a", "label"] for sample, epoch in one
    }
    assert one[2, 1]["match"] == samples(LOGS / "inspect" / "one.json")[2, 1]["match"]
    score = samples(folder / "two.json")[3, 1]["crowdppl"]
    assert score["metadata"]["probability"] == pytest.approx(labels.loc["3 @ mock/b", "probability"], abs=1e-6)
    header = json.loads((folder / "two.json").read_text())
    assert [each["name"] for each in header["eval"]["scorers"]] == ["match", "model_graded_qa", "crowdppl"]
    assert header["status"] == "cancelled"


def test_the_labels_are_no_annotations_where_the_copies_are_read_again(fit, tmp_path, capsys):
    folder = fit.write_labels(tmp_path / "scored", to="inspect", source=LOGS / "inspect")
    again = cp.read(folder)
    assert set(again.workers) == set(fit.annotations.workers)
    assert "9 scores that crowdppl wrote left out" in capsys.readouterr().err
    folder = fit.write_labels(tmp_path / "twice", to="inspect", source=folder)
    assert [each["name"] for each in json.loads((folder / "one.json").read_text())["eval"]["scorers"]].count(
        "crowdppl"
    ) == 1


@pytest.mark.parametrize("tasks", ["sample", "answer", "epoch"])
def test_samples_are_found_whatever_a_task_is(tasks, tmp_path):
    annotations = cp.read(LOGS / "inspect" / "one.json", tasks=tasks, tell=False)
    fit = cp.fit("majority_vote", annotations)
    folder = fit.write_labels(tmp_path / "scored", to="inspect", source=LOGS / "inspect" / "one.json")
    values = [scores["crowdppl"]["value"] for scores in samples(folder / "one.json").values()]
    assert len(values) == 6
    assert len({len(values), annotations.n_tasks}) == (1 if tasks == "epoch" else 2)


def test_several_questions_are_a_dictionary_of_values(tmp_path):
    fit = cp.fit("majority_vote", cp.read(LOGS / "rubric", question=["style", "facts"], tell=False))
    folder = fit.write_labels(tmp_path / "scored", to="inspect", source=LOGS / "rubric")
    assert samples(folder / "rubric.json")["essay-1", 1]["crowdppl"]["value"] == {"style": 3, "facts": 4}


def test_what_cannot_be_written_says_why_and_leaves_nothing(fit, tmp_path):
    out = tmp_path / "scored"
    with pytest.raises(AnnotationError, match="give source=, the logs"):
        fit.write_labels(out, to="inspect")
    with pytest.raises(AnnotationError, match="has no log of inspect_ai"):
        fit.write_labels(out, to="inspect", source=LOGS / "harness")
    with pytest.raises(AnnotationError, match=r"no sample in it .*such as '1 @ mock/a'"):
        fit.write_labels(out, to="inspect", source=LOGS / "rubric")
    with pytest.raises(AnnotationError, match=r"to='inspect' writes a folder"):
        fit.write_labels(tmp_path / "a.json", to="inspect", source=LOGS / "inspect")
    assert list(tmp_path.iterdir()) == []
    out.mkdir()
    (out / "mine").write_text("")
    with pytest.raises(StorageError, match=r"scored.*overwrite"):
        fit.write_labels(out, to="inspect", source=LOGS / "inspect")
