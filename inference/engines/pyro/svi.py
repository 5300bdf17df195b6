"""Stochastic variational inference on a Pyro story, its true labels enumerated by Pyro itself."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pyro
import torch
from pyro import poutine
from pyro.infer import TraceEnum_ELBO
from pyro.infer.autoguide import (
    AutoDelta,
    AutoGuide,
    AutoLowRankMultivariateNormal,
    AutoMultivariateNormal,
    AutoNormal,
    init_to_value,
)
from torch import Tensor

from ....data import Annotations, unknown_name
from ....models.pyro import running
from ...densities.sites import parameter_dims
from ..outcome import Outcome
from ..progress import progress_bar
from ..settings import EMSettings
from ..svi import SVISettings, still_falling
from . import em
from .batches import Batch
from .density import LocalParameters, Parameters
from .problem import Problem
from .steps import Groups, Stepper, read, restore, snapshot, trainable, write

CHUNK = 100  # steps between two looks at the progress, and two checkpoints
NESTING = 2  # plates in one another at the most, in a story
NETWORK_RATE = 1e-3  # of Adam, for a classifier's weights

GUIDES: dict[str, Callable[..., AutoGuide]] = {
    "normal": AutoNormal,
    "multivariate_normal": AutoMultivariateNormal,
    "low_rank": AutoLowRankMultivariateNormal,
    "delta": AutoDelta,
}


def run(problem: Problem, key: jax.Array, settings: SVISettings, *, progress: bool) -> Outcome:
    """Fit the guide, and draw from it.

    It starts from EM's solution, or with a classifier, which learns in the same steps, after EM's first step.

    Raises:
        UnknownNameError: for a guide of that name.
        ValueError: for a minibatch that the data or the story do not allow.
        FloatingPointError: where the loss is not finite, with the step.
    """
    size = _batch_size(problem, settings)
    values = _start(problem, key, progress=progress)
    program = _program(problem)
    with pyro.settings.context(module_local_params=True), pyro.get_param_store().scope():
        hidden = poutine.block(program, hide=["truth"])
        guide = _guide(settings.guide)(hidden, init_loc_fn=init_to_value(values=values))
        some = _arguments(next(_batches(problem, size, 0)))
        with torch.no_grad():
            guide(*some)  # finds its sites
        losses = _descend(problem, program, guide, size, settings, progress=progress)
        draws = _draws(guide, some, list(parameter_dims(problem.twin, problem.data)), settings.draws)
    return Outcome(draws, problem.fixed(), np.array(losses), {}, still_falling(np.array(losses), settings))


def _descend(
    problem: Problem,
    program: Callable[..., None],
    guide: AutoGuide,
    size: int | None,
    settings: SVISettings,
    *,
    progress: bool,
) -> list[float]:
    """Take the steps; the loss before each."""
    module = None if problem.classifier is None else problem.classifier.module
    n_tasks, options = problem.data.n_tasks, problem.options
    weights: dict[str, Any] = {"params": trainable(module)}
    if options.optimizer is None:
        weights["lr"] = NETWORK_RATE
    groups: Groups = [{"params": list(guide.parameters()), "lr": settings.learning_rate}, weights]
    stepper = Stepper(groups, options, torch.optim.Adam, _schedule(settings.max_iterations))
    elbo = TraceEnum_ELBO(num_particles=settings.particles, max_plate_nesting=NESTING)
    losses: list[float] = []
    seed = int(torch.randint(2**62, ()))
    if options.resume is not None:
        state = read(options.resume, "svi")
        guide.load_state_dict(state["guide"])
        restore(module, state["module"])
        stepper.load(state["stepper"])
        losses, seed = state["losses"], state["seed"]
    batches = _batches(problem, size, seed, done=len(losses))
    with progress_bar("SVI", settings.max_iterations, show=progress) as tell:
        while len(losses) < settings.max_iterations:
            loss = elbo.differentiable_loss(program, guide, *_arguments(next(batches)))
            losses.append(float(loss.detach()))
            if not np.isfinite(losses[-1]):
                raise FloatingPointError(f"the loss is {losses[-1]} at step {len(losses)}; lower learning_rate")
            stepper.step(loss / n_tasks)
            if len(losses) % CHUNK and len(losses) < settings.max_iterations:
                continue
            tell(len(losses), f"loss {losses[-1]:,.2f}")
            if options.checkpoint is not None:
                at = {"guide": guide.state_dict(), "module": snapshot(module), "stepper": stepper.state()}
                write(options.checkpoint, "svi", at | {"losses": losses, "seed": seed})
    return losses


def _program(problem: Problem) -> Callable[[Annotations, Any], None]:
    """The story with its classifier in training mode, whose weights are kept out of Pyro's global store."""

    def program(annotations: Annotations, inputs: Any) -> None:
        with LocalParameters(), running(inputs, train=True):
            problem.model(annotations)

    return program


def _start(problem: Problem, key: jax.Array, *, progress: bool) -> Parameters:
    settings = EMSettings(tolerance=1e-5)
    if problem.classifier is not None:
        return em.to_interior(problem.settled(), problem.start(key, settings))
    return em.to_interior(problem, em.solve(problem.plain(), key, settings, progress=progress).parameters)


def _batches(problem: Problem, size: int | None, seed: int, done: int = 0) -> Iterator[Batch]:
    """Batches without end: epoch after epoch, or all tasks every time; ``done`` of them are left out."""
    source, population = problem.source, problem.data.n_tasks
    if size is None and source.dataset is None:
        whole = source.whole()
        while True:
            yield whole
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


def _batch_size(problem: Problem, settings: SVISettings) -> int | None:
    size, n_tasks = settings.batch_size, problem.data.n_tasks
    if size is None or size == n_tasks:
        return None
    if not 0 < size < n_tasks:
        raise ValueError(f"batch_size={size}: there are {n_tasks} tasks; give 1 to that many, or None")
    local = [name for name, dims in parameter_dims(problem.twin, problem.data).items() if "task" in dims]
    if local:
        raise ValueError(f"batch_size={size}: {local[0]!r} has one value a task, so all tasks are needed; give None")
    problem.check_batches(size)
    return size


def _guide(guide: str | Callable[..., AutoGuide]) -> Callable[..., AutoGuide]:
    if callable(guide):
        return guide
    if guide not in GUIDES:
        raise unknown_name("guide", guide, GUIDES)
    return GUIDES[guide]


def _schedule(n_steps: int) -> Callable[[torch.optim.Optimizer], torch.optim.lr_scheduler.LRScheduler]:
    """The first half of the steps at one rate; it falls to a tenth of it in the second."""
    half = max(n_steps // 2, 1)
    return lambda optimizer: torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: 0.1 ** (max(step - half, 0) / half)
    )


def _draws(guide: AutoGuide, arguments: tuple, names: list[str], n_draws: int) -> dict[str, np.ndarray]:
    """Draws of the fitted guide, ``(1, draw, ...)``."""
    draws: dict[str, list[np.ndarray]] = {name: [] for name in names}
    with torch.no_grad():
        for _ in range(n_draws):
            draw: dict[str, Tensor] = guide(*arguments)
            for name, values in draws.items():
                values.append(draw[name].cpu().numpy())
    return {name: np.stack(values)[None] for name, values in draws.items()}
