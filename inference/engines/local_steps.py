r"""Steps of the parameters that each task has of its own, such as its difficulty, in minibatches of tasks.

A batch has all that is known of its tasks' own parameters but the shared ones, so that these climb

.. math:: \sum_{i \in B} \Big( \sum_k q_{ik} \log p(z_i = k, y_i \mid \theta_i, \theta) + \log p(\theta_i) \Big)

for a few steps before the shared ones take theirs, with :math:`q` the label posterior: Adam's steps, whose moments each
task keeps until it comes again, and exact M-steps of rows of probabilities.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array

from ...data import Annotations
from ..densities.enumerated import Parameters, density
from ..densities.model import Model
from ..densities.sites import ParameterSpec
from .m_step import tables_mode

STEPS = 5  # each time that a task comes
OWN = "task"  # dimension of the parameters that each task has of its own


class Locals(NamedTuple):
    """The parameters by task: of all tasks, or of those of a batch."""

    tables: Parameters
    reals: Parameters  # unconstrained
    moments: optax.ScaleByAdamState  # of the reals

    @property
    def is_empty(self) -> bool:
        """True where tasks have nothing of their own."""
        return not (self.tables or self.reals)

    def values(self, spec: ParameterSpec) -> Parameters:
        """The parameters in their own space."""
        return self.tables | spec.from_reals(self.reals)


def shared(spec: ParameterSpec, parameters: Parameters) -> Parameters:
    """The parameters that tasks share."""
    return {name: value for name, value in parameters.items() if OWN not in spec.dims.get(name, ())}


def by_task(spec: ParameterSpec, parameters: Parameters) -> Locals:
    """The parameters that each task has of its own, before the first step."""
    own = {name for name, dims in spec.dims.items() if OWN in dims}
    reals = {name: value for name, value in spec.to_reals(parameters).items() if name in own}
    tables = {name: parameters[name] for name in spec.tables if name in own}
    return Locals(tables, reals, optax.scale_by_adam().init(reals))


def of_tasks(everyone: Locals, spec: ParameterSpec, chosen: Array) -> Locals:
    """The parameters of the tasks ``chosen (n,)``, by position."""

    def some(values: Parameters) -> Parameters:
        return {name: jnp.take(value, chosen, _axis(spec, name)) for name, value in values.items()}

    tables, reals, moments = everyone
    return Locals(some(tables), some(reals), moments._replace(mu=some(moments.mu), nu=some(moments.nu)))


def put_back(everyone: Locals, here: Locals, spec: ParameterSpec, chosen: Array, weight: Array) -> Locals:
    """The parameters of all tasks, with those of the tasks ``chosen (n,)`` whose ``weight (n,)`` is not zero from here.

    Args:
        everyone: before.
        here: of the tasks chosen.
        chosen: positions, each once.
        weight: of each of them.
    """

    def within(values: Parameters, of_batch: Parameters) -> Parameters:
        return {name: put(value, of_batch[name], _axis(spec, name)) for name, value in values.items()}

    def put(values: Array, of_batch: Array, axis: int) -> Array:
        old, new = jnp.moveaxis(values, axis, 0), jnp.moveaxis(of_batch, axis, 0)
        counts = (weight > 0).reshape(-1, *[1] * (old.ndim - 1))
        return jnp.moveaxis(old.at[chosen].set(jnp.where(counts, new, old[chosen])), 0, axis)

    moments = here.moments._replace(
        mu=within(everyone.moments.mu, here.moments.mu), nu=within(everyone.moments.nu, here.moments.nu)
    )
    return Locals(within(everyone.tables, here.tables), within(everyone.reals, here.reals), moments)


def climb(
    model: Model,
    annotations: Annotations,
    spec: ParameterSpec,
    here: Locals,
    rest: Parameters,
    posterior: Array,
    weight: Array,
    rate: Array | float,
) -> Locals:
    """Take a few steps uphill with the tasks' own parameters.

    Args:
        annotations: of the batch, which stands for the population.
        here: where the steps start.
        rest: all other parameters, in their own space.
        posterior: of the tasks' classes, ``(n, K)``.
        weight: of the tasks, ``(n,)``.
        rate: of Adam.
    """

    def gain(tables: Parameters, reals: Parameters) -> Array:
        at = density(model, rest | tables | spec.from_reals(reals), annotations)
        expected = jnp.where(posterior > 0, posterior * at.log_joint, 0.0).sum(-1)
        return (weight * expected).sum() + at.log_prior_in_log_odds / at.scale

    def step(_: Array, here: Locals) -> Locals:
        of_tables, slope = jax.grad(gain, argnums=(0, 1))(here.tables, here.reals)
        tables = tables_mode({name: table * of_tables[name] for name, table in here.tables.items()}, here.tables)
        uphill, moments = optax.scale_by_adam().update(slope, here.moments)
        reals = {name: real + rate * uphill[name] for name, real in here.reals.items()}
        return Locals(tables, reals, moments)

    return jax.lax.fori_loop(0, STEPS, step, here)


def _axis(spec: ParameterSpec, name: str) -> int:
    return spec.dims[name].index(OWN)
