"""The picture of how good workers are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ...data import unknown_name
from ..fitted.intervals import INTERVAL
from ..fitted.labelled import Labelled
from ..fitted.workers import every_score
from .ranking import NAMED, draw_named, draw_ranks, name_ends
from .shown_workers import most_annotations, scores_of, whom
from .style import DARK, legend, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_workers(
    fit: Labelled,
    *,
    ax: Axes | None = None,
    max_workers: int | None = NAMED,
    score: str = "accuracy",
    interval: float = INTERVAL,
) -> Axes:
    """Draw workers' accuracy, or another score, from the best down, with intervals where the fit has draws.

    The area of a dot grows with the worker's number of annotations. With ``max_workers=None`` all workers are drawn: where
    they are more than 40 by rank, in one line over the band of their intervals.

    Args:
        fit: a fit, or a stack of fits, of annotations that name their workers.
        ax: axes to draw in; by default a new figure.
        max_workers: how many to show at the most: those with the most annotations; None for everyone.
        score: a column of ``fit.workers`` that is a score, such as ``"accuracy"`` or ``"spammer_score"``.
        interval: mass of the equal-tailed intervals, between 0 and 1.

    Returns:
        The axes.

    Raises:
        AnnotationError: the annotations name no workers.
        UnknownNameError: `score` is none of the fit's.
        ValueError: `max_workers` is less than one, `interval` is no mass, or the score is known of nobody.
    """
    scores = scores_of(fit, interval)
    if score not in scores:
        scores = every_score(fit, interval)
    known = [str(name) for name in scores if pd.api.types.is_float_dtype(scores[name])]
    known = [name for name in known if not name.endswith(("_low", "_high"))]
    if score not in known:
        raise unknown_name("score", score, known)
    if scores[score].isna().all():
        raise ValueError(f"score={score!r} is known of no worker; one of {known} is needed")
    shown = most_annotations(scores, len(scores) if max_workers is None else max_workers)
    kept = {"value": score, "low": f"{score}_low", "high": f"{score}_high", "annotations": "annotations"}
    table = pd.DataFrame({name: scores[column] for name, column in kept.items() if column in scores}).iloc[shown]
    without = int(table["value"].isna().sum())
    table = table.dropna(subset="value").sort_values("value", kind="stable")
    name = score.replace("_", " ")
    measured = name + (f", with {interval:.0%} intervals" if "low" in table else "")
    heading = f"{name[0].upper()}{name[1:]} of {whom(len(shown), len(scores), by_annotations=True)}"
    heading += f"; {without:,} have none" if without else ""
    if max_workers is None and len(table) > NAMED:
        ax = draw_ranks(ax, table)
        ax.set_xlabel("rank of the worker")
        ax.set_ylabel(measured)
        title(ax, heading)
        name_ends(ax, table)
        return ax
    most = max(int(scores["annotations"].max()), 1)
    ax = draw_named(ax, table, 12 + 90 * table["annotations"].to_numpy() / most)
    ax.set_ylabel("worker")
    ax.set_xlabel(measured)
    title(ax, heading)
    for n in sorted({int(n) for n in np.quantile(table["annotations"], [0, 0.5, 1], method="nearest")}):
        ax.scatter([], [], s=12 + 90 * n / most, color=DARK, edgecolor="white", label=f"{n:,}")
    legend(ax, title="annotations", fontsize=7, title_fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    return ax
