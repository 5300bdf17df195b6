"""Numbers with intervals, the greatest first: each in a row with its name where they are few, else by rank."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ...data.description import count_text
from ...data.errors import check_name
from ...data.kinds import Kind
from ...data.questions import QUESTION
from ..fitted.decisions import expected_scores
from ..fitted.intervals import INTERVAL, checked_tail, of_draws
from ..fitted.item_ranking import item_ranking
from ..fitted.posterior import Posterior, fitted_of
from . import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMED = 40  # rows up to which each has a line with its name
MARKED = 200  # ranks up to which each has a marker; beyond it markers would be one line
SEPARATE = 400  # ranks up to which each has its own interval, beyond it they make up a band
MOST_TICKS = 15  # classes up to which each is named on the axis of scores
GAPS = 30  # a gap between two parts is one of so many of all ranks, and less wide between many parts
PANELS = 2  # questions beside each other
BY = ("worker", "task")  # of a switch


def plot_ranking(fit: Posterior, *, ax: Axes | None = None, interval: float = INTERVAL) -> Axes:
    """Draw the scores of compared items, the best first, with credible intervals.

    More than 40 items are drawn by rank, as one line over their intervals. Parts that no comparison joins are drawn
    apart, each under its name, as their scores cannot be compared.

    Args:
        fit: of comparisons, with scores of items as the prior of the truth.
        ax: axes to draw in; by default a new figure.
        interval: mass of the equal-tailed credible intervals, between 0 and 1.

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
    heading = f"Ranking of {len(table):,} items\nwith {interval:.0%} credible intervals"
    about: dict[str, Any] = {"of": "item", "measured": "score (log-odds of the true label)"}
    if "part" not in scores:
        return draw_ordered(ax, table, heading=heading, **about)
    sizes = scores.groupby("part").size()
    heading += f", within {len(sizes):,} parts that no comparison joins"
    about["by_rank"] = len(table) > NAMED
    gap = max(1, len(table) // max(GAPS, 5 * len(sizes))) if about["by_rank"] else 1
    headings = [f"part {part:,} ({count_text(size, 'item')})" for part, size in sizes.items()]
    ends = np.cumsum(sizes.to_numpy() + gap)  # of the rows of each part, from the top, with the gap above
    apart = pd.DataFrame(np.nan, index=range(ends[-1]), columns=table.columns)
    is_item = np.concatenate([np.arange(size + gap) >= gap for size in sizes])
    apart.loc[is_item] = table.iloc[::-1].to_numpy()
    labels = np.full(ends[-1], "", dtype=object)
    labels[is_item], labels[ends - sizes.to_numpy() - gap] = table.index[::-1], headings
    if about["by_rank"]:
        ax = draw_ordered(ax, apart.set_axis(labels).iloc[gap:].iloc[::-1], heading=heading, **about)
        _name_parts(ax, headings, ends - gap - sizes.to_numpy() + 1, sizes.to_numpy())
        return ax
    ax = draw_ordered(ax, apart.set_axis(labels).iloc[::-1], heading=heading, **about)
    for tick in np.array(ax.get_yticklabels(), dtype=object)[~is_item[::-1]]:
        tick.set(weight="bold")
    return ax


def _name_parts(ax: Axes, names: list[str], first: np.ndarray, sizes: np.ndarray) -> None:
    """Write the name of each of the largest parts above its ranks, which count from 1 in each."""
    shown = [number for number, size in enumerate(sizes) if size * 10 >= sizes.sum()]
    for number in shown:
        middle = first[number] + (sizes[number] - 1) / 2
        ax.text(middle, 1, names[number], transform=ax.get_xaxis_transform(), ha="center", va="top", fontsize=8)
    ticks = {int(first[number] + place - 1): place for number in shown for place in (1, sizes[number])}
    ax.set_xticks(list(ticks), [f"{place:,}" for place in ticks.values()])
    ax.set_xlabel("rank of the item within its part")


def plot_expected(fit: Posterior, *, ax: Any = None, axes: Any = None, interval: float = INTERVAL) -> Any:
    """Draw the expected score of each task of ordered classes, the greatest first, with the interval of its true class.

    More than 40 tasks are drawn by rank, as one line over their intervals. The axis of scores names the classes. Of
    several questions a task each that has ordered classes has axes of its own.

    Args:
        fit: a fit, or a stack of fits, of ordered classes.
        ax: axes to draw in; by default a new figure.
        axes: of several questions, one for each that is ordered.
        interval: mass of the equal-tailed credible intervals, between 0 and 1.

    Returns:
        The axes, of several questions an array of them.

    Raises:
        AnnotationError: the classes have no order, or those of no question; the message says how to state one.
        ValueError: `interval` is not between 0 and 1, or there are fewer axes than questions.

    Examples:
        >>> import crowdppl as cp
        >>> fit = cp.fit("dawid_skene", cp.load_dataset("anesthesia"), progress=False)
        >>> ax = cp.plot_expected(fit)
        >>> [text.get_text() for text in ax.get_yticklabels()]
        ['1', '2', '3', '4']
    """
    annotations = fit.annotations
    names = {"expected": "value", "expected_low": "low", "expected_high": "high"}
    scores = expected_scores(fit.probabilities, annotations.kind, interval)[list(names)].rename(columns=names)
    asked = [name for name in annotations.questions if annotations.question_classes(name)[1].in_order]
    if not asked:
        drawn = style.given_axes(axes, ax, 1, "tasks")
        return _draw_expected(
            None if drawn is None else drawn[0], scores, annotations.kind, list(annotations.classes), interval
        )
    drawn = style.given_axes(axes, ax, len(asked), f"{len(asked)} questions with ordered classes")
    if drawn is None:
        drawn = style.new_grid(len(asked), PANELS, (6.5, 3.8), (0, 0))
    for panel, name in zip(drawn, asked, strict=True):
        chosen, kind = annotations.question_classes(name)
        classes, said = [annotations.classes[int(k)] for k in chosen], f"{style.short(name, 30)}: expected scores"
        own = scores[scores.index.get_level_values(QUESTION) == name].droplevel(QUESTION)
        _draw_expected(panel, own, kind, classes, interval, said)
    return drawn


def _draw_expected(
    ax: Axes | None,
    scores: pd.DataFrame,
    kind: Kind,
    classes: list[Any],
    interval: float,
    said: str = "Expected scores",
) -> Axes:
    """Draw the expected scores of the tasks of one question."""
    named: dict[str, Any] = {}
    if len(classes) <= MOST_TICKS:
        named = {"ticks": kind.values(classes), "ticklabels": [style.short(name, 18) for name in classes]}
    heading = f"{said} of {len(scores):,} tasks\nwith {interval:.0%} credible intervals of the true class"
    table = scores.sort_values("value", kind="stable")
    return draw_ordered(ax, table, of="task", measured="expected score", heading=heading, **named)


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

    Raises:
        UnknownNameError: `by` is neither of the two.
        ValueError: the story derives no such switch, no worker or task has an annotation, or `interval` is not between
            0 and 1.
    """
    check_name("by", by, BY)
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
    heading = f"Probability of following the common confusion matrix\n{every}"
    return draw_ordered(ax, annotated, of=by, measured=measured, heading=heading, lim=(-0.02, 1.02))


def draw_ordered(
    ax: Axes | None,
    table: pd.DataFrame,
    *,
    of: str,
    measured: str,
    heading: str,
    sizes: np.ndarray | float = 36.0,
    by_rank: bool | None = None,
    **axis: Any,
) -> Axes:
    """Draw numbers with their names, or by rank, with a title and what is on the axes.

    Args:
        ax: axes to draw in; None for a new figure.
        table: ``value`` in ascending order with the names as index; ``low`` and ``high`` where there are intervals.
        of: the noun for what has a number.
        measured: what the number is.
        sizes: areas of the dots beside names.
        by_rank: whether to draw by rank; None for more than :data:`NAMED`.
        axis: of the axis of the numbers: ``lim``, ``ticks``, ``ticklabels``.
    """
    by_rank = len(table) > NAMED if by_rank is None else by_rank
    ax = draw_ranks(ax, table) if by_rank else draw_named(ax, table, sizes)
    scored, ranked = ("y", "x") if by_rank else ("x", "y")
    ax.set(**{f"{scored}{name}": value for name, value in axis.items()})
    ax.set(**{f"{scored}label": measured, f"{ranked}label": f"rank of the {of}" if by_rank else of})
    style.title(ax, heading)
    if by_rank:
        name_ends(ax, table)
    return ax


def draw_named(ax: Axes | None, table: pd.DataFrame, sizes: np.ndarray | float = 36.0) -> Axes:
    """Draw a row with a name for each number, the greatest at the top.

    Args:
        ax: axes to draw in; None for a new figure as high as the rows need.
        table: ``value`` in ascending order with the names as index; ``low`` and ``high`` where there are intervals.
        sizes: areas of the dots.
    """
    ax = style.new_axes(ax, 6.5, 1.3 + 0.2 * max(len(table), 5))
    rows = np.arange(len(table))
    if "low" in table:
        ax.hlines(rows, table["low"], table["high"], color=style.strong(), alpha=0.45, linewidth=1.6)
    ax.scatter(table["value"], rows, s=sizes, color=style.strong(), edgecolor=style.paper(), zorder=3)
    style.name_rows(ax, table.index, 24, 7)
    ax.set_ylim(-0.8, len(table) - 0.2)
    return ax


def draw_ranks(ax: Axes | None, table: pd.DataFrame) -> Axes:
    """Draw numbers by rank, from the greatest on the left, over their intervals; the first and the last are named.

    Args:
        ax: axes to draw in; None for a new figure.
        table: as for :func:`draw_named`.
    """
    ax = style.new_axes(ax, 7, 3.8)
    table = table.iloc[::-1]
    ranks = np.arange(1, len(table) + 1)
    if "low" in table and len(table) <= SEPARATE:
        ax.vlines(
            ranks, table["low"], table["high"], color=style.faint(), linewidth=min(3.0, max(0.6, 240 / len(table)))
        )
    elif "low" in table:
        ax.fill_between(ranks, table["low"], table["high"], color=style.faint(), linewidth=0, step="mid")
    few = len(table) <= MARKED
    ax.plot(ranks, table["value"], color=style.strong(), linewidth=1.0 if few else 1.8, solid_capstyle="round")
    if few:
        ax.scatter(
            ranks,
            table["value"],
            s=float(np.clip(1800 / len(table), 9, 26)),
            color=style.strong(),
            edgecolor=style.paper(),
            linewidth=0.5,
            zorder=3,
        )
    margin = 0.02 * len(table)
    ax.set_xlim(1 - margin, len(table) + margin)
    style.clean(ax, grid="y")
    style.whole_numbers(ax.xaxis)
    ends = table["value"].iloc[[0, -1]]
    ax.scatter(ranks[[0, -1]], ends, s=22, color=style.strong(), edgecolor=style.paper(), zorder=3)
    return ax


def name_ends(ax: Axes, table: pd.DataFrame) -> None:
    """Name the first and the last of :func:`draw_ranks`, once the limits of ``ax`` are final."""
    ends = table["value"].iloc[[-1, 0]]
    line = np.column_stack([np.arange(1, len(table) + 1), table["value"].iloc[::-1]])
    line = line[~np.isnan(line[:, 1])]
    style.name_points(ax, [1, len(table)], ends, ends.index, avoid=line)
