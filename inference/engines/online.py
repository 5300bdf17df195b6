r"""Stochastic EM over chunks: the parameters take a step after each chunk instead of after each pass.

With :math:`n_t` the expected counts of the chunk of step t, scaled to all tasks, their running average is

.. math:: s_t = (1 - \gamma_t) s_{t-1} + \gamma_t n_t, \qquad \gamma_t = (t + 2)^{-0.6}

and the probability tables take the exact M-step of the average (Cappé & Moulines 2009, "On-line
expectation-maximization algorithm for latent data models"). Other parameters take a step of Adam along the chunk's
slope, whose rate falls with the passes as :math:`\gamma` does with the steps. The average begins at the counts of the
soft majority vote. A few passes lead near to where EM ends, the nearer the more passes; memory does not grow with the
number of tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from ...data.chunks import Chunk
from ..densities.enumerated import Parameters, density, log_sum_exp
from ..densities.model import Model
from ..densities.programs import compiled
from ..densities.sites import anatomy
from .checkpoints import NOWHERE, Checkpoints, Nest, packed, unpacked
from .m_step import tables_mode
from .outcome import Outcome
from .progress import progress_bar
from .settings import EMSettings
from .stream_state import PART, STAGE, noted, went_on
from .streaming import Source, one_pass, parameter_shapes, start

FORGETTING = 0.6  # exponent of the step sizes, between a half and one
PASSES = 5  # where the user says nothing
CALM = 1e-3  # relative change of the log-posterior in the last pass, above which there is a warning


class OnlineState(NamedTuple):
    """Where stochastic EM stands between two passes."""

    parameters: Parameters
    counts: Parameters  # running average of each table's expected counts, those of the prior not included
    optimizer: optax.OptState
    steps: int  # chunks seen
    iteration: int  # passes made
    history: tuple[float, ...]  # log-posterior by pass, each chunk at the parameters before its step


@compiled
def online_step(
    model: Model,
    chunk: Chunk,
    parameters: Parameters,
    counts: Parameters,
    optimizer: optax.OptState,
    scale: Array,
    gamma: Array,
    rate: Array,
) -> tuple[Parameters, Parameters, optax.OptState, Array]:
    """Take the step of one chunk.

    Args:
        model: the story.
        chunk: the chunk.
        parameters: before the step.
        counts: their running average.
        optimizer: Adam's state.
        scale: all tasks for each task of the chunk.
        gamma: the step size.
        rate: of Adam.

    Returns:
        Parameters, counts and optimizer after the step, and the chunk's log-likelihood before it.
    """
    parts = anatomy(model, chunk)
    tables, reals = {name: parameters[name] for name in parts.tables}, parts.to_reals(parameters)

    def densities(tables: Parameters, reals: Parameters) -> tuple[Array, Array]:
        at = density(model, parameters | tables | parts.from_reals(reals), chunk)
        return log_sum_exp(at.log_joint).sum(), at.log_prior_in_log_odds

    (value, _), pull = jax.vjp(densities, tables, reals)
    one, zero = jnp.ones((), value.dtype), jnp.zeros((), value.dtype)
    (of_tables, slope), (prior_tables, prior_slope) = pull((one, zero)), pull((zero, one))
    mixed = {name: (1 - gamma) * counts[name] + gamma * scale * tables[name] * of_tables[name] for name in tables}
    new = parameters | tables_mode({name: mixed[name] + tables[name] * prior_tables[name] for name in tables}, tables)
    if parts.bijections:
        downhill = jax.tree.map(lambda of_chunk, of_prior: -(scale * of_chunk + of_prior), slope, prior_slope)
        moves, optimizer = optax.adam(rate).update(downhill, optimizer, reals)
        new = new | parts.from_reals(jax.tree.map(jnp.add, reals, moves))
    return new, mixed, optimizer, value


def run(
    model: Model,
    source: Source,
    key: Array,
    settings: EMSettings,
    *,
    progress: bool,
    keep: Checkpoints = NOWHERE,
) -> Outcome:
    """Make ``settings.epochs`` passes over the data in chunks, each in an order of its own.

    Args:
        model: the story.
        source: the chunks.
        key: of random starting values and of the chunks' order.
        settings: ``epochs`` and ``learning_rate``.
        progress: show a bar.
        keep: where the fit's state is kept.

    Raises:
        FloatingPointError: the log-posterior is not finite.
    """
    earlier = keep.found(STAGE)
    like = None if earlier is None else template(model, source.first)
    state = None if earlier is None else went_on(earlier, OnlineState, like)

    def passed(state: OnlineState) -> None:
        keep.note(STAGE, partial(noted, state), milestone=True, over=PART)

    with progress_bar("stochastic EM", settings.epochs, show=progress) as bar:

        def tell(passes: int, history: tuple[float, ...], done: int) -> None:
            said = f"log-posterior {history[-1]:,.2f}, " if history else ""
            bar(passes, f"{said}chunk {done:,} of {len(source):,}")

        if state is None:
            parameters = start(model, source, key)
            votes = one_pass(model, source, parameters, on_votes=True, tell=partial(tell, 0, ()), keep=keep)
            new = parameters | tables_mode(votes.sums.counts, parameters)
            state = OnlineState(new, votes.of_data.counts, no_moves(model, source.first, new), 0, 0, ())
            passed(state)
        while state.iteration < settings.epochs:
            state = _pass(model, source, key, state, settings, tell, keep)
            passed(state)
        of_last = f"pass after {state.iteration}"  # more epochs may be asked for later
        last = one_pass(
            model, source, state.parameters, on_votes=False, tell=lambda done: None, keep=keep, stage=of_last
        )
    history = (*state.history, last.log_posterior)
    draws = {name: np.asarray(value)[None, None] for name, value in state.parameters.items()}
    warnings = (*_warnings(history), *_one_chunk(source))
    return Outcome(draws, {}, np.array(history), {}, warnings, is_point=True)


def _pass(
    model: Model,
    source: Source,
    key: Array,
    state: OnlineState,
    settings: EMSettings,
    tell: Callable[..., None],
    keep: Checkpoints,
) -> OnlineState:
    """One pass over the chunks, in an order that key and pass decide."""
    order = np.asarray(jax.random.permutation(jax.random.fold_in(key, state.iteration), len(source)))
    parameters, counts, optimizer, total = state.parameters, state.counts, state.optimizer, 0.0
    begin = 0
    if (found := keep.found(PART)) is not None:
        parameters, counts, optimizer = unpacked(found["arrays"], (parameters, counts, optimizer))
        total, begin = found["total"], found["done"]
    for done, chunk in enumerate(source.in_order(order[begin:]), start=begin + 1):
        seen = state.steps + done
        scale = jnp.asarray(source.prepared.n_tasks / int(chunk.n_real[0]), float)
        gamma = jnp.asarray((seen + 1.0) ** -FORGETTING, float)
        rate = jnp.asarray(settings.learning_rate * (1 + seen / len(order)) ** -FORGETTING, float)
        parameters, counts, optimizer, value = online_step(
            model, chunk, parameters, counts, optimizer, scale, gamma, rate
        )
        total += float(value)
        keep.note(PART, partial(_noted_part, (parameters, counts, optimizer), total, done))
        tell(state.iteration, state.history, done)
    log_posterior = total + float(_log_prior(model, source.first, parameters))
    iteration = state.iteration + 1
    if not np.isfinite(log_posterior):
        raise FloatingPointError(f"the log-posterior is {log_posterior} in pass {iteration}; lower learning_rate")
    history = (*state.history, log_posterior)
    return OnlineState(parameters, counts, optimizer, state.steps + len(order), iteration, history)


def _noted_part(trees: tuple, total: float, done: int) -> Nest:
    """What a checkpoint has of a pass after so many chunks."""
    return {"arrays": packed(trees), "total": total, "done": done}


@compiled
def _log_prior(model: Model, chunk: Chunk, parameters: Parameters) -> Array:
    return density(model, parameters, chunk).log_prior_in_log_odds


def _warnings(history: tuple[float, ...]) -> tuple[str, ...]:
    change = abs((history[-1] - history[-2]) / history[-1]) if len(history) > 1 else np.inf
    if change <= CALM:
        return ()
    return (
        f"stochastic EM still moves: the log-posterior changed by {change:.1e} of itself after the last pass; raise "
        "epochs, or leave out step for exact steps",
    )


def _one_chunk(source: Source) -> tuple[str, ...]:
    if len(source) > 1:
        return ()
    return (
        f"step='stochastic' takes a step after each chunk, and all {source.prepared.n_rows:,} rows are one chunk, so "
        "that a pass is one step; leave out step for exact steps, which go further in a pass",
    )


@compiled
def no_moves(model: Model, chunk: Chunk, parameters: Parameters) -> optax.OptState:
    """Return Adam's state before the first step."""
    return optax.adam(0.0).init(anatomy(model, chunk).to_reals(parameters))


def template(model: Model, chunk: Chunk) -> Any:
    """Return shapes and types of a state's arrays: parameters, counts and optimizer."""

    def arrays(parameters: Parameters) -> Any:
        tables = {name: parameters[name] for name in anatomy(model, chunk).tables}
        return parameters, tables, no_moves(model, chunk, parameters)

    return jax.eval_shape(arrays, parameter_shapes(model, chunk))
