r"""The No-U-Turn sampler (Hoffman & Gelman 2014) on a story with its true labels summed out.

A chain is a pure :func:`init` and :func:`advance` over NumPyro's immutable ``HMCState``; one compiled program takes any
number of steps, in warmup and after it. On a CPU each chain runs in a thread, and JAX needs no more than its one CPU
device for them; on a GPU they run as one vectorised program. The draws do not depend on the number of cores.

The sampler moves in the coordinates of :mod:`.coordinates`, in which tables of many rows need few and long steps.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpyro.infer import NUTS
from numpyro.infer.hmc import HMCState
from numpyro.infer.util import log_density

from ...data import Annotations
from ...data.sharding import ShardedAnnotations, on_this_host
from ..densities.enumerated import Parameters, density
from ..densities.marginals import marginal_program
from ..densities.model import Model
from ..densities.programs import compiled
from ..densities.sites import parameter_names
from . import em
from .checkpoints import NO_CHECKPOINTS, Checkpoints, packed, unpacked
from .coordinates import Coordinates, coordinates_near, origin, place
from .interruptions import heeded
from .outcome import Outcome
from .progress import progress_bar
from .settings import EMSettings, NUTSSettings, refuse_unused, unused_at_the_start

CHUNK = 50  # steps of a chain between two looks at the progress
STAGE = "chains"  # of a checkpoint

TARGET_ACCEPT = NUTSSettings().target_accept
HALF_PERIOD = 1.03 * np.pi  # a little more, since directions differ
STRETCH = 1.14  # at the most: longer steps are accepted less often

FIELDS = {
    "diverging": "diverging",
    "energy": "energy",
    "accept_prob": "acceptance_rate",
    "num_steps": "n_steps",
    "adapt_state.step_size": "step_size",
}
"""NumPyro's names of the sampler's statistics, and ArviZ's."""


class Start(NamedTuple):
    """The density and the start of chains: one argument of the compiled functions. Made by :func:`start_at`."""

    annotations: Annotations
    coordinates: Coordinates
    fixed: Parameters  # sites that are held where they are
    target_accept: Array | float


class Rows(NamedTuple):
    """Draws and statistics of consecutive steps of a chain, ``(step, ...)`` each."""

    draws: Parameters
    stats: dict[str, Array]  # by ArviZ's names


def run(
    model: Model,
    annotations: Annotations,
    key: Array,
    settings: NUTSSettings,
    *,
    progress: bool,
    start: Parameters | None = None,
    keep: Checkpoints = NO_CHECKPOINTS,
) -> Outcome:
    """Sample the posterior, each chain from the EM solution moved off the edges of the probability tables.

    Where ``keep`` says so, an interruption (Ctrl-C) ends sampling with the draws so far and a warning.

    Raises:
        FloatingPointError: the log-density is not finite where the chains start.
        KeyboardInterrupt: before there is a draw.
        ValueError: for an option that this story does not use.
    """
    refuse_unused(settings, unused_at_the_start(has_network=model.has_network))
    em_key, key = jax.random.split(key)
    of_em = start_settings(settings)
    before = keep.within("before")
    values = em.solve(model, annotations, em_key, of_em, progress=progress, start=start, keep=before).parameters
    fixed = {name: values[name] for name in parameter_names(model, annotations).without_posterior}
    begin = start_at(model, annotations, values, fixed, settings.target_accept)
    keys = jax.random.split(key, settings.chains)
    with progress_bar("NUTS", settings.chains * (settings.warmup + settings.draws), show=progress) as tell:
        said = partial(_tell, tell)
        rows, facts = _until_interrupted(settings, keep, model, begin, keys, said)
    stats = {name: np.asarray(value) for name, value in rows.stats.items()}
    stats["tree_depth"] = np.log2(stats["n_steps"]).astype(int) + 1
    draws = {name: on_this_host(value) for name, value in rows.draws.items()}
    return Outcome(draws, {name: on_this_host(value) for name, value in fixed.items()}, np.zeros(0), stats, facts)


def _tell(tell: Callable[[int, str], None], done: int) -> None:
    tell(done, "draws of all chains, with warmup")


def _until_interrupted(
    settings: NUTSSettings,
    keep: Checkpoints,
    model: Model,
    start: Start,
    keys: Array,
    tell: Callable[[int], None],
) -> tuple[Rows, dict[str, Any]]:
    """The rows of all chains; or where sampling was interrupted those so far, with the fact of how many they are."""
    try:
        return sample_chains(model, start, keys, settings, tell, keep), {}
    except Interrupted as stop:
        rows = stop.rows
        if rows is None or not keep.interrupts:
            raise
    n_chains, n_draws = rows.stats["lp"].shape
    return rows, {"interrupted": {"draws": n_draws, "chains": n_chains, "how_to_go_on": keep.how_to_go_on}}


def sample_chains(
    model: Model,
    start: Start,
    keys: Array,
    settings: NUTSSettings,
    tell: Callable[[int], None] = lambda done: None,
    keep: Checkpoints = NO_CHECKPOINTS,
) -> Rows:
    """Rows of one chain for each key, ``(chain, draw, ...)``; ``tell`` hears how many steps all of them have taken."""
    several = isinstance(start.annotations, ShardedAnnotations)  # whose devices may run only one program at a time
    sample = _in_threads if jax.default_backend() == "cpu" and not several else _vectorised
    return sample(model, start, keys, settings, tell, keep)


def start_settings(settings: NUTSSettings) -> EMSettings:
    """Options of the EM that finds where the chains start."""
    return EMSettings(
        max_iterations=settings.max_iterations,
        tolerance=settings.tolerance,
        epochs=settings.epochs,
        network_rate=settings.network_rate,
    )


def start_at(
    model: Model,
    annotations: Annotations,
    values: Parameters,
    fixed: Parameters | None = None,
    target_accept: Array | float = TARGET_ACCEPT,
) -> Start:
    """Return the start of chains at ``values``, with the sites ``fixed`` held where they are."""
    fixed = fixed or {}
    return Start(annotations, _coordinates_near(model, annotations, values, fixed), fixed, target_accept)


_coordinates_near = compiled(coordinates_near)


def init(model: Model, start: Start, key: Array, settings: NUTSSettings) -> HMCState:
    """The state of a chain before its first step."""
    return _kernel(model, start, key, settings)[1]


def step(model: Model, start: Start, state: HMCState, settings: NUTSSettings) -> HMCState:
    """Take one step of a chain, for use in compiled functions; the first ``settings.warmup`` of a chain adapt it."""
    kernel, _ = _kernel(model, start, jax.random.key(0), settings)
    return _next(kernel, state, settings)


def parameters_at(model: Model, start: Start, state: HMCState) -> Parameters:
    """The parameters of the story where a chain is."""
    return place(model, start.annotations, start.coordinates, state.z).parameters


def advance(
    model: Model, start: Start, state: HMCState, n_steps: Array | int, settings: NUTSSettings
) -> tuple[HMCState, Rows]:
    """Take ``n_steps`` steps of a chain, at most :data:`CHUNK`; the first ``settings.warmup`` of a chain adapt it.

    Returns:
        the state, and what each step gave ``(CHUNK, ...)``, zeros for steps not taken.
    """
    kernel, _ = _kernel(model, start, jax.random.key(0), settings)

    def row(state: HMCState) -> Rows:
        stats = {ours: attrgetter(name)(state) for name, ours in FIELDS.items()}
        parameters, log_det, _ = place(model, start.annotations, start.coordinates, state.z)
        stats["lp"] = density(model, parameters | start.fixed, start.annotations).log_posterior + log_det
        return Rows(parameters, stats)

    def body(i: Array, carry: tuple[HMCState, Rows]) -> tuple[HMCState, Rows]:
        state, rows = carry
        state = _next(kernel, state, settings)
        return state, jax.tree.map(lambda values, value: values.at[i].set(value), rows, row(state))

    empty = jax.tree.map(lambda value: jnp.zeros((CHUNK, *value.shape), value.dtype), jax.eval_shape(row, state))
    return jax.lax.fori_loop(0, n_steps, body, (state, empty))


def _next(kernel: NUTS, state: HMCState, settings: NUTSSettings) -> HMCState:
    state = kernel.sample(state, (), {})
    adapted = state.adapt_state
    step_size = jnp.where(state.i == settings.warmup, fitting(adapted.step_size), adapted.step_size)
    return state._replace(adapt_state=adapted._replace(step_size=step_size))


def fitting(step_size: Array) -> Array:
    r"""The step size itself, or one at most :data:`STRETCH` times as long with which trees of half the size turn.

    In the sampler's coordinates all directions have a period near :math:`2 \pi`. A tree of :math:`2^d - 1` steps that
    ends just before half a period is doubled to just before a whole one: that costs twice as much for nothing, and past
    it the ends of the tree move on in step, so that it is doubled again and again.
    """
    turning = HALF_PERIOD / (2.0 ** jnp.arange(1, 16) - 1)
    stretched = jnp.where((step_size < turning) & (turning <= STRETCH * step_size), turning, 0.0).max()
    return jnp.where(stretched > 0, stretched, step_size)


def _kernel(model: Model, start: Start, key: Array, settings: NUTSSettings) -> tuple[NUTS, HMCState]:
    """NumPyro's sampler with the first state of a chain, made anew in each compiled function.

    A sampler keeps what it sees, which may not outlive a trace.
    """
    program = marginal_program(model, start.fixed, proper=True)

    def potential(point: Array) -> Array:
        parameters, log_det, correction = place(model, start.annotations, start.coordinates, point)
        return -(log_density(program, (start.annotations,), {}, parameters)[0] + log_det + correction)

    kernel = NUTS(
        potential_fn=potential, target_accept_prob=start.target_accept, max_tree_depth=settings.max_tree_depth
    )
    return kernel, kernel.init(key, settings.warmup, origin(start.coordinates), (), {})


_init_chain = compiled(init, static=("settings",))
_advance_chain = compiled(advance, static=("settings",))


@compiled(static=("settings",))
def _init_chains(model: Model, start: Start, keys: Array, settings: NUTSSettings) -> HMCState:
    return jax.vmap(lambda key: init(model, start, key, settings))(keys)


@compiled(static=("settings",))
def _advance_chains(
    model: Model, start: Start, states: HMCState, n_steps: Array, settings: NUTSSettings
) -> tuple[HMCState, Rows]:
    return jax.vmap(lambda state: advance(model, start, state, n_steps, settings))(states)


class Chain(NamedTuple):
    """The state of a chain between two pieces of work."""

    state: HMCState
    kept: tuple[Rows, ...]  # of its draws so far, arrays of NumPy
    done: int  # steps taken, with warmup


class Interrupted(KeyboardInterrupt):
    """Sampling was interrupted; ``rows`` are what all chains have so far."""

    def __init__(self, rows: Rows | None) -> None:
        super().__init__()
        self.rows = rows


def _in_threads(
    model: Model,
    start: Start,
    keys: Array,
    settings: NUTSSettings,
    tell: Callable[[int], None],
    keep: Checkpoints = NO_CHECKPOINTS,
) -> Rows:
    """Rows of all chains, ``(chain, draw, ...)``: each thread takes some steps of the chain that is furthest behind."""
    program = _of_program(settings)
    states = [_init_chain(model, start, key, program) for key in keys]
    _check_start(np.array([state.potential_energy for state in states]))
    # Compiled here, and of an array, as threads do not have this thread's configuration of JAX, such as its precision.
    start = start._replace(target_accept=jnp.asarray(start.target_accept))
    arguments = (model, start, states[0], jnp.int32(0), program)
    advance_chain = _advance_chain.program(*arguments).lower(*arguments).compile()
    chains = [Chain(state, (), 0) for state in states]
    if (found := keep.found(STAGE)) is not None:
        chains = [_unpacked_chain(*each) for each in zip(found, chains, strict=True)]
    steps = {n: jnp.int32(n) for n in range(1, CHUNK + 1)}
    pace, total = keep.pace(CHUNK), settings.warmup + settings.draws

    def go_on(chain: Chain) -> Chain:
        n = min(pace.steps, (settings.warmup if chain.done < settings.warmup else total) - chain.done)
        with pace.timed(n):
            state, rows = advance_chain(model, start, chain.state, steps[n])
            rows = jax.tree.map(lambda values: np.asarray(values)[:n], rows)
        kept = chain.kept if chain.done < settings.warmup else (*chain.kept, rows)
        return Chain(state, kept, chain.done + n)

    running: dict[Future[Chain], int] = {}

    def collect(finished: Iterable[Future[Chain]]) -> None:
        for future in finished:
            chains[running.pop(future)] = future.result()

    n_threads = min(len(chains), os.cpu_count() or 1)
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            while True:
                free = [i for i, chain in enumerate(chains) if chain.done < total and i not in running.values()]
                behind = sorted(free, key=lambda i: chains[i].done)[: n_threads - len(running)]
                running |= {pool.submit(go_on, chains[i]): i for i in behind}
                keep.save(STAGE, partial(_packed_chains, tuple(chains)))
                if not running:
                    break
                collect(wait(running, return_when=FIRST_COMPLETED).done)
                tell(sum(chain.done for chain in chains))
        except KeyboardInterrupt:
            heeded()
            collect(wait(running).done)
            keep.save(STAGE, partial(_packed_chains, tuple(chains)))
            raise Interrupted(_so_far([chain.kept for chain in chains])) from None
    return _stacked([_joined(chain.kept, axis=0) for chain in chains])


def _packed_chains(chains: tuple[Chain, ...]) -> list[dict[str, Any]]:
    """Return a checkpoint of chains."""
    return [
        {"state": packed(chain.state), "kept": [rows._asdict() for rows in chain.kept], "done": chain.done}
        for chain in chains
    ]


def _unpacked_chain(found: dict[str, Any], first: Chain) -> Chain:
    """A chain of :func:`_packed_chains`, whose first state is that of ``first``."""
    return Chain(unpacked(found["state"], first.state), tuple(Rows(**rows) for rows in found["kept"]), found["done"])


def _so_far(kept: Sequence[tuple[Rows, ...]]) -> Rows | None:
    """The draws so far of as many chains as make the most draws, all of one length; None where there are none."""
    chains = [_joined(parts, axis=0) for parts in kept if parts]
    if not chains:
        return None
    n_draws = most_together(map(_n_draws, chains))
    chosen = [rows for rows in chains if _n_draws(rows) >= n_draws]
    return _stacked([jax.tree.map(lambda values: values[:n_draws], rows) for rows in chosen])


def most_together(lengths: Iterable[int]) -> int:
    """Return the length to which chains are cut so that those as long as this have the most draws together."""
    longest = sorted(lengths, reverse=True)
    return max(longest, key=lambda n: n * sum(length >= n for length in longest))


def _n_draws(rows: Rows) -> int:
    return len(rows.stats["lp"])


def _vectorised(
    model: Model,
    start: Start,
    keys: Array,
    settings: NUTSSettings,
    tell: Callable[[int], None],
    keep: Checkpoints = NO_CHECKPOINTS,
) -> Rows:
    """Rows of all chains, ``(chain, draw, ...)``, the chains as one program."""
    program = _of_program(settings)
    states = _init_chains(model, start, keys, program)
    _check_start(np.asarray(states.potential_energy))
    kept: tuple[Rows, ...] = ()
    done, total, pace = 0, settings.warmup + settings.draws, keep.pace(CHUNK)
    if (found := keep.found(STAGE)) is not None:
        (states, kept, done) = _unpacked_chain(found[0], Chain(states, kept, done))
    try:
        while done < total:
            is_kept = done >= settings.warmup
            n = min(pace.steps, (total if is_kept else settings.warmup) - done)
            with pace.timed(n):
                states, rows = _advance_chains(model, start, states, jnp.int32(n), program)
                rows = jax.tree.map(lambda values, n=n: on_this_host(values)[:, :n], rows)
            kept = (*kept, rows) if is_kept else kept
            done += n
            keep.save(STAGE, partial(_packed_chains, (Chain(states, kept, done),)))
            tell(done * len(keys))
    except KeyboardInterrupt:
        heeded()
        raise Interrupted(_joined(kept, axis=1) if kept else None) from None
    return _joined(kept, axis=1)


def _of_program(settings: NUTSSettings) -> NUTSSettings:
    """Settings that differ only where the compiled programs do."""
    return NUTSSettings(warmup=settings.warmup, max_tree_depth=settings.max_tree_depth)


def _check_start(potential_energy: np.ndarray) -> None:
    if not np.isfinite(potential_energy).all():
        raise FloatingPointError(
            f"the log-density is {-potential_energy[~np.isfinite(potential_energy)][0]} where the chains start, at the "
            "solution of EM; give priors without zeros, or fit by method='em' to look at the solution"
        )


def _joined(parts: Sequence[Rows], axis: int) -> Rows:
    return jax.tree.map(lambda *values: np.concatenate(values, axis), *parts)


def _stacked(parts: list[Rows]) -> Rows:
    return jax.tree.map(lambda *values: np.stack(values), *parts)
