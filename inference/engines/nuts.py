r"""The No-U-Turn sampler (Hoffman & Gelman 2014) on a story with its true labels summed out.

A chain is a pure :func:`init` and :func:`advance` over NumPyro's immutable ``HMCState``; one compiled program takes any
number of steps, in warmup and after it. On a CPU each chain runs in a thread, and JAX needs no more than its one CPU
device for them; on a GPU they run as one vectorised program. The draws do not depend on the number of cores.

The sampler moves in the coordinates of :mod:`.coordinates`, in which tables of many rows need few and long steps.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from operator import attrgetter
from threading import Event
from typing import NamedTuple

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
from ..densities.sites import constants
from . import em
from .coordinates import Coordinates, coordinates_near, origin, place
from .outcome import Outcome
from .progress import progress_bar
from .settings import EMSettings, NUTSSettings
from .unused_options import has_network, refuse_unused, unused_at_the_start

CHUNK = 50  # steps of a chain between two looks at the progress

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
    """What is sampled, and from where: one argument of the compiled functions. Made by :func:`start_at`."""

    annotations: Annotations
    coordinates: Coordinates
    fixed: Parameters  # sites that are held where they are
    target_accept: Array | float


class Rows(NamedTuple):
    """What consecutive steps of a chain gave, ``(step, ...)`` each."""

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
) -> Outcome:
    """Sample the posterior, each chain from the EM solution moved off the edges of the probability tables.

    Raises:
        FloatingPointError: the log-density is not finite where the chains start.
        ValueError: for an option that this story does not use.
    """
    refuse_unused(settings, unused_at_the_start(has_network=has_network(model)))
    em_key, key = jax.random.split(key)
    values = em.solve(model, annotations, em_key, start_settings(settings), progress=progress, start=start).parameters
    fixed = {name: values[name] for name in constants(model, annotations)}
    begin = start_at(model, annotations, values, fixed, settings.target_accept)
    keys = jax.random.split(key, settings.chains)
    with progress_bar("NUTS", settings.chains * (settings.warmup + settings.draws), show=progress) as tell:
        rows = sample_chains(model, begin, keys, settings, lambda done: tell(done, "draws of all chains, with warmup"))
    stats = {name: np.asarray(value) for name, value in rows.stats.items()}
    stats["tree_depth"] = np.log2(stats["n_steps"]).astype(int) + 1
    draws = {name: on_this_host(value) for name, value in rows.draws.items()}
    return Outcome(draws, {name: on_this_host(value) for name, value in fixed.items()}, np.zeros(0), stats, ())


def sample_chains(
    model: Model, start: Start, keys: Array, settings: NUTSSettings, tell: Callable[[int], None] = lambda done: None
) -> Rows:
    """Rows of one chain for each key, ``(chain, draw, ...)``; ``tell`` hears how many steps all of them have taken."""
    several = isinstance(start.annotations, ShardedAnnotations)  # whose devices may run only one program at a time
    sample = _in_threads if jax.default_backend() == "cpu" and not several else _vectorised
    return sample(model, start, keys, settings, tell)


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
    """What chains need that start at ``values``, with the sites ``fixed`` held where they are."""
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


def _in_threads(model: Model, start: Start, keys: Array, settings: NUTSSettings, tell: Callable[[int], None]) -> Rows:
    """Rows of all chains, ``(chain, draw, ...)``, each chain in a thread of its own."""
    program = _of_program(settings)
    states = [_init_chain(model, start, key, program) for key in keys]
    _check_start(np.array([state.potential_energy for state in states]))
    # Compiled here, as threads do not have this thread's configuration of JAX, such as its precision.
    arguments = (model, start, states[0], jnp.int32(0), program)
    advance_chain = _advance_chain.program(*arguments).lower(*arguments).compile()
    stages = list(_stages(settings))
    steps = {n: jnp.int32(n) for n, _ in stages}
    done, stop = [0] * len(states), Event()

    def sample(chain: int) -> list[Rows]:
        state, kept = states[chain], []
        for n, is_kept in stages:
            if stop.is_set():
                break
            state, rows = advance_chain(model, start, state, steps[n])
            if is_kept:
                kept.append(jax.tree.map(lambda values, n=n: np.asarray(values)[:n], rows))
            done[chain] += n
            tell(sum(done))
        return kept

    with ThreadPoolExecutor(min(len(states), os.cpu_count() or 1)) as pool:
        try:
            chains = list(pool.map(sample, range(len(states))))
        finally:
            stop.set()  # after an error or an interruption the other chains end with their chunk
    return _stacked([_joined(kept, axis=0) for kept in chains])


def _vectorised(model: Model, start: Start, keys: Array, settings: NUTSSettings, tell: Callable[[int], None]) -> Rows:
    """Rows of all chains, ``(chain, draw, ...)``, the chains as one program."""
    program = _of_program(settings)
    states = _init_chains(model, start, keys, program)
    _check_start(np.asarray(states.potential_energy))
    kept, done = [], 0
    for n, is_kept in _stages(settings):
        states, rows = _advance_chains(model, start, states, jnp.int32(n), program)
        if is_kept:
            kept.append(jax.tree.map(lambda values, n=n: on_this_host(values)[:, :n], rows))
        done += n * len(keys)
        tell(done)
    return _joined(kept, axis=1)


def _of_program(settings: NUTSSettings) -> NUTSSettings:
    """Settings that differ only where the compiled programs do."""
    return NUTSSettings(warmup=settings.warmup, max_tree_depth=settings.max_tree_depth)


def _stages(settings: NUTSSettings) -> Iterator[tuple[int, bool]]:
    """Numbers of steps to take at a time, and whether their draws are kept."""
    for total, is_kept in ((settings.warmup, False), (settings.draws, True)):
        for begin in range(0, total, CHUNK):
            yield min(CHUNK, total - begin), is_kept


def _check_start(potential_energy: np.ndarray) -> None:
    if not np.isfinite(potential_energy).all():
        raise FloatingPointError(
            f"the log-density is {-potential_energy[~np.isfinite(potential_energy)][0]} where the chains start, at the "
            "solution of EM; give priors without zeros, or fit by method='em' to look at the solution"
        )


def _joined(parts: list[Rows], axis: int) -> Rows:
    return jax.tree.map(lambda *values: np.concatenate(values, axis), *parts)


def _stacked(parts: list[Rows]) -> Rows:
    return jax.tree.map(lambda *values: np.stack(values), *parts)
