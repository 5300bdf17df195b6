"""Mixtures: an emission by subtypes of a task's class, and a prior of workers near one of a few tables."""

from dataclasses import dataclass, replace
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import gammaln, logsumexp
from numpyro.distributions import Dirichlet, Distribution, constraints

from ...data import Annotations
from .emissions import Confusion, Emission
from .kernels import kind_at, numbers_by, safe_log, tempered_rows, upto


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
        return logsumexp(scores + safe_log(self.weights), axis=-1)

    def sample(self, key: Array, worker: Array | None, task: Array, truth: Array) -> Array:
        """One annotation a row, ``(A,)``; rows of one task have one subtype."""
        subtype_key, annotation_key = jax.random.split(key)
        subtype = kind_at(numbers_by(subtype_key, task, 1)[:, 0], upto(self.weights)[truth])
        rows = jnp.asarray(self.table)[worker, truth if self.table.shape[1] > 1 else 0, subtype]
        return jax.random.categorical(annotation_key, safe_log(rows))

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


class ConfusionMixture(Distribution):
    r"""Tables :math:`\theta` around one of M tables :math:`c_m`, with which of them summed out.

    .. math:: p(\theta) = \sum_m w_m \prod_k \text{Dirichlet}(\theta_k \mid 1 / L + s \, c_{mk})

    so that a component is its table, worth s annotations, and one annotation of any kind, whatever the L. A table is
    one event, ``(K, L)``.

    Args:
        weights: :math:`w`, ``(M,)``.
        tables: :math:`c`, ``(M, K, L)``, rows sum to one.
        strength: :math:`s`, how many annotations to tasks of each class the table of its component is worth.
    """

    arg_constraints: ClassVar[dict] = {
        "weights": constraints.simplex,
        "tables": constraints.independent(constraints.simplex, 1),
    }
    support = constraints.independent(constraints.simplex, 1)
    pytree_data_fields = ("weights", "tables", "strength")

    def __init__(self, weights: Array, tables: Array, strength: float, *, validate_args: bool | None = None) -> None:
        self.weights, self.tables, self.strength = weights, tables, strength
        super().__init__((), tables.shape[-2:], validate_args=validate_args)

    @property
    def base_dist(self) -> Dirichlet:
        """A Dirichlet distribution of the same mean, which tells engines that the event is a table."""
        return Dirichlet(self._concentration(jnp.tensordot(self.weights, self.tables, 1)))

    def log_prob(self, value: Array) -> Array:
        """Log-density of tables ``(..., K, L)``: ``(...)``."""
        return logsumexp(self._by_component(value), axis=-1)

    def membership(self, value: Array) -> Array:
        """Probability of each component given tables ``(..., K, L)``: ``(..., M)``."""
        return jax.nn.softmax(self._by_component(value), axis=-1)

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Array:
        """Tables ``sample_shape + (K, L)``."""
        component_key, table_key = jax.random.split(key)
        log_weights = safe_log(self.weights)
        component = jax.random.categorical(component_key, log_weights, shape=sample_shape)
        return Dirichlet(self._concentration(self.tables[component])).sample(table_key)

    def _by_component(self, value: Array) -> Array:
        concentration = self._concentration(self.tables)
        normaliser = (gammaln(concentration.sum(-1)) - gammaln(concentration).sum(-1)).sum(-1)
        log_value = safe_log(value)
        inner = jnp.einsum("...kl,mkl->...m", log_value, concentration - 1, precision="highest")
        return inner + normaliser + safe_log(self.weights)

    def _concentration(self, tables: Array) -> Array:
        """Of rows around the rows of `tables`, ``(..., K, L)``."""
        return 1 / tables.shape[-1] + self.strength * tables
