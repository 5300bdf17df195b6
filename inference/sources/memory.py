"""Annotations in memory as a source: all of them at once, or minibatches of whole tasks, all of one size.

Minibatches are made within compiled programs, so that one program takes any of them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...data import Annotations, Ids
from ...data.arrays import BY_TASK, changed
from ...models.parts.abstaining import with_category_counts


class Minibatch(NamedTuple):
    """Some of the tasks, or all."""

    annotations: Annotations
    chosen: Array | None = None  # (n,) positions of the tasks, ascending; None for all


@dataclass(frozen=True)
class InMemory:
    """Annotations in one block of arrays.

    Attributes:
        like: the annotations.
        first: ``(N,)`` first row of each task; None without minibatches.
        rows: ``(N,)`` number of rows of each task.
        batch_size: tasks of a minibatch; None for all.
        capacity: rows that a minibatch has at the most.
    """

    like: Annotations
    first: Array | None = None
    rows: Array | None = None
    batch_size: int | None = None
    capacity: int = 0

    @property
    def n_tasks(self) -> int:
        """N, the number of tasks."""
        return self.like.n_tasks

    @property
    def n_batches(self) -> int:
        """The number of minibatches in a pass; 1 without."""
        return 1 if self.batch_size is None else -(-self.n_tasks // self.batch_size)

    def batches(self, order: Sequence[int] | np.ndarray | None = None, *, begin: int = 0) -> Iterator[Annotations]:
        """Yield all annotations, which are one batch outside of compiled programs."""
        yield from [self.like][begin:]

    @staticmethod
    def refuses(option: str) -> str | None:
        """Return None: what is in memory takes every option."""
        return None

    def draw(self, key: Array) -> Minibatch:
        """Return tasks drawn at random without replacement, as annotations that stand for the population; or all."""
        if self.batch_size is None:
            return Minibatch(self.like)
        chosen = jnp.sort(jax.random.choice(key, self.n_tasks, (self.batch_size,), replace=False))
        return Minibatch(self.take(chosen).replace(population=self.n_tasks), chosen)

    def shuffled(self, key: Array) -> tuple[Array, Array]:
        """Return all tasks in a random order, cut into minibatches of one size.

        Returns:
            positions of the tasks in each batch, ascending, ``(B, batch_size)``, and their weights: 1, or 0 for tasks
            that only fill up the last batch, which come again.
        """
        size, n_tasks = self._size, self.n_tasks
        order = jax.random.permutation(key, n_tasks)
        position = jnp.arange(self.n_batches * size)
        chosen = order[position % n_tasks].reshape(self.n_batches, size)
        weight = (position < n_tasks).astype(float).reshape(self.n_batches, size)
        by_task = jnp.argsort(chosen, axis=-1)
        return jnp.take_along_axis(chosen, by_task, axis=-1), jnp.take_along_axis(weight, by_task, axis=-1)

    def take(self, chosen: Array) -> Annotations:
        """Return the tasks ``chosen (batch_size,)``, by position, with all their annotations.

        Rows beyond those of the chosen tasks fill up the capacity with a count of zero.
        """
        annotations, first, rows = jax.tree.map(jnp.asarray, (self.like, self.first, self.rows))
        ends = jnp.cumsum(rows[chosen])
        position = jnp.arange(self.capacity)
        slot = jnp.minimum(jnp.searchsorted(ends, position, side="right"), self._size - 1)
        real = position < ends[-1]
        row = jnp.where(real, first[chosen[slot]] + position - (ends - rows[chosen])[slot], 0)
        weight = 1.0 if annotations.count is None else annotations.count[row]
        return annotations.replace(
            task=slot,
            count=jnp.where(real, weight, 0.0),
            tasks=Ids.range(self._size),
            **changed(annotations, ("worker", "label", "mirrored"), lambda values: values[row]),
            **changed(annotations, BY_TASK, lambda values: values[chosen]),
        )

    @property
    def _size(self) -> int:
        return self.n_tasks if self.batch_size is None else self.batch_size


jax.tree_util.register_dataclass(
    InMemory, data_fields=["like", "first", "rows"], meta_fields=["batch_size", "capacity"]
)


def in_batches(annotations: Annotations, batch_size: int) -> InMemory:
    """Return a source of minibatches of ``batch_size`` tasks; they hold the tasks with the most annotations."""
    rows = np.bincount(annotations.task, minlength=annotations.n_tasks)
    capacity = int(np.sort(rows)[-batch_size:].sum())
    first = np.concatenate([[0], np.cumsum(rows)[:-1]])
    return InMemory(with_category_counts(annotations), jnp.asarray(first), jnp.asarray(rows), batch_size, capacity)
