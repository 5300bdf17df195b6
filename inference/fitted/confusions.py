"""Workers' confusion matrices: all draws in long form, their mean, and those of new workers by their features."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array

from ...data import Annotations, Ids
from ...data.features import checked_features, ids_of_features, resolve_worker_features
from ..densities.enumerated import Parameters
from ..densities.programs import compiled
from .confusion_scores import accuracy
from .counted_as_one import are_estimated
from .fitted import Fitted
from .intervals import INTERVAL
from .posterior import Posterior, fitted_of, interval_around

EXTREMES = ("best", "worst", "average")
"""Of which workers :func:`extreme_weights` are."""


def confusion_frame(source: Posterior, interval: float = INTERVAL) -> pd.DataFrame:
    """The workers' confusion matrices in long form: worker, truth, annotation, probability, low, high.

    Where workers have a quality on each question, a column question follows that of the workers.

    Args:
        source: with named workers.
        interval: mass of the equal-tailed intervals, between 0 and 1; around a point they hold the estimate
            (:func:`.interval_around`).

    Raises:
        AnnotationError: the annotations name no workers.
    """
    draws, around = source.confusion_draws, source.with_uncertainty.confusion_draws
    return long_frame(source, source.annotations.workers.to_index("worker"), draws, around, interval)


def long_frame(
    source: Posterior | Fitted, of: pd.Index, draws: np.ndarray, around: np.ndarray, interval: float
) -> pd.DataFrame:
    """Confusion matrices in long form: what they are of, truth, annotation, probability, low, high.

    Args:
        source: with the classes and the abstentions.
        of: names of the n matrices.
        draws: of the matrices, ``(chain, draw, n, K, L)``, whose mean is the probability.
        around: of the matrices of the ``with_uncertainty`` of `source`, ``(chain, draw, n, K, L)``.
    """
    estimate = np.asarray(draws).mean((0, 1))
    low, high = interval_around(source, estimate, np.asarray(around), interval)
    ids = {"truth": source.annotations.classes, "annotation": source.annotations.verdicts().categories}
    cells = pd.MultiIndex.from_product([names.to_index(dim) for dim, names in ids.items()]).to_frame(index=False)
    matrix, cell = np.divmod(np.arange(estimate.size), len(cells))
    names = of.to_frame(index=False).iloc[matrix].reset_index(drop=True)  # one column, or those of worker and question
    found = pd.concat([names, cells.iloc[cell].reset_index(drop=True)], axis=1)
    return found.assign(probability=estimate.ravel(), low=low.ravel(), high=high.ravel())


def extreme_weights(source: Posterior) -> np.ndarray:
    """Weights ``(3, J)`` of the workers in three confusion matrices: of the best, of the worst, and of all on average.

    The best and the worst are by accuracy, whatever number of annotations they gave, of those who gave any; the average
    is over the annotations, but for those of workers who were left out.

    Raises:
        AnnotationError: the annotations name no workers.
    """
    shares, given = source.posterior.mean(0), np.where(are_estimated(source), source.given.n_by_worker(), 0)
    right = accuracy(source.confusion_draws, shares).mean((0, 1))
    best = np.where(given > 0, right, -np.inf).argmax()
    worst = np.where(given > 0, right, np.inf).argmin()
    return np.stack([np.eye(len(given))[best], np.eye(len(given))[worst], given / given.sum()])


def extreme_frame(source: Posterior, interval: float = INTERVAL) -> pd.DataFrame:
    """Best, worst and average confusion matrix in long form: which, worker, truth, annotation, probability, low, high.

    Args:
        source: with named workers.
        interval: mass of the equal-tailed intervals, between 0 and 1.

    Raises:
        AnnotationError: the annotations name no workers.
    """
    weights = extreme_weights(source)
    at_point, around = (
        np.einsum("cdjkl,mj->cdmkl", draws, weights)
        for draws in (source.confusion_draws, source.with_uncertainty.confusion_draws)
    )
    frame = long_frame(source, pd.Index(EXTREMES, name="which"), at_point, around, interval)
    rows = {"best": weights[0].argmax(), "worst": weights[1].argmax()}
    for place, (column, names) in enumerate(
        source.annotations.workers.to_index("worker").to_frame(index=False).items()
    ):
        given = [names.iloc[rows[which]] if which in rows else None for which in frame["which"]]
        frame.insert(1 + place, column, pd.Series(given, dtype=object))
    return frame


def mean_confusions(fitted: Fitted) -> np.ndarray:
    """Each worker's confusion matrix, averaged over the draws: ``(J, K, L)``.

    Where no worker is named there is one matrix, of everyone: ``(1, K, L)``.
    """
    data = fitted.data
    of = data if data.named else data.replace(worker=np.zeros(data.n_rows, np.int32), workers=Ids.range(1))
    return np.asarray(_mean_confusions(fitted, of), dtype=float)


@compiled(once=True)
def _mean_confusions(fitted: Fitted, of: Annotations) -> Array:
    return fitted.mean_over_draws(lambda draw: fitted.at(draw).likelihood.emission.confusions(of))


def new_worker_confusions(
    fit: Posterior, worker_features: Any, x: Any = None, interval: float = INTERVAL
) -> pd.DataFrame:
    """The confusion matrices of new workers in long form: worker, truth, annotation, probability, low, high.

    Where a confusion matrix depends on the task too, it is the mean over the tasks.

    Args:
        fit: of a story that knows workers by their features, as ``confusion_from_features`` does of annotations with
            ``worker_features=``.
        worker_features: of the new workers, as many as those of the fit have: a mapping worker -> vector, a table with
            the column or index worker, whose other columns are found by their names, or an array ``(n, F)`` of workers
            0 to n − 1.
        x: features ``(n, ...)`` of the tasks; None for the tasks of the fit.
        interval: mass of the equal-tailed intervals, between 0 and 1.

    Raises:
        ValueError: the story knows workers by their annotations, or features have another shape or are not finite.
        AnnotationError: the features of a worker cannot be read.
    """
    fitted = fitted_of(fit)
    _check_story(fitted)
    workers = ids_of_features(worker_features, "worker", "workers")
    features = resolve_worker_features(worker_features, workers, known=fitted.data.worker_feature_names)
    expected = np.asarray(fitted.data.worker_features).shape[1]
    if features.shape[1] != expected:
        raise ValueError(
            f"worker_features have {features.shape[1]} columns; {expected} are needed, as those of the fit's workers"
        )
    of = _everything_once(fitted, x)
    draws, around = (_new_confusions(source, of, features) for source in (fitted, fitted.with_uncertainty))
    return long_frame(fitted, workers.to_index("worker"), np.asarray(draws), np.asarray(around), interval)


def _check_story(fitted: Fitted) -> None:
    """Check that no parameter is a worker's own."""
    own = [name for name, dims in fitted.dims.items() if "worker" in dims]
    if not own and fitted.data.worker_features is not None:
        return
    why = f"its parameters {own} are each worker's own" if own else "its workers have no features"
    raise ValueError(
        f"this fit of {fitted.story} says nothing of a worker without annotations: {why}; confusion_from_features of "
        "annotations with worker_features= and without abstentions knows workers by their features alone"
    )


def _everything_once(fitted: Fitted, x: Any) -> Annotations:
    """Annotations of one worker to every task, of which nothing but the features matters."""
    data = fitted.data
    if x is not None:
        by_task = [name for name, dims in fitted.dims.items() if "task" in dims]
        if data.features is None or by_task:
            why = f"its parameters {by_task} are each task's own" if by_task else "its tasks have no features"
            raise ValueError(f"x would say nothing: {why}; leave it out")
        x = checked_features(x, np.shape(data.features)[1:], data.feature_names)
        if not len(x):
            raise ValueError("x has no tasks; one or more are needed")
        prior = None if data.prior is None else np.full((len(x), data.n_classes), 1 / data.n_classes, np.float32)
        unknown: dict[str, Any] = {"evidence": None, "model_scores": None, "model_reference": None, "models": Ids()}
        if data.question is not None:
            unknown["question"] = np.arange(len(x), dtype=np.int32) % len(data.questions)
        data = data.replace(features=x, tasks=Ids.range(len(x)), prior=prior, population=None, **unknown)
    rows, first = np.arange(data.n_tasks, dtype=np.int32), np.zeros(data.n_tasks, np.int32)
    one = np.zeros((1, np.asarray(data.worker_features).shape[1]), np.float32)
    return data.replace(task=rows, worker=first, label=first, count=None, workers=Ids.range(1), worker_features=one)


@compiled(once=True)
def _new_confusions(fitted: Fitted, of: Annotations, features: Array) -> Array:
    """In each draw: ``(chain, draw, n, K, L)``."""

    def at(draw: Parameters) -> Array:
        def of_worker(one: Array) -> Array:
            annotations = of.replace(worker_features=one[None])
            emission = fitted.with_data(annotations).at(draw).likelihood.emission
            return emission.confusions(annotations)[0]

        return jax.lax.map(of_worker, jnp.asarray(features))

    return fitted.over_draws(at)
