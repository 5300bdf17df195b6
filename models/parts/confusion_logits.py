"""Confusion matrices of each worker and task, as softmax of log-odds that come from features of both."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from ...data import Annotations
from .emissions import Emission
from .kernels import mean_by_worker, row_weights


class FromLogits(Emission):
    r"""Rows of confusion matrices as softmax: :math:`P(y = l \mid z = k, i, j) = \text{softmax}_l(\Lambda_{ijk})`.

    A subclass defines :meth:`logits` and :meth:`of_average_task`.
    """

    def logits(self, worker: Array | None, task: Array) -> Array:
        r""":math:`\Lambda` of each (worker, task) pair: ``(A, K, L)``."""
        raise NotImplementedError(f"{type(self).__name__} has no logits(worker, task)")

    def of_average_task(self, annotations: Annotations) -> Array:
        r""":math:`\Lambda` of each worker and a task that brings the average of the annotated ones: ``(J, K, L)``."""
        raise NotImplementedError(f"{type(self).__name__} has no of_average_task(annotations)")

    def probs(self, worker: Array | None, task: Array) -> Array:
        """The softmax over the annotations: ``(A, K, L)``."""
        return jax.nn.softmax(self.logits(worker, task), axis=-1)

    def log_prob(self, worker: Array | None, task: Array, annotation: Array) -> Array:
        """One column of its logarithm each: ``(A, K)``."""
        logits = self.logits(worker, task)
        chosen = jnp.take_along_axis(logits, annotation[:, None, None], axis=-1)[..., 0]
        return chosen - jax.nn.logsumexp(logits, axis=-1)

    def probs_given(self, worker: Array | None, task: Array, truth: Array) -> Array:
        """One row of it each: ``(A, L)``."""
        rows = jnp.take_along_axis(self.logits(worker, task), truth[:, None, None], axis=1)[:, 0]
        return jax.nn.softmax(rows, axis=-1)

    def confusions(self, annotations: Annotations) -> Array:
        """Averaged over the tasks that the worker annotated; of a worker without any, that of an average task."""
        worker = jnp.asarray(annotations.worker)
        found = mean_by_worker(self.probs(worker, annotations.task), annotations)
        given = jax.ops.segment_sum(row_weights(annotations), worker, annotations.n_workers)[:, None, None] > 0
        return jnp.where(given, found, jax.nn.softmax(self.of_average_task(annotations), axis=-1))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class AddedLogits(FromLogits):
    r"""Logits of the worker and of the task, added: :math:`\Lambda_{ij} = A_j + C_i`.

    Args:
        workers: :math:`A`, ``(J, K, L)``, real.
        tasks: :math:`C`, ``(N, K, L)``, real.
    """

    workers: Array
    tasks: Array

    def logits(self, worker: Array | None, task: Array) -> Array:
        """The sums: ``(A, K, L)``."""
        return jnp.asarray(self.workers)[worker] + jnp.asarray(self.tasks)[task]

    def of_average_task(self, annotations: Annotations) -> Array:
        """The sums with the average of what the annotated tasks bring: ``(J, K, L)``."""
        return self.workers + _mean_over_rows(self.tasks, annotations)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class NetworkLogits(FromLogits):
    r"""A hidden layer over embeddings of worker and task and over their product, element by element.

    .. math::
        \Lambda_{ij} = B + \sum_h O_h \tanh\left(r + R^\top [u_j, v_i, u_j \odot v_i]\right)_h

    Args:
        workers: :math:`u`, ``(J, E)``.
        tasks: :math:`v`, ``(N, E)``.
        weights: :math:`R`, ``(3 E, H)``.
        bias: :math:`r`, ``(H,)``.
        output: :math:`O`, ``(H, K, L)``.
        base: :math:`B`, ``(K, L)``.
    """

    workers: Array
    tasks: Array
    weights: Array
    bias: Array
    output: Array
    base: Array

    def logits(self, worker: Array | None, task: Array) -> Array:
        """The network's: ``(A, K, L)``."""
        return self._of(jnp.asarray(self.workers)[worker], jnp.asarray(self.tasks)[task])

    def of_average_task(self, annotations: Annotations) -> Array:
        """The network's of the average of the annotated tasks' embeddings: ``(J, K, L)``."""
        average = _mean_over_rows(self.tasks, annotations)
        return self._of(self.workers, jnp.broadcast_to(average, self.workers.shape))

    def _of(self, workers: Array, tasks: Array) -> Array:
        inputs = jnp.concatenate([workers, tasks, workers * tasks], axis=-1)
        return through_hidden(inputs, self.weights, self.bias, self.output, self.base)


def through_hidden(inputs: Array, weights: Array, bias: Array, output: Array, base: Array) -> Array:
    """Log-odds ``(n, K, L)`` of inputs ``(n, I)`` by a hidden layer: see :class:`NetworkLogits`."""
    return base + jnp.einsum("nh,hkl->nkl", jnp.tanh(inputs @ weights + bias), output)


def _mean_over_rows(by_task: Array, annotations: Annotations) -> Array:
    """The mean of what tasks have, ``(N, ...)``, over the annotations: ``(...)``; each row as often as it counts."""
    weight = row_weights(annotations)
    of_tasks = jax.ops.segment_sum(weight, annotations.task, annotations.n_tasks, indices_are_sorted=True)
    return jnp.tensordot(of_tasks, by_task, axes=1) / jnp.maximum(weight.sum(), 1.0)
