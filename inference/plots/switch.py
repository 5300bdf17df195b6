"""The picture of how far annotations follow what all workers have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from ...data import unknown_name
from ..fitted.intervals import INTERVAL, checked_tail, of_draws
from ..results import Fit
from .ranking import NAMED, draw_named, draw_ranks, name_ends
from .style import title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BY = ("worker", "task")


def plot_switch(fit: Fit, *, by: str = "worker", interval: float = INTERVAL, ax: Axes | None = None) -> Axes:
    """Draw the probability that annotations follow the table that all have in common, from the greatest down.

    Up to 40 have a line with their name, more are drawn by rank; with intervals where the fit has draws.

    Args:
        fit: of a story that reports ``switch_by_worker`` or ``switch_by_task``, as ``common_individual`` does.
        by: ``"worker"`` or ``"task"``.
        interval: mass of the equal-tailed intervals, between 0 and 1.
        ax: axes to draw in; by default a new figure.

    Returns:
        The axes.

    Raises:
        UnknownNameError: `by` is neither of the two.
        ValueError: the story reports no such switch, nobody has an annotation, or `interval` is no mass.
    """
    if by not in BY:
        raise unknown_name("by", by, BY)
    checked_tail(interval)
    name = f"switch_by_{by}"
    if name not in fit.derived:
        raise ValueError(
            f"{fit.story} reports no {name}; fit common_individual, or report({name!r}, probabilities, {by!r}) in a "
            "story of your own"
        )
    draws = fit.derived_draws(name)[name].to_numpy().astype(float)
    ids = fit.annotations.workers if by == "worker" else fit.annotations.tasks
    table = pd.DataFrame({"value": draws.mean((0, 1))}, index=ids.to_index(by))
    if fit.has_draws:
        table["low"], table["high"] = of_draws(draws, interval)
    answered = table.dropna().sort_values("value", kind="stable")
    if answered.empty:
        raise ValueError(f"no {by} has an annotation, so there is no switch to draw")
    without = len(table) - len(answered)
    every = f"all {len(table):,} {by}s" if not without else f"{len(answered):,} {by}s; {without:,} have no annotation"
    measured = "P(common)" + (f", with {interval:.0%} intervals" if fit.has_draws else "")
    if len(answered) <= NAMED:
        ax = draw_named(ax, answered)
        ax.set_xlim(-0.02, 1.02)
        ax.set_xlabel(measured)
        ax.set_ylabel(by)
    else:
        ax = draw_ranks(ax, answered)
        ax.set_ylim(-0.02, 1.02)
        ax.set_xlabel(f"rank of the {by}")
        ax.set_ylabel(measured)
    title(ax, f"How far annotations follow the common table: {every}")
    if len(answered) > NAMED:
        name_ends(ax, answered)
    return ax
