"""Discrepancies: the counts by which observed annotations are compared with replicated ones.

A discrepancy counts something in each of its units, :math:`n_u(y)`, such as the agreements of each pair of workers. The
design (who annotated what) fixes the units and their sizes, so that replicates have the same. Agreements of pairs are
counted by sparse products, so that thousands of workers need no dense matrix.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_array, triu

from ...data import AnnotationError, Annotations
from ...data.arrays import cross_counts

MAX_UNITS = 20_000  # of a discrepancy, whose replicates are held in memory: the largest units are taken
CELLS = 5_000_000  # rows × classes, or pairs of rows, that are held in memory at a time


@dataclass(frozen=True)
class Measure:
    """A discrepancy on one design, which can be taken of any annotations to it.

    Args:
        take: from annotations ``(A,)`` to the units' values ``(U,)``.
        units: names of the units; None where there is one value and no units.
        size: the largest possible count of each unit, ``(U,)``; None where there is no such number.
        left_out: how many smaller units are left out.
    """

    take: Callable[[np.ndarray], np.ndarray]
    units: pd.Index | None = None
    size: np.ndarray | None = None
    left_out: int = 0


@dataclass(frozen=True)
class Discrepancy:
    """A way to compare annotations.

    Args:
        title: what it counts, as plots say it.
        axis: what the units' values are, as shares of their size where there is one.
        prepare: from annotations to its measure on their design.
        added_variance: added to each unit's variance where deviations are standardised: 1 for counts, so that units of
            a few annotations do not outweigh larger ones.
        of_workers: whether workers must be named.
    """

    title: str
    axis: str
    prepare: Callable[[Annotations], Measure]
    added_variance: float = 0.0
    of_workers: bool = False


def _class_counts(annotations: Annotations) -> Measure:
    """Count each worker's annotations by class, abstentions too; without workers' names, the whole crowd's counts."""
    n_classes = annotations.n_categories
    classes = annotations.categories.to_index("class")
    if not annotations.named:
        n_rows = np.full(n_classes, annotations.n_rows)
        return Measure(lambda label: np.bincount(label, minlength=n_classes), classes, n_rows)
    worker = np.asarray(annotations.worker, np.int64)
    by_worker = np.bincount(worker, minlength=annotations.n_workers)
    shown = _largest(by_worker, max(MAX_UNITS // n_classes, 1))

    def take(label: np.ndarray) -> np.ndarray:
        return cross_counts((annotations.n_workers, n_classes), worker, label)[shown].ravel()

    names = annotations.workers.to_index("worker")[shown]
    left_out = (int((by_worker > 0).sum()) - len(shown)) * n_classes
    units = pd.MultiIndex.from_product([names, classes], names=["worker", "class"])
    return Measure(take, units, np.repeat(by_worker[shown], n_classes), left_out)


def _vote_counts(annotations: Annotations) -> Measure:
    """Count tasks by the largest share of their annotations for one class, in steps of ten percent.

    Shares are taken of all the task's annotations: abstentions count in the total, and for no class.
    """
    task, n_classes = np.asarray(annotations.task, np.int64), annotations.n_classes
    n_annotations = np.bincount(task, minlength=annotations.n_tasks)
    voted = n_annotations >= 2
    if not voted.any():
        raise AnnotationError("votes: no task has two annotations, so there is no majority to count")
    steps: dict[int, list[tuple[int, int]]] = {}
    for n in np.unique(n_annotations[voted]).tolist():
        for largest in range(0 if annotations.abstains else -(-n // n_classes), n + 1):
            steps.setdefault(10 * largest // n, []).append((largest, n))
    shown = sorted(steps)

    def take(label: np.ndarray) -> np.ndarray:
        given = label < n_classes
        largest = cross_counts((n_classes, len(n_annotations)), label[given], task[given]).max(0)
        return np.bincount(10 * largest[voted] // n_annotations[voted], minlength=11)[shown]

    names = pd.Index([_step_name(step, steps[step]) for step in shown], name="largest share")
    return Measure(take, names, np.full(len(shown), int(voted.sum())))


def _step_name(step: int, cases: list[tuple[int, int]]) -> str:
    """The name of a step of ten percent, by its cases (largest count, number of annotations)."""
    if step == 10:
        return "all agree"
    if len(cases) == 1:
        return f"{cases[0][0]} of {cases[0][1]}"
    return f"{10 * step}–{10 * step + 9} %"


def _agreement(annotations: Annotations) -> Measure:
    """Count, for each pair of workers, the agreements on tasks that both annotated.

    A repeated annotation is compared with each of the other worker's annotations to the task. Of as many pairs of
    annotations as fit into memory each is looked at; of more the sums are sparse products.
    """
    by_task = np.bincount(np.asarray(annotations.task), minlength=annotations.n_tasks)
    is_little = (by_task * (by_task - 1) // 2).sum() <= CELLS
    first, second, size, counter = (_pairs_by_row if is_little else _pairs_by_product)(annotations)
    if not len(size):
        raise AnnotationError("agreement: no two workers annotated the same task, so there is nothing to compare")
    shown = _largest(size, MAX_UNITS)
    workers = annotations.workers
    pairs = [workers.to_index("worker")[first[shown]], workers.to_index("other")[second[shown]]]
    units = pd.MultiIndex.from_arrays(pairs, names=["worker", "other"])
    return Measure(counter(shown), units, size[shown], len(size) - len(shown))


def _majority(annotations: Annotations) -> Measure:
    """Count each worker's agreements with the majority of a task's other workers; k tied classes count 1/k each."""
    size, take = majority_counter(annotations)
    if not size.any():
        raise AnnotationError("majority: no task has annotations of two workers, so there is no majority of others")
    shown = _largest(size, MAX_UNITS)
    names = annotations.workers.to_index("worker")[shown]
    left_out = int((size > 0).sum()) - len(shown)
    return Measure(lambda label: take(label)[shown], names, size[shown], left_out)


DISCREPANCIES: Mapping[str, Discrepancy] = {
    "annotations": Discrepancy(
        "Annotations of each class", "share of the annotations", _class_counts, added_variance=1.0
    ),
    "votes": Discrepancy(
        "Tasks by the largest share of their votes", "share of the tasks", _vote_counts, added_variance=1.0
    ),
    "agreement": Discrepancy(
        "Agreement of pairs of workers", "share of the shared tasks", _agreement, added_variance=1.0, of_workers=True
    ),
    "majority": Discrepancy(
        "Agreement with the majority of the others",
        "share of the annotations",
        _majority,
        added_variance=1.0,
        of_workers=True,
    ),
}
"""The discrepancies that :func:`~crowdppl.check` knows by name."""


def of_function(name: str, function: Callable[[Annotations], Any]) -> Discrepancy:
    """The discrepancy that a function of the annotations measures.

    Args:
        function: returns a number, large where the annotations are unusual, or a series of numbers by unit, whose units
            are the same for all annotations to the same design.
    """

    def prepare(annotations: Annotations) -> Measure:
        found = function(annotations)
        units = found.index if isinstance(found, pd.Series) else None
        if units is not None and not units.is_unique:
            raise ValueError(f"discrepancy {name!r} has the unit {units[units.duplicated()][0]!r} more than once")
        if units is not None and not len(units):
            raise ValueError(f"discrepancy {name!r} is a series without units; at least one is needed")

        def take(label: np.ndarray) -> np.ndarray:
            value = function(annotations.replace(label=label))
            if isinstance(value, pd.Series) != (units is not None):
                raise ValueError(f"discrepancy {name!r} returns a series of some annotations and a number of others")
            if units is not None and not units.equals(value.index):
                odd = units.symmetric_difference(value.index)
                what = f"{odd[0]!r} is not among both" if len(odd) else "their order differs"
                raise ValueError(
                    f"discrepancy {name!r} has other units for replicates than for the observed annotations: {what}; "
                    "return the same units every time, such as with .reindex(all_units, fill_value=0)"
                )
            return np.atleast_1d(np.asarray(value, dtype=float))

        return Measure(take, units)

    return Discrepancy(name, "value", prepare)


def _largest(size: np.ndarray, limit: int) -> np.ndarray:
    """Positions of the largest units that are not empty, at most ``limit``, in ascending order."""
    order = np.argsort(-size, kind="stable")[:limit]
    return np.sort(order[size[order] > 0])


class _Pairs(NamedTuple):
    """Pairs of workers who share tasks, ``(P,)`` each, in the order of the workers.

    Args:
        first: the worker who comes first.
        second: the other.
        size: the number of pairs of annotations that they share.
        counter: gives, for the pairs at some positions, a function of annotations ``(A,)`` that counts in how many of
            these pairs of annotations two workers agree. Two abstentions are no agreement.
    """

    first: np.ndarray
    second: np.ndarray
    size: np.ndarray
    counter: Callable[[np.ndarray], Callable[[np.ndarray], np.ndarray]]


def _pairs_by_row(annotations: Annotations) -> _Pairs:
    """The pairs of workers, by looking at each pair of annotations to a task; rows are sorted by task."""
    worker, task = np.asarray(annotations.worker, np.int64), np.asarray(annotations.task)
    n_workers, n_classes = annotations.n_workers, annotations.n_classes
    most = int(np.bincount(task).max(initial=0))
    apart = [np.flatnonzero(task[n:] == task[:-n]) for n in range(1, most)]
    one = np.concatenate([np.zeros(0, np.int64), *apart])
    other = np.concatenate([np.zeros(0, np.int64), *(rows + n for n, rows in enumerate(apart, 1))])
    is_of_two = worker[one] != worker[other]
    one, other = one[is_of_two], other[is_of_two]
    key = np.minimum(worker[one], worker[other]) * n_workers + np.maximum(worker[one], worker[other])
    keys, pair, size = np.unique(key, return_inverse=True, return_counts=True)

    def counter(shown: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        place = np.full(len(keys), -1)
        place[shown] = np.arange(len(shown))
        is_shown = place[pair] >= 0
        a, b, at = one[is_shown], other[is_shown], place[pair[is_shown]]

        def look(label: np.ndarray) -> np.ndarray:
            agree = (label[a] == label[b]) & (label[a] < n_classes)
            return np.bincount(at[agree], minlength=len(shown)).astype(np.float32)

        return look

    return _Pairs(keys // n_workers, keys % n_workers, size, counter)


def _pairs_by_product(annotations: Annotations) -> _Pairs:
    r"""The pairs of workers, by sparse products.

    With :math:`b_{jil} = 1` where worker j gave annotation l, a class, to task i, a pair agrees
    :math:`\sum_{il} b_{jil} b_{j'il}` times.
    """
    worker, task = np.asarray(annotations.worker), np.asarray(annotations.task, np.int64)
    n_workers, n_tasks, n_classes = annotations.n_workers, annotations.n_tasks, annotations.n_classes
    ones = np.ones(len(task), dtype=np.float32)
    annotated = csr_array((ones, (worker, task)), shape=(n_workers, n_tasks))
    shared = triu(annotated @ annotated.T, k=1, format="coo")
    order = np.lexsort(shared.coords[::-1])
    first, second = (of_pair[order] for of_pair in shared.coords)

    def counter(shown: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        def multiply(label: np.ndarray) -> np.ndarray:
            given = label < n_classes
            cells = (worker[given], (task * n_classes + label)[given])
            gave = csr_array((ones[given], cells), shape=(n_workers, n_tasks * n_classes))
            agreed = gave @ gave.T
            agreed.sort_indices()
            return np.asarray(agreed[first[shown], second[shown]]).ravel()

        return multiply

    return _Pairs(first, second, shared.data[order].astype(np.int64), counter)


def majority_counter(annotations: Annotations) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """The sizes and the count of each worker's agreement with the majority of a task's other workers.

    A worker's repeated annotations to a task are not among the others'. An annotation that agrees with the majority
    counts 1, or 1/k where k classes tie; an abstention agrees with nobody, and nobody with abstentions.

    Returns:
        How many annotations each worker gave to tasks that others annotated too, ``(J,)``; and a function from
        annotations ``(A,)`` to the workers' agreements, ``(J,)``.
    """
    worker, task = np.asarray(annotations.worker, np.int64), np.asarray(annotations.task, np.int64)
    n_workers, n_tasks, n_classes = annotations.n_workers, annotations.n_tasks, annotations.n_classes
    _, visit, visits = np.unique(task * n_workers + worker, return_inverse=True, return_counts=True)
    alone = visits[visit] == np.bincount(task, minlength=n_tasks)[task]
    size = np.bincount(worker[~alone], minlength=n_workers)
    again = np.flatnonzero(visits[visit] > 1)
    one = np.ones(len(task), dtype=np.int32)
    classes = np.arange(n_classes)[:, None]

    def credit_once(label: np.ndarray, votes: np.ndarray) -> np.ndarray:
        """Of rows of who annotated the task once: without one's vote, the majority is of no more than one class less.

        Who gave a class that is the most frequent by more than one vote agrees; by one vote, it ties with the next.
        """
        first, most = votes.argmax(0), votes.max(0)
        others = np.where(classes == first, -1, votes)  # a class apart from the first one, of which there may be more
        next_to_it = others.max(0)
        n_next = (others == next_to_it).sum(0)
        credit = np.where(most - 1 > next_to_it, 1.0, 1 / (1 + n_next)) * ((next_to_it < most) & (most > 1))
        return credit[task] * (label == first[task])

    def take(label: np.ndarray) -> np.ndarray:
        given = label < n_classes
        votes = cross_counts((n_classes, n_tasks), label[given], task[given])
        credit = credit_once(label, votes)
        credit[again] = 0.0
        chosen = again[given[again]]
        if not len(chosen):
            return np.bincount(worker, credit, n_workers)
        own = csr_array((one[chosen], (visit[chosen], label[chosen])), shape=(len(visits), n_classes))
        for chunk in np.array_split(chosen, max(len(chosen) * n_classes // CELLS, 1)):
            others = votes.T[task[chunk]] - own[visit[chunk]].toarray()
            most = others.max(-1, keepdims=True)
            winning = (others == most) & (most > 0)
            credit[chunk] = winning[np.arange(len(chunk)), label[chunk]] / np.maximum(winning.sum(-1), 1)
        return np.bincount(worker, credit, n_workers)

    return size, take
