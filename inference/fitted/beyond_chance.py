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
near the mean correlation :math:`\rho` of two workers. Parties who contradict each other may agree no more than by
chance in all, and yet each pair of workers far more, or less. The largest eigenvalue of the matrix of the pairs'
excesses, each in its standard deviations, is then greater than that of the same annotations in random order of each
worker's, by z standard deviations once its skewness is taken away, while no entry alone need show it (Baik, Ben Arous &
Péché 2005). Of a few workers who look among many who do not, it is the other way round: their pairs agree, and the
largest eigenvalue is that of the noise of all others. So the one of the matrix whose entries are drawn to 0 by
:data:`CUT` (soft thresholding; Donoho & Johnstone 1994) has a z of its own, z'. That workers look at no task has then
the odds

.. math::

   \frac{p}{1 - p} \bigg/ \Big( (1 - q) \frac{\int_0^1 N(s; \rho, \sigma) \, d\rho}{N(s; 0, \sigma)}
   + \frac{q}{2} \sum_{x \in \{z, z'\}} \frac{\int_0^{m} N(x; \zeta, 1) \, d\zeta / m}{N(x; 0, 1)} \Big)

where p is its probability before the annotations are seen, :data:`BY_CHANCE`, q that of parties and of a few workers
among crowds who look, :data:`PARTIES`, and m is :data:`FARTHEST`.
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
PARTIES = 0.1  # probability that those who look are parties who contradict each other, or a few among many
FARTHEST = 10.0  # standard deviations of parties from chance
CUT = 2.0  # standard deviations by which pairs are drawn to chance, so that those of a few workers are left
SKEWED = np.array([0.4, 0.9])  # skewness of the largest eigenvalue, of workers who look at no task, and after the cut
SHUFFLES = 100  # orders of the annotations
LOOKED_AT = 500_000  # annotations; of more a sample of the tasks
SHUFFLED = 50_000  # of them
BY_LANCZOS = 50  # workers from which on Lanczos' method is the faster one
CLEARLY = 1e4  # times as likely where workers look, from which on agreement tells enough
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


class Parties(NamedTuple):
    """Pairs of workers who agree with or contradict each other, in standard deviations of workers who look at no task.

    Args:
        z: of the largest eigenvalue of the matrix of the pairs' excesses, above chance.
        between: of the sum of the excesses between the two parties that its eigenvector has, by its sign; negative
            where they contradict each other.
        few: as z, with each pair drawn to chance by :data:`CUT`; it is high where a few workers of many look.
    """

    z: float
    between: float
    few: float


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
    if not np.isfinite(found.share_se):
        return 0.0
    s, se = found.share, found.share_se
    looked = (1 - PARTIES) * _times_as_likely(s / se, 1 / se)
    if looked < CLEARLY:
        of_pairs = parties(annotations)
        looked += PARTIES / 2 * sum(_times_as_likely(z, FARTHEST) for z in (of_pairs.z, of_pairs.few))
    odds = BY_CHANCE / (1 - BY_CHANCE) / max(looked, 1e-300)
    return float(odds / (1 + odds))


def _times_as_likely(z: float, most: float) -> float:
    """Return how many times as likely z, of standard deviation 1, is of a mean from 0 to `most` as of 0."""
    z = min(z, most)
    within = float(ndtr(z) - ndtr(z - most)) / most
    return within * np.sqrt(2 * np.pi) * float(np.exp(min(z**2, 1000.0) / 2))


@once
def parties(annotations: Annotations) -> Parties:
    """Return by how much pairs of workers agree with or contradict each other.

    Ordered classes are compared by their values. Of many workers those with the most annotations are compared.
    """
    from scipy.sparse.linalg import eigsh

    annotations = of_each_question(annotations)
    n_classes, given = annotations.n_classes, first_annotations(annotations)
    counts = cross_counts((annotations.n_workers, n_classes), given.worker, given.label)
    most = np.argsort(-counts.sum(1), kind="stable")[:COMPARED]
    task, worker, label = sampled(given, annotations.n_tasks, min(SHUFFLED, PRODUCTS / n_classes**2))
    place = np.full(annotations.n_workers, -1)
    place[most] = np.arange(len(most))
    order = np.argsort(place[worker], kind="stable")[(place[worker] < 0).sum() :]
    task, worker, label = task[order], place[worker][order], label[order]
    own = counts[most] / np.maximum(counts[most].sum(1), 1)[:, None]
    begins = np.searchsorted(worker, np.arange(len(most) + 1))

    def by_pair(values: np.ndarray) -> np.ndarray:
        """Return the sums of products over the tasks that two workers have in common, 0 of a worker and themselves."""
        table = sparse.csr_matrix((values, task, begins), (len(most), annotations.n_tasks))
        product = np.asarray((table @ table.T).toarray())
        np.fill_diagonal(product, 0.0)
        return product

    if annotations.kind.in_order:
        columns = np.asarray(annotations.kind.values(annotations.classes))[:, None]
        of_worker = own @ columns**2 - (own @ columns) ** 2
        variance = of_worker * of_worker.T
    else:
        columns, both, cubes = np.eye(n_classes), own @ own.T, own**2 @ own.T
        variance = both - cubes - cubes.T + both**2
    variance *= by_pair(np.ones(len(task)))
    scale = np.where(variance > 1e-9, 1 / np.sqrt(np.maximum(variance, 1e-9)), 0.0)

    def largest(matrix: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the largest eigenvalue, and its vector."""
        if len(most) < BY_LANCZOS or not matrix.any():
            values, vectors = np.linalg.eigh(matrix)
        else:
            values, vectors = eigsh(matrix, k=1, which="LA", tol=1e-3, v0=np.ones(len(most)))
        return float(values[-1]), vectors[:, -1]

    def found(label: np.ndarray) -> tuple[float, float, float]:
        excess = scale * sum(by_pair(column[label] - (own @ column)[worker]) for column in columns.T)
        value, vector = largest(excess)
        one = vector > 0
        few, _ = largest(np.sign(excess) * np.maximum(np.abs(excess) - CUT, 0.0))
        return value, float(excess[np.ix_(one, ~one)].sum()), few

    rng = np.random.default_rng(0)
    shuffled = np.array([found(label[np.lexsort((rng.random(len(label)), worker))]) for _ in range(SHUFFLES)])
    apart = (found(label) - shuffled.mean(0)) / np.maximum(shuffled.std(0, ddof=1), 1e-9)
    z, few = (np.cbrt(SKEWED * apart[[0, 2]] / 2 + 1) - 1) * 6 / SKEWED + SKEWED / 6  # Wilson & Hilferty 1931
    return Parties(float(z), float(apart[1]), float(few))


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
