"""How much workers err together, against correlations that are known."""

import numpy as np
import pandas as pd
import pytest

import crowdppl as cp
from crowdppl import AnnotationError
from crowdppl.inference.fitted import error_correlation as module


def crowd(share_misled, seed=0, n_tasks=3000, n_workers=8):
    """Workers who are wrong together where a task misleads them, and else each for themselves."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n_tasks)
    misled = rng.random(n_tasks) < share_misled
    wrong = np.where(misled[:, None], rng.random((n_tasks, n_workers)) < 0.7, rng.random((n_tasks, n_workers)) < 0.2)
    annotations = cp.Annotations.from_matrix(np.where(wrong, 1 - truth[:, None], truth[:, None]))
    return annotations, truth, wrong


def gold_of(annotations, truth):
    return dict(zip(annotations.tasks, truth.tolist(), strict=True))


def test_with_gold_it_is_the_mean_of_the_workers_correlation_matrix_within_the_classes():
    annotations, truth, wrong = crowd(0.15)
    found = cp.error_correlation(annotations.with_gold(gold_of(annotations, truth)))
    right = np.zeros(wrong.shape)
    for k in (0, 1):
        of_class = truth == k
        right[of_class] = (wrong[of_class].sum(0) + wrong.mean(0)) / (of_class.sum() + 1)  # with one annotation more
    residual = (wrong - right) / np.sqrt(((wrong - right) ** 2).mean(0))
    for k in (0, 1):
        residual[truth == k] -= residual[truth == k].sum() / (8 * (truth == k).sum() + 1)
    matrix = residual.T @ residual / len(truth)
    np.testing.assert_allclose(matrix, np.corrcoef(wrong.T), atol=0.002)  # both classes are as hard
    others = ~np.eye(8, dtype=bool)
    assert found.correlation == pytest.approx(matrix[others].mean(), abs=1e-6)
    np.testing.assert_allclose(found.workers, [row[mask].mean() for row, mask in zip(matrix, others, strict=True)])
    assert found.n_effective == pytest.approx(8 / (1 + 7 * matrix[others].mean()), rel=1e-6)


def test_workers_who_find_one_class_harder_are_independent_given_the_class():
    """Compared over all classes their errors correlate by 0.19, and 20 workers would count like 4.4."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 1000)
    right = rng.random((1000, 20)) < np.where(truth == 1, 0.95, 0.6)[:, None]
    annotations = cp.Annotations.from_matrix(np.where(right, truth[:, None], 1 - truth[:, None]))
    found = cp.error_correlation(annotations, gold_of(annotations, truth))
    assert found.n_effective > 17
    assert cp.error_correlation(cp.fit("dawid_skene", annotations, progress=False)).n_effective > 17


def test_workers_of_three_annotations_each_are_independent_given_the_class():
    """Their own shares by class say little: 2,846 of them counted like 12 (9–15)."""
    rng = np.random.default_rng(2)
    task, truth = np.repeat(np.arange(3000), 3), rng.integers(0, 2, 3000)
    worker = np.argpartition(rng.random((3000, 3000)), 3, axis=1)[:, :3].ravel()
    right = rng.random(9000) < np.where(truth == 1, 0.95, 0.6)[task]
    label = np.where(right, truth[task], 1 - truth[task])
    annotations = cp.Annotations.from_frame(pd.DataFrame({"task": task, "worker": worker, "label": label}))
    found = cp.error_correlation(annotations, dict(enumerate(truth.tolist())))
    assert abs(found.correlation) < 0.02
    assert found.interval[1] > 1000


def test_intervals_of_random_tasks_hold_what_all_tasks_show_about_as_often_as_they_say():
    annotations, truth, _ = crowd(0.15)
    matrix = np.asarray(annotations.label).reshape(3000, 8)
    everything = cp.error_correlation(annotations, gold_of(annotations, truth))
    of_panel, of_workers = [], []
    for seed in range(40):
        seen = np.random.default_rng(seed).choice(3000, 150, replace=False)
        some = cp.Annotations.from_matrix(matrix[seen])
        found = cp.error_correlation(some, gold_of(some, truth[seen]))
        (low, high), each = found.interval, found.by_worker
        assert low < found.n_effective < high
        assert (each["error_correlation_low"] < each["error_correlation_high"]).all()
        of_panel.append(low <= everything.n_effective <= high)
        of_workers.append(everything.workers.between(each["error_correlation_low"], each["error_correlation_high"]))
    assert np.mean(of_panel) >= 0.75
    assert 0.8 <= np.mean(of_workers) <= 0.96


def test_independent_workers_count_in_full():
    annotations, truth, _ = crowd(0.0)
    found = cp.error_correlation(annotations, gold_of(annotations, truth))
    assert found.n_effective == pytest.approx(8, rel=0.05)


@pytest.mark.slow
def test_a_story_with_shared_errors_is_nearer_without_gold_to_what_gold_says():
    annotations, truth, _ = crowd(0.15)
    by_gold = cp.error_correlation(annotations, gold_of(annotations, truth)).n_effective
    shared = cp.fit("dawid_skene", annotations, shared_error=True, progress=False)
    plain = cp.fit("dawid_skene", annotations, progress=False)
    found = cp.error_correlation(shared)
    assert abs(found.n_effective - by_gold) < abs(cp.error_correlation(plain).n_effective - by_gold)
    assert found.interval[0] <= found.n_effective <= found.interval[1]


def test_each_worker_counts_a_part_and_all_of_them_like_the_panel():
    annotations, truth, _ = crowd(0.15)
    found = cp.error_correlation(annotations, gold_of(annotations, truth))
    pd.testing.assert_series_equal(found.by_worker["error_correlation"], found.workers)
    np.testing.assert_allclose(found.by_worker["n_effective"], 1 / (1 + 7 * found.workers))
    assert found.by_worker["n_effective"].sum() == pytest.approx(found.n_effective, rel=0.02)
    assert found.sees_shared


@pytest.mark.slow
def test_workers_and_summary_say_like_how_many_the_crowd_counts_and_whether_the_story_sees_it():
    annotations, _, _ = crowd(0.15, n_tasks=500)
    shared = cp.fit("dawid_skene", annotations, shared_error=True, progress=False)
    plain = cp.fit("dawid_skene", annotations, progress=False)
    assert "independent ones" in shared.summary().facts["independence"]
    assert "blind" not in shared.summary().facts["independence"]
    assert "nearly blind to errors that they share" in plain.summary().facts["independence"]
    for name in ("error_correlation", "n_effective"):
        low, mid, high = (shared.workers[f"{name}{end}"] for end in ("_low", "", "_high"))
        assert ((low <= mid) & (mid <= high)).all()
        assert mid.to_numpy() == pytest.approx(cp.error_correlation(shared).by_worker[name].to_numpy())


def test_a_sentence_says_what_the_labels_suppose_unless_gold_labels_tell():
    annotations, _ = cp.simulate("one_coin", n_tasks=60, n_workers=6, annotations_per_task=4, seed=0)
    plain = cp.fit("dawid_skene", annotations.without_gold(), progress=False)
    shared = cp.fit("dawid_skene", annotations.without_gold(), shared_error=True, progress=False)
    assert "nearly blind to errors that they share" in str(cp.error_correlation(plain))
    assert "the labels allow for errors of two workers" in str(cp.error_correlation(shared))
    for known in (cp.error_correlation(annotations), cp.error_correlation(shared, annotations.gold)):
        assert str(known).endswith(")")
        assert known.is_known


def test_workers_who_never_meet_have_no_correlation():
    frame = pd.DataFrame({"task": [0, 1, 2, 3], "worker": ["a", "b", "a", "b"], "label": [0, 1, 1, 0]})
    fit = cp.fit("one_coin", cp.Annotations.from_frame(frame), progress=False)
    assert fit.workers["n_effective"].isna().all()
    assert "independence" not in fit.summary().facts


def test_what_cannot_be_told_is_refused():
    frame = pd.DataFrame({"task": [0, 1, 2], "worker": ["a", "b", "a"], "label": [0, 1, 1]})
    annotations = cp.Annotations.from_frame(frame)
    with pytest.raises(AnnotationError, match="no gold"):
        cp.error_correlation(annotations)
    with pytest.raises(AnnotationError, match="two workers"):
        cp.error_correlation(annotations, {0: 1, 1: 1, 2: 1})
    with pytest.raises(TypeError, match=r"a fit by cp\.fit, .* got a str"):
        cp.error_correlation("x")


@pytest.mark.parametrize("known", [True, False])
def test_tasks_that_look_alike_count_as_they_do_one_by_one(monkeypatch, known):
    annotations, truth, _ = crowd(0.15, n_workers=4)
    source = annotations.with_gold(gold_of(annotations, truth))
    if not known:
        source = cp.fit("one_coin", annotations, progress=False)
    sizes, of_one = [], module._correlations
    monkeypatch.setattr(
        module, "_correlations", lambda pairs, *rest: sizes.append(len(pairs.task)) or of_one(pairs, *rest)
    )
    once = cp.error_correlation(source)
    monkeypatch.setattr(module, "SAVED", np.inf)
    monkeypatch.setattr(module, "_known", {})
    one_by_one = cp.error_correlation(source)
    assert min(sizes) < annotations.n_rows / 50 < max(sizes) == annotations.n_rows
    pd.testing.assert_frame_equal(once.by_worker, one_by_one.by_worker)
    np.testing.assert_allclose(once.interval, one_by_one.interval)


def test_votes_and_misled_tasks_that_an_average_allows_for_are_no_errors_that_workers_share():
    annotations, _, _ = crowd(0.0, n_tasks=400)
    fit = cp.fit("auto", annotations, stories=["dawid_skene", "one_coin"], votes=0.5, misled=0.2, progress=False)
    found, without = cp.error_correlation(fit), cp.error_correlation(fit.fits["dawid_skene"])
    assert found.correlation == pytest.approx(without.correlation, abs=0.02)
    assert "shared_error=True" not in str(found)
    assert "shared_error=True" in str(without)
