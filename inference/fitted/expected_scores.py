"""Expected scores of tasks whose classes are ordered."""

from contextlib import suppress

import numpy as np
import pandas as pd

from ...data.errors import AnnotationError
from ...data.kinds import Kind, quantile
from .intervals import INTERVAL, checked_tail


def expected_scores(probabilities: pd.DataFrame, kind: Kind, interval: float = INTERVAL) -> pd.DataFrame:
    r"""The expected score of each task, :math:`\sum_k P(z_i = k) \, x_k` with the classes' values :math:`x_k`.

    The interval is that of the task's true class: equal-tailed quantiles of its posterior, widened to hold the
    expected score. Classes are few, so that it often has more mass than asked for.

    Args:
        probabilities: of the labels, N tasks × K classes.
        kind: the kind of the labels, which has the classes' values.
        interval: mass, between 0 and 1.

    Returns:
        By task: expected, expected_low, expected_high in the unit of the classes' values, and median, the class with
        half of the probability up to it.

    Raises:
        AnnotationError: the classes have no order.
    """
    classes = list(probabilities.columns)
    values, posterior, tail = kind.values(classes), probabilities.to_numpy(dtype=float), checked_tail(interval)
    expected = posterior @ values
    low, high = (values[quantile(posterior, mass)] for mass in (tail, 1 - tail))
    columns = {
        "expected": expected,
        "expected_low": np.minimum(low, expected),
        "expected_high": np.maximum(high, expected),
        "median": probabilities.columns.to_numpy()[quantile(posterior, 0.5)],
    }
    return pd.DataFrame(columns, index=probabilities.index)


def expected_where_ordered(probabilities: pd.DataFrame, kind: Kind) -> pd.DataFrame:
    """Return the expected score of each task with its interval, N rows; without columns where classes have no order."""
    with suppress(AnnotationError):
        return expected_scores(probabilities, kind)
    return pd.DataFrame(index=probabilities.index)
