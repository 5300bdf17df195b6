"""Scores by worker: from confusion matrices, from gold labels, and how long an annotation takes."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ...data import AnnotationError, Annotations
from . import confusion_scores
from .error_correlation import error_correlation
from .fitted import Fitted
from .intervals import INTERVAL, jeffreys, of_median
from .labelled import Labelled, interval_around
from .misled import misled_share
from .realised import realised_accuracy, realised_accuracy_draws


def fitted_scores(fitted: Labelled, interval: float) -> pd.DataFrame:
    """The scores that follow from the confusion matrices alone: the first columns of :func:`worker_scores`.

    By worker: annotations, accuracy, spammer_score, with two classes sensitivity and specificity, and with abstentions
    abstention_rate; each with low and high.

    Raises:
        AnnotationError: the annotations name no workers.
    """
    _named(fitted.annotations)
    frame = pd.DataFrame(index=fitted.annotations.workers.to_index("worker"))
    frame["annotations"] = fitted.annotations.n_by_worker().astype(int)
    scores = partial(confusion_scores.scores, shares=fitted.posterior.mean(0), kind=fitted.annotations.kind)
    return _with_scores(fitted, frame, scores, interval)


def worker_scores(
    fitted: Fitted, interval: float = INTERVAL, *, rank_one: bool = False, misled: float | None = None
) -> pd.DataFrame:
    """Everything by worker: see :meth:`.Fit.worker_scores`."""
    _named(fitted.annotations)
    more = partial(confusion_scores.more_scores, shares=fitted.posterior.mean(0))
    frame = _with_scores(fitted, fitted_scores(fitted, interval), more, interval)
    if rank_one:
        frame = _with_scores(fitted, frame, _rank_one, interval)
    share = misled_share(fitted, misled)
    estimate = realised_accuracy(share.beside(fitted.posterior), fitted.annotations)
    draws = realised_accuracy_draws(fitted.with_uncertainty, share)[None]
    frame = with_realised_accuracy(frame, estimate, interval_around(fitted, estimate, draws, interval))
    frame = _with_error_correlation(fitted, frame, interval)
    parts = []
    if fitted.annotations.gold is not None:
        parts.append(gold_scores(fitted.annotations, interval=interval))
    if fitted.annotations.seconds is not None:
        parts.append(seconds_by_worker(fitted.annotations, interval))
    for part in parts:
        frame = frame.join(part)
    return frame


def every_score(source: Labelled, interval: float = INTERVAL) -> pd.DataFrame:
    """All scores by worker that there are: :func:`worker_scores` of a fit, those of a stack."""
    fitted = getattr(source, "fitted", None)
    if isinstance(fitted, Fitted):
        return worker_scores(fitted, interval)
    own = getattr(source, "worker_scores", None)
    return fitted_scores(source, interval) if own is None else own(interval)


def gold_scores(annotations: Annotations, gold: Any = None, *, interval: float = INTERVAL) -> pd.DataFrame:
    """Return each worker's counted share of right annotations on gold (or trap) tasks, without any story.

    Args:
        annotations: the annotations.
        gold: label by task, as :meth:`.Annotations.with_gold` takes it; None for the gold labels of the annotations.
        interval: mass of Jeffreys' interval, equal-tailed, of the proportion under the prior Beta(½, ½).

    Returns:
        By worker: gold_annotations (annotations of gold tasks, without abstentions), gold_right, gold_accuracy,
        gold_accuracy_low, gold_accuracy_high; NaN where a worker annotated no gold task.

    Raises:
        AnnotationError: the workers are not named, or there are no gold labels.
        ValueError: `interval` is not between 0 and 1.
    """
    _named(annotations)
    annotations = annotations if gold is None else annotations.with_gold(gold)
    if annotations.gold is None:
        raise AnnotationError("the annotations carry no gold labels; give gold={task: label, …}")
    truth = np.asarray(annotations.gold)[annotations.task]
    weight = np.ones(annotations.n_rows) if annotations.count is None else np.asarray(annotations.count)
    label = np.asarray(annotations.label)
    asked, right = (
        np.bincount(np.asarray(annotations.worker), weight * which, annotations.n_workers)
        for which in ((truth >= 0) & (label < annotations.n_classes), truth == label)
    )
    low, high = jeffreys(right, asked, interval)
    columns = {
        "gold_annotations": asked.astype(int),
        "gold_right": right.astype(int),
        "gold_accuracy": right / np.where(asked > 0, asked, np.nan),
        "gold_accuracy_low": low,
        "gold_accuracy_high": high,
    }
    return pd.DataFrame(columns, index=annotations.workers.to_index("worker"))


def seconds_by_worker(annotations: Annotations, interval: float = INTERVAL) -> pd.DataFrame:
    """The median of how long each worker's annotations took, with an interval that assumes no distribution.

    The interval lies between two of the worker's own times, and holds the median with at least its mass
    (:func:`.intervals.of_median`). Annotations whose time is unknown are left out.

    Args:
        annotations: the annotations, with times.
        interval: its mass, between 0 and 1.

    Returns:
        By worker: seconds, seconds_low, seconds_high; NaN without times, the interval also with too few (four or
        less at 90 %).

    Raises:
        AnnotationError: the workers are not named, or the annotations carry no times.
        ValueError: `interval` is not between 0 and 1.
    """
    _named(annotations)
    if annotations.seconds is None:
        raise AnnotationError(
            "the annotations carry no times; name their column, Annotations.from_frame(…, seconds='column')"
        )
    seconds, worker = np.asarray(annotations.seconds, dtype=float), np.asarray(annotations.worker)
    if annotations.count is not None:
        times = np.asarray(annotations.count).astype(np.int64)
        seconds, worker = np.repeat(seconds, times), np.repeat(worker, times)
    known = ~np.isnan(seconds)
    order = np.argsort(worker[known], kind="stable")
    ends = np.cumsum(np.bincount(worker[known], minlength=annotations.n_workers))[:-1]
    rows = [
        (np.median(own) if len(own) else np.nan, *of_median(own, interval))
        for own in np.split(seconds[known][order], ends)
    ]
    columns = ["seconds", "seconds_low", "seconds_high"]
    return pd.DataFrame(rows, index=annotations.workers.to_index("worker"), columns=columns, dtype=float)


def _with_scores(
    fitted: Labelled, frame: pd.DataFrame, scores: Callable[[np.ndarray], dict[str, np.ndarray]], interval: float
) -> pd.DataFrame:
    """The frame with scores ``(..., J)`` of confusion matrices: their means, and intervals with the uncertainty."""
    found = scores(fitted.confusion_draws)
    around = scores(fitted.with_uncertainty.confusion_draws)
    for name, values in found.items():
        frame[name] = estimate = values.mean((0, 1))
        frame[f"{name}_low"], frame[f"{name}_high"] = interval_around(fitted, estimate, around[name], interval)
    return frame


def _rank_one(confusions: np.ndarray) -> dict[str, np.ndarray]:
    return {"rank_one_distance": confusion_scores.rank_one_distance(confusions)}


def with_realised_accuracy(frame: pd.DataFrame, estimate: np.ndarray, interval: np.ndarray) -> pd.DataFrame:
    """The frame with the share of the annotations given that are right, beside the accuracy in the long run."""
    low, high = interval
    found = {"realised_accuracy": estimate, "realised_accuracy_low": low, "realised_accuracy_high": high}
    beside = max(at for at, name in enumerate(frame) if str(name).startswith("accuracy")) + 1
    return pd.concat([frame.iloc[:, :beside], pd.DataFrame(found, frame.index), frame.iloc[:, beside:]], axis=1)


def _with_error_correlation(fitted: Fitted, frame: pd.DataFrame, interval: float) -> pd.DataFrame:
    """The frame with how much each worker errs together with the others; NaN where nothing says so."""
    try:
        return frame.join(error_correlation(fitted, interval=interval).by_worker)
    except AnnotationError:  # no task has annotations of two workers who are sometimes wrong
        names = [f"{name}{end}" for name in ("error_correlation", "n_effective") for end in ("", "_low", "_high")]
        return frame.assign(**dict.fromkeys(names, np.nan))


def _named(annotations: Annotations) -> None:
    if not annotations.named:
        raise AnnotationError("the annotations name no workers, so there is nobody to score; fit.tasks has the tasks")
