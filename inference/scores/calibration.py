"""Calibration: whether labels of probability 0.8 are right for 80 % of the tasks."""

from typing import Any

import numpy as np
import pandas as pd

from ...data.errors import whole_number
from ..fitted.intervals import INTERVAL, jeffreys
from .against_gold import GoldTasks, against_gold


def reliability(
    source: Any, gold: Any = None, bins: int = 10, *, positive: object = None, interval: float = INTERVAL
) -> pd.DataFrame:
    """Compare the probabilities of labels with how often the labels are right, in bins of equal width.

    Gold tasks whose gold labels the fit used are left out.

    Example:
        >>> import pandas as pd
        >>> import crowdppl as cp
        >>> probabilities = pd.DataFrame({"cat": [0.9, 0.8, 0.3], "dog": [0.1, 0.2, 0.7]})
        >>> table = cp.reliability(probabilities, {0: "cat", 1: "dog", 2: "dog"}, bins=2)
        >>> table[["low", "high", "tasks"]].values.tolist()
        [[0.0, 0.5, 0.0], [0.5, 1.0, 3.0]]

    Args:
        source: a fit, a stack, or a frame of probabilities, tasks × classes.
        gold: label by task; None for the gold labels of the annotations.
        bins: how many bins there are between 0 and 1, from 1; a probability on an edge belongs to the bin above it.
        positive: a class, whose probability is compared with how often it is the gold label; by default it is the
            probability of the most probable class.
        interval: mass of the accuracies' intervals, between 0 and 1: Jeffreys' (equal-tailed, of a proportion under
            the prior Beta(½, ½)).

    Returns:
        A row for each bin: low, high (its edges), tasks (how many), probability (their mean), accuracy (the share of
        right labels, of a tie its share), accuracy_low, accuracy_high; NaN in bins without tasks.

    Raises:
        AnnotationError: there is no gold label to score by.
        UnknownNameError: `positive` is no class.
        ValueError: `bins` is no whole number from 1, or `interval` is not between 0 and 1.
    """
    return _binned(*_outcomes(against_gold(source, gold), positive), bins, interval)


def calibration_error(found: GoldTasks, bins: int = 10) -> float:
    r"""Return the expected calibration error of gold tasks: the mean gap of probability and accuracy, bin by bin.

    .. math:: \text{ECE} = \sum_b \frac{n_b}{n} |\text{accuracy}_b - \text{probability}_b|

    (Guo et al. 2017, eq. 3.) The bins, and what is raised, are as for :func:`reliability`.
    """
    table = _binned(found.label_probability, found.right, bins, INTERVAL)
    gap = (table["accuracy"] - table["probability"]).abs().fillna(0)
    return float((gap * table["tasks"]).sum() / table["tasks"].sum())


def _outcomes(found: GoldTasks, positive: object) -> tuple[np.ndarray, np.ndarray]:
    """Each task's probability, and 1 where what it is the probability of is true, ``(n,)`` each."""
    if positive is None:
        return found.label_probability, found.right
    at = found.position(positive)
    return found.probabilities[:, at], (found.gold == at).astype(float)


def _binned(probability: np.ndarray, right: np.ndarray, bins: int, interval: float) -> pd.DataFrame:
    """The table of :func:`reliability` of probabilities ``(n,)`` and of how right they are, ``(n,)``."""
    bins = whole_number("bins", bins, 1)
    edges = np.arange(bins + 1) / bins  # exactly the quotients, unlike linspace
    at = np.clip(np.searchsorted(edges, probability, side="right") - 1, 0, bins - 1)
    tasks = np.bincount(at, minlength=bins)
    hits = np.bincount(at, right, minlength=bins)
    low, high = jeffreys(hits, tasks, interval)
    some = np.where(tasks > 0, tasks, np.nan)
    return pd.DataFrame(
        {
            "low": edges[:-1],
            "high": edges[1:],
            "tasks": tasks,
            "probability": np.bincount(at, probability, minlength=bins) / some,
            "accuracy": hits / some,
            "accuracy_low": low,
            "accuracy_high": high,
        }
    ).rename_axis("bin")
