"""Observed values that are one more replicate get uniform p-values; only units that deviate are flagged."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, kstest

from crowdppl.inference.checks.check_results import DiscrepancyResult

DRAWS, REPLICATES = 20, 5


def found_in(rng, n_units=30, shift=None, spread=1.0, draws=DRAWS, replicates=REPLICATES):
    """Draws that spread around those that the observed values are of."""
    centre = rng.normal(0, spread, n_units)
    draws_of_it = centre + rng.normal(0, 0.1, (draws, 1, n_units))
    replicated = draws_of_it + rng.normal(size=(draws, replicates, n_units))
    observed = centre + rng.normal(size=n_units) + (0 if shift is None else shift)
    return DiscrepancyResult("values", "value", observed, replicated, pd.RangeIndex(n_units))


def test_p_values_of_one_more_replicate_of_a_single_draw_are_uniform():
    rng = np.random.default_rng(0)
    p_values = [found_in(rng, draws=1, replicates=199).p_value for _ in range(300)]
    assert kstest(p_values, "uniform").pvalue > 0.001


def test_of_2000_units_of_a_right_story_one_is_flagged_at_most_as_often_as_the_level_says():
    rng = np.random.default_rng(1)
    false = sum(found_in(rng, 2000).flagged.any() for _ in range(60))
    assert false <= binom.ppf(0.999, 60, 0.05)


def test_one_unit_that_deviates_is_flagged_and_listed_first_among_2000():
    shift = np.zeros(2000)
    shift[1234] = 9.0
    table = found_in(np.random.default_rng(2), 2000, shift).table()
    assert table.index[0] == 1234
    assert table["flagged"].tolist() == [True] + [False] * 1999


def test_a_small_shift_of_all_units_is_found_by_their_total_and_flags_no_unit():
    shift = 0.7 * np.random.default_rng(3).choice([-1, 1], 400)
    found = found_in(np.random.default_rng(4), 400, shift)
    assert found.p_value < 0.01
    assert found.n_flagged == 0


def test_an_adjusted_p_value_is_no_smaller_than_the_units_own():
    for seed in range(20):
        found = found_in(np.random.default_rng(seed))
        table = found.table()
        assert (table["p_adjusted"] >= table["p_value"] - 1 / (DRAWS * REPLICATES)).all()
        assert table[["p_value", "p_adjusted"]].gt(0).all(axis=None)
        assert table[["p_value", "p_adjusted"]].le(1).all(axis=None)


def test_observed_and_replicated_annotations_are_treated_alike():
    found = found_in(np.random.default_rng(5), draws=1, replicates=30)
    values = np.concatenate([found.observed[None], found.replicated[0]])
    swapped = values[[7, *range(1, 7), 0, *range(8, 31)]]
    other = DiscrepancyResult("values", "value", swapped[0], swapped[None, 1:], found.units)
    np.testing.assert_allclose(other.totals[0], found.totals[1][:, 6])
    np.testing.assert_allclose(other.totals[1][:, 6], found.totals[0])


def test_added_variance_reduces_deviations_of_units_with_few_annotations():
    rng = np.random.default_rng(6)
    replicated = rng.binomial(1, 0.01, (DRAWS, REPLICATES, 50)).astype(float)
    observed = np.zeros(50)
    observed[0] = 1.0  # rare, and no more than one annotation
    odd = DiscrepancyResult("values", "value", observed, replicated, pd.RangeIndex(50)).table().loc[0]
    kept_down = DiscrepancyResult("values", "value", observed, replicated, pd.RangeIndex(50), added_variance=1.0)
    assert kept_down._comparison.deviations[0] < 1
    assert kept_down.table().loc[0, "p_adjusted"] >= odd["p_adjusted"]


def test_units_that_never_change_are_as_expected():
    replicated = np.full((DRAWS, REPLICATES, 2), 3.0)
    found = DiscrepancyResult("values", "value", np.array([3.0, 3.0]), replicated, pd.Index(["a", "b"]))
    assert found.p_value == pytest.approx(0.5, abs=0.01)
    assert found.n_flagged == 0
    off = DiscrepancyResult("values", "value", np.array([3.0, 4.0]), replicated, pd.Index(["a", "b"]))
    assert off.table()["flagged"].to_dict() == {"b": True, "a": False}
    assert np.isfinite(off.totals[0]).all()


def test_a_number_is_comparison_by_its_upper_tail_with_ties_by_half():
    replicated = np.array([1.0, 2.0, 2.0, 3.0, 4.0]).reshape(1, 5, 1)
    p_values = [DiscrepancyResult("n", "value", np.array([x]), replicated).p_value for x in (0.0, 2.0, 5.0)]
    assert p_values == pytest.approx([5.5 / 6, (2 + 1 + 0.5) / 6, 0.5 / 6])
    with pytest.raises(ValueError, match="has no units"):
        DiscrepancyResult("n", "value", np.array([1.0]), replicated).table()


@pytest.mark.parametrize("interval", [0.0, 1.0, -1, 90])
def test_an_interval_is_a_share(interval):
    with pytest.raises(ValueError, match=f"interval={interval}"):
        found_in(np.random.default_rng(0)).table(interval)


def test_intervals_hold_their_share_of_the_replicates():
    found = found_in(np.random.default_rng(7), draws=50, replicates=20)
    table = found.table(0.8).sort_index()
    inside = (found.replicated >= table["low"].to_numpy()) & (found.replicated <= table["high"].to_numpy())
    np.testing.assert_allclose(inside.mean((0, 1)), 0.8, atol=2 / 1000)
    np.testing.assert_allclose(table["replicated"], found.replicated.mean((0, 1)))
