"""Scores of workers from their confusion tables."""

import numpy as np


def scores(tables: np.ndarray, shares: np.ndarray) -> dict[str, np.ndarray]:
    """All scores by name, ``(..., J)`` each; sensitivity and specificity where there are two classes.

    Args:
        tables: ``(..., J, K, K)``.
        shares: of the classes, ``(K,)``.
    """
    found = {"accuracy": accuracy(tables, shares), "spammer_score": spammer_score(tables)}
    if tables.shape[-2:] == (2, 2):
        found |= {"sensitivity": sensitivity(tables), "specificity": specificity(tables)}
    return found


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


def sensitivity(tables: np.ndarray) -> np.ndarray:
    r"""Probability of a right answer to a positive task, :math:`\beta_j[1, 1]`: the second class is the positive one.

    Args:
        tables: ``(..., J, 2, 2)``.

    Returns:
        ``(..., J)``.
    """
    return tables[..., 1, 1]


def specificity(tables: np.ndarray) -> np.ndarray:
    r"""Probability of a right answer to a negative task, :math:`\beta_j[0, 0]`: the first class is the negative one.

    Args:
        tables: ``(..., J, 2, 2)``.

    Returns:
        ``(..., J)``.
    """
    return tables[..., 0, 0]
