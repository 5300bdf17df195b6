"""The workers' confusion matrices: all draws in long form, and their mean over the draws."""

import numpy as np
import pandas as pd
from jax import Array

from ...data import Annotations, Ids
from ..densities.programs import compiled
from .fitted import Fitted
from .intervals import INTERVAL
from .labelled import Labelled, interval_around


def confusion_frame(source: Labelled, interval: float = INTERVAL) -> pd.DataFrame:
    """The workers' confusion matrices in long form: worker, truth, annotation, probability, low, high.

    Args:
        source: with named workers.
        interval: mass of the equal-tailed intervals, between 0 and 1; around a point they hold the estimate
            (:func:`.interval_around`).

    Raises:
        AnnotationError: the annotations name no workers.
    """
    estimate, annotations = np.asarray(source.confusion_draws).mean((0, 1)), source.annotations
    ids = {"worker": annotations.workers, "truth": annotations.classes, "annotation": annotations.kinds}
    index = pd.MultiIndex.from_product([one.to_index(name) for name, one in ids.items()])
    draws = np.asarray(source.with_uncertainty.confusion_draws)
    low, high = interval_around(source, estimate, draws, interval)
    columns = {"probability": estimate.ravel(), "low": low.ravel(), "high": high.ravel()}
    return pd.DataFrame(columns, index=index).reset_index()


def mean_confusions(fitted: Fitted) -> np.ndarray:
    """Each worker's confusion matrix, averaged over the draws: ``(J, K, L)``.

    Where no worker is named there is one matrix, of everyone: ``(1, K, L)``.
    """
    data = fitted.data
    of = data if data.named else data.replace(worker=np.zeros(data.n_rows, np.int32), workers=Ids.range(1))
    return np.asarray(_mean_confusions(fitted, of), dtype=float)


@compiled(once=True)
def _mean_confusions(fitted: Fitted, of: Annotations) -> Array:
    return fitted.mean_over_draws(lambda draw: fitted.at(draw).responses.emission.confusions(of))
