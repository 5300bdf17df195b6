"""Stochastic variational inference (Hoffman et al. 2013) on a story with its true labels summed out."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import optax
from jax import Array
from numpyro.infer import SVI, Trace_ELBO, init_to_value
from numpyro.infer.autoguide import (
    AutoDelta,
    AutoGuide,
    AutoLowRankMultivariateNormal,
    AutoMultivariateNormal,
    AutoNormal,
)

from ...data import Annotations, unknown_name
from ..densities.enumerated import Parameters
from ..densities.marginals import marginal_program
from ..densities.model import Model
from ..densities.sites import constants, parameter_dims
from . import em
from . import minibatches as batches
from .outcome import Outcome
from .progress import progress_bar
from .settings import EMSettings

CHUNK = 100  # steps between two looks at the progress

GUIDES: dict[str, Callable[..., AutoGuide]] = {
    "normal": AutoNormal,
    "multivariate_normal": AutoMultivariateNormal,
    "low_rank": AutoLowRankMultivariateNormal,
    "delta": AutoDelta,
}


class SVISettings(NamedTuple):
    """Options of ``method="svi"``.

    Args:
        max_iterations: steps of Adam.
        learning_rate: of the first half of the steps; it falls to a tenth of it in the second.
        network_rate: the same for a classifier's weights that have no prior.
        epochs: of the EM that finds where a story with a network starts.
        guide: ``"normal"`` (mean field), ``"low_rank"``, ``"multivariate_normal"`` or ``"delta"``, or a class of
            NumPyro's automatic guides.
        batch_size: tasks in a minibatch; None takes all of them in every step.
        particles: draws of the guide that a step averages over.
        draws: draws of the fitted guide to keep.
        tolerance: share of the loss by which its last tenth may lie under the tenth before.
    """

    max_iterations: int = 2000
    learning_rate: float = 0.02
    network_rate: float = EMSettings().network_rate
    epochs: int = EMSettings().epochs
    guide: str | Callable[..., AutoGuide] = "normal"
    batch_size: int | None = None
    particles: int = 1
    draws: int = 1000
    tolerance: float = 1e-4


def run(model: Model, annotations: Annotations, key: Array, settings: SVISettings, *, progress: bool) -> Outcome:
    """Fit the guide, from the EM solution, and draw from it.

    Raises:
        UnknownNameError: for a guide of that name.
        ValueError: for a minibatch larger than the data, or with a story that has parameters by task; for more than
            one particle with a network that keeps running statistics.
        FloatingPointError: where the loss is not finite, with the step.
    """
    if settings.particles > 1 and (kept := constants(model, annotations) - set(parameter_dims(model, annotations))):
        raise ValueError(
            f"particles={settings.particles}: the network keeps running statistics such as {min(kept)!r}, which one "
            "draw of the guide a step updates; give particles=1"
        )
    em_key, init_key, batch_key, draw_key = jax.random.split(key, 4)
    plan = _plan(model, annotations, settings.batch_size)
    settings_em = EMSettings(tolerance=1e-5, epochs=settings.epochs, network_rate=settings.network_rate)
    values = em.interior_solution(model, annotations, em_key, settings_em, progress=progress)
    weights = {
        name: values[name] for name in parameter_dims(model, annotations) if name in constants(model, annotations)
    }
    problem = _Problem(annotations, values, weights, plan)
    state = _start(model, problem, settings, init_key)
    losses: list[float] = []
    with progress_bar("SVI", settings.max_iterations, show=progress) as tell:
        for keys in _chunks(jax.random.split(batch_key, settings.max_iterations)):
            state, values_of_loss = _advance(model, problem, settings, state, keys)
            losses += np.asarray(values_of_loss).tolist()
            if not np.isfinite(losses[-1]):
                first = int(np.argmin(np.isfinite(losses)))
                raise FloatingPointError(f"the loss is {losses[first]} at step {first + 1}; lower learning_rate")
            tell(len(losses), f"loss {losses[-1]:,.2f}")
    fitted, draws = _draw(model, problem, settings, state, draw_key)
    names, without_posterior = parameter_dims(model, annotations), constants(model, annotations)
    draws = {name: np.asarray(value)[None] for name, value in draws.items() if name in names}
    fitted |= {name: holder["value"] for name, holder in (state.mutable_state or {}).items()}
    fixed = {name: np.asarray(value) for name, value in fitted.items() if name in without_posterior}
    return Outcome(draws, fixed, np.array(losses), {}, still_falling(np.array(losses), settings))


class _Problem(NamedTuple):
    """What is fitted, and from where: one argument of all compiled functions."""

    annotations: Annotations
    values: Parameters  # where the guide starts
    weights: Parameters  # of those the ones that are optimised
    plan: batches.Batches | None

    def batch(self, key: Array) -> Annotations:
        return self.annotations if self.plan is None else batches.draw(self.annotations, self.plan, key)


def _engine(model: Model, problem: _Problem, settings: SVISettings, key: Array) -> tuple[SVI, AutoGuide, Any]:
    """NumPyro's engine and guide with their first state, made anew in each compiled function.

    They keep what they see, which may not outlive a trace.
    """
    program = marginal_program(model, train=True)
    guide = _guide(settings.guide)(program, init_loc_fn=init_to_value(values=problem.values))
    svi = SVI(program, guide, _optimizer(settings, problem.weights), Trace_ELBO(num_particles=settings.particles))
    return svi, guide, svi.init(key, problem.batch(key), init_params=problem.weights)


@partial(jax.jit, static_argnames=("model", "settings"))
def _start(model: Model, problem: _Problem, settings: SVISettings, key: Array) -> Any:
    """The state before the first step."""
    return _engine(model, problem, settings, key)[2]


@partial(jax.jit, static_argnames=("model", "settings"))
def _advance(model: Model, problem: _Problem, settings: SVISettings, state: Any, keys: Array) -> tuple[Any, Array]:
    """One step for each key: the state after them, and the loss of each."""
    svi, _, _ = _engine(model, problem, settings, keys[0])
    return jax.lax.scan(lambda state, key: svi.update(state, problem.batch(key)), state, keys)


@partial(jax.jit, static_argnames=("model", "settings"))
def _draw(
    model: Model, problem: _Problem, settings: SVISettings, state: Any, key: Array
) -> tuple[Parameters, Parameters]:
    """What was optimised, and draws of the fitted guide."""
    svi, guide, _ = _engine(model, problem, settings, key)
    fitted = svi.get_params(state)
    return fitted, guide.sample_posterior(key, fitted, sample_shape=(settings.draws,))


def _optimizer(settings: SVISettings, weights: Parameters) -> optax.GradientTransformation:
    """Adam with falling rates, one for ``weights`` and one for what the guide has."""
    half = settings.max_iterations // 2

    def falling(rate: float) -> optax.GradientTransformation:
        return optax.adam(optax.exponential_decay(rate, max(half, 1), 0.1, transition_begin=half))

    def kinds(parameters: Parameters) -> dict[str, str]:
        return {name: "weights" if name in weights else "guide" for name in parameters}

    if not weights:
        return falling(settings.learning_rate)
    by_kind = {"weights": falling(settings.network_rate), "guide": falling(settings.learning_rate)}
    return optax.multi_transform(by_kind, kinds)


def _guide(guide: str | Callable[..., AutoGuide]) -> Callable[..., AutoGuide]:
    if callable(guide):
        return guide
    if guide not in GUIDES:
        raise unknown_name("guide", guide, GUIDES)
    return GUIDES[guide]


def _plan(model: Model, annotations: Annotations, batch_size: int | None) -> batches.Batches | None:
    if batch_size is None or batch_size == annotations.n_tasks:
        return None
    if not 0 < batch_size < annotations.n_tasks:
        raise ValueError(
            f"batch_size={batch_size}: there are {annotations.n_tasks} tasks; give 1 to that many, or None"
        )
    local = [name for name, dims in parameter_dims(model, annotations).items() if "task" in dims]
    if local:
        raise ValueError(
            f"batch_size={batch_size}: {local[0]!r} has one value a task, so all tasks are needed; give None"
        )
    return batches.plan(annotations, batch_size)


def _chunks(keys: Array) -> list[Array]:
    return [keys[i : i + CHUNK] for i in range(0, len(keys), CHUNK)]


def still_falling(losses: np.ndarray, settings: SVISettings) -> tuple[str, ...]:
    """What a user should act on, from the last two tenths of the losses, by three standard errors and the tolerance."""
    tenth = max(len(losses) // 10, 2)
    before, last = losses[-2 * tenth : -tenth], losses[-tenth:]
    if len(before) < 2:
        return (f"SVI took {len(losses)} steps, too few to see whether it converged; raise max_iterations",)
    fall = before.mean() - last.mean()
    error = np.sqrt(before.var() / len(before) + last.var() / len(last))
    if fall < 3 * error or fall < settings.tolerance * abs(last.mean()):
        return ()
    return (
        f"SVI did not converge in {len(losses)} steps: the loss fell by {fall:,.2f} in the last tenth; "
        "raise max_iterations or learning_rate",
    )
