"""Histograms of ranks, with the band of uniform ones: of a simulation-based calibration, and of draws by chain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data.arrays import midranks
from ...data.errors import check_name
from ..checks.simulation_based_calibration import Ranks
from . import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 16  # parameters' entries in one picture
BAND = 0.99  # share of a uniform histogram's bars that lie in the band
BINS = 20  # of the ranks of a chain's draws


def plot_ranks(
    found: Ranks, *, entries: list[str] | None = None, bins: int = 10, axes: Any = None, ax: Any = None
) -> np.ndarray:
    """Draw a histogram of ranks for each entry, with the band that holds 99 % of the bars where ranks are uniform.

    A rank is the number of posterior draws below the value that the data were simulated with; ranks are uniform where
    the sampler and the story are right (Talts et al. 2018). The line is the expected number of simulations in a bar.

    Args:
        found: what :func:`crowdppl.calibrate` returns.
        entries: columns of ``found.ranks`` to draw; by default up to 16, evenly chosen.
        bins: bars of each histogram.
        axes: axes to draw in, one for each entry; by default a new figure.
        ax: the same where one is drawn.

    Returns:
        The axes drawn in, shape (number of entries,).

    Raises:
        TypeError: it is something else.
        UnknownNameError: `entries` has a name that is no column of ``found.ranks``.
        ValueError: there is no entry to draw, or there are fewer axes than entries.
    """
    style.check_kind(found, Ranks, "cp.calibrate(…)")
    columns = list(found.ranks.columns)
    if entries is None:
        entries = [columns[i] for i in np.unique(np.linspace(0, len(columns) - 1, min(MOST, len(columns))).astype(int))]
    for name in entries:
        check_name("entry", name, columns)
    if not entries:
        raise ValueError("entries=[] selects nothing; name at least one column of found.ranks, or leave entries out")
    drawn = style.given_axes(axes, ax, len(entries), f"{len(entries)} entries")
    if drawn is None:
        drawn = style.new_grid(len(entries), 4, (2.6, 1.9), (0.4, 0.6))
        figure = drawn[0].figure
        figure.supxlabel(f"rank of the simulated value among {found.n_draws:,} draws", fontsize=9)
        figure.supylabel(f"simulations (of {len(found.ranks):,})", fontsize=9)
        style.figure_title(
            figure, f"Simulation-based calibration (band: {BAND:.0%} of the bars where ranks are uniform)"
        )
    for panel, name in zip(drawn, entries, strict=True):
        ranks = found.ranks[name].to_numpy()
        edges = np.ceil(np.linspace(0, found.n_draws + 1, bins + 1))
        counts, _ = np.histogram(ranks, bins=edges - 0.5)
        panel.bar(
            edges[:-1],
            counts,
            np.diff(edges),
            align="edge",
            color=style.faint(),
            edgecolor=style.paper(),
            linewidth=0.6,
        )
        share = float((np.diff(edges) / (found.n_draws + 1)).mean())
        _frame(panel, (0, found.n_draws + 1), counts, len(ranks), share, style.strong())
        panel.axhline(len(ranks) / bins, color=style.strong(), linewidth=0.9)
        style.title(panel, name, 9)
    return drawn


def draw_chain_ranks(draws: Mapping[str, np.ndarray]) -> np.ndarray:
    """Draw a panel for each quantity: a histogram for each chain of its draws' ranks among those of all chains.

    Where chains sample the same distribution, ranks are uniform in each (Vehtari et al. 2021, section 5). The band
    holds 99 % of the bars of independent draws.

    Args:
        draws: ``(chain, draw)`` of each quantity, by name.

    Returns:
        The axes, one for each quantity.
    """
    drawn = style.new_grid(len(draws), 3, (3.3, 2.1), (0.3, 0.7))
    for ax, (name, values) in zip(drawn, draws.items(), strict=True):
        ranks = midranks(values.ravel()).reshape(values.shape)
        edges = np.linspace(0.5, values.size + 0.5, BINS + 1)
        counts = np.stack([np.histogram(of_chain, edges)[0] for of_chain in ranks])
        for chain, of_chain in enumerate(counts):
            colour = style.palette()[chain % len(style.PALETTE)]
            ax.stairs(of_chain, edges, color=colour, linewidth=1.1, baseline=None, label=f"chain {chain + 1}")
        _frame(ax, (edges[0], edges[-1]), counts, values.shape[1], 1 / BINS, "0.4")
        style.title(ax, style.short(name, 48), 8)
    figure = drawn[0].figure
    figure.supxlabel("rank among the draws of all chains", fontsize=9)
    figure.supylabel(f"draws (of {values.shape[1]:,} a chain)", fontsize=9)
    handles, names = drawn[0].get_legend_handles_labels()
    figure.legend(
        handles, names, loc="outside upper center", ncols=min(len(names), 7), frameon=False, fontsize=style.SMALL
    )
    return drawn


def _frame(ax: Axes, ends: tuple[float, float], counts: np.ndarray, n: int, share: float, colour: str) -> None:
    """Draw the band of uniform ranks behind a histogram, and set its limits.

    Args:
        ends: of the ranks' axis.
        counts: of all bars.
        n: ranks of which each bar counts its share.
        share: of the ranks that a bar holds where they are uniform.
        colour: of the band.
    """
    from scipy.stats import binom

    low, high = binom.ppf([(1 - BAND) / 2, (1 + BAND) / 2], n, share)
    ax.axhspan(low, high, color=colour, alpha=0.12, linewidth=0, zorder=0)
    ax.set_xlim(*ends)
    ax.set_ylim(0, 1.2 * max(high, counts.max()))
    style.whole_numbers(ax.yaxis)
    ax.tick_params(labelsize=style.SMALL)
    style.clean(ax)
