r"""Workers whose repeated annotations of a task agree more often than independent ones would.

An annotation that a worker gives to a task again counts like one of another worker: independent given the true class.
Runs of one language model are not where it errs on the same tasks each time, and three runs then count like three
judges; they may even outvote the others, so that the fit takes them for right. How often they would agree is therefore
taken from others. With :math:`x` an annotation of the worker as a vector with a one, :math:`y` one of somebody else,
and both independent given the class, the covariances of two annotations of one task, of two of the worker, of one of
the worker and one of another, and of two of different others, are of the forms :math:`A S A'`, :math:`A S B'` and
:math:`B S B'`, so that :math:`C_{xx} = C_{xy} C_{yy}^{-1} C_{yx}`: what a reliability is in two classes (Spearman
1904). Two annotations of the worker then agree with probability :math:`|\bar x|^2 + \mathrm{tr}\, C_{xx}`.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from ...data import Annotations
from ...data.some_tasks import some_tasks

TASKS = 20  # that a worker annotated more than once, and two others too, at the least
MARGIN = 0.05  # of the share of pairs that agree, over what is expected
ERRORS = 3.0  # standard errors beyond the margin
MUCH = 0.02  # of all annotations repeat the worker's: chosen with `adult` in view, where .2 % do and none agrees
DRAWS = 200  # of the tasks' weights
NUMBERS = 5e6  # of all tasks' matrices, about: of more tasks a sample is looked at
NOTHING = 1e-9  # variance of what no annotation differs in, such as their sum
TESTED = 20  # workers, those with the most repeats first


@dataclass(frozen=True)
class AgreeingRepeats:
    """A worker whose repeated annotations are not independent of each other given the true class.

    Attributes:
        worker: the position.
        n_tasks: how many tasks the worker annotated more than once.
        agreement: how often two annotations of one of these tasks agree.
        expected: how often they would if they were independent given the class, by how others agree.
    """

    worker: int
    n_tasks: int
    agreement: float
    expected: float


def agreeing_repeats(annotations: Annotations) -> list[AgreeingRepeats]:
    """Return the workers whose repeats agree more than independent ones would, those with the most repeats first.

    A worker counts where repeats agree by :data:`MARGIN` more than is expected, by :data:`ERRORS` standard errors of
    the tasks' Bayesian bootstrap, and where they are enough to matter.

    Args:
        annotations: of named workers, without abstentions.
    """
    n_annotations, annotations = annotations.n_annotations, some_tasks(annotations, annotations.annotated_again)
    n_workers, n_classes = annotations.n_workers, annotations.n_classes
    weight = annotations.row_counts
    pair, place = np.unique(
        np.asarray(annotations.task, np.int64) * n_workers + np.asarray(annotations.worker), return_inverse=True
    )
    given = sparse.csr_matrix((weight, (place, np.asarray(annotations.label))), (len(pair), n_classes))
    task, worker, size = pair // n_workers, pair % n_workers, np.asarray(given.sum(1)).ravel()
    again = np.bincount(worker, np.maximum(size - 1, 0), n_workers)
    found = []
    for one in np.argsort(-again, kind="stable")[:TESTED]:
        repeated = np.flatnonzero((worker == one) & (size > 1))
        if again[one] < MUCH * n_annotations or len(repeated) < TASKS:
            continue
        place_of_task = np.full(annotations.n_tasks, -1)
        place_of_task[task[repeated]] = np.arange(len(repeated))
        others = np.flatnonzero((worker != one) & (size > 0) & (place_of_task[task] >= 0))  # a count may be 0
        moments = _moments(given, size, repeated, others, place_of_task[task[others]])
        if len(moments) < TASKS:
            continue
        agreement, expected = _agreement(np.ones((1, len(moments))), moments, n_classes)
        weights = np.random.default_rng(0).standard_exponential((DRAWS, len(moments)))
        excess = np.subtract(*_agreement(weights, moments, n_classes)) - MARGIN
        if excess.mean() > ERRORS * excess.std() and agreement > expected:
            found.append(AgreeingRepeats(int(one), len(repeated), float(agreement[0]), float(expected[0])))
    return found


def _moments(
    given: sparse.csr_matrix, size: np.ndarray, repeated: np.ndarray, others: np.ndarray, task: np.ndarray
) -> np.ndarray:
    """By task the means of the worker's annotations and of the others', and of the products of pairs of them.

    Of tasks that two others annotated, a sample where they are many: a row each of the worker's mean (K), the others'
    (K), and the products (K × K each) of two of the worker's, of one of the worker's and one of another, and of two of
    different others.

    Args:
        given: how often each class was given, a row for each worker and task.
        size: how often any was.
        repeated: the rows of the worker, one a task.
        others: the rows of others who annotated these tasks.
        task: of each of them, as a position in `repeated`.
    """
    n_classes = given.shape[1]
    n_others = np.bincount(task, minlength=len(repeated))
    order = np.random.default_rng(0).permutation(np.flatnonzero(n_others > 1))
    kept = np.sort(order[np.cumsum(n_others[order] + 3) * n_classes**2 <= NUMBERS])
    place = np.full(len(repeated), -1)
    place[kept] = np.arange(len(kept))
    others, task = others[place[task] >= 0], place[task[place[task] >= 0]]
    sums = sparse.csr_matrix((np.ones(len(task)), (task, np.arange(len(task)))), (len(kept), len(task)))
    shares = given[others].toarray() / size[others, None]
    n, total, own = n_others[kept][:, None, None], sums @ shares, given[repeated[kept]].toarray()
    m = size[repeated[kept]][:, None, None]
    squares = sums @ (shares[:, :, None] * shares[:, None, :]).reshape(len(others), n_classes**2)
    mean, mean_of_others = own / m[:, 0], total / n[:, 0]
    of_own = (own[:, :, None] * own[:, None, :] - own[:, :, None] * np.eye(n_classes)) / (m * (m - 1))
    of_others = (total[:, :, None] * total[:, None, :] - squares.reshape(-1, n_classes, n_classes)) / (n * (n - 1))
    of_both = mean[:, :, None] * mean_of_others[:, None, :]
    products = [each.reshape(len(kept), n_classes**2) for each in (of_own, of_both, of_others)]
    return np.concatenate([mean, mean_of_others, *products], axis=1)


def _agreement(weights: np.ndarray, moments: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the agreement rate of two of the worker's annotations, and of independent ones, by row of weights."""
    k, shape = n_classes, (-1, n_classes, n_classes)
    means = weights @ moments / weights.sum(1, keepdims=True)
    x, y = means[:, :k], means[:, k : 2 * k]
    own, both, others = (part.reshape(shape) for part in np.split(means[:, 2 * k :], 3, axis=1))
    across = both - x[:, :, None] * y[:, None, :]
    among = others - y[:, :, None] * y[:, None, :]
    values, vectors = np.linalg.eigh((among + among.swapaxes(1, 2)) / 2)
    values = np.where(np.abs(values) < NOTHING, np.inf, np.abs(values))  # of noise: either sign counts as shared
    explained = ((across @ vectors) ** 2).sum(1) / values
    return np.trace(own, axis1=1, axis2=2), (x**2).sum(-1) + explained.sum(-1)


@dataclass(frozen=True)
class ContradictingRepeats:
    """Repeats that agree less than independent annotations would.

    Attributes:
        n_pairs: how many pairs of a task and a worker have several annotations, and some of others.
        share: their annotations beyond the first, of all.
        agreement: how often two annotations of one of these pairs agree.
        outside: how often one of them agrees with one of another worker on the task.
        expected: how often annotations of one pair agree at the least if they are independent of each other.
    """

    n_pairs: int
    share: float
    agreement: float
    outside: float
    expected: float


def contradicting_repeats(annotations: Annotations) -> ContradictingRepeats | None:
    r"""Return how little workers agree with themselves where they annotate tasks again; None where it is enough.

    With :math:`x_i` a worker's probabilities of the classes on task i and :math:`y_i` those of the others, two
    independent annotations of the worker agree with probability :math:`E|x_i|^2`, which is
    :math:`(E\,x_i \cdot y_i)^2 / E|y_i|^2` at the least (Cauchy and Schwarz): what different workers agree where all
    are alike, and less where those who repeat err more than the rest. Repeats agree too little where that is missed by
    :data:`MARGIN`, and by :data:`ERRORS` standard errors (linearized, over tasks): one-sided. Equality is healthy, so
    that a limit of zero would warn of half of all independent repeats. Repeats of a pair of items in both orders
    (:attr:`.Annotations.mirrored`) are not looked at: they tell a preference for a side.

    Args:
        annotations: of named workers, without abstentions.
    """
    n_workers, n_classes = annotations.n_workers, annotations.n_classes
    n_annotations, annotations = annotations.n_annotations, some_tasks(annotations, annotations.annotated_again)
    key = np.asarray(annotations.task, np.int64) * n_workers + np.asarray(annotations.worker)
    pair, place = np.unique(key, return_inverse=True)
    weight = annotations.row_counts
    given = sparse.csr_matrix((weight, (place, np.asarray(annotations.label))), (len(pair), n_classes))
    size, square = np.asarray(given.sum(1)).ravel(), np.asarray(given.multiply(given).sum(1)).ravel()
    task, n_tasks = pair // n_workers, annotations.n_tasks
    of_task = sparse.csr_matrix((np.ones(len(pair)), (task, np.arange(len(pair)))), (n_tasks, len(pair)))
    n_others = (of_task @ size)[task] - size
    is_looked_at = (size > 1) & (n_others > 0)
    if annotations.mirrored is not None:
        mirrored = np.bincount(place, weight * annotations.mirrored, len(pair))
        is_looked_at &= (mirrored == 0) | (mirrored == size)
    rows = np.flatnonzero(is_looked_at)
    if len(rows) < TASKS:
        return None
    own, m, n = given[rows], size[rows], n_others[rows]
    others = (of_task @ given)[task[rows]] - own
    within = (square[rows] - m) / (m * (m - 1))
    outside = np.asarray(own.multiply(others).sum(1)).ravel() / (m * n)
    alike = np.asarray(others.multiply(others).sum(1)).ravel() - ((of_task @ square)[task[rows]] - square[rows])
    of_pairs = n**2 - ((of_task @ size**2)[task[rows]] - m**2)
    among = np.where(of_pairs > 0, alike / np.maximum(of_pairs, 1), 1.0)  # of one other worker |y| is at most 1
    a, b, c = within.mean(), outside.mean(), max(among.mean(), NOTHING)
    expected = b**2 / c
    part = (expected - a) - (within - a) + 2 * b / c * (outside - b) - expected / c * (among - c)
    by_task = np.bincount(task[rows], part - (expected - a))
    error = np.sqrt((by_task**2).sum()) / len(rows)
    if expected - a <= MARGIN + ERRORS * error:
        return None
    share = float((m - 1).sum() / n_annotations)
    return ContradictingRepeats(len(rows), share, float(a), float(b), float(expected))
