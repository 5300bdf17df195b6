"""Scores of workers from their confusion matrices."""

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
    r"""Probability of a right annotation to a task of the crowd's mix: :math:`\sum_k \rho_k \, \beta_j[k, k]`.

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

    (Raykar & Yu 2011, section 3). For two classes it is :math:`(\text{sensitivity} + \text{specificity} - 1)^2`. It
    is also :math:`\frac{1}{K - 1} \min_v \|\beta_j - \mathbf{1} v^\top\|_F^2`, the distance to the nearest table
    whose rows are all :math:`v`, which is their mean; :func:`rank_one_distance` lets the rows differ in length too.

    Args:
        tables: ``(..., J, K, L)``.

    Returns:
        ``(..., J)``.
    """
    n_classes = tables.shape[-2]
    spread = tables - tables.mean(-2, keepdims=True)
    return (spread**2).sum((-1, -2)) / (n_classes - 1)  # Σ_{k<k'} |b_k − b_k'|² = K Σ_k |b_k − b̄|²


def sensitivity(tables: np.ndarray) -> np.ndarray:
    r"""Probability of a right annotation to a positive task, :math:`\beta_j[1, 1]`: the second class is the positive one.

    Args:
        tables: ``(..., J, 2, 2)``.

    Returns:
        ``(..., J)``.
    """
    return tables[..., 1, 1]


def specificity(tables: np.ndarray) -> np.ndarray:
    r"""Probability of a right annotation to a negative task, :math:`\beta_j[0, 0]`: the first class is the negative one.

    Args:
        tables: ``(..., J, 2, 2)``.

    Returns:
        ``(..., J)``.
    """
    return tables[..., 0, 0]


def more_scores(tables: np.ndarray, shares: np.ndarray) -> dict[str, np.ndarray]:
    """The scores that come after those of :func:`scores`, by name, ``(..., J)`` each.

    Args:
        tables: ``(..., J, K, K)``.
        shares: of the classes, ``(K,)``.
    """
    return {"trace": trace(tables), "informativeness": informativeness(tables, shares)}


def trace(tables: np.ndarray) -> np.ndarray:
    r"""Probability of a right annotation where all classes are equally frequent: :math:`\text{tr}(\beta_j) / K`.

    Args:
        tables: ``(..., J, K, K)``.

    Returns:
        ``(..., J)``.
    """
    return np.einsum("...kk->...", tables) / tables.shape[-1]


def informativeness(tables: np.ndarray, shares: np.ndarray) -> np.ndarray:
    r"""How much an annotation says of the truth: their mutual information in nats, for a task of the crowd's mix.

    .. math:: I_j = \sum_{k, l} \rho_k \beta_j[k, l] \log \frac{\beta_j[k, l]}{\sum_{k'} \rho_{k'} \beta_j[k', l]}

    0 for a spammer, the entropy of :math:`\rho` for a perfect worker, and for one who errs in a way that can be undone.

    Args:
        tables: ``(..., J, K, L)``.
        shares: :math:`\rho`, of the classes, ``(K,)``.

    Returns:
        ``(..., J)``.
    """
    answers = np.einsum("...kl,k->...l", tables, shares)
    noise = np.einsum("...k,k->...", entropy(tables), shares)
    return np.maximum(entropy(answers) - noise, 0.0)


def rank_one_distance(tables: np.ndarray) -> np.ndarray:
    r"""How far a table is from the nearest matrix of rank one: 0 for a spammer, 1 for a perfect worker.

    .. math:: \frac{1}{K - 1} \min_{u, v} \|\beta_j - u v^\top\|_F^2 = \frac{1}{K - 1} \sum_{r \geq 2} \sigma_r^2

    with the singular values :math:`\sigma_r` (Eckart & Young 1936). Rows that sum to one are all alike where the rank
    is one, so this and :func:`spammer_score` are 0 for the same tables; elsewhere it is the smaller.

    Args:
        tables: ``(..., J, K, L)``. A table takes 1 µs for two classes, 10 µs for ten.

    Returns:
        ``(..., J)``.
    """
    values = np.linalg.svd(tables, compute_uv=False)
    return (values[..., 1:] ** 2).sum(-1) / (tables.shape[-2] - 1)


def entropy(p: np.ndarray) -> np.ndarray:
    """Of probabilities along the last axis, in nats."""
    return 0.0 - (p * np.log(np.where(p > 0, p, 1.0))).sum(-1)  # no entropy is −0
