"""Pictures of probabilities beside gold labels: how well they rank tasks, and whether they mean what they say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..fitted.intervals import INTERVAL
from ..scores.against_gold import Judged, judged
from ..scores.calibration import calibration_error, reliability
from ..scores.label_scores import roc
from .style import (
    DARK,
    LIGHT,
    LINES,
    PALETTE,
    axes_beside,
    clean,
    counted,
    legend,
    new_axes,
    short,
    title,
    whole_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_CURVES = len(PALETTE) * len(LINES)
MAX_WRITTEN = 12  # bars up to which their numbers are written on them


def plot_roc(source: Any, gold: Any = None, *, positive: object = None, ax: Axes | None = None) -> Axes:
    """Draw ROC curves of one or several fits: the share of a class that is found over that of the others taken for it.

    Gold tasks whose labels were told to a fit are left out of its curve.

    Args:
        source: a fit, a stack, a frame of probabilities (tasks × classes), or a mapping of names to these.
        gold: label by task (mapping, series or frame); None for the gold labels of the annotations.
        positive: the class that is looked for; of two the second by default, of more it must be named and is set
            against all others.
        ax: axes to draw in; by default a new figure.

    Returns:
        The axes.

    Raises:
        AnnotationError: there is no gold label to judge by.
        ValueError: nothing is given, or too many; `positive` is no class or is needed; or no gold task, or every one,
            is of the positive class.
        TypeError: one of the sources is something else.
    """
    sources = dict(source) if isinstance(source, Mapping) else {_name(source): source}
    if not 1 <= len(sources) <= MAX_CURVES:
        raise ValueError(f"{len(sources)} sources: 1 to {MAX_CURVES} curves can be told apart; give {{name: fit, …}}")
    found = {name: judged(one, gold) for name, one in sources.items()}
    curves = {name: roc(one, gold, positive=positive) for name, one in sources.items()}
    first = next(iter(found.values()))
    same = all(one.tasks.equals(first.tasks) for one in found.values())

    ax = new_axes(ax, 5.4, 5.2)
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle="--")
    for i, (name, curve) in enumerate(curves.items()):
        false, true = curve["false_positive_rate"], curve["true_positive_rate"]
        text = f"{short(name, 28)}: {np.trapezoid(true, false):.3f}"
        text += "" if same else f", {counted(len(found[name].gold), 'task')}"
        colour = DARK if len(curves) == 1 else PALETTE[i % len(PALETTE)]
        ax.plot(false, true, color=colour, linestyle=LINES[i % len(LINES)], linewidth=1.8, label=text)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    target = short(first.classes[first.position(positive)], 18)
    ax.set_xlabel(f"false positive rate: others taken for {target}", parse_math=False)
    ax.set_ylabel(f"true positive rate: {target} found", parse_math=False)
    clean(ax)
    legend(ax, loc="lower right", title="area under the curve")
    title(ax, f"How well {target} is told from the rest" + (f": {_gold_tasks(first)}" if same else ""))
    return ax


def plot_reliability(
    source: Any, gold: Any = None, *, bins: int = 10, interval: float = INTERVAL, ax: Axes | None = None
) -> Axes:
    """Draw how often labels are right over the probability that they are held for, with the diagonal of honest ones.

    Dots stand at the mean probability of their bin, with Jeffreys' intervals of the share that is right; below are the
    numbers of tasks. Above the diagonal labels are better than their probability, below it worse. Gold tasks whose
    labels were told to a fit are left out.

    Args:
        source: a fit, a stack, or a frame of probabilities, tasks × classes.
        gold: label by task (mapping, series or frame); None for the gold labels of the annotations.
        bins: how many bins of equal width there are between 0 and 1.
        interval: mass of the intervals, between 0 and 1.
        ax: axes to draw in, with room for the numbers of tasks below; by default a new figure.

    Returns:
        The axes.

    Raises:
        AnnotationError: there is no gold label to judge by.
        ValueError: `bins` is no whole number from 1, or `interval` is no mass.
        TypeError: the source is something else.
    """
    table = reliability(source, gold, bins, interval=interval)
    found = judged(source, gold)
    some = table[table["tasks"] > 0]
    ax = new_axes(ax, 5.4, 5.6)
    least = float(some["low"].min())
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=1, linestyle="--")
    ax.vlines(some["probability"], some["accuracy_low"], some["accuracy_high"], color=LIGHT, linewidth=3)
    ax.plot(some["probability"], some["accuracy"], color=DARK, linewidth=1, alpha=0.5)
    ax.scatter(some["probability"], some["accuracy"], s=40, color=DARK, edgecolor="white", zorder=3)
    lowest = min(least, float(some["accuracy_low"].min()))
    ax.set_xlim(least - 0.02, 1.02)
    ax.set_ylim(lowest - 0.02, 1.02)
    ax.set_ylabel(f"share of right labels, with {interval:.0%} intervals")
    clean(ax, grid="both")
    _draw_counts(ax, some)
    error = calibration_error(found, bins)
    title(ax, f"Labels are off their probability by {error:.3f} on average (ECE)\n{_gold_tasks(found)}", 10)
    return ax


def _draw_counts(ax: Axes, table: pd.DataFrame) -> None:
    """The numbers of tasks in the bins, below the axes."""
    below = axes_beside(ax, side="below", gap=0.15, size=0.75, sharex=ax)
    tasks = table["tasks"].to_numpy()
    bars = below.bar(table["low"], tasks, table["high"] - table["low"], align="edge", color=LIGHT, edgecolor="white")
    if len(tasks) <= MAX_WRITTEN:
        below.bar_label(bars, [f"{n:,}" for n in tasks], fontsize=7, padding=1)
        below.set_yticks([])
        below.set_ylim(0, 1.25 * tasks.max())
    else:
        whole_numbers(below.yaxis)
    ax.tick_params(axis="x", labelbottom=False)
    below.set_xlabel("probability of the label")
    below.set_ylabel("tasks")
    clean(below, hidden=("top", "right", "left") if len(tasks) <= MAX_WRITTEN else ("top", "right"))


def _name(source: Any) -> str:
    return str(getattr(source, "story", "probabilities"))


def _gold_tasks(found: Judged) -> str:
    told = f", {found.told:,} more were told" if found.told else ""
    return f"{counted(len(np.asarray(found.gold)), 'gold task')}{told}"
