r"""EM over annotations that stay on the disk, for every story whose parameters do not grow with the tasks.

The expected counts of the probability tables, and the slope of the log-posterior along the other parameters, are sums
over tasks (Fisher's identity, see :mod:`crowdppl.inference.engines.em`): they are added up over chunks of whole tasks,
all of one size, so that one compiled program serves all of them. One pass over the data at given parameters yields both
their log-posterior and the next step from there. A step that might lower the log-posterior is judged by the pass that
the next step needs anyway; where it did, half of the way is tried, as in memory. The result is that of
:mod:`crowdppl.inference.engines.em` by plain steps, up to the rounding of sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
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
from .ascent import Sums, sums_over_tasks, tables_mode
from .checkpoints import NOWHERE, Checkpoints, Nest, packed, unpacked
from .em import CALM, RECOVERY, not_converged
from .outcome import Outcome
from .progress import progress_bar
from .settings import EMSettings
from .stream_state import PART, STAGE, noted, went_on


class Running(NamedTuple):
    """Sums over the chunks so far, and what rounding has taken from them (Knuth's exact sum of two)."""

    total: Sums
    lost: Sums


class Passed(NamedTuple):
    """What a pass over the data found."""

    sums: Sums  # with the contribution of the priors
    of_data: Sums  # without it
    log_posterior: float


class StreamState(NamedTuple):
    """Where EM stands between two passes."""

    parameters: Parameters  # of the last pass that did not lower the log-posterior
    proposal: Parameters  # where the step from there would lead
    optimizer: optax.OptState
    share: float  # of the way to the proposal that the next pass tries
    stride: float  # share of Adam's step to take
    iteration: int  # steps taken
    changes: tuple[float, float]  # relative changes of the log-posterior in the last step but one and the last
    history: tuple[float, ...]  # log-posterior at each step's start, the last one of `parameters`

    def is_finished(self, settings: EMSettings) -> bool:
        """Whether the step to `parameters` was the last."""
        return self.iteration > 0 and (
            self.changes[0] <= settings.tolerance or self.iteration >= settings.max_iterations
        )


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
def propose(
    model: Model,
    chunk: Chunk,
    parameters: Parameters,
    sums: Sums,
    optimizer: optax.OptState,
    stride: Array,
    rate: Array,
) -> tuple[Parameters, optax.OptState]:
    """Where a step leads: the tables' exact M-step, and a step of Adam of the other parameters."""
    parts = anatomy(model, chunk)
    new = parameters | tables_mode(sums.counts, parameters)
    if not parts.bijections:
        return new, optimizer
    reals = parts.to_reals(parameters)
    moves, optimizer = optax.adam(rate).update(jax.tree.map(jnp.negative, sums.slope), optimizer, reals)
    return new | parts.from_reals(jax.tree.map(lambda real, move: real + stride * move, reals, moves)), optimizer


@compiled
def between(model: Model, chunk: Chunk, old: Parameters, new: Parameters, share: Array) -> Parameters:
    """The parameters at a share of the way from ``old`` to ``new``."""
    parts = anatomy(model, chunk)
    ends = (old, parts.to_reals(old)), (new, parts.to_reals(new))
    mixed, reals = jax.tree.map(lambda a, b: (1 - share) * a + share * b, *ends)
    return mixed | parts.from_reals(reals)


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


def has_exact_step(model: Model, chunk: Chunk) -> bool:
    """Whether the M-step is exact, so that no step lowers the log-posterior."""
    found: list[bool] = []

    def look() -> None:
        parts = anatomy(model, chunk)
        found.append(not (parts.bijections or parts.has_factors))

    jax.eval_shape(look)
    return found[0]


def run(
    model: Model,
    source: Source,
    key: Array,
    settings: EMSettings,
    *,
    progress: bool,
    keep: Checkpoints = NOWHERE,
    after_pass: Callable[[StreamState], None] = lambda state: None,
) -> Outcome:
    """Run EM until it converges.

    Args:
        model: the story.
        source: the chunks.
        key: of random starting values.
        settings: ``max_iterations``, ``tolerance``, ``learning_rate`` and ``halvings``.
        progress: show a bar.
        keep: where the fit's state is kept.
        after_pass: called with the state after each pass.

    Raises:
        FloatingPointError: the log-posterior is not finite.
    """
    first = source.first
    exact = has_exact_step(model, first)
    earlier = keep.found(STAGE)
    state = None if earlier is None else went_on(earlier, StreamState, template(model, first))

    def passed(state: StreamState) -> None:
        keep.note(STAGE, partial(noted, state), milestone=True, over=PART)
        after_pass(state)

    with progress_bar("EM over chunks", settings.max_iterations, show=progress) as bar:
        tell = partial(_tell, bar, len(source))
        if state is None:
            tell(0, None, 0)
            parameters = start(model, source, key)
            found = one_pass(model, source, parameters, on_votes=True, tell=partial(tell, 0, None), keep=keep)
            new = parameters | tables_mode(found.sums.counts, parameters)
            # The step to the tables' M-step towards the votes is not judged, as in memory.
            state = StreamState(new, new, no_moves(model, first, new), 0.0, 1.0, -1, (np.inf, np.inf), ())
            passed(state)
        while not state.is_finished(settings):
            trial = state.proposal
            if not exact and state.iteration >= 0:
                trial = between(model, first, state.parameters, state.proposal, state.share)
            tell_pass = partial(tell, max(state.iteration, 0), state.history)
            found = one_pass(model, source, trial, on_votes=False, tell=tell_pass, keep=keep)
            state = judged(model, first, state, trial, found.sums, found.log_posterior, settings, exact=exact)
            passed(state)
            tell(state.iteration, state.history, 0)
    draws = {name: np.asarray(value)[None, None] for name, value in state.parameters.items()}
    history = np.array(state.history)
    warnings = not_converged(state.changes[0], settings)
    return Outcome(draws, {}, history, {}, warnings, is_point=True)


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


def judged(
    model: Model,
    chunk: Chunk,
    state: StreamState,
    trial: Parameters,
    sums: Sums,
    log_posterior: float,
    settings: EMSettings,
    *,
    exact: bool,
) -> StreamState:
    """The state after a pass at ``trial``: the next step from there, or half of the way where it was too far.

    Raises:
        FloatingPointError: the log-posterior is not finite.
    """
    is_start, given_up = state.iteration < 0, state.share == 0
    if not exact and not is_start and not given_up and not log_posterior >= state.history[-1]:
        share = state.share / 2
        return state._replace(share=share if share > 0.5**settings.halvings else 0.0)
    iteration = state.iteration + 1
    if not np.isfinite(log_posterior):
        raise FloatingPointError(f"the log-posterior is {log_posterior} at iteration {iteration}")
    stride, optimizer = state.stride, state.optimizer
    if not exact and not is_start:
        stride = min(max(stride * max(state.share, 0.1), 1e-4) if state.share < 1 else stride * RECOVERY, 1.0)
        if given_up:
            optimizer = jax.tree.map(jnp.zeros_like, optimizer)
    change = abs((log_posterior - state.history[-1]) / log_posterior) if state.history else np.inf
    if jax.tree.leaves(sums.slope) and np.isfinite(state.changes[1]):
        change = max(change, CALM * state.changes[1])
    stride_now, rate = jnp.asarray(stride, float), jnp.asarray(settings.learning_rate, float)
    proposal, optimizer = propose(model, chunk, trial, sums, optimizer, stride_now, rate)
    changes = (state.changes[1], change)
    history = (*state.history, log_posterior)
    return StreamState(trial, proposal, optimizer, 1.0, stride, iteration, changes, history)


@compiled
def no_moves(model: Model, chunk: Chunk, parameters: Parameters) -> optax.OptState:
    """Adam's state before the first step."""
    return optax.adam(0.0).init(anatomy(model, chunk).to_reals(parameters))


def _tell(
    bar: Callable[[int, str], None], n_chunks: int, steps: int, history: tuple[float, ...] | None, done: int
) -> None:
    said = f"log-posterior {history[-1]:,.2f}, " if history else "start, " if history is None else ""
    bar(steps, f"{said}chunk {done:,} of {n_chunks:,}")


def template(model: Model, chunk: Chunk) -> Any:
    """Shapes of the arrays of a state: parameters, proposal and optimizer."""

    def shapes(key: Array) -> Any:
        totals = [jnp.zeros(total.shape, total.dtype) for total in jax.eval_shape(start_sums, model, chunk, key)]
        parameters = start_from(model, chunk, key, totals)
        return parameters, parameters, optax.adam(0.0).init(anatomy(model, chunk).to_reals(parameters))

    return jax.eval_shape(shapes, jax.random.key(0))
