r"""EM accelerated where it crawls: SQUAREM (Varadhan & Roland 2008), for any story.

From a point :math:`\theta_0` and two plain steps of EM, :math:`\theta_1` and :math:`\theta_2`, follows a proposal that
goes on in their direction,

.. math:: \theta' = \theta_0 + 2 \alpha r + \alpha^2 v, \qquad
    r = \theta_1 - \theta_0, \quad v = (\theta_2 - \theta_1) - r, \quad \alpha = \|r\| / \|v\|,

their steplength S3; :math:`\alpha = 1` is :math:`\theta_2` itself. It counts where the log-posterior there is no less
than at :math:`\theta_1`, and then a plain step is taken from it; else EM goes on from :math:`\theta_2`. Each step of
this cycle of three costs one gradient, as a plain one does, and the log-posterior never falls.

The longest steplength is 1 at first, grows where it was taken and the proposal counted, and shrinks where it did not:
what converges in a few iterations is left as it is.

Probability tables are extrapolated as square roots, whose squares are probabilities again once they sum to one.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from ...models.parts.kernels import SMALLEST
from ..densities.enumerated import Parameters
from ..densities.sites import ParameterSpec

REACH = 4.0  # by which the longest steplength grows where it was of use, and shrinks where it was not
FLOOR = 0.1  # share of a probability's root that a proposal leaves: EM brings what is nearly zero back slowly
FIRST, SECOND, PROPOSED = 0, 1, 2  # stages of the cycle


class SquaremState(NamedTuple):
    """The memory of a cycle, beside the parameters."""

    stage: Array
    aside: Parameters  # after a first step the point where it started, after a second one the proposal
    reach: Array  # the longest steplength to take
    is_long: Array  # whether the proposal goes that far
    gain: Array  # relative change of the log-posterior by the last proposal


def init(parameters: Parameters) -> SquaremState:
    """Return the memory before the first step; the first proposal is a plain step."""
    return SquaremState(jnp.int32(FIRST), parameters, jnp.ones((), float), jnp.array(True), jnp.zeros((), float))


def update(state: SquaremState, spec: ParameterSpec, old: Parameters, new: Parameters, gain: Array) -> SquaremState:
    """Return the memory after a plain step, which a proposal that counts has too.

    Args:
        old: the parameters before the step, or the proposal.
        new: the parameters after it; not read after a proposal.
        gain: the relative change of the log-posterior by the proposal; not read after a step.
    """

    def first() -> SquaremState:
        return state._replace(stage=jnp.int32(SECOND), aside=old)

    def second() -> SquaremState:
        proposal, length = _extrapolated(spec, state.aside, old, new, state.reach)
        return SquaremState(jnp.int32(PROPOSED), proposal, state.reach, length >= state.reach, state.gain)

    def third() -> SquaremState:
        reach = jnp.where(state.is_long, state.reach * REACH, state.reach)
        return state._replace(stage=jnp.int32(FIRST), reach=reach, gain=gain)

    return jax.lax.switch(state.stage, [first, second, third])


def refused(state: SquaremState) -> SquaremState:
    """Return the memory after a proposal that does not count."""
    reach = jnp.maximum(state.reach / REACH, 1.0)
    return state._replace(stage=jnp.int32(FIRST), reach=reach, gain=jnp.zeros_like(state.gain))


def _extrapolated(
    spec: ParameterSpec, start: Parameters, middle: Parameters, end: Parameters, reach: Array
) -> tuple[Parameters, Array]:
    """Return the proposal after the steps from ``start`` by ``middle`` to ``end``, and its steplength."""
    points = [_flat(spec, point) for point in (start, middle, end)]
    step = jax.tree.map(lambda a, b, _: b - a, *points)
    turn = jax.tree.map(lambda a, b, c: (c - b) - (b - a), *points)
    length = jnp.clip(jnp.sqrt(_square(step) / jnp.maximum(_square(turn), SMALLEST)), 1.0, reach)
    there = jax.tree.map(lambda a, r, v: a + 2 * length * r + length**2 * v, points[0], step, turn)
    there |= {name: jnp.maximum(there[name], FLOOR * points[2][name]) for name in spec.tables}
    return end | _back(spec, there), length


def _flat(spec: ParameterSpec, parameters: Parameters) -> Parameters:
    """Return the parameters in the space of the extrapolation: square roots of probabilities, and reals."""
    return {name: jnp.sqrt(parameters[name]) for name in spec.tables} | spec.to_reals(parameters)


def _back(spec: ParameterSpec, flat: Parameters) -> Parameters:
    tables = {name: jnp.maximum(flat[name] ** 2, 2 * SMALLEST) for name in spec.tables}
    tables = {name: table / table.sum(-1, keepdims=True) for name, table in tables.items()}
    return tables | spec.from_reals({name: flat[name] for name in spec.bijections})


def _square(values: Parameters) -> Array:
    return sum(((value**2).sum() for value in values.values()), start=jnp.zeros(()))
