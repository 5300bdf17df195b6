"""A common kernel and the workers' own on top of a classifier, mixed annotation by annotation: CoNAL as published."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from ...data import Annotations
from .emissions import switch_of
from .kernels import mean_by_worker
from .scored_annotations import Scored


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SwitchedKernels(Scored):
    r"""The classifier's probabilities through a common kernel or the worker's own, by a switch, and a softmax.

    .. math::
        P(y = l \mid i, j) = \text{softmax}_l\left(\sum_k f_k(x_i)
        \left(\omega_{ij} C_{kl} + (1 - \omega_{ij}) B_{jkl}\right)\right), \qquad \omega_{ij} = \sigma(u_j \cdot v_i)

    The same under each class, so that a task's annotations leave its class at its prior (Chu, Ma & Wang 2021; the
    softmax stands around the mixture in the authors' program).

    Args:
        common: :math:`C`, ``(K, K)``, real.
        individual: :math:`B`, ``(J, K, K)``, real.
        classes: :math:`f`, probabilities of the classes, ``(N, K)``.
        workers: :math:`u`, ``(J, E)``.
        tasks: :math:`v`, ``(N, E)``.
    """

    common: Array
    individual: Array
    classes: Array
    workers: Array
    tasks: Array

    def switch(self, worker: Array | None, task: Array) -> Array:
        """Weight of the common kernel in each annotation: ``(A,)``."""
        return switch_of(self.workers, self.tasks, worker, task)

    def scores(self, worker: Array | None, task: Array) -> Array:
        r""":math:`\log P(y = l \mid i, j)` of each (worker, task) pair: ``(A, K)``."""
        classes, share = jnp.asarray(self.classes), self.switch(worker, task)[:, None]
        own = jnp.einsum("ak,akl->al", classes[task], jnp.asarray(self.individual)[worker])
        return jax.nn.log_softmax(share * (classes @ self.common)[task] + (1 - share) * own)

    def confusions(self, annotations: Annotations) -> Array:
        """Return each worker's mean matrix over their annotations where the classifier is certain: ``(J, K, K)``."""
        worker = jnp.asarray(annotations.worker)
        share = self.switch(worker, annotations.task)[:, None, None]
        mixed = share * self.common + (1 - share) * jnp.asarray(self.individual)[worker]
        return mean_by_worker(jax.nn.softmax(mixed, axis=-1), annotations)
