"""Minibatches of whole tasks, all of one size, so that a compiled step takes any of them."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..data import Annotations, Ids


class Batches(NamedTuple):
    """Where each task's rows begin, and how many rows ``n_tasks`` tasks have at the most."""

    first: Array  # (N,) first row of each task
    rows: Array  # (N,) number of rows
    n_tasks: int
    capacity: int


def plan(annotations: Annotations, batch_size: int) -> Batches:
    """Prepare batches of ``batch_size`` tasks; their capacity holds the tasks with the most answers."""
    rows = np.bincount(annotations.task, minlength=annotations.n_tasks)
    capacity = int(np.sort(rows)[-batch_size:].sum())
    first = np.concatenate([[0], np.cumsum(rows)[:-1]])
    return Batches(jnp.asarray(first), jnp.asarray(rows), batch_size, capacity)


def draw(annotations: Annotations, batches: Batches, key: Array) -> Annotations:
    """Tasks drawn at random without replacement, as annotations that stand for the whole population.

    Rows beyond those of the drawn tasks fill up the capacity with a count of zero.
    """
    annotations = jax.tree.map(jnp.asarray, annotations)
    chosen = jnp.sort(jax.random.choice(key, annotations.n_tasks, (batches.n_tasks,), replace=False))
    ends = jnp.cumsum(batches.rows[chosen])
    position = jnp.arange(batches.capacity)
    slot = jnp.minimum(jnp.searchsorted(ends, position, side="right"), batches.n_tasks - 1)
    real = position < ends[-1]
    row = jnp.where(real, batches.first[chosen[slot]] + position - (ends - batches.rows[chosen])[slot], 0)
    weight = 1.0 if annotations.count is None else annotations.count[row]
    by_task = {
        name: value[chosen]
        for name in ("gold", "features", "evidence")
        if (value := getattr(annotations, name)) is not None
    }
    return annotations.replace(
        task=slot,
        worker=None if annotations.worker is None else annotations.worker[row],
        label=annotations.label[row],
        count=jnp.where(real, weight, 0.0),
        tasks=Ids.range(batches.n_tasks),
        population=annotations.n_tasks,
        **by_task,
    )
