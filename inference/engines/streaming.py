r"""EM over annotations that stay on the disk, for every story whose parameters do not grow with the tasks.

The expected counts of the probability tables, and the slope of the log-posterior along the other parameters, are sums
over tasks (Fisher's identity, see :mod:`crowdppl.inference.engines.em`): they are added up over chunks of whole tasks,
all of one size, so that one compiled program serves all of them. One pass over the data at given parameters yields both
their log-posterior and the next step from there: a look of :mod:`crowdppl.inference.engines.climber`. The result is
that of :mod:`crowdppl.inference.engines.em`, up to the rounding of sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...data import Annotations
from ...data.chunks import Chunk
from ...data.prepared import Cut, Prepared
from ...models.parts.emissions import SMALLEST
from ...models.parts.starts import soft_votes
from ...models.parts.whole_sums import collected, given
from ..densities.enumerated import Parameters, density
from ..densities.model import Model
from ..densities.portable import is_portable, promises_it
from ..densities.programs import compiled
from ..densities.sites import anatomy, starting_point
from . import climber, em
from .checkpoints import NOWHERE, Checkpoints, Nest, packed, unpacked
from .climber import EMState, Look
from .m_step import Sums, sums_over_tasks, tables_mode
from .outcome import Outcome
from .progress import progress_bar
from .settings import EMSettings
from .stream_state import PART, STAGE


class Running(NamedTuple):
    """Sums over the chunks so far, and what rounding has taken from them (Knuth's exact sum of two)."""

    total: Sums
    lost: Sums


class Passed(NamedTuple):
    """What a pass over the data found."""

    sums: Sums  # with the contribution of the priors
    of_data: Sums  # without it
    log_posterior: float


class Source:
    """Chunks of annotations on the disk, as compiled programs take them.

    Args:
        prepared: the annotations.
        cut: how they are cut.
        model: the story, which may know workers and classes by name.
    """

    def __init__(self, prepared: Prepared, cut: Cut, model: Model) -> None:
        self.prepared, self.cut, self.model = prepared, cut, model
        self.add: Callable[..., Running] = partial(add_chunk, on_votes=False)  # or the same compiled already

    @cached_property
    def with_names(self) -> bool:
        """Whether chunks have the identifiers of workers and classes, since the story may read them."""
        return not (promises_it(self.model) or is_portable(self.model, self.prepared.chunk(self.cut, 0)))

    @cached_property
    def first(self) -> Chunk:
        """The first chunk, which stands for all where only shapes matter."""
        return self.chunk(0)

    def chunk(self, number: int) -> Chunk:
        """One chunk."""
        return self.prepared.chunk(self.cut, number, with_names=self.with_names)

    def __len__(self) -> int:
        return len(self.cut.pieces)

    def __iter__(self) -> Iterator[Chunk]:
        return self.in_order(range(len(self)))

    def in_order(self, numbers: Iterable[int]) -> Iterator[Chunk]:
        """The chunks of these numbers."""
        return self.prepared.chunks(self.cut, numbers, with_names=self.with_names)


@compiled(static=("on_votes",), donate_argnames="running")
def add_chunk(model: Model, chunk: Chunk, parameters: Parameters, running: Running, *, on_votes: bool) -> Running:
    """Add a chunk's sums.

    Args:
        model: the story.
        chunk: the chunk.
        parameters: by site.
        running: the sums so far; their memory is used again.
        on_votes: take the soft majority vote as evidence of the true labels, as EM does at its start.
    """
    seen: Annotations = chunk
    if on_votes:
        seen = chunk.replace(evidence=jnp.log(jnp.maximum(soft_votes(chunk), SMALLEST)))
    new = sums_over_tasks(model, seen, parameters)
    total = jax.tree.map(jnp.add, running.total, new)
    return Running(total, jax.tree.map(_lost, running.lost, running.total, new, total))


def _lost(before: Array, total: Array, new: Array, found: Array) -> Array:
    """What rounding has taken from a sum, that of ``found = total + new`` included."""
    part = found - total
    return before + ((total - (found - part)) + (new - part))


@compiled
def nothing_yet(model: Model, chunk: Chunk, parameters: Parameters) -> Running:
    """Sums over no chunk."""
    parts = anatomy(model, chunk)
    counts = {name: jnp.zeros_like(parameters[name]) for name in parts.tables}
    slope = {name: jnp.zeros_like(value) for name, value in parts.to_reals(parameters).items()}
    zero = Sums(counts, slope, jnp.zeros((), float))
    return Running(zero, jax.tree.map(jnp.zeros_like, zero))


@compiled
def with_prior(model: Model, chunk: Chunk, parameters: Parameters, running: Running) -> tuple[Sums, Array]:
    """The sums over all chunks with the contribution of the priors and factors, and the latter's log-density."""
    parts = anatomy(model, chunk)
    tables = {name: parameters[name] for name in parts.tables}

    def log_prior(tables: Parameters, reals: Parameters) -> Array:
        return density(model, parameters | tables | parts.from_reals(reals), chunk).log_prior_in_log_odds

    value, (of_tables, slope) = jax.value_and_grad(log_prior, (0, 1))(tables, parts.to_reals(parameters))
    of_prior = Sums({name: table * of_tables[name] for name, table in tables.items()}, slope, jnp.zeros((), float))
    return jax.tree.map(lambda total, lost, more: total + lost + more, *running, of_prior), value


@compiled
def next_point(model: Model, chunk: Chunk, state: EMState, settings: EMSettings) -> Parameters:
    """Return :func:`.climber.point`; of the chunk only the shapes matter."""
    return climber.point(anatomy(model, chunk), state, settings)


@compiled
def after_look(model: Model, chunk: Chunk, state: EMState, at: Parameters, look: Look, settings: EMSettings) -> EMState:
    """Return the state of :func:`.climber.step`; of the chunk only the shapes matter."""
    return climber.step(anatomy(model, chunk), state, at, look, settings)


@compiled
def start_sums(model: Model, chunk: Chunk, key: Array) -> list[Array]:
    """The chunk's part of the sums over all tasks that the story's starting values need."""
    with collected() as noted:
        starting_point(model, chunk, key)
    return noted


@compiled
def start_from(model: Model, chunk: Chunk, key: Array, totals: list[Array]) -> Parameters:
    """The story's starting values, from the totals of these sums; of the chunk only the shapes matter."""
    with given(totals):
        return starting_point(model, chunk, key)


def start(model: Model, source: Source, key: Array) -> Parameters:
    """The story's starting values, as from all the data at once."""
    first = source.first
    totals = [jnp.zeros(total.shape, total.dtype) for total in jax.eval_shape(start_sums, model, first, key)]
    if totals:
        for chunk in source:
            totals = jax.tree.map(jnp.add, totals, start_sums(model, chunk, key))
    return start_from(model, first, key, totals)


def run(
    model: Model,
    source: Source,
    key: Array,
    settings: EMSettings,
    *,
    progress: bool,
    keep: Checkpoints = NOWHERE,
    after_pass: Callable[[EMState], None] = lambda state: None,
) -> Outcome:
    """Run EM until it converges.

    Args:
        model: the story.
        source: the chunks.
        key: of random starting values.
        settings: ``max_iterations``, ``tolerance``, ``learning_rate``, ``halvings`` and ``accelerate``.
        progress: show a bar.
        keep: where the fit's state is kept.
        after_pass: called with the state after each pass.

    Raises:
        FloatingPointError: the log-posterior is not finite.
    """
    first = source.first

    def passed(state: EMState, history: list[float]) -> None:
        keep.note(STAGE, partial(_noted, state, tuple(history)), milestone=True, over=PART)
        after_pass(state)

    with progress_bar("EM over chunks", settings.max_iterations, show=progress) as bar:
        tell = partial(_tell, bar, len(source))
        history: list[float] = []
        if (earlier := keep.found(STAGE)) is None:
            tell(0, None, 0)
            parameters = start(model, source, key)
            votes = one_pass(model, source, parameters, on_votes=True, tell=partial(tell, 0, None), keep=keep)
            # The step to the tables' M-step towards the votes is not judged, as in memory.
            parameters |= tables_mode(votes.sums.counts, parameters)
            state = em.state_at(model, first, parameters, accelerated=settings.accelerate)
            passed(state, history)
        else:
            like = state_shapes(model, first, accelerated=settings.accelerate)
            state = jax.tree.map(jnp.asarray, unpacked(earlier["arrays"], like))
            history = list(earlier["history"])
        while not climber.finished(state, settings):
            at = next_point(model, first, state, settings)
            tell_pass = partial(tell, len(history), tuple(history))
            found = one_pass(model, source, at, on_votes=False, tell=tell_pass, keep=keep)
            state = after_look(model, first, state, at, _look(found), settings)
            if int(state.iteration) == len(history):
                history.append(float(state.look.log_posterior) + float(state.look.remainder))
                em.check_finite(history)
            passed(state, history)
            tell(int(state.iteration), tuple(history), 0)
    draws = {name: np.asarray(value)[None, None] for name, value in state.parameters.items()}
    warnings = em.not_converged(float(state.settled), settings)
    return Outcome(draws, {}, np.array(history), {}, warnings, is_point=True)


def _look(found: Passed) -> Look:
    """Return a pass as the climber reads it, with the log-posterior in two numbers of the programs' precision."""
    value = jnp.asarray(found.log_posterior, float)
    remainder = found.log_posterior - float(value) if np.isfinite(found.log_posterior) else 0.0
    return Look(found.sums.counts, found.sums.slope, value, jnp.asarray(remainder, float), {})


def _noted(state: EMState, history: tuple[float, ...]) -> Nest:
    """Return a checkpoint of EM between two passes."""
    return {"arrays": packed(state), "history": history}


def one_pass(
    model: Model,
    source: Source,
    parameters: Parameters,
    *,
    on_votes: bool,
    tell: Callable[[int], None],
    keep: Checkpoints = NOWHERE,
    stage: str = PART,
) -> Passed:
    """Read all chunks once, from the first or from where an earlier process was in this pass, the ``stage``."""
    first, begin = source.first, 0
    running = nothing_yet(model, first, parameters)
    if (found := keep.found(stage)) is not None:
        running, begin = unpacked(found["running"], running), found["done"]
    add = partial(add_chunk, on_votes=True) if on_votes else source.add
    for done, chunk in enumerate(source.in_order(range(begin, len(source))), start=begin + 1):
        running = add(model, chunk, parameters, running)
        jax.block_until_ready(running.total.log_likelihood)  # no more than two chunks are in memory
        keep.note(stage, partial(_noted_part, running, done), lasting=False)
        tell(done)
    sums, log_prior = with_prior(model, first, parameters, running)
    log_likelihood = float(running.total.log_likelihood) + float(running.lost.log_likelihood)
    return Passed(sums, running.total, log_likelihood + float(log_prior))


def _noted_part(running: Running, done: int) -> Nest:
    """What a checkpoint has of a pass after so many chunks: copies, since the sums' memory is used again."""
    return {"running": [array.copy() for array in packed(running)], "done": done}


def _tell(
    bar: Callable[[int, str], None], n_chunks: int, steps: int, history: tuple[float, ...] | None, done: int
) -> None:
    said = f"log-posterior {history[-1]:,.2f}, " if history else "start, " if history is None else ""
    bar(steps, f"{said}chunk {done:,} of {n_chunks:,}")


def parameter_shapes(model: Model, chunk: Chunk) -> Parameters:
    """Return shapes and types of the parameters' arrays, by site."""

    def parameters(key: Array) -> Parameters:
        totals = [jnp.zeros(total.shape, total.dtype) for total in jax.eval_shape(start_sums, model, chunk, key)]
        return start_from(model, chunk, key, totals)

    return jax.eval_shape(parameters, jax.random.key(0))


def state_shapes(model: Model, chunk: Chunk, *, accelerated: bool) -> EMState:
    """Return shapes and types of the arrays of a state."""
    at = partial(em.state_at, model, chunk, accelerated=accelerated)
    return jax.eval_shape(lambda values: at(values), parameter_shapes(model, chunk))
