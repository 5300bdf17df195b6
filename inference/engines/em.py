r"""Expectation maximisation of any story, without a derivation per story.

A probability table is a Dirichlet site, such as the workers' confusion matrices or the prevalence. With
:math:`Z(\theta)` the likelihood with the true labels summed out, the expected counts of a probability table are

.. math:: n = \theta \odot \nabla_\theta \log Z(\theta)

(Fisher's identity), and its exact M-step under a :math:`\text{Dirichlet}(\alpha)` prior is
:math:`\theta' \propto \alpha + n`, the mode of its log-odds (:mod:`crowdppl.inference.engines.m_step`): one gradient
is one iteration.
Parameters that are no tables climb the log-posterior in the same iteration by a step of Adam, or of Newton for a
logistic regression (ECME, Liu & Rubin 1994).
Where the exact M-step is not all of the iteration, it is halved until the log-posterior does not fall.

Where all of a story's parameters move so, EM is accelerated (:mod:`.squarem`).

The steps are those of :mod:`.climber`; the looks at annotations in memory are compiled together, many at once.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...data import Annotations
from ...data.sharding import as_on_one_device, on_this_host
from ...models import Classifier
from ...models.parts.emissions import SMALLEST
from ...models.parts.starts import soft_votes
from ..densities.enumerated import Parameters
from ..densities.model import Model
from ..densities.programs import compiled
from ..densities.sites import anatomy, constants, starting_point
from . import climber
from . import epochs as training
from .checkpoints import NOWHERE, Checkpoints, packed, unpacked
from .climber import EMState, Look
from .m_step import gradient, learnt_from, newton, tables_mode
from .outcome import Outcome, Solution
from .progress import progress_bar
from .settings import EMSettings
from .unused_options import has_network, has_weights, refuse_unused, unused_by_em

CHUNK = 25  # looks between two reports of progress
RESTART_NOISE = 0.5  # share of random numbers in the soft majority vote, in every start after the first
STAGE = "em"  # of a checkpoint


@compiled(static=("perturbed", "accelerated"), once=True)
def init(
    model: Model,
    annotations: Annotations,
    key: Array,
    *,
    perturbed: bool = False,
    accelerated: bool = False,
) -> EMState:
    """Return the state at the story's starting values, after an M-step towards the soft majority vote.

    Args:
        model: the story.
        annotations: the data.
        key: of random starting values.
        perturbed: mix the soft majority vote with random probabilities, for a restart.
        accelerated: prepare for accelerated steps, which a story with parameters of Adam's does not take.
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
    return state_at(model, annotations, parameters, accelerated=accelerated)


@compiled(static=("accelerated",), once=True)
def state_at(model: Model, annotations: Annotations, parameters: Parameters, *, accelerated: bool = False) -> EMState:
    """Return the state before the first look, at ``parameters``; arguments are those of :func:`init`."""
    parts = anatomy(model, annotations)
    # An earlier fit's rows do not sum to one where there are new classes.
    parameters |= {name: parameters[name] / parameters[name].sum(-1, keepdims=True) for name in parts.tables}
    direct = () if _logistic(model) is None else parts.weights
    return climber.init(parts, parameters, accelerated=accelerated, direct=direct)


def look_at(model: Model, annotations: Annotations, parameters: Parameters) -> Look:
    """Return the gradient of the log-posterior at ``parameters``, of annotations in memory."""
    parts = anatomy(model, annotations)
    counts, slope, at = gradient(model, annotations, parts, parameters)
    moves: Parameters = {}
    if (classifier := _logistic(model)) is not None:
        weights, uphill = ({name: values[name] for name in parts.weights} for values in (parameters, slope))
        moves = newton(classifier, annotations, weights, uphill)
    return Look(counts, slope, at.log_posterior_in_log_odds, jnp.zeros((), float), moves)


@compiled
def advance(
    model: Model, annotations: Annotations, state: EMState, n_looks: Array | int, settings: EMSettings
) -> tuple[EMState, Array]:
    """Take at most ``n_looks`` (up to :data:`CHUNK`) looks, fewer where EM finishes.

    Returns:
        The state, and the log-posterior of each look that counted ``(CHUNK,)``, then NaN.
    """
    parts, done = anatomy(model, annotations), state.iteration

    def unfinished(carry: tuple[EMState, Array, Array]) -> Array:
        state, _, i = carry
        return (i < n_looks) & ~climber.finished(state, settings)

    def body(carry: tuple[EMState, Array, Array]) -> tuple[EMState, Array, Array]:
        state, history, i = carry
        at = climber.point(parts, state, settings)
        after = climber.step(parts, state, at, look_at(model, annotations, at), settings)
        place = jnp.where(after.iteration > state.iteration, state.iteration - done, CHUNK)
        return after, history.at[place].set(after.look.log_posterior, mode="drop"), i + 1

    history = jnp.full(CHUNK, jnp.nan)
    state, history, _ = jax.lax.while_loop(unfinished, body, (state, history, jnp.int32(0)))
    return state, history


def _logistic(model: Model) -> Classifier | None:
    return model.classifier if model.classifier is not None and model.classifier.is_linear else None


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
                state = state_at(model, annotations, start, accelerated=accelerated)
            else:
                state = init(model, annotations, start_key, perturbed=restart > 0, accelerated=accelerated)
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
    while not climber.finished(state, settings):
        with pace.timed(pace.steps):
            state, values = advance(model, annotations, state, pace.steps, settings)
            history += np.asarray(values)[: int(state.iteration) + 1 - len(history)].tolist()
        check_finite(history)
        tell(int(state.iteration), history[-1])
        keep.note(STAGE, partial(_noted, state, history, len(history)))
    return Solution(state.parameters, history, not_converged(float(state.settled), settings))


def _noted(state: EMState, history: list[float], n: int) -> dict[str, Any]:
    """Return a checkpoint of EM with ``n`` log-posteriors; the list may have grown since."""
    return {"state": packed(state), "history": np.array(history[:n])}


def check_finite(history: Sequence[float]) -> None:
    """Refuse a log-posterior that is not finite.

    Raises:
        FloatingPointError: with the first iteration that has one.
    """
    if history and not np.isfinite(history[-1]):
        first = int(np.flatnonzero(~np.isfinite(history))[0])
        raise FloatingPointError(f"the log-posterior is {history[first]} at iteration {first + 1}")


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
