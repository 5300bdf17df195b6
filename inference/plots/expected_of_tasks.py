"""The plot of tasks of ordered classes by their expected scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..fitted.expected_scores import expected_scores
from ..fitted.intervals import INTERVAL
from ..fitted.posterior import Posterior
from .ranking import NAMED, draw_named, draw_ranks, name_ends
from .style import short, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_TICKS = 15  # classes up to which each is named on the axis of scores


def plot_expected(fit: Posterior, *, ax: Axes | None = None, interval: float = INTERVAL) -> Axes:
    """Draw the expected score of each task of ordered classes, the greatest first, with the interval of its true class.

    More than 40 tasks are drawn by rank, as one line over their intervals. The axis of scores names the classes.

    Args:
        fit: a fit, or a stack of fits, of ordered classes.
        ax: axes to draw in; by default a new figure.
        interval: mass of the equal-tailed credible intervals, between 0 and 1.

    Returns:
        The axes.

    Raises:
        AnnotationError: the classes have no order; the message says how to state one.
        ValueError: `interval` is not between 0 and 1.

    Examples:
        >>> import crowdppl as cp
        >>> fit = cp.fit("dawid_skene", cp.load_dataset("anesthesia"), progress=False)
        >>> ax = cp.plot_expected(fit)
        >>> [text.get_text() for text in ax.get_yticklabels()]
        ['1', '2', '3', '4']
    """
    kind, classes = fit.annotations.kind, list(fit.annotations.classes)
    values = kind.values(classes)
    names = {"expected": "value", "expected_low": "low", "expected_high": "high"}
    scores = expected_scores(fit.probabilities, kind, interval)
    table = scores[list(names)].rename(columns=names).sort_values("value", kind="stable")
    by_rank = len(table) > NAMED
    ax = draw_ranks(ax, table) if by_rank else draw_named(ax, table)
    title(ax, f"Expected scores of {len(table):,} tasks\nwith {interval:.0%} credible intervals of the true class")
    scored, ranked = ("y", "x") if by_rank else ("x", "y")
    if len(classes) <= MOST_TICKS:
        ax.set(**{f"{scored}ticks": values, f"{scored}ticklabels": [short(name, 18) for name in classes]})
    ax.set(**{f"{scored}label": "expected score", f"{ranked}label": "rank of the task" if by_rank else "task"})
    if by_rank:
        name_ends(ax, table)
    return ax
