"""Plots of label probabilities against gold labels: ROC curves and reliability diagrams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ...data.description import count_text
from ..fitted.intervals import INTERVAL
from ..fitted.posterior import Posterior
from ..scores.against_gold import GoldTasks, against_gold
from ..scores.calibration import calibration_error, reliability
from ..scores.label_scores import roc
from . import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_CURVES = len(style.PALETTE) * len(style.LINES)
MAX_WRITTEN = 12  # bars up to which their numbers are written on them


def plot_roc(source: Any, gold: Any = None, *, positive: object = None, ax: Axes | None = None) -> Axes:
    """Draw ROC curves of one or several fits: the true over the false positive rate of a class, by threshold.

    Gold tasks whose gold labels a fit was given are left out of its curve.

    Args:
        source: a fit, a stack, a frame of probabilities (N tasks × K classes), or a mapping of names to these.
        gold: label by task (mapping, series or frame); None for the gold labels of the annotations.
        positive: the positive class; of two classes the second by default, of more it must be named, and all others
            are negative.
        ax: axes to draw in; by default a new figure.

    Raises:
        AnnotationError: there is no gold label to score by.
        ValueError: there are no sources, or more than 28; `positive` is no class, or is missing; or no gold task, or
            every one, is of the positive class.
        TypeError: a source is neither a fit nor a stack nor a frame.
    """
    sources = dict(source) if isinstance(source, Mapping) else {_name(source): source}
    if not 1 <= len(sources) <= MAX_CURVES:
        raise ValueError(f"{len(sources)} sources: 1 to {MAX_CURVES} curves can be told apart; give {{name: fit, …}}")
    found = {name: against_gold(one, gold) for name, one in sources.items()}
    curves = {name: roc(one, gold, positive=positive) for name, one in sources.items()}
    first = next(iter(found.values()))
    same = all(one.tasks.equals(first.tasks) for one in found.values())

    ax = style.new_axes(ax, 5.4, 5.2)
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle="--", label="chance: 0.500")
    for i, (name, curve) in enumerate(curves.items()):
        false, true = curve["false_positive_rate"], curve["true_positive_rate"]
        text = f"{style.short(name, 28)}: {np.trapezoid(true, false):.3f}"
        text += "" if same else f", {count_text(len(found[name].gold), 'task')}"
        colour = style.strong() if len(curves) == 1 else style.palette()[i % len(style.PALETTE)]
        ax.plot(false, true, color=colour, linestyle=style.LINES[i % len(style.LINES)], linewidth=1.8, label=text)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    target = style.short(first.classes[first.position(positive)], 18)
    ax.set_xlabel(f"false positive rate: share of the other classes labelled {target}", parse_math=False)
    ax.set_ylabel(f"true positive rate: share of {target} labelled {target}", parse_math=False)
    style.clean(ax)
    style.legend(ax, loc="lower right", title="area under the curve")
    heading = f"ROC curve{'' if len(curves) == 1 else 's'} of class {target}"
    style.title(ax, f"{heading}: {_gold_tasks(first)}" if same else heading)
    return ax


def plot_reliability(
    source: Any, gold: Any = None, *, bins: int = 10, interval: float = INTERVAL, ax: Axes | None = None
) -> Axes:
    """Draw a reliability diagram: the share of labels that are right over their probability, in bins.

    Dots stand at the mean probability of their bin, with Jeffreys' intervals of the share that is right; below are the
    numbers of tasks. On the diagonal labels are calibrated; above it they are right more often than their probability
    says, below it less often. Gold tasks whose gold labels the fit was given are left out.

    Args:
        source: a fit, a stack, or a frame of probabilities (N tasks × K classes).
        gold: label by task (mapping, series or frame); None for the gold labels of the annotations.
        bins: number of bins of equal width between 0 and 1.
        interval: mass of the equal-tailed intervals, between 0 and 1.
        ax: axes to draw in, with room for the numbers of tasks below; by default a new figure.

    Raises:
        AnnotationError: there is no gold label to score by.
        ValueError: `bins` is no whole number from 1, or `interval` is not between 0 and 1.
        TypeError: `source` is neither a fit nor a stack nor a frame.
    """
    table = reliability(source, gold, bins, interval=interval)
    found = against_gold(source, gold)
    some = table[table["tasks"] > 0]
    ax = style.new_axes(ax, 5.4, 5.6)
    least = float(some["low"].min())
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle="--", label="calibrated")
    bounds = some["accuracy_low"], some["accuracy_high"]
    ax.vlines(some["probability"], *bounds, color=style.faint(), linewidth=3, label=f"{interval:.0%} credible interval")
    ax.plot(some["probability"], some["accuracy"], color=style.strong(), linewidth=1, alpha=0.5)
    ax.scatter(
        some["probability"],
        some["accuracy"],
        s=40,
        color=style.strong(),
        edgecolor=style.paper(),
        zorder=3,
        label="labels of a bin",
    )
    lowest = min(least, float(some["accuracy_low"].min()))
    ax.set_xlim(least - 0.02, 1.02)
    ax.set_ylim(lowest - 0.02, 1.02)
    ax.set_ylabel("share of labels that are right")
    style.clean(ax, grid="both")
    _draw_counts(ax, some)
    error = calibration_error(found, bins)
    style.legend(ax, loc="lower center", bbox_to_anchor=(0.5, 0.99), ncols=3, fontsize=7.5)
    style.title(ax, f"Expected calibration error {error:.3f}\n{_gold_tasks(found)}", 10, pad=22)
    return ax


def _draw_counts(ax: Axes, table: pd.DataFrame) -> None:
    """Draw the numbers of tasks in the bins below the axes."""
    below = style.axes_beside(ax, side="below", gap=0.15, size=0.75, sharex=ax)
    tasks = table["tasks"].to_numpy()
    bars = below.bar(
        table["low"], tasks, table["high"] - table["low"], align="edge", color=style.faint(), edgecolor=style.paper()
    )
    if len(tasks) <= MAX_WRITTEN:
        below.bar_label(bars, [f"{n:,}" for n in tasks], fontsize=7, padding=1)
        below.set_yticks([])
        below.set_ylim(0, 1.25 * tasks.max())
    else:
        style.whole_numbers(below.yaxis)
    ax.tick_params(axis="x", labelbottom=False)
    below.set_xlabel("probability of the label")
    below.set_ylabel("tasks")
    style.clean(below, hidden=("top", "right", "left") if len(tasks) <= MAX_WRITTEN else ("top", "right"))


def _name(source: Any) -> str:
    if isinstance(source, Posterior) and source.is_average:
        return "average"
    return str(getattr(source, "story", "probabilities"))


def _gold_tasks(found: GoldTasks) -> str:
    """Return the number of scored gold tasks, and of gold tasks left out because the fit knew their labels."""
    told = f"; the fit was given {found.gold_used:,} more" if found.gold_used else ""
    return f"{count_text(len(np.asarray(found.gold)), 'gold task')}{told}"
