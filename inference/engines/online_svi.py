"""SVI over chunks that are read from the disk: a step of Adam after each.

A chunk of whole tasks stands for all of the data: of C chunks, each as likely as the others, the likelihood of one
counts C times, so that its bound is the whole bound in expectation. Each pass reads them in an order of its own. The
guide starts where a few passes of stochastic EM lead; memory does not grow with the number of tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpyro.infer.svi import SVIState

from ...data.chunks import Chunk
from ..densities.enumerated import Parameters
from ..densities.model import Model
from . import online, streaming, svi
from .checkpoints import NOWHERE, Checkpoints, Nest, packed, unpacked
from .outcome import Outcome, as_point
from .progress import progress_bar
from .settings import EMSettings, SVISettings
from .stream_state import PART, STAGE, noted, went_on
from .streaming import Source


class OnlineSVIState(NamedTuple):
    """Where SVI stands between two passes."""

    values: Parameters  # where the guide began
    optimizer: Any  # Adam's state, with the guide's parameters
    iteration: int  # steps taken
    history: tuple[float, ...]  # the loss before each step


def run(
    model: Model,
    source: Source,
    key: Array,
    settings: SVISettings,
    *,
    progress: bool,
    keep: Checkpoints = NOWHERE,
) -> Outcome:
    """Take ``settings.max_iterations`` steps, each on a chunk, and draw from the guide.

    Args:
        model: the story.
        source: the chunks.
        key: of the start, of the chunks' order and of what is drawn.
        settings: of SVI; ``batch_size`` is not looked at.
        progress: show a bar.
        keep: where the fit's state is kept.

    Raises:
        FloatingPointError: the loss is not finite, with the step.
    """
    em_key, init_key, step_key, draw_key = jax.random.split(key, 4)
    program = svi.Program(settings.guide, settings.particles)
    if (earlier := keep.found(STAGE)) is not None:
        state = went_on(earlier, OnlineSVIState, template(model, source, settings))
    else:
        values = _start(model, source, em_key, progress=progress, keep=keep.within("before"))
        state = OnlineSVIState(values, _first(model, source, values, init_key, settings), 0, ())
    with progress_bar("SVI over chunks", settings.max_iterations, show=progress) as bar:
        while state.iteration < settings.max_iterations:
            state = _pass(model, source, step_key, state, settings, bar, keep)
            keep.note(STAGE, partial(noted, state), milestone=True, over=PART)
    is_delta = svi.is_a_point(settings.guide)
    problem = _problem(model, source, source.first, state.values, settings)
    fitted = SVIState(state.optimizer, None, draw_key)
    _, sampled = svi.draw(problem, fitted, draw_key, program, 1 if is_delta else settings.draws)
    sampled = {name: np.asarray(sampled[name])[None] for name in state.values}
    draws, is_point = as_point(sampled, is_point=is_delta)
    losses = list(state.history)
    return Outcome(draws, {}, svi.without_gaps(losses), {}, svi.loss_warnings(losses, settings.tolerance), is_point)


def _start(model: Model, source: Source, key: Array, *, progress: bool, keep: Checkpoints) -> Parameters:
    """Where stochastic EM leads."""
    settings = EMSettings(epochs=online.PASSES)
    found = online.run(model, source, key, settings, progress=progress, keep=keep)
    return {name: jnp.asarray(value[0, 0]) for name, value in found.draws.items()}


def _pass(
    model: Model,
    source: Source,
    key: Array,
    state: OnlineSVIState,
    settings: SVISettings,
    bar: Callable[[int, str], None],
    keep: Checkpoints,
) -> OnlineSVIState:
    """One pass over the chunks, or the part of it for which there are steps left."""
    program = svi.Program(settings.guide, settings.particles)
    before, losses = state.iteration, list(state.history)
    order_key, draw_key = jax.random.split(jax.random.fold_in(key, before))
    order = np.asarray(jax.random.permutation(order_key, len(source)))[: settings.max_iterations - before]
    optimizer = state.optimizer
    if (part := keep.found(PART)) is not None:
        optimizer, losses = unpacked(part["optimizer"], optimizer), [*losses, *part["losses"].tolist()]
    for chunk in source.in_order(order[len(losses) - before :]):
        now = SVIState(optimizer, None, jax.random.fold_in(draw_key, len(losses)))
        problem = _problem(model, source, chunk, state.values, settings)
        after, found = svi.advance(problem, now, now.rng_key, 1, program)
        optimizer = after.optim_state
        losses.append(float(found[0]))
        if not np.isfinite(losses[-1]):
            svi.check_losses(losses)
        keep.note(PART, partial(_noted_part, optimizer, losses[before:]))
        bar(len(losses), f"loss {losses[-1]:,.2f}")
    return state._replace(optimizer=optimizer, iteration=len(losses), history=tuple(losses))


def _noted_part(optimizer: Any, losses: list[float]) -> Nest:
    """What a checkpoint has of a pass: Adam's state, and the loss before each of the steps so far."""
    return {"optimizer": packed(optimizer), "losses": np.array(losses)}


def _problem(model: Model, source: Source, chunk: Chunk, values: Parameters, settings: SVISettings) -> svi.Problem:
    weight = jnp.asarray(len(source), float)
    return svi.Problem(model, chunk, values, {}, None, svi.rates_of(settings), weight)


def _first(model: Model, source: Source, values: Parameters, key: Array, settings: SVISettings) -> Any:
    """Adam's state before the first step."""
    program = svi.Program(settings.guide, settings.particles)
    return svi.init(_problem(model, source, source.first, values, settings), key, program).optim_state


def template(model: Model, source: Source, settings: SVISettings) -> Any:
    """Shapes of the arrays of a state: values and optimizer."""
    parameters = streaming.parameter_shapes(model, source.first)

    def first(values: Parameters, key: Array) -> Any:
        return _first(model, source, values, key, settings)

    return parameters, jax.eval_shape(first, parameters, jax.random.key(0))
