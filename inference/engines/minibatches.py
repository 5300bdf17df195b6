"""Minibatches of whole tasks, all of one size, so that a compiled step takes any of them."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...data import Annotations, Ids


@dataclass(frozen=True)
class Batches:
    """Where each task's rows begin, and how many rows ``n_tasks`` tasks have at the most."""

    first: Array  # (N,) first row of each task
    rows: Array  # (N,) number of rows
    n_tasks: int
    capacity: int


jax.tree_util.register_dataclass(Batches, data_fields=["first", "rows"], meta_fields=["n_tasks", "capacity"])


def plan(annotations: Annotations, batch_size: int) -> Batches:
    """Prepare batches of ``batch_size`` tasks; their capacity holds the tasks with the most annotations."""
    rows = np.bincount(annotations.task, minlength=annotations.n_tasks)
    capacity = int(np.sort(rows)[-batch_size:].sum())
    first = np.concatenate([[0], np.cumsum(rows)[:-1]])
    return Batches(jnp.asarray(first), jnp.asarray(rows), batch_size, capacity)


def epoch(n_tasks: int, batch_size: int, key: Array) -> tuple[Array, Array]:
    """Return all tasks in a random order, cut into batches of one size.

    Returns:
        positions of the tasks in each batch, ascending, ``(B, batch_size)``, and their weights: 1, or 0 for tasks that
        only fill up the last batch, which come again.
    """
    n_batches = -(-n_tasks // batch_size)
    order = jax.random.permutation(key, n_tasks)
    position = jnp.arange(n_batches * batch_size)
    chosen = order[position % n_tasks].reshape(n_batches, batch_size)
    weight = (position < n_tasks).astype(float).reshape(n_batches, batch_size)
    by_task = jnp.argsort(chosen, axis=-1)
    return jnp.take_along_axis(chosen, by_task, axis=-1), jnp.take_along_axis(weight, by_task, axis=-1)


def draw(annotations: Annotations, batches: Batches, key: Array) -> tuple[Annotations, Array]:
    """Return tasks drawn at random without replacement, as annotations that stand for the population, and which."""
    chosen = jnp.sort(jax.random.choice(key, annotations.n_tasks, (batches.n_tasks,), replace=False))
    return take(annotations, batches, chosen).replace(population=annotations.n_tasks), chosen


def take(annotations: Annotations, batches: Batches, chosen: Array) -> Annotations:
    """Return the tasks ``chosen (n_tasks,)``, by position, with all their annotations.

    Rows beyond those of the chosen tasks fill up the capacity with a count of zero.
    """
    annotations = jax.tree.map(jnp.asarray, annotations)
    ends = jnp.cumsum(batches.rows[chosen])
    position = jnp.arange(batches.capacity)
    slot = jnp.minimum(jnp.searchsorted(ends, position, side="right"), batches.n_tasks - 1)
    real = position < ends[-1]
    row = jnp.where(real, batches.first[chosen[slot]] + position - (ends - batches.rows[chosen])[slot], 0)
    weight = 1.0 if annotations.count is None else annotations.count[row]
    by_task = {
        name: value[chosen]
        for name in ("gold", "features", "evidence", "prior", "model_scores")
        if (value := getattr(annotations, name)) is not None
    }
    return annotations.replace(
        task=slot,
        worker=None if annotations.worker is None else annotations.worker[row],
        label=annotations.label[row],
        count=jnp.where(real, weight, 0.0),
        tasks=Ids.range(batches.n_tasks),
        **by_task,
    )
