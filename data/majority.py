"""Accuracy of the majority vote, as a baseline for what a story finds."""

from __future__ import annotations

import numpy as np

from .kinds import NOMINAL, Kind


def majority_accuracy(votes: np.ndarray, gold: np.ndarray, kind: Kind = NOMINAL) -> float:
    r"""Return the expected share of gold tasks whose majority vote is the gold label, with ties broken at random.

    A task counts the share of its gold label in the majority vote (:meth:`.Kind.majority`): of nominal labels
    :math:`1 / |\arg\max_k n_{ik}|`, with :math:`n_{ik}` annotations of class k for task i, where the gold label is
    among the most frequent classes, and 0 where it is not. A task without annotations is a tie of all classes.

    Args:
        votes: how many annotations of each class each task has, shape (N, K).
        gold: the gold label of each task as a class index, shape (N,), −1 where it is unknown.
        kind: the kind of the labels.

    Returns:
        The accuracy, between 0 and 1; NaN where no task has a gold label.
    """
    known = gold >= 0
    if not known.any():
        return float("nan")
    shares = kind.majority(votes[known])
    return float(shares[np.arange(len(shares)), gold[known]].mean())
