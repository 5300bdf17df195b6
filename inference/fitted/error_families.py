r"""Families of workers who err together, where each family has errors of its own.

One impression that is common to all workers takes what one family says against another for the truth. With
:math:`r_{jj'}` the share of the excess of agreement of two workers given the labels in what it would be if they gave
the same, and :math:`\pi_{jj'}` its precision where annotations are independent (:mod:`.dependence`), pairs within a
family f have a mean :math:`\mu_f \ge 0`, and pairs of different families another one. Against one mean of all pairs
this raises the log-likelihood by

.. math:: G = \frac12 \Big(\sum_f \mu_f^2 \sum_{jj' \in f} \pi_{jj'}
    + \mu_0^2 \sum_{\text{between}} \pi_{jj'} - \mu^2 \sum \pi_{jj'}\Big)

Partitions are the cuts of average linkage, where workers who are linked to nobody are one family. They have the
probability of a Chinese restaurant process with concentration 1 before the annotations are seen (Pitman 2006),
:math:`P = \prod_f (n_f - 1)! / J!`: it costs what there is to choose from.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from ...data import Annotations
from .beyond_chance import FEWEST
from .dependence import given_labels

BY_FAMILY = "dawid_skene with shared errors by family"
"""The story of the default set whose families are found here."""

WORKERS = 40  # at the most; each family adds a sum over its impressions to each task
CLEAR = 3.0  # nats by which a partition is better than one family; below it the log-posteriors would hardly choose it
CELLS = 2e7  # of tasks, families and pairs of classes at the most
ROWS = 2e5  # annotations that are looked at; of more a sample of the tasks


class ErrorFamilies(NamedTuple):
    """Workers in families that err together.

    Attributes:
        family: of each worker, ``(J,)`` int.
        log_prior: log-probability of the partition before the annotations are seen, in nats.
    """

    family: np.ndarray
    log_prior: float


def error_families(annotations: Annotations, posterior: np.ndarray) -> ErrorFamilies | None:
    """Return the families of workers who err together; None where one mean of all pairs explains it nearly as well.

    None also where it cannot be told: of unnamed workers, more than :data:`WORKERS` of them, fewer than twenty tasks,
    several questions, comparisons, and levels of another truth; and where a fit would be larger than :data:`CELLS`.

    Args:
        annotations: the data.
        posterior: label probabilities, ``(N, K)``, of a story whose workers err independently.
    """
    if not annotations.named or annotations.scored or annotations.sides is not None or annotations.question is not None:
        return None
    given = annotations.of_classes()
    active = np.unique(np.asarray(given.worker))
    if not 3 < len(active) <= WORKERS or (np.bincount(given.task) > 0).sum() < FEWEST:
        return None
    sums, variance, most = (of_pairs[np.ix_(active, active)] for of_pairs in pair_excess(given, posterior))
    excess = np.where(most > 0, sums / np.maximum(most, 1e-9), 0.0)
    precision = most**2 / np.maximum(variance, 1e-9)
    one = np.zeros(len(active), int)
    scores = {tuple(cut): _gain(cut, excess, precision) + _log_prior(cut) for cut in _cuts(excess)}
    best = max(scores, key=scores.__getitem__, default=tuple(one))
    if scores.get(best, -np.inf) < _gain(one, excess, precision) + _log_prior(one) + CLEAR:
        return None
    if annotations.n_tasks * (max(best) + 1) * annotations.n_classes**2 > CELLS:
        return None
    family = np.full(annotations.n_workers, max(best))
    family[active] = best
    return ErrorFamilies(family, _log_prior(np.array(best)))


def pair_excess(annotations: Annotations, posterior: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return by pair of workers the excess of agreement given the labels, ``(J, J)``, in annotations.

    Beside it its variance where they are independent, and what it would be if both gave the same: ``(J, J)`` each.

    Args:
        annotations: of named workers, without abstentions.
        posterior: label probabilities, ``(N, K)``.
    """
    task, worker, label, rows = given_labels(annotations, posterior, ROWS)
    of_these, task = np.unique(task, return_inverse=True)
    n_tasks, n_workers, n_classes = len(of_these), annotations.n_workers, rows.shape[-1]
    is_given = np.zeros((n_tasks, n_workers))
    is_given[task, worker] = 1.0
    excess, variance, most = np.zeros((3, n_workers, n_workers))
    for k in range(n_classes):
        share, weight = rows[:, k], np.asarray(posterior, float)[of_these, k]
        beyond = np.zeros((n_tasks, n_workers, n_classes))
        beyond[task, worker] = np.eye(n_classes)[label] - share[worker]
        excess += sum((of_class.T * weight) @ of_class for of_class in np.moveaxis(beyond, -1, 0))
        n = (is_given.T * weight) @ is_given
        covariance = np.einsum("jx,xy->jxy", share, np.eye(n_classes)) - np.einsum("jx,jy->jxy", share, share)
        variance += n * np.einsum("jxy,iyx->ji", covariance, covariance)
        spread = np.sqrt(np.maximum(1 - (share**2).sum(-1), 0.0))
        most += n * np.outer(spread, spread)
    return excess, variance, most


def _cuts(excess: np.ndarray) -> list[np.ndarray]:
    """The cuts of average linkage as families of workers ``(J,)``, of whom those who are alone are one family."""
    from scipy.cluster.hierarchy import cut_tree, linkage
    from scipy.spatial.distance import squareform

    apart = excess.max() + 1 - excess
    np.fill_diagonal(apart, 0.0)
    tree = cut_tree(linkage(squareform((apart + apart.T) / 2, checks=False), "average"))
    found = []
    for cut in tree.T[1:-1]:
        alone = np.bincount(cut)[cut] == 1
        found.append(np.unique(np.where(alone, cut.max() + 1, cut), return_inverse=True)[1])
    return found


def _gain(family: np.ndarray, excess: np.ndarray, precision: np.ndarray) -> float:
    """The log-likelihood of a partition without what is the same for all."""
    one, other = np.triu_indices(len(family), 1)
    block = np.where(family[one] == family[other], family[one] + 1, 0)
    weight = np.bincount(block, precision[one, other], family.max() + 2)
    mean = np.bincount(block, (precision * excess)[one, other], family.max() + 2) / np.maximum(weight, 1e-9)
    mean[1:] = np.maximum(mean[1:], 0.0)
    several = len(np.unique(family)) > 1
    squares = weight * mean**2
    return float((squares if several else squares[1:]).sum() / 2)


def _log_prior(family: np.ndarray) -> float:
    sizes = np.bincount(family)
    return float(gammaln(sizes[sizes > 0]).sum() - gammaln(len(family) + 1))
