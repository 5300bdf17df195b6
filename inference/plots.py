"""Pictures of a fit: workers' confusion tables, workers' accuracy, how an engine converged."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..data import AnnotationError, Ids, UnknownNameError, unknown_name
from ..data.columns import type_hint
from ..data.errors import nearest
from .results import INTERVAL, Fit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = "Blues"  # one hue, so that it can be read without telling hues apart
DARK, GREY = "#08306b", "#6b6b6b"
MAX_CELLS = 10  # classes up to which a table's cells hold their numbers
MAX_TICKS = 24  # classes up to which each is named on the axes


def plot_confusions(
    fit: Fit,
    *,
    workers: Iterable[Hashable] | None = None,
    max_workers: int = 20,
    interval: float = INTERVAL,
    axes: Any = None,
) -> np.ndarray:
    """Draw workers' confusion tables as heat maps: a row the true class, a column the answer.

    Cells hold the probability up to ten classes and, where the fit has draws, half the width of its interval.

    Args:
        fit: a fit of annotations that name their workers.
        workers: ids of the workers to show, in this order; by default those with the most answers.
        max_workers: how many to show at the most where `workers` does not say which.
        interval: mass of the equal-tailed intervals, between 0 and 1.
        axes: axes to draw in, at least one a worker, without a colour bar; a new figure by default.

    Returns:
        The axes that were drawn in, one a worker, shape (number of workers shown,).

    Raises:
        UnknownNameError: a worker is none of the fit's.
        AnnotationError: the annotations name no workers.
        ValueError: nobody is selected, there are fewer axes than workers, or `interval` is no mass.
    """
    given = None if axes is None else np.ravel(np.asarray(axes, dtype=object))
    limit = max_workers if given is None else min(max_workers, len(given))
    scores = _scores(fit, interval)
    shown = _most_active(scores, limit) if workers is None else _positions(fit, workers)
    if given is not None and len(given) < len(shown):
        raise ValueError(f"axes holds {len(given)} axes; {len(shown)} workers need one each")
    means, half_widths = _tables(fit, shown, interval)
    names = [_short(name, 18) for name in fit.annotations.classes]
    if given is None:
        figure, grid = _grid(len(shown), names)
    drawn = (grid if given is None else given)[: len(shown)]
    for i, ax in enumerate(drawn):
        image = ax.imshow(means[i], cmap=COLOURS, vmin=0, vmax=1, aspect="equal")
        _write_cells(ax, means[i], None if half_widths is None else half_widths[i])
        _name_classes(ax, names)
        ax.set_title(_title(scores.iloc[shown[i]]), fontsize=8, linespacing=1.3, parse_math=False)
    if given is None:
        for ax in _not_outer(figure, drawn):
            ax.label_outer()
        bar = figure.colorbar(image, ax=list(drawn), aspect=40, shrink=0.8, pad=0.015)
        bar.set_label("probability of the answer, given the true class")
        bar.outline.set_visible(False)
        figure.supxlabel("answer", fontsize=10)
        figure.supylabel("true class", fontsize=10)
        figure.suptitle(_whom(shown, scores, workers is None) + _cells(means, half_widths, interval), fontsize=11)
    return drawn
