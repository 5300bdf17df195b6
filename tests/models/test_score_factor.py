"""The story of scores with a common factor, and what it is made of."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import norm, spearmanr

import crowdppl as cp
from crowdppl import StoryError
from crowdppl.models.parts.factor import grid, score_rows, shares_of_points

SHARE = np.array([[0.1, 0.2, 0.4, 0.3], [0.97, 0.01, 0.01, 0.01]])


def test_points_are_equally_probable_and_have_variance_one():
    points = np.asarray(grid(21))
    np.testing.assert_allclose([points.mean(), points.var()], [0, 1], atol=1e-6)
    np.testing.assert_allclose(points, -points[::-1], atol=1e-5)


@pytest.mark.parametrize("correlation", [0.5**0.5, 0.95, -0.4])
def test_a_class_has_its_points_by_the_normal_integral(correlation):
    """P(z = k | q) is that of r q + e in the k-th of K equally probable intervals, by numerical integration."""
    points = grid(301)
    found = np.asarray(shares_of_points(points, 4, correlation))
    np.testing.assert_allclose(found.sum(-1), 1, rtol=1e-5)
    edges = norm.ppf(np.linspace(0, 1, 5))
    sd = np.sqrt(1 - correlation**2)
    for k in range(4):

        def of_class(q, k=k):
            return norm.pdf(q) * np.diff(norm.cdf((edges[k : k + 2] - correlation * q) / sd))[0]

        mean = quad(lambda q, of_class=of_class: q * of_class(q), -8, 8)[0] * 4
        np.testing.assert_allclose(found[k] @ np.asarray(points), mean, atol=0.02)  # of a grid of 301 points


@pytest.mark.parametrize(
    ("correlation", "n_classes", "sure"),
    [(0.5**0.5, 2, 0.75), (0.5**0.5, 5, 0.41), (0.5**0.5, 10, 0.24), (0.95, 2, 0.9), (0.95, 5, 0.67), (0.95, 10, 0.45)],
)
def test_the_correlation_bounds_how_sure_labels_are(correlation, n_classes, sure):
    """The mean of the largest probability over the factor, which is known exactly; the docstring has the figures."""
    of_class = np.asarray(shares_of_points(grid(301), n_classes, correlation))
    assert of_class.max(0).sum() / n_classes == pytest.approx(sure, abs=0.01)


def test_of_two_classes_the_second_has_the_probability_of_the_factor():
    points = grid(21)
    shares = np.asarray(shares_of_points(points, 2, 0.5**0.5))
    np.testing.assert_allclose(shares[1] / shares.sum(0), norm.cdf(points), atol=1e-5)


def test_levels_have_the_odds_of_normal_scores():
    """log p(l | q) − log p(l | q') is (x_l w)(q − q') but for a constant of the points, w = λ / (1 − λ²)."""
    correlation, points = jnp.array([0.8, -0.3]), grid(5)
    rows = np.asarray(score_rows(jnp.asarray(SHARE), correlation, points))
    np.testing.assert_allclose(rows.sum(-1), 1, rtol=1e-5)
    score = norm.ppf(np.cumsum(SHARE, -1) - SHARE / 2)
    weight = np.array([0.8 / (1 - 0.64), -0.3 / (1 - 0.09)])
    found = np.log(rows[:, 4] / rows[:, 1])
    expected = weight[:, None] * score * float(points[4] - points[1])
    np.testing.assert_allclose(np.diff(found, axis=-1), np.diff(expected, axis=-1), rtol=1e-3)


def test_without_correlation_the_rows_are_the_workers_own_shares():
    rows = score_rows(jnp.asarray(SHARE), jnp.zeros(2), grid(3))
    np.testing.assert_allclose(rows, np.broadcast_to(SHARE[:, None], (2, 3, 4)), rtol=1e-5)


@pytest.fixture(scope="module")
def scores():
    """Six judges of unequal quality, each with a scale of its own, on 300 tasks; what they share, and the truth.

    Judges give levels 0 to 4; the last is noise.
    """
    rng = np.random.default_rng(3)
    factor, correlations = rng.normal(size=300), np.array([0.9, 0.8, 0.7, 0.7, 0.6, 0.0])
    truth = np.floor(5 * norm.cdf(0.8 * factor + 0.6 * rng.normal(size=300))).astype(int)
    noisy = correlations * factor[:, None] + np.sqrt(1 - correlations**2) * rng.normal(size=(300, 6))
    cuts = np.sort(rng.normal(size=(6, 4)), axis=-1)
    level = (noisy[..., None] > cuts).sum(-1)
    frame = pd.DataFrame(level).stack().rename_axis(["task", "worker"]).rename("label").reset_index()
    return cp.Annotations.from_frame(frame, ordered=[0, 1, 2, 3, 4]), factor, truth, correlations


@pytest.fixture(scope="module")
def fitted(scores):
    return cp.fit("score_factor", scores[0], progress=False)


def test_it_ranks_tasks_better_than_the_mean_score(scores, fitted):
    annotations, factor, _, _ = scores
    mean = annotations.to_frame().groupby("task")["label"].mean()
    found, by_mean = (abs(spearmanr(each, factor)[0]) for each in (fitted.expected["expected"], mean))
    assert found > by_mean + 0.01


def test_judges_correlate_with_the_factor_as_drawn(scores, fitted):
    """Within three standard errors, 0.17 of a correlation of 0 on 300 tasks, and what the prior adds to it."""
    np.testing.assert_allclose(fitted.derived["correlation"].values.ravel(), scores[3], atol=0.2)


def test_scores_do_not_tell_the_truth_correlation_and_gold_labels_do(scores, fitted):
    annotations, _, truth, _ = scores
    usual = fitted.derived["truth_correlation"].item()
    np.testing.assert_allclose(usual, 0.5**0.5, atol=0.02)  # of a grid of 21 points
    with_gold = cp.fit("score_factor", annotations, gold=dict(enumerate(truth)), progress=False)
    assert with_gold.derived["truth_correlation"].item() > usual + 0.03


def test_many_judges_who_agree_do_not_make_a_label_certain(fitted):
    """The best label has the probability that the factor's relation to the truth leaves it."""
    assert fitted.posterior.max() < 0.8


@pytest.mark.parametrize(
    ("option", "value", "of"),
    [("validity", 0.95, "truth_correlation"), ("loading", 0.1, "correlation"), ("spread", 0.02, "correlation")],
)
def test_each_prior_moves_what_it_speaks_of(scores, fitted, option, value, of):
    few = scores[0].rows(np.asarray(scores[0].task) < 10)
    values = [
        cp.fit("score_factor", few, progress=False, constant_workers="keep", **given).derived[of].values
        for given in ({}, {option: value})
    ]
    assert np.abs(values[0] - values[1]).max() > 0.05


def test_more_points_change_little(scores, fitted):
    finer = cp.fit("score_factor", scores[0], points=41, progress=False)
    np.testing.assert_allclose(finer.posterior, fitted.posterior, atol=0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"validity": 1.0}, "validity=1.0 is no correlation"),
        ({"loading": -2.0}, "loading=-2.0 is no correlation"),
        ({"spread": 0.0}, "spread=0.0 is no scale"),
        ({"points": 0}, "points=0 is no number"),
    ],
)
def test_options_that_cannot_be_are_refused(scores, options, message):
    with pytest.raises(StoryError, match=message):
        cp.fit("score_factor", scores[0], progress=False, **options)


def test_the_summary_does_not_ask_for_shared_errors_which_the_story_has(fitted):
    assert "shared_error" not in fitted.summary().facts["independence"]
    assert "labels allow for errors" in fitted.summary().facts["independence"]
