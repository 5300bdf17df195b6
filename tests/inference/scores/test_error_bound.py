"""Chernoff's bound on the share of wrong labels holds, its exponent is the right one, and the number needed follows."""

from itertools import product

import numpy as np
import pytest

import crowdppl as cp
from crowdppl import AnnotationError


def bayes_error(confusions, shares):
    """The share of wrong labels where each worker annotates once, over all patterns of annotations."""
    right = 0.0
    for pattern in product(range(confusions.shape[-1]), repeat=len(confusions)):
        right += (shares * np.prod([confusions[j, :, label] for j, label in enumerate(pattern)], axis=0)).max()
    return 1 - right


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_is_above_the_error_of_the_best_labels(seed):
    rng = np.random.default_rng(seed)
    n_workers, n_classes, n_categories = rng.integers(1, 6), rng.integers(2, 5), rng.integers(2, 5)
    confusions = rng.dirichlet(np.full(n_categories, 0.7), (n_workers, n_classes))
    shares = rng.dirichlet(np.ones(n_classes))
    exact = bayes_error(confusions, shares)
    assert exact <= cp.label_error_bound(confusions, int(n_workers), shares=shares) + 1e-9
    assert cp.label_error_bound(confusions, int(n_workers), shares=shares) <= 1 - shares.max() + 1e-12


def test_its_exponent_is_that_of_the_error():
    from scipy.stats import binom

    coin = np.array([[[0.7, 0.3], [0.3, 0.7]]])
    exact = [binom.cdf(n // 2, n, 0.7) for n in (201, 401)]  # the majority is the best label
    bound = [cp.label_error_bound(coin, n) for n in (201, 401)]
    assert all(e <= b for e, b in zip(exact, bound, strict=True))
    chernoff = -np.log(2 * np.sqrt(0.7 * 0.3))
    assert np.log(bound[0] / bound[1]) / 200 == pytest.approx(chernoff, rel=1e-6)
    assert np.log(exact[0] / exact[1]) / 200 == pytest.approx(chernoff, rel=0.03)


def test_the_number_needed_is_the_least_whose_bound_is_small_enough():
    rng = np.random.default_rng(1)
    confusions = 0.5 * np.eye(3) + 0.5 * rng.dirichlet(np.ones(3), (4, 3))
    n = cp.annotations_needed(confusions, error=0.01)
    assert cp.label_error_bound(confusions, n) <= 0.01 < cp.label_error_bound(confusions, n - 1)


def test_a_fits_labels_are_wrong_no_more_often_than_the_bound_of_its_workers():
    simulated, _ = cp.simulate("dawid_skene", n_tasks=500, n_workers=10, annotations_per_task=9, seed=3)
    fit = cp.fit("dawid_skene", simulated.without_gold(), progress=False)
    wrong = (fit.probabilities.to_numpy().argmax(-1) != np.asarray(simulated.gold)).mean()
    assert wrong <= cp.label_error_bound(fit, 9)
    assert cp.annotations_needed(fit, error=cp.label_error_bound(fit, 9)) == 9


def test_workers_who_tell_two_classes_not_apart_are_named_and_wrong_arguments_refused():
    blind = np.array([[[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.1, 0.8, 0.1]]])
    with pytest.raises(AnnotationError, match="two of the classes alike"):
        cp.annotations_needed(blind)
    coin = np.array([[[0.8, 0.2], [0.2, 0.8]]])
    with pytest.raises(ValueError, match="probabilities that sum to 1"):
        cp.label_error_bound(2 * coin, 3)
    with pytest.raises(ValueError, match="2 probabilities"):
        cp.label_error_bound(coin, 3, shares=[0.5, 0.3, 0.2])
    with pytest.raises(TypeError, match="got Annotations"):
        cp.label_error_bound(cp.load_dataset("toy"), 3)
    with pytest.raises(ValueError, match="n_annotations"):
        cp.label_error_bound(coin, 0)
    with pytest.raises(ValueError, match="error"):
        cp.annotations_needed(coin, error=1.5)
