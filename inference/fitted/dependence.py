r"""Dependence of annotations of one task on each other given its label, of which stories say there is none.

Where tasks differ in how hard they are, or in what they look like, workers err together on some of them, and labels are
surer than they should be. With :math:`x_{ij}` the annotation of task i by worker j as a vector with a one,
:math:`p_{jk}` the mean of those to tasks of class k and :math:`q_{ik}` the label's probability, the excess of agreement
over all pairs of annotations of one task, and its variance where these are independent given the label, are

.. math::

   S = \sum_{ik} q_{ik} \sum_{j < j'} (x_{ij} - p_{jk}) \cdot (x_{ij'} - p_{j'k}), \qquad
   V = \sum_{ik} q_{ik} \sum_{j < j'} \operatorname{tr}(C_{jk} C_{j'k}), \qquad
   C_{jk} = \operatorname{diag}(p_{jk}) - p_{jk} p_{jk}^\top

The labels' probabilities, and not the labels, are in S: over draws of truths from their posterior it is a realised
discrepancy (Gelman, Meng & Stern 1996), whose mean is 0 where the story holds. The share s of the excess in what it
would be if all workers gave the same, of standard deviation :math:`\sigma`, is near the mean correlation :math:`\rho`
of two workers' errors. With four to one before that :math:`\rho` is anything up to :data:`MOST`, and not 0, the
annotations depend on each other with the probability

.. math:: \Big(1 + \frac{N(s; 0, \sigma)}{4 \int_0^{m} N(s; \rho, \sigma) \, d\rho / m}\Big)^{-1}

Of crowds that follow a story it falls with the pairs of annotations. Errors that the labels took for the truth do not
show, as on relevance, which is why the odds are not even: there labels would be the surer for it.
"""

import numpy as np
from scipy.special import log_ndtr, ndtr

from ...data import Annotations
from ...data.arrays import expected_counts
from ...data.repeats import first_annotations
from ...models.parts.concentration import diagonal_concentration
from .beyond_chance import FEWEST, of_each_question, sampled
from .by_rule import RIGHT
from .remembered import once_for_labels

MOST = 0.2  # correlation of two workers' errors, where there is any
ODDS = 4.0  # of dependence before the annotations are seen: open crowds hardly ever have none
BEFORE = ODDS / (1 + ODDS)  # the probability of it
PRODUCTS = 3e7  # annotations times classes to the third power; of more a sample of the tasks


@once_for_labels
def dependence(annotations: Annotations, posterior: np.ndarray) -> float:
    """The probability that annotations of one task depend on each other given its label: from 0 to 1.

    It is 1 where it cannot be told: of unnamed workers, of fewer than twenty tasks, where workers choose what they
    annotate, compare items, or give levels of another truth.

    Args:
        posterior: label probabilities, ``(N, K)``.
    """
    if (
        not annotations.named
        or annotations.scored
        or (annotations.abstains and annotations.informative)
        or annotations.sides is not None
        or (np.bincount(annotations.task) > 0).sum() < FEWEST
    ):
        return 1.0
    share, se = excess_agreement(annotations, posterior)
    if not np.isfinite(se):
        return 1.0
    # Far out on either side both densities underflow, and their logarithms do not.
    at_none = -0.5 * (share / se) ** 2 - np.log(se * np.sqrt(2 * np.pi))
    low, high = -share / se, (MOST - share) / se
    within = np.log(max(ndtr(high) - ndtr(low), 1e-300)) if share > 0 else log_ndtr(-low)
    return float(1 / (1 + np.exp(np.clip(at_none - within + np.log(MOST) - np.log(ODDS), -700, 700))))


@once_for_labels
def excess_agreement(annotations: Annotations, posterior: np.ndarray) -> tuple[float, float]:
    """Return the share of the excess of agreement given the labels, and its standard deviation where there is none.

    Args:
        posterior: probabilities of the labels, ``(N, K)``.
    """
    n_classes = np.shape(posterior)[1]
    task, worker, label, rows = given_labels(annotations, posterior, PRODUCTS / n_classes**3)
    begins = np.flatnonzero(np.diff(task, prepend=-1))  # of each task that is looked at
    of_these, worker = np.unique(worker, return_inverse=True)
    rows = rows[of_these]

    def of_pairs(values: np.ndarray) -> np.ndarray:
        """Return by task the sum over pairs of annotations of the inner product of their values ``(A', ...)``."""
        totals = np.add.reduceat(values, begins)
        squares = np.add.reduceat(np.einsum("ax,ax->a", values, values), begins)
        return (np.einsum("tx,tx->t", totals, totals) - squares) / 2

    gave, (one, other) = np.eye(n_classes)[label], np.triu_indices(n_classes, 1)
    excess, variance, most = np.zeros((3, len(begins)))
    for k in range(n_classes):
        share, weight = rows[:, k], np.asarray(posterior[task[begins], k], dtype=float)
        excess += weight * of_pairs(gave - share[worker])
        variance += weight * of_pairs((share * (1 - share))[worker])
        variance += 2 * weight * of_pairs((share[:, one] * share[:, other])[worker])
        most += weight * of_pairs(np.sqrt(np.maximum(1 - (share**2).sum(-1, keepdims=True), 0.0))[worker])
    if most.sum() < 1e-9 or variance.sum() < 1e-9:
        return 0.0, np.inf
    return float(excess.sum() / most.sum()), float(np.sqrt(variance.sum()) / most.sum())


def given_labels(
    annotations: Annotations, posterior: np.ndarray, n_most: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the task, worker and label of first annotations, and each worker's shares of labels given the true one.

    Args:
        posterior: probabilities of the labels, ``(N, K)``.
        n_most: annotations at the most; of more a sample of the tasks.

    Returns:
        ``(A',)`` three times, sorted by task, and ``(J, K, K)``.
    """
    annotations = of_each_question(annotations.of_classes())
    counts = expected_counts(annotations, annotations.label, np.asarray(posterior, dtype=float))
    counts += diagonal_concentration(annotations.n_classes, RIGHT)
    task, worker, label = sampled(first_annotations(annotations), annotations.n_tasks, n_most)
    return task, worker, label, counts / counts.sum(-1, keepdims=True)
