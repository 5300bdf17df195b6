r"""Workers whose repeated annotations of a task agree more often than independent ones would.

An annotation that a worker gives to a task again counts like one of another worker: independent given the true class.
Runs of one language model are not where it errs on the same tasks each time, nor are people who remember what they
said, and three such annotations then count like three judges; they may even outvote the others, so that the fit takes
them for right. How often they would agree is therefore taken from others. With :math:`x` an annotation of the worker as
a vector with a one, :math:`y` and :math:`y'` those of two others, and all independent given what the task is, the
second moments are of the forms :math:`E[x x'^T] = A S A^T`, :math:`E[x y^T] = A S B^T` and :math:`E[y y'^T] = B S B^T`,
so that two annotations of the worker agree with probability :math:`\mathrm{tr}(M_j S^{-1} M_j^T)`, where
:math:`M_j = E[x y^T]` and now :math:`S = E[y y'^T]`: what a reliability is in two classes (Spearman 1904). The square
of :math:`M_j` is taken over pairs of different tasks, which leaves no bias however few tasks each worker has. S is
that of all pairs of other workers, without the worker's own among few workers, of whom the ablest one would raise what
is taken for the others' agreement. Of several workers the share is the mean.

All functions here take annotations of named workers, without abstentions.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from ...data import Annotations
from ...data.some_tasks import some_tasks
from ..fitted.remembered import once

TASKS = 20  # that workers annotated more than once, and two others too, at the least
MARGIN = 0.05  # of the share of pairs that agree, over what is expected
ERRORS = 3.0  # standard errors beyond the margin
MUCH = 0.02  # of all annotations repeat the worker's: chosen with `adult` in view, where .2 % do and none agrees
FEW = 20  # workers with repeats at the most, for each of whom the others are looked at apart
PARTS = 20  # of the tasks, without each of which the shares are taken again
NUMBERS = 5e6  # of all tasks' matrices, about: of more tasks a sample is looked at
NOTHING = 1e-9  # variance of what no annotation differs in
TESTED = 20  # workers by themselves, those with the most repeats first


@dataclass(frozen=True, eq=False)
class AgreeingRepeats:
    """Workers whose repeated annotations are not independent of each other given the true class.

    Attributes:
        workers: their positions.
        n_pairs: how many pairs of a task and one of them have several annotations, of those that are looked at.
        agreement: how often two annotations of one of these pairs agree.
        expected: how often they would if they were independent given the class, by how others agree.
    """

    workers: np.ndarray
    n_pairs: int
    agreement: float
    expected: float


class _Repeated(NamedTuple):
    """Pairs of a task and a worker who annotated it more than once, as two others did at least: a row each."""

    task: np.ndarray
    part: np.ndarray  # of the tasks
    worker: np.ndarray
    agreement: np.ndarray  # of two annotations of the worker
    own: np.ndarray  # shares of the classes among the worker's annotations, (U, K)
    others: np.ndarray  # mean of the others' shares, (U, K)
    of_two: np.ndarray  # sums over tasks of the mean products of two workers' shares, by part, (V, P, K, K)
    n_tasks: np.ndarray  # in these sums, (V, P)
    without: np.ndarray  # by worker in which of them its own annotations are not; 0 of all where there is one, (J,)


@once
def agreeing_repeats(annotations: Annotations) -> AgreeingRepeats | None:
    """Return the workers whose repeats agree more than independent ones would; None where there are none.

    Repeats of all workers, or of one, count where they agree by :data:`MARGIN` more than is expected, by
    :data:`ERRORS` standard errors of the jackknife over :data:`PARTS` parts of the tasks, and where they are enough to
    matter. Where those of all do, only the margin is asked of a worker's own, and of those who have few together.
    """
    n_annotations, annotations = annotations.n_annotations, some_tasks(annotations, annotations.annotated_again)
    n_workers = annotations.n_workers
    pair, place = np.unique(
        np.asarray(annotations.task, np.int64) * n_workers + np.asarray(annotations.worker), return_inverse=True
    )
    shape = len(pair), annotations.n_classes
    given = sparse.csr_matrix((annotations.row_counts, (place, np.asarray(annotations.label))), shape)
    size = np.asarray(given.sum(1)).ravel()
    again = np.bincount(pair % n_workers, np.maximum(size - 1, 0), n_workers)
    if again.sum() < MUCH * n_annotations:
        return None
    if (repeated := _repeated(given, size, pair // n_workers, pair % n_workers)) is None:
        return None
    errors = 0.0 if _measured(repeated, np.flatnonzero(again), ERRORS) else ERRORS
    order = np.argsort(-again, kind="stable")[:TESTED]
    n_tasks = np.bincount(repeated.worker, minlength=n_workers)
    alone = order[(again[order] >= MUCH * n_annotations) & (n_tasks[order] >= TASKS)]
    few = np.setdiff1d(np.flatnonzero(again), alone)
    groups = [*alone[:, None], few] if again[few].sum() >= MUCH * n_annotations else [*alone[:, None]]
    found = [group for group in groups if _measured(repeated, group, errors)]
    return _measured(repeated, np.sort(np.concatenate(found))) if found else None


def _repeated(given: sparse.csr_matrix, size: np.ndarray, task: np.ndarray, worker: np.ndarray) -> _Repeated | None:
    """Return the repeats to look at, of a sample of tasks where they are many; None of fewer than :data:`TASKS`.

    Args:
        given: how often each class was given, a row for each pair of a task and a worker.
        size: how often any was.
        task: of each pair.
        worker: of each pair.
    """
    k = given.shape[1]
    n = np.bincount(task, size > 0)[task] - 1  # others; a count may be 0
    is_repeat = (size > 1) & (n > 1)
    n_repeats = np.bincount(task, is_repeat)
    numbers = np.bincount(task) * (n_repeats > 0) + n_repeats
    order = np.random.default_rng(0).permutation(np.flatnonzero(n_repeats))
    order = order[np.cumsum(numbers[order]) * k**2 <= NUMBERS]
    if len(order) < TASKS:
        return None
    is_kept = np.isin(task, order)
    gave = given[is_kept].toarray()
    m, task, worker, n, is_repeat = (each[is_kept] for each in (size, task, worker, n, is_repeat))
    shares = gave / np.maximum(m, 1)[:, None]
    products = (shares[:, :, None] * shares[:, None, :]).reshape(-1, k**2)
    of_task = sparse.csr_matrix((np.ones(len(task)), (task, np.arange(len(task)))))
    sums, squares = of_task @ shares, (of_task @ products).reshape(-1, k, k)
    n_workers, looked_at = np.bincount(task, m > 0), np.unique(task[is_repeat])
    part = np.full(len(sums), -1)
    part[looked_at] = np.arange(len(looked_at)) % PARTS
    who = np.unique(worker[is_repeat])
    apart = who if len(who) <= FEW else np.array([-1])
    others = [_of_two(sums, squares, n_workers, part, task[worker == j], shares[worker == j]) for j in apart]
    of_two, n_tasks = (np.stack(each) for each in zip(*others, strict=True))
    without = np.zeros(worker.max() + 1, int)
    without[apart] = np.arange(len(apart))
    gave, m, task, worker, n, own = (each[is_repeat] for each in (gave, m, task, worker, n, shares))
    agreement = ((gave**2).sum(1) - m) / (m * (m - 1))
    return _Repeated(
        task, part[task], worker, agreement, own, (sums[task] - own) / n[:, None], of_two, n_tasks, without
    )


def _of_two(
    sums: np.ndarray, squares: np.ndarray, size: np.ndarray, part: np.ndarray, task: np.ndarray, shares: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return sums over tasks of the mean products of two workers' shares, ``(P, K, K)``, and of how many, ``(P,)``.

    Args:
        sums: of all workers' shares by task, ``(T, K)``.
        squares: of their products with themselves, ``(T, K, K)``.
        size: the number of workers of each task, ``(T,)``.
        part: of each task, -1 for one that is not looked at, ``(T,)``.
        task: of the annotations of a worker who is left out.
        shares: of the classes among these, a row each.
    """
    sums, squares, size = sums.copy(), squares.copy(), size - np.bincount(task, minlength=len(size))
    sums[task] -= shares
    squares[task] -= shares[:, :, None] * shares[:, None, :]
    is_used = (part >= 0) & (size > 1)
    sums, squares, size, part = (each[is_used] for each in (sums, squares, size, part))
    two = (sums[:, :, None] * sums[:, None, :] - squares) / (size * (size - 1))[:, None, None]
    k = sums.shape[1]
    of_part = sparse.csr_matrix((np.ones(len(part)), (part, np.arange(len(part)))), (PARTS, len(part)))
    return (of_part @ two.reshape(-1, k * k)).reshape(PARTS, k, k), np.bincount(part, minlength=PARTS)


def _measured(repeated: _Repeated, workers: np.ndarray, errors: float = 0.0) -> AgreeingRepeats | None:
    """Return how often repeats of some workers agree; None where that is not above the margin by so many errors."""
    rows = np.flatnonzero(np.isin(repeated.worker, workers))
    if len(np.unique(repeated.task[rows])) < TASKS:
        return None
    agreement, expected = _agreement(repeated, rows)
    excess = np.subtract(*np.transpose([_agreement(repeated, rows, left) for left in range(PARTS)]))
    is_above = agreement - expected > MARGIN + errors * np.sqrt((PARTS - 1) * excess.var())
    return AgreeingRepeats(workers, len(rows), agreement, expected) if is_above else None


def _agreement(repeated: _Repeated, rows: np.ndarray, left: int = -1) -> tuple[float, float]:
    """Return how often two annotations of one worker agree, and how often independent ones would.

    Args:
        repeated: the repeats of all.
        rows: those that count.
        left: the part of the tasks that is left out, −1 for none.
    """
    k, rows = repeated.own.shape[1], rows[repeated.part[rows] != left]
    worker, n = np.unique(repeated.worker[rows], return_inverse=True, return_counts=True)[1:]
    rows, worker = rows[n[worker] > 1], (np.cumsum(n > 1) - 1)[worker[n[worker] > 1]]
    if not len(rows):
        return 0.0, 1.0
    own, others, n = repeated.own[rows], repeated.others[rows], n[n > 1]
    unit = repeated.without[repeated.worker[rows][np.unique(worker, return_index=True)[1]]]
    used = np.arange(PARTS) != left
    among = repeated.of_two[:, used].sum(1) / np.maximum(repeated.n_tasks[:, used].sum(1), 1)[:, None, None]
    values, vectors = np.linalg.eigh((among + among.swapaxes(1, 2)) / 2)
    values = np.where(np.abs(values) < NOTHING, np.inf, np.abs(values))  # of noise: either sign counts as shared
    of_pairs = 1 / (n - 1) / len(rows)  # of different tasks
    by_worker = sparse.csr_matrix((np.ones(len(rows)), (worker, np.arange(len(rows)))))
    sums = (by_worker @ (own[:, :, None] * others[:, None, :]).reshape(-1, k * k)).reshape(-1, k, k)
    square = np.zeros_like(among)
    np.add.at(square, unit, np.einsum("wki,wkj->wij", sums, sums) * of_pairs[:, None, None])
    alike = ((own**2).sum(1) * of_pairs[worker])[:, None, None] * others[:, :, None] * others[:, None, :]
    np.add.at(square, unit[worker], -alike)
    expected = np.einsum("uki,ukl,uli->ui", vectors, square, vectors) / values
    return float(repeated.agreement[rows].mean()), float(expected.sum())


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
