r"""Prevalence and accuracy from the labels' error rates among the gold tasks of each class: Rogan & Gladen's estimate.

With :math:`q_l` the share of tasks with label l, and :math:`M_{kl}` the share of label l among the gold tasks of true
class k, the prevalence :math:`\pi` solves :math:`q = M^\top \pi`; for two classes it is
:math:`(q + \text{specificity} - 1) / (\text{sensitivity} + \text{specificity} - 1)` (Rogan & Gladen 1978). The accuracy
is :math:`\sum_k \pi_k M_{kk}`.

It asks less of the gold tasks than the others: they need to be drawn at random within each class, not over all, so
that a class that is rare may have more than its share of them. It pays with wider intervals.
"""

import numpy as np

DRAWS = 4000


def error_rates(gold: np.ndarray, label: np.ndarray, n_classes: int) -> np.ndarray:
    """Counts of the gold tasks by class and label, ``(K, K)``."""
    counts = np.zeros((n_classes, n_classes))
    np.add.at(counts, (gold, label), 1)
    return counts


def solved(rates: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Prevalence and accuracy, ``(..., K + 1)``, of error rates ``(..., K, K)`` and shares of labels ``(K,)``.

    What lies outside of 0 … 1 is cut, and the prevalence is scaled to sum 1.
    """
    target = np.broadcast_to(shares, rates.shape[:-1])[..., None]
    found = np.clip(np.linalg.solve(np.swapaxes(rates, -1, -2), target)[..., 0], 0.0, None)
    total = found.sum(-1, keepdims=True)
    found = np.where(total > 0, found / np.where(total > 0, total, 1.0), 1 / len(shares))
    accuracy = (found * np.diagonal(rates, axis1=-2, axis2=-1)).sum(-1, keepdims=True)
    return np.concatenate([found, accuracy], -1)


def drawn_rates(counts: np.ndarray, n_tasks: int, seed: int) -> np.ndarray:
    r"""Draws of the error rates, ``(draw, K, K)``: each row Dirichlet, with :math:`1/K` added to each count.

    They are moved towards the counted rates, to :math:`\sqrt{1 - n/N}` of their distance, since the rates are those of
    finitely many tasks, n of which are gold.
    """
    k = len(counts)
    gamma = np.random.default_rng(seed).gamma(counts + 1 / k, size=(DRAWS, k, k))
    counted = counts / counts.sum(-1, keepdims=True)
    return counted + np.sqrt(1 - counts.sum() / n_tasks) * (gamma / gamma.sum(-1, keepdims=True) - counted)
