"""The plot of ranks of draws by chain, which shows chains that do not agree."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .style import PALETTE, SMALL, clean, palette, short, title

BINS = 20
BAND = 0.99  # share of the bars of chains that agree which lie in the band
COLUMNS = 3


def draw_chain_ranks(draws: Mapping[str, np.ndarray]) -> np.ndarray:
    """Draw a panel for each quantity: a histogram for each chain of its draws' ranks among those of all chains.

    Where chains sample the same distribution, ranks are uniform in each (Vehtari et al. 2021, section 5). The band
    holds 99 % of the bars of independent draws.

    Args:
        draws: ``(chain, draw)`` of each quantity, by name.

    Returns:
        The axes, one for each quantity.
    """
    import matplotlib.pyplot as plt
    from scipy.stats import binom, rankdata

    rows, columns = -(-len(draws) // COLUMNS), min(COLUMNS, len(draws))
    size = (3.3 * columns + 0.3, 2.1 * rows + 0.7)
    figure, grid = plt.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False)
    for spare in grid.ravel()[len(draws) :]:
        spare.remove()
    drawn = grid.ravel()[: len(draws)]
    for ax, (name, values) in zip(drawn, draws.items(), strict=True):
        n_chains, n_draws = values.shape
        ranks = rankdata(values, axis=None).reshape(values.shape)
        edges = np.linspace(0.5, values.size + 0.5, BINS + 1)
        low, high = binom.ppf([(1 - BAND) / 2, (1 + BAND) / 2], n_draws, 1 / BINS)
        ax.axhspan(low, high, color="0.9", linewidth=0, zorder=0)
        highest = high
        for chain in range(n_chains):
            counts, _ = np.histogram(ranks[chain], edges)
            highest = max(highest, counts.max())
            colour = palette()[chain % len(PALETTE)]
            ax.stairs(counts, edges, color=colour, linewidth=1.1, baseline=None, label=f"chain {chain + 1}")
        ax.set_xlim(edges[0], edges[-1])
        ax.set_ylim(0, 1.15 * highest)
        title(ax, short(name, 48), 8)
        ax.tick_params(labelsize=SMALL)
        clean(ax)
    figure.supxlabel("rank among the draws of all chains", fontsize=9)
    figure.supylabel(f"draws (of {n_draws:,} a chain)", fontsize=9)
    handles, names = drawn[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=min(len(names), 7), frameon=False, fontsize=SMALL)
    return drawn
