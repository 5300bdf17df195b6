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
        interval: mass of the equal-tailed intervals, between 0 and 1.
    """
    estimate = np.asarray(draws).mean((0, 1))
    low, high = interval_around(source, estimate, np.asarray(around), interval)
    ids = {"truth": source.annotations.classes, "annotation": source.annotations.verdicts().categories}
    index = pd.MultiIndex.from_product([of, *(names.to_index(dim) for dim, names in ids.items())])
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
    weights = extreme_weights(source)
    at_point, around = (
        np.einsum("cdjkl,mj->cdmkl", draws, weights)
        for draws in (source.confusion_draws, source.with_uncertainty.confusion_draws)
    )
    frame = long_frame(source, pd.Index(EXTREMES, name="which"), at_point, around, interval)
    names = source.annotations.workers.to_index().tolist()
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
