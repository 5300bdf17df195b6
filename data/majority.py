"""How often the majority vote is right, as a baseline for what a story finds."""

from __future__ import annotations

import numpy as np


def majority_accuracy(votes: np.ndarray, gold: np.ndarray) -> float:
    r"""Return the expected share of gold tasks whose majority vote is the gold label, with ties broken at random.

    With :math:`n_{ik}` annotations of class k for task i and gold label :math:`g_i`, a task counts
    :math:`1 / |\arg\max_k n_{ik}|` where :math:`g_i` is among the most frequent classes, and 0 where it is not. A task
    without annotations is a tie of all classes.

    Args:
        votes: how many annotations of each class each task has, shape (N, K).
        gold: the gold label of each task as a class index, shape (N,), −1 where it is unknown.

    Returns:
        The accuracy, between 0 and 1; NaN where no task has a gold label.
    """
    known = gold >= 0
    if not known.any():
        return float("nan")
    most = votes[known] == votes[known].max(axis=1, keepdims=True)
    right = most[np.arange(len(most)), gold[known]] / most.sum(axis=1)
    return float(right.mean())
