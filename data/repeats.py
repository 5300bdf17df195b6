"""Several annotations of one worker to one task."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import pandas as pd

from .columns import Column, some_rows
from .errors import AnnotationError, unknown_name, warn

Repeats = Literal["keep", "first", "error"]


def resolve_repeats(
    task: Column, worker: Column, count: np.ndarray | None, repeats: Repeats
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the rows to keep, shape (A',), and their counts; rows that count zero annotations are left out.

    Args:
        task: the tasks, A rows.
        worker: the workers, A rows.
        count: how many equal annotations each row stands for, shape (A,), or None for one each.
        repeats: "keep" takes every annotation as an observation of its own, "first" the first annotation of each
            worker to each task (a warning says how many others were left out), "error" accepts none.

    Raises:
        AnnotationError: with repeats="error", a worker annotated a task more than once.
        UnknownNameError: `repeats` is something else.
    """
    if repeats not in get_args(Repeats):
        raise unknown_name("value of repeats", repeats, get_args(Repeats))
    # A count of zero says that nobody gave this annotation: it is no annotation, though its task and class exist.
    used = np.arange(len(task.codes)) if count is None else np.flatnonzero(count > 0)
    answers = None if count is None else count[used]
    pair = task.codes[used].astype(np.int64) * len(worker.ids) + worker.codes[used]
    later = pd.Series(pair).duplicated().to_numpy()
    several = later if answers is None else later | (answers > 1)
    if repeats == "keep" or not several.any():
        return used, answers
    if repeats == "error":
        first = int(np.flatnonzero(several)[0])
        row, rows = int(used[first]), used[pair == pair[first]]
        raise AnnotationError(
            f"worker {worker.ids[int(worker.codes[row])]!r} annotated task {task.ids[int(task.codes[row])]!r} "
            f"more than once: {some_rows(rows, task.where)}; pass repeats='keep' to take all annotations as "
            "data, or repeats='first'"
        )
    kept = used[~later]
    total = len(used) if answers is None else int(answers.sum())
    warn(
        f"repeats='first' left out {total - len(kept)} of {total} annotations: later ones of a worker to a task that "
        "the same worker had annotated before"
    )
    return kept, None if answers is None else np.ones(len(kept))
