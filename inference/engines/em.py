r"""Expectation maximisation of any story, without a derivation per story.

A probability table is a Dirichlet site, such as the workers' confusion matrices or the prevalence. With
:math:`Z(\theta)` the likelihood with the true labels summed out, the expected counts of a probability table are

.. math:: n = \theta \odot \nabla_\theta \log Z(\theta)

(Fisher's identity), and its exact M-step under a :math:`\text{Dirichlet}(\alpha)` prior is
:math:`\theta' \propto \alpha + n`, the mode of its log-odds (:mod:`crowdppl.inference.engines.ascent`): one gradient
is one iteration.
Parameters that are no tables climb the log-posterior in the same iteration by a step of Adam, or of Newton for a
logistic regression (ECME, Liu & Rubin 1994).
Where the exact M-step is not all of the iteration, it is halved until the log-posterior does not fall. The gradient
that gives the log-posterior where a step leads is kept for the next, so that a step that is not halved costs one too.

Where all of a story's parameters move so, EM is accelerated (:mod:`.acceleration`).

The engine is a pure :func:`init` and :func:`step` over an immutable state.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from ...data import Annotations
from ...data.sharding import as_on_one_device, on_this_host
from ...models import Classifier
from ...models.parts.emissions import SMALLEST
from ...models.parts.starts import soft_votes
from ..densities.enumerated import Parameters
from ..densities.model import Model
from ..densities.programs import compiled
from ..densities.sites import Anatomy, anatomy, constants, starting_point
from . import epochs as training
from .acceleration import FIRST, PROPOSED, Trail, accepts, place, set_out, walked
from .ascent import Ahead, ahead_of, gradient, learnt_from, newton, stepped_back, tables_mode
from .checkpoints import NOWHERE, Checkpoints, packed, unpacked
from .outcome import Outcome, Solution
from .progress import progress_bar
from .settings import EMSettings
from .unused_options import has_network, has_weights, refuse_unused, unused_by_em

CHUNK = 25  # iterations between two looks at the progress
RESTART_NOISE = 0.5  # share of random numbers in the soft majority vote, in every start after the first
CALM = 0.8  # how fast a change is forgotten by the rule to stop, where steps may be cut short
STAGE = "em"  # of a checkpoint
RECOVERY = 1.2  # by which a stride that was cut short grows again


class EMState(NamedTuple):
    """Where EM stands."""

    parameters: Parameters  # by site, in their own space
    log_posterior: Array  # of the parameters that the last step started from
    change: Array  # its relative change in the last step; with gradient steps, in the last steps
    optimizer: optax.OptState
    stride: Array  # share of Adam's step to take
    iteration: Array
    ahead: Ahead | None = None  # the gradient at the parameters; None where no step is halved
    trail: Trail | None = None  # of the acceleration; None for plain steps


@compiled(static=("perturbed", "accelerated"), once=True)
def init(
    model: Model,
    annotations: Annotations,
    key: Array,
    settings: EMSettings,
    *,
    perturbed: bool = False,
    accelerated: bool = False,
) -> EMState:
    """Return the state at the story's starting values, after an M-step towards the soft majority vote.

    Args:
        model: the story.
        annotations: the data.
        key: of random starting values.
        settings: of EM.
        perturbed: mix the soft majority vote with random probabilities, for a restart.
        accelerated: prepare for accelerated steps, where all parameters move by steps that depend on nothing but where
            they stand. Adam's depend on earlier ones, so that a story with parameters of Adam's goes by plain steps.
    """
    votes = soft_votes(annotations)
    if perturbed:
        random = as_on_one_device(jax.random.exponential(key, votes.shape), annotations)
        votes = (1 - RESTART_NOISE) * votes + RESTART_NOISE * random / random.sum(-1, keepdims=True)
    evidence = jnp.log(jnp.maximum(votes, SMALLEST))
    if annotations.evidence is not None:
        evidence = evidence + annotations.evidence
    parameters = starting_point(model, annotations, key)
    parts = anatomy(model, annotations)
    if (classifier := _logistic(model)) is not None:
        weights = {name: parameters[name] for name in parts.weights}
        parameters |= learnt_from(jax.nn.softmax(evidence), classifier, annotations, weights)
    counts = gradient(model, annotations.replace(evidence=evidence), parts, parameters).counts
    parameters |= tables_mode(counts, parameters)
    return state_at(model, annotations, parameters, settings, accelerated=accelerated)


@compiled(static=("accelerated",), once=True)
def state_at(
    model: Model, annotations: Annotations, parameters: Parameters, settings: EMSettings, *, accelerated: bool = False
) -> EMState:
    """Return the state at ``parameters``, from which no step has been taken; arguments are those of :func:`init`."""
    parts = anatomy(model, annotations)
    # An earlier fit's rows do not sum to one where there are new classes.
    parameters |= {name: parameters[name] / parameters[name].sum(-1, keepdims=True) for name in parts.tables}
    unknown = jnp.full((), jnp.inf, float)
    by_adam = _by_adam(model, parts, parts.to_reals(parameters))
    trail = set_out(parameters) if accelerated and not by_adam else None
    ahead = ahead_of(model, annotations, parts, parameters) if _may_fall(parts) else None
    optimizer = _adam(settings).init(by_adam)
    return EMState(parameters, -unknown, unknown, optimizer, jnp.ones((), float), jnp.int32(0), ahead, trail)


def step(model: Model, annotations: Annotations, state: EMState, settings: EMSettings) -> EMState:
    """Take one iteration: a plain step, or with a trail the next step of the acceleration's cycle."""
    if state.trail is None:
        return plain_step(model, annotations, state, settings)
    trail = state.trail
    start = _set_off(model, annotations, state, trail)
    end = plain_step(model, annotations, start, settings)
    accepted = accepts(trail, end.log_posterior, state.log_posterior)
    gain = jnp.where(accepted, end.change, 0.0)
    # A proposal that is not accepted changes nothing.
    end = jax.tree.map(partial(jnp.where, accepted), end._replace(trail=None), state._replace(trail=None))
    # What a plain step changes tells whether EM has converged, unless the proposal that it starts from changed more.
    change = jnp.where(trail.stage == PROPOSED, state.change, jnp.maximum(gain, trail.gain))
    parts = anatomy(model, annotations)
    trail = walked(trail, parts, start.parameters, end.parameters, gain, accepted=accepted)
    return end._replace(change=change, iteration=state.iteration + 1, trail=trail)


def _set_off(model: Model, annotations: Annotations, state: EMState, trail: Trail) -> EMState:
    """Return the state where the next step of a cycle starts, which may be a proposal that was not looked at."""
    start = state._replace(parameters=place(trail, state.parameters))
    if (ahead := state.ahead) is None:
        return start

    def at_proposal() -> Ahead:
        return ahead_of(model, annotations, anatomy(model, annotations), trail.aside)

    return start._replace(ahead=jax.lax.cond(trail.stage == PROPOSED, at_proposal, lambda: ahead))


def plain_step(model: Model, annotations: Annotations, state: EMState, settings: EMSettings) -> EMState:
    """Take E-step, M-step of the probability tables and a step of the others, by one gradient.

    It is the gradient where the step starts; where a step may fall it is known, and the one is that where it ends.
    """
    old = state.parameters
    parts = anatomy(model, annotations)
    here = ahead_of(model, annotations, parts, old) if state.ahead is None else state.ahead
    new = old | tables_mode(here.counts, old)
    change = jnp.abs((here.log_posterior - state.log_posterior) / here.log_posterior)
    optimizer, stride, ahead = state.optimizer, state.stride, state.ahead
    if parts.bijections:
        reals = parts.to_reals(old)
        moves, optimizer = _adam(settings).update(
            jax.tree.map(jnp.negative, _by_adam(model, parts, here.slope)), optimizer, _by_adam(model, parts, reals)
        )
        moves = jax.tree.map(lambda move: stride * move, moves)
        if (classifier := _logistic(model)) is not None:
            weights, uphill = ({name: values[name] for name in parts.weights} for values in (old, here.slope))
            moves |= newton(classifier, annotations, weights, uphill)
        new = new | parts.from_reals(jax.tree.map(jnp.add, reals, moves))
        change = jnp.maximum(change, CALM * jnp.where(jnp.isfinite(state.change), state.change, 0.0))
    if ahead is not None:
        new, ahead, share = stepped_back(model, annotations, parts, old, new, here, settings.halvings)
        stride = jnp.where(share < 1, jnp.maximum(stride * jnp.maximum(share, 0.1), 1e-4), stride * RECOVERY)
        stride = jnp.minimum(stride, 1.0).astype(float)
        rejected = share == 0
        optimizer = jax.tree.map(lambda value: jnp.where(rejected, jnp.zeros_like(value), value), optimizer)
    return EMState(new, here.log_posterior, change, optimizer, stride, state.iteration + 1, ahead, state.trail)


@compiled
def advance(
    model: Model, annotations: Annotations, state: EMState, n_steps: Array | int, settings: EMSettings
) -> tuple[EMState, Array]:
    """Take at most ``n_steps`` (up to :data:`CHUNK`) steps, fewer where EM converges.

    Returns:
        The state, and the log-posterior before each step ``(CHUNK,)``, NaN for steps not taken.
    """

    def unfinished(carry: tuple[EMState, Array, Array]) -> Array:
        state, _, i = carry
        return (i < n_steps) & (state.change > settings.tolerance)

    def body(carry: tuple[EMState, Array, Array]) -> tuple[EMState, Array, Array]:
        state, history, i = carry
        state = step(model, annotations, state, settings)
        return state, history.at[i].set(state.log_posterior), i + 1

    history = jnp.full(CHUNK, jnp.nan)
    state, history, _ = jax.lax.while_loop(unfinished, body, (state, history, jnp.int32(0)))
    return state, history


def _adam(settings: EMSettings) -> optax.GradientTransformation:
    return optax.adam(settings.learning_rate)


def _by_adam(model: Model, parts: Anatomy, reals: Parameters) -> Parameters:
    """Return the real-valued parameters that Adam moves: all but the weights of a logistic regression."""
    if _logistic(model) is None:
        return reals
    return {name: value for name, value in reals.items() if name not in parts.weights}


def _logistic(model: Model) -> Classifier | None:
    return model.classifier if model.classifier is not None and model.classifier.is_linear else None


def _may_fall(parts: Anatomy) -> bool:
    """Whether the exact M-step is not all of an iteration, so that the log-posterior may fall."""
    return bool(parts.bijections) or parts.has_factors


def run(
    model: Model,
    annotations: Annotations,
    key: Array,
    settings: EMSettings,
    *,
    progress: bool,
    start: Parameters | None = None,
    keep: Checkpoints = NOWHERE,
) -> Outcome:
    """Run EM from each of ``settings.restarts`` starts, and keep the solution of the highest log-posterior.

    Args:
        model: the story.
        annotations: the data.
        key: random key.
        settings: of EM.
        progress: whether to show a bar.
        start: parameters to start from the first time, such as an earlier fit's; the story's own start by default.
        keep: where the fit's state is kept.

    Raises:
        FloatingPointError: where the log-posterior is not finite, with the iteration or the step.
        ValueError: for an option that this story does not use, or minibatches that the data or the story do not allow.
    """
    refuse_unused(
        settings,
        unused_by_em(
            in_batches=trained_in_batches(model, settings),
            has_weights=has_weights(model),
            holds_out=settings.held_out > 0,
        ),
    )
    best = solve(model, annotations, key, settings, progress=progress, start=start, keep=keep)
    fixed = constants(model, annotations)
    draws = {name: on_this_host(value)[None, None] for name, value in best.parameters.items() if name not in fixed}
    kept = {name: on_this_host(value) for name, value in best.parameters.items() if name in fixed}
    ends = tuple({name: on_this_host(value) for name, value in end.items()} for end in best.ends)
    return Outcome(draws, kept, np.array(best.history), {}, best.warnings, is_point=True, ends=ends)


def solve(
    model: Model,
    annotations: Annotations,
    key: Array,
    settings: EMSettings,
    *,
    progress: bool,
    start: Parameters | None = None,
    keep: Checkpoints = NOWHERE,
) -> Solution:
    """Return the solution of the highest log-posterior; options that the story does not use are not looked at."""
    in_batches = trained_in_batches(model, settings)
    per_start = settings.epochs if in_batches else settings.max_iterations
    solutions: list[Solution] = []
    with progress_bar("EM", settings.restarts * per_start, show=progress) as bar:
        for restart in range(settings.restarts):

            def tell(done: int, log_posterior: float, before: int = restart * per_start) -> None:
                bar(before + done, f"log-posterior {log_posterior:,.2f}")

            kept = keep.within(f"start {restart}")
            start_key = key if restart == 0 else jax.random.fold_in(key, restart)
            accelerated = settings.accelerate
            if start is not None and restart == 0:
                state = state_at(model, annotations, start, settings, accelerated=accelerated)
            else:
                state = init(model, annotations, start_key, settings, perturbed=restart > 0, accelerated=accelerated)
            if in_batches:
                solution = training.run(model, annotations, state.parameters, start_key, settings, tell, kept)
            else:
                solution = _iterate(model, annotations, state, settings, tell, kept)
            solutions.append(solution)
    best = max(solutions, key=lambda solution: solution.history[-1])
    return best._replace(ends=tuple(solution.parameters for solution in solutions) if len(solutions) > 1 else ())


def trained_in_batches(model: Model, settings: EMSettings) -> bool:
    """Whether the story is trained in minibatches: it has a network, or the user asks for them."""
    return settings.batch_size is not None or has_network(model)


def _iterate(
    model: Model,
    annotations: Annotations,
    state: EMState,
    settings: EMSettings,
    tell: Callable[[int, float], None],
    keep: Checkpoints,
) -> Solution:
    """Iterate over all data until EM converges."""
    history: list[float] = []
    if (found := keep.found(STAGE)) is not None:
        state, history = unpacked(found["state"], state), found["history"].tolist()
    pace = keep.pace(CHUNK)
    while len(history) < settings.max_iterations and state.change > settings.tolerance:
        n_steps = min(pace.steps, settings.max_iterations - len(history))
        with pace.timed(n_steps):
            state, values = advance(model, annotations, state, n_steps, settings)
            history += np.asarray(values)[: int(state.iteration) - len(history)].tolist()
        if not np.isfinite(history[-1]):
            raise FloatingPointError(f"the log-posterior is {history[-1]} at iteration {len(history)}")
        tell(len(history), history[-1])
        keep.note(STAGE, partial(_noted, state, history, len(history)))
    return Solution(
        state.parameters,
        [*history, _log_posterior(model, annotations, state, settings)],
        not_converged(float(state.change), settings),
    )


def _noted(state: EMState, history: list[float], n: int) -> dict[str, Any]:
    """What a checkpoint has of EM after ``n`` iterations, to whose history more may have come since."""
    return {"state": packed(state), "history": np.array(history[:n])}


def _log_posterior(model: Model, annotations: Annotations, state: EMState, settings: EMSettings) -> float:
    """Of the parameters that the last step led to, from which no step has started."""
    if state.ahead is not None:
        return float(state.ahead.log_posterior)
    # Those parameters are before a proposal that has not been looked at.
    trail = None if state.trail is None else state.trail._replace(stage=jnp.int32(FIRST))
    last = state._replace(change=jnp.full((), jnp.inf, float), trail=trail)
    beyond, _ = advance(model, annotations, last, 1, settings)
    return float(beyond.log_posterior)


def not_converged(change: float, settings: EMSettings) -> tuple[str, ...]:
    """Return a warning where the last iteration changed the log-posterior by a larger share than the tolerance."""
    if change <= settings.tolerance:
        return ()
    if not np.isfinite(change):
        return (
            f"EM took {settings.max_iterations} iterations, too few to see whether it converged; raise max_iterations",
        )
    return (
        f"EM did not converge in {settings.max_iterations} iterations: the log-posterior still changes by "
        f"{change:.1e} of itself a step (tolerance {settings.tolerance:.0e}); raise max_iterations",
    )
