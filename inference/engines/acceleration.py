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

from ...models.parts.emissions import SMALLEST
from ..densities.enumerated import Parameters
from ..densities.sites import Anatomy

REACH = 4.0  # by which the longest steplength grows where it was of use, and shrinks where it was not
FLOOR = 0.1  # share of a probability's root that a proposal leaves: EM brings what is nearly zero back slowly
FIRST, SECOND, PROPOSED = 0, 1, 2  # what the next step starts from, in the cycle


class Trail(NamedTuple):
    """What a cycle remembers besides where EM stands.

    After a first step ``aside`` is where it started; after a second one it is the proposal.
    """

    stage: Array
    aside: Parameters
    reach: Array  # the longest steplength to take
    is_long: Array  # whether the proposal goes that far
    gain: Array  # relative change of the log-posterior by the last proposal


def set_out(parameters: Parameters) -> Trail:
    """Return the memory at the start, which knows of no step; the first proposal is a plain step."""
    return Trail(jnp.int32(FIRST), parameters, jnp.ones((), float), jnp.array(True), jnp.zeros((), float))


def place(trail: Trail, parameters: Parameters) -> Parameters:
    """Return where the next step starts: from the proposal, or from where EM stands."""
    return _either(trail.stage == PROPOSED, trail.aside, parameters)


def accepts(trail: Trail, log_posterior: Array, known: Array) -> Array:
    """Whether a step counts: from a proposal only where the log-posterior is not below the one ``known`` before."""
    return (trail.stage != PROPOSED) | (log_posterior >= known)


def walked(trail: Trail, parts: Anatomy, old: Parameters, new: Parameters, gain: Array, *, accepted: Array) -> Trail:
    """Return the memory after a step.

    Args:
        trail: the memory before.
        parts: of the story.
        old: where a plain step started; not looked at after a proposal.
        new: where it led to.
        gain: the relative change of the log-posterior by the step or proposal, 0 where it does not count.
        accepted: whether a proposal counts.
    """

    def first() -> Trail:
        return trail._replace(stage=jnp.int32(SECOND), aside=old)

    def second() -> Trail:
        proposal, length = _extrapolated(parts, trail.aside, old, new, trail.reach)
        return Trail(jnp.int32(PROPOSED), proposal, trail.reach, length >= trail.reach, trail.gain)

    def third() -> Trail:
        longer = jnp.where(trail.is_long, trail.reach * REACH, trail.reach)
        reach = jnp.where(accepted, longer, jnp.maximum(trail.reach / REACH, 1.0))
        return trail._replace(stage=jnp.int32(FIRST), reach=reach, gain=gain)

    return jax.lax.switch(trail.stage, [first, second, third])


def _extrapolated(
    parts: Anatomy, start: Parameters, middle: Parameters, end: Parameters, reach: Array
) -> tuple[Parameters, Array]:
    """Return the proposal after the steps from ``start`` by ``middle`` to ``end``, and its steplength."""
    points = [_flat(parts, point) for point in (start, middle, end)]
    step = jax.tree.map(lambda a, b, _: b - a, *points)
    turn = jax.tree.map(lambda a, b, c: (c - b) - (b - a), *points)
    length = jnp.clip(jnp.sqrt(_square(step) / jnp.maximum(_square(turn), SMALLEST)), 1.0, reach)
    there = jax.tree.map(lambda a, r, v: a + 2 * length * r + length**2 * v, points[0], step, turn)
    there |= {name: jnp.maximum(there[name], FLOOR * points[2][name]) for name in parts.tables}
    return end | _back(parts, there), length


def _flat(parts: Anatomy, parameters: Parameters) -> Parameters:
    """Return the parameters in the space of the extrapolation: square roots of probabilities, and reals."""
    return {name: jnp.sqrt(parameters[name]) for name in parts.tables} | parts.to_reals(parameters)


def _back(parts: Anatomy, flat: Parameters) -> Parameters:
    tables = {name: jnp.maximum(flat[name] ** 2, 2 * SMALLEST) for name in parts.tables}
    tables = {name: table / table.sum(-1, keepdims=True) for name, table in tables.items()}
    return tables | parts.from_reals({name: flat[name] for name in parts.bijections})


def _square(values: Parameters) -> Array:
    return sum((value**2).sum() for value in values.values())


def _either(condition: Array, this: Parameters, other: Parameters) -> Parameters:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), this, other)
