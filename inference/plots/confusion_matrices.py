"""Confusion matrices of workers and of groups of workers as heat maps: true classes by row, annotations by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal
from unicodedata import bidirectional

import numpy as np
import pandas as pd

from ...data import Annotations
from ...data.description import count_text
from ...data.errors import check_name
from ..fitted.confusion_scores import entropy
from ..fitted.confusions import EXTREMES, extreme_weights
from ..fitted.counted_as_one import are_estimated, counted_groups
from ..fitted.counted_groups import CountedGroup
from ..fitted.groups import group_confusion_draws, group_share_draws, similarity_to_identity
from ..fitted.intervals import INTERVAL, checked_tail, of_draws
from ..fitted.posterior import Posterior, fitted_of
from .shown_workers import most_annotations, positions, scores_of, which_workers
from .style import COLOURS, colour_bar, columns, figure_title, given_axes, ink, new_grid, share, short, signed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINE = 29  # letters that fit above a small matrix
FEW = 5  # classes up to which a matrix is small
MAX_CELLS = 10  # classes up to which the cells hold numbers
MAX_NAMES = 24  # classes up to which all are named on an axis
NEAR = 1  # distance of the next class
PAD = 0.08  # inches above and below what stands in a figure
CELL = 0.48  # inches of a cell that holds a number, at the least
LITTLE = 0.5  # tasks of a true class, below which its row rests on no annotation
HATCHED = "hatched: hardly any task tells this row"


def plot_confusions(
    fit: Posterior,
    *,
    workers: Any = None,
    max_workers: int | None = None,
    by: Literal["annotations", "accuracy"] = "annotations",
    interval: float = INTERVAL,
    axes: Any = None,
    ax: Any = None,
) -> np.ndarray:
    """Draw workers' confusion matrices, P(annotation | true class), as heat maps: a row for each true class.

    The columns are the classes and then the abstentions, where there are any. Of ordered classes a line parts the
    errors by one class from the larger ones, and above the matrix is by how many classes an annotation is off. Where
    questions have classes of their own, cells of two questions are blank.

    With up to ten classes the cells hold the probabilities and the bounds of their credible intervals. Above each
    matrix are the worker's number of annotations and accuracy: the probability that an annotation is right, of a task
    whose class is as frequent as among the labels.

    Rows are hatched that rest on less than half a task: of a true class that hardly any task has that
    the worker annotated, by the labels' probabilities. They have what the prior says, or the worker's other rows.

    Args:
        fit: a fit, or a stack of fits, of annotations that name their workers (J workers, K classes).
        workers: ids of the workers to show, one or several, in this order; by default those that `by` says.
        max_workers: how many to show at the most where `workers` does not say which; by default 20, and two rows of
            matrices with more than five columns: 6 workers, or 8 where the cells hold no numbers.
        by: ``"annotations"`` for the workers with the most annotations; ``"accuracy"`` for three matrices, of the best
            worker, of the worst, and of the average annotation.
        interval: mass of the equal-tailed credible intervals, between 0 and 1.
        axes: axes to draw in, one for each worker, without a title and a colour bar around them; by default a new
            figure.
        ax: the same where one worker is drawn, as by ``workers=[3]``.

    Returns:
        The axes drawn in, shape (number of workers shown,).

    Raises:
        UnknownNameError: `workers` names a worker that the annotations do not have.
        AnnotationError: the annotations name no workers.
        ValueError: no worker is selected, there are fewer axes than workers, `interval` is not between 0 and 1, or
            both `workers` and ``by="accuracy"`` are given.

    Examples:
        >>> import crowdppl as cp
        >>> fit = cp.fit("dawid_skene", cp.load_dataset("anesthesia"), progress=False)
        >>> axes = cp.plot_confusions(fit, workers=[1, 3])
        >>> axes.shape
        (2,)
    """
    scores = scores_of(fit, interval)
    if check_name("by", by, ("annotations", "accuracy")) == "accuracy":
        if workers is not None:
            raise ValueError("by='accuracy' chooses the workers itself; leave out workers=")
        return _draw_extremes(fit, scores, interval, given_axes(axes, ax, 3, "3 confusion matrices"))
    given = given_axes(axes, ax, None, "workers")
    limit = _most(fit.confusion_draws.shape[-1]) if max_workers is None else max_workers
    limit = limit if given is None else min(limit, len(given))
    shown = most_annotations(scores, limit) if workers is None else positions(fit.annotations.workers, workers)
    return _draw(
        fit.annotations,
        fit.confusion_draws[:, :, shown],
        _titles(fit, scores, shown),
        around=fit.with_uncertainty.confusion_draws[:, :, shown],
        evidence=_evidence(fit)[shown],
        interval=interval,
        heading=f"{'Confusion matrix' if len(shown) == 1 else 'Confusion matrices'} of "
        f"{which_workers(len(shown), scores.index, by_annotations=workers is None)}",
        axes=given_axes(axes, ax, len(shown), f"{len(shown)} workers"),
    )


def _draw_extremes(fit: Posterior, scores: pd.DataFrame, interval: float, axes: np.ndarray | None) -> np.ndarray:
    """Draw the confusion matrices of the best and the worst worker, and of the average annotation."""
    weights = extreme_weights(fit)
    best, worst = (
        f"{name}: {title}"
        for name, title in zip(EXTREMES[:2], _titles(fit, scores, weights[:2].argmax(-1).tolist()), strict=True)
    )
    mean = float(weights[2] @ scores["accuracy"].fillna(0))
    total = count_text(int(fit.given.n_by_worker()[weights[2] > 0].sum()), "annotation")
    return _draw(
        fit.annotations,
        np.einsum("cdjkl,mj->cdmkl", fit.confusion_draws, weights),
        [best, worst, f"average of {total}\naccuracy {mean:.2f}"],
        around=np.einsum("cdjkl,mj->cdmkl", fit.with_uncertainty.confusion_draws, weights),
        evidence=(weights > 0) @ _evidence(fit),
        interval=interval,
        heading=f"Confusion matrices of the best, the worst and the average of {count_text(len(scores), 'worker')}",
        axes=axes,
    )


def plot_groups(fit: Posterior, *, interval: float = INTERVAL, axes: Any = None, ax: Any = None) -> np.ndarray:
    r"""Draw the confusion matrices of groups of workers (or of annotations), the one with the greatest share first.

    Above each are the group's share, the entropy of its confusion matrix (the mean over rows, in nats: 0 where every
    annotation is certain given the truth), and its similarity to the identity: one minus the mean Jensen–Shannon
    divergence, in bits, of the matrix's rows from the identity's (1 where every annotation is right). These are the
    columns of :func:`crowdppl.describe_groups`.

    Args:
        fit: a fit of a story with M groups, such as ``annotator_groups`` or ``worker_clusters``: one that derives a
            quantity of kind ``"group_confusion"``, or has a parameter with the dimensions group, truth and
            annotation.
        interval: mass of the equal-tailed credible intervals, between 0 and 1; their bounds are in the cells where the
            fit has draws.
        axes: axes to draw in, one for each group; by default a new figure.
        ax: the same where one is drawn.

    Returns:
        The axes drawn in, shape (M,).

    Raises:
        ValueError: the story has no groups, there are fewer axes than groups, or `interval` is not between 0 and 1.
    """
    checked_tail(interval)
    fitted = fitted_of(fit)
    confusions, shares = group_confusion_draws(fitted), group_share_draws(fitted)
    n_groups = confusions.shape[2]
    mean_shares = None if shares is None else shares.mean((0, 1))
    order = range(n_groups) if mean_shares is None else np.argsort(-mean_shares, kind="stable").tolist()
    uncertainty = entropy(confusions).mean(-1).mean((0, 1))
    similarity = similarity_to_identity(confusions).mean((0, 1))
    titles = []
    for m in order:
        having = "" if mean_shares is None else f": share {share(float(mean_shares[m]))}"
        titles.append(f"group {m}{having}\nentropy {uncertainty[m]:.2f}, similarity {similarity[m]:.2f}")
    return _draw(
        fitted.annotations,
        confusions[:, :, order],
        titles,
        around=confusions[:, :, order] if fitted.has_draws else None,
        evidence=np.outer(np.ones(n_groups) if mean_shares is None else mean_shares[order], _evidence(fit).sum(0)),
        interval=interval,
        heading=f"Confusion matrices of {count_text(n_groups, 'group')} ({fitted.story})",
        axes=given_axes(axes, ax, n_groups, f"{n_groups} groups"),
    )


def _evidence(fit: Posterior) -> np.ndarray:
    """Return how many of the tasks that each worker annotated are of each true class, by their labels, ``(J, K)``.

    Of workers who were left out of the fit, whose matrices are the prior's, it is none. Where no worker is named all
    annotations are of one, ``(1, K)``.
    """
    given, posterior = fit.given, np.asarray(fit.posterior, float)
    task, weight = np.asarray(given.task), given.row_counts
    if given.worker is None:
        return np.bincount(task, weight, given.n_tasks)[None] @ posterior
    worker = np.asarray(given.worker)
    counted = [np.bincount(worker, weight * of_class[task], given.n_workers) for of_class in posterior.T]
    return np.stack(counted, axis=-1) * are_estimated(fit)[:, None]


def _titles(fit: Posterior, scores: pd.DataFrame, shown: Sequence[int]) -> list[str]:
    """Titles of the matrices of the workers at these positions."""
    groups = counted_groups(fit)
    return [
        _title(scores.iloc[j], [_with_whom(group, j, scores.index) for group in groups if j in group.workers])
        for j in shown
    ]


def _with_whom(group: CountedGroup, worker: int, names: pd.Index) -> str:
    """With whom a worker of a group counted as one, in a line."""
    others = [short(names[j], 14) for j in group.workers.tolist() if j != worker]
    line = f"as one with {', '.join(others)}"
    return line if columns(line) <= LINE else f"as one with {others[0]} and {len(others) - 1} more"


def _title(score: pd.Series, with_whom: Sequence[str] = ()) -> str:
    """A worker's name, number of annotations, group, accuracy and, of ordered classes, error and bias in classes.

    They are on a line each but for the first two, which are on two where the name is long, or is written from right to
    left, which would turn the order of what is beside it.

    A name that is a number has the word worker before it.
    """
    low_high = f" ({score['accuracy_low']:.2f}–{score['accuracy_high']:.2f})" if "accuracy_low" in score else ""
    given = count_text(int(score["annotations"]), "annotation")
    worker = short(score.name, 24)
    if worker.isdigit():
        worker = f"worker {worker}"
    named = f"{worker}: {given}"
    if columns(named) > LINE or any(bidirectional(letter) in {"R", "AL"} for letter in worker):
        named = f"{worker}\n{given}"
    if not score["annotations"]:
        return f"{named}\nwhat the prior says"
    if np.isnan(score["accuracy"]):
        return f"{named}\nleft out: what the prior says"
    named += "".join(f"\n{line}" for line in with_whom)
    error = score.get("mean_absolute_error")
    apart = "" if error is None else f"\noff by {error:.2f}, bias {signed(score['bias'], decimals=2)}"
    return f"{named}\naccuracy {score['accuracy']:.2f}{low_high}{apart}"


def _draw(
    annotations: Annotations,
    confusions: np.ndarray,
    titles: Sequence[str],
    *,
    around: np.ndarray | None,
    evidence: np.ndarray,
    interval: float,
    heading: str,
    axes: np.ndarray | None,
) -> np.ndarray:
    """Draw the mean of each confusion matrix over its draws, with the bounds of the intervals in the cells.

    A line parts the cells of the next classes from those further away. What no question has stays blank.

    Args:
        annotations: whose classes are the rows, and whose categories the columns.
        confusions: draws of n confusion matrices, ``(chain, draw, n, K, L)``.
        titles: above the n matrices.
        around: draws of them that say how uncertain they are; None to write no intervals.
        evidence: tasks that tell each row, ``(n, K)``; rows of less than half a task are hatched.
        axes: n axes to draw in, without heading and colour bar around them; None for a new figure.

    Returns:
        The n axes.
    """
    means = confusions.mean((0, 1))
    bounds = None if around is None else of_draws(around, interval, means)
    truths = [short(name, 18) for name in annotations.classes]
    names = [short(name, 18) for name in annotations.verdicts().categories[: means.shape[-1]]]
    distance, own = annotations.kind.distance(annotations.n_classes), annotations.kind.own
    n_columns = _n_columns(len(means), len(names))
    drawn = _new_grid(titles, n_columns, names) if axes is None else axes
    is_told = evidence >= LITTLE
    for i, ax in enumerate(drawn):
        blank = np.zeros(means[i].shape, bool)
        if own is not None:
            blank[:, : own.shape[1]] = ~(own[:, :, None] & own[:, None, :]).any(0)
        image = ax.imshow(np.ma.masked_where(blank, means[i]), cmap=COLOURS, vmin=0, vmax=1)
        _part_the_far(ax, distance > NEAR)
        untold = np.flatnonzero(~is_told[i] & ~blank.all(1))
        _hatch(ax, untold, len(names))
        if len(names) <= MAX_CELLS:
            _write_cells(ax, means[i], None if bounds is None else bounds[:, i], blank)
        alone = axes is not None
        _name_classes(ax, names, truths, x=alone or i + n_columns >= len(means), y=alone or i % n_columns == 0)
        ax.set_title(titles[i], fontsize=8, linespacing=1.4, parse_math=False)
        if alone and len(untold):
            ax.set_xlabel(HATCHED, fontsize=7)
    if axes is None:
        figure = drawn[0].figure
        written = bounds is not None and len(names) <= MAX_CELLS
        note = f"\nsmall: {interval:.0%} credible interval" if written else ""
        note += "" if is_told.all() else f"\n{HATCHED}"
        shrink = min(1.0, 3.0 / figure.get_figheight())
        colour_bar(image, list(drawn), f"P(annotation | true class){note}", shrink=shrink)
        figure.supxlabel("annotation", fontsize=10)
        figure.supylabel("true class", fontsize=10)
        figure_title(figure, heading)
        if (layout := figure.get_layout_engine()) is not None:
            layout.set(h_pad=PAD)
    return drawn


def _widest(n_classes: int) -> int:
    """The number of heat maps that stand side by side at the most."""
    return 5 if n_classes <= FEW else 3 if n_classes <= MAX_CELLS else 4


def _most(n_classes: int) -> int:
    """The number of heat maps of a figure by default: no more than are seen without scrolling far."""
    return (4 if n_classes <= FEW else 2) * _widest(n_classes)


def _n_columns(n_matrices: int, n_classes: int) -> int:
    """In how many columns the heat maps stand."""
    widest = _widest(n_classes)
    return n_matrices if n_matrices <= widest else min(widest, int(np.ceil(np.sqrt(n_matrices))) + 1)


def _new_grid(titles: Sequence[str], n_columns: int, names: Sequence[str]) -> np.ndarray:
    """Axes of a new figure, a panel for each matrix, large enough for its title and the numbers in its cells."""
    panel = max(1.9, CELL * len(names)) if len(names) <= MAX_CELLS else 3.2
    n_lines = 1 + max(title.count("\n") for title in titles)
    longest = 0.065 * max(map(columns, names))
    below = 0.1 if _fit_side_by_side(names) else 0.7 * longest
    size = (panel + 0.12, panel + 0.16 + 0.16 * n_lines)
    return new_grid(len(titles), n_columns, size, (1.5 + longest, 0.7 + below))


def _part_the_far(ax: Axes, is_far: np.ndarray) -> None:
    """Draw a line between the cells that are far from the diagonal, ``(K, K)`` bool, and those that are not."""
    right = np.argwhere(is_far[:, 1:] != is_far[:, :-1])
    below = np.argwhere(is_far[1:] != is_far[:-1])
    lines = [((x + 0.5, x + 0.5), (y - 0.5, y + 0.5)) for y, x in right]
    for x, y in lines + [((x - 0.5, x + 0.5), (y + 0.5, y + 0.5)) for y, x in below]:
        ax.plot(x, y, color=ink(0.45), linewidth=1.0, solid_capstyle="projecting", scalex=False, scaley=False)


def _hatch(ax: Axes, rows: np.ndarray, n_columns: int) -> None:
    """Hatch rows of a heat map, below what is written in them."""
    from matplotlib.patches import Rectangle

    for row in rows.tolist():
        place = (-0.5, row - 0.5)
        ax.add_patch(
            Rectangle(place, n_columns, 1, fill=False, hatch="///", edgecolor=ink(0.3), linewidth=0.0, zorder=1.5)
        )


def _write_cells(ax: Axes, means: np.ndarray, bounds: np.ndarray | None, blank: np.ndarray) -> None:
    """Write each probability into its cell, and the bounds of its interval below it; nothing where it is blank."""
    large, small = (9.0, 7.0) if len(means) <= FEW else (8.5, 6.8)
    for (k, given), p in np.ndenumerate(means):
        if blank[k, given]:
            continue
        lines = [(_decimals(p), large, 0.0)]
        if bounds is not None:
            low, high = (_decimals(float(bound)) for bound in bounds[:, k, given])
            lines = [(_decimals(p), large, 0.3 * large), (f"{low}–{high}", small, -0.75 * large)]
        for text, fontsize, rise in lines:
            ax.annotate(
                text,
                (given, k),
                (0, rise),
                textcoords="offset points",
                ha="center",
                va="center",
                fontsize=fontsize,
                color="white" if p > 0.55 else "#1a1a1a" if p >= 0.005 else "0.6",
                in_layout=False,
            )


def _decimals(value: float) -> str:
    """Two decimals without the zero before the point: .07, 1.00."""
    return f"{value:.2f}".removeprefix("0")


def _fit_side_by_side(names: Sequence[str]) -> bool:
    """Return whether the names are short enough to stand below a heat map without a turn."""
    return max(map(columns, names)) <= (5 if len(names) <= 5 else 2)


def _name_classes(ax: Axes, names: Sequence[str], truths: Sequence[str], *, x: bool, y: bool) -> None:
    ticks, shown = _ticks(names)
    rows, of_rows = _ticks(truths)
    font: dict[str, Any] = {"fontsize": 8 if len(names) <= MAX_CELLS else 6, "parse_math": False}
    turned: dict[str, Any] = (
        {} if _fit_side_by_side(shown) else {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    )
    ax.set_xticks(ticks, shown if x else [""] * len(shown), **font, **turned)
    ax.set_yticks(rows, of_rows if y else [""] * len(of_rows), **font)
    ax.tick_params(length=0)
    ax.spines[:].set(color="0.8", linewidth=0.6)


def _ticks(names: Sequence[str]) -> tuple[range, list[str]]:
    """The positions of the classes that are named along an axis, and their names."""
    ticks = range(0, len(names), -(-len(names) // MAX_NAMES))
    return ticks, [names[k] for k in ticks]
