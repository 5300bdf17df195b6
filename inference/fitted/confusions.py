"""The workers' confusion matrices: all draws in long form, and their mean over the draws."""

import numpy as np
import pandas as pd
from jax import Array

from ...data import Annotations, Ids
from ..densities.programs import compiled
from .confusion_scores import accuracy
from .fitted import Fitted
from .intervals import INTERVAL
from .posterior import Posterior, interval_around

EXTREMES = ("best", "worst", "average")
"""Of which workers :func:`extreme_weights` are."""


def confusion_frame(source: Posterior, interval: float = INTERVAL) -> pd.DataFrame:
    """The workers' confusion matrices in long form: worker, truth, annotation, probability, low, high.

    Args:
        source: with named workers.
        interval: mass of the equal-tailed intervals, between 0 and 1; around a point they hold the estimate
            (:func:`.interval_around`).

    Raises:
        AnnotationError: the annotations name no workers.
    """
    annotations, estimate = source.annotations, np.asarray(source.confusion_draws).mean((0, 1))
    ids = {"worker": annotations.workers, "truth": annotations.classes, "annotation": annotations.categories}
    index = pd.MultiIndex.from_product([one.to_index(name) for name, one in ids.items()])
    draws = np.asarray(source.with_uncertainty.confusion_draws)
    low, high = interval_around(source, estimate, draws, interval)
    columns = {"probability": estimate.ravel(), "low": low.ravel(), "high": high.ravel()}
    return pd.DataFrame(columns, index=index).reset_index()


def extreme_weights(source: Posterior) -> np.ndarray:
    """Weights ``(3, J)`` of the workers in three confusion matrices: of the best, of the worst, and of all on average.

    The best and the worst are by accuracy, whatever number of annotations they gave, of those who gave any; the average
    is over the annotations.

    Raises:
        AnnotationError: the annotations name no workers.
    """
    shares, given = source.posterior.mean(0), source.annotations.n_by_worker()
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
    weights, annotations = extreme_weights(source), source.annotations
    at_point, around = (
        np.einsum("cdjkl,mj->cdmkl", draws, weights)
        for draws in (source.confusion_draws, source.with_uncertainty.confusion_draws)
    )
    ids = {"truth": annotations.classes, "annotation": annotations.categories}
    index = pd.MultiIndex.from_product([pd.Index(EXTREMES, name="which"), *(v.to_index(k) for k, v in ids.items())])
    low, high = interval_around(source, at_point.mean((0, 1)), around, interval)
    columns = {"probability": at_point.mean((0, 1)).ravel(), "low": low.ravel(), "high": high.ravel()}
    frame = pd.DataFrame(columns, index=index).reset_index()
    names = annotations.workers.to_index().tolist()
    worker = {"best": names[weights[0].argmax()], "worst": names[weights[1].argmax()], "average": None}
    frame.insert(1, "worker", pd.Series([worker[which] for which in frame["which"]], dtype=object))
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
