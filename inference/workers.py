"""Scores of workers from their confusion tables."""

import numpy as np


def accuracy(tables: np.ndarray, shares: np.ndarray) -> np.ndarray:
    r"""Probability of a right answer to a task of the crowd's mix: :math:`\sum_k \rho_k \, \beta_j[k, k]`.

    Args:
        tables: ``(..., J, K, K)``.
        shares: of the classes, ``(K,)``.

    Returns:
        ``(..., J)``.
    """
    return np.einsum("...kk,k->...", tables, shares)


def spammer_score(tables: np.ndarray) -> np.ndarray:
    r"""How far a table is from one whose rows are all alike: 0 for a spammer, 1 for a perfect worker.

    .. math:: S_j = \frac{1}{K (K - 1)} \sum_{k < k'} \sum_l (\beta_j[k, l] - \beta_j[k', l])^2

    (Raykar & Yu 2011, section 3). For two classes it is :math:`(\text{sensitivity} + \text{specificity} - 1)^2`.

    Args:
        tables: ``(..., J, K, L)``.

    Returns:
        ``(..., J)``.
    """
    n_classes = tables.shape[-2]
    spread = tables - tables.mean(-2, keepdims=True)
    return (spread**2).sum((-1, -2)) / (n_classes - 1)  # Σ_{k<k'} |b_k − b_k'|² = K Σ_k |b_k − b̄|²
