"""Dictionaries of vote counts by class in JSON are counts, and no workers called as the classes."""

import json

import pytest

import crowdppl as cp

VOTES = [{"toxic": 3, "ok": 2}, {"toxic": 0, "ok": 5}, {"toxic": 4, "ok": 1}, {"ok": 5}, {"toxic": 1, "ok": 4}]


def records(field, dictionaries, **beside):
    return [{"id": f"t{number}", field: each, **beside} for number, each in enumerate(dictionaries)]


@pytest.mark.parametrize("field", ["votes", "label_counts", "annotation_count", "vote_counts"])
def test_votes_by_class_are_counted_and_no_class_is_a_worker(field, tmp_path):
    path = tmp_path / "votes.jsonl"
    path.write_text("\n".join(map(json.dumps, records(field, VOTES))), encoding="utf-8")
    annotations = cp.read(path, tell=False)
    assert not annotations.named
    assert set(annotations.classes) == {"toxic", "ok"}
    assert annotations.n_annotations == 25
    place = list(annotations.classes).index("toxic")
    assert annotations.votes()[:, place].tolist() == [3, 0, 4, 0, 1]


def test_a_vote_for_one_class_in_each_record_is_no_contrary_pair_of_workers():
    one_hot = [{"toxic": number % 3 == 0, "ok": number % 3 != 0} for number in range(9)]
    annotations = cp.read(records("votes", [{key: int(is_so) for key, is_so in each.items()} for each in one_hot]))
    assert not annotations.named
    assert annotations.n_annotations == 9


@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_numbers_that_may_be_either_are_refused_with_both_readings_which_are_then_taken(field):
    given = records(field, VOTES)
    with pytest.raises(cp.AnnotationError, match=r"columns=.classes.*columns=.workers") as error:
        cp.read(given)
    assert "'toxic'" in str(error.value)
    assert "same in each row" in str(error.value)
    assert cp.read(given, columns="classes", tell=False).n_annotations == 25
    workers = cp.read(given, columns="workers", tell=False)
    assert set(workers.workers) == {"toxic", "ok"}
    assert workers.n_annotations == 9


def test_votes_whose_numbers_do_not_tell_are_asked_about():
    given = records("votes", [{"a": 2, "b": 2}, {"a": 3, "b": 3}, {"a": 1, "b": 1}, {"a": 3, "b": 2}])
    with pytest.raises(cp.AnnotationError, match="columns='classes'"):
        cp.read(given)


@pytest.mark.parametrize(
    ("field", "dictionaries"),
    [
        ("scores", [{"gpt": 3, "claude": 2}, {"gpt": 1, "claude": 4}, {"gpt": 2, "claude": 3}]),
        ("votes", [{"ann": 1, "bob": 1}, {"ann": 0, "bob": 0}, {"ann": 1, "bob": 0}]),
        ("votes", [{"annotator1": 3, "annotator2": 2}, {"annotator1": 1, "annotator2": 4}]),
    ],
)
def test_scores_and_labels_by_worker_stay_so(field, dictionaries):
    annotations = cp.read(records(field, dictionaries), tell=False)
    assert set(annotations.workers) == set(dictionaries[0])


def test_results_are_counts_or_labels_by_worker_as_is_said():
    given = records("results", VOTES[:3])
    with pytest.raises(cp.AnnotationError, match=r"keys .toxic., .ok.*columns=.classes"):
        cp.read(given)
    counted = cp.read(given, columns="classes", tell=False)
    assert (counted.n_annotations, set(counted.classes)) == (15, {"toxic", "ok"})
    assert set(cp.read(given, columns="workers", tell=False).workers) == {"toxic", "ok"}
    verdicts = [{"gpt": "a", "llama": "b"}, {"gpt": "b", "llama": "b"}]
    assert set(cp.read(records("responses", verdicts), tell=False).workers) == {"gpt", "llama"}


def test_a_dictionary_of_counts_by_task_is_asked_about():
    by_task = {f"t{number}": votes for number, votes in enumerate(VOTES)}
    with pytest.raises(cp.AnnotationError, match=r"keys .toxic., .ok.*columns=.classes"):
        cp.read(by_task)
    assert cp.read(by_task, columns="classes", tell=False).n_annotations == 25
    assert set(cp.read(by_task, columns="workers", tell=False).workers) == {"toxic", "ok"}


def test_gold_labels_beside_counts_are_taken():
    given = [each | {"gold": "ok"} for each in records("label_counts", VOTES)]
    annotations = cp.read(given, tell=False)
    assert {annotations.classes[int(label)] for label in annotations.gold} == {"ok"}
