"""The picture of workers' confusion matrices."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
import pandas as pd

from ..fitted.intervals import INTERVAL
from ..fitted.labelled import Labelled
from .heatmaps import draw_tables
from .shown_workers import most_annotations, positions, scores_of, whom
from .style import counted, given_axes, short


def plot_confusions(
    fit: Labelled,
    *,
    workers: Iterable[Hashable] | None = None,
    max_workers: int = 20,
    interval: float = INTERVAL,
    axes: Any = None,
) -> np.ndarray:
    """Draw workers' confusion matrices as heat maps: the true class downwards, the annotation across.

    With up to ten classes the cells hold the probabilities and, where the fit has draws, half the width of their
    intervals.

    Args:
        fit: a fit, or a stack of fits, of annotations that name their workers.
        workers: ids of the workers to show, in this order; by default those with the most annotations.
        max_workers: how many to show at the most where `workers` does not say which.
        interval: mass of the equal-tailed intervals, between 0 and 1.
        axes: axes to draw in, one a worker, without title and colour bar around them; by default a new figure.

    Returns:
        The axes drawn in, shape (number of workers shown,).

    Raises:
        UnknownNameError: a worker is none of the fit's.
        AnnotationError: the annotations name no workers.
        ValueError: nobody is selected, there are too few axes, or `interval` is no mass.
    """
    scores = scores_of(fit, interval)
    given = given_axes(axes, None, "workers")
    limit = max_workers if given is None else min(max_workers, len(given))
    shown = most_annotations(scores, limit) if workers is None else positions(fit.annotations.workers, workers)
    return draw_tables(
        fit.confusion_draws[:, :, shown],
        [_title(scores.iloc[j]) for j in shown],
        fit.annotations.classes,
        interval=interval if fit.has_draws else None,
        heading=f"Confusion matrices of {whom(len(shown), len(scores), by_annotations=workers is None)}",
        axes=given_axes(given, len(shown), f"{len(shown)} workers"),
    )


def _title(score: pd.Series) -> str:
    low_high = f" ({score['accuracy_low']:.2f}–{score['accuracy_high']:.2f})" if "accuracy_low" in score else ""
    answers = counted(int(score["annotations"]), "annotation")
    worker = short(score.name, 20)
    return f"{'worker ' if len(worker) <= 8 else ''}{worker}: {answers}\naccuracy {score['accuracy']:.2f}{low_high}"
