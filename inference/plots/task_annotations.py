"""Plots of how many annotations there are, and of how uncertain the labels are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...data import AnnotationError, Annotations
from ...data.description import count_text
from ...data.errors import whole_number
from ..findings.facts import SURE
from ..fitted.posterior import Posterior
from . import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

MAX_BARS = 40  # different numbers of annotations up to which each has a bar
HEAVY = 20  # how many times the median the greatest number is where the tail is heavy
FEWEST = 5  # numbers that the axis spans, however alike they are
CLOSE = 300  # ratio of the largest number to the smallest below which a logarithmic scale has three ticks a decade
STEEP = 50  # how many times the median bar the highest is where bars are drawn on a logarithmic scale


def plot_annotations(data: Annotations | Posterior, *, axes: Any = None, ax: Any = None) -> np.ndarray:
    """Draw histograms of the annotations per task and, where workers are named, of the annotations per worker.

    Up to 40 different numbers have a bar each; more are put together in wider bars. Where the tail is heavy the scale
    is logarithmic, and the number of tasks or workers without annotations is in the label of the axis.

    Args:
        data: annotations, or a fit of them, or a stack.
        axes: two axes to draw in; by default a new figure.
        ax: one where no worker is named.

    Returns:
        The axes drawn in, shape (2,): of the tasks, and of the workers; shape (1,) where no workers are named.

    Raises:
        AnnotationError: there are no annotations.
        ValueError: there are fewer axes than histograms.
    """
    annotations = (data if isinstance(data, Annotations) else data.given).across_questions()
    if not annotations.n_annotations:
        raise AnnotationError("there are no annotations to draw")
    numbers = {"task": annotations.counts_by_kind().sum(-1)}
    if annotations.named:
        by_worker = np.bincount(np.asarray(annotations.worker), annotations.count, annotations.n_workers)
        numbers["worker"] = by_worker.astype(int)
    drawn = style.given_axes(axes, ax, len(numbers), "tasks and the workers")
    if drawn is None:
        drawn = style.new_grid(len(numbers), 2, (4.4, 3.2), (0, 0))
    for panel, (noun, found) in zip(drawn, numbers.items(), strict=True):
        _draw_numbers(panel, found, noun)
    return drawn


def plot_entropy(fit: Posterior, *, bins: int = 30, votes: bool = False, ax: Axes | None = None) -> Axes:
    r"""Draw a histogram of the labels' entropy :math:`-\sum_k p_{ik} \ln p_{ik}`, in nats.

    It is 0 where a label is certain and :math:`\ln K` where all K classes are equally probable. Tasks whose label has a
    probability below 0.9 are drawn dark and counted.

    Args:
        fit: a fit, or a stack of fits.
        bins: number of bars.
        votes: draw the histogram of the votes' entropy, that of naive soft labels, as a line around it.
        ax: axes to draw in; by default a new figure.

    Raises:
        ValueError: `bins` is less than one.
    """
    bins = whole_number("bins", bins, 1)
    labels = fit.labels
    most = float(np.log(fit.annotations.n_classes))
    edges = np.linspace(0, most, bins + 1)
    entropy = np.clip(labels["entropy"].to_numpy(), 0, most)
    unsure = (labels["probability"] < SURE).to_numpy()
    counts = [np.histogram(entropy[chosen], edges)[0] for chosen in (~unsure, unsure)]
    ax = style.new_axes(ax, 6, 3.4)
    width = np.diff(edges)
    bars: dict[str, Any] = {"align": "edge", "edgecolor": style.paper(), "linewidth": 0.5}
    ax.bar(edges[:-1], counts[0], width, color=style.faint(), label=f"label of probability ≥ {SURE}", **bars)
    ax.bar(
        edges[:-1], counts[1], width, counts[0], color=style.strong(), label=f"label of probability < {SURE}", **bars
    )
    drawn = counts[0] + counts[1]
    if votes:
        of_votes = np.clip(fit.entropies["vote_entropy"].dropna().to_numpy(), 0, most)
        heights, _ = np.histogram(of_votes, edges)
        ax.stairs(heights, edges, color=style.strong(), linewidth=1.2, label="entropy of the votes’ shares")
        drawn = np.concatenate([drawn, heights])
    scale = _scale_counts(ax, drawn)
    ax.set_xlim(-0.01 * most, 1.01 * most)
    ax.set_xlabel(
        f"entropy of the label in nats ({most:.2f} if all {fit.annotations.n_classes} classes are equally probable)"
    )
    ax.set_ylabel(f"tasks{scale}")
    style.clean(ax, grid="y")
    style.legend(ax, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3 if votes else 2, columnspacing=1.2)
    have = "has" if 1 in (unsure.sum(), len(unsure)) else "have"
    style.title(ax, f"{unsure.sum():,} of {count_text(len(unsure), 'label')} {have} probability < {SURE}")
    return ax


def _draw_numbers(ax: Axes, numbers: np.ndarray, noun: str) -> None:
    """Draw a histogram of whole numbers, with their median."""
    some = numbers[numbers > 0]
    least, middle, most = int(numbers.min()), float(np.median(numbers)), int(numbers.max())
    heavy = most > MAX_BARS and most > HEAVY * max(float(np.median(some)), 1.0)
    label = f"annotations per {noun}"
    if heavy:
        edges = np.unique(np.floor(np.geomspace(some.min(), most + 1, MAX_BARS // 2 + 1)))
        shown = some
        ax.set_xscale("log")
        _powers(ax.xaxis, most / some.min())
        label += f" {style.LOGARITHMIC}"
        if len(some) < len(numbers):
            label += f"; {count_text(len(numbers) - len(some), noun)} without annotations not shown"
    else:
        step = -(-(most - least + 1) // MAX_BARS)
        edges = np.arange(least, most + step + 1, step) - 0.5
        shown = numbers
    counts, _ = np.histogram(shown, edges)
    ax.bar(
        edges[:-1], counts, np.diff(edges), align="edge", color=style.faint(), edgecolor=style.paper(), linewidth=0.5
    )
    if least < most:
        ax.axvline(middle if middle > 0 or not heavy else edges[0], color=style.strong(), linewidth=1.2)
    scale = _scale_counts(ax, counts)
    if not heavy:
        ax.set_xlim(min(edges[0], max(middle - FEWEST / 2, -0.5)), max(edges[-1], middle + FEWEST / 2))
        style.whole_numbers(ax.xaxis)
    ax.set_xlabel(label)
    ax.set_ylabel(f"{noun}s{scale}")
    style.clean(ax, grid="y")
    each = f"{count_text(most, 'annotation')} each"
    spread = f"median {middle:,g} (line), {least:,} to {most:,}" if least < most else each
    style.title(ax, f"{count_text(len(numbers), noun)}: {spread}", 10)


def _scale_counts(ax: Axes, counts: np.ndarray) -> str:
    """Choose a scale on which bars that are far lower than the highest can be seen; its name if it is logarithmic."""
    if counts.max() > STEEP * np.median(counts[counts > 0]):
        ax.set_yscale("log")
        _powers(ax.yaxis, counts.max())
        ax.set_ylim(bottom=0.7)
        return f" {style.LOGARITHMIC}"
    style.whole_numbers(ax.yaxis)
    return ""


def _powers(axis: Axis, ratio: float) -> None:
    """Set the ticks of a logarithmic scale to whole numbers: 1, 2, 5, 10, 20 and so on, or powers of ten.

    Args:
        ratio: of its largest number to its smallest, which decides.
    """
    from matplotlib.ticker import LogLocator, NullLocator

    axis.set_major_locator(LogLocator(10, subs=(1, 2, 5) if ratio < CLOSE else (1,)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else "")
