r"""The No-U-Turn sampler (Hoffman & Gelman 2014) on a story with its true labels summed out.

A chain is a pure :func:`init` and :func:`advance` over NumPyro's immutable ``HMCState``; one compiled program takes any
number of steps, in warmup and after it. On a CPU each chain runs in a thread, and JAX needs no more than its one CPU
device for them; on a GPU they run as one vectorised program. The draws do not depend on the number of cores.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from operator import attrgetter
from threading import Event
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpyro.infer import NUTS, init_to_value
from numpyro.infer.hmc import HMCState
from numpyro.infer.util import potential_energy

from ...data import Annotations
from ...data.padding import PaddedAnnotations
from ...data.sharding import ShardedAnnotations, on_this_host
from ..densities.enumerated import Parameters
from ..densities.marginals import marginal_program
from ..densities.model import Model
from ..densities.sites import constants
from . import em
from .outcome import Outcome
from .progress import progress_bar
from .settings import EMSettings, NUTSSettings
from .unused_options import has_network, refuse_unused, unused_at_the_start

CHUNK = 50  # steps of a chain between two looks at the progress

FIELDS = {
    "diverging": "diverging",
    "energy": "energy",
    "accept_prob": "acceptance_rate",
    "num_steps": "n_steps",
    "potential_energy": "lp",
    "adapt_state.step_size": "step_size",
}
"""NumPyro's names of the sampler's statistics, and ArviZ's."""


class Start(NamedTuple):
    """What is sampled, and from where: one argument of the compiled functions."""

    annotations: Annotations
    values: Parameters  # where the chains start
    fixed: Parameters  # sites that are held where they are
    target_accept: Array | float = NUTSSettings().target_accept


class Rows(NamedTuple):
    """What consecutive steps of a chain gave, ``(step, ...)`` each."""

    draws: Parameters
    stats: dict[str, Array]  # by ArviZ's names


def run(model: Model, annotations: Annotations, key: Array, settings: NUTSSettings, *, progress: bool) -> Outcome:
    """Sample the posterior, each chain from the EM solution moved off the edges of the probability tables.

    Raises:
        FloatingPointError: the log-density is not finite where the chains start.
        ValueError: for an option that this story does not use.
    """
    refuse_unused(settings, unused_at_the_start(has_network=has_network(model)))
    em_key, key = jax.random.split(key)
    values = em.interior_solution(model, annotations, em_key, start_settings(settings), progress=progress)
    fixed = {name: values[name] for name in constants(model, annotations)}
    start = Start(annotations, values, fixed, settings.target_accept)
    keys = jax.random.split(key, settings.chains)
    several = isinstance(annotations, ShardedAnnotations)  # whose devices may run only one program at a time
    sample = _in_threads if jax.default_backend() == "cpu" and not several else _vectorised
    with progress_bar("NUTS", settings.chains * (settings.warmup + settings.draws), show=progress) as tell:
        rows = sample(model, start, keys, settings, lambda done: tell(done, "draws of all chains, with warmup"))
    stats = {name: np.asarray(value) for name, value in rows.stats.items()}
    stats["lp"] = -stats["lp"]
    stats["tree_depth"] = np.log2(stats["n_steps"]).astype(int) + 1
    draws = {name: on_this_host(value) for name, value in rows.draws.items() if name not in start.fixed}
    return Outcome(draws, {name: on_this_host(value) for name, value in start.fixed.items()}, np.zeros(0), stats, ())


def start_settings(settings: NUTSSettings) -> EMSettings:
    """Options of the EM that finds where the chains start."""
    return EMSettings(
        max_iterations=settings.max_iterations,
        tolerance=settings.tolerance,
        epochs=settings.epochs,
        network_rate=settings.network_rate,
    )


def make_kernel(model: Model, values: Parameters, fixed: Parameters, settings: NUTSSettings) -> NUTS:
    """NumPyro's sampler of the story, to start at ``values``, with the sites ``fixed`` held where they are."""
    return NUTS(
        marginal_program(model, fixed, proper=True),
        init_strategy=init_to_value(values=values),
        target_accept_prob=settings.target_accept,
        max_tree_depth=settings.max_tree_depth,
    )


def init(model: Model, start: Start, key: Array, settings: NUTSSettings) -> HMCState:
    """The state of a chain before its first step."""
    return _kernel(model, start, key, settings)[1]


def advance(
    model: Model, start: Start, state: HMCState, n_steps: Array | int, settings: NUTSSettings
) -> tuple[HMCState, Rows]:
    """Take ``n_steps`` steps of a chain, at most :data:`CHUNK`; the first ``settings.warmup`` of a chain adapt it.

    Returns:
        the state, and what each step gave ``(CHUNK, ...)``, zeros for steps not taken.
    """
    kernel, _ = _kernel(model, start, jax.random.key(0), settings)
    constrain = kernel.postprocess_fn((start.annotations,), {})

    def row(state: HMCState) -> Rows:
        stats = {ours: attrgetter(name)(state) for name, ours in FIELDS.items()}
        if isinstance(start.annotations, PaddedAnnotations):  # whose parameters have a potential of their own
            program = marginal_program(model, start.fixed)
            stats["lp"] = potential_energy(program, (start.annotations,), {}, state.z)
        return Rows(constrain(state.z), stats)

    def body(i: Array, carry: tuple[HMCState, Rows]) -> tuple[HMCState, Rows]:
        state, rows = carry
        state = kernel.sample(state, (start.annotations,), {})
        return state, jax.tree.map(lambda values, value: values.at[i].set(value), rows, row(state))

    empty = jax.tree.map(lambda value: jnp.zeros((CHUNK, *value.shape), value.dtype), jax.eval_shape(row, state))
    return jax.lax.fori_loop(0, n_steps, body, (state, empty))


def _kernel(model: Model, start: Start, key: Array, settings: NUTSSettings) -> tuple[NUTS, HMCState]:
    """NumPyro's sampler with the first state of a chain, made anew in each compiled function.

    A sampler keeps what it sees, which may not outlive a trace.
    """
    accepting = settings._replace(target_accept=start.target_accept)
    kernel = make_kernel(model, start.values, start.fixed, accepting)
    return kernel, kernel.init(key, settings.warmup, None, (start.annotations,), {})


_init_chain = partial(jax.jit, static_argnames="settings")(init)
_advance_chain = partial(jax.jit, static_argnames="settings")(advance)


@partial(jax.jit, static_argnames="settings")
def _init_chains(model: Model, start: Start, keys: Array, settings: NUTSSettings) -> HMCState:
    return jax.vmap(lambda key: init(model, start, key, settings))(keys)


@partial(jax.jit, static_argnames="settings")
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
    compiled = _advance_chain.lower(model, start, states[0], jnp.int32(0), program).compile()
    stages = list(_stages(settings))
    steps = {n: jnp.int32(n) for n, _ in stages}
    done, stop = [0] * len(states), Event()

    def sample(chain: int) -> list[Rows]:
        state, kept = states[chain], []
        for n, is_kept in stages:
            if stop.is_set():
                break
            state, rows = compiled(model, start, state, steps[n])
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
