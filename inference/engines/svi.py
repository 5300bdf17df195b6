"""Stochastic variational inference (Hoffman et al. 2013) on a story with its true labels summed out.

The engine is a pure :func:`init` and :func:`step` over NumPyro's immutable ``SVIState``; :func:`advance` takes many
steps in one compiled program.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import optax
import pandas as pd
from jax import Array
from numpyro import handlers
from numpyro.infer import SVI, init_to_value
from numpyro.infer.autoguide import (
    AutoDelta,
    AutoGuide,
    AutoLowRankMultivariateNormal,
    AutoMultivariateNormal,
    AutoNormal,
)
from numpyro.infer.svi import SVIState

from ...data import Annotations, unknown_name
from ...data.sharding import on_this_host
from ..densities.enumerated import Parameters
from ..densities.marginals import marginal_program
from ..densities.model import Model
from ..densities.padded_sites import PaddingWeighsNothing
from ..densities.programs import compiled
from ..densities.sites import constants, parameter_dims
from . import em
from . import minibatches as batches
from .bound import OrderedELBO
from .checkpoints import NOWHERE, Checkpoints, packed, unpacked
from .outcome import Outcome, as_point
from .progress import progress_bar
from .settings import EMSettings, SVISettings
from .unused_options import has_network, refuse_unused, unused_by_svi

CHUNK = 100  # steps between two looks at the progress
STAGE = "svi"  # of a checkpoint
FEWEST_STEPS = 100  # from which on the losses say whether they still fall
FEW_LOST, MOST_LOST = 5, 0.01  # steps not taken for a loss that is not finite, by number and share: more are an error
FACTORISED = ("normal", "delta")  # guides in which padded tasks and workers can be left out of the loss

GUIDES: dict[str, Callable[..., AutoGuide]] = {
    "normal": AutoNormal,
    "multivariate_normal": AutoMultivariateNormal,
    "low_rank": AutoLowRankMultivariateNormal,
    "delta": AutoDelta,
}


class Program(NamedTuple):
    """The options that compiled programs depend on; of the others they take any value."""

    guide: str | Callable[..., AutoGuide]
    particles: int


class Rates(NamedTuple):
    """Of Adam, at the start; after the first ``half`` of the steps they fall, to a tenth in as many steps again."""

    learning: Array | float
    network: Array | float
    half: Array | int


class Problem(NamedTuple):
    """What is fitted, and from where: one argument of all compiled functions."""

    model: Model
    annotations: Annotations
    values: Parameters  # where the guide starts
    weights: Parameters  # of those the ones that are optimised
    plan: batches.Batches | None
    rates: Rates
    weight: Array | float = 1.0  # of the annotations' likelihood, where they are a part of the data

    def batch(self, key: Array) -> tuple[Annotations, Array | None]:
        """Return the tasks of one step, and which they are; None for all."""
        return (self.annotations, None) if self.plan is None else batches.draw(self.annotations, self.plan, key)


def run(
    model: Model,
    annotations: Annotations,
    key: Array,
    settings: SVISettings,
    *,
    progress: bool,
    start: Parameters | None = None,
    keep: Checkpoints = NOWHERE,
) -> Outcome:
    """Fit the guide, from the EM solution, and draw from it.

    Raises:
        UnknownNameError: for a guide of that name.
        ValueError: for an option that this story or guide does not use; for a minibatch larger than the data, or with a
            story that has parameters by task and a guide that is not mean field; for more than one particle with a
            network that keeps running statistics.
        FloatingPointError: where the loss is not finite, but for a few steps, with the first: :func:`check_losses`.
    """
    names, without_posterior = parameter_dims(model, annotations), constants(model, annotations)
    is_delta = is_a_point(settings.guide)
    weights = without_posterior & set(names)
    refuse_unused(
        settings,
        unused_by_svi(has_network=has_network(model), has_weights=bool(weights), is_point=is_delta),
    )
    if settings.particles > 1 and (kept := without_posterior - set(names)):
        raise ValueError(
            f"particles={settings.particles}: the network keeps running statistics such as {min(kept)!r}, which one "
            "draw of the guide a step updates; give particles=1"
        )
    em_key, init_key, batch_key, draw_key = jax.random.split(key, 4)
    plan = _plan(model, annotations, settings)
    settings_em = EMSettings(tolerance=1e-5, epochs=settings.epochs, network_rate=settings.network_rate)
    before = keep.within("before")
    of_em = em.solve(model, annotations, em_key, settings_em, progress=progress, start=start, keep=before)
    values = of_em.parameters
    rates = rates_of(settings)
    weights_start = {name: values[name] for name in names if name in weights}
    problem = Problem(model, annotations, values, weights_start, plan, rates)
    program = Program(settings.guide, settings.particles)
    state = init(problem, init_key, program)
    losses: list[float] = []
    if (earlier := keep.found(STAGE)) is not None:
        state, losses = unpacked(earlier["state"], state), earlier["losses"].tolist()
    pace = keep.pace(CHUNK)
    with progress_bar("SVI", settings.max_iterations, show=progress) as tell:
        while len(losses) < settings.max_iterations:
            first = len(losses) % CHUNK  # of the steps that share a key
            n_steps = min(pace.steps, CHUNK - first, settings.max_iterations - len(losses))
            key = jax.random.fold_in(batch_key, len(losses) - first)
            with pace.timed(n_steps):
                state, found = advance(problem, state, key, n_steps, program, first)
                losses += np.asarray(found)[:n_steps].tolist()
            check_losses(losses)
            tell(len(losses), f"loss {losses[-1]:,.2f}")
            keep.note(STAGE, partial(_noted, state, losses, len(losses)))
    fitted, sampled = draw(problem, state, draw_key, program, 1 if is_delta else settings.draws)
    draws, is_point = as_point(
        {name: on_this_host(value)[None] for name, value in sampled.items() if name in names}, is_point=is_delta
    )
    fitted |= {name: holder["value"] for name, holder in (state.mutable_state or {}).items()}
    fixed = {name: np.asarray(value) for name, value in fitted.items() if name in without_posterior}
    return Outcome(draws, fixed, without_gaps(losses), {}, loss_warnings(losses, settings.tolerance), is_point)


def _noted(state: SVIState, losses: list[float], n: int) -> dict[str, Any]:
    """What a checkpoint has of SVI after ``n`` steps, to whose losses more may have come since."""
    return {"state": packed(state), "losses": np.array(losses[:n])}


def rates_of(settings: SVISettings) -> Rates:
    """The rates of Adam over ``max_iterations`` steps."""
    return Rates(settings.learning_rate, settings.network_rate, max(settings.max_iterations // 2, 1))


def _engine(problem: Problem, program: Program, key: Array) -> tuple[SVI, AutoGuide, SVIState]:
    """NumPyro's engine and guide with their first state, made anew in each compiled function.

    They keep what they see, which may not outlive a trace.
    """
    marginal = marginal_program(problem.model, train=True, weight=problem.weight)
    own = problem.plan is not None and bool(_by_task(problem.model, problem.annotations))
    options: dict[str, Any] = {"create_plates": _plate_of_tasks} if own else {}
    guide = _guide(program.guide)(marginal, init_loc_fn=init_to_value(values=problem.values), **options)

    def without_padding(annotations: Annotations) -> Parameters:
        with PaddingWeighsNothing(annotations):
            return guide(annotations)

    optimizer = _optimizer(problem.rates, problem.weights)
    loss = OrderedELBO(num_particles=program.particles)
    svi = SVI(_at_tasks(marginal), _at_tasks(without_padding), optimizer, loss)
    first = problem.annotations if own else problem.batch(key)[0]  # the guide has all tasks' own parameters
    return svi, guide, svi.init(key, first, init_params=problem.weights)


def _plate_of_tasks(annotations: Annotations) -> numpyro.plate:
    """The story's plate of the tasks, of which a batch has some."""
    n_tasks = annotations.n_tasks
    return numpyro.plate("task", annotations.population or n_tasks, subsample_size=n_tasks, dim=-1)


def _at_tasks(program: Callable[[Annotations], Any]) -> Callable[..., Any]:
    """The program of annotations and of which tasks they have, as the plate of the tasks is told."""

    def at_tasks(annotations: Annotations, chosen: Array | None = None) -> Any:
        with handlers.substitute(data={} if chosen is None else {"task": chosen}):
            return program(annotations)

    return at_tasks


@compiled(static=("program",))
def init(problem: Problem, key: Array, program: Program) -> SVIState:
    """Return the state before the first step."""
    return _engine(problem, program, key)[2]


def step(problem: Problem, state: SVIState, key: Array, program: Program) -> tuple[SVIState, Array]:
    """Take one step of Adam down the negative evidence lower bound; return the state and the loss before it.

    Where the loss or its gradient is not finite, nothing is changed.
    """
    svi, _, _ = _engine(problem, program, key)
    return svi.stable_update(state, *problem.batch(key))


@compiled(static=("program",))
def advance(
    problem: Problem, state: SVIState, key: Array, n_steps: Array | int, program: Program, first: Array | int = 0
) -> tuple[SVIState, Array]:
    """Take ``n_steps`` steps, at most :data:`CHUNK`: of those that share a key, from the one of number ``first`` on.

    Returns:
        the state after them, and the loss before each ``(CHUNK,)``, NaN for steps not taken.
    """

    def body(i: Array, carry: tuple[SVIState, Array]) -> tuple[SVIState, Array]:
        state, loss = step(problem, carry[0], jax.random.fold_in(key, first + i), program)
        return state, carry[1].at[i].set(loss)

    return jax.lax.fori_loop(0, n_steps, body, (state, jnp.full(CHUNK, jnp.nan)))


@compiled(static=("program", "n_draws"))
def draw(
    problem: Problem, state: SVIState, key: Array, program: Program, n_draws: int
) -> tuple[Parameters, Parameters]:
    """Return what was optimised, and draws of the fitted guide."""
    svi, guide, _ = _engine(problem, program, key)
    fitted = svi.get_params(state)
    return fitted, guide.sample_posterior(key, fitted, sample_shape=(n_draws,))


def _optimizer(rates: Rates, weights: Parameters) -> optax.GradientTransformation:
    """Adam with falling rates, one for ``weights`` and one for what the guide has."""

    def falling(rate: Array | float) -> optax.GradientTransformation:
        return optax.adam(lambda count: rate * 0.1 ** (jnp.maximum(count - rates.half, 0) / rates.half))

    def kinds(parameters: Parameters) -> dict[str, str]:
        return {name: "weights" if name in weights else "guide" for name in parameters}

    if not weights:
        return falling(rates.learning)
    by_kind = {"weights": falling(rates.network), "guide": falling(rates.learning)}
    return optax.multi_transform(by_kind, kinds)


def pads(settings: SVISettings) -> bool:
    """Whether padded data give what the data themselves give: padding must not be in the guide's density either."""
    return settings.batch_size is None and settings.guide in FACTORISED


def _guide(guide: str | Callable[..., AutoGuide]) -> Callable[..., AutoGuide]:
    if callable(guide):
        return guide
    if guide not in GUIDES:
        raise unknown_name("guide", guide, GUIDES)
    return GUIDES[guide]


def is_a_point(guide: str | Callable[..., AutoGuide]) -> bool:
    """Whether a guide is one point.

    Raises:
        UnknownNameError: there is no guide of that name.
    """
    return makes(AutoDelta, _guide(guide))


def makes(kind: type, guide: Callable[..., object]) -> bool:
    """Whether a guide is of this kind, as far as it shows before it is made: it is its class, or a partial of that."""
    made = guide.func if isinstance(guide, partial) else guide
    return isinstance(made, type) and issubclass(made, kind)


def _plan(model: Model, annotations: Annotations, settings: SVISettings) -> batches.Batches | None:
    size = settings.batch_size
    if size is None or size == annotations.n_tasks:
        return None
    if not 0 < size < annotations.n_tasks:
        raise ValueError(f"batch_size={size}: there are {annotations.n_tasks} tasks; give 1 to that many, or None")
    local = _by_task(model, annotations)
    if local and settings.guide not in FACTORISED:
        raise ValueError(
            f"batch_size={size}: {local[0]!r} has one value a task, and this guide has all tasks in one distribution; "
            "give guide='normal', or batch_size=None"
        )
    return batches.plan(annotations, size)


def _by_task(model: Model, annotations: Annotations) -> list[str]:
    """Names of the parameters that each task has of its own."""
    return [name for name, dims in parameter_dims(model, annotations).items() if "task" in dims]


def check_losses(losses: list[float]) -> None:
    """Leave it at a few steps whose loss is not finite: they were not taken.

    A draw of the guide may have a probability that single precision takes for 0, once in thousands of steps where the
    prior expects tables with many of them.

    Raises:
        FloatingPointError: there are too many, with the first.
    """
    is_lost = ~np.isfinite(losses)
    if is_lost.sum() > max(FEW_LOST, MOST_LOST * len(losses)):
        first = int(is_lost.argmax())
        raise FloatingPointError(f"the loss is {losses[first]} at step {first + 1}; lower learning_rate")


def without_gaps(losses: list[float]) -> np.ndarray:
    """The losses, with the one before for a step that was not taken."""
    return pd.Series(losses, dtype=float).where(np.isfinite(losses)).ffill().bfill().to_numpy()


def loss_warnings(losses: list[float], tolerance: float) -> tuple[str, ...]:
    """Warnings of what the losses show: steps that were not taken, and a loss that still falls."""
    warnings = still_falling(without_gaps(losses), tolerance)
    if n_lost := int((~np.isfinite(losses)).sum()):
        lost = (
            f"SVI left out {n_lost} of {len(losses):,} steps, whose loss was not finite: draws had probabilities that "
            "are 0 in single precision. A prior that expects fewer of them helps, such as a larger off_diagonal=, or "
            "JAX_ENABLE_X64=1"
        )
        return (lost, *warnings)
    return warnings


def still_falling(losses: np.ndarray, tolerance: float) -> tuple[str, ...]:
    """Return a warning where the loss still falls: by three standard errors and the tolerance in its last part.

    The part is a tenth of the steps; of fewer than a thousand a quarter, whose mean is less noisy. Fewer than a hundred
    steps say nothing.
    """
    if len(losses) < FEWEST_STEPS:
        return (f"SVI took {len(losses)} steps, too few to see whether it converged; raise max_iterations",)
    share, name = (10, "tenth") if len(losses) >= 1000 else (4, "quarter")
    part = len(losses) // share
    before, last = losses[-2 * part : -part], losses[-part:]
    fall = before.mean() - last.mean()
    error = np.sqrt(before.var() / len(before) + last.var() / len(last))
    if fall < 3 * error or fall < tolerance * abs(last.mean()):
        return ()
    return (
        f"SVI did not converge in {len(losses)} steps: the loss fell by {fall:,.2f} in the last {name}; "
        "raise max_iterations or learning_rate",
    )
