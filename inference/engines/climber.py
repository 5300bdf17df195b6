r"""EM as a climber: where the log-posterior is looked at next, and where EM stands after a look.

A *look* is the log-posterior with its gradient at one point. It is a sum over tasks, so that it comes from arrays in
memory, from several devices or from chunks of files, and the climber is the same for all of them: :func:`point` says
where to look, :func:`step` takes the look. The M-step of probability tables, Adam's step of the other parameters,
steps that are halved because the log-posterior fell (Lange 1995) and the proposals of SQUAREM (:mod:`.squarem`) are
all points to look at, so that each costs one gradient.

Only a look that counts is an iteration. Where the exact M-step is all of a step, the log-posterior cannot fall and
every look counts but a refused proposal's.
"""

from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import optax
from jax import Array

from ..densities.enumerated import Parameters
from ..densities.sites import Anatomy
from . import squarem
from .m_step import tables_mode
from .settings import EMSettings
from .squarem import SquaremState

T = TypeVar("T")
CHANGE_DECAY = 0.8  # of a change in the rule to stop, an iteration, where steps may be cut short
STEP_GROWTH = 1.2  # of Adam's step size after a step that was not cut short


class Look(NamedTuple):
    """The log-posterior's gradient at one point, summed over all tasks."""

    counts: Parameters  # of each probability table, the prior's included
    slope: Parameters  # of the other parameters, unconstrained
    log_posterior: Array  # with the tables in log-odds
    remainder: Array  # of the log-posterior, which single precision does not hold; of use in sums over many chunks
    direct: Parameters  # moves that are known, such as Newton's of a logistic regression; Adam makes the others


class EMState(NamedTuple):
    """The state between two looks: arrays alone, so that a checkpoint saves them."""

    parameters: Parameters  # of the last look that counted
    look: Look  # at the parameters; without counts, slope and moves where no step is halved
    target: Parameters  # of the step from the parameters
    share: Array  # of the way to the target, for the next look
    step_size: Array  # share of Adam's step
    optimizer: optax.OptState
    iteration: Array  # looks that counted, without the first: -1 before it
    change: Array  # relative change of the log-posterior in the last iteration; with gradient steps, in the last ones
    settled: Array  # the change in the iteration before
    squarem: SquaremState | None  # None for plain steps


def is_exact(parts: Anatomy) -> bool:
    """Return whether the exact M-step is all of a step, so that the log-posterior cannot fall."""
    return not (parts.bijections or parts.has_factors)


def init(parts: Anatomy, parameters: Parameters, *, accelerated: bool = False, direct: tuple[str, ...] = ()) -> EMState:
    """Return the state before the first look, which is at ``parameters``.

    Args:
        parts: of the story.
        parameters: by site.
        accelerated: propose by SQUAREM, where no parameter is Adam's, whose steps depend on earlier ones.
        direct: parameters whose moves a look knows.
    """
    reals = parts.to_reals(parameters)
    by_adam = {name: value for name, value in reals.items() if name not in direct}
    slope = jax.tree.map(jnp.zeros_like, reals)
    counts = {name: jnp.zeros_like(parameters[name]) for name in parts.tables}
    one, zero, unknown = jnp.ones((), float), jnp.zeros((), float), jnp.full((), jnp.inf, float)
    look = Look(counts, slope, -unknown, zero, {name: slope[name] for name in direct})
    return EMState(
        parameters,
        _without_gradient(look) if is_exact(parts) else look,
        target=parameters,
        share=one,
        step_size=one,
        optimizer=optax.adam(0.0).init(by_adam),
        iteration=jnp.int32(-1),
        change=unknown,
        settled=unknown,
        squarem=squarem.init(parameters) if accelerated and not by_adam else None,
    )


def point(parts: Anatomy, state: EMState, settings: EMSettings) -> Parameters:
    """Return the parameters of the next look: the target, a point on the way to it, or a proposal."""
    found = state.target
    if not is_exact(parts):
        found = _between(parts, state.parameters, state.target, state.share)
    if state.squarem is None:
        return found
    return _either(_is_proposal(state, settings), state.squarem.aside, found)


def step(parts: Anatomy, state: EMState, at: Parameters, look: Look, settings: EMSettings) -> EMState:
    """Return the state after a look.

    Args:
        parts: of the story.
        state: before it.
        at: the :func:`point` of the look.
        look: the gradient there.
        settings: ``learning_rate``, ``halvings`` and ``tolerance``.
    """
    proposed = _is_proposal(state, settings)
    may_fall = proposed if is_exact(parts) else jnp.array(True)
    falls = may_fall & ~_holds(state.look, look) & (state.iteration >= 0)
    gives_up = jnp.array(False)
    waits = state
    if not is_exact(parts):
        share = jnp.where(proposed, state.share, state.share / 2)
        gives_up = falls & ~proposed & ~(share > 0.5**settings.halvings)
        at, look = _either(gives_up, (state.parameters, state.look), (at, look))
        waits = waits._replace(share=share)
    accepted = _accepted(parts, state, at, look, settings, proposed=proposed, gives_up=gives_up)
    if state.squarem is not None:
        refused = squarem.refused(state.squarem)
        waits = waits._replace(squarem=_either(proposed, refused, state.squarem))
    elif is_exact(parts):
        return accepted
    return _either(falls & ~gives_up, waits, accepted)


def finished(state: EMState, settings: EMSettings) -> Array:
    """Return whether EM has converged, or has taken all of its iterations.

    The iteration after the one that changed the log-posterior by no more than the tolerance is the last.
    """
    converged = ~(state.settled > settings.tolerance)
    return (state.iteration >= 1) & (converged | (state.iteration >= settings.max_iterations))


def _holds(known: Look, look: Look) -> Array:
    """Return whether the log-posterior is finite and did not fall."""
    return (_rise(known, look) >= 0) & (look.log_posterior < jnp.inf)


def _rise(known: Look, look: Look) -> Array:
    return (look.log_posterior - known.log_posterior) + (look.remainder - known.remainder)


def _accepted(
    parts: Anatomy,
    state: EMState,
    at: Parameters,
    look: Look,
    settings: EMSettings,
    *,
    proposed: Array,
    gives_up: Array,
) -> EMState:
    """Return the state after a look that counts, with the step from its point."""
    gain = jnp.abs(_rise(state.look, look) / look.log_posterior)
    target, step_size, optimizer = at | tables_mode(look.counts, at), state.step_size, state.optimizer
    if parts.bijections:
        gain = jnp.maximum(gain, CHANGE_DECAY * jnp.where(jnp.isfinite(state.change), state.change, 0.0))
        share = jnp.where(gives_up, 0.0, state.share)
        cut = jnp.maximum(step_size * jnp.maximum(share, 0.1), 1e-4)
        grown = jnp.minimum(jnp.where(share < 1, cut, step_size * STEP_GROWTH), 1.0)
        step_size = jnp.where((state.iteration < 0) | proposed, step_size, grown).astype(float)
        optimizer = jax.tree.map(lambda value: jnp.where(gives_up, jnp.zeros_like(value), value), optimizer)
        reals = parts.to_reals(at)
        by_adam = {name: value for name, value in reals.items() if name not in look.direct}
        downhill = {name: -look.slope[name] for name in by_adam}
        moves, optimizer = optax.adam(settings.learning_rate).update(downhill, optimizer, by_adam)
        moves = look.direct | {name: step_size * move for name, move in moves.items()}
        target = target | parts.from_reals({name: real + moves[name] for name, real in reals.items()})
    change, trail = gain, state.squarem
    if trail is not None:
        # A plain step tells whether EM has converged, unless the proposal that it starts from changed more.
        change = jnp.where(proposed, state.change, jnp.maximum(gain, trail.gain))
        trail = squarem.update(trail, parts, at, target, gain)
    return EMState(
        at,
        _without_gradient(look) if is_exact(parts) else look,
        target,
        jnp.ones((), float),
        step_size,
        optimizer,
        state.iteration + 1,
        change,
        state.change,
        trail,
    )


def _is_proposal(state: EMState, settings: EMSettings) -> Array:
    """Return whether the next look is at a proposal; the last look is at the target."""
    if state.squarem is None:
        return jnp.array(False)
    return (state.squarem.stage == squarem.PROPOSED) & (state.change > settings.tolerance)


def _between(parts: Anatomy, old: Parameters, new: Parameters, share: Array) -> Parameters:
    """Return the parameters at a share of the way, tables as probabilities and the others as reals."""
    ends = (old, parts.to_reals(old)), (new, parts.to_reals(new))
    mixed, reals = jax.tree.map(lambda a, b: (1 - share) * a + share * b, *ends)
    return mixed | parts.from_reals(reals)


def _without_gradient(look: Look) -> Look:
    return look._replace(counts={}, slope={}, direct={})


def _either(condition: Array, this: T, other: T) -> T:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), this, other)
