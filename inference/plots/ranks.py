"""The picture of a simulation-based calibration: histograms of ranks, in the band that uniform ranks stay in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import binom

from ..checks.simulation_based_calibration import Ranks
from .style import DARK, LIGHT, clean, given_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 16  # parameters' entries in one picture
BAND = 0.99  # share of a uniform histogram's bars that lie in the band


def plot_ranks(found: Ranks, *, entries: list[str] | None = None, bins: int = 10, axes: Any = None) -> np.ndarray:
    """Draw a histogram of ranks for each entry, over the band in which 99 % of the bars lie where ranks are uniform.

    Args:
        found: of :func:`~crowdppl.calibrate`.
        entries: columns of ``found.ranks`` to draw; by default up to 16, evenly chosen.
        bins: bars of each histogram.
        axes: axes to draw in, one an entry; by default a new figure.

    Returns:
        the axes drawn in.

    Raises:
        ValueError: nothing is to be drawn, an entry is unknown, or there are too few axes.
    """
    columns = list(found.ranks.columns)
    if entries is None:
        entries = [columns[i] for i in np.unique(np.linspace(0, len(columns) - 1, min(MOST, len(columns))).astype(int))]
    unknown = [name for name in entries if name not in columns]
    if unknown or not entries:
        raise ValueError(f"entries={entries}: some of {columns[:5]} … are needed")
    drawn = given_axes(axes, len(entries), f"{len(entries)} entries")
    if drawn is None:
        drawn = _new_grid(len(entries))
    for ax, name in zip(drawn, entries, strict=True):
        _histogram(ax, found, name, bins)
    return drawn


def _new_grid(n_entries: int) -> np.ndarray:
    from matplotlib import pyplot as plt

    width = min(4, n_entries)
    height = -(-n_entries // width)
    _, grid = plt.subplots(height, width, figsize=(2.6 * width, 1.9 * height), squeeze=False, layout="constrained")
    for spare in grid.ravel()[n_entries:]:
        spare.set_axis_off()
    return grid.ravel()[:n_entries]


def _histogram(ax: Axes, found: Ranks, name: str, bins: int) -> None:
    ranks = found.ranks[name].to_numpy()
    edges = np.ceil(np.linspace(0, found.n_draws + 1, bins + 1))
    shares = np.diff(edges) / (found.n_draws + 1)
    low, high = binom.ppf([(1 - BAND) / 2, (1 + BAND) / 2], len(ranks), shares.mean())
    counts, _ = np.histogram(ranks, bins=edges - 0.5)
    ax.bar(edges[:-1], counts, np.diff(edges), align="edge", color=LIGHT, edgecolor="white", linewidth=0.6)
    ax.axhspan(low, high, color=DARK, alpha=0.12, linewidth=0)
    ax.axhline(len(ranks) / bins, color=DARK, linewidth=0.9)
    ax.set_ylim(0, 1.2 * max(high, counts.max()))
    ax.set_title(name, fontsize=9)
    ax.set_xlim(0, found.n_draws + 1)
    ax.set_yticks([])
    ax.tick_params(labelsize=8)
    clean(ax, hidden=("left", "right", "top"))
