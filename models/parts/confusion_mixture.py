"""A prior of workers' tables that are each near one of a few tables."""

from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import gammaln, logsumexp
from numpyro.distributions import Dirichlet, Distribution, constraints

from .kernels import SMALLEST


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
        log_weights = jnp.log(jnp.maximum(self.weights, SMALLEST))
        component = jax.random.categorical(component_key, log_weights, shape=sample_shape)
        return Dirichlet(self._concentration(self.tables[component])).sample(table_key)

    def _by_component(self, value: Array) -> Array:
        concentration = self._concentration(self.tables)
        normaliser = (gammaln(concentration.sum(-1)) - gammaln(concentration).sum(-1)).sum(-1)
        log_value = jnp.log(jnp.maximum(value, SMALLEST))
        inner = jnp.einsum("...kl,mkl->...m", log_value, concentration - 1, precision="highest")
        return inner + normaliser + jnp.log(jnp.maximum(self.weights, SMALLEST))

    def _concentration(self, tables: Array) -> Array:
        """Of rows around the rows of `tables`, ``(..., K, L)``."""
        return 1 / tables.shape[-1] + self.strength * tables
