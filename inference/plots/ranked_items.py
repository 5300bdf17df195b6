"""The plot of compared items by their scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..fitted.intervals import INTERVAL
from ..fitted.item_ranking import item_ranking
from ..fitted.posterior import Posterior
from .ranking import NAMED, draw_named, draw_ranks, name_ends
from .style import title

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_ranking(fit: Posterior, *, ax: Axes | None = None, interval: float = INTERVAL) -> Axes:
    """Draw the scores of compared items, the best first, with credible intervals.

    More than 40 items are drawn by rank, as one line over their intervals.

    Args:
        fit: of comparisons, with scores of items as the prior of the truth.
        ax: axes to draw in; by default a new figure.
        interval: mass of the equal-tailed credible intervals, between 0 and 1.

    Returns:
        The axes.

    Raises:
        AnnotationError: the annotations are no comparisons, or the fit gives items no scores.
        ValueError: `interval` is not between 0 and 1.

    Examples:
        >>> import crowdppl as cp, pandas as pd
        >>> rows = [("x", "y", w, "left") for w in "abc"] + [("y", "z", w, "left") for w in "ab"]
        >>> frame = pd.DataFrame(rows, columns=["left", "right", "worker", "label"])
        >>> annotations = cp.Annotations.from_comparisons(frame, classes=["left", "right"])
        >>> ax = cp.plot_ranking(cp.fit("one_coin", annotations, progress=False))
        >>> [text.get_text() for text in ax.get_yticklabels()]
        ['z', 'y', 'x']
    """
    scores = item_ranking(fit, interval)
    names = {"score": "value", "score_low": "low", "score_high": "high"}
    table = scores[list(names)].rename(columns=names).iloc[::-1]
    measured = "score (log-odds)"
    by_rank = len(table) > NAMED
    ax = draw_ranks(ax, table) if by_rank else draw_named(ax, table)
    title(ax, f"Ranking of {len(table):,} items\nwith {interval:.0%} credible intervals")
    if by_rank:
        ax.set_xlabel("rank of the item")
        ax.set_ylabel(measured)
        name_ends(ax, table)
    else:
        ax.set_ylabel("item")
        ax.set_xlabel(measured)
    return ax
