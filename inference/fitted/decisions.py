"""From probabilities to labels by a threshold or least expected cost, and to expected scores of ordered classes."""

from contextlib import suppress

import numpy as np
import pandas as pd

from ...data.errors import AnnotationError, real_number
from ...data.ids import class_values
from ...data.kinds import NOMINAL, Kind, quantile
from ...data.questions import QUESTION
from .intervals import INTERVAL, checked_tail


def decide(
    probabilities: pd.DataFrame,
    *,
    threshold: float | None = None,
    positive: object = None,
    costs: pd.DataFrame | np.ndarray | str | None = None,
    abstain: float | None = None,
    kind: Kind = NOMINAL,
) -> pd.DataFrame:
    r"""A label for each task, with its probability and expected cost.

    Without arguments the most probable class (ties: the first). The expected cost of the label :math:`l` is
    :math:`\sum_k P(z_i = k) \, C[k, l]`, and the least one is taken.

    Args:
        probabilities: tasks × classes.
        threshold: two classes: label ``positive`` where its probability is at least this.
        positive: the class that the threshold speaks of; the second one by default.
        costs: :math:`C`, true classes × labels, zero or more, as a frame or ``(K, K)``; or, of ordered classes,
            ``"absolute"`` or ``"squared"`` for the difference of the classes' values (:meth:`.Kind.costs`). By default
            0 right and 1 wrong.
        abstain: cost of giving no label; a task whose every label would cost more gets None.
        kind: the kind of the labels.

    Returns:
        by task: label (int64 or bool where all classes are, else object, as with ``abstain``), probability,
        expected_cost.

    Raises:
        ValueError: for a threshold with more than two classes or with costs, costs of a wrong shape or below zero, or
            no label that would cost more than any.
    """
    classes = list(probabilities.columns)
    values = probabilities.to_numpy(dtype=float)
    if threshold is not None:
        if costs is not None:
            raise ValueError("give a threshold or costs, not both: a threshold is the costs (0, t; 1 − t, 0)")
        at = _positive_class(threshold, positive, classes)
        costs = np.where(np.arange(2)[:, None] == at, 1 - threshold, threshold) * (1 - np.eye(2))
    matrix = _cost_matrix(costs, classes, kind)
    expected = values @ matrix
    choice = expected.argmin(-1) if threshold is None else np.where(values[:, at] >= threshold, at, 1 - at)
    rows = np.arange(len(values))
    labels = class_values(probabilities.columns)[choice]
    cost, probability = expected[rows, choice], values[rows, choice]
    if abstain is not None:
        if isinstance(abstain, str) or not abstain >= 0:
            raise ValueError(f"abstain={abstain!r}: the cost of no label is a number, zero or more")
        if abstain >= matrix.max():
            raise ValueError(
                f"abstain={abstain}: no label costs more than {matrix.max():g}, so that every task gets one; give "
                "less, or leave abstain out"
            )
        silent = cost > abstain
        labels = labels.astype(object)
        labels[silent] = None
        cost, probability = np.where(silent, abstain, cost), np.where(silent, np.nan, probability)
    columns = {
        "label": pd.Series(labels, probabilities.index, dtype=labels.dtype),
        "probability": probability,
        "expected_cost": cost,
    }
    return pd.DataFrame(columns, index=probabilities.index)


def _positive_class(threshold: float, positive: object, classes: list) -> int:
    if len(classes) != 2:
        raise ValueError(f"threshold={threshold} needs two classes, these are {len(classes)}: {classes}; give costs")
    real_number("threshold", threshold, 0, 1)
    positive = classes[1] if positive is None else positive
    if positive not in classes:
        raise ValueError(f"positive={positive!r} is no class; the classes are {classes}")
    return classes.index(positive)


def _cost_matrix(costs: pd.DataFrame | np.ndarray | str | None, classes: list, kind: Kind) -> np.ndarray:
    if costs is None or isinstance(costs, str):
        return kind.costs(classes, costs)
    if isinstance(costs, pd.DataFrame):
        unknown = [name for name in classes if name not in costs.index or name not in costs.columns]
        if unknown:
            raise AnnotationError(f"costs have no row or no column for the class {unknown[0]!r}; classes are {classes}")
        costs = costs.loc[classes, classes].to_numpy()
    try:
        matrix = np.asarray(costs, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(
            f"costs={costs!r}: a table or array of numbers is needed, true classes × labels {classes}, such as "
            f"pd.DataFrame(1.0, index={classes}, columns={classes})"
        ) from None
    if matrix.shape != (len(classes),) * 2:
        raise ValueError(f"costs of shape {matrix.shape}: true classes × labels {classes} are needed")
    if (bad := np.argwhere(~(np.isfinite(matrix) & (matrix >= 0)))).size:
        row, column = bad[0]
        raise ValueError(
            f"costs, row {classes[row]!r} (true class), column {classes[column]!r} (label): {matrix[row, column]:g}; a "
            "finite number, zero or more, is needed; one number added to a whole row changes no decision"
        )
    return matrix


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
        "median": class_values(probabilities.columns)[quantile(posterior, 0.5)],
    }
    return pd.DataFrame(columns, index=probabilities.index)


def _of_ordered_questions(probabilities: pd.DataFrame, kind: Kind, interval: float) -> pd.DataFrame:
    """Return the expected scores of the units of ordered questions, in their order, by the classes of each question."""
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
