"""Divergences of confusion matrices against SciPy's entropies in loops."""

import numpy as np
import pandas as pd
import pytest
from fit_at import fit_at, random_confusions
from scipy.stats import entropy

import crowdppl as cp
from crowdppl import AnnotationError, Annotations
from crowdppl.inference.scores.divergences import (
    confusion_divergences,
    empirical_confusions,
    jensen_shannon,
    worker_divergences,
)


def js(p, q):
    middle = (np.asarray(p) + np.asarray(q)) / 2
    return (entropy(p, middle, base=2) + entropy(q, middle, base=2)) / 2


@pytest.fixture(scope="module")
def crowd():
    rng = np.random.default_rng(2)
    tables, truth = rng.dirichlet(np.ones(3), (5, 3)), rng.integers(0, 3, 80)
    rows = [(i, j, rng.choice(3, p=tables[j, truth[i]])) for i in range(80) for j in rng.permutation(5)[:3]]
    frame, gold = pd.DataFrame(rows, columns=["task", "worker", "label"]), dict(enumerate(truth.tolist()))
    return Annotations.from_frame(frame, workers=range(5), gold=gold), {"confusion": tables}


@pytest.fixture(scope="module")
def em(crowd):
    return fit_at("dawid_skene", crowd[0], random_confusions(crowd[0]))


def test_the_divergence_is_zero_for_equals_one_for_opposites_and_entropies_else():
    p, q = np.random.default_rng(0).dirichlet(np.ones(4), (2, 6))
    np.testing.assert_allclose(jensen_shannon(p, q), [js(a, b) for a, b in zip(p, q, strict=True)])
    np.testing.assert_allclose(jensen_shannon(p, p), 0, atol=1e-12)
    assert jensen_shannon(np.array([1.0, 0]), np.array([0.0, 1])) == pytest.approx(1)


def test_divergences_are_means_over_rows_of_workers_and_of_the_crowds_confusion_matrix():
    rng = np.random.default_rng(1)
    one, two = rng.dirichlet(np.ones(3), (2, 4, 3))
    weights = np.array([1.0, 2, 3, 0])
    found = confusion_divergences(one, two, weights=weights)
    assert found["i_js"] == pytest.approx(np.mean([[js(one[j, k], two[j, k]) for k in range(3)] for j in range(4)]))
    whole = [np.average(t, axis=0, weights=weights) for t in (one, two)]
    assert found["g_js"] == pytest.approx(np.mean([js(whole[0][k], whole[1][k]) for k in range(3)]))
    assert (found["workers"], found["rows"]) == (4, 12)


def test_empirical_confusion_matrices_are_counted_on_gold_tasks(crowd):
    annotations = crowd[0].with_gold({i: int(crowd[0].gold[i]) for i in range(10)})
    tables, whole = empirical_confusions(annotations)
    smoothed, _ = empirical_confusions(annotations, smoothing=3)
    for j in range(5):
        for k in range(3):
            rows = (annotations.worker == j) & (annotations.task < 10) & (annotations.gold[annotations.task] == k)
            counts = np.bincount(annotations.label[rows], minlength=3)
            np.testing.assert_allclose(smoothed[j, k], (counts + 1) / (counts.sum() + 3))
            if counts.sum():
                np.testing.assert_allclose(tables[j, k], counts / counts.sum())
            else:
                assert np.isnan(tables[j, k]).all()
    used = [k for k in range(3) if (annotations.gold[:10] == k).any()]
    pooled = [np.bincount(annotations.label[annotations.gold[annotations.task] == k], minlength=3) for k in used]
    np.testing.assert_allclose(whole[used], [counts / counts.sum() for counts in pooled])


def test_counted_rows_count_as_often():
    one = pd.DataFrame({"task": [0, 0, 1], "worker": ["a", "b", "a"], "label": [0, 1, 1], "n": [3, 1, 2]})
    each = one.loc[one.index.repeat(one["n"])]
    gold = {0: 0, 1: 1}
    counted = empirical_confusions(Annotations.from_frame(one, count="n", gold=gold))
    for a, b in zip(counted, empirical_confusions(Annotations.from_frame(each, gold=gold)), strict=True):
        np.testing.assert_allclose(a, b)


def test_a_fit_is_compared_with_empirical_and_with_given_confusion_matrices(em, crowd):
    tables, whole = empirical_confusions(crowd[0])
    estimated = em.confusion_draws[0, 0].astype(float)
    found, known = confusion_divergences(em), ~np.isnan(tables).any(-1)
    assert found["i_js"] == pytest.approx(jensen_shannon(estimated[known], tables[known]).mean(), abs=1e-5)
    crowd_table = np.average(estimated, axis=0, weights=em.workers["annotations"])
    assert found["g_js"] == pytest.approx(jensen_shannon(crowd_table, whole).mean(), abs=1e-5)
    actual = crowd[1]["confusion"]
    frame = em.confusions().assign(probability=actual.ravel()).sample(frac=1, random_state=0)
    pd.testing.assert_series_equal(confusion_divergences(em, frame), confusion_divergences(em, actual))
    both = confusion_divergences({"em": em, "truth": actual}, actual)
    assert both.loc["truth", "i_js"] == pytest.approx(0, abs=1e-6)
    assert both.loc["em", "i_js"] > 0.001
    by_worker = worker_divergences(em, actual)
    assert by_worker.mean() == pytest.approx(both.loc["em", "i_js"])
    assert list(by_worker.index) == list(crowd[0].workers)


def test_levels_of_another_truth_are_compared_by_the_class_they_lie_in():
    truth = dict(enumerate(["no", "yes"] * 6))
    given = [[level, 3 - level] if i % 3 else [0, 0] for i, level in enumerate([0, 3, 1, 2] * 3)]
    levels = Annotations.from_matrix(given, ordered=range(4), truth_classes=["no", "yes"], gold=truth)
    for mine, of_verdicts in zip(empirical_confusions(levels), empirical_confusions(levels.verdicts()), strict=True):
        np.testing.assert_array_equal(mine, of_verdicts)
    fit = cp.fit("graded_response", levels, max_iterations=5, progress=False)
    assert worker_divergences(fit).between(0, 1).all()
    assert confusion_divergences(fit, fit.confusions())["i_js"] == pytest.approx(0, abs=1e-9)


def test_without_named_workers_there_is_only_the_crowds_divergence(crowd):
    unnamed = Annotations.from_counts(crowd[0].votes(), gold=dict(enumerate(crowd[0].gold.tolist())))
    table = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
    parameters = {"group_confusion": table[None, None], "prevalence": [[0.2, 0.3, 0.5]], "weights": [[1.0]]}
    fit = fit_at("annotator_groups", unnamed, parameters, groups=1)
    found = confusion_divergences(fit)
    assert np.isnan(found["i_js"])
    assert found["g_js"] == pytest.approx(jensen_shannon(table, empirical_confusions(crowd[0])[1]).mean(), abs=1e-6)
    assert found["workers"] == 0
    with pytest.raises(AnnotationError, match="name no workers"):
        worker_divergences(fit)


def test_confusion_matrices_that_cannot_be_compared_are_refused(em, crowd):
    with pytest.raises(ValueError, match="shape"):
        confusion_divergences(em, np.ones((2, 3, 3)) / 3)
    with pytest.raises(ValueError, match="no probabilities"):
        confusion_divergences(em, np.ones((5, 3, 3)))
    with pytest.raises(ValueError, match="give actual="):
        confusion_divergences(np.ones((5, 3, 3)) / 3)
    with pytest.raises(AnnotationError, match=r"worker.*'nobody'"):
        confusion_divergences(em, em.confusions().assign(worker="nobody"))
    with pytest.raises(ValueError, match="smoothing=-1"):
        empirical_confusions(crowd[0], smoothing=-1)
    with pytest.raises(AnnotationError, match="no gold labels"):
        empirical_confusions(crowd[0].replace(gold=None))
