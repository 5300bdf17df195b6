"""Agreement of the workers beyond chance: Krippendorff's alpha."""

from __future__ import annotations

import numpy as np

from .kinds import NOMINAL, Kind


def krippendorff_alpha(votes: np.ndarray, kind: Kind = NOMINAL) -> float:
    r"""Return Krippendorff's alpha.

    With :math:`n_{ik}` annotations of class k for task i, :math:`m_i = \sum_k n_{ik}`, over tasks with :math:`m_i
    \ge 2`, and the distance :math:`\delta_{kl}` of the kind of labels,

    .. math::
        D_o = \sum_i \frac{1}{m_i - 1} \sum_{kl} n_{ik} n_{il} \delta_{kl}^2, \quad n_k = \sum_i n_{ik},
        \quad n = \sum_k n_k, \quad \alpha = 1 - (n - 1) \frac{D_o}{\sum_{kl} n_k n_l \delta_{kl}^2}.

    It is 1 where all agree and 0 where they agree as often as by chance. Several annotations of one worker for a task
    count as those of several workers.

    Args:
        votes: how many annotations of each class each task has, shape (N, K).
        kind: the kind of the labels, whose distance is 0 or 1 for nominal data, and the number of steps between two
            classes for ordered data ("interval data" of the source, with classes for numbers).

    Returns:
        alpha, or NaN where no task has two annotations or all annotations are of one class, which leaves nothing to
        compare.

    Source:
        K. Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", sections C (nominal data, any
        number of observers, missing data) and D (other metrics).
    """
    n_i = votes.sum(axis=1, dtype=np.float64)
    pairable = n_i >= 2
    n_ik, m = votes[pairable].astype(np.float64), n_i[pairable, None]
    n_k = n_ik.sum(axis=0)
    n = n_k.sum()
    difference = kind.distance(votes.shape[1]) ** 2
    observed = ((n_ik @ difference) * n_ik / (m - 1)).sum()
    by_chance = n_k @ difference @ n_k
    return float(1 - (n - 1) * observed / by_chance) if by_chance > 0 else float("nan")
