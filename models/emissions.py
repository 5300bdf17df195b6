"""Emissions: how a worker's answer follows from the true class, one small object each."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from ..data import Annotations

SMALLEST = 1e-30  # probabilities are kept above it, so that logarithms and their gradients stay finite in float32


class Emission:
    """What a worker answers to a task under each true class. Subclasses are pytrees of arrays.

    A subclass gives :meth:`probs`; :meth:`log_prob` and :meth:`probs_given` have a cheaper form in most.
    """

    def probs(self, worker: Array | None, task: Array) -> Array:
        r"""All of :math:`P(y = l \mid z = k)` for each (worker, task) pair: ``(A, K, L)``."""
        raise NotImplementedError(f"{type(self).__name__} has no probs(worker, task)")

    def log_prob(self, worker: Array | None, task: Array, answer: Array) -> Array:
        r"""Log-probability of each observed answer under each true class: ``(A, K)``."""
        probs = jnp.take_along_axis(self.probs(worker, task), answer[:, None, None], axis=-1)[..., 0]
        return jnp.log(jnp.maximum(probs, SMALLEST))

    def probs_given(self, worker: Array | None, task: Array, truth: Array) -> Array:
        """Probabilities of all answers under one true class a row, ``truth (A,)``: ``(A, L)``."""
        return jnp.take_along_axis(self.probs(worker, task), truth[:, None, None], axis=1)[:, 0]

    def sample(self, key: Array, worker: Array | None, task: Array, truth: Array) -> Array:
        """One answer a row, ``(A,)``, of ``worker`` to ``task`` whose true class is ``truth (A,)``."""
        return jax.random.categorical(key, jnp.log(jnp.maximum(self.probs_given(worker, task, truth), SMALLEST)))

    def tables(self, annotations: Annotations) -> Array:
        """Each worker's confusion table averaged over the tasks that the worker answered: ``(J, K, L)``."""
        worker = jnp.asarray(annotations.worker)
        probs = self.probs(worker, annotations.task)
        weight = jnp.ones(len(annotations.task)) if annotations.count is None else annotations.count
        sums = jax.ops.segment_sum(probs * weight[:, None, None], worker, annotations.n_workers)
        total = jax.ops.segment_sum(weight, worker, annotations.n_workers)
        return sums / jnp.maximum(total, 1.0)[:, None, None]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Table(Emission):
    r"""Every worker has a confusion table: :math:`P(y = l \mid z = k, j) = \text{table}_j[k, l]`.

    Args:
        table: ``(J, K, L)``, rows sum to one.
    """

    table: Array

    def probs(self, worker: Array | None, task: Array) -> Array:
        """The workers' tables: ``(A, K, L)``."""
        return jnp.asarray(self.table)[worker]

    def log_prob(self, worker: Array | None, task: Array, answer: Array) -> Array:
        """Columns of the tables, with the K numbers of one (worker, answer) pair side by side: ``(A, K)``."""
        n_workers, n_classes, n_answers = self.table.shape
        log_table = jnp.log(jnp.maximum(self.table, SMALLEST))
        columns = log_table.swapaxes(-1, -2).reshape(n_workers * n_answers, n_classes)
        return _materialised(columns)[jnp.asarray(worker) * n_answers + answer]

    def probs_given(self, worker: Array | None, task: Array, truth: Array) -> Array:
        """Rows of the tables: ``(A, L)``."""
        return jnp.asarray(self.table)[worker, truth]

    def tables(self, annotations: Annotations) -> Array:
        """The tables themselves: ``(J, K, L)``."""
        return self.table


def _materialised(x: Array) -> Array:
    """``x`` itself, computed once: without the branch XLA takes the logarithm again for each gathered row."""
    return jax.lax.cond(jnp.isnan(x[0, 0]), lambda x: x + 1, lambda x: x, x)
