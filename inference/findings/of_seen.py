r"""Workers who saw what others gave to a task, so that their annotations are no opinions of their own.

*Annotations that follow the first of their task.* Where the first two differ, what is given later is as often of the
one's class as of the other's, whatever rule decides how many there are; where workers see the first and follow it in a
part f, the difference of both shares is f. Workers differ in their abilities, so that the one of whom the first
annotation is, and the other, shift the difference by an effect each, of a standard deviation of :data:`ABILITY`: a
worker who is always the first may be a better one, which is then not said.

*Workers who agree with the others more than one who is always right could.* With :math:`p_t` the mean of a worker's
annotations of task t as vectors with a one, less the worker's mean over all tasks, and :math:`q_t` that of the others,
annotations that are independent given what the task is agree beyond chance by :math:`E\,p_t \cdot q_t`, and two of the
others by :math:`E\,|q_t|^2`. By Cauchy and Schwarz

.. math:: (E\,p_t \cdot q_t)^2 \le E\,|p_t|^2\; E\,|q_t|^2,

where :math:`|p_t|^2` is at most what it is of a single annotation: of a worker who is always right. It holds whatever
classes tasks have, and however hard they are. Pairs of different others fall short of :math:`E\,|q_t|^2` by their
variance over how many a task has, which is added; and of others who are unequal, as of a panel whose members all
annotate all tasks, the product of what two different ones are worth to the group takes the place of the square. Those
who agree most with the others are looked at together, in groups of several sizes.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

from ...data import Annotations
from ...data.arrays import cross_counts
from ...data.description import count_text
from ...data.some_tasks import some_tasks
from .copies import copying_groups
from .facts import listed
from .of_crowd import crowd_of
from .of_order import looked_at
from .register import Labels, Said, check

DIFFER = 5  # tasks of which the first two annotations differ, at the least
AT_ONCE = 1_000  # of them at the most
ABILITY = 0.35  # standard deviation of a worker's effect on what follows: as of one who errs little among guessers
EARLY = 0.5  # that of workers who are always the first, beside others who never are
LEAST = 0.05  # variance of a task's difference, at the least
UNSEEN = 3.0  # tasks as if they differed as far as can be: a few that all go one way say little
FOLLOWING = 3.5  # standard errors of the part that follows
FOLLOWED = 0.1  # the least part that is said
LOOKED_AT = 50_000  # annotations of which agreement with all others is looked at: of more those of a sample of tasks
SIZES = 12  # of groups that are looked at
OF_ALL = (0.02, 0.7)  # share of the annotations that a group has
TASKS = 40  # of a group and two others, at the least
PARTS = 20  # of the tasks, without each of which the agreement is taken again
SHRUNK = 5  # annotations as of the mean worker, by which workers with few are not the first
LEAST_ERROR = 0.003  # standard error of the square of an agreement: workers who never err leave none
CLEARLY = 3.5  # standard errors from which a group agrees too much


class Followed(NamedTuple):
    """Annotations that follow the first of their task.

    Args:
        n_tasks: of which the first two annotations differ, and others follow.
        sides: shares of the later annotations that are of the first's class, and of the second's.
        share: of annotations that follow the first, about.
        z: standard errors that this is above 0.
    """

    n_tasks: int
    sides: tuple[float, float]
    share: float
    z: float


def followed_first(given: Annotations) -> Followed | None:
    """Return how far annotations of a task follow its first; None where nothing tells.

    Args:
        given: annotations of named workers, without abstentions.
    """
    if given.count is not None:
        return None
    given = looked_at(given).given
    task, worker, label = (np.asarray(getattr(given, name)) for name in ("task", "worker", "label"))
    order = np.arange(len(task)) if given.when is None else np.lexsort((given.when, task))
    n = np.bincount(task, minlength=given.n_tasks)
    begin = np.cumsum(n) - n
    several = np.flatnonzero(n > 2)
    first, second = order[begin[several]], order[begin[several] + 1]
    differ = (label[first] != label[second]) & (worker[first] != worker[second])
    several, first, second = (each[differ][:AT_ONCE] for each in (several, first, second))
    if len(several) < DIFFER:
        return None
    rows = np.concatenate([order[begin[i] + 2 : begin[i] + n[i]] for i in several])
    at = np.repeat(np.arange(len(several)), n[several] - 2)
    by_other = (worker[rows] != worker[first][at]) & (worker[rows] != worker[second][at])  # and no repeat of either
    kept, at = np.unique(at[by_other], return_inverse=True)
    rows, first, second, several = rows[by_other], first[kept], second[kept], several[kept]
    if len(several) < DIFFER:
        return None
    size = np.bincount(at)
    sides = np.stack([np.bincount(at, label[rows] == label[of][at]) / size for of in (first, second)])
    difference = sides[0] - sides[1]
    workers, codes = np.unique(np.concatenate([worker[first], worker[second]]), return_inverse=True)
    is_first = np.zeros(len(task))
    is_first[order[begin[n > 0]]] = 1
    times, firsts = np.bincount(worker), np.bincount(worker, is_first)
    early = [(firsts[worker[of]] - own) / np.maximum(times[worker[of]] - 1, 1) for of, own in ((first, 1), (second, 0))]
    task_of_effect = np.tile(np.arange(len(several)), 3)
    effect = np.concatenate([codes, np.full(len(several), len(workers))])
    sizes = np.concatenate([np.repeat([ABILITY, -ABILITY], len(several)), EARLY * (early[0] - early[1])])
    effects = sparse.csr_array((sizes, (task_of_effect, effect)), (len(several), len(workers) + 1))
    noise = difference.var() + UNSEEN / (len(several) + UNSEEN)
    weight = _solved(effects, max(noise, LEAST))
    share = float(weight @ difference / weight.sum())
    first_side, second_side = sides.mean(1).tolist()
    return Followed(len(several), (first_side, second_side), share, share * float(np.sqrt(weight.sum())))


def _solved(effects: sparse.csr_array, noise: float) -> np.ndarray:
    """Return the numbers ``(n,)`` that the variance E Eᵀ + noise I takes to ones, by conjugate gradients."""
    n = effects.shape[0]
    variance = LinearOperator((n, n), lambda values: effects @ (effects.T @ values) + noise * values)
    return np.asarray(cg(variance, np.ones(n), rtol=1e-9)[0])


@check("first_followed", "crowd", needs={"workers", "memory"})
def first_followed(of: Labels) -> Iterator[Said]:
    """Annotations that follow the first of their task (:func:`followed_first`)."""
    if (crowd := crowd_of(of)) is None or (found := followed_first(crowd.given)) is None:
        return
    if found.z < FOLLOWING or found.share < FOLLOWED:
        return
    yield Said(
        f"workers follow the first label of a task, in about {found.share:.0%}: where the first two differ, on "
        f"{count_text(found.n_tasks, 'task')}, the later ones are of the first's class in {found.sides[0]:.0%} and of "
        f"the second's in {found.sides[1]:.0%}, and each counts as an opinion of its own, so that the labels are too "
        "sure",
        "do not show workers what others gave; if they were not shown it, the first of a task is the better one, or "
        "the order of its rows is not that in which they came. Gold labels, cp.next_gold(fit, 20), tell how right the "
        "labels are",
        found._asdict(),
    )


class Seeing(NamedTuple):
    """Workers who agree with the others more than one who is always right could.

    Args:
        workers: their positions.
        n_tasks: that they and two others annotated.
        with_others: share of pairs of an annotation of theirs and another's that are the same, and of two others'.
        times: how many times as far beyond chance they agree as can be.
        z: standard errors by which the square of that is too large.
    """

    workers: np.ndarray
    n_tasks: int
    with_others: tuple[float, float]
    times: float
    z: float


def seeing(given: Annotations) -> Seeing | None:
    """Return the workers who agree with the others more than any who did not see their labels could; None where none.

    Args:
        given: annotations of named workers, without abstentions.
    """
    given = looked_at(given).given
    chosen = np.random.default_rng(0).random(given.n_tasks) * given.n_rows < LOOKED_AT
    given = given if chosen.all() else some_tasks(given, chosen)
    rows = _Rows(given)
    n, agree = (np.bincount(rows.worker, rows.count * each, given.n_workers) for each in (1.0, rows.with_others()))
    order = np.argsort(-(agree + SHRUNK * agree.sum() / n.sum()) / (n + SHRUNK))
    upto = np.cumsum(n[order]) / n.sum()
    sizes = np.flatnonzero((upto >= OF_ALL[0]) & (upto <= OF_ALL[1])) + 1
    if not len(sizes):
        return None
    sizes = sizes[np.unique(np.linspace(0, len(sizes) - 1, SIZES).astype(int))]
    best = max((_measured(rows, order[:size]) for size in sizes), key=lambda one: one.z)
    if best.z < CLEARLY:
        return None
    among_others = ~np.isin(rows.worker, best.workers)
    alone = [j for j in best.workers if _measured(rows, np.array([j]), among_others).z > 0]  # and not with such workers
    return best._replace(workers=np.sort(alone or best.workers))


class _Rows:
    """Annotations as vectors less their workers' means.

    Args:
        given: annotations of named workers, without abstentions.
    """

    def __init__(self, given: Annotations) -> None:
        self.task, self.worker, self.label = (np.asarray(getattr(given, name)) for name in ("task", "worker", "label"))
        self.n_tasks, k, self.count = given.n_tasks, given.n_classes, given.row_counts
        shares = cross_counts((given.n_workers, k), self.worker, self.label, weight=self.count)
        shares = shares / np.maximum(shares.sum(1, keepdims=True), 1)
        self.one = np.eye(k)[self.label]
        self.beyond = self.one - shares[self.worker]
        self.part = np.random.default_rng(0).permutation(self.n_tasks) % PARTS

    def sums(self, vectors: np.ndarray, of: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sums by task of the vectors of some annotations, ``(N, K)``, of their squares, and how many they are."""
        weight, rows = self.count * of, np.arange(len(self.task))
        by_task = sparse.csr_matrix((weight, (self.task, rows)), (self.n_tasks, len(rows)))
        return by_task @ vectors, by_task @ (vectors**2).sum(1), by_task @ np.ones(len(rows))

    def with_others(self, of: np.ndarray | float = 1.0) -> np.ndarray:
        """Mean agreement beyond chance of each annotation with the others of its task, among some annotations."""
        total, _, n = self.sums(self.beyond, np.broadcast_to(of, self.task.shape))
        others = total[self.task] - self.beyond
        found: np.ndarray = (self.beyond * others).sum(1) / np.maximum(n[self.task] - 1, 1)
        return found


def _measured(rows: _Rows, group: np.ndarray, is_other: np.ndarray | None = None) -> Seeing:
    """Return how far a group agrees with the others, with z of 0 where tasks are too few to tell.

    Args:
        rows: the annotations.
        group: the workers.
        is_other: a mask of the others' annotations, ``(A,)``; all by default.
    """
    is_one = np.isin(rows.worker, group)
    is_other = ~is_one if is_other is None else is_other
    own, square, n = rows.sums(rows.beyond, is_one)
    others, their_square, m = rows.sums(rows.beyond, is_other)
    among = ((others**2).sum(1) - their_square) / np.maximum(m * (m - 1), 1)
    used = (n > 0) & (m > 1)
    if used.sum() < TASKS:
        return Seeing(group, int(used.sum()), (0.0, 0.0), 0.0, 0.0)
    counted = is_other & used[rows.task]
    by_worker = np.bincount(rows.worker, counted)
    each = np.bincount(rows.worker, counted * rows.with_others(is_other)) / np.maximum(by_worker, 1)
    elsewhere, part = among[m > 1].mean(), rows.part[used]
    with_them, among, most = (own * others).sum(1)[used] / (n * m)[used], among[used], (square[used] / n[used])
    variance = by_worker @ each**2 / max(by_worker.sum(), 1) / max(among.mean(), LEAST) - among.mean()
    variance = max(variance, 0.0) / m[used].mean()
    weight = rows.count * counted
    with_group = (rows.beyond * (own / np.maximum(n, 1)[:, None])[rows.task]).sum(1)
    worth = np.bincount(rows.worker, weight * with_group) / np.maximum(np.bincount(rows.worker, weight), 1)
    total, alone = (np.bincount(rows.task, weight * worth[rows.worker] ** power, rows.n_tasks) for power in (1, 2))
    different = ((total**2 - alone) / np.maximum(m * (m - 1), 1))[used].mean()
    of_pairs = np.clip(different / max((total / np.maximum(m, 1))[used].mean() ** 2, 1e-9), 0.0, 1.0)

    def squares(kept: np.ndarray | slice) -> tuple[float, float]:
        """The square of the agreement, and what it can be; on tasks that were chosen for their votes others may not."""
        pairs = max(among[kept].mean(), elsewhere, 0.0) + variance
        return of_pairs * with_them[kept].mean() * abs(with_them[kept].mean()), most[kept].mean() * pairs

    found, bound = squares(slice(None))
    excess = np.array([np.subtract(*squares(part != left)) for left in range(PARTS)])
    error = max(np.sqrt((PARTS - 1) * excess.var()), LEAST_ERROR)
    own, _, _ = rows.sums(rows.one, is_one)
    others, _, _ = rows.sums(rows.one, is_other)
    same = (own * others).sum(1)[used].sum() / (n * m)[used].sum()
    of_two = ((others**2).sum(1) - m)[used].sum() / (m * (m - 1))[used].sum()
    times = float(np.sqrt(max(found, 0.0) / max(bound, 1e-9)))
    return Seeing(group, int(used.sum()), (float(same), float(of_two)), times, float((found - bound) / error))


@check("labels_seen", "crowd", needs={"workers", "memory"})
def labels_seen(of: Labels) -> Iterator[Said]:
    """Workers who saw what others gave (:func:`seeing`), where they are not said to copy each other."""
    if (crowd := crowd_of(of)) is None or copying_groups(of.annotations) or (found := seeing(crowd.given)) is None:
        return
    names = [of.annotations.workers[j] for j in found.workers.tolist()]
    who = "it agrees" if len(names) == 1 else "each of them agrees"
    yield Said(
        f"{listed(names)} saw what others gave: on {count_text(found.n_tasks, 'task')} {who} with another in "
        f"{found.with_others[0]:.0%}, where two others agree in {found.with_others[1]:.0%}, {found.times:.2f} times as "
        "far beyond chance as one who is always right would. Each counts as an opinion of its own, so that the "
        "labels are too sure",
        "leave them out, or what they gave of tasks of which they saw other labels: "
        f"table = annotations.to_frame(); table = table[~table['worker'].isin({names!r})]; "
        "and fit the table",
        {**found._asdict(), "workers": names},
    )
