"""Sensitivity and specificity stand where the fit has them, in regions of the mass that was asked for."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import LogNorm
from matplotlib.path import Path
from scipy.special import expit

import crowdppl as cp
from crowdppl.inference.plots.sensitivity import plot_sensitivity_specificity, region


def dots(ax):
    return next(c for c in ax.collections if "worker" in c.get_label()).get_offsets()


def actual_rates(parameters):
    """The workers' tables: sensitivity (negative, positive), specificity (negative, positive)."""
    return pd.DataFrame(
        {"sensitivity": parameters["sensitivity"][:, 1], "specificity": parameters["specificity"][:, 0]}
    )


def test_dots_are_one_minus_specificity_and_sensitivity(binary):
    ax = plot_sensitivity_specificity(binary)
    workers = binary.workers
    expected = np.column_stack([1 - workers["specificity"], workers["sensitivity"]])
    np.testing.assert_allclose(dots(ax), expected, rtol=1e-5)
    assert "all 12 workers" in ax.get_title()
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), [[0, 0], [1, 1]])


def test_only_the_workers_asked_for_are_drawn_in_the_axes_given(binary):
    figure, ax = plt.subplots()
    assert plot_sensitivity_specificity(binary, workers=[7, 2], ax=ax) is ax
    np.testing.assert_allclose(dots(ax)[:, 1], binary.workers["sensitivity"].loc[[7, 2]], rtol=1e-5)
    assert {text.get_text() for text in ax.texts} == {"spammers", "7", "2"}
    assert plt.get_fignums() == [figure.number]


@pytest.mark.parametrize("mass", [0.5, 0.9])
def test_a_region_holds_its_mass_of_draws_that_are_normal_on_the_logits_scale(mass):
    """Within four standard errors of a share of 20,000 draws."""
    rng = np.random.default_rng(0)
    draws = expit(rng.multivariate_normal([1.5, -0.5], [[0.5, 0.3], [0.3, 0.4]], 20_000))
    inside = Path(region(draws, mass, points=400)).contains_points(draws).mean()
    assert inside == pytest.approx(mass, abs=4 * np.sqrt(mass * (1 - mass) / 20_000))


def test_a_region_follows_the_dependence_of_the_two_and_stays_between_0_and_1():
    rng = np.random.default_rng(1)
    first = rng.normal(3, 2, 5_000)
    outline = region(expit(np.column_stack([first, 0.9 * first + rng.normal(0, 0.2, 5_000)])), 0.9)
    assert outline.min() > 0
    assert outline.max() < 1
    assert np.corrcoef(outline.T)[0, 1] > 0.9


def test_a_region_that_would_leave_a_point_out_is_widened_up_to_it():
    rng = np.random.default_rng(2)
    draws, point = expit(rng.multivariate_normal([1.5, -0.5], [[0.5, 0.3], [0.3, 0.4]], 2_000)), np.array([0.1, 0.9])
    widened = region(draws, 0.9, points=4_000, holds=point)
    assert np.abs(widened - point).max(-1).min() < 0.01
    within = draws.mean(0)
    np.testing.assert_allclose(region(draws, 0.9, holds=within), region(draws, 0.9))


def test_each_worker_has_a_region_of_the_draws_also_of_those_around_a_point(binary, crowded):
    ax = plot_sensitivity_specificity(binary, interval=0.5)
    outlines = [path.vertices for path in ax.collections[0].get_paths()]
    assert len(outlines) == 12
    tables = binary.confusion_draws[..., 1].reshape(-1, 12, 2)
    np.testing.assert_allclose(outlines[4][:100], region(tables[:, 4], 0.5), rtol=1e-5)
    assert "50% credible region" in [text.get_text() for text in ax.get_legend().get_texts()]
    of_a_point = plot_sensitivity_specificity(crowded, workers=range(5))
    assert len(of_a_point.collections[0].get_paths()) == 5
    said = {text.get_text() for text in of_a_point.get_legend().get_texts()}
    assert said == {"90% credible region", "estimate of a worker"}


def test_actual_values_are_crosses_joined_to_the_fit_and_may_be_of_some_workers(binary, binary_data):
    actual = actual_rates(binary_data[1]).loc[[3, 0]]
    ax = plot_sensitivity_specificity(binary, actual=actual)
    crosses = next(c for c in ax.collections if c.get_label() == "known value").get_offsets()
    by_worker = actual.loc[[0, 3]]
    np.testing.assert_allclose(crosses, np.column_stack([1 - by_worker["specificity"], by_worker["sensitivity"]]))
    joins = [line.get_xydata() for line in ax.lines[1:]]
    np.testing.assert_allclose([ends[1] for ends in joins], crosses)
    np.testing.assert_allclose([ends[0] for ends in joins], dots(ax)[[0, 3]])


def test_of_many_workers_the_density_is_drawn_which_counts_all_on_a_logarithmic_scale(crowded):
    ax = plot_sensitivity_specificity(crowded)
    assert ax.collections[0].get_array().sum() == 450
    assert isinstance(ax.collections[0].norm, LogNorm)
    assert ax.collections[0].norm.vmin == 1
    assert not [c for c in ax.collections if "of a worker" in c.get_label()]
    assert "all 450 workers" in ax.get_title()
    assert any(other.get_ylabel() == "workers in a cell (log scale)" for other in ax.figure.axes)


def test_a_cell_of_one_worker_is_seen_on_white(crowded):
    """Its contrast with white is at least that of the light blue of all other plots."""
    cells = plot_sensitivity_specificity(crowded).collections[0]
    lightest = cells.get_cmap()(0.0)[:3]
    assert np.dot(lightest, [0.2126, 0.7152, 0.0722]) < 0.85


@pytest.mark.parametrize("shown", [450, 60])
def test_of_more_than_forty_workers_those_with_the_most_annotations_have_intervals_of_both(crowded, shown):
    ax = plot_sensitivity_specificity(crowded, workers=range(shown), interval=0.5)
    crosses = [c for c in ax.collections if hasattr(c, "get_segments") and len(c.get_segments()) == 40]
    assert len(crosses) == 2
    across, upright = (np.array(c.get_segments()) for c in crosses)
    around = crowded.with_uncertainty.confusion_draws[0]
    most = np.sort(np.argsort(-crowded.annotations.n_by_worker()[:shown], kind="stable")[:40])
    estimate = crowded.confusion_draws[0, 0]
    for k, ends in ((0, across[:, :, 0]), (1, upright[:, :, 1])):
        low, high = np.quantile(around[:, most, k, 1], [0.25, 0.75], axis=0, method="weibull")
        at = estimate[most, k, 1]
        np.testing.assert_allclose(ends, np.column_stack([np.minimum(low, at), np.maximum(high, at)]), rtol=1e-5)
    said = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "50% credible intervals of the 40 workers with the most annotations" in said


@pytest.mark.parametrize(
    ("actual", "error", "said"),
    [
        (pd.DataFrame({"sensitivity": [0.5]}, index=[0]), ValueError, "'specificity' is needed"),
        (pd.DataFrame({"sensitivity": [0.5], "specificity": [1.5]}, index=[3]), ValueError, "worker 3: .* is 1.5"),
        (pd.DataFrame({"sensitivity": [0.5], "specificity": [0.5]}, index=[99]), cp.UnknownNameError, "worker 99"),
    ],
)
def test_actual_values_that_cannot_be_are_refused(binary, actual, error, said):
    with pytest.raises(error, match=said):
        plot_sensitivity_specificity(binary, actual=actual)


def test_other_than_two_classes_no_workers_and_no_mass_are_refused(em, binary, unnamed):
    with pytest.raises(ValueError, match=r"there are 4; .*plot_confusions\(fit\)"):
        plot_sensitivity_specificity(em)
    with pytest.raises(ValueError, match="selects no worker"):
        plot_sensitivity_specificity(binary, workers=[])
    with pytest.raises(ValueError, match="interval=0"):
        plot_sensitivity_specificity(binary, interval=0)
    with pytest.raises(cp.AnnotationError, match="name no workers"):
        plot_sensitivity_specificity(unnamed)
