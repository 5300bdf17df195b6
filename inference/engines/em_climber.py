r"""EM as a climber: where the log-posterior is looked at next, and where EM stands after a look.

A *look* (:mod:`.looks`) is a sum over tasks, so that it comes from arrays in memory, from several devices or from
batches of files, and the climber is the same for all of them. The M-step of probability tables, Adam's step of the
other parameters, steps that are halved because the log-posterior fell (Lange 1995) and the proposals of SQUAREM
(:mod:`.squarem`) are all points to look at, so that each costs one gradient.

Only a look that counts is an iteration. Where the exact M-step is all of a step, the log-posterior cannot fall and
every look counts but a refused proposal's.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from ...data import Annotations
from ...data.sharding import on_this_host
from ..densities.enumerated import Parameters
from ..densities.model import Model
from ..densities.sites import ParameterSpec, parameter_spec
from ..sources.memory import InMemory, Minibatch
from . import squarem
from .looks import Look, look_at
from .m_step import tables_mode
from .outcome import check_finite
from .settings import EMSettings
from .squarem import SquaremState

T = TypeVar("T")
CHANGE_DECAY = 0.8  # of a change in the rule to stop, an iteration, where steps may be cut short
STEP_GROWTH = 1.2  # of Adam's step size after a step that was not cut short


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


def is_exact(spec: ParameterSpec) -> bool:
    """Return whether the exact M-step is all of a step, so that the log-posterior cannot fall."""
    return not (spec.bijections or spec.has_factors)


def init(
    spec: ParameterSpec, parameters: Parameters, *, accelerated: bool = False, direct: tuple[str, ...] = ()
) -> EMState:
    """Return the state before the first look, which is at ``parameters``.

    Args:
        accelerated: propose by SQUAREM, where no parameter is Adam's, whose steps depend on earlier ones.
        direct: parameters whose moves a look knows.
    """
    reals = spec.to_reals(parameters)
    by_adam = {name: value for name, value in reals.items() if name not in direct}
    slope = jax.tree.map(jnp.zeros_like, reals)
    counts = {name: jnp.zeros_like(parameters[name]) for name in spec.tables}
    one, zero, unknown = jnp.ones((), float), jnp.zeros((), float), jnp.full((), jnp.inf, float)
    look = Look(counts, slope, -unknown, zero, {name: slope[name] for name in direct})
    return EMState(
        parameters,
        _without_gradient(look) if is_exact(spec) else look,
        target=parameters,
        share=one,
        step_size=one,
        optimizer=optax.adam(0.0).init(by_adam),
        iteration=jnp.int32(-1),
        change=unknown,
        settled=unknown,
        squarem=squarem.init(parameters) if accelerated and not by_adam else None,
    )


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class EMClimber:
    """EM of a story: :class:`.Climber`."""

    model: Model
    settings: EMSettings  # max_iterations, tolerance, learning_rate and halvings

    moves: ClassVar[str] = "pass"
    most: ClassVar[int] = 25
    quantity: ClassVar[str] = "log-posterior"
    stage: ClassVar[str] = "em"

    def batch(self, source: InMemory, state: EMState) -> Minibatch:
        """Return all tasks."""
        return Minibatch(source.like)

    def point(self, like: Annotations, state: EMState) -> Parameters:
        """Return the parameters of the next look: the target, a point on the way to it, or a proposal."""
        spec = parameter_spec(self.model, like)
        target = state.target
        if not is_exact(spec):
            target = _between(spec, state.parameters, state.target, state.share)
        if state.squarem is None:
            return target
        return _either(_is_proposal(state, self.settings), state.squarem.aside, target)

    def look(self, like: Annotations, batch: Minibatch, at: Parameters) -> Look:
        """Return the look at annotations in memory."""
        return look_at(self.model, batch.annotations, at)

    def step(self, like: Annotations, state: EMState, at: Parameters, look: Look) -> EMState:
        """Return the state after a look at the :meth:`point`."""
        spec, settings = parameter_spec(self.model, like), self.settings
        proposed = _is_proposal(state, settings)
        may_fall = proposed if is_exact(spec) else jnp.array(True)
        holds = (_rise(state.look, look) >= 0) & (look.log_posterior < jnp.inf)
        falls = may_fall & ~holds & (state.iteration >= 0)
        gives_up = jnp.array(False)
        waits = state
        if not is_exact(spec):
            share = jnp.where(proposed, state.share, state.share / 2)
            gives_up = falls & ~proposed & ~(share > 0.5**settings.halvings)
            at, look = _either(gives_up, (state.parameters, state.look), (at, look))
            waits = waits._replace(share=share)
        accepted = _accepted(spec, state, at, look, settings, proposed=proposed, gives_up=gives_up)
        if state.squarem is not None:
            refused = squarem.refused(state.squarem)
            waits = waits._replace(squarem=_either(proposed, refused, state.squarem))
        elif is_exact(spec):
            return accepted
        return _either(falls & ~gives_up, waits, accepted)

    def finished(self, state: EMState) -> Array:
        """Return whether EM has converged, or has taken all of its iterations.

        The iteration after the one that changed the log-posterior by no more than the tolerance is the last.
        """
        converged = ~(state.settled > self.settings.tolerance)
        return (state.iteration >= 1) & (converged | (state.iteration >= self.settings.max_iterations))

    def n_values(self, state: EMState) -> Array:
        """Return the number of looks that counted."""
        return state.iteration + 1

    def value(self, state: EMState) -> tuple[Array, ...]:
        """Return the log-posterior at the last of them, in parts that add up to it."""
        return state.look.log_posterior, state.look.remainder

    def check(self, state: EMState, history: list[float], n_new: int) -> None:
        """Refuse a log-posterior that is not finite: :func:`.check_finite`; or its slope, from which no step leads.

        Raises:
            FloatingPointError: with the iteration.
        """
        check_finite(history)
        for name in state.look.slope.keys() - state.look.direct.keys():
            if not np.isfinite(on_this_host(state.look.slope[name])).all():
                raise FloatingPointError(
                    f"the slope of the log-posterior along {name!r} is not finite at iteration {len(history)}"
                )


def _rise(known: Look, look: Look) -> Array:
    return (look.log_posterior - known.log_posterior) + (look.remainder - known.remainder)


def _accepted(
    spec: ParameterSpec,
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
    if spec.bijections:
        gain = jnp.maximum(gain, CHANGE_DECAY * jnp.where(jnp.isfinite(state.change), state.change, 0.0))
        share = jnp.where(gives_up, 0.0, state.share)
        cut = jnp.maximum(step_size * jnp.maximum(share, 0.1), 1e-4)
        grown = jnp.minimum(jnp.where(share < 1, cut, step_size * STEP_GROWTH), 1.0)
        step_size = jnp.where((state.iteration < 0) | proposed, step_size, grown).astype(float)
        optimizer = jax.tree.map(lambda value: jnp.where(gives_up, jnp.zeros_like(value), value), optimizer)
        reals = spec.to_reals(at)
        by_adam = {name: value for name, value in reals.items() if name not in look.direct}
        downhill = {name: -look.slope[name] for name in by_adam}
        moves, optimizer = optax.adam(settings.learning_rate).update(downhill, optimizer, by_adam)
        moves = look.direct | {name: step_size * move for name, move in moves.items()}
        target = target | spec.from_reals({name: real + moves[name] for name, real in reals.items()})
    change, trail = gain, state.squarem
    if trail is not None:
        # A plain step tells whether EM has converged, unless the proposal that it starts from changed more.
        change = jnp.where(proposed, state.change, jnp.maximum(gain, trail.gain))
        trail = squarem.update(trail, spec, at, target, gain)
    return EMState(
        at,
        _without_gradient(look) if is_exact(spec) else look,
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


def _between(spec: ParameterSpec, old: Parameters, new: Parameters, share: Array) -> Parameters:
    """Return the parameters at a share of the way, tables as probabilities and the others as reals."""
    ends = (old, spec.to_reals(old)), (new, spec.to_reals(new))
    mixed, reals = jax.tree.map(lambda a, b: (1 - share) * a + share * b, *ends)
    return mixed | spec.from_reals(reals)


def _without_gradient(look: Look) -> Look:
    return look._replace(counts={}, slope={}, direct={})


def _either(condition: Array, this: T, other: T) -> T:
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), this, other)
