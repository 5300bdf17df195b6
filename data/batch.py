"""Batches: some of the tasks of annotations that are larger, all of one size."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp

from .annotations import Annotations, Array, as_pytree
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
