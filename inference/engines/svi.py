"""Stochastic variational inference (Hoffman et al. 2013) on a story with its true labels summed out.

The engine is a climber (:mod:`.climber`) over NumPyro's immutable ``SVIState``: a step takes all tasks in memory, a
minibatch of them drawn at random, or a batch of files. A batch of whole tasks stands for all of the data: of C batches
of files, each as likely as the others, the likelihood of one counts C times, so that its bound is the whole bound in
expectation. The guide starts at EM's solution; over files where a few passes of stochastic EM lead, and memory does not
grow with the number of tasks. A network's weights without a prior stay where EM in minibatches has led them: thousands
of steps on all tasks would learn these by heart (``benchmarks/held_out.py``).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeVar

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

from ...data import Annotations
from ...data.errors import look_up
from ...data.sharding import ShardedAnnotations, on_this_host
from ...models.parts.classifier import PREFIX
from ..densities import sweeps
from ..densities.enumerated import Parameters
from ..densities.marginals import marginal_program
from ..densities.model import Model
from ..densities.padded_sites import PaddingWeighsNothing
from ..densities.programs import compiled
from ..densities.sites import parameter_dims, parameter_names
from ..sources.memory import InMemory, Minibatch, in_batches
from ..sources.on_disk import Files
from ..sources.source import Source
from . import em, online_em
from .bound import OrderedELBO
from .checkpoints import NO_CHECKPOINTS, Checkpoints
from .climber import climb
from .outcome import Outcome, as_point
from .progress import progress_bar
from .settings import EMSettings, SVISettings, refuse_unused, unused_by_svi

T = TypeVar("T")

TOGETHER = 100  # steps that share a key
FEW_LOST, MOST_LOST = 5, 0.01  # steps not taken for a loss that is not finite, by number and share: more are an error
OF_TRAINING = ("epochs", "network_rate", "weight_decay", "warmup", "held_out", "patience")
"""Options of the EM that trains a network before."""

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
    decay: Array | float  # of the classifier's weights, for a loss that is a sum over the tasks


class SVIClimbState(NamedTuple):
    """The state between two steps."""

    svi: SVIState  # NumPyro's
    steps: Array  # steps taken
    loss: Array  # before the last of them


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SVIClimber:
    """SVI of a story: :class:`.InOrder`.

    Attributes:
        model: the story.
        values: where the guide starts.
        weights: of those the ones that are optimised.
        fixed: of those a network's weights without a prior, and its running statistics.
        rates: of Adam.
        n_steps: steps to take.
        steps_key: random key of minibatches, or of the order of files and of what is drawn of the guide.
        weight: of a batch's likelihood.
        n_batches: of files; None in memory.
        program: what compiled programs depend on.
    """

    model: Model
    values: Parameters
    weights: Parameters
    fixed: Parameters
    rates: Rates
    n_steps: Array | int
    steps_key: Array
    program: Program = field(metadata={"static": True})
    weight: Array | float = 1.0
    n_batches: Array | int | None = None

    moves: ClassVar[str] = "batch"
    most: ClassVar[int] = TOGETHER
    quantity: ClassVar[str] = "loss"
    stage: ClassVar[str] = "svi"

    def init(self, source: Source, key: Array) -> SVIClimbState:
        """Return the state before the first step."""
        return SVIClimbState(_init(self, _whole(source), key), jnp.int32(0), jnp.full((), jnp.nan, float))

    def order(self, state: SVIClimbState, n_batches: int) -> tuple[np.ndarray, int]:
        """Return the order of the batches in the pass, cut where no steps are left, and how many were taken."""
        steps = int(state.steps)
        order_key, _ = self._keys_of_pass(state)
        begin = steps % n_batches
        order = np.asarray(jax.random.permutation(order_key, n_batches))
        return order[: int(self.n_steps) - (steps - begin)], begin

    def point(self, like: Annotations, state: SVIClimbState) -> SVIState:
        """Return NumPyro's state, which has the guide's parameters and the key of what is drawn of it."""
        if self.n_batches is None:
            return state.svi
        return SVIState(state.svi.optim_state, None, jax.random.fold_in(self._keys_of_pass(state)[1], state.steps))

    def look(self, like: Annotations, batch: Minibatch, at: SVIState) -> tuple[SVIState, Array]:
        """Return NumPyro's state after the step, which takes the gradient by itself, and the loss before it.

        Where the loss or its gradient is not finite, nothing is changed.
        """
        svi, _, _ = _engine(self, like, batch, at.rng_key)
        after: tuple[SVIState, Array] = svi.stable_update(at, *batch)
        return after

    def step(
        self, like: Annotations, state: SVIClimbState, at: SVIState, look: tuple[SVIState, Array]
    ) -> SVIClimbState:
        """Return the state after a step of Adam down the negative evidence lower bound."""
        return SVIClimbState(look[0], state.steps + 1, jnp.asarray(look[1], float))

    def finished(self, state: SVIClimbState) -> Array:
        """Return whether all steps are taken."""
        return state.steps >= self.n_steps

    def n_values(self, state: SVIClimbState) -> Array:
        """Return the number of steps."""
        return state.steps

    def value(self, state: SVIClimbState) -> tuple[Array, ...]:
        """Return the loss before the last step."""
        return (state.loss,)

    def batch(self, source: InMemory, state: SVIClimbState) -> Minibatch:
        """Return the next minibatch."""
        place = state.steps % TOGETHER
        return source.draw(jax.random.fold_in(jax.random.fold_in(self.steps_key, state.steps - place), place))

    def check(self, state: SVIClimbState, history: list[float], n_new: int) -> None:
        """Refuse losses that are not finite, but for a few: :func:`check_losses`."""
        if not np.isfinite(history[-n_new:]).all():
            check_losses(history)

    def _keys_of_pass(self, state: SVIClimbState) -> tuple[Array, Array]:
        """Return the keys of the order of the state's pass over files, and of what is drawn in it."""
        steps = jnp.asarray(state.steps)
        order_key, draw_key = jax.random.split(
            jax.random.fold_in(self.steps_key, steps - steps % jnp.asarray(self.n_batches))
        )
        return order_key, draw_key


def run(
    model: Model,
    data: Annotations | Source,
    key: Array,
    settings: SVISettings,
    *,
    progress: bool,
    start: Parameters | None = None,
    keep: Checkpoints = NO_CHECKPOINTS,
) -> Outcome:
    """Fit the guide, from the EM solution, and draw from it.

    Args:
        settings: of SVI; over files ``batch_size`` and ``epochs`` are not looked at.
        start: parameters from which EM starts; the story's own start by default.

    Raises:
        UnknownNameError: for a guide of that name.
        ValueError: for an option that this story or guide does not use; for a minibatch larger than the data, or with a
            story that has parameters by task and a guide that is not mean field; for more than one particle with a
            network that keeps running statistics.
        FloatingPointError: where the loss is not finite, but for a few steps, with the first: :func:`check_losses`.
    """
    like = data if isinstance(data, Annotations) else data.like
    names, without_posterior, _ = parameter_names(model, like)
    is_delta = is_a_point(settings.guide)
    weights = without_posterior & set(names)
    held = held_names(model, weights, without_posterior)
    in_parts = not _is_whole(data, settings)
    refuse_unused(
        settings._replace(sweeps=settings.sweeps or None),  # none is what such a fit has anyway
        unused_by_svi(
            has_network=model.has_network,
            has_weights=bool(weights),
            is_point=is_delta,
            holds_out=settings.held_out > 0,
            in_parts=in_parts,
        ),
    )
    if settings.particles > 1 and (kept := without_posterior - set(names)):
        raise ValueError(
            f"particles={settings.particles}: the network keeps running statistics such as {min(kept)!r}, which one "
            "draw of the guide a step updates; give particles=1"
        )
    em_key, init_key, steps_key, draw_key = jax.random.split(key, 4)
    source = _source(model, data, settings) if isinstance(data, Annotations) else data
    values, of_network = _start(model, source, em_key, settings, progress=progress, start=start, keep=keep)
    climber = climber_of(model, source, values, steps_key, settings, tuple(weights - held), tuple(held))
    state = climber.init(source, init_key)
    with progress_bar("SVI", settings.max_iterations, show=progress) as bar:
        state, losses = climb(climber, source, state, keep=keep, tell=bar)
    fitted, sampled = draw(climber, source, state.svi, draw_key, n_draws=1 if is_delta else settings.draws)
    draws, is_point = as_point(
        {name: on_this_host(value)[None] for name, value in sampled.items() if name in names}, is_point=is_delta
    )
    fitted |= {name: holder["value"] for name, holder in (state.svi.mutable_state or {}).items()}
    fitted |= climber.fixed
    fixed = {name: np.asarray(value) for name, value in fitted.items() if name in without_posterior}
    found = {**facts(losses), **of_network}
    whole = data if not in_parts else data.all_of_few(sweeps.FEW_ROWS) if isinstance(data, Files) else None
    if isinstance(whole, Annotations) and settings.sweeps != 0 and not is_point:
        draws, of_sweeps = _swept(model, whole, draws, fixed, draw_key, settings, progress)
        found |= of_sweeps
    return Outcome(draws, fixed, without_gaps(losses), {}, found, is_point)


def held_names(model: Model, weights: Collection[str], without_posterior: Collection[str]) -> frozenset[str]:
    """Return the names of a network's weights without a prior and of its running statistics: SVI leaves them.

    Args:
        weights: names of parameters without a posterior.
        without_posterior: the same, and of running statistics.
    """
    of_network = [name for name in weights if name.startswith(PREFIX)] if model.has_network else []
    return frozenset(name for name in without_posterior if name.startswith(PREFIX)) if of_network else frozenset()


def _is_whole(data: Annotations | Source, settings: SVISettings) -> bool:
    """Return whether each step takes all tasks, which are in the memory of one device."""
    return (
        isinstance(data, Annotations)
        and not isinstance(data, ShardedAnnotations)
        and minibatch_size(settings, data) is None
    )


def _swept(
    model: Model,
    annotations: Annotations,
    draws: dict[str, np.ndarray],
    fixed: dict[str, np.ndarray],
    key: Array,
    settings: SVISettings,
    progress: bool,
) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """Return the draws ``(1, n, ...)`` after sweeps of data augmentation, and how many there were as a fact."""
    with progress_bar("SVI, sweeps", settings.sweeps or sweeps.MOST, show=progress) as bar:
        found = sweeps.swept(
            model,
            annotations,
            {name: value[0] for name, value in draws.items()},
            jax.tree.map(jnp.asarray, fixed),
            key,
            sweeps=settings.sweeps,
            gradients=settings.max_iterations * settings.particles,
            tell=lambda done, of: bar(done, f"of {of} sweeps of data augmentation"),
        )
    return {name: value[None] for name, value in found.draws.items()}, {"sweeps": found.sweeps, "chains": found.chains}


def _start(
    model: Model,
    source: Source,
    key: Array,
    settings: SVISettings,
    *,
    progress: bool,
    start: Parameters | None,
    keep: Checkpoints,
) -> tuple[Parameters, Mapping[str, Any]]:
    """Return where the guide starts, at EM's solution, over files where stochastic EM leads; and facts of a network."""
    before = keep.within("before")
    if isinstance(source, Files):
        few = EMSettings(epochs=online_em.PASSES)
        return online_em.solve(model, source, key, few, progress=progress, keep=before)[0].parameters, {}
    of_em = EMSettings(tolerance=1e-5, **{name: getattr(settings, name) for name in OF_TRAINING})
    solution = em.solve(model, source.like, key, of_em, progress=progress, start=start, keep=before)
    return solution.parameters, solution.facts if model.has_network else {}


def climber_of(
    model: Model,
    source: Source,
    values: Parameters,
    key: Array,
    settings: SVISettings,
    weights: Sequence[str] = (),
    held: Sequence[str] = (),
) -> SVIClimber:
    """Return the climber from ``values``.

    Args:
        values: where the guide starts.
        weights: names of the values that are optimised.
        held: names of those that stay.
    """
    of_files: dict[str, Any] = {}
    if not isinstance(source, InMemory):
        of_files = {"weight": jnp.asarray(source.n_batches, float), "n_batches": source.n_batches}
    return SVIClimber(
        model,
        values,
        {name: value for name, value in values.items() if name in weights},
        {name: value for name, value in values.items() if name in held},
        rates_of(settings, source.n_tasks),
        settings.max_iterations,
        key,
        Program(settings.guide, settings.particles),
        **of_files,
    )


def rates_of(settings: SVISettings, n_tasks: int) -> Rates:
    """The rates of Adam over ``max_iterations`` steps, and the decay of weights beside the loss of all tasks."""
    half, decay = max(settings.max_iterations // 2, 1), settings.weight_decay * n_tasks
    return Rates(settings.learning_rate, settings.network_rate, half, decay)


def _engine(climber: SVIClimber, like: Annotations, batch: Minibatch, key: Array) -> tuple[SVI, AutoGuide, SVIState]:
    """NumPyro's engine and guide with their first state, made anew in each compiled function.

    They keep what they see, which may not outlive a trace.
    """
    marginal = marginal_program(climber.model, climber.fixed, train=not climber.fixed, weight=climber.weight)
    own = batch.chosen is not None and bool(by_task(climber.model, like))
    options: dict[str, Any] = {"create_plates": _plate_of_tasks} if own else {}
    guide = guide_of(climber.program.guide, GUIDES)(
        marginal, init_loc_fn=init_to_value(values=climber.values), **options
    )

    def without_padding(annotations: Annotations) -> Parameters:
        with PaddingWeighsNothing(annotations):
            return guide(annotations)

    optimizer = _optimizer(climber.rates, climber.weights)
    loss = OrderedELBO(num_particles=climber.program.particles)
    svi = SVI(_at_tasks(marginal), _at_tasks(without_padding), optimizer, loss)
    first = like if own else batch.annotations  # the guide has all tasks' own parameters
    return svi, guide, svi.init(key, first, init_params=climber.weights)


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


def _whole(source: Source) -> InMemory:
    """Return a source in memory, whose first batch stands for files."""
    return source if isinstance(source, InMemory) else InMemory(source.like)


@compiled
def _init(climber: SVIClimber, source: InMemory, key: Array) -> SVIState:
    return _engine(climber, source.like, source.draw(key), key)[2]


def draw(
    climber: SVIClimber, source: Source, state: SVIState, key: Array, *, n_draws: int
) -> tuple[Parameters, Parameters]:
    """Return what was optimised, and draws of the fitted guide."""
    return _draw(climber, _whole(source), state, key, n_draws=n_draws)


@compiled(static=("n_draws",))
def _draw(
    climber: SVIClimber, source: InMemory, state: SVIState, key: Array, *, n_draws: int
) -> tuple[Parameters, Parameters]:
    svi, guide, _ = _engine(climber, source.like, source.draw(key), key)
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
    decayed = optax.chain(optax.add_decayed_weights(rates.decay), falling(rates.network))
    by_kind = {"weights": decayed, "guide": falling(rates.learning)}
    return optax.multi_transform(by_kind, kinds)


def pads(settings: SVISettings) -> bool:
    """Return whether padded data give the same: padding must not be in the guide's density either."""
    return settings.batch_size is None and settings.guide in FACTORISED


def guide_of(guide: str | Callable[..., T], known: Mapping[str, Callable[..., T]]) -> Callable[..., T]:
    """Return the class of a guide, or what is called in its place.

    Args:
        guide: a name, or the class itself.
        known: classes by name.

    Raises:
        UnknownNameError: there is no guide of that name.
    """
    return guide if callable(guide) else look_up("guide", guide, known)


def is_a_point(guide: str | Callable[..., AutoGuide]) -> bool:
    """Return whether a guide is one point.

    Raises:
        UnknownNameError: there is no guide of that name.
    """
    return makes(AutoDelta, guide_of(guide, GUIDES))


def makes(kind: type, guide: Callable[..., object]) -> bool:
    """Return whether a guide is of this kind, as far as it shows before it is made: its class, or a partial of that."""
    made = guide.func if isinstance(guide, partial) else guide
    return isinstance(made, type) and issubclass(made, kind)


def _source(model: Model, annotations: Annotations, settings: SVISettings) -> InMemory:
    """Return the annotations in minibatches, where they are asked for."""
    size = minibatch_size(settings, annotations)
    if size is None:
        return InMemory(annotations)
    local = by_task(model, annotations)
    if local and settings.guide not in FACTORISED:
        raise ValueError(
            f"batch_size={size}: {local[0]!r} has one value a task, and this guide has all tasks in one distribution; "
            "give guide='normal', or batch_size=None"
        )
    return in_batches(annotations, size)


def minibatch_size(settings: SVISettings, annotations: Annotations) -> int | None:
    """Return the number of tasks in a minibatch; None where each step takes all of them, as where there are no more."""
    size = settings.batch_size
    return None if size is None or size >= annotations.n_tasks else size


def by_task(model: Model, annotations: Annotations) -> list[str]:
    """Return the names of the parameters that each task has of its own."""
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


def facts(losses: list[float]) -> dict[str, Any]:
    """Return the number of steps that were left out, where there are some, as a fact of an outcome."""
    n_lost = int((~np.isfinite(losses)).sum())
    return {"steps_left_out": n_lost} if n_lost else {}
