"""Batches: some of the tasks of annotations that are larger, all of one size."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from .annotations import Annotations, Array, as_pytree
from .arrays import longer
from .ids import Ids
from .kinds import Kind
from .padding import PaddedAnnotations


@dataclass(frozen=True, eq=False, repr=False)
class Batch(PaddedAnnotations):
    """Some of the tasks of annotations that are larger, with all of their rows, padded to the size of all batches.

    Workers and classes are those of all annotations.

    Attributes:
        first: () int32, the position of the first task among all tasks.
    """

    first: Array = 0


as_pytree(Batch, "once")


def task_numbers(annotations: Annotations) -> Array:
    """Return the position of each task among all tasks, ``(N,)``, also where these are a batch of them."""
    first = annotations.first if isinstance(annotations, Batch) else 0
    return jnp.arange(annotations.n_tasks) + first


def padded_batch(
    rows: np.ndarray,
    worker: np.ndarray | None,
    label: np.ndarray,
    count: np.ndarray | None,
    *,
    size: tuple[int, int],
    first: int,
    workers: Ids,
    classes: Ids,
    kind: Kind,
) -> Batch:
    """Return rows that are sorted by task as a batch, padded to a size.

    Args:
        rows: (n,) how many rows each task has.
        worker: of each row; None where no worker is named.
        label: of each row.
        count: of each row; None where all count once.
        size: rows and tasks of the batch, of which the last task is a padded one.
        first: the position of the first task among all tasks.
        workers: of all annotations.
        classes: of all annotations.
        kind: of the labels.
    """
    n_rows, n_tasks = size
    task = np.repeat(np.arange(len(rows), dtype=np.int32), rows)
    weight = np.ones(len(label), np.float32) if count is None else count.astype(np.float32)
    return Batch(
        task=longer(task, n_rows, n_tasks - 1),
        worker=None if worker is None else longer(worker.astype(np.int32), n_rows, 0),
        label=longer(label.astype(np.int32), n_rows, 0),
        count=longer(weight, n_rows, 0),
        gold=None,
        features=None,
        worker_features=None,
        tasks=Ids.range(n_tasks),
        workers=workers,
        classes=classes,
        kind=kind,
        n_real=np.array([len(rows), len(workers)], np.int32),
        once=count is None,
        first=np.int32(first),
    )
