"""The emission of annotations that share more than their task's class: a subtype of it."""

from dataclasses import dataclass, replace
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import logsumexp

from ...data import Annotations
from .emissions import Confusion, Emission
from .kernels import SMALLEST, kind_at, numbers_by, tempered_rows, upto


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Subtypes(Emission):
    r"""Each task is of one subtype of its true class, and every worker has a row of annotations for each subtype.

    .. math::
        p(y_i \mid z_i = k) = \sum_m w_{km} \prod_{a \in i} \text{table}_{j_a}[k, m, y_a]

    The annotations to a task share its subtype, so they are not independent given its class.

    Args:
        table: ``(J, K, M, L)``, rows sum to one; ``(J, 1, M, L)`` where the classes have the same subtypes, and differ
            in how often.
        weights: :math:`w`, shares of the subtypes of each class: ``(K, M)``.
    """

    table: Array
    weights: Array
    independent: ClassVar[bool] = False
    shares_errors: ClassVar[bool] = True

    def probs(self, worker: Array | None, task: Array) -> Array:
        """The workers' tables, averaged over the subtypes: ``(A, K, L)``."""
        return self._averaged()[worker]

    def log_prob(self, worker: Array | None, task: Array, annotation: Array) -> Array:
        """Of each annotation under each class and subtype: ``(A, K, M)``, or ``(A, 1, M)``."""
        n_workers, n_tables, n_subtypes, n_annotations = self.table.shape
        rows = Confusion(self.table.reshape(n_workers, -1, n_annotations)).log_prob(worker, task, annotation)
        return rows.reshape(-1, n_tables, n_subtypes)

    def by_task(self, annotations: Annotations, annotation: Array) -> Array:
        """Each task's annotations under each class and subtype, the subtypes summed out: ``(N, K)``."""
        scores = super().by_task(annotations, annotation)
        return logsumexp(scores + self._log_weights(), axis=-1)

    def sample(self, key: Array, worker: Array | None, task: Array, truth: Array) -> Array:
        """One annotation a row, ``(A,)``; rows of one task have one subtype."""
        subtype_key, annotation_key = jax.random.split(key)
        subtype = kind_at(numbers_by(subtype_key, task, 1)[:, 0], upto(self.weights)[truth])
        rows = jnp.asarray(self.table)[worker, truth if self.table.shape[1] > 1 else 0, subtype]
        return jax.random.categorical(annotation_key, jnp.log(jnp.maximum(rows, SMALLEST)))

    def tempered(self, power: Array | float) -> "Subtypes":
        """The rows of the subtypes to the power, and the same shares of the subtypes."""
        return replace(self, table=tempered_rows(self.table, power))

    def confusions(self, annotations: Annotations) -> Array:
        """The workers' tables, averaged over the subtypes: ``(J, K, L)``."""
        return self._averaged()

    def _averaged(self) -> Array:
        if self.table.shape[1] == 1:
            return jnp.einsum("km,jml->jkl", self.weights, self.table[:, 0])
        return jnp.einsum("km,jkml->jkl", self.weights, self.table)

    def _log_weights(self) -> Array:
        return jnp.log(jnp.maximum(self.weights, SMALLEST))
