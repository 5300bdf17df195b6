"""Workers who saw what others gave: who follow the first, or agree more than one who is always right could."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import crowdppl as cp
from crowdppl.benchmarks.support.crowd_shapes import HEALTHY, accuracies, drawn, followed, majority_copied
from crowdppl.inference.findings import of_seen
from crowdppl.inference.findings.of_seen import followed_first, seeing


def shuffled(annotations, seed, **columns):
    """The same rows in another order, with more columns."""
    frame = annotations.to_frame().drop(columns="gold", errors="ignore").assign(**columns)
    return frame.sample(frac=1, random_state=seed)


@pytest.mark.parametrize("seed", range(3))
def test_the_part_of_later_annotations_that_follow_the_first_is_told(seed):
    annotations = followed(0.6)(np.random.default_rng(seed)).without_gold()
    found = followed_first(annotations)
    assert found.z > of_seen.FOLLOWING
    assert found.share == pytest.approx(0.6, abs=0.25)
    other = followed_first(cp.Annotations.from_frame(shuffled(annotations, seed), classes=[0, 1]))
    assert other.z < of_seen.FOLLOWING
    when = np.arange(annotations.n_rows)
    timed = cp.Annotations.from_frame(shuffled(annotations, seed, when=when), when="when", classes=[0, 1])
    assert followed_first(timed).share == pytest.approx(found.share)


def test_the_part_that_follows_is_right_on_average():
    shares = [followed_first(followed(0.4)(np.random.default_rng(seed))).share for seed in range(20)]
    assert np.mean(shares) == pytest.approx(0.4, abs=3 * np.std(shares) / np.sqrt(19))


def by_rank(rng, accuracy, of_rank):
    """400 tasks, the annotation of each rank by one of the workers who give that."""
    truth, label, _ = drawn(rng, accuracy, n_tasks=400, n_classes=2)
    worker = np.stack([rng.choice(workers, 400) for workers in of_rank], 1)
    said = np.take_along_axis(label, worker, 1)
    frame = pd.DataFrame({"task": np.repeat(truth * 0 + np.arange(400), len(of_rank)), "worker": worker.ravel()})
    return cp.Annotations.from_frame(frame.assign(label=said.ravel()), classes=[0, 1])


@pytest.mark.parametrize("seed", range(3))
def test_workers_who_are_always_the_first_may_be_better_ones(seed):
    rng = np.random.default_rng(seed)
    one_each = by_rank(rng, np.array([0.95, 0.6, 0.6, 0.6, 0.6]), [[0], [1], [2], [3], [4]])
    accuracy = np.append(accuracies(rng, 20, 0.95, 0.02), accuracies(rng, 60, 0.6, 0.02))
    experts = by_rank(rng, accuracy, [np.arange(20), *np.arange(20, 80).reshape(4, 15)])
    for annotations in (one_each, experts):
        found = followed_first(annotations)
        assert found.sides[0] > found.sides[1]
        assert found.z < of_seen.FOLLOWING


@pytest.mark.parametrize("shape", HEALTHY)
def test_in_healthy_crowds_nobody_saw_what_others_gave(shape):
    for seed in range(5):
        annotations = HEALTHY[shape](np.random.default_rng(seed)).of_classes()
        found = followed_first(annotations)
        assert found is None or found.z < of_seen.FOLLOWING
        assert seeing(annotations) is None


@pytest.mark.parametrize("seed", range(3))
def test_those_who_give_what_most_of_the_others_gave_are_told(seed):
    annotations = majority_copied(np.random.default_rng(seed))
    found = seeing(annotations)
    assert {annotations.workers[j] for j in found.workers} == set(range(8))
    assert found.with_others[0] > found.with_others[1]


def judged(rng, *, sees, n_classes=2, disputed=False):
    """Three of twelve workers a task, and one more who is always right, or gives what most of the three gave."""
    truth, label, given = drawn(rng, accuracies(rng, 13, 0.75), n_tasks=600, n_classes=n_classes, per_task=13)
    given[:, :12] = rng.random((600, 12)).argsort(1) < 3
    votes = np.stack([((label == k) & given)[:, :12].sum(1) for k in range(n_classes)], 1)
    label[:, 12] = votes.argmax(1) if sees else truth
    given[:, 12] = (votes.max(1) < 3) | (not disputed)
    task, worker = np.nonzero(given)
    frame = pd.DataFrame({"task": task, "worker": worker, "label": label[task, worker]})
    return cp.Annotations.from_frame(frame, classes=range(n_classes), ordered=False)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_vote_of_most_among_the_workers_is_told_from_one_who_is_always_right(n_classes):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        annotations = judged(rng, sees=True, n_classes=n_classes)
        assert [annotations.workers[j] for j in seeing(annotations).workers] == [12]
        assert seeing(judged(rng, sees=False, n_classes=n_classes)) is None
        assert seeing(judged(rng, sees=False, n_classes=n_classes, disputed=True)) is None


def test_a_worker_who_annotates_a_task_again_follows_nobody():
    for seed in range(5):
        frame = HEALTHY["plain, two classes"](np.random.default_rng(seed)).without_gold().to_frame()
        again = frame.drop_duplicates("task")
        found = followed_first(cp.Annotations.from_frame(pd.concat([frame, again]), ordered=False))
        assert found.z < of_seen.FOLLOWING


@pytest.mark.parametrize("accuracy", [(0.99, 0.95, 0.55, 0.55), (0.99, 0.9, 0.7, 0.6, 0.5), (1.0, 1.0, 1.0, 0.6)])
def test_unequal_members_of_a_panel_are_hardly_ever_said_to_have_seen_labels(accuracy):
    said = 0
    for seed in range(40):
        sizes = {"n_tasks": 200, "n_classes": 2, "per_task": len(accuracy)}
        _, label, _ = drawn(np.random.default_rng(seed), np.array(accuracy), **sizes)
        said += seeing(cp.Annotations.from_matrix(label, ordered=False)) is not None
    assert said <= 1


def test_the_agreement_beyond_what_can_be_is_about_none_for_who_is_always_right(monkeypatch):
    monkeypatch.setattr(of_seen, "CLEARLY", -np.inf)
    monkeypatch.setattr(of_seen, "SIZES", 1)
    times = [seeing(judged(np.random.default_rng(seed), sees=False)).times for seed in range(20)]
    assert 0.8 < np.mean(times) < 1 + 3 * np.std(times) / np.sqrt(19)


@pytest.mark.parametrize(
    ("shape", "code", "said"),
    [
        (followed(0.6), "first_followed", r"workers follow the first label of a task, in about \d\d%"),
        (majority_copied, "labels_seen", r" and 4 more saw what others gave: on \d+ tasks each of them agrees"),
    ],
)
def test_a_fit_says_it_and_is_trusted_with_care(shape, code, said):
    with pytest.warns(cp.CrowdWarning, match=said):
        fit = cp.fit("dawid_skene", shape(np.random.default_rng(0)).without_gold(), progress=False)
    assert fit.verdict.trust == "with care"
    assert code in [one.code for one in fit.findings]


@pytest.mark.parametrize(("n_tasks", "n_workers"), [(30, 7), (7, 30)])
def test_the_weights_of_tasks_are_those_of_their_whole_variance(n_tasks, n_workers):
    effects = np.random.default_rng(0).normal(size=(n_tasks, n_workers))
    expected = np.linalg.solve(effects @ effects.T + 0.3 * np.eye(n_tasks), np.ones(n_tasks))
    np.testing.assert_allclose(of_seen._solved(csr_array(effects), 0.3), expected, rtol=1e-6, atol=1e-8)
