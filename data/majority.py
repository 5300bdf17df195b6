"""Accuracy of the majority vote, as a baseline for what a story finds."""

import numpy as np

from .kinds import NOMINAL, Kind

TIE = 1e-6  # probabilities that differ by less are equal: they come in single precision


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
    return float(right_shares(kind.majority(votes[known]), gold[known]).mean())


def right_shares(probabilities: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Return 1 where the most probable class is the gold label, else 0, shape (n,); a tie of m classes counts for 1/m.

    Args:
        probabilities: of the classes, shape (n, K).
        gold: the gold labels as class indices, shape (n,).
    """
    best = probabilities >= probabilities.max(-1, keepdims=True) - TIE
    shares: np.ndarray = best[np.arange(len(gold)), gold] / best.sum(-1)
    return shares
