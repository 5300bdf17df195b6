r"""What annotations are compared by with annotations that the story would have written: four discrepancies that the field uses.

Each counts something in every one of its units, :math:`n_u(y)`, whose number and size the design fixes (who annotated
what), so that replicates have the same units.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ...data import AnnotationError, Annotations
from .pair_counts import majority_counter, pair_counter

MAX_UNITS = 20_000  # of a discrepancy, the largest ones: their replicates are held in memory


@dataclass(frozen=True)
class Measure:
    """A discrepancy on one design, ready to be taken of any annotations to it.

    Args:
        take: from annotations ``(A,)`` to the units' values ``(U,)``.
        units: names of the units; None where there is one value and no units.
        size: the most that each unit can count, ``(U,)``; None where there is no such number.
        left_out: how many smaller units there are, which are not looked at.
    """

    take: Callable[[np.ndarray], np.ndarray]
    units: pd.Index | None = None
    size: np.ndarray | None = None
    left_out: int = 0


@dataclass(frozen=True)
class Discrepancy:
    """A way to compare annotations.

    Args:
        title: what it counts, as pictures say it.
        axis: what the units' values are, as shares of their size where there is one.
        prepare: from annotations to its measure on their design.
        grain: added to a unit's variance where deviations are put on one scale: 1 for counts, so that a unit of a
            handful of annotations cannot outweigh those that say something.
        of_workers: whether workers must be named.
    """

    title: str
    axis: str
    prepare: Callable[[Annotations], Measure]
    grain: float = 0.0
    of_workers: bool = False


def _answers(annotations: Annotations) -> Measure:
    """How often each worker gave each class; of nameless workers, how often all of them did."""
    n_classes = annotations.n_classes
    classes = annotations.classes.to_index("class")
    if not annotations.named:
        n_rows = np.full(n_classes, annotations.n_rows)
        return Measure(lambda label: np.bincount(label, minlength=n_classes), classes, n_rows)
    worker = np.asarray(annotations.worker, np.int64)
    by_worker = np.bincount(worker, minlength=annotations.n_workers)
    shown = _largest(by_worker, max(MAX_UNITS // n_classes, 1))
    cells = annotations.n_workers * n_classes

    def take(label: np.ndarray) -> np.ndarray:
        counts = np.bincount(worker * n_classes + label, minlength=cells)
        return counts.reshape(-1, n_classes)[shown].ravel()

    names = annotations.workers.to_index("worker")[shown]
    left_out = (int((by_worker > 0).sum()) - len(shown)) * n_classes
    units = product_index(names, classes)
    return Measure(take, units, np.repeat(by_worker[shown], n_classes), left_out)


def _votes(annotations: Annotations) -> Measure:
    """How many tasks have a winner with so large a share of their annotations, in steps of ten percent."""
    task, n_classes = np.asarray(annotations.task, np.int64), annotations.n_classes
    n_annotations = np.bincount(task, minlength=annotations.n_tasks)
    voted = n_annotations >= 2
    if not voted.any():
        raise AnnotationError("votes: no task has two annotations, so there is no majority to look at")
    steps: dict[int, list[tuple[int, int]]] = {}
    for n in np.unique(n_annotations[voted]).tolist():
        for winner in range(-(-n // n_classes), n + 1):
            steps.setdefault(10 * winner // n, []).append((winner, n))
    shown = sorted(steps)

    def take(label: np.ndarray) -> np.ndarray:
        votes = np.bincount(task * n_classes + label, minlength=len(n_annotations) * n_classes)
        winner = votes.reshape(-1, n_classes).max(-1)
        return np.bincount(10 * winner[voted] // n_annotations[voted], minlength=11)[shown]

    names = pd.Index([_step_name(step, steps[step]) for step in shown], name="winner's share")
    return Measure(take, names, np.full(len(shown), int(voted.sum())))


def _step_name(step: int, cases: list[tuple[int, int]]) -> str:
    if step == 10:
        return "all agree"
    if len(cases) == 1:
        return f"{cases[0][0]} of {cases[0][1]}"
    return f"{10 * step}–{10 * step + 9} %"


def _agreement(annotations: Annotations) -> Measure:
    """How often the two workers of each pair gave the same annotation to a task that both annotated."""
    first, second, size, take = pair_counter(annotations)
    if not len(size):
        raise AnnotationError("agreement: no two workers annotated the same task, so there is nothing to compare")
    shown = _largest(size, MAX_UNITS)
    first, second = first[shown], second[shown]
    workers = annotations.workers
    units = pd.MultiIndex.from_arrays([workers.to_index("worker")[first], workers.to_index("other")[second]])
    return Measure(lambda label: take(label, first, second), units, size[shown], len(size) - len(shown))


def _majority(annotations: Annotations) -> Measure:
    """How often each worker annotated as most of the task's other workers did; where k classes tie, 1/k of a time."""
    size, take = majority_counter(annotations)
    if not size.any():
        raise AnnotationError("majority: no task has annotations of two workers, so nobody has others to agree with")
    shown = _largest(size, MAX_UNITS)
    names = annotations.workers.to_index("worker")[shown]
    left_out = int((size > 0).sum()) - len(shown)
    return Measure(lambda label: take(label)[shown], names, size[shown], left_out)


DISCREPANCIES: Mapping[str, Discrepancy] = {
    "annotations": Discrepancy("Annotations of each class", "share of the annotations", _answers, grain=1.0),
    "votes": Discrepancy("Tasks by their winner's share of the annotations", "share of the tasks", _votes, grain=1.0),
    "agreement": Discrepancy(
        "Agreement of pairs of workers", "share of the shared tasks", _agreement, grain=1.0, of_workers=True
    ),
    "majority": Discrepancy(
        "Agreement with the majority of the others",
        "share of the annotations",
        _majority,
        grain=1.0,
        of_workers=True,
    ),
}
"""The discrepancies that :func:`~crowdppl.check` knows by name."""


def of_function(name: str, function: Callable[[Annotations], Any]) -> Discrepancy:
    """The discrepancy that a function of the annotations measures.

    Args:
        name: what it is called.
        function: returns a number, large where the annotations are odd, or a series of numbers by unit, whose units are the
            same for all annotations to the same design.
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


def product_index(rows: pd.Index, columns: pd.Index) -> pd.MultiIndex:
    """All pairs of a row and a column, in the order of a raveled table."""
    return pd.MultiIndex.from_arrays(
        [rows.repeat(len(columns)), columns.take(np.tile(np.arange(len(columns)), len(rows)))]
    )


def _largest(size: np.ndarray, limit: int) -> np.ndarray:
    """Positions of the largest units that hold anything, in their own order."""
    order = np.argsort(-size, kind="stable")[:limit]
    return np.sort(order[size[order] > 0])
