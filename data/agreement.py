"""How far the workers agree beyond chance: Krippendorff's alpha."""

from __future__ import annotations

import numpy as np


def krippendorff_alpha(votes: np.ndarray) -> float:
    r"""Return Krippendorff's alpha for nominal data.

    With :math:`n_{ik}` annotations of class k for task i, :math:`m_i = \sum_k n_{ik}`, over tasks with :math:`m_i
    \ge 2`,

    .. math::
        o_{kk} = \sum_i \frac{n_{ik} (n_{ik} - 1)}{m_i - 1}, \quad n_k = \sum_i n_{ik}, \quad n = \sum_k n_k,
        \quad \alpha = 1 - (n - 1) \frac{n - \sum_k o_{kk}}{n^2 - \sum_k n_k^2}.

    It is 1 where all agree and 0 where they agree as often as by chance. Several annotations of one worker for a task
    count as those of several workers.

    Args:
        votes: how many annotations of each class each task has, shape (N, K).

    Returns:
        alpha, or NaN where no task has two annotations or all annotations are of one class, which leaves nothing to
        compare.

    Source:
        K. Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", section C (nominal data, any
        number of observers, missing data).
    """
    n_i = votes.sum(axis=1, dtype=np.float64)
    pairable = n_i >= 2
    n_ik, m = votes[pairable].astype(np.float64), n_i[pairable, None]
    n_k = n_ik.sum(axis=0)
    n = n_k.sum()
    agreeing = (n_ik * (n_ik - 1) / (m - 1)).sum()
    by_chance = n**2 - (n_k**2).sum()
    return float(1 - (n - 1) * (n - agreeing) / by_chance) if by_chance > 0 else float("nan")
