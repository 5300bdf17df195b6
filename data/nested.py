"""Nested dictionaries {task: {worker: label}}, in memory and as JSON files (the format of peerannot)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .build import Rows
from .classes import encode_labels
from .columns import Column, encode
from .errors import AnnotationError
from .ids import Ids
from .text import as_numbers


def nested_rows(by_task: Mapping[Any, Mapping[Any, Any]], classes: Iterable[Any] | None = None) -> Rows:
    """Return the annotations in {task: {worker: label}}; a task with an empty dictionary has no annotation.

    Raises:
        AnnotationError: the dictionary is empty or not nested, or a label is missing or cannot be hashed.
    """
    if not isinstance(by_task, Mapping):
        raise AnnotationError(f"expected a dictionary {{task: {{worker: label}}}}, got a {type(by_task).__name__}")
    tasks: list[int] = []
    workers: list[Any] = []
    labels: list[Any] = []
    for position, (task, by_worker) in enumerate(by_task.items()):
        if not isinstance(by_worker, Mapping):
            raise AnnotationError(
                f"task {task!r}: expected a dictionary {{worker: label}}, got {by_worker!r} "
                f"({type(by_worker).__name__})"
            )
        tasks += [position] * len(by_worker)
        workers += by_worker.keys()
        labels += by_worker.values()
    ids = Ids(by_task.keys(), what="tasks")
    if not labels:
        raise AnnotationError(f"the dictionary has {len(ids)} tasks and no annotation; expected at least one")

    def where(row: int) -> str:
        return f"task {ids[tasks[row]]!r}, worker {workers[row]!r}"

    return Rows(
        task=Column("task", np.array(tasks, np.int32), ids, where),
        worker=encode(pd.Series(workers, dtype=object), "worker", where),
        label=encode_labels(pd.Series(labels, dtype=object), "label", where, classes),
    )


def read_nested(path: str | Path) -> dict[Any, dict[Any, Any]]:
    """Read {task: {worker: label}} from a JSON file.

    The keys of JSON are text. As in CSV files, the tasks become whole numbers where all of them are written as one
    ("7", not "007"), and so do the workers; labels keep the type that the file gives them.

    Raises:
        AnnotationError: the file is empty or no JSON, is not nested, or names a task or worker of a task
            twice.
    """
    path = Path(path)
    text = path.read_bytes()
    if not text.strip():
        raise AnnotationError(f"{path}: the file is empty; expected {{task: {{worker: label}}}}")
    try:
        by_task = json.loads(text, object_pairs_hook=lambda pairs: _without_repeats(pairs, path))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise AnnotationError(f"{path} is no JSON file: {error}") from None
    if not isinstance(by_task, dict) or not all(isinstance(value, dict) for value in by_task.values()):
        raise AnnotationError(
            f"{path}: expected a dictionary {{task: {{worker: label}}}} with a dictionary for each task"
        )
    tasks = as_numbers(by_task)
    workers = as_numbers(dict.fromkeys(worker for by_worker in by_task.values() for worker in by_worker))
    return {tasks[task]: {workers[w]: label for w, label in by_task[task].items()} for task in by_task}


def _without_repeats(pairs: list[tuple[str, Any]], path: Path) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise AnnotationError(f"{path}: the key {twice!r} stands twice in one dictionary; keep one, or rename it")
    return found
