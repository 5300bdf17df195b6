r"""Agreement of workers on a task beyond that of workers who look at no task, by class and in all.

With :math:`x_{ij}` the annotation of task i by worker j as a vector with a one, and :math:`p_j` its mean over the
worker's tasks, the excess over all pairs of annotations of one task, and its variance where every worker's annotations
are in random order (which has the mean 0), are

.. math::

   S = \sum_i \sum_{j < j'} (x_{ij} - p_j) \cdot (x_{ij'} - p_{j'}), \qquad
   V = \sum_i \sum_{j < j'} \operatorname{tr}(C_j C_{j'}), \qquad C_j = \operatorname{diag}(p_j) - p_j p_j^\top

but for terms of the order of one over a worker's number of tasks; of one class these are its entry of the product, and
its entries of :math:`C`. A worker of one class alone adds nothing to either.

Judges with scales of their own may never give the same of ordered classes, and rank the tasks alike. So of ordered
classes x is also taken as the value of the annotation, a number.

The share s of the excess in what it would be if all workers gave the same, of standard deviation :math:`\sigma`, is
near the mean correlation :math:`\rho` of two workers. That workers look at no task has then the odds

.. math::

   \frac{p}{1 - p} \; \frac{N(s; 0, \sigma)}{\int_0^1 N(s; \rho, \sigma) \, d\rho}

where p is its probability before the annotations are seen, :data:`BY_CHANCE`. Two parties of whom one contradicts the
other may agree no more than by chance in all. Then the squared excess of pairs of workers is greater than its mean of
workers who look at no task, which is each pair's variance; and these look.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.special import ndtr

from ...data import Annotations
from ...data.arrays import cross_counts
from ...data.questions import Units
from ...data.repeats import FirstAnnotations, first_annotations
from .remembered import once

BY_CHANCE = 0.2  # probability that workers look at no task, before their annotations are seen
FEWEST = 20  # tasks under which nothing is said
COMPARED = 400  # workers whose pairs are looked at
SIDES = 4.0  # standard deviations from which pairs of workers agree, or contradict each other, beyond chance
LOOKED_AT = 500_000  # annotations; of more a sample of the tasks
PRODUCTS = 3e7  # annotations times pairs of classes, likewise
CLEAR = 3.0  # standard deviations from which agreement of values counts, where that of classes says less


class BeyondChance(NamedTuple):
    """Agreement beyond chance: over all classes, and of each class ``(K,)``.

    Args:
        z: the excess in standard deviations of workers who look at no task; 0 where it has none. Of ordered classes it
            is of their values where these agree clearly, and more than the classes do; so are the next two.
        share: the excess over what it would be if all workers gave the same, near the mean correlation of two workers.
        share_se: standard deviation of the share, of workers who look at no task; infinite without pairs.
        z_by_class: as ``z``, of the annotations as one class or another.
        votes: the tasks that the class has by the majority vote of workers who gave several classes; ties are shared.
    """

    z: float
    share: float
    share_se: float
    z_by_class: np.ndarray
    votes: np.ndarray


def of_each_question(annotations: Annotations) -> Annotations:
    """The annotations by worker and question, since classes may be rare on one question and frequent on another."""
    asked = annotations.question is not None and not isinstance(annotations.workers, Units)
    return annotations.by_question() if asked else annotations


@once
def agreement(annotations: Annotations) -> BeyondChance:
    """Return the agreement of workers beyond chance.

    Args:
        annotations: of named workers.
    """
    annotations = of_each_question(annotations)
    given, n_classes = first_annotations(annotations), annotations.n_classes
    counts = cross_counts((annotations.n_workers, n_classes), given.worker, given.label)
    shares = counts / np.maximum(counts.sum(1), 1)[:, None]
    votes = _votes(given, (counts > 0).sum(1) > 1, annotations.n_tasks, n_classes)
    task, worker, label = sampled(given, annotations.n_tasks, PRODUCTS / n_classes**2)

    def of_pairs(values: np.ndarray) -> float:
        """Return the sum over pairs of annotations of one task of the product of their values."""
        return float((np.bincount(task, values) ** 2).sum() - (values**2).sum()) / 2

    excess, variance = np.zeros(n_classes), np.zeros(n_classes)
    of_classes = 0.0
    for k in range(n_classes):
        share = shares[:, k]
        excess[k] = of_pairs((label == k) - share[worker])
        variance[k] = of_pairs((share * (1 - share))[worker])
        of_classes += 2 * sum(of_pairs((share * shares[:, m])[worker]) for m in range(k))
    most = of_pairs(np.sqrt(np.maximum(1 - (shares**2).sum(1), 0.0))[worker])
    deviation = np.sqrt(max(variance.sum() + of_classes, 0.0))
    z_by_class = np.where(variance > 1e-9, excess / np.sqrt(np.maximum(variance, 1e-9)), 0.0)
    if annotations.kind.in_order:
        values = annotations.kind.values(annotations.classes)
        means, squares = shares @ values, shares @ values**2
        variances = np.maximum(squares - means**2, 0.0)[worker]
        alike, spread = of_pairs(values[label] - means[worker]), np.sqrt(of_pairs(variances))
        if alike > CLEAR * spread and alike * deviation > excess.sum() * spread:
            excess, deviation, most = np.array([alike]), spread, of_pairs(np.sqrt(variances))
    if most < 1e-9 or deviation < 1e-9:
        return BeyondChance(0.0, 0.0, np.inf, z_by_class, votes)
    return BeyondChance(excess.sum() / deviation, excess.sum() / most, deviation / most, z_by_class, votes)


@once
def by_chance(annotations: Annotations) -> float:
    """The probability that the workers look at no task: from 0 to 1.

    It is 0 where it cannot be told: of unnamed workers, of fewer than :data:`FEWEST` tasks, where workers give one
    class each, choose what they annotate, or give levels of another truth, and where something else tells of the
    labels: gold labels, given or models' probabilities, features, or the items that comparisons share.

    Args:
        annotations: the data, with the evidence that was used.
    """
    if (
        not annotations.named
        or annotations.scored
        or (annotations.abstains and annotations.informative)
        or annotations.sides is not None
        or any(
            told is not None
            for told in (annotations.evidence, annotations.prior, annotations.model_scores, annotations.features)
        )
        or (np.bincount(annotations.task) > 0).sum() < FEWEST
    ):
        return 0.0
    found = agreement(annotations)
    if not np.isfinite(found.share_se) or takes_sides(annotations) >= SIDES:
        return 0.0
    s, se = found.share, found.share_se
    at_none = np.exp(-((s / se) ** 2) / 2) / (se * np.sqrt(2 * np.pi))
    odds = BY_CHANCE / (1 - BY_CHANCE) * at_none / max(float(ndtr((1 - s) / se) - ndtr(-s / se)), 1e-300)
    return float(odds / (1 + odds))


def takes_sides(annotations: Annotations) -> float:
    """Return by how much pairs of workers agree or contradict each other, in standard deviations of chance.

    Of many workers those with the most annotations are compared.

    Args:
        annotations: of named workers.
    """
    annotations = of_each_question(annotations)
    first, n_classes = first_annotations(annotations), annotations.n_classes
    counts = cross_counts((annotations.n_workers, n_classes), first.worker, first.label)
    shares, most = counts / np.maximum(counts.sum(1), 1)[:, None], np.argsort(-counts.sum(1), kind="stable")[:COMPARED]
    task, worker, label = sampled(first, annotations.n_tasks, PRODUCTS / n_classes**2)

    def by_pair(values: np.ndarray) -> np.ndarray:
        """Return the sums of products over the tasks that two workers have in common."""
        table = sparse.csr_matrix((values, (worker, task)), (annotations.n_workers, annotations.n_tasks))[most]
        return np.asarray((table @ table.T).toarray())

    excess = np.zeros((len(most), len(most)))
    for k in range(n_classes):
        excess += by_pair((label == k) - shares[worker, k])
    own = shares[most]
    both, cubes = own @ own.T, own**2 @ own.T
    variance = by_pair(np.ones(len(task))) * (both - cubes - cubes.T + both**2)
    pairs = np.triu_indices(len(most), 1)
    return float((excess[pairs] ** 2 - variance[pairs]).sum() / max(np.sqrt(2 * (variance[pairs] ** 2).sum()), 1e-9))


def sampled(given: FirstAnnotations, n_tasks: int, most: float) -> FirstAnnotations:
    """Return the annotations of all tasks, or of a random sample of them where they are more than about `most`."""
    most = min(most, LOOKED_AT)
    if len(given.task) <= most:
        return given
    kept = (np.random.default_rng(0).random(n_tasks) < most / len(given.task))[given.task]
    return FirstAnnotations(given.task[kept], given.worker[kept], given.label[kept])


def _votes(given: FirstAnnotations, is_varied: np.ndarray, n_tasks: int, n_classes: int) -> np.ndarray:
    """Return the tasks of each class by the majority vote of some workers, ``(K,)``; ties are shared."""
    kept = is_varied[given.worker]
    votes = cross_counts((n_tasks, n_classes), given.task[kept], given.label[kept])
    most = (votes == votes.max(1, keepdims=True)) & (votes > 0)
    return (most / np.maximum(most.sum(1, keepdims=True), 1)).sum(0)
