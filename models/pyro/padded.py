"""Annotations as rectangles of tensors, which Pyro's plates want: as many places for each task as any task needs."""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ...data import Annotations
from ..parts.contract import StoryError


class Padded(NamedTuple):
    """Annotations in R places of each of the N tasks."""

    worker: Tensor  # (R, N) positions of the workers
    label: Tensor | None  # (R, N) positions of the classes; None where they are to be drawn
    is_real: Any  # (R, N) of bool, False for places that only fill up
    n_workers: int
    n_classes: int


def padded(annotations: Annotations) -> Padded:
    """The annotations by task and place; one that counts several times has as many places.

    Raises:
        StoryError: questions have classes of their own.
    """
    if annotations.kind.own is not None:
        raise StoryError(
            "the stories in plain Pyro have the same classes for all questions; give annotations.of_question(name), or "
            "take cp.torch.program(story, annotations)"
        )
    count = 1 if annotations.count is None else np.asarray(annotations.count).astype(int)
    row = np.repeat(np.arange(annotations.n_rows), count)
    task = np.asarray(annotations.task)[row]
    place = np.arange(len(row)) - np.searchsorted(task, task)  # tasks stand in their order
    shape = (int(place.max(initial=0)) + 1, annotations.n_tasks)

    def spread(values: object) -> Tensor:
        found = np.zeros(shape, dtype=np.int64)
        found[place, task] = np.asarray(values)[row]
        return torch.from_numpy(found)

    is_real = spread(np.ones(annotations.n_rows)).bool()
    worker = spread(np.zeros(annotations.n_rows) if annotations.worker is None else annotations.worker)
    label = None if annotations.label is None else spread(annotations.label)
    return Padded(worker, label, is_real, annotations.n_workers, annotations.n_classes)
