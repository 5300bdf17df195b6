r"""Scores of workers from their confusion matrices, ``(..., J, K, L)``: rows are true classes, columns annotations.

The first K columns are classes. Where there are more, abstentions, the chance of being right is among the annotations
that are no abstentions. ``shares``, :math:`\rho`, are of the classes, ``(K,)``, or of the tasks that each worker is
asked about, ``(J, K)``. A score is ``(..., J)``.
"""

from collections.abc import Callable

import numpy as np

from ...data.kinds import NOMINAL, Kind

TINY = 1e-30  # what is divided by at the least


def scores(confusions: np.ndarray, shares: np.ndarray, kind: Kind = NOMINAL) -> dict[str, np.ndarray]:
    """All scores by name, ``(..., J)`` each; sensitivity and specificity where there are two classes.

    Args:
        kind: the kind of the labels, which may have scores of its own.
    """
    n_classes = confusions.shape[-2]
    spammer = over_questions(lambda own, _: spammer_score(own), confusions, shares, kind)
    found = {"accuracy": accuracy(confusions, shares), "spammer_score": spammer}
    if n_classes == 2:
        found |= {"sensitivity": sensitivity(confusions), "specificity": specificity(confusions)}
    if confusions.shape[-1] > n_classes:
        found |= {"abstention_rate": abstention_rate(confusions, shares)}
    return found | kind.worker_scores(confusions, shares)


def over_questions(
    score: Callable[[np.ndarray, np.ndarray], np.ndarray], confusions: np.ndarray, shares: np.ndarray, kind: Kind
) -> np.ndarray:
    """Return a score; where questions have classes of their own its mean over them, as frequent as their classes are.

    Args:
        score: of confusion matrices and shares, ``(..., J)``.
    """
    n_classes, n_categories = confusions.shape[-2:]
    if kind.own is None:
        return score(confusions, shares)
    total = weight = np.zeros(())
    for row in kind.own:
        chosen = np.flatnonzero(row)
        own = confusions[..., chosen, :][..., np.append(chosen, np.arange(n_classes, n_categories))]
        own = own / np.maximum(own.sum(-1, keepdims=True), TINY)
        asked = shares[..., chosen].sum(-1)
        total = total + asked * score(own, shares[..., chosen] / np.maximum(asked, TINY)[..., None])
        weight = weight + asked
    return np.asarray(total / np.maximum(weight, TINY))


def abstention_rate(confusions: np.ndarray, shares: np.ndarray) -> np.ndarray:
    r"""Probability of abstaining, of the crowd's mix of tasks: :math:`\sum_k \rho_k \sum_{l \geq K} \beta_j[k, l]`."""
    return _probability(np.einsum("...kl,...k->...", confusions[..., confusions.shape[-2] :], shares))


def given_a_class(confusions: np.ndarray) -> np.ndarray:
    """Confusion matrices of the annotations that are no abstentions: ``(..., J, K, L)`` to ``(..., J, K, K)``."""
    n_classes = confusions.shape[-2]
    if confusions.shape[-1] == n_classes:
        return confusions
    given = confusions[..., :n_classes]
    total = given.sum(-1, keepdims=True)
    return np.where(total > 0, given / np.where(total > 0, total, 1.0), np.nan)


def accuracy(confusions: np.ndarray, shares: np.ndarray) -> np.ndarray:
    r"""Probability that an annotation of a task of the crowd's mix is right: :math:`\sum_k \rho_k \, \beta_j[k, k]`.

    With abstentions it is divided by the probability of an annotation that is none,
    :math:`\sum_k \rho_k \sum_{l < K} \beta_j[k, l]`.
    """
    right = np.einsum("...kk,...k->...", confusions[..., : confusions.shape[-2]], shares)
    if confusions.shape[-1] == confusions.shape[-2]:
        return _probability(right)
    given = 1 - abstention_rate(confusions, shares)
    return _probability(np.where(given > 0, right / np.where(given > 0, given, 1.0), np.nan))


def spammer_score(confusions: np.ndarray) -> np.ndarray:
    r"""Return the distance from a confusion matrix to equal rows: 0 for a spammer, 1 for a perfect worker.

    .. math:: S_j = \frac{1}{K (K - 1)} \sum_{k < k'} \sum_l (\beta_j[k, l] - \beta_j[k', l])^2

    (Raykar & Yu 2011, section 3). For two classes it is :math:`(\text{sensitivity} + \text{specificity} - 1)^2`. It
    is also :math:`\frac{1}{K - 1} \min_v \|\beta_j - \mathbf{1} v^\top\|_F^2`, the distance to the nearest matrix
    whose rows all equal one :math:`v`, the mean row; :func:`rank_one_distance` lets the rows differ in length too.
    """
    n_classes = confusions.shape[-2]
    spread = confusions - (np.einsum("...kl->...l", confusions) / n_classes)[..., None, :]
    return np.einsum("...kl,...kl->...", spread, spread) / (n_classes - 1)  # Σ_{k<k'} |b_k − b_k'|² = K Σ_k |b_k − b̄|²


def sensitivity(confusions: np.ndarray) -> np.ndarray:
    r"""Probability of a right annotation of a positive task, :math:`\beta_j[1, 1]`: class 2 is the positive one."""
    return given_a_class(confusions)[..., 1, 1]


def specificity(confusions: np.ndarray) -> np.ndarray:
    r"""Probability of a right annotation of a negative task, :math:`\beta_j[0, 0]`: class 1 is the negative one."""
    return given_a_class(confusions)[..., 0, 0]


def more_scores(confusions: np.ndarray, shares: np.ndarray, kind: Kind = NOMINAL) -> dict[str, np.ndarray]:
    """The scores that come after those of :func:`scores`, by name, ``(..., J)`` each.

    Args:
        kind: the kind of the labels, which says where questions have classes of their own.
    """
    told = over_questions(informativeness, confusions, shares, kind)
    return {"trace": trace(confusions), "informativeness": told}


def trace(confusions: np.ndarray) -> np.ndarray:
    r"""Probability of a right annotation where all classes are equally frequent: :math:`\text{tr}(\beta_j) / K`."""
    return _probability(np.einsum("...kk->...", given_a_class(confusions)) / confusions.shape[-2])


def informativeness(confusions: np.ndarray, shares: np.ndarray) -> np.ndarray:
    r"""Return the mutual information between an annotation and the truth, in nats, at the crowd's shares of classes.

    .. math:: I_j = \sum_{k, l} \rho_k \beta_j[k, l] \log \frac{\beta_j[k, l]}{\sum_{k'} \rho_{k'} \beta_j[k', l]}

    It is 0 for a spammer. It is the entropy of :math:`\rho` for a perfect worker, and for a worker whose errors can be
    undone, such as one who always swaps two classes.
    """
    given = np.einsum("...kl,...k->...l", confusions, shares)
    noise = np.einsum("...k,...k->...", entropy(confusions), shares)
    return np.maximum(entropy(given) - noise, 0.0)


def rank_one_distance(confusions: np.ndarray) -> np.ndarray:
    r"""Return the distance from a confusion matrix to the nearest matrix of rank one: 0 for a spammer, 1 if perfect.

    .. math:: \frac{1}{K - 1} \min_{u, v} \|\beta_j - u v^\top\|_F^2 = \frac{1}{K - 1} \sum_{r \geq 2} \sigma_r^2

    with the singular values :math:`\sigma_r` (Eckart & Young 1936). Rows that sum to one are equal where the rank is
    one, so this distance and :func:`spammer_score` are 0 for the same matrices; elsewhere the distance is smaller.
    One takes 1 µs for two classes, 10 µs for ten.
    """
    values = np.linalg.svd(confusions, compute_uv=False)
    return (values[..., 1:] ** 2).sum(-1) / (confusions.shape[-2] - 1)


def _probability(values: np.ndarray) -> np.ndarray:
    """Without what rounding has added to one: rows of float32 sum to one up to some 1e-7."""
    return np.clip(values, 0.0, 1.0)


def entropy(p: np.ndarray) -> np.ndarray:
    """Of probabilities along the last axis, in nats."""
    logs = np.log(np.maximum(p, np.finfo(p.dtype).tiny))
    return 0.0 - np.einsum("...k,...k->...", p, logs)  # no entropy is −0
