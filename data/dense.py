"""Tables with one row for each task: a dense task x worker matrix of labels, or task x class counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from .build import Rows, check_counts
from .columns import Column
from .errors import AnnotationError
from .frames import as_frame, is_frame
from .ids import Ids
from .kinds import encode_labels


def matrix_rows(
    matrix: Any,
    missing: Any,
    tasks: Iterable[Any] | None,
    workers: Iterable[Any] | None,
    classes: Iterable[Any] | None = None,
) -> Rows:
    """Return the annotations in a task x worker matrix of labels, shape (N, J), task by task.

    Args:
        matrix: labels as whole numbers, text or truth values; an array, or a table whose columns are workers
            (and whose index, in pandas, are tasks).
        missing: the value of a cell without an annotation; None stands for None and NaN.
        tasks: the identifiers of the rows of an array, or the order wanted for those of a table.
        workers: the identifiers of the columns of an array, or the order wanted for those of a table.
        classes: those that were given; None for those that are used.

    Raises:
        AnnotationError: the matrix does not have two dimensions, or has an empty cell that is not
            `missing`.
    """
    values, task_ids, worker_ids = _axes(matrix, tasks, workers, ("tasks", "workers"), "matrix")

    def cell(row: int, column: int) -> str:
        return f"cell (task {task_ids[row]!r}, worker {worker_ids[column]!r})"

    at_task, at_worker = np.nonzero(~_is_missing(values, missing))
    if not at_task.size:
        raise AnnotationError(
            f"matrix: all {values.size} cells are {missing!r}, which stands for no annotation; expected at least one"
        )
    labels = pd.Series(values[at_task, at_worker])

    def where(row: int) -> str:
        return cell(int(at_task[row]), int(at_worker[row]))

    if (blank := labels.isna().to_numpy(dtype=bool)).any():
        row = int(np.flatnonzero(blank)[0])
        raise AnnotationError(
            f"matrix, {where(row)}: {labels[row : row + 1].tolist()[0]!r} is no label, but missing={missing!r}; pass "
            "missing=None if such cells have no annotation"
        )
    return Rows(
        task=Column("task", at_task.astype(np.int32), task_ids, where),
        worker=Column("worker", at_worker.astype(np.int32), worker_ids, where),
        label=encode_labels(labels, "label", where, classes),
        ordered_tasks=True,
        ordered_workers=True,
    )


def count_rows(counts: Any, tasks: Iterable[Any] | None, classes: Iterable[Any] | None) -> tuple[Rows, Ids]:
    """Return the non-zero cells of task x class counts, shape (N, K), and the K classes.

    Args:
        counts: how many annotations of each class each task has; an array, or a table whose columns are classes
            (and whose index, in pandas, are tasks).
        tasks: the identifiers of the rows of an array, or the order wanted for those of a table.
        classes: the identifiers of the columns of an array, or the order wanted for those of a table.

    Raises:
        AnnotationError: the shape is wrong, or a cell is no whole number of annotations.
    """
    values, task_ids, class_ids = _axes(counts, tasks, classes, ("tasks", "classes"), "counts")

    def where(cell: int) -> str:
        row, column = divmod(cell, len(class_ids))
        return f"task {task_ids[row]!r}, class {class_ids[column]!r}"

    numbers = check_counts(values, "counts", where)
    at_task, at_class = np.nonzero(numbers)
    if not at_task.size:
        raise AnnotationError("counts: every cell is 0; expected at least one annotation")
    rows = Rows(
        task=Column("task", at_task.astype(np.int32), task_ids),
        worker=None,
        label=Column("class", at_class.astype(np.int32), class_ids),
        count=numbers[at_task, at_class],
        ordered_tasks=True,
    )
    return rows, class_ids


def _axes(
    table: Any, rows: Iterable[Any] | None, columns: Iterable[Any] | None, options: tuple[str, str], what: str
) -> tuple[np.ndarray, Ids, Ids]:
    """Return the cells and the identifiers of rows and columns, in the wanted order of both."""
    if isinstance(table, pd.DataFrame):
        own_rows: Ids | None = Ids(table.index, what=options[0])
        own_columns: Ids | None = Ids(table.columns, what=options[1])
        values = table.to_numpy()
    elif is_frame(table):
        frame = as_frame(table, what)
        own_rows, own_columns = None, Ids(frame.columns, what=options[1])
        # Through objects, because a column of whole numbers with gaps would turn into floats.
        values = np.array([frame[name].to_list() for name in frame.columns], dtype=object).T
    else:
        own_rows = own_columns = None
        values = np.asarray(table)
    if values.ndim != 2 or values.size == 0:
        raise AnnotationError(
            f"{what}: expected {options[0]} x {options[1]} with at least one of each, got {values.shape}"
        )
    row_ids, row_order = _axis(values.shape[0], own_rows, rows, options[0], what)
    column_ids, column_order = _axis(values.shape[1], own_columns, columns, options[1], what)
    return values[np.ix_(row_order, column_order)], row_ids, column_ids


def _axis(size: int, own: Ids | None, given: Iterable[Any] | None, option: str, what: str) -> tuple[Ids, np.ndarray]:
    """Return the identifiers along an axis and, for each, where it stands in the table."""
    if given is None:
        return (Ids.range(size) if own is None else own), np.arange(size)
    ids = Ids(given, what=option)
    if own is None:
        if len(ids) != size:
            raise AnnotationError(f"{what}: {option}= names {len(ids)} {option}, but the {what} has {size}")
        return ids, np.arange(size)
    Column(f"{what}, {option}", np.arange(size, dtype=np.int32), own).aligned(ids, option)
    position = own.index_of(ids)
    if (absent := np.flatnonzero(position < 0)).size:
        raise AnnotationError(f"{what}: {option}= names {ids[int(absent[0])]!r}, which the {what} does not have")
    return ids, position


def _is_missing(values: np.ndarray, missing: Any) -> np.ndarray:
    blank = pd.isna(values)
    if missing is None or missing != missing:
        return blank
    empty = np.zeros(values.shape, dtype=bool)
    empty[~blank] = values[~blank] == missing
    return empty
