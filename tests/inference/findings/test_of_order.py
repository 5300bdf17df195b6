"""The order of tasks: labels that are shifted, and a class that is there for some of them."""

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl.benchmarks.support.crowd_shapes import HEALTHY, accuracies, added_class, drawn
from crowdppl.data.some_tasks import some_tasks
from crowdppl.inference.findings import of_order
from crowdppl.inference.findings.of_order import classes_of_a_part, stretch_of_little


def crowd(seed, tasks=500):
    """Four of twelve workers a task, who are right in .65 to .9."""
    rng = np.random.default_rng(seed)
    truth, skill = rng.integers(0, 4, tasks), rng.uniform(0.65, 0.9, 12)
    rows = [
        (i, j, "abcd"[truth[i] if rng.random() < skill[j] else rng.integers(4)])
        for i in range(tasks)
        for j in rng.choice(12, 4, replace=False)
    ]
    return pd.DataFrame(rows, columns=["task", "worker", "label"])


def shifted(frame, first, last, by):
    """The crowd whose labels of the tasks between two places are a worker's others there, so many tasks further on."""
    for j, own in frame[frame["task"].between(first, last - 1)].groupby("worker"):
        frame.loc[own.index, "label"] = np.roll(own["label"].to_numpy(), by(j))
    return frame


@pytest.mark.parametrize(("first", "last"), [(0, 250), (100, 200), (380, 500)])
@pytest.mark.parametrize("seed", range(3))
def test_the_stretch_is_found_to_a_block_or_two(seed, first, last):
    found = stretch_of_little(cp.Annotations.from_frame(shifted(crowd(seed), first, last, lambda j: j + 1)))
    assert abs(found.first - first) <= 25
    assert abs(found.last + 1 - last) <= 25
    assert found.share == pytest.approx((last - first) / 500, abs=0.06)
    assert found.excess[0] < 0.3 * found.excess[1]


def test_of_a_sample_of_the_tasks_all_those_of_the_stretch_are_counted(monkeypatch):
    annotations = cp.Annotations.from_frame(shifted(crowd(0), 0, 250, lambda j: j + 1))
    monkeypatch.setattr(of_order, "LOOKED_AT", 1_600)
    found = of_order.stretch_of_little(annotations)
    assert found.n_tasks == found.last - found.first + 1
    assert found.first == pytest.approx(0, abs=25)
    assert found.n_tasks == pytest.approx(250, abs=25)


@pytest.mark.parametrize("shape", HEALTHY)
def test_healthy_crowds_have_no_such_stretch(shape):
    for seed in range(3):
        annotations = HEALTHY[shape](np.random.default_rng(seed)).of_classes()
        assert stretch_of_little(annotations) is None


def test_a_fit_names_the_tasks_and_is_trusted_with_care():
    frame = shifted(crowd(0), 0, 250, lambda j: 1)
    with pytest.warns(cp.CrowdWarning, match=r"from 0 to 2\d\d, \d+ tasks that follow each other"):
        fit = cp.fit("dawid_skene", frame, progress=False)
    assert fit.verdict.trust == "with care"
    (finding,) = [one for one in fit.findings if one.code == "stretch_apart"]
    assert finding.values["n_tasks"] == pytest.approx(250, abs=25)


def shuffled(annotations, seed, **columns):
    """The same rows in another order, with more columns."""
    frame = annotations.to_frame().drop(columns="gold", errors="ignore").assign(**columns)
    return frame.sample(frac=1, random_state=seed)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("since", [True, False])
def test_a_class_is_missing_before_it_was_added_or_after_it_was_taken_away(seed, since):
    annotations = added_class(np.random.default_rng(seed)).without_gold()
    if not since:
        annotations = some_tasks(annotations, np.arange(300)[::-1])
    (found,) = classes_of_a_part(annotations)
    assert (found.k, found.since) == (2, since)
    assert found.n_tasks == pytest.approx(150, abs=5)
    assert found.task == (found.n_tasks if since else 299 - found.n_tasks)


def test_where_times_are_known_tasks_are_in_their_order():
    annotations = added_class(np.random.default_rng(0))
    rows = shuffled(annotations, 0, when=annotations.task + 0.5)
    assert not classes_of_a_part(cp.Annotations.from_frame(rows.drop(columns="when"), ordered=False))
    (found,) = classes_of_a_part(cp.Annotations.from_frame(rows, when="when", ordered=False))
    assert found.task == found.n_tasks


@pytest.mark.parametrize("shape", HEALTHY)
def test_in_healthy_crowds_no_class_is_missing_however_tasks_are_sorted(shape):
    for seed in range(3):
        annotations = HEALTHY[shape](np.random.default_rng(seed)).of_classes()
        by_truth = some_tasks(annotations, np.argsort(annotations.gold, kind="stable"))
        votes = annotations.votes()
        by_agreement = some_tasks(annotations, np.argsort(-votes.max(1) / votes.sum(1), kind="stable"))
        for tasks in (annotations, by_truth, by_agreement):
            assert not classes_of_a_part(tasks)


@pytest.mark.parametrize("by", ["task", "question"])
def test_a_class_of_one_question_is_not_missing_from_another(by):
    first, second = (HEALTHY["plain"](np.random.default_rng(seed)).to_frame() for seed in range(2))
    first["label"] = first["label"].replace("2", "1")
    rows = pd.concat([first.assign(question="first"), second.assign(question="second")])
    both = rows[["task", "worker", "label", "question"]].sort_values(by, kind="stable")
    assert not classes_of_a_part(cp.Annotations.from_frame(both, question="question", ordered=False))


@pytest.mark.parametrize("seed", range(5))
def test_no_class_is_missing_from_a_file_that_is_sorted_by_label_nor_from_a_batch_of_other_classes(seed):
    annotations = HEALTHY["plain"](np.random.default_rng(seed)).without_gold()
    by_label = annotations.to_frame().sort_values("label", kind="stable")
    assert not classes_of_a_part(cp.Annotations.from_frame(by_label, ordered=False))
    batches = []
    for batch, classes in enumerate((range(3), range(4))):
        rng = np.random.default_rng(10 * seed + batch)
        _, label, given = drawn(rng, accuracies(rng, 20), n_tasks=150, n_classes=len(classes))
        task, worker = np.nonzero(given)
        rows = {"task": task + 150 * batch, "worker": worker + 20 * batch, "label": label[task, worker]}
        batches.append(pd.DataFrame(rows))
    assert not classes_of_a_part(cp.Annotations.from_frame(pd.concat(batches), ordered=False))


@pytest.mark.parametrize("seed", range(5))
def test_ordered_classes_whose_tasks_are_sorted_by_what_they_are_worth_are_there_all_along(seed):
    rng = np.random.default_rng(seed)
    worth = np.sort(rng.normal(size=300))
    score = np.clip(np.rint(worth[:, None] + rng.normal(scale=0.5, size=(300, 15)) + 2), 0, 4).astype(int)
    task, worker = np.nonzero(rng.random(score.shape).argsort(1) < 5)
    rows = pd.DataFrame({"task": task, "worker": worker, "label": score[task, worker]})
    assert not classes_of_a_part(cp.Annotations.from_frame(rows, ordered=True))


def test_a_fit_names_the_class_and_is_trusted_with_care():
    with pytest.warns(cp.CrowdWarning, match=r"nobody gives '2' before task 15\d, on 15\d tasks \(50%\)"):
        fit = cp.fit("dawid_skene", added_class(np.random.default_rng(0)).without_gold(), progress=False)
    assert fit.verdict.trust == "with care"
    assert "class_of_a_part" in [one.code for one in fit.findings]
