"""Probabilities that models give the classes, as the annotations carry them for :mod:`.model_probabilities`."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import numpy as np
import pandas as pd

from ...data import AnnotationError, Annotations, Ids
from ...data.columns import positions_of

Table = pd.DataFrame | np.ndarray
Probabilities = Table | Mapping[str, Table] | None

ALONE = "model"  # the name of a model that is given without one
REFERENCE = 4096  # tasks at the most over which a model's shares of the classes are taken
MISSING = ", or NaN alone where they are missing"
LEAST = (1e-30, 1e-3)  # what takes the place of a zero lies between these


def with_probabilities(annotations: Annotations, probabilities: Probabilities = None) -> Annotations:
    r"""The annotations with the centred log-probabilities :math:`\log p_k - \frac{1}{K} \sum_l \log p_l` of models.

    A probability of zero is half the smallest positive one that the model gives, and 0.001 at the most: the zeros of
    probabilities that were rounded to two digits count as 0.005, and those of a model that names one class as 0.001.

    Args:
        annotations: the data, with the models' earlier probabilities or without.
        probabilities: by name of the model a table of the tasks it has seen; or one table, of the model ``"model"``. A
            table is a frame with tasks as index (or in the column ``task``) and classes as columns, or an array
            ``(N, K)`` in the order of the annotations. Rows sum to one, a row of NaN is missing.

    Returns:
        the same where nothing is given. What is given of a model and a task that were known takes the old one's place.

    Raises:
        AnnotationError: no table, an unknown task or class, a class or all tasks missing, a task given twice, or a row
            that is no probabilities.
    """
    if probabilities is None:
        return annotations
    named = probabilities if isinstance(probabilities, Mapping) else {ALONE: probabilities}
    if not named:
        raise AnnotationError("probabilities={} names no model; give {'name': frame}, or leave it out")
    known = {name: np.asarray(annotations.model_scores)[:, place] for place, name in enumerate(annotations.models)}
    for name, table in named.items():
        new = _scores(str(name), table, annotations)
        old = known.get(str(name))
        known[str(name)] = new if old is None else np.where(np.isnan(new), old, new)
    scores = np.stack(list(known.values()), axis=1)
    return annotations.replace(model_scores=scores, model_reference=_reference(scores), models=Ids(list(known)))


def _scores(name: str, table: Any, annotations: Annotations) -> np.ndarray:
    """A model's centred log-probabilities of all tasks, ``(N, K)``, NaN where it has none."""
    option = f"probabilities of {name!r}"
    values = values_of(option, table, annotations)
    is_missing = np.isnan(values).all(-1)
    if is_missing.all():
        raise AnnotationError(f"{option} are missing for all tasks; give a row of probabilities for each task seen")
    rows = np.where(is_missing[:, None], 1 / annotations.n_classes, values)
    refuse_others(rows, lambda row: f"{option}: those of task {annotations.tasks[row]!r}", annotations.classes, MISSING)
    positive = values[values > 0]
    logs = np.log(np.where(rows > 0, rows, np.clip(positive.min() / 2, *LEAST)))
    logs = np.maximum(logs, np.log(LEAST[0]))
    return np.where(is_missing[:, None], np.nan, logs - logs.mean(-1, keepdims=True)).astype(np.float32)


def values_of(
    option: str, table: Any, annotations: Annotations, *, empty: tuple[float, float] = (np.nan, np.nan)
) -> np.ndarray:
    """The numbers of a table in the order of the annotations, ``(N, K)``.

    Args:
        option: what it is, for messages.
        table: a frame with tasks as index, or as the column ``task``, and classes as columns; or an array ``(N, K)``.
        empty: the numbers of a task that a frame does not have, and of a class; NaN where all classes are needed.

    Raises:
        AnnotationError: no table, an unknown task or class, another shape, a task with two rows, a class that is
            missing and needed, or a cell that is no number.
    """
    shape = (annotations.n_tasks, annotations.n_classes)
    if isinstance(table, np.ndarray | jax.Array):
        if np.shape(table) != shape:
            raise AnnotationError(f"{option}: the shape is {np.shape(table)}; (tasks, classes) = {shape} is needed")
        return _numbers(option, np.asarray(table))
    if not isinstance(table, pd.DataFrame):
        raise AnnotationError(
            f"{option}: got a {type(table).__name__}; a frame of pandas with tasks as index and classes as columns, or "
            f"an array (tasks, classes) = {shape}, is needed"
        )
    if "task" in table.columns and "task" not in annotations.classes:
        table = table.set_index("task")
    among_them = "; take a task that nobody annotated among them by tasks=[…] when you make the annotations"
    tasks = positions_of(table.index, annotations.tasks, f"{option}: the task", among_them)
    if (twice := table.index.duplicated()).any():
        raise AnnotationError(f"{option}: the task {table.index[twice].tolist()[0]!r} has two rows; one is needed")
    classes = annotations.classes.index_of(list(table.columns))
    if (classes < 0).any():
        unknown = table.columns.tolist()[int(np.argmax(classes < 0))]
        raise AnnotationError(
            f"{option}: the column {unknown!r} is no class; the classes are {list(annotations.classes)}"
        )
    missing = [name for place, name in enumerate(annotations.classes) if place not in set(classes.tolist())]
    if missing and np.isnan(empty[1]):
        raise AnnotationError(f"{option} lack a column for the class {missing[0]!r}; give 0 where it is never likely")
    values = np.full(shape, empty[0])
    values[tasks] = empty[1]
    values[np.ix_(tasks, classes)] = _numbers(option, table.to_numpy())
    return values


def refuse_others(rows: np.ndarray, place: Callable[[int], str], classes: Iterable[Any], more: str = "") -> None:
    """Refuse rows that are no probabilities of the classes.

    Args:
        rows: ``(n, K)``.
        place: says where a row is, for the message.
        more: what else would be accepted.

    Raises:
        AnnotationError: with the first such row.
    """
    bad = ~(np.isfinite(rows).all(-1) & (rows >= 0).all(-1) & (np.abs(rows.sum(-1) - 1) < 1e-3))
    if bad.any():
        row = int(np.argmax(bad))
        raise AnnotationError(
            f"{place(row)}: {rows[row].tolist()} are no probabilities; numbers from 0 that sum to 1 over the classes "
            f"{list(classes)} are needed{more}"
        )


def _numbers(option: str, values: np.ndarray) -> np.ndarray:
    try:
        return values.astype(float)
    except (TypeError, ValueError) as error:
        raise AnnotationError(f"{option} are not all numbers: {error}") from error


def _reference(scores: np.ndarray) -> np.ndarray:
    """Of each model the scores of all its tasks, or of :data:`REFERENCE` evenly among them: ``(M, R, K)``."""
    own = [of_model[~np.isnan(of_model[:, 0])] for of_model in scores.swapaxes(0, 1)]
    chosen = [
        rows[np.linspace(0, len(rows) - 1, REFERENCE).astype(int)] if len(rows) > REFERENCE else rows for rows in own
    ]
    found = np.full((len(own), max(map(len, chosen)), scores.shape[-1]), np.nan, np.float32)
    for place, rows in enumerate(chosen):
        found[place, : len(rows)] = rows
    return found
