"""The story of scores with a common factor, and what it is made of."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import norm, spearmanr

import crowdppl as cp
from crowdppl import StoryError
from crowdppl.models.score_factor import crowd_cuts, equal_cuts, even_grid, grid, joint_shares, score_rows

SHARE = np.array([[0.1, 0.2, 0.4, 0.3], [0.97, 0.01, 0.01, 0.01]])


def test_points_are_equally_probable_and_have_variance_one():
    points, share = map(np.asarray, grid(21))
    np.testing.assert_allclose([points.mean(), points.var()], [0, 1], atol=1e-6)
    np.testing.assert_allclose(points, -points[::-1], atol=1e-5)
    np.testing.assert_allclose(share, 1 / 21)


def test_equally_distant_points_have_variance_one_and_the_shares_of_a_normal():
    points, share = map(np.asarray, even_grid(21))
    np.testing.assert_allclose([share.sum(), share @ points, share @ points**2], [1, 0, 1], atol=1e-6)
    np.testing.assert_allclose(np.diff(points), points[1] - points[0], rtol=1e-4)
    upto = norm.cdf((points[1:] + points[:-1]) / 2)
    np.testing.assert_allclose(share.cumsum()[:-1], upto, atol=0.005)


@pytest.mark.parametrize(("of", "correlation"), [(grid, 0.5**0.5), (grid, 0.95), (grid, -0.4), (even_grid, 0.95)])
def test_a_class_has_its_points_by_the_normal_integral(of, correlation):
    """P(z = k | q) is that of r q + e in the k-th of K equally probable intervals, by numerical integration."""
    points = of(301)
    joint = np.asarray(joint_shares(points, equal_cuts(4), correlation))
    np.testing.assert_allclose(joint.sum(-1), 0.25, atol=2e-3)
    found = joint / joint.sum(-1, keepdims=True)
    edges = norm.ppf(np.linspace(0, 1, 5))
    sd = np.sqrt(1 - correlation**2)
    for k in range(4):

        def of_class(q, k=k):
            return norm.pdf(q) * np.diff(norm.cdf((edges[k : k + 2] - correlation * q) / sd))[0]

        mean = quad(lambda q, of_class=of_class: q * of_class(q), -8, 8)[0] * 4
        np.testing.assert_allclose(found[k] @ np.asarray(points[0]), mean, atol=0.02)  # of a grid of 301 points


@pytest.mark.parametrize(
    ("correlation", "n_classes", "sure"),
    [(0.5**0.5, 2, 0.75), (0.5**0.5, 5, 0.41), (0.5**0.5, 10, 0.24), (0.95, 2, 0.9), (0.95, 5, 0.67), (0.95, 10, 0.45)],
)
def test_the_correlation_bounds_how_sure_labels_are(correlation, n_classes, sure):
    """The mean of the largest probability over the factor, which is known exactly; the docstring has the figures."""
    joint = np.asarray(joint_shares(grid(301), equal_cuts(n_classes), correlation))
    assert joint.max(0).sum() == pytest.approx(sure, abs=0.01)


def test_of_two_classes_the_second_has_the_probability_of_the_factor():
    joint = np.asarray(joint_shares(grid(21), equal_cuts(2), 0.5**0.5))
    np.testing.assert_allclose(joint[1] / joint.sum(0), norm.cdf(grid(21)[0]), atol=1e-5)


def test_the_crowds_cuts_are_the_mean_of_those_of_workers_who_hear_the_factor():
    share = jnp.array([[0.1, 0.2, 0.4, 0.3], [0.2, 0.2, 0.2, 0.4], [0.97, 0.01, 0.01, 0.01], [0.01, 0.01, 0.01, 0.97]])
    correlation, is_real = jnp.array([0.8, 0.5, 0.0, 0.9]), jnp.array([True, True, True, False])
    own = norm.ppf(np.cumsum(share, -1)[:, :-1])
    weight = np.array([0.8 / 0.36, 0.5 / 0.75])
    np.testing.assert_allclose(crowd_cuts(share, correlation, is_real), weight @ own[:2] / weight.sum(), atol=1e-4)
    np.testing.assert_allclose(crowd_cuts(share, jnp.zeros(4), is_real), own[:3].mean(0), atol=1e-4)


def test_levels_have_the_odds_of_normal_scores():
    """log p(l | q) − log p(l | q') is (x_l w)(q − q') but for a constant of the points, w = λ / (1 − λ²)."""
    correlation, points = jnp.array([0.8, -0.3]), grid(5)[0]
    rows = np.asarray(score_rows(jnp.asarray(SHARE), correlation, points))
    np.testing.assert_allclose(rows.sum(-1), 1, rtol=1e-5)
    score = norm.ppf(np.cumsum(SHARE, -1) - SHARE / 2)
    weight = np.array([0.8 / (1 - 0.64), -0.3 / (1 - 0.09)])
    found = np.log(rows[:, 4] / rows[:, 1])
    expected = weight[:, None] * score * float(points[4] - points[1])
    np.testing.assert_allclose(np.diff(found, axis=-1), np.diff(expected, axis=-1), rtol=1e-3)


def test_without_correlation_the_rows_are_the_workers_own_shares():
    rows = score_rows(jnp.asarray(SHARE), jnp.zeros(2), grid(3)[0])
    np.testing.assert_allclose(rows, np.broadcast_to(SHARE[:, None], (2, 3, 4)), rtol=1e-5)


@pytest.fixture(scope="module")
def scores():
    """Six judges of unequal quality, each with a scale of its own, on 300 tasks; what they share, and the truth.

    Judges give levels 0 to 4, by which five equally frequent classes are told; the last is noise.
    """
    rng = np.random.default_rng(3)
    factor, correlations = rng.normal(size=300), np.array([0.9, 0.8, 0.7, 0.7, 0.6, 0.0])
    truth = np.floor(5 * norm.cdf(0.8 * factor + 0.6 * rng.normal(size=300))).astype(int)
    noisy = correlations * factor[:, None] + np.sqrt(1 - correlations**2) * rng.normal(size=(300, 6))
    cuts = np.sort(rng.normal(size=(6, 4)), axis=-1)
    level = (noisy[..., None] > cuts).sum(-1)
    frame = pd.DataFrame(level).stack().rename_axis(["task", "worker"]).rename("label").reset_index()
    annotations = cp.Annotations.from_frame(frame, ordered=[0, 1, 2, 3, 4], truth_classes=[*range(5)])
    return annotations, factor, truth, correlations


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


def test_gold_labels_tell_how_frequent_the_classes_are(scores):
    """Of a truth of which the upper fifth is "yes"; shares that are given are not learned."""
    annotations, factor, _, _ = scores
    names = np.array(["no", "yes"])[(0.8 * factor + 0.6 * np.random.default_rng(4).normal(size=300) > 0.84).astype(int)]
    table = annotations.to_frame()
    of_two = cp.Annotations.from_frame(table, ordered=[*range(5)], truth_classes=["no", "yes"])
    gold = dict(enumerate(names[:60].tolist()))
    told, untold, given = (
        cp.fit("score_factor", of_two, progress=False, **options)
        for options in ({"gold": gold}, {}, {"gold": gold, "truth_prior": "uniform"})
    )
    shares = [fit.probabilities["yes"].iloc[60:].mean() for fit in (told, untold, given)]
    assert shares[0] == pytest.approx((names == "yes").mean(), abs=0.1)
    assert shares[1] == pytest.approx(0.5, abs=0.03)
    assert shares[2] > shares[0] + 0.05
    assert [finding.code for finding in untold.findings].count("even_classes") == 1
    assert not {"even_classes"} & {finding.code for fit in (told, given) for finding in fit.findings}
    right = [(fit.labels["label"].to_numpy()[60:] == names[60:]).mean() for fit in (told, untold)]
    assert right[0] > right[1] + 0.1


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


def rounded(seed, n_levels, middle, spread, noise, n_judges):
    """Judges' scores on one scale with noise, (200, judges), and the scores that they would be without."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(middle, spread, 200)
    score = quality[:, None] + rng.normal(0, noise, (200, n_judges))
    return (np.clip(np.round(each), 1, n_levels).astype(int) for each in (score, quality))


@pytest.mark.parametrize("case", [(0, 10, 5.5, 2.0, 0.8, 4), (1, 5, 3.0, 1.0, 0.6, 5)])
def test_labels_of_levels_are_as_right_as_the_rounded_mean_and_agree_with_expected_scores(case):
    """Of 200 tasks accuracies differ by .03 by chance; labels are at most as sure as they are right, and near that."""
    score, truth = rounded(*case)
    frame = pd.DataFrame(score).stack().rename_axis(["task", "worker"]).rename("label").reset_index()
    fit = cp.fit("score_factor", cp.Annotations.from_frame(frame, ordered=range(1, case[1] + 1)), progress=False)
    label, expected = fit.labels["label"].to_numpy(dtype=float), fit.expected
    right = (label == truth).mean()
    assert right > (np.round(score.mean(-1)) == truth).mean() - 0.03
    assert np.abs(label - expected["expected"]).max() < 0.75
    assert np.abs(np.bincount(label.astype(int)) - np.bincount(truth, minlength=int(label.max()) + 1)).max() < 20
    posterior = np.asarray(fit.posterior)
    assert right - 0.1 < posterior.max(-1).mean() < right + 0.03
    assert np.log(posterior[np.arange(200), truth - 1]).mean() > np.log(1 / case[1]) + 0.8
    inside = expected["expected_low"].le(truth) & expected["expected_high"].ge(truth)
    assert inside.mean() > 0.9
    assert (expected["expected_high"] - expected["expected_low"]).mean() < 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"validity": 1.0}, "validity=1.0: a finite number above -1 and below 1"),
        ({"loading": -2.0}, "loading=-2.0: a finite number above -1"),
        ({"spread": 0.0}, "spread=0.0: a finite number above 0"),
        ({"points": 0}, "points=0: a whole number from 1"),
    ],
)
def test_options_that_cannot_be_are_refused(scores, options, message):
    with pytest.raises(StoryError, match=message):
        cp.fit("score_factor", scores[0], progress=False, **options)


def test_the_summary_does_not_ask_for_shared_errors_which_the_story_has(fitted):
    assert "shared_error" not in fitted.summary().facts["independence"]
    assert "labels allow for errors" in fitted.summary().facts["independence"]
