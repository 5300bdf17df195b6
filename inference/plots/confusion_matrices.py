"""Plots of confusion matrices: of workers, and of groups of workers."""

from typing import Any, Literal

import numpy as np
import pandas as pd

from ...data import Annotations
from ...data.description import count_text
from ...data.errors import check_name
from ..fitted.confusion_scores import entropy
from ..fitted.confusions import EXTREMES, extreme_weights
from ..fitted.groups import group_confusion_draws, group_share_draws, similarity_to_identity
from ..fitted.intervals import INTERVAL, checked_tail
from ..fitted.posterior import Posterior, fitted_of
from .heatmaps import draw_confusions
from .shown_workers import most_annotations, positions, scores_of, which_workers
from .style import columns, given_axes, share, short, signed

LINE = 29  # letters that fit above a small matrix


def plot_confusions(
    fit: Posterior,
    *,
    workers: Any = None,
    max_workers: int = 20,
    by: Literal["annotations", "accuracy"] = "annotations",
    interval: float = INTERVAL,
    axes: Any = None,
) -> np.ndarray:
    """Draw workers' confusion matrices, P(annotation | true class), as heat maps: a row for each true class.

    The columns are the classes and then the abstentions, where there are any. Of ordered classes a line parts the
    errors by one class from the larger ones, and above the matrix is by how many classes an annotation is off. Where
    questions have classes of their own, cells of two questions are blank.

    With up to ten classes the cells hold the probabilities and the bounds of their credible intervals. Above each
    matrix are the worker's number of annotations and accuracy: the probability that an annotation is right, of a task
    whose class is as frequent as among the labels.

    Args:
        fit: a fit, or a stack of fits, of annotations that name their workers (J workers, K classes).
        workers: ids of the workers to show, one or several, in this order; by default those that `by` says.
        max_workers: how many to show at the most where `workers` does not say which.
        by: ``"annotations"`` for the workers with the most annotations; ``"accuracy"`` for three matrices, of the best
            worker, of the worst, and of the average annotation.
        interval: mass of the equal-tailed credible intervals, between 0 and 1.
        axes: axes to draw in, one for each worker, without a title and a colour bar around them; by default a new
            figure.

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
        return _draw_extremes(fit, scores, interval, axes)
    given = given_axes(axes, None, "workers")
    limit = max_workers if given is None else min(max_workers, len(given))
    shown = most_annotations(scores, limit) if workers is None else positions(fit.annotations.workers, workers)
    return draw_confusions(
        fit.confusion_draws[:, :, shown],
        [_title(scores.iloc[j]) for j in shown],
        fit.annotations.classes,
        categories=fit.annotations.verdicts().categories,
        distance=fit.annotations.kind.distance(fit.annotations.n_classes),
        possible=_possible(fit.annotations),
        around=fit.with_uncertainty.confusion_draws[:, :, shown],
        interval=interval,
        heading=f"{'Confusion matrix' if len(shown) == 1 else 'Confusion matrices'} of "
        f"{which_workers(len(shown), scores.index, by_annotations=workers is None)}",
        axes=given_axes(given, len(shown), f"{len(shown)} workers"),
    )


def _draw_extremes(fit: Posterior, scores: pd.DataFrame, interval: float, axes: Any) -> np.ndarray:
    """Draw the confusion matrices of the best and the worst worker, and of the average annotation."""
    weights = extreme_weights(fit)
    best, worst = (
        f"{name}: {_title(scores.iloc[row.argmax()])}" for name, row in zip(EXTREMES[:2], weights[:2], strict=True)
    )
    mean = float(weights[2] @ scores["accuracy"])
    total = count_text(fit.annotations.n_annotations, "annotation")
    return draw_confusions(
        np.einsum("cdjkl,mj->cdmkl", fit.confusion_draws, weights),
        [best, worst, f"average of {total}\naccuracy {mean:.2f}"],
        fit.annotations.classes,
        categories=fit.annotations.verdicts().categories,
        distance=fit.annotations.kind.distance(fit.annotations.n_classes),
        possible=_possible(fit.annotations),
        around=np.einsum("cdjkl,mj->cdmkl", fit.with_uncertainty.confusion_draws, weights),
        interval=interval,
        heading=f"Confusion matrices of the best, the worst and the average of {count_text(len(scores), 'worker')}",
        axes=given_axes(axes, 3, "3 confusion matrices"),
    )


def plot_groups(fit: Posterior, *, interval: float = INTERVAL, axes: Any = None) -> np.ndarray:
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
    return draw_confusions(
        confusions[:, :, order],
        titles,
        fitted.annotations.classes,
        distance=fitted.annotations.kind.distance(fitted.annotations.n_classes),
        possible=_possible(fitted.annotations),
        around=confusions[:, :, order] if fitted.has_draws else None,
        interval=interval,
        heading=f"Confusion matrices of {count_text(n_groups, 'group')} ({fitted.story})",
        axes=given_axes(axes, n_groups, f"{n_groups} groups"),
    )


def _possible(annotations: Annotations) -> np.ndarray | None:
    """A mask of the classes that some question has together, ``(K, K)`` bool; None where all questions have all."""
    own = annotations.kind.own
    return None if own is None else (own[:, :, None] & own[:, None, :]).any(0)


def _title(score: pd.Series) -> str:
    """A worker's name, number of annotations, accuracy and, of ordered classes, error and bias in classes.

    They are on a line each but for the first two, which are on two where the name is long.

    A name that is a number has the word worker before it.
    """
    low_high = f" ({score['accuracy_low']:.2f}–{score['accuracy_high']:.2f})" if "accuracy_low" in score else ""
    given = count_text(int(score["annotations"]), "annotation")
    worker = short(score.name, 24)
    if worker.isdigit():
        worker = f"worker {worker}"
    named = f"{worker}: {given}"
    if columns(named) > LINE:
        named = f"{worker}\n{given}"
    if not score["annotations"]:
        return f"{named}\nwhat the prior says"
    error = score.get("mean_absolute_error")
    apart = "" if error is None else f"\noff by {error:.2f}, bias {signed(score['bias'], decimals=2)}"
    return f"{named}\naccuracy {score['accuracy']:.2f}{low_high}{apart}"
