"""Plots of checks show the checks' own numbers, and refuse what they cannot draw."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection, PathCollection, PolyCollection

import crowdppl as cp
from crowdppl.inference.checks.check_results import Checks, DiscrepancyResult
from crowdppl.inference.plots.predictive_checks import plot_check, plot_checks
from crowdppl.inference.plots.style import ACCENT, strong

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def found(n_units, size=40, odd=(), names=None):
    """Units that count to 40, of which some are off."""
    rng = np.random.default_rng(0)
    share = rng.uniform(0.2, 0.8, n_units)
    observed = rng.binomial(size, share).astype(float)
    observed[list(odd)] = np.where(share[list(odd)] > 0.5, 0, size)
    if names is None:
        names = pd.Index([f"worker {j}" for j in range(n_units)], name="worker")
    units = names if isinstance(names, pd.Index) else pd.Index(names)
    replicated = rng.binomial(size, share, (20, 5, n_units)).astype(float)
    return DiscrepancyResult(
        "What they say", "share of the annotations", observed, replicated, units, np.full(n_units, size), 1.0
    )


NUMBER = DiscrepancyResult("alpha", "value", np.array([0.9]), np.random.default_rng(0).normal(size=(20, 5, 1)))
CHECKS = Checks(
    "Checks", {"few": found(6, odd=[2]), "some": found(60, odd=[7]), "many": found(900, odd=[5]), "alpha": NUMBER}
)


def dots(ax, colour):
    """Centres of the dots of one colour, without those of the legend."""
    rgba = matplotlib.colors.to_rgba(colour)
    drawn = [c for c in ax.collections if isinstance(c, PathCollection) and np.allclose(c.get_facecolor()[0], rgba)]
    return np.concatenate([c.get_offsets() for c in drawn]) if drawn else np.zeros((0, 2))


def test_few_units_have_a_row_each_with_their_interval_and_observed_share():
    ax = plot_check(CHECKS, "few", interval=0.8)
    table = CHECKS.units("few", 0.8).sort_index()
    assert [text.get_text() for text in ax.get_yticklabels()] == list(table.index)
    rows = np.concatenate([dots(ax, strong()), dots(ax, ACCENT)])
    np.testing.assert_allclose(rows[np.argsort(rows[:, 1]), 0], table["observed"] / 40)
    np.testing.assert_allclose(dots(ax, ACCENT), [[1.0, 2]])
    (lines,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    ends = [segment[:, 0] for segment in lines.get_segments()]
    np.testing.assert_allclose(ends, table[["low", "high"]] / 40)
    assert ax.get_title().endswith("1 flagged after correction for 6 workers")


def test_more_units_are_drawn_against_their_replicates_and_flagged_ones_are_named():
    ax = plot_check(CHECKS, "some")
    table = CHECKS.units("some")
    shown = np.concatenate([dots(ax, strong()), dots(ax, ACCENT)])
    expected = table[["replicated", "observed"]].to_numpy() / 40
    np.testing.assert_allclose(shown[np.lexsort(shown.T)], expected[np.lexsort(expected.T)])
    np.testing.assert_allclose(dots(ax, ACCENT), table.loc[["worker 7"], ["replicated", "observed"]] / 40)
    assert [text.get_text() for text in ax.texts] == ["worker 7"]


def test_titles_say_for_how_many_of_which_units_p_values_were_corrected():
    workers = pd.MultiIndex.from_product([range(44), range(86)], names=["worker", "other"])
    names = {"3,784 pairs": workers, "6 worker–class pairs": pd.MultiIndex.from_product([[0, 1], list("abc")])}
    names["6 worker–class pairs"].names = ["worker", "class"]
    names |= {"4 classes": pd.Index(range(4), name="class"), "3 units": pd.Index(range(3))}
    for said, units in names.items():
        ax = plot_check(Checks("", {"one": found(len(units), names=units)}), "one")
        assert ax.get_title().endswith(f" flagged after correction for {said}")


def test_very_many_units_are_drawn_by_density_weighted_with_their_annotations():
    ax = plot_check(CHECKS, "many")
    (hexagons,) = [c for c in ax.collections if isinstance(c, PolyCollection) and c.get_array() is not None]
    assert hexagons.get_array().sum() == 900 * 40
    assert len(dots(ax, strong())) == 0
    assert len(dots(ax, ACCENT)) == (CHECKS.units("many")["p_adjusted"] < 0.05).sum() == 1


def test_a_number_is_a_line_over_the_histogram_of_its_replicates():
    ax = plot_check(CHECKS, "alpha")
    assert sum(bar.get_height() for bar in ax.patches) == 100
    assert [line.get_xdata()[0] for line in ax.lines] == [0.9]
    assert f"p = {NUMBER.p_value:.2f}" in ax.get_title()


def test_every_discrepancy_has_a_panel():
    axes = plot_checks(CHECKS)
    assert len(axes) == len(axes[0].figure.axes) == 4
    assert axes[0].figure.get_suptitle() == "Checks"
    figure, grid = plt.subplots(1, 4)
    assert list(plot_checks(CHECKS, axes=grid)) == list(grid)
    assert plt.get_fignums()[-1] == figure.number
    one = plt.figure().add_subplot()
    assert plot_check(CHECKS, "few", ax=one) is one


def test_ids_are_written_as_they_are():
    names = ["$a_b$", ("x", 1), "a worker with a name that is far too long to be written"]
    ax = plot_check(Checks("", {"few": found(3, names=pd.Index(names, tupleize_cols=False))}), "few")
    ax.figure.canvas.draw()
    labels = [text.get_text() for text in ax.get_yticklabels()]
    assert labels[:2] == ["$a_b$", "x · 1"]
    assert len(labels[2]) <= 22


def test_titles_and_legends_do_not_overlap_the_panels():
    axes = plot_checks(CHECKS)
    figure = axes[0].figure
    figure.canvas.draw()
    boxes = [ax.get_tightbbox() for ax in axes]
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[i + 1 :])
        assert figure.bbox.padded(1).containsx(box.x0)
        assert figure.bbox.padded(1).containsx(box.x1)
        assert figure.bbox.padded(1).containsy(box.y0)


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(ValueError, match="axes=2 axes: the 4 discrepancies need one each"):
        plot_checks(CHECKS, axes=plt.subplots(1, 2)[1])
    with pytest.raises(cp.UnknownNameError, match="did you mean 'many'"):
        plot_check(CHECKS, "mani")
    with pytest.raises(ValueError, match="interval=90"):
        plot_check(CHECKS, "few", interval=90)


def test_intervals_lie_whole_within_the_axes():
    """Of few replicated counts intervals are wider than the range of the observed and of the mean ones."""
    for name in ("some", "many"):
        ax = plot_check(CHECKS, name)
        (bottom, top), (left, right) = ax.get_ylim(), ax.get_xlim()
        segments = np.concatenate([c.get_segments() for c in ax.collections if isinstance(c, LineCollection)])
        assert bottom < segments[..., 1].min()
        assert segments[..., 1].max() < top
        assert (left, right) == (bottom, top)
