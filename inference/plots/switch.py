"""The plot of how often annotations follow what all workers have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from ...data import unknown_name
from ..fitted.intervals import INTERVAL, checked_tail, of_draws
from ..fitted.posterior import Posterior, fitted_of
from .ranking import NAMED, draw_named, draw_ranks, name_ends
from .style import title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BY = ("worker", "task")


def plot_switch(fit: Posterior, *, by: str = "worker", interval: float = INTERVAL, ax: Axes | None = None) -> Axes:
    """Draw the probability that annotations follow the confusion matrix that all workers have in common, P(common).

    Up to 40 workers or tasks have a row each with their name, the greatest first; more are drawn by rank. Intervals are
    drawn where the fit has draws.

    Args:
        fit: a fit of a story that derives a quantity with the role ``"switch"`` by worker or by task, such as
            ``common_individual``.
        by: ``"worker"`` or ``"task"``.
        interval: mass of the equal-tailed credible intervals, between 0 and 1.
        ax: axes to draw in; by default a new figure.

    Returns:
        The axes.

    Raises:
        UnknownNameError: `by` is neither of the two.
        ValueError: the story derives no such switch, no worker or task has an annotation, or `interval` is not between
            0 and 1.
    """
    if by not in BY:
        raise unknown_name("by", by, BY)
    checked_tail(interval)
    fitted = fitted_of(fit)
    switches = [values for values in fitted.draws_of_role("switch") if values.dims[2:] == (by,)]
    if not switches:
        raise ValueError(
            f"{fitted.story} derives no switch by {by}; fit common_individual, or derived('switch_by_{by}', "
            f"probabilities, {by!r}, role='switch') in a story of your own"
        )
    draws = switches[0].to_numpy().astype(float)
    ids = fitted.annotations.workers if by == "worker" else fitted.annotations.tasks
    table = pd.DataFrame({"value": draws.mean((0, 1))}, index=ids.to_index(by))
    if fitted.has_draws:
        table["low"], table["high"] = of_draws(draws, interval)
    annotated = table.dropna().sort_values("value", kind="stable")
    if annotated.empty:
        raise ValueError(f"no {by} has an annotation, so there is no switch to draw")
    without = len(table) - len(annotated)
    every = f"all {len(table):,} {by}s" if not without else f"{len(annotated):,} {by}s; {without:,} have no annotation"
    measured = "P(common)" + (f", with {interval:.0%} credible intervals" if fitted.has_draws else "")
    if len(annotated) <= NAMED:
        ax = draw_named(ax, annotated)
        ax.set_xlim(-0.02, 1.02)
        ax.set_xlabel(measured)
        ax.set_ylabel(by)
    else:
        ax = draw_ranks(ax, annotated)
        ax.set_ylim(-0.02, 1.02)
        ax.set_xlabel(f"rank of the {by}")
        ax.set_ylabel(measured)
    title(ax, f"Probability of following the common confusion matrix\n{every}")
    if len(annotated) > NAMED:
        name_ends(ax, annotated)
    return ax
