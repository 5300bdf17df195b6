"""Expected scores of tasks whose classes are ordered."""

from contextlib import suppress

import numpy as np
import pandas as pd

from ...data.errors import AnnotationError
from ...data.kinds import Kind, quantile
from ...data.questions import QUESTION
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
        By task, where questions have classes of their own of those with an order: expected, expected_low, expected_high
        in the unit of the classes' values, and median, the class with half of the probability up to it.

    Raises:
        AnnotationError: the classes have no order; where each question has classes of its own, those of no question.
    """
    if kind.by_question:
        return _of_ordered_questions(probabilities, kind, interval)
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


def _of_ordered_questions(probabilities: pd.DataFrame, kind: Kind, interval: float) -> pd.DataFrame:
    """Return the expected scores of the units of ordered questions, in their order, by the classes of each question.

    Raises:
        AnnotationError: no question has ordered classes.
    """
    question, names = pd.factorize(probabilities.index.get_level_values(QUESTION))
    parts = []
    for place in range(len(names)):
        own, rows = kind.of_question(place), np.flatnonzero(question == place)
        if own.in_order:
            chosen = kind.classes_of(place, probabilities.shape[1])
            scores = expected_scores(probabilities.iloc[rows, chosen], own, interval)
            parts.append(scores.astype({"median": object}).set_axis(rows))
    if not parts:
        kind.values(list(probabilities.columns))
    found = pd.concat(parts).sort_index()
    return found.set_axis(probabilities.index[found.index.to_numpy()])


def expected_where_ordered(probabilities: pd.DataFrame, kind: Kind) -> pd.DataFrame:
    """Return the expected score of each task with its interval, N rows; without columns where classes have no order."""
    with suppress(AnnotationError):
        return expected_scores(probabilities, kind).reindex(probabilities.index)
    return pd.DataFrame(index=probabilities.index)
