"""Reliability against scikit-learn's calibration curve, loops, and a calibrated source."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.calibration import calibration_curve

from crowdppl.inference.fitted.intervals import jeffreys, of_median
from crowdppl.inference.scores.against_gold import against_gold
from crowdppl.inference.scores.calibration import calibration_error, reliability


def binary(n, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return pd.DataFrame({"no": 1 - p, "yes": p}), (rng.random(n) < p).astype(int)


def names(codes):
    return dict(enumerate(np.array(["no", "yes"])[codes].tolist()))


def test_a_classs_reliability_is_scikit_learns_calibration_curve():
    frame, truth = binary(500)
    share, mean = calibration_curve(truth, frame["yes"], n_bins=7)
    found = reliability(frame, names(truth), bins=7, positive="yes")
    np.testing.assert_allclose(found["accuracy"], share)
    np.testing.assert_allclose(found["probability"], mean)
    assert found["tasks"].sum() == 500
    np.testing.assert_allclose(found["low"], np.arange(7) / 7)
    np.testing.assert_allclose(found["high"], np.arange(1, 8) / 7)


def test_bins_hold_the_chosen_labels_and_empty_ones_stay():
    frame, truth = binary(300)
    found = reliability(frame, names(truth))
    p = frame.to_numpy()
    chosen, right = p.max(1), p.argmax(1) == truth
    for row in found.itertuples():
        inside = (chosen >= row.low) & ((chosen < row.high) | (row.high == 1))
        assert row.tasks == inside.sum()
        if inside.any():
            assert row.probability == pytest.approx(chosen[inside].mean())
            assert row.accuracy == pytest.approx(right[inside].mean())
            low, high = stats.beta.ppf([0.05, 0.95], right[inside].sum() + 0.5, (~right[inside]).sum() + 0.5)
            assert (row.accuracy_low, row.accuracy_high) == pytest.approx((low, high))
    empty = found[found["low"] < 0.49]
    assert (empty["tasks"] == 0).all()  # of two classes the chosen one has a half at least
    assert empty[["probability", "accuracy", "accuracy_low", "accuracy_high"]].isna().all(axis=None)


def test_the_calibration_error_is_the_mean_gap():
    frame = pd.DataFrame({"no": [0.1, 0.1, 0.45, 0.2], "yes": [0.9, 0.9, 0.55, 0.8]})
    gold = names([1, 0, 1, 1])
    expected = (2 * abs(0.9 - 0.5) + abs(0.55 - 1) + abs(0.8 - 1)) / 4
    assert calibration_error(against_gold(frame, gold)) == pytest.approx(expected)
    assert calibration_error(against_gold(frame, gold), bins=1) == pytest.approx(
        abs(0.75 - (0.9 + 0.9 + 0.55 + 0.8) / 4)
    )


def test_truths_drawn_from_the_probabilities_are_within_the_intervals_and_the_error_is_small():
    """20,000 tasks: each bin's accuracy has a standard error of at most 0.012; the mean gap is below that."""
    frame, truth = binary(20_000)
    assert calibration_error(against_gold(frame, names(truth))) < 0.012
    overconfident = pd.DataFrame({"yes": frame["yes"].round() * 0.98 + 0.01}).assign(no=lambda f: 1 - f["yes"])
    assert calibration_error(against_gold(overconfident, names(truth))) == pytest.approx(0.24, abs=0.015)  # 0.99 − 0.75


def test_ninety_percent_intervals_hold_the_probability_in_about_ninety_percent_of_samples():
    """Jeffreys' coverage averaged over p is close to its mass: within 0.02 of 0.9 at n = 30 (exact sum)."""
    p, right = np.linspace(0.005, 0.995, 199)[:, None], np.arange(31)
    low, high = jeffreys(right, np.full(31, 30), 0.9)
    covered = (stats.binom.pmf(right, 30, p) * ((low <= p) & (p <= high))).sum(1)
    assert covered.mean() == pytest.approx(0.9, abs=0.02)


def test_a_medians_interval_has_at_least_its_mass_and_the_next_shorter_one_has_not():
    rng = np.random.default_rng(0)
    for n in (5, 6, 10, 31, 200):
        values = np.sort(rng.lognormal(size=n))
        low, high = of_median(rng.permutation(values), 0.9)
        r = int(np.searchsorted(values, low)) + 1
        assert high == values[n - r]
        assert 1 - 2 * stats.binom.cdf(r - 1, n, 0.5) >= 0.9
        assert 1 - 2 * stats.binom.cdf(r, n, 0.5) < 0.9
    assert np.isnan(of_median(np.arange(4.0), 0.9)).all()
    assert np.isnan(of_median(np.array([]), 0.9)).all()


@pytest.mark.parametrize("bins", [0, 2.5])
def test_bins_are_a_whole_number(bins):
    with pytest.raises(ValueError, match="whole number from 1"):
        reliability(*(lambda frame, truth: (frame, names(truth)))(*binary(5)), bins=bins)


def test_an_interval_has_a_mass_between_zero_and_one():
    frame, truth = binary(5)
    with pytest.raises(ValueError, match="above 0 and below 1"):
        reliability(frame, names(truth), interval=90)
