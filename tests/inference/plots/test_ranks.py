"""Histograms of ranks count every simulation, and the band is that of uniform ranks."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import crowdppl as cp
from crowdppl.inference.plots.ranks import plot_ranks


@pytest.fixture
def ranks():
    rng = np.random.default_rng(0)
    columns = [f"confusion[{j},{k}]" for j in range(12) for k in range(2)]
    return cp.Ranks(pd.DataFrame(rng.integers(0, 100, (200, 24)), columns=columns), n_draws=99, divergences=0)


def test_bars_count_the_simulations_of_each_entry(ranks):
    name = "confusion[3,1]"
    (ax,) = plot_ranks(ranks, entries=[name], bins=5)
    bars = ax.containers[0]
    assert [bar.get_height() for bar in bars] == np.histogram(ranks.ranks[name], bins=np.arange(0, 101, 20))[0].tolist()
    assert ax.get_title() == name
    assert ax.lines[0].get_ydata()[0] == 40


def test_the_band_holds_99_percent_of_the_bars_of_uniform_ranks(ranks):
    ax = plot_ranks(ranks, bins=10)[0]
    (band,) = [patch for patch in ax.patches if patch not in list(ax.containers[0])]
    low, high = band.get_y(), band.get_y() + band.get_height()
    assert (low, high) == tuple(binom.ppf([0.005, 0.995], 200, 0.1))
    assert "99%" in ax.figure.get_suptitle()


def test_of_many_entries_sixteen_are_drawn_evenly_chosen(ranks):
    axes = plot_ranks(ranks)
    assert len(axes) == 16
    assert [axes[0].get_title(), axes[-1].get_title()] == ["confusion[0,0]", "confusion[11,1]"]


def test_given_axes_are_used_and_what_cannot_be_drawn_is_refused(ranks):
    figure, grid = plt.subplots(1, 2)
    assert list(plot_ranks(ranks, entries=list(ranks.ranks)[:2], axes=grid)) == list(grid)
    assert plt.get_fignums() == [figure.number]
    with pytest.raises(ValueError, match="the 3 entries need one each"):
        plot_ranks(ranks, entries=list(ranks.ranks)[:3], axes=grid)
    with pytest.raises(cp.UnknownNameError, match=r"unknown entry 'confusion\[0,2\]'"):
        plot_ranks(ranks, entries=["confusion[0,2]"])
    with pytest.raises(ValueError, match=r"entries=\[\] selects nothing"):
        plot_ranks(ranks, entries=[])
