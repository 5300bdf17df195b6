"""Some of the tasks of annotations, which tasks look alike, and which differ between annotations and more of them."""

import numpy as np

from .annotations import Annotations
from .arrays import BY_ROW, BY_TASK, changed, counts
from .ids import Ids

SEEN = 4  # roots of the number of tasks, among so many of which a few are alike where half of all are
FEW = 8  # tasks of those that are like another, from which on all are looked at


def some_tasks(annotations: Annotations, chosen: np.ndarray) -> Annotations:
    """The chosen tasks with all their annotations; workers and classes are those of all.

    Args:
        annotations: the data.
        chosen: whether each task is, ``(N,)`` of bool; or positions of tasks, in which some may come several times.

    Returns:
        annotations in that order, whose tasks have numbers as identifiers.
    """
    if chosen.dtype == bool:
        chosen = np.flatnonzero(chosen)
    n_rows = np.bincount(annotations.task, minlength=annotations.n_tasks)
    n = n_rows[chosen]
    first = (np.cumsum(n_rows) - n_rows)[chosen]
    rows = np.repeat(first - (np.cumsum(n) - n), n) + np.arange(n.sum())
    return annotations.replace(
        task=np.repeat(np.arange(len(chosen), dtype=np.int32), n),
        tasks=Ids.range(len(chosen)),
        **changed(annotations, BY_ROW, lambda values: np.asarray(values)[rows]),
        **changed(annotations, BY_TASK, lambda values: np.asarray(values)[chosen]),
    )


def tasks_alike(annotations: Annotations) -> np.ndarray | None:
    """The first task of those that look alike, for each task, ``(N,)`` of positions; None where hardly any do.

    Tasks look alike where the same workers gave them the same labels equally often, and where whatever else is known of
    them is the same: of what a story sees they differ by name alone. They are found by sums of random numbers of 64
    bits, one of each different row, which do not depend on the rows' order. By chance, two different tasks have the
    same sum once in some 10⁷ crowds of a million tasks.
    """
    few = int(SEEN * np.sqrt(annotations.n_tasks)) + 1000
    if few < annotations.n_tasks:
        some = some_tasks(annotations, np.arange(annotations.n_tasks) < few)
        if few - len(np.unique(_looks(some))) < FEW:
            return None
    _, first, kind = np.unique(_looks(annotations), return_index=True, return_inverse=True)
    found: np.ndarray = first[kind]
    return found


def _looks(annotations: Annotations) -> np.ndarray:
    """A number of each task that is the same for tasks that look alike, ``(N,)`` of uint64."""
    n_tasks = annotations.n_tasks
    ends = np.cumsum(np.bincount(annotations.task, minlength=n_tasks))
    code = np.asarray(annotations.label).astype(np.uint64)
    if annotations.worker is not None:
        code += np.asarray(annotations.worker).astype(np.uint64) * np.uint64(annotations.n_categories)
    if annotations.mirrored is not None:
        code = 2 * code + np.asarray(annotations.mirrored).astype(np.uint64)
    counted = np.zeros(1, np.uint64) if annotations.count is None else _bits(annotations.count)
    given = [values for name in BY_TASK if name != "gold" and (values := getattr(annotations, name)) is not None]
    rows = _scattered(_scattered(code) ^ counted)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(rows)])  # which may go round
    looks: np.ndarray = np.diff(sums[np.concatenate([[0], ends])])
    for values in given:
        for column in _bits(np.reshape(values, (n_tasks, -1))).T:
            looks = _scattered(looks ^ _scattered(column))
    return looks


def _bits(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values, np.float64).view(np.uint64)


def _scattered(values: np.ndarray) -> np.ndarray:
    """Numbers of 64 bits that look random, the same for the same: splitmix64 (Steele, Lea & Flood 2014)."""
    with np.errstate(over="ignore"):
        z = values + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def changed_tasks(before: Annotations, after: Annotations) -> np.ndarray:
    """A mask of the tasks of ``after`` that are new, or have more annotations or other evidence: ``(N,)`` of bool.

    Args:
        before: annotations.
        after: the same with more of them: :meth:`.Annotations.joined`.
    """
    given = [np.bincount(data.task, counts(data), after.n_tasks) for data in (before, after)]
    differs = given[0] != given[1]
    differs[before.n_tasks :] = True
    if after.evidence is not None:
        known = 0.0 if before.evidence is None else before.evidence
        differs[: before.n_tasks] |= (np.asarray(after.evidence)[: before.n_tasks] != known).any(-1)
    if after.model_scores is not None:
        scores = np.asarray(after.model_scores)[: before.n_tasks]
        same = before.model_scores is not None and np.shape(before.model_scores) == scores.shape
        old = np.asarray(before.model_scores) if same else np.full_like(scores, np.nan)
        differs[: before.n_tasks] |= ~((scores == old) | (np.isnan(scores) & np.isnan(old))).all((1, 2))
    return differs
