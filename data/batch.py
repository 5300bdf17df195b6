"""Batches: some of the tasks of annotations that are larger, all of one size."""

from collections.abc import Mapping
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
    arrays: Mapping[str, np.ndarray],
    *,
    size: tuple[int, int],
    first: int,
    workers: Ids,
    classes: Ids,
    kind: Kind,
) -> Batch:
    """Return rows that are sorted by task as a batch, padded to a size.

    Args:
        arrays: by name ``rows``, how many rows each task has, ``(n,)``; and of each row ``label``, where workers are
            named ``worker``, and where not all rows count once ``count``.
        size: rows and tasks of the batch, of which the last task is a padded one.
        first: the position of the first task among all tasks.
        workers: of all annotations.
        classes: of all annotations.
        kind: of the labels.
    """
    n_rows, n_tasks = size
    rows, label, once = arrays["rows"], arrays["label"], "count" not in arrays
    task = np.repeat(np.arange(len(rows), dtype=np.int32), rows)
    weight = np.ones(len(label), np.float32) if once else arrays["count"].astype(np.float32)
    return Batch(
        task=longer(task, n_rows, n_tasks - 1),
        worker=longer(arrays["worker"].astype(np.int32), n_rows, 0) if "worker" in arrays else None,
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
        once=once,
        first=np.int32(first),
    )
