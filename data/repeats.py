"""Tasks that a worker annotated more than once."""

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import pandas as pd

from .columns import Column, some_rows
from .errors import AnnotationError, check_name, warn

Repeats = Literal["keep", "first", "error"]


TO_CHOOSE = "pass repeats='keep' to use all of these annotations, or repeats='first' to use the first one"
"""The advice of an error where the rule can be chosen."""


def n_repeated(task: np.ndarray, worker: np.ndarray, n_annotations: int) -> int:
    """Return the number of annotations beyond the first of each worker for each task."""
    return n_annotations - len(task) + len(repeated_tasks(task, worker))


def repeated_tasks(task: np.ndarray, worker: np.ndarray) -> np.ndarray:
    """Return the task of each row beyond the first of a worker for a task; a sort finds them, far sooner than a hash.

    Args:
        task: the tasks, ``(A,)``.
        worker: the workers, ``(A,)``.
    """
    n_workers = int(np.max(worker, initial=0)) + 1
    pair = np.sort(np.asarray(task, np.int64) * n_workers + np.asarray(worker))
    return pair[1:][pair[1:] == pair[:-1]] // n_workers


def later_rows(task: np.ndarray, worker: np.ndarray, again: np.ndarray) -> np.ndarray:
    """Return the places of the rows beyond the first of a worker for a task.

    Args:
        task: the tasks, ``(A,)``.
        worker: the workers, ``(A,)``.
        again: which tasks a worker annotated more than once, ``(N,)``: the others are not looked at.
    """
    if not again.any():
        return np.zeros(0, np.int64)
    rows = np.flatnonzero(again[task])
    pair = task[rows].astype(np.int64) * (int(np.max(worker, initial=0)) + 1) + worker[rows]
    found: np.ndarray = rows[pd.Series(pair).duplicated().to_numpy()]
    return found


class FirstAnnotations(NamedTuple):
    """The first annotation of each worker for each task that is a class: ``(A',)`` each, sorted by task."""

    task: np.ndarray
    worker: np.ndarray
    label: np.ndarray


def first_annotations(annotations: Any) -> FirstAnnotations:
    """Return the first annotation of each worker for each task; later ones and abstentions are left out.

    Args:
        annotations: of named workers.
    """
    found = FirstAnnotations(*map(np.asarray, (annotations.task, annotations.worker, annotations.label)))
    kept = found.label < annotations.n_classes
    if annotations.count is not None:
        kept &= np.asarray(annotations.count) > 0
    if not kept.all():
        found = FirstAnnotations(*(values[kept] for values in found))
    later = later_rows(found.task, found.worker, annotations.annotated_again)
    if not len(later):
        return found
    is_first = np.ones(len(found.task), bool)
    is_first[later] = False
    return FirstAnnotations(*(values[is_first] for values in found))


def resolve_repeats(
    task: Column, worker: Column, count: np.ndarray | None, repeats: Repeats, advice: str = TO_CHOOSE
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the rows to keep, shape (A',), and their counts; rows that count zero annotations are left out.

    Args:
        task: the tasks, A rows.
        worker: the workers, A rows.
        count: how many equal annotations each row stands for, shape (A,), or None for one each.
        repeats: "keep" takes every annotation as an observation of its own, "first" takes the first annotation of
            each worker for each task (a warning says how many others were left out), "error" raises an error.
        advice: what the error says can be done.

    Raises:
        AnnotationError: with repeats="error", a worker annotated a task more than once.
        UnknownNameError: `repeats` is something else.
    """
    check_name("value of repeats", repeats, get_args(Repeats))
    # A count of zero says that nobody gave this annotation, though its task and class exist.
    used = np.arange(len(task.codes)) if count is None else np.flatnonzero(count > 0)
    kept_counts = None if count is None else count[used]
    pair = task.codes[used].astype(np.int64) * len(worker.ids) + worker.codes[used]
    later = pd.Series(pair).duplicated().to_numpy()
    several = later if kept_counts is None else later | (kept_counts > 1)
    if repeats == "keep" or not several.any():
        return used, kept_counts
    if repeats == "error":
        first = int(np.flatnonzero(several)[0])
        row, rows = int(used[first]), used[pair == pair[first]]
        raise AnnotationError(
            f"worker {worker.ids[int(worker.codes[row])]!r} annotated task {task.ids[int(task.codes[row])]!r} "
            f"more than once: {some_rows(rows, task.where)}; {advice}"
        )
    kept = used[~later]
    total = len(used) if kept_counts is None else int(kept_counts.sum())
    warn(
        f"repeats='first' left out {total - len(kept)} of {total} annotations: those of a worker for a task that the "
        "same worker had annotated before"
    )
    return kept, None if kept_counts is None else np.ones(len(kept))
