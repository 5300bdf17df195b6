"""Answers to a form: tables with a row for each worker, and a column for each task."""

from collections.abc import Hashable
from dataclasses import dataclass

import pandas as pd

from ..column_names import NAMES, missing_column, plain, stem
from ..errors import AnnotationError
from ..wide import MOST_VALUES, hashed, shares, tells_rows

STAMPS = ("timestamp", "zeitstempel", "horodateur", "marcatemporal", "starttime", "completiontime", "submittedat")
"""Names that forms give to the column that says when a row was filled in."""

PEOPLE = ("email", "emailaddress", "respondent", "respondentid", "name")
"""Names that forms give to who filled in a row, beside the names of workers."""


@dataclass(frozen=True)
class Form:
    """A table with a row for each worker, and a column for each task."""

    worker: str
    tasks: tuple[str, ...]
    others: tuple[str, ...]  # columns that are neither


def form_roles(table: pd.DataFrame, what: str, *, worker: str | None, asked: bool) -> Form | None:
    """Return the columns of a table with a row for each worker, or None where it is none.

    It is taken for one where no column is named as tasks or labels are, and one says when the row was filled in, or is
    named as workers are with another value in each row. The columns of tasks share their values; of two scales that
    share none, the one of more columns is taken.

    Args:
        table: the table.
        what: the table, for messages.
        worker: the column of workers; None for the one that is known by its name.
        asked: whether it was said that the columns are tasks.

    Raises:
        AnnotationError: there is no such column, none tells the workers, or less than two are of tasks.
    """
    names = [str(name) for name in table.columns]
    if worker is not None and worker not in names:
        if not asked:
            return None  # what looks for the columns of a row for each annotation says what is wrong
        raise missing_column(worker, "worker", names, what)
    stamps = [name for name in names if plain(name) in STAMPS]
    people = [name for name in names if stem(name) in NAMES["worker"] or plain(name) in PEOPLE]
    people.sort(key=lambda name: stem(name) not in NAMES["worker"])
    if not asked:
        of_rows = any(stem(name) in (*NAMES["task"], *NAMES["label"]) and plain(name) != "id" for name in names)
        named = [worker] if worker else [name for name in people if stem(name) in NAMES["worker"]]
        if of_rows or not (stamps or named) or not all(tells_rows(table[name]) for name in named[:1]):
            return None
    alone, of_time = ([name for name in of if tells_rows(table[name])] for of in (people, stamps))
    mostly = [name for name in people if 2 * table[name].nunique() > len(table)]  # who answers again is one worker
    repeated = [name for name in people if asked and table[name].notna().all()]
    worker = worker or next(iter(alone + mostly + of_time + repeated), None)
    free = [name for name in names if name not in (worker, *people, *stamps) and plain(name) != "id"]
    tasks = _of_one_scale(table[free])
    if len(tasks) < 2 or worker is None:
        if not asked:
            return None
        lacking = "no column of workers; name it by worker='COL'" if worker is None else "no two columns of few labels"
        raise AnnotationError(f"columns='tasks': {what} has {lacking}")
    return Form(worker, tasks, tuple(name for name in names if name != worker and name not in tasks))


def _of_one_scale(table: pd.DataFrame) -> tuple[str, ...]:
    """The columns of labels: the most that share their values with each other."""
    found: dict[str, set[Hashable]] = {str(name): set(map(hashed, column.dropna())) for name, column in table.items()}
    found = {name: values for name, values in found.items() if 0 < len(values) <= MOST_VALUES}
    alike = {name: values for name, values in found.items() if shares(values, name, found)}
    scales: list[tuple[set[Hashable], list[str]]] = []
    for name, values in alike.items():
        joined = [scale for scale in scales if scale[0] & values]
        scales = [scale for scale in scales if scale not in joined]
        scales.append((values.union(*(one for one, _ in joined)), [each for _, of in joined for each in of] + [name]))
    largest = max(scales, key=lambda scale: len(scale[1]), default=(set(), []))[1]
    return tuple(name for name in found if name in largest)


def answers_of(table: pd.DataFrame, form: Form, labels: list[pd.Series]) -> tuple[pd.DataFrame, list[str]]:
    """Return a row for each annotation, columns task, worker and label, and where each is.

    Args:
        table: the form's.
        form: its columns.
        labels: those of its tasks, in their order.
    """
    rows = [
        (task, worker, label, f"row {row}, column {task!r}")
        for task, column in zip(form.tasks, labels, strict=True)
        for row, (worker, label) in enumerate(zip(table[form.worker], column, strict=True))
        if not pd.isna(label)
    ]
    frame = pd.DataFrame([row[:3] for row in rows], columns=["task", "worker", "label"], dtype=object)
    return frame, [row[3] for row in rows]
