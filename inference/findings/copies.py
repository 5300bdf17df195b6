r"""Groups of workers who agree with each other more than independent workers can: copies of one source, perhaps.

With :math:`x_{ij}` the annotation of task i by worker j as a vector with a one, :math:`p_j` its mean, and
:math:`r_{ij} = (x_{ij} - p_j) / \sqrt{1 - |p_j|^2}`, the agreement of two workers beyond chance is the mean of
:math:`r_{ij} \cdot r_{ij'}` over the tasks that they share, for two classes the correlation of their annotations. Where
the annotations of two classes are independent given the true labels it is a product :math:`a_j a_{j'}` of what each
of the two is worth, so that tetrads vanish (Spearman 1904): of a group that agrees within itself by w and with the
others by b, while the others agree by o, :math:`w\, o = b^2`. Able workers among poor ones keep to this. Copies do
not: they agree with each other, and are worth no more to the others than the one who was copied.

Which of the two sides is right is not told by it, and nothing at all where no two others agree.

Workers whose annotations are the same on many tasks, where every other worker's differ, need no second other: each of
two who err by :math:`e` independently of each other differs from the other in about :math:`2e` of the tasks, so that
nearly none means nearly no error. Either they know the truth, and the others err many times as often, or they copy.
Differing is compared with that by chance, as in Cohen's kappa, and question by question. On fewer tasks workers who
give always the same are compared with what the product allows for, :math:`w = b^2 / o`: by how probable it is that
independent workers who agree so with the others do so.

All functions here take annotations of named workers. What counts are classes; where most of the annotations are of
workers who give one class each, as labelling functions do, an abstention counts as another class, since of their
classes alone all who give the same one are the same.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import sparse

from ...data import Annotations, Ids
from ...data.arrays import connected_parts, cross_counts, read_only
from ...data.ids import NO_IDS
from ...data.kinds import NOMINAL
from ...data.questions import Units
from ...data.some_tasks import some_tasks
from ..fitted.intervals import jeffreys
from ..fitted.remembered import once
from .of_crowd import ONE_SIDED, of_one_class_each

COMMON = 20  # tasks that two workers share at the least
LEVELS = (0.9, 0.8, 0.7, 0.6, 0.5)  # agreement beyond chance at which workers are linked to a group
MARGIN = 0.1  # of agreement beyond chance, over that with others and over that of others
MARGIN_OF_TETRADS = 0.15  # of the same, over what both of these allow for; stories are not as plain as a product
ERRORS = 3.0  # standard errors beyond the margin; the group was looked for
CLEAREST = 20  # groups that are tested where all pairs of workers are looked at
CLUSTERED = 40  # workers; of more groups are linked by pairs who agree for sure
DOUBT = 0.05  # that any pair agrees by less than its lower limit
DRAWS = 200  # of the tasks' weights
LOOKED_AT = 20_000  # tasks that a group shares: of more a sample
PRODUCTS = 2e7  # of two annotations of one task, about: of more tasks a sample is looked at
TESTED = 50  # groups, the largest first
TIMES = (10.0, 20.0)  # as often as the same workers differ, any other differs from them: with and without others' word
TOGETHER = 0.5  # of the tasks on which one of two labelling functions gives its class, those of both
RARE = 0.05  # probability that independent workers give always the same, of all who do together
UNLIKELY = 0.3  # the same, below which it is worth a word
NEARNESS = TIMES[0] * 2.0 ** np.arange(8)  # parts of the differing by chance at which workers are linked as the same


@dataclass(frozen=True)
class AgreeingGroup:
    """Workers who agree with each other more than independent ones can.

    Attributes:
        workers: their positions.
        within: the share of their pairs of annotations of one task that are the same.
        outside: the same of one of theirs and one of the others, of the tasks that two of theirs share.
        n_tasks: tasks that two of theirs share.
        question: the one in which they agree so, None for all.
        by_chance: the probability that any of the independent workers who give always the same do so, where they do.
        explained: the share of their agreement beyond chance that independent workers would have who agree so with the
            others; 0 of those who give the same.
    """

    workers: np.ndarray
    within: float
    outside: float
    n_tasks: int
    question: Hashable = None
    by_chance: float = 0.0
    explained: float = 0.0


def agreeing_groups(annotations: Annotations) -> list[AgreeingGroup]:
    """Return the groups of two workers or more who agree with each other more than independent workers can.

    No worker is in two of them, and the largest group comes first.

    A group counts where it agrees beyond chance by :data:`MARGIN` more than its members do with others, than others do
    among themselves, and than both of these allow for, each by :data:`ERRORS` standard errors of the tasks' Bayesian
    bootstrap.
    """
    return _groups(annotations).agreeing


def doubtful_groups(annotations: Annotations) -> list[AgreeingGroup]:
    """Return the groups who agree so much more than all others that they decide the labels, copies or not.

    They are beyond the margins over their agreement with others, and over that of others, as groups of
    :func:`agreeing_groups` are. They are beyond what both of these allow for too, but not by :data:`ERRORS` standard
    errors: others agree too little among themselves to tell whether they err, or the group copies.
    """
    return _groups(annotations).doubtful


class _Groups(NamedTuple):
    """Groups of workers who agree more than independent ones can, of whom that is in doubt, and who give the same."""

    agreeing: list[AgreeingGroup]
    doubtful: list[AgreeingGroup]
    same: list[AgreeingGroup]


def by_abstaining(annotations: Annotations) -> bool:
    """Return whether copies show in who abstains, too: of workers most of whom give one class each."""
    if not annotations.abstains or isinstance(annotations.tasks, Units):
        return False
    return of_one_class_each(annotations)[1] > ONE_SIDED


@once
def _groups(annotations: Annotations) -> _Groups:
    if annotations.mirrored is not None:
        return _Groups(
            *(list(_of_workers(groups, annotations.n_workers)) for groups in _groups(_by_order(annotations)))
        )
    return _of_functions(annotations) if by_abstaining(annotations) else _of_classes(annotations.of_classes())


def _of_functions(annotations: Annotations) -> _Groups:
    """Return the groups of labelling functions who give one class: those of each class, by abstentions as another.

    Of two classes an abstention counts for the other one, so that functions of both tell of the truth. Of more they
    agree by their class, so that those of each are looked at by themselves. Two of a group give the class together on
    :data:`TOGETHER` of the tasks on which one of them does, in the mean: functions of one kind of text do on fewer.
    """
    n_classes, worker = annotations.n_classes, np.asarray(annotations.worker)
    label = np.minimum(np.asarray(annotations.label), n_classes)  # the last one is any abstention
    n = cross_counts((annotations.n_workers, n_classes + 1), worker, label)[:, :n_classes]
    gives = np.where(((n > 0).sum(1) == 1) & (n.sum(1) >= COMMON), n.argmax(1), -1)
    used = np.unique(gives[gives >= 0]).tolist()
    known = annotations.replace(gold=None, evidence=None, prior=None, kind=NOMINAL, abstentions=NO_IDS)
    found: list[_Groups] = []
    for k in used[:1] if len(used) == 2 else used:
        kept = (gives >= 0 if len(used) == 2 else gives == k)[worker]
        of_others = np.where(gives[worker] == k, label != k, label != n_classes).astype(np.int32)
        found.append(_of_classes(known.replace(label=read_only(of_others), classes=Ids(["k", "other"])).rows(kept)))
    fires = label < n_classes
    where = np.asarray(annotations.task)[fires], worker[fires]
    fired = sparse.csr_matrix((np.ones(fires.sum()), where), (annotations.n_tasks, annotations.n_workers))

    def is_one(workers: np.ndarray) -> bool:
        both = np.asarray((fired[:, workers].T @ fired[:, workers]).todense())
        either = both.diagonal()[:, None] + both.diagonal() - both
        return np.ptp(gives[workers]) == 0 and (both / either)[np.triu_indices(len(workers), 1)].mean() >= TOGETHER

    return _Groups(*([group for part in found for group in part[i] if is_one(group.workers)] for i in range(3)))


def _of_classes(annotations: Annotations) -> _Groups:
    """Return the groups by annotations whose classes are all that counts."""
    given = _given(annotations)
    units = annotations.tasks
    if not isinstance(units, Units):
        return _Groups(*_agreeing(given), list(_same(given, None)))
    each = ((_given(some_tasks(annotations, units.question == i)), name) for i, name in enumerate(units.questions))
    return _Groups(*_agreeing(given), [group for own in each for group in _same(*own)])


def _by_order(annotations: Annotations) -> Annotations:
    """Comparisons with a worker of its own for each worker and order of the sides: the second order's come last."""
    n_workers = annotations.n_workers
    worker = np.asarray(annotations.worker) + n_workers * np.asarray(annotations.mirrored, np.int32)
    return annotations.replace(worker=worker, workers=Ids(range(2 * n_workers)), mirrored=None)


def _of_workers(groups: list[AgreeingGroup], n_workers: int) -> Iterator[AgreeingGroup]:
    """Groups of :func:`_by_order` as groups of workers: those of several, of whom none is in one before."""
    taken: set[tuple[Hashable, int]] = set()
    for group in groups:
        workers = np.unique(group.workers % n_workers)
        known = {(group.question, worker) for worker in workers.tolist()}
        if len(workers) > 1 and not taken & known:
            taken |= known
            yield replace(group, workers=workers)


def _agreeing(given: _Given | None) -> tuple[list[AgreeingGroup], list[AgreeingGroup]]:
    """The groups of workers who agree more than independent ones can, and those of whom it is in doubt."""
    found: tuple[list[AgreeingGroup], list[AgreeingGroup]] = [], []
    if given is None:
        return found
    taken = np.zeros((2, len(given.mean)), bool)
    for group in _candidates(given):
        is_member = np.isin(np.arange(len(given.mean)), group)
        if (taken[0] & is_member).any():
            continue
        shared = _of_shared_tasks(given, is_member)
        if (sides := _resampled(shared, is_member)) is None or not _is_above_zero((excess := _excess(*sides))[:2]):
            continue
        is_doubtful = not _is_above_zero(excess[2:])
        if is_doubtful and ((taken[1] & is_member).any() or excess[2].mean() <= 0):
            continue
        within, between, among = sides.mean(1)
        explained = between**2 / (within * among) if among > 0 else 1.0
        found[is_doubtful].append(replace(_described(shared, group), explained=float(explained)))
        taken[int(is_doubtful)] |= is_member
    return found


def copying_groups(annotations: Annotations) -> list[AgreeingGroup]:
    """Return the groups of :func:`same_groups`, then those of :func:`agreeing_groups` that are not among them."""
    agreeing, same = agreeing_groups(annotations), same_groups(annotations)
    known = {tuple(group.workers.tolist()) for group in same if group.question is None}
    return same + [group for group in agreeing if tuple(group.workers.tolist()) not in known]


def same_groups(annotations: Annotations) -> list[AgreeingGroup]:
    """Return the groups of two workers or more who give the same, while nobody else gives what they give.

    No worker is in two of them of one question. With :math:`u` the upper limit of the share of tasks on which two
    workers differ, as a part of that by chance, a group counts where the smallest :math:`u` of a member with another
    worker is 20 times the largest within the group or more (:data:`TIMES`); or 10 times, and the others agree with each
    other more than with workers without error, :math:`o > b^2`, by :data:`ERRORS` standard errors, or the group never
    differs, as of two classes on 130 tasks or so. The limit has a doubt of :data:`DOUBT` for all pairs
    together.
    """
    return [one for one in _groups(annotations).same if one.by_chance < RARE]


def always_same_groups(annotations: Annotations) -> list[AgreeingGroup]:
    """Return the groups who give the same on all tasks that they share, and are none of :func:`same_groups`.

    Independent workers who agree so with the others would do so with a probability of less than :data:`UNLIKELY`.
    """
    return [one for one in _groups(annotations).same if one.by_chance >= RARE]


def _same(given: _Given | None, question: Hashable) -> Iterator[AgreeingGroup]:
    """The groups of workers who give the same, of one question, copies and others."""
    pairs = None if given is None else given.pairs
    if given is None or pairs is None:
        return
    apart = (1 - pairs.least) / (1 - pairs.by_chance)
    taken = np.zeros(len(given.mean), bool)
    for nearness in NEARNESS:
        for group in pairs.linked(apart < 1 / nearness):
            is_member = np.isin(np.arange(len(taken)), group)
            n_inside = is_member[pairs.first].astype(int) + is_member[pairs.second]
            outside = apart[n_inside == 1]
            if (taken & is_member).any() or not len(outside):
                continue
            inside = n_inside == 2
            times = outside.min() / apart[inside].max()
            shared = _of_shared_tasks(given, is_member)
            never_differ = bool((pairs.same[inside] > pairs.n[inside] - 0.5).all())
            if times >= TIMES[1] or (times >= TIMES[0] and (never_differ or _errs(shared, is_member))):
                yield replace(_described(shared, group), question=question)
                taken |= is_member
    alike = pairs.linked(pairs.same > pairs.n - 0.5)
    for group in alike:
        is_member = np.isin(np.arange(len(taken)), group)
        if not (taken & is_member).any():
            shared = _of_shared_tasks(given, is_member)
            found = _described(shared, group)
            by_chance = len(alike) * _probability_of_the_same(shared, found, pairs)
            if by_chance < UNLIKELY:
                yield replace(found, question=question, by_chance=by_chance)
                taken |= is_member


@dataclass(frozen=True)
class _Given:
    """Annotations as rows by (task, worker, class), from workers with enough tasks."""

    task: np.ndarray
    worker: np.ndarray
    label: np.ndarray
    share: np.ndarray  # of the worker's annotations of the task; 1 where there is one
    is_first: np.ndarray  # of the rows of its task and worker
    mean: np.ndarray  # (J, K)
    spread: np.ndarray  # (J,)
    n_tasks: int

    @cached_property
    def pairs(self) -> _PairsOfWorkers | None:
        """Pairs of workers who share enough tasks; None where there is none."""
        return _pairs_of_workers(self)


def _given(annotations: Annotations) -> _Given | None:
    """The annotations of tasks that several workers annotated who gave several classes; None where nobody is left."""
    annotations = _looked_at(annotations)
    j, k = annotations.n_workers, annotations.n_classes
    task, worker, label, share, is_first = _shares(annotations)
    n = np.bincount(worker[is_first], minlength=j)
    mean = cross_counts((j, k), worker, label, weight=share) / np.maximum(n, 1)[:, None]
    spread = np.sqrt(np.maximum(1 - (mean**2).sum(1), 0.0))
    kept = ((n >= COMMON) & (spread > 1e-6))[worker]
    spread[spread <= 1e-6] = 1.0  # of nobody who is kept
    kept &= (np.bincount(task[kept & is_first], minlength=annotations.n_tasks) > 1)[task]
    if not kept.any():
        return None
    is_left = np.bincount(task[kept], minlength=annotations.n_tasks) > 0
    place = np.cumsum(is_left) - 1
    n_tasks = int(is_left.sum())
    return _Given(place[task[kept]], worker[kept], label[kept], share[kept], is_first[kept], mean, spread, n_tasks)


def _looked_at(annotations: Annotations) -> Annotations:
    """The annotations, or those of a random sample of tasks where they are many."""
    n = np.bincount(np.asarray(annotations.task), minlength=annotations.n_tasks).astype(float)
    if (n**2).sum() <= PRODUCTS:
        return annotations
    order = np.random.default_rng(0).permutation(annotations.n_tasks)
    chosen = np.zeros(annotations.n_tasks, bool)
    chosen[order] = np.cumsum(n[order] ** 2) <= PRODUCTS
    return some_tasks(annotations, chosen)


def _shares(annotations: Annotations) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows by (task, worker, class): these three, the class's share of the pair's annotations, and whether it is first.

    Those of tasks that nobody annotated twice are the annotations' own rows.
    """
    j, k, weight = annotations.n_workers, annotations.n_classes, annotations.row_counts
    task, worker, label = map(np.asarray, (annotations.task, annotations.worker, annotations.label))
    again = annotations.annotated_again[task]
    once, again = ~again & (weight > 0), again & (weight > 0)
    cell = (task[again].astype(np.int64) * j + worker[again]) * k + label[again]
    cell, place = np.unique(cell, return_inverse=True)
    weight = np.bincount(place, weight[again])
    pair, label_again = cell // k, cell % k
    is_first = np.diff(pair, prepend=-1) > 0
    share = weight / np.bincount(np.cumsum(is_first) - 1, weight)[np.cumsum(is_first) - 1]
    ones = np.ones(once.sum())
    return (
        np.append(task[once], pair // j),
        np.append(worker[once], pair % j),
        np.append(label[once], label_again),
        np.append(ones, share),
        np.append(ones > 0, is_first),
    )


@dataclass(frozen=True)
class _PairsOfWorkers:
    """Pairs of workers who share enough tasks, P of them, and their agreement, (P,) each."""

    first: np.ndarray
    second: np.ndarray
    n: np.ndarray  # tasks that they share
    same: np.ndarray  # of these, on which they agree
    by_chance: np.ndarray  # the share on which they would agree by chance
    least: np.ndarray  # lower limit of the share on which they agree
    n_workers: int

    def linked(self, of: np.ndarray) -> list[np.ndarray]:
        """Return the groups of two workers or more that some of the pairs, ``(P,)`` bool, link."""
        component = connected_parts(self.first[of], self.second[of], self.n_workers)
        order = np.argsort(component, kind="stable")
        cuts = np.append(np.flatnonzero(np.diff(component[order], prepend=-1)), self.n_workers)
        return [order[begin:end] for begin, end in pairwise(cuts) if end - begin >= 2]


def _pairs_of_workers(given: _Given) -> _PairsOfWorkers | None:
    """Return the pairs of workers with :data:`COMMON` tasks in common; None where there is none."""
    n_workers, n_classes = given.mean.shape
    rows, shape = given.task * n_classes + given.label, (given.n_tasks * n_classes, n_workers)
    gave = sparse.csr_matrix((given.share, (rows, given.worker)), shape)
    first = given.is_first
    met = sparse.csr_matrix(
        (np.ones(first.sum()), (given.task[first], given.worker[first])), (given.n_tasks, n_workers)
    )
    common = met.T @ met  # by column or by row: it is symmetric
    enough = np.flatnonzero(common.data >= COMMON)
    a, b = np.searchsorted(common.indptr, enough, side="right") - 1, common.indices[enough]
    above = b > a
    a, b, n = a[above], b[above], common.data[enough[above]]
    if not len(n):
        return None
    same = np.asarray((gave.T @ gave).tocsr()[a, b]).ravel()
    by_chance = sum(of_class[a] * of_class[b] for of_class in given.mean.T)
    least, _ = jeffreys(same, n, 1 - 2 * DOUBT / len(n))
    return _PairsOfWorkers(a, b, n, same, by_chance, least, n_workers)


def _candidates(given: _Given) -> list[np.ndarray]:
    """Groups of workers who might be apart, the largest first.

    They are linked by pairs who agree for sure, at several levels of agreement beyond chance; of at most
    :data:`CLUSTERED` workers also by the mean agreement of two groups, which is seen where that of no single pair is.
    """
    of_workers = given.pairs
    if of_workers is None:
        return []
    n_workers, a, b, n = of_workers.n_workers, of_workers.first, of_workers.second, of_workers.n
    scale = given.spread[a] * given.spread[b]
    low = (of_workers.least - of_workers.by_chance) / scale
    groups: dict[tuple[int, ...], None] = {}
    for level in LEVELS:
        for group in of_workers.linked(low > level):
            if len(group) <= n_workers - 2:
                groups[tuple(group.tolist())] = None
    linked_groups = sorted(groups, key=len, reverse=True)[:TESTED]
    active = np.unique(given.worker)
    if len(active) > CLUSTERED:
        return [np.array(group) for group in linked_groups]
    products, pairs = np.zeros((2, n_workers, n_workers))
    products[a, b] = products[b, a] = (of_workers.same - n * of_workers.by_chance) / scale
    pairs[a, b] = pairs[b, a] = n
    return _clearest([*linked_groups, *_clustered(products, pairs, active)], products, pairs)


def _clustered(products: np.ndarray, pairs: np.ndarray, active: np.ndarray) -> list[tuple[int, ...]]:
    """Groups by average linkage, of at most a third of the workers: of more, the others may be the odd ones.

    Args:
        products: by pair of workers the sum over tasks of their agreement beyond chance, ``(J, J)``.
        pairs: the number of these tasks, ``(J, J)``.
        active: the workers that have annotations.
    """
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    most = len(active) // 3
    if most < 2:
        return []
    beyond = products / np.maximum(pairs, 1)
    beyond[pairs == 0] = products.sum() / pairs.sum()
    apart = 2 - beyond[np.ix_(active, active)]
    np.fill_diagonal(apart, 0.0)
    members: dict[int, tuple[int, ...]] = {i: (int(worker),) for i, worker in enumerate(active)}
    for step, (one, other, _, _) in enumerate(linkage(squareform(apart, checks=False), "average")):
        members[len(active) + step] = tuple(sorted(members[int(one)] + members[int(other)]))
    return [group for group in members.values() if 2 <= len(group) <= most]


def _clearest(groups: list[tuple[int, ...]], products: np.ndarray, pairs: np.ndarray) -> list[np.ndarray]:
    """Groups that are beyond the margins but for errors, those that agree most over others in most pairs first.

    Args:
        groups: workers of each.
        products: as of :func:`_clustered`.
        pairs: likewise.
    """
    inside = np.zeros((len(groups), len(products)))
    for i, group in enumerate(groups):
        inside[i, list(group)] = 1.0
    outside = 1 - inside
    sides = ((inside, inside), (inside, outside), (outside, outside))
    n = [np.maximum(((left @ pairs) * right).sum(1), 1) for left, right in sides]
    within, between, among = (
        ((left @ products) * right).sum(1) / of_side for (left, right), of_side in zip(sides, n, strict=True)
    )
    least = np.sqrt(within**2 / n[2] + among**2 / n[0] + 4 * between**2 / n[1])  # of the tetrad's error
    clear = np.all(_excess(within, between, among) > np.stack([0 * least, 0 * least, least]), axis=0)
    score = (within - between) * inside.sum(1)
    chosen = dict.fromkeys(groups[i] for i in np.argsort(-score, kind="stable") if clear[i])
    return [np.array(group) for group in list(chosen)[:CLEAREST]]


def _of_shared_tasks(given: _Given, is_member: np.ndarray) -> _Given:
    """The annotations of the tasks that members of the group share; workers of other tasks may be of other worth."""
    n = np.bincount(given.task[given.is_first & is_member[given.worker]], minlength=given.n_tasks)
    tasks = np.flatnonzero(n > 1)
    if len(tasks) > LOOKED_AT:
        tasks = np.sort(np.random.default_rng(0).choice(tasks, LOOKED_AT, replace=False))
    place = np.full(given.n_tasks, -1)
    place[tasks] = np.arange(len(tasks))
    kept = place[given.task] >= 0
    rows = {name: getattr(given, name)[kept] for name in ("worker", "label", "share", "is_first")}
    return replace(given, task=place[given.task[kept]], n_tasks=len(tasks), **rows)


def _described(shared: _Given, group: np.ndarray) -> AgreeingGroup:
    """Return a group with how often its pairs agree, from the annotations of the tasks that members share."""
    is_member = np.isin(np.arange(len(shared.mean)), group)
    same, pairs = _pair_sums(shared, is_member, np.zeros_like(shared.mean), np.ones(len(shared.mean)))
    within, outside, _ = same.sum(0) / np.maximum(pairs.sum(0), 1e-9)
    return AgreeingGroup(group, float(within), float(outside), shared.n_tasks)


def _pair_sums(
    given: _Given, is_member: np.ndarray, mean: np.ndarray, spread: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """By task the sum over pairs of annotations of their agreement, and the number of pairs: both ``(N, 3)``.

    The pairs are those within the group, of one in the group and one outside, and of two outside.

    Args:
        given: the annotations.
        is_member: of the group, ``(J,)``.
        mean: what is taken from the annotations of each worker, ``(J, K)``.
        spread: what they are divided by, ``(J,)``.
    """
    n_tasks, n_classes = given.n_tasks, mean.shape[1]
    sums, squares, counts = [], [], []
    for side in (is_member, ~is_member):
        of_side = side[given.worker]
        first = of_side & given.is_first
        t, w, scale = given.task[of_side], given.worker[of_side], 1 / spread[given.worker[of_side]]
        met = sparse.csr_matrix(
            (1 / spread[given.worker[first]], (given.task[first], given.worker[first])), (n_tasks, len(spread))
        )
        share, label = given.share[of_side], given.label[of_side]
        total = cross_counts((n_tasks, n_classes), t, label, weight=share * scale)
        sums.append(total - met @ mean)
        own = (share**2 - 2 * share * mean[w, label]) * scale**2
        norms = (mean**2).sum(1) / spread**2
        squares.append(
            np.bincount(t, own, n_tasks) + np.bincount(given.task[first], norms[given.worker[first]], n_tasks)
        )
        counts.append(np.bincount(given.task[first], minlength=n_tasks).astype(float))
    (inside, outside), (n_in, n_out) = sums, counts
    products = [
        ((inside**2).sum(1) - squares[0]) / 2,
        (inside * outside).sum(1),
        ((outside**2).sum(1) - squares[1]) / 2,
    ]
    pairs = [n_in * (n_in - 1) / 2, n_in * n_out, n_out * (n_out - 1) / 2]
    return np.stack(products, -1), np.stack(pairs, -1)


def _errs(given: _Given, is_member: np.ndarray) -> bool:
    """Return whether others agree with each other more than if the group's members made no error.

    Args:
        given: the annotations of the tasks that members share.
        is_member: of the group, ``(J,)``.
    """
    sides = _resampled(given, is_member)
    return sides is not None and _is_above_zero((sides[2] - sides[1] ** 2)[None])


def _probability_of_the_same(given: _Given, group: AgreeingGroup, pairs: _PairsOfWorkers) -> float:
    """Return how probably two independent workers who agree so with the others give the same on all tasks.

    Of several pairs it is that of the most probable one; 1 where members do not give always the same.

    Args:
        given: the annotations of the tasks that members share.
        group: the workers.
        pairs: of all workers.
    """
    is_member = np.isin(np.arange(len(given.mean)), group.workers)
    inside = np.flatnonzero(is_member[pairs.first] & is_member[pairs.second])
    if (pairs.same[inside] < pairs.n[inside] - 0.5).any() or (sides := _resampled(given, is_member)) is None:
        return 1.0
    _, between, among = sides
    expected = np.where(among > 0, np.clip(between / np.sqrt(np.maximum(among, 1e-9)), 0.0, 1.0) ** 2, 1.0)
    scale = given.spread[pairs.first[inside]] * given.spread[pairs.second[inside]]
    share = np.clip(pairs.by_chance[inside, None] + scale[:, None] * expected, group.outside, 1.0)
    return float((share ** pairs.n[inside, None]).mean(1).max())


def _resampled(given: _Given, is_member: np.ndarray) -> np.ndarray | None:
    """Return agreement beyond chance within a group, between it and others, and among these, by the tasks' bootstrap.

    Returns:
        ``(3, draw)``; None where too few pairs of annotations are of one of the three.
    """
    products, pairs = _pair_sums(given, is_member, given.mean, given.spread)
    if (pairs.sum(0) < COMMON).any():
        return None
    weights = np.random.default_rng(0).standard_exponential((DRAWS, len(pairs)))
    return ((weights @ products) / np.maximum(weights @ pairs, 1e-9)).T


def _is_above_zero(excess: np.ndarray) -> bool:
    """Return whether each row of ``(n, draw)`` is above 0 by :data:`ERRORS` standard errors."""
    return bool((excess.mean(1) > ERRORS * excess.std(1)).all())


def _excess(within: np.ndarray, between: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Return by how much agreement within a group is beyond the margins, over each of three bounds: ``(3, ...)``."""
    tetrad = (within - MARGIN_OF_TETRADS) * among - between**2
    return np.stack([within - MARGIN - between, within - MARGIN - among, tetrad])
