"""The plot of workers' accuracy, or of another score."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ...data.errors import check_name
from ..fitted.intervals import INTERVAL
from ..fitted.posterior import Posterior
from ..fitted.workers import worker_scores
from .ranking import NAMED, draw_ordered
from .shown_workers import AXIS, most_annotations, scores_of, which_workers
from .style import legend, paper, strong

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_workers(
    fit: Posterior,
    *,
    ax: Axes | None = None,
    max_workers: int | None = NAMED,
    score: str = "accuracy",
    interval: float = INTERVAL,
) -> Axes:
    """Draw workers' accuracy, or another score, the greatest first, with credible intervals where the fit has draws.

    Accuracy is the probability of a right annotation, of a task whose class is as frequent as among the labels. The
    area of a dot grows with the worker's number of annotations. With ``max_workers=None`` all workers are drawn: more
    than 40 of them by rank, as one line over their intervals.

    Args:
        fit: a fit, or a stack of fits, of annotations that name their workers.
        ax: axes to draw in; by default a new figure.
        max_workers: how many to show at the most, those with the most annotations; None for all.
        score: a column of ``fit.workers`` that is a score, such as ``"accuracy"`` or ``"spammer_score"``.
        interval: mass of the equal-tailed credible intervals, between 0 and 1.

    Raises:
        AnnotationError: the annotations name no workers.
        UnknownNameError: `fit.workers` has no such score.
        ValueError: `max_workers` is less than one, `interval` is not between 0 and 1, or no worker has the score.

    Examples:
        >>> import crowdppl as cp
        >>> fit = cp.fit("dawid_skene", cp.load_dataset("anesthesia"), progress=False)
        >>> ax = cp.plot_workers(fit)
        >>> ax.get_title().splitlines()[0]
        'Accuracy of all 5 workers'
    """
    scores = scores_of(fit, interval)
    if score not in scores:
        scores = worker_scores(fit, interval)
    known = [str(name) for name in scores if pd.api.types.is_float_dtype(scores[name])]
    known = [name for name in known if not name.endswith(("_low", "_high"))]
    check_name("score", score, known)
    if scores[score].isna().all():
        of_some = [name for name in known if scores[name].notna().any()]
        raise ValueError(f"score={score!r}: no worker has a value; one of {of_some} is needed")
    shown = most_annotations(scores, len(scores) if max_workers is None else max_workers)
    kept = {"value": score, "low": f"{score}_low", "high": f"{score}_high", "annotations": "annotations"}
    table = pd.DataFrame({name: scores[column] for name, column in kept.items() if column in scores}).iloc[shown]
    without = int(table["value"].isna().sum())
    table = table.dropna(subset="value").sort_values("value", kind="stable")
    name = score.replace("_", " ")
    measured = f"{name} ({AXIS[score]})" if score in AXIS else name
    intervals = f"with {interval:.0%} credible intervals" if "low" in table else ""
    heading = f"{name[0].upper()}{name[1:]} of {which_workers(len(shown), scores.index, by_annotations=True)}"
    heading += f"; {without:,} without a value" if without else ""
    heading += f"\n{intervals}" if intervals else ""
    most = max(int(scores["annotations"].max()), 1)
    by_rank = max_workers is None and len(table) > NAMED
    sizes = 12 + 90 * table["annotations"].to_numpy() / most
    ax = draw_ordered(ax, table, of="worker", measured=measured, heading=heading, sizes=sizes, by_rank=by_rank)
    if by_rank:
        return ax
    for n in _legend_sizes(table["annotations"].to_numpy()):
        ax.scatter([], [], s=12 + 90 * n / most, color=strong(), edgecolor=paper(), label=f"{n:,}")
    legend(
        ax,
        title="size of a dot:\nannotations of\nthe worker",
        fontsize=7,
        title_fontsize=7,
        loc="upper left",
        bbox_to_anchor=(1, 1),
    )
    return ax


def _legend_sizes(numbers: np.ndarray) -> list[int]:
    """Numbers of annotations whose dots the legend shows: the least, about the middle and the most."""
    least, most = int(numbers.min()), int(numbers.max())
    middle = int(numbers[np.abs(numbers - (least + most) / 2).argmin()])
    return sorted({least, middle, most})
