"""Nested dictionaries {task: {worker: label}}, in memory and as JSON files (the format of peerannot)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .build import Rows
from .columns import Column, encode
from .errors import AnnotationError, check_name, warn
from .ids import Ids
from .kinds import encode_labels
from .text import as_numbers

FAR_MORE = 5  # times as many inner keys as outer ones, from which on these may be the workers


def nested_rows(
    by_outer: Mapping[Any, Mapping[Any, Any]], classes: Iterable[Any] | None = None, outer: str | None = None
) -> Rows:
    """Return the annotations in {task: {worker: label}}; a task with an empty dictionary has no annotation.

    Args:
        by_outer: the dictionary.
        classes: those that were given; None for those that are used.
        outer: whether the outer keys are each a "task" or a "worker"; None for tasks, with a warning where the inner
            keys are so many more that they may be the tasks.

    Raises:
        AnnotationError: the dictionary is empty or not nested, or a label is missing or cannot be hashed.
        UnknownNameError: `outer` is another word.
    """
    if outer is not None:
        check_name("value of outer", outer, ("task", "worker"))
    one, other = ("worker", "task") if outer == "worker" else ("task", "worker")
    if not isinstance(by_outer, Mapping):
        raise AnnotationError(f"expected a dictionary {{{one}: {{{other}: label}}}}, got a {type(by_outer).__name__}")
    codes: list[int] = []
    inner: list[Any] = []
    labels: list[Any] = []
    for position, (name, by_inner) in enumerate(by_outer.items()):
        if not isinstance(by_inner, Mapping):
            raise AnnotationError(
                f"{one} {name!r}: expected a dictionary {{{other}: label}}, got {by_inner!r} "
                f"({type(by_inner).__name__})"
            )
        codes += [position] * len(by_inner)
        inner += by_inner.keys()
        labels += by_inner.values()
    ids = Ids(by_outer.keys(), what=f"{one}s")
    if not labels:
        raise AnnotationError(f"the dictionary has {len(ids)} {one}s and no annotation; expected at least one")

    def where(row: int) -> str:
        places = {one: ids[codes[row]], other: inner[row]}
        return f"task {places['task']!r}, worker {places['worker']!r}"

    columns = {
        one: Column(one, np.array(codes, np.int32), ids, where),
        other: encode(pd.Series(inner, dtype=object), other, where),
    }
    n_inner = len(columns[other].ids)
    if outer is None and 1 < len(ids) <= n_inner / FAR_MORE:
        warn(
            f"{len(ids):,} dictionaries of {n_inner:,} keys are read as {len(ids):,} tasks and {n_inner:,} workers; "
            "where they are {worker: {task: label}} give outer='worker', and else outer='task'"
        )
    return Rows(
        task=columns["task"],
        worker=columns["worker"],
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
