"""The plot of a simulation-based calibration: histograms of ranks, with the band of uniform ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...data import unknown_name
from ..checks.simulation_based_calibration import Ranks
from .style import TITLE, check_kind, clean, faint, given_axes, paper, strong, title, whole_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 16  # parameters' entries in one picture
BAND = 0.99  # share of a uniform histogram's bars that lie in the band


def plot_ranks(found: Ranks, *, entries: list[str] | None = None, bins: int = 10, axes: Any = None) -> np.ndarray:
    """Draw a histogram of ranks for each entry, with the band that holds 99 % of the bars where ranks are uniform.

    A rank is the number of posterior draws below the value that the data were simulated with; ranks are uniform where
    the sampler and the story are right (Talts et al. 2018). The line is the expected number of simulations in a bar.

    Args:
        found: what :func:`crowdppl.calibrate` returns.
        entries: columns of ``found.ranks`` to draw; by default up to 16, evenly chosen.
        bins: bars of each histogram.
        axes: axes to draw in, one for each entry; by default a new figure.

    Returns:
        The axes drawn in, shape (number of entries,).

    Raises:
        TypeError: it is something else.
        UnknownNameError: `entries` has a name that is no column of ``found.ranks``.
        ValueError: there is no entry to draw, or there are fewer axes than entries.
    """
    check_kind(found, Ranks, "cp.calibrate(…)")
    columns = list(found.ranks.columns)
    if entries is None:
        entries = [columns[i] for i in np.unique(np.linspace(0, len(columns) - 1, min(MOST, len(columns))).astype(int))]
    for name in entries:
        if name not in columns:
            raise unknown_name("entry", name, columns)
    if not entries:
        raise ValueError("entries=[] selects nothing; name at least one column of found.ranks, or leave entries out")
    drawn = given_axes(axes, len(entries), f"{len(entries)} entries")
    if drawn is None:
        drawn = _new_grid(len(entries))
        figure = drawn[0].figure
        figure.supxlabel(f"rank of the simulated value among {found.n_draws:,} draws", fontsize=9)
        figure.supylabel(f"simulations (of {len(found.ranks):,})", fontsize=9)
        figure.suptitle(
            f"Simulation-based calibration (band: {BAND:.0%} of the bars where ranks are uniform)", fontsize=TITLE
        )
    for ax, name in zip(drawn, entries, strict=True):
        _histogram(ax, found, name, bins)
    return drawn


def _new_grid(n_entries: int) -> np.ndarray:
    """Axes of a new figure, one for each entry."""
    from matplotlib import pyplot as plt

    width = min(4, n_entries)
    height = -(-n_entries // width)
    _, grid = plt.subplots(
        height, width, figsize=(2.6 * width + 0.4, 1.9 * height + 0.6), squeeze=False, layout="constrained"
    )
    for spare in grid.ravel()[n_entries:]:
        spare.set_axis_off()
    return grid.ravel()[:n_entries]


def _histogram(ax: Axes, found: Ranks, name: str, bins: int) -> None:
    """Draw one entry's ranks, with the band of uniform ones."""
    from scipy.stats import binom

    ranks = found.ranks[name].to_numpy()
    edges = np.ceil(np.linspace(0, found.n_draws + 1, bins + 1))
    shares = np.diff(edges) / (found.n_draws + 1)
    low, high = binom.ppf([(1 - BAND) / 2, (1 + BAND) / 2], len(ranks), shares.mean())
    counts, _ = np.histogram(ranks, bins=edges - 0.5)
    ax.bar(edges[:-1], counts, np.diff(edges), align="edge", color=faint(), edgecolor=paper(), linewidth=0.6)
    ax.axhspan(low, high, color=strong(), alpha=0.12, linewidth=0, zorder=0)
    ax.axhline(len(ranks) / bins, color=strong(), linewidth=0.9)
    ax.set_ylim(0, 1.2 * max(high, counts.max()))
    title(ax, name, 9)
    ax.set_xlim(0, found.n_draws + 1)
    whole_numbers(ax.yaxis)
    ax.tick_params(labelsize=8)
    clean(ax)
