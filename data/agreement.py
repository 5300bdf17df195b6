"""Coefficients of agreement of the workers, each as a function of vote counts, tasks' weights and classes' distances.

Tasks' weights, shape (B, N), are how often each of B resamples has each task. Each coefficient is made of the same few
sums over tasks, (B, T), so that a bootstrap is a product of matrices; a single row of ones gives the coefficients of
the data.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .errors import check_name
from .kinds import NOMINAL, Kind

METRICS = ("nominal", "ordinal", "interval")


def distances(n_classes: int, kind: Kind = NOMINAL, metric: str | None = None) -> np.ndarray:
    r"""Return how much two classes disagree, shape (K, K).

    Args:
        n_classes: K.
        kind: the kind of the labels, whose squared distance it is where no metric is given.
        metric: ``"nominal"``: 0 or 1; ``"interval"``: :math:`(k - l)^2`; ``"ordinal"``: :math:`|k - l|
            \, (|k - l| + 1) / 2`, the number of pairs of classes from k to l (Gwet 2014, section 3.5), which stands for
            Krippendorff's ordinal metric in the coefficients that are not his; None for that of the kind.

    Raises:
        UnknownNameError: there is no such metric.
    """
    if metric is None:
        return kind.distance(n_classes) ** 2
    check_name("metric", metric, METRICS)
    position = np.arange(n_classes, dtype=np.float64)
    steps = np.abs(position[:, None] - position)
    if metric == "nominal":
        return 1.0 * (steps > 0)
    return steps**2 if metric == "interval" else steps * (steps + 1) / 2


@dataclass(frozen=True)
class VoteAgreement:
    """Agreement by the votes alone: what the coefficients of a crowd are made of.

    Attributes:
        votes: how many annotations of each class each task has, shape (N, K).
        distance: how much two classes disagree, shape (K, K).
        ranks: True for Krippendorff's ordinal metric in alpha, whose distances are those of the classes' mean ranks.
    """

    votes: np.ndarray
    distance: np.ndarray
    ranks: bool = False

    def sums(self, weights: Any) -> np.ndarray:
        r"""Return the sums over weighted tasks of which all coefficients are made, shape (B, T).

        With :math:`n_{ik}` annotations of class k for task i and :math:`m_i = \sum_k n_{ik}`, of tasks with :math:`m_i
        \ge 2`: :math:`n_{ik}`; :math:`n_{ik} (n_{ik} - 1) / (m_i - 1)`; how much two annotations agree; and one. Of
        tasks with any: the classes' shares :math:`n_{ik} / m_i`, and one. Last, of tasks with two again,
        :math:`\sum_{kl} n_{ik} n_{il} \delta_{kl}^2 / (m_i - 1)`, or each :math:`n_{ik} n_{il} / (m_i - 1)` where
        distances are of ranks.

        Args:
            weights: of the tasks, (B, N), dense or sparse.
        """
        counts, m = self._counts
        agreement, pairable = self.by_task
        counted, others = counts * pairable, np.maximum(m - 1, 1)
        terms = [counted, counted * (counts - 1) / others, agreement, 1.0 * pairable]
        terms += [counts / np.maximum(m, 1), 1.0 * (m > 0)]
        if self.ranks:
            summed = [weights @ (counted * of_class / others).T for of_class in counts]
        else:
            summed = [weights @ ((self.distance @ counted * counts).sum(0) / others)[:, None]]
        return np.concatenate([*(weights @ np.atleast_2d(term).T for term in terms), *summed], 1)

    def _parts(self, sums: np.ndarray) -> list[np.ndarray]:
        """Return the parts of sums, in their order: (B, K), (B, K), (B, 1), (B, 1), (B, K), (B, 1) and the last."""
        k = len(self.distance)
        return np.split(sums, np.cumsum([k, k, 1, 1, k, 1]), axis=1)

    def coefficients(self, sums: np.ndarray) -> np.ndarray:
        """Return observed agreement, alpha, Fleiss' kappa and Gwet's AC, shape (B, 4)."""
        observed, shares = self.observed(sums), self.shares(sums)
        beyond = [beyond_chance(observed, by_chance(shares)) for by_chance in (self.fleiss_chance, self.gwet_chance)]
        return np.stack([observed, self.krippendorff_alpha(sums), *beyond], 1)

    def krippendorff_alpha(self, sums: np.ndarray) -> np.ndarray:
        r"""Return Krippendorff's alpha, shape (B,).

        With :math:`n_{ik}` annotations of class k for task i, :math:`m_i = \sum_k n_{ik}`, over tasks with :math:`m_i
        \ge 2`, and the squared distance :math:`\delta_{kl}^2`,

        .. math::
            D_o = \sum_i \frac{1}{m_i - 1} \sum_{kl} n_{ik} n_{il} \delta_{kl}^2, \quad n_k = \sum_i n_{ik},
            \quad n = \sum_k n_k, \quad \alpha = 1 - (n - 1) \frac{D_o}{\sum_{kl} n_k n_l \delta_{kl}^2}.

        It is 1 where all agree and 0 where they agree as often as by chance; NaN where no task has two annotations or
        all are of one class, which leaves nothing to compare. A task with one annotation does not count.

        Source:
            K. Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", sections C (nominal data, any number
            of observers, missing data) and D (other metrics).
        """
        n_k, *_, apart = self._parts(sums)
        n = n_k.sum(1)
        if self.ranks:
            rank = np.cumsum(n_k, axis=1) - n_k / 2
            distance = (rank[:, :, None] - rank[:, None]) ** 2
            observed = (apart * distance.reshape(apart.shape)).sum(1)
            by_chance = np.einsum("bk,bkl,bl->b", n_k, distance, n_k)
        else:
            observed = apart[:, 0]
            by_chance = ((n_k @ self.distance) * n_k).sum(1)
        return 1 - (n - 1) * _ratio(observed, by_chance)

    def observed(self, sums: np.ndarray) -> np.ndarray:
        r"""Return how much two annotations of a task agree, shape (B,): the mean over tasks with two or more.

        :math:`\sum_{kl} w_{kl} n_{ik} (n_{il} - [k = l]) / (m_i (m_i - 1))`, with
        :math:`w_{kl} = 1 - \delta_{kl} / \max \delta`: the share of pairs of annotations that are equal, for nominal
        classes.
        """
        _, _, agreement, n_tasks, *_ = self._parts(sums)
        return _ratio(agreement, n_tasks)[:, 0]

    @cached_property
    def by_task(self) -> tuple[np.ndarray, np.ndarray]:
        """Return how much two annotations of each task agree, 0 of a task with fewer, and which have two, (N,) each."""
        counts, m = self._counts
        agreed = (self.class_weights @ counts * counts).sum(0) - m
        return agreed / np.maximum(m * (m - 1), 1), m >= 2

    @cached_property
    def _counts(self) -> tuple[np.ndarray, np.ndarray]:
        """Return annotations by class and task, (K, N), whose long rows are quick to go through, and by task, (N,)."""
        counts = np.ascontiguousarray(self.votes.T, dtype=np.float64)
        return counts, counts.sum(0)

    @cached_property
    def class_weights(self) -> np.ndarray:
        """Agreement of each two classes, 1 where they are equal and 0 where they are farthest apart, shape (K, K)."""
        return class_weights(self.distance)

    def shares(self, sums: np.ndarray) -> np.ndarray:
        r"""Return the mean share of each class in a task's annotations, shape (B, K), over tasks with any."""
        *_, shares, n_tasks, _ = self._parts(sums)
        return _ratio(shares, n_tasks)

    def fleiss_chance(self, shares: np.ndarray) -> np.ndarray:
        r"""Return agreement by chance :math:`\sum_{kl} w_{kl} \pi_k \pi_l` of Fleiss' kappa, of :meth:`shares`.

        Source:
            J. L. Fleiss (1971), "Measuring nominal scale agreement among many raters", with weights and missing
            annotations as K. L. Gwet (2014), "Handbook of Inter-Rater Reliability", chapters 2 and 3.
        """
        return ((shares @ self.class_weights) * shares).sum(1)

    def gwet_chance(self, shares: np.ndarray) -> np.ndarray:
        r"""Return agreement by chance of Gwet's AC1, or AC2 where classes are partly alike, of :meth:`shares`.

        :math:`\frac{\sum_{kl} w_{kl}}{K (K - 1)} \sum_k \pi_k (1 - \pi_k)`.

        Source:
            K. L. Gwet (2008), "Computing inter-rater reliability and its variance in the presence of high agreement";
            missing annotations as in his handbook.
        """
        n_classes = len(self.distance)
        factor = self.class_weights.sum() / (n_classes * (n_classes - 1))
        return factor * (shares * (1 - shares)).sum(1)

    def by_class(self, sums: np.ndarray) -> np.ndarray:
        r"""Return each class's share, its specific agreement, and alpha of this class against the rest, (B, 3 K).

        Specific agreement is the probability that a second annotation of the task is of class k where one is,
        :math:`\sum_i n_{ik} (n_{ik} - 1) / (m_i - 1) / \sum_i n_{ik}`, over tasks with two annotations (Cicchetti &
        Feinstein 1990, "High agreement but low kappa: II", of any number of annotations).
        """
        n_k, alike, *_ = self._parts(sums)
        n = n_k.sum(1, keepdims=True)
        alpha = 1 - (n - 1) * _ratio(n_k - alike, n_k * (n - n_k))
        return np.concatenate([_ratio(n_k, n), _ratio(alike, n_k), alpha], 1)


def class_weights(distance: np.ndarray) -> np.ndarray:
    """Return how much two classes agree, 1 where they are equal and 0 where they are farthest apart, shape (K, K)."""
    return 1 - distance / distance.max()


def beyond_chance(observed: np.ndarray, by_chance: np.ndarray) -> np.ndarray:
    r"""Return :math:`(p_o - p_e) / (1 - p_e)`, NaN where chance alone agrees always."""
    return _ratio(observed - by_chance, 1 - by_chance)


def krippendorff_alpha(votes: np.ndarray, kind: Kind = NOMINAL) -> float:
    """Return Krippendorff's alpha of vote counts, shape (N, K), by the squared distance of their kind.

    See :meth:`VoteAgreement.krippendorff_alpha`. Several annotations of one worker for a task count as those of
    several workers.
    """
    agreement = VoteAgreement(votes, distances(votes.shape[1], kind))
    return float(agreement.krippendorff_alpha(agreement.sums(np.ones((1, len(votes)))))[0])


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Return a quotient, NaN where it divides by nothing, or by what rounding left of nothing."""
    is_some = below > 1e-12
    return np.where(is_some, above / np.where(is_some, below, 1.0), np.nan)
