"""Scores by worker: from confusion matrices, from gold labels, and how long an annotation takes."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ...data import AnnotationError, Annotations
from ...data.kinds import Kind
from ..sources.on_disk import Files
from . import confusion_scores
from .class_mix import class_mix, class_mix_draws
from .counted_as_one import are_estimated, with_groups
from .error_correlation import error_correlation
from .fitted import Fitted
from .intervals import INTERVAL, jeffreys, of_median
from .misled import USUAL, checked, misleading, misled_share
from .posterior import Posterior, fitted_of, interval_around
from .realised import n_truths, realised_accuracy, realised_accuracy_draws
from .remembered import remembered

AT_ONCE = 2**18  # numbers of confusion matrices that are scored at once, about

Scores = Callable[[np.ndarray, np.ndarray], dict[str, np.ndarray]]  # of confusion matrices, and of the classes' shares


@remembered
def fitted_scores(fit: Posterior | Fitted, interval: float) -> pd.DataFrame:
    """The scores that follow from the confusion matrices alone: the first columns of :func:`worker_scores`.

    By worker: annotations, accuracy, spammer_score, with two classes sensitivity and specificity, and with abstentions
    abstention_rate; each with low and high. They are NaN of workers whose annotations were left out, since these give
    one class whatever the task. What nobody can have under a story, such as a position bias under ``one_coin``, an
    average has of its other stories alone.

    Raises:
        AnnotationError: the annotations name no workers.
    """
    source = fit.source
    _named(source)
    frame = pd.DataFrame(index=source.workers.to_index("worker"))
    frame["annotations"] = (source if isinstance(source, Files) else fit.given).n_by_worker().astype(int)
    scores = partial(confusion_scores.scores, kind=source.kind)
    frame = _with_scores(fit, frame, scores, interval)
    for name, able in _able(fit).items():
        of_able = _with_scores(able, frame[[]], scores, interval).filter(regex=f"^{name}(_low|_high)?$")
        frame[of_able.columns] = of_able
    return with_groups(_without_left_out(frame, fit), fit)


def _able(fit: Posterior | Fitted) -> dict[str, Posterior]:
    """By score of the kind of the labels the average of those stories under which workers can have it, if not all."""
    if not isinstance(fit, Posterior) or len(fit.members) < 2:
        return {}
    kind, shares = fit.source.kind, class_mix(fit)
    each = {name: kind.worker_scores(fitted.confusion_draws[:, :1], shares) for name, fitted in fit.members.items()}
    able = {}
    for score in next(iter(each.values())):
        weights = fit.weights * pd.Series({name: not np.isnan(of[score]).all() for name, of in each.items()})
        if 0 < weights.sum() < fit.weights.sum():
            able[score] = replace(fit, weights=weights / weights.sum())
    return able


def _without_left_out(frame: pd.DataFrame, fit: Posterior | Fitted) -> pd.DataFrame:
    """The scores without those of workers whose annotations were left out of the fit, which would be the prior's."""
    gone = ~are_estimated(fit)
    if gone.any():
        frame.loc[gone, [name for name in frame.columns if frame[name].dtype.kind == "f"]] = np.nan
    return frame


@remembered
def worker_scores(
    fit: Posterior, interval: float = INTERVAL, *, rank_one: bool = False, misled: float | None = None
) -> pd.DataFrame:
    """By worker what the fit, the gold labels and the times say, each with ``_low`` and ``_high``.

    - annotations: how many the worker gave, those that do not count in the fit, too.
    - accuracy: in the long run, the probability of a right annotation of a task of the crowd's mix. Its interval, and
      those of other scores over this mix, allow for a mix that is as uncertain as the labels are (:mod:`.class_mix`).
    - realised_accuracy: the share of the annotations given that are right. Its interval is from the posterior of truth
      and parameters together: 200 to 500 truths are drawn, at draws of the parameters. What gold labels of all tasks
      would show is this, not the accuracy in the long run. Unlike everything else that a fit says it allows for tasks
      that mislead the whole crowd, of which annotations can tell nothing (:mod:`.misled`): a story that takes itself
      for true is too sure of what real workers got right. By a rule it is the share of the annotations that are the
      labels, expected under their probabilities, without an interval.
    - error_correlation: the mean correlation of the worker's errors with those of the others on the same tasks, and
      n_effective: like how much of an independent worker that counts (:mod:`.error_correlation`). A story that lets
      workers err independently, one without ``shared_error=True``, is nearly blind to errors that they share. Their
      intervals are of the labels and of which tasks were seen.
    - spammer_score: how far the confusion matrix is from one whose rows are all alike (Raykar & Yu 2011); 0 for a
      spammer. Rows count alike, however rare their classes: annotations of a rare class alone make a difference here
      that accuracy, and the review, hardly see.
    - sensitivity, specificity: for two classes, of which the second is the positive one.
    - trace: probability of a right annotation where all classes are equally frequent.
    - informativeness: nats that an annotation says of the truth of a task of the crowd's mix.
    - rank_one_distance: how far the confusion matrix is from a matrix of rank one, where `rank_one` asks for it.
    - gold_annotations, gold_right, gold_accuracy: annotations of the gold tasks, where there are any, counted
      (:func:`.workers.gold_scores`).
    - seconds: the median of how long an annotation took, where times are known.
    - vote_weight: of ``"wawa"``, the weight of the worker's vote.
    - group: with ``copies="one"``, who counted as one worker, whose scores all of them have; "" for the others.

    An average has all but trace, informativeness and rank_one_distance; a rule has annotations, realised_accuracy, the
    scores of :func:`.workers.fitted_scores`, and what gold labels and times say. The scores from confusion matrices are
    in :mod:`.confusion_scores`. The intervals of a fit without draws are of draws
    around its point, widened where a score at the point lies outside of theirs (:func:`.interval_around`). Those of
    the gold labels and of the times are described in :func:`.workers.gold_scores` and
    :func:`.workers.seconds_by_worker`.

    A fit of files has annotations, realised_accuracy without an interval, and the scores from confusion matrices. Their
    intervals are over some of its draws; a point has none, as draws around it would take labels and counts of all
    chunks for each.

    Args:
        interval: mass of the intervals, equal-tailed, between 0 and 1.
        rank_one: whether to take the singular values of all confusion matrices; of one story.
        misled: the share of tasks that is expected to mislead the whole crowd, from 0 to below 1: 0.05 by default, of
            an average the share that its labels allow for, if they do; 0 for what follows from the stories alone. A
            rule knows of none.

    Raises:
        AnnotationError: the annotations name no workers.
        OneStoryError: `rank_one` or `misled` is asked of a fit that does not have it.
        ValueError: for another `interval` or `misled`.
    """
    _named(fit.source)
    fitted = fit.fitted if rank_one or fit.on_disk else None
    frame = fitted_scores(fit if fit.only is None else fit.only, interval)
    if fit.rule is not None:
        if misled is not None and checked(misled):
            fitted_of(fit)
        right = realised_accuracy(fit.posterior, fit.annotations)
        return _with_counted(fit, frame.assign(realised_accuracy=right, **fit.rule.by_worker), interval)
    if fit.only is not None:
        more_scores = partial(confusion_scores.more_scores, kind=fit.source.kind)
        frame = _with_scores(fit, frame, more_scores, interval)
        rank_one_scores = partial(_rank_one, kind=fit.source.kind)
        frame = _with_scores(fit, frame, rank_one_scores, interval) if rank_one else frame
    if fitted is not None and fitted.files is not None:
        return with_realised_accuracy(frame, realised_by_batch(fitted, fitted.files, misled))
    misled = (fit.misled or None) if misled is None else misled
    estimate = realised_accuracy(fit.allowing_for(misled).posterior, fit.annotations)
    draws = np.concatenate(list(_realised_accuracy_draws(fit, misled)))
    frame = with_realised_accuracy(frame, estimate, interval_around(fit, estimate, draws[None], interval))
    frame = _with_error_correlation(fit, _without_left_out(frame, fit), interval)
    return _with_counted(fit, frame, interval)


def _realised_accuracy_draws(fit: Posterior, misled: float | None) -> Iterator[np.ndarray]:
    """Of each story as many draws as its weight asks for: ``(draw, J)``."""
    around = [(fitted.with_uncertainty, weight) for fitted, weight in fit.weighty]
    total = max(n_truths(fitted) for fitted, _ in around)
    for fitted, weight in around:
        yield realised_accuracy_draws(fitted, misled_share(fitted, misled), max(1, round(total * weight)))


def realised_by_batch(fitted: Fitted, files: Files, misled: float | None) -> np.ndarray:
    """The share of each worker's annotations that are right, ``(J,)``, expected under the labels of all chunks.

    It allows for the misled tasks that a sample of the annotations asks for, and a guess is right in 1 of K.
    """
    right, n = np.asarray(fitted.label_sums.right, float), files.n_by_worker()
    share = np.minimum(right / np.where(n > 0, n, np.nan), 1.0)  # sums of float32
    if (seen := fitted.in_memory) is None:
        return misleading(share, USUAL if misled is None else checked(misled), files.n_classes)
    allowed = misled_share(seen, misled)
    looked = misleading(share, allowed.mean, files.n_classes)
    return (1 - allowed.nobody_looked) * looked + allowed.nobody_looked / files.n_classes


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
    annotations = (annotations if gold is None else annotations.with_gold(gold)).verdicts()
    if annotations.gold is None:
        raise AnnotationError("the annotations carry no gold labels; give gold={task: label, …}")
    truth = np.asarray(annotations.gold)[annotations.task]
    weight = annotations.row_counts
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


def _with_scores(fit: Posterior | Fitted, frame: pd.DataFrame, scores: Scores, interval: float) -> pd.DataFrame:
    """The frame with scores of confusion matrices, but for those that nobody can have under the story.

    They are means over the draws, and intervals with the uncertainty, in which the mix of tasks has its part.
    """
    found = _few_at_a_time(scores, fit.confusion_draws, class_mix(fit))
    has_interval = fit.has_draws or isinstance(fit.source, Annotations)
    around = _few_at_a_time(scores, fit.with_uncertainty.confusion_draws, class_mix_draws(fit)) if has_interval else {}
    for name, values in found.items():
        if np.isnan(values).all():  # under this story nobody can have it
            continue
        frame[name] = estimate = values.mean((0, 1))
        if has_interval:
            frame[f"{name}_low"], frame[f"{name}_high"] = interval_around(fit, estimate, around[name], interval)
    return frame


def _few_at_a_time(scores: Scores, confusions: np.ndarray, shares: np.ndarray) -> dict[str, np.ndarray]:
    """Scores ``(chain, draw, J)`` of confusion matrices ``(chain, draw, J, K, L)``, of :data:`AT_ONCE` numbers or so.

    What is computed on the way then stays in a core's cache.

    Args:
        scores: of matrices and shares.
        confusions: in each draw.
        shares: of the classes, in each draw, ``(chain, draw, 1 or J, K)``, or of all draws.
    """
    n = max(1, AT_ONCE // max(confusions[:, :1].size, 1))
    of_draws = shares.ndim == confusions.ndim - 1
    blocks = [
        scores(confusions[:, first : first + n], shares[:, first : first + n] if of_draws else shares)
        for first in range(0, confusions.shape[1], n)
    ]
    return {name: np.concatenate([block[name] for block in blocks], axis=1) for name in blocks[0]}


def _rank_one(confusions: np.ndarray, shares: np.ndarray, kind: Kind) -> dict[str, np.ndarray]:
    distance = confusion_scores.rank_one_distance
    found = confusion_scores.over_questions(lambda own, _: distance(own), confusions, shares, kind)
    return {"rank_one_distance": found}


def with_realised_accuracy(
    frame: pd.DataFrame, estimate: np.ndarray, interval: np.ndarray | None = None
) -> pd.DataFrame:
    """The frame with the share of the annotations given that are right, beside the accuracy in the long run."""
    found = {"realised_accuracy": estimate}
    if interval is not None:
        found["realised_accuracy_low"], found["realised_accuracy_high"] = interval
    beside = max(at for at, name in enumerate(frame) if str(name).startswith("accuracy")) + 1
    return pd.concat([frame.iloc[:, :beside], pd.DataFrame(found, frame.index), frame.iloc[:, beside:]], axis=1)


def _with_counted(fit: Posterior, frame: pd.DataFrame, interval: float) -> pd.DataFrame:
    """The frame with groups, and what gold labels and times say of what each worker gave, whatever the fit."""
    frame = with_groups(frame, fit)
    if fit.given.gold is not None:
        frame = frame.join(gold_scores(fit.given, interval=interval))
    if fit.given.seconds is not None:
        frame = frame.join(seconds_by_worker(fit.given, interval))
    return frame if "group" not in frame else frame[[*frame.columns.drop("group"), "group"]]


def _with_error_correlation(fit: Posterior, frame: pd.DataFrame, interval: float) -> pd.DataFrame:
    """The frame with how much each worker errs together with the others; NaN where nothing says so."""
    try:
        return frame.join(error_correlation(fit, interval=interval).by_worker)
    except AnnotationError:  # no task has annotations of two workers who are sometimes wrong
        names = [f"{name}{end}" for name in ("error_correlation", "n_effective") for end in ("", "_low", "_high")]
        return frame.assign(**dict.fromkeys(names, np.nan))


def _named(annotations: Annotations | Files) -> None:
    if not annotations.named:
        tasks = "fit.iter_labels() yields" if isinstance(annotations, Files) else "fit.tasks has"
        raise AnnotationError(f"the annotations name no workers, so there is nobody to score; {tasks} the tasks")
