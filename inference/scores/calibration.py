"""Calibration: of the labels that are held for 80 % probable, are 80 % right?"""

from typing import Any

import numpy as np
import pandas as pd

from ..fitted.intervals import INTERVAL, jeffreys
from .against_gold import Judged, judged


def reliability(
    source: Any, gold: Any = None, bins: int = 10, *, positive: object = None, interval: float = INTERVAL
) -> pd.DataFrame:
    """Compare the chosen labels' probabilities with how often these labels are right, by bins of equal width.

    Gold tasks whose labels were told to the fit are left out.

    Args:
        source: a fit, a stack, or a frame of probabilities, tasks × classes.
        gold: label by task; None for the gold labels of the annotations.
        bins: how many bins there are between 0 and 1; a probability on an edge belongs to the bin above it.
        positive: a class, to look at its probability, and at how often it is the truth, rather than at the chosen
            label.
        interval: mass of the accuracies' intervals, Jeffreys' (equal-tailed, of a proportion under the prior
            Beta(½, ½)).

    Returns:
        A row a bin, also where no task is in it: low, high, tasks, probability (the mean), accuracy (the share that
        is right, ties shared), accuracy_low, accuracy_high; NaN without tasks.

    Raises:
        AnnotationError: there is no gold label to judge by.
        ValueError: `bins` is no whole number from 1, `positive` no class, `interval` not between 0 and 1.
    """
    found = judged(source, gold)
    return _binned(*_outcomes(found, positive), bins, interval)


def expected_calibration_error(source: Any, gold: Any = None, bins: int = 10, *, positive: object = None) -> float:
    r"""How far, on average over tasks, the labels' probability is from how often they are right, bin by bin.

    .. math:: \text{ECE} = \sum_b \frac{n_b}{n} |\text{accuracy}_b - \text{probability}_b|

    (Guo et al. 2017, eq. 3.) The arguments are those of :func:`reliability`.
    """
    return calibration_error(judged(source, gold), bins, positive)


def calibration_error(found: Judged, bins: int = 10, positive: object = None) -> float:
    """:func:`expected_calibration_error` of what is judged already."""
    table = _binned(*_outcomes(found, positive), bins, INTERVAL)
    gap = (table["accuracy"] - table["probability"]).abs().fillna(0)
    return float((gap * table["tasks"]).sum() / table["tasks"].sum())


def _outcomes(found: Judged, positive: object) -> tuple[np.ndarray, np.ndarray]:
    """What was predicted and what came, ``(n,)`` each."""
    if positive is None:
        return found.chosen, found.right
    at = found.position(positive)
    return found.probabilities[:, at], (found.gold == at).astype(float)


def _binned(probability: np.ndarray, right: np.ndarray, bins: int, interval: float) -> pd.DataFrame:
    if not (isinstance(bins, int | np.integer) and bins >= 1):
        raise ValueError(f"bins={bins!r}: a whole number from 1 is needed")
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
