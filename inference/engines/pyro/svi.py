"""Stochastic variational inference on a Pyro story, its true labels summed out."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import pyro
import torch
from pyro import poutine
from pyro.infer.autoguide import (
    AutoDelta,
    AutoGuide,
    AutoLowRankMultivariateNormal,
    AutoMultivariateNormal,
    init_to_value,
)
from torch import Tensor

from ....data import Annotations, unknown_name
from ....models.pyro import running
from ....models.pyro.derived import without_derived
from ...densities.sites import parameter_dims
from ..checkpoints import NOWHERE, Checkpoints, Nest
from ..outcome import Outcome, as_point
from ..progress import progress_bar
from ..settings import EMSettings, SVISettings
from ..svi import check_losses, facts, makes, without_gaps
from ..unused_options import refuse_unused, unused_by_svi
from . import em
from .batches import Batch
from .density import LocalParameters, Parameters, anatomy, density
from .normals import Normals, draw
from .options import TorchOptions, unused_with_optimizer
from .problem import Problem
from .steps import Groups, Stepper, noted, restore, snapshot, trainable, went_on

CHUNK = 100  # steps between two looks at the progress

GUIDES: dict[str, Callable[..., Any]] = {
    "normal": Normals,
    "multivariate_normal": AutoMultivariateNormal,
    "low_rank": AutoLowRankMultivariateNormal,
    "delta": AutoDelta,
}

REFUSED = {
    "epochs": "with backend='pyro' a classifier is trained in SVI's own steps, not by EM before; give max_iterations"
}
"""Options of NumPyro's SVI that this one does not have, with the reason."""

STAGE = "svi"  # of a checkpoint


class TorchSVISettings(NamedTuple):
    """Options of ``method="svi"`` with ``backend="pyro"``: those of :class:`.SVISettings`, but for ``epochs``.

    Args:
        max_iterations: steps of Adam.
        learning_rate: of the first half of the steps; it falls to a tenth of it in the second.
        network_rate: the same for a classifier's weights. Used with a classifier and without ``optimizer``.
        guide: ``"normal"``, ``"low_rank"``, ``"multivariate_normal"`` or ``"delta"``, or a class of Pyro's automatic
            guides.
        batch_size: tasks in a minibatch; None takes all of them in every step.
        particles: draws of the guide that a step averages over. Used where the guide is not a point.
        draws: draws of the fitted guide to keep. Used where the guide is not a point, of which one draw is kept.
        tolerance: share of the loss by which its last tenth may lie under the tenth before without a warning.
    """

    max_iterations: int = SVISettings().max_iterations
    learning_rate: float = SVISettings().learning_rate
    network_rate: float = SVISettings().network_rate
    guide: str | Callable[..., AutoGuide] = "normal"
    batch_size: int | None = None
    particles: int = SVISettings().particles
    draws: int = SVISettings().draws
    tolerance: float = SVISettings().tolerance


def run(
    problem: Problem, key: jax.Array, settings: TorchSVISettings, *, progress: bool, keep: Checkpoints = NOWHERE
) -> Outcome:
    """Fit the guide, and draw from it.

    It starts from EM's solution, or with a classifier, which learns in the same steps, after EM's first step.

    Raises:
        UnknownNameError: for a guide of that name.
        ValueError: for an option that this story or guide does not use, or a minibatch that the data or the story do
            not allow.
        FloatingPointError: where the loss is not finite, with the step.
    """
    is_delta = makes(AutoDelta, _guide(settings.guide))
    has_weights = problem.classifier is not None
    refuse_unused(
        settings,
        unused_by_svi(has_network=False, has_weights=has_weights, is_point=is_delta)
        | REFUSED
        | unused_with_optimizer(problem.options),
    )
    size = _batch_size(problem, settings)
    values = _start(problem, key, progress=progress, keep=keep.within("before"))
    with pyro.settings.context(module_local_params=True), pyro.get_param_store().scope():
        some = next(_batches(problem, size, 0))
        guide = _made(problem, settings.guide, values, some)
        losses = _descend(problem, guide, size, settings, progress=progress, keep=keep)
        n_draws = 1 if is_delta else settings.draws
        draws = _draws(guide, _arguments(some), list(parameter_dims(problem.twin, problem.data)), n_draws)
    draws, is_point = as_point(draws, is_point=is_delta)
    return Outcome(draws, problem.fixed(), without_gaps(losses), {}, facts(losses), is_point)


def _descend(
    problem: Problem,
    guide: AutoGuide | Normals,
    size: int | None,
    settings: TorchSVISettings,
    *,
    progress: bool,
    keep: Checkpoints,
) -> list[float]:
    """Take the steps, and return the loss before each."""
    module = None if problem.classifier is None else problem.classifier.module
    n_tasks, options = problem.data.n_tasks, problem.options
    weights: dict[str, Any] = {"params": trainable(module)}
    if options.optimizer is None:
        weights["lr"] = settings.network_rate
    groups: Groups = [{"params": list(guide.parameters()), "lr": settings.learning_rate}, weights]
    stepper = Stepper(
        groups, options, partial(torch.optim.Adam, fused=_can_fuse(options)), _schedule(settings.max_iterations)
    )
    losses: list[float] = []
    seed = int(torch.randint(2**62, ()))
    if (found := keep.found(STAGE)) is not None:
        state = went_on(found, problem.source.device)
        guide.load_state_dict(state["guide"])
        restore(module, state["module"])
        stepper.load(state["stepper"])
        losses, seed = state["losses"], state["seed"]

    def at() -> Nest:
        state = {"guide": guide.state_dict(), "module": snapshot(module), "stepper": stepper.state()}
        return noted({**state, "losses": losses, "seed": seed}, problem.source.device)

    batches = _batches(problem, size, seed, done=len(losses))
    with progress_bar("SVI", settings.max_iterations, show=progress) as tell:
        while len(losses) < settings.max_iterations:
            loss = _loss(problem, guide, next(batches), settings.particles)
            losses.append(float(loss.detach()))
            if np.isfinite(losses[-1]):
                stepper.step(loss / n_tasks)
            else:
                check_losses(losses)
            if len(losses) % CHUNK == 0:
                tell(len(losses), f"loss {losses[-1]:,.2f}")
            keep.note(STAGE, at, lasting=False)
    keep.note(STAGE, at, lasting=False, final=True)
    return losses


def _can_fuse(options: TorchOptions) -> bool:
    """Whether Adam's step may be one operation instead of a dozen: not where gradients are scaled on the way."""
    return options.autocast is not torch.float16


def _made(
    problem: Problem, name: str | Callable[..., AutoGuide], values: Parameters, some: Batch
) -> AutoGuide | Normals:
    """Return the guide, which starts at ``values``."""
    if (make := _guide(name)) is Normals:
        return Normals(anatomy(problem.model, values, some.annotations, some.inputs), values)
    hidden = poutine.block(_program(problem), hide=["truth"])
    guide: AutoGuide = make(hidden, init_loc_fn=init_to_value(values=values))
    with torch.no_grad():
        guide(*_arguments(some))  # finds its sites
    return guide


def _loss(problem: Problem, guide: AutoGuide | Normals, batch: Batch, particles: int) -> Tensor:
    r"""Return the negative ELBO, :math:`\log q(\theta) - \log p(\theta, y)`, averaged over draws of the guide.

    It is Pyro's ``TraceEnum_ELBO`` of a guide of continuous sites, without its packing of every term's plates.
    """
    losses = []
    for _ in range(particles):
        values, log_density = draw(guide, _arguments(batch))
        at = density(problem.model, values, batch.annotations, batch.inputs, train=True)
        losses.append(log_density - at.log_posterior)
    return torch.stack(losses).mean()


def _program(problem: Problem) -> Callable[[Annotations, Any], None]:
    """Return the story with its classifier in training mode, and its weights out of Pyro's global store."""

    def program(annotations: Annotations, inputs: Any) -> None:
        with LocalParameters(), running(inputs, train=True), without_derived():
            problem.model(annotations)

    return program


def _start(problem: Problem, key: jax.Array, *, progress: bool, keep: Checkpoints) -> Parameters:
    settings = EMSettings(tolerance=1e-5)
    if problem.classifier is not None:
        return problem.start(key)
    return em.solve(problem.plain(), key, settings, progress=progress, keep=keep).parameters


def _batches(problem: Problem, size: int | None, seed: int, done: int = 0) -> Iterator[Batch]:
    """Yield batches without end: epoch after epoch, or all tasks every time; ``done`` of them are left out."""
    source, population = problem.source, problem.data.n_tasks
    if size is None and source.dataset is None:
        whole = source.whole()
        while True:
            yield whole
    if size is None and _by_task(problem):  # in the tasks' own order
        while True:
            yield source.whole()
    size = size or population
    generator = torch.Generator().manual_seed(seed)
    epochs, begin = divmod(done, -(-population // size))
    for _ in range(epochs):
        source.shuffle(generator)
    while True:
        yield from source.epoch(size, generator, population=population, begin=begin)
        begin = 0


def _arguments(batch: Batch) -> tuple[Annotations, Any]:
    return batch.annotations, batch.inputs


def _batch_size(problem: Problem, settings: TorchSVISettings) -> int | None:
    size, n_tasks = settings.batch_size, problem.data.n_tasks
    if size is None or size == n_tasks:
        return None
    if not 0 < size < n_tasks:
        raise ValueError(f"batch_size={size}: there are {n_tasks} tasks; give 1 to that many, or None")
    if local := _by_task(problem):
        raise ValueError(
            f"batch_size={size}: {local[0]!r} has one value a task, and Pyro's guides have all of them in each step; "
            "give batch_size=None, backend='numpyro', or method='em'"
        )
    problem.check_batches(size)
    return size


def _by_task(problem: Problem) -> list[str]:
    """Names of the parameters that each task has of its own."""
    return [name for name, dims in parameter_dims(problem.twin, problem.data).items() if "task" in dims]


def _guide(guide: str | Callable[..., AutoGuide]) -> Callable[..., Any]:
    if callable(guide):
        return guide
    if guide not in GUIDES:
        raise unknown_name("guide", guide, GUIDES)
    return GUIDES[guide]


def _schedule(n_steps: int) -> Callable[[torch.optim.Optimizer], torch.optim.lr_scheduler.LRScheduler]:
    """Return a schedule: one rate in the first half of the steps, which falls to a tenth in the second."""
    half = max(n_steps // 2, 1)
    return lambda optimizer: torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: 0.1 ** (max(step - half, 0) / half)
    )


def _draws(guide: AutoGuide | Normals, arguments: tuple, names: list[str], n_draws: int) -> dict[str, np.ndarray]:
    """Return draws of the fitted guide, ``(1, draw, ...)``."""
    draws: dict[str, list[np.ndarray]] = {name: [] for name in names}
    with torch.no_grad():
        for _ in range(n_draws):
            draw: dict[str, Tensor] = guide(*arguments)
            for name, values in draws.items():
                values.append(draw[name].cpu().numpy())
    return {name: np.stack(values)[None] for name, values in draws.items()}
