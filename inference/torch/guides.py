"""Stochastic variational inference by Pyro: its guides and optimizers on a story with its true labels summed out.

A guide of independent normals without Pyro's handlers.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pyro
import torch
from jax import Array
from pyro import poutine
from pyro.infer.autoguide import (
    AutoDelta,
    AutoGuide,
    AutoLaplaceApproximation,
    AutoLowRankMultivariateNormal,
    AutoMultivariateNormal,
    init_to_value,
)
from pyro.poutine.util import site_is_subsample
from torch import Tensor, nn
from torch.nn.functional import softplus

from ..densities.sites import parameter_dims
from ..engines import em
from ..engines.checkpoints import NO_CHECKPOINTS, Checkpoints, Tree
from ..engines.outcome import Outcome, as_point
from ..engines.progress import progress_bar
from ..engines.settings import EMSettings, SVISettings, refuse_unused, unused_by_svi
from ..engines.svi import OF_TRAINING, by_task, check_losses, facts, guide_of, makes, minibatch_size, without_gaps
from ..sources.memory import InMemory, in_batches
from . import module_training
from .dlpack import to_jax, to_torch
from .problem import Problem
from .program import REALS, log_posterior_at, many_from_reals, marginal_in_pyro, to_reals
from .steps import Groups, Stepper, noted, restore, snapshot, went_on
from .torch_options import unused_with_optimizer

SCALE = 0.1  # of each normal at the start, as of Pyro's AutoNormal
CHUNK = 100  # steps between two looks at the progress


class Normals(nn.Module):
    r"""A normal for each number of each parameter, on the reals: Pyro's ``AutoNormal`` in two vectors.

    .. math:: \theta = T(\mu + \sigma \epsilon), \qquad \epsilon \sim \text{Normal}(0, 1)

    Pyro's runs every site through a stack of handlers and a bijection :math:`T` of its own, which takes longer than the
    numbers do; here :math:`T` is within the compiled log-density.

    Args:
        reals: of the parameters, where the normals start, ``(D,)``: :func:`.to_reals`.
    """

    def __init__(self, reals: Tensor) -> None:
        super().__init__()
        self.loc = nn.Parameter(reals.clone())
        self.unscaled = nn.Parameter(torch.full_like(reals, math.log(math.expm1(SCALE))))  # softplus of it is the scale

    def forward(self) -> tuple[Tensor, Tensor]:
        """Return one draw on the reals, and its log-density."""
        scale, noise = softplus(self.unscaled), torch.randn_like(self.loc)
        density = -0.5 * (noise**2).sum() - scale.log().sum() - 0.5 * math.log(2 * math.pi) * noise.numel()
        return self.loc + scale * noise, density


GUIDES: dict[str, Callable[..., Any]] = {
    "normal": Normals,
    "multivariate_normal": AutoMultivariateNormal,
    "low_rank": AutoLowRankMultivariateNormal,
    "delta": AutoDelta,
}

REFUSED = {
    "sweeps": "with backend='pyro' the draws are those of Pyro's guide; leave out sweeps, or backend",
}
"""Options of NumPyro's SVI that this one does not have, with the reason."""

STAGE = "svi"  # of a checkpoint


class Batch(NamedTuple):
    """Tasks of one step."""

    chosen: Array | None  # positions; None for all
    inputs: Any  # of the classifier
    n_tasks: int


def run(
    problem: Problem, key: Array, settings: SVISettings, *, progress: bool, keep: Checkpoints = NO_CHECKPOINTS
) -> Outcome:
    """Fit the guide, and draw from it.

    It starts from EM's solution; a module stays where EM in minibatches has led it.

    Raises:
        UnknownNameError: for a guide of that name.
        ValueError: for an option that this story or guide does not use, or a minibatch that the data or the story do
            not allow.
        FloatingPointError: where the loss is not finite, with the step.
    """
    is_delta = makes(AutoDelta, guide_of(settings.guide, GUIDES))
    has_module = problem.classifier is not None
    refuse_unused(
        settings,
        unused_by_svi(
            has_network=has_module, has_weights=has_module, is_point=is_delta, holds_out=settings.held_out > 0
        )
        | unused_with_optimizer(problem.options),
    )
    size, names = _batch_size(problem, settings), list(parameter_dims(problem.model, problem.data))
    before = keep.within("before")
    if has_module:
        given = {name: getattr(settings, name) for name in OF_TRAINING}
        before_svi = replace(problem, options=problem.options._replace(scheduler=None))  # which is of SVI's steps
        solution = module_training.solve(before_svi, key, EMSettings(**given), progress=progress, keep=before)
    else:
        of_em = EMSettings(tolerance=1e-5)
        solution = em.solve(problem.model, problem.data, key, of_em, progress=progress, keep=before)
    values = solution.parameters
    source = None if size is None else in_batches(problem.data, size)
    program = marginal_in_pyro(problem.model, source=source)
    with pyro.settings.context(module_local_params=True), pyro.get_param_store().scope():
        store = pyro.get_param_store()
        start = {name: to_torch(jnp.asarray(value)).clone() for name, value in values.items()}
        make = guide_of(settings.guide, GUIDES)
        if make is Normals:
            guide: Any = Normals(to_torch(to_reals(problem.model, problem.data, values)))
        else:
            guide = make(program, init_loc_fn=init_to_value(values=start))
        first = next(_batches(problem, source, 0))
        arguments = partial(_arguments, problem)
        with torch.no_grad():
            _draw(guide, arguments(first))  # finds its sites
            at_start = pyro.poutine.condition(program, data=start)
            at_start(*arguments(first))  # and what the story optimises
        for name in store:
            store[name] = start[name]
        optimised = dict(store.named_parameters())
        losses = _descend(problem, guide, optimised, source, settings, progress=progress, keep=keep)
        n_draws = 1 if is_delta else settings.draws
        if isinstance(guide, AutoLaplaceApproximation):
            guide = guide.laplace_approximation(*arguments(first))
        draws = _draws(problem, guide, arguments(first), [n for n in names if n not in optimised], n_draws)
        fixed = {name: store[name].detach().cpu().numpy() for name in optimised}
    draws, is_point = as_point(draws, is_point=is_delta)
    of_network = solution.facts if has_module else {}
    return Outcome(draws, problem.fixed() | fixed, without_gaps(losses), {}, {**facts(losses), **of_network}, is_point)


def _arguments(problem: Problem, batch: Batch) -> tuple[Any, Tensor | None, Array | None]:
    with torch.no_grad():
        return problem.data, problem.log_prior(batch.inputs, batch.n_tasks, train=False), batch.chosen


def _descend(
    problem: Problem,
    guide: AutoGuide | Normals,
    optimised: dict[str, Tensor],
    source: InMemory | None,
    settings: SVISettings,
    *,
    progress: bool,
    keep: Checkpoints,
) -> list[float]:
    """Take the steps, and return the loss before each."""
    module, options = problem.module, problem.options
    weights: dict[str, Any] = {"params": [*optimised.values()]}
    if options.optimizer is None:
        weights |= {"lr": settings.network_rate, "weight_decay": settings.weight_decay}
    groups: Groups = [{"params": list(guide.parameters()), "lr": settings.learning_rate}, weights]
    adam = partial(torch.optim.Adam, fused=options.autocast is not torch.float16)  # not where gradients are scaled
    stepper = Stepper(groups, options, adam, _schedule(settings.max_iterations))
    losses: list[float] = []
    seed = int(torch.randint(2**31, ()))
    if (found := keep.found(STAGE)) is not None:
        state = went_on(found, problem.device)
        guide.load_state_dict(state["guide"])
        _put(optimised, state["optimised"])
        restore(module, state["module"])
        stepper.load(state["stepper"])
        losses, seed = state["losses"], state["seed"]

    def at() -> Tree:
        state = {"guide": guide.state_dict(), "module": snapshot(module), "stepper": stepper.state()}
        return noted({**state, "optimised": optimised, "losses": losses, "seed": seed}, problem.device)

    batches = _batches(problem, source, seed, done=len(losses))
    with progress_bar("SVI", settings.max_iterations, show=progress) as tell:
        while len(losses) < settings.max_iterations:
            arguments = _arguments(problem, next(batches))
            loss = _loss(problem, guide, source, arguments, settings.particles)
            losses.append(float(loss.detach()))
            if np.isfinite(losses[-1]):
                stepper.step(loss / problem.data.n_tasks)
            else:
                check_losses(losses)
            if len(losses) % CHUNK == 0:
                tell(len(losses), f"loss {losses[-1]:,.2f}")
            keep.save(STAGE, at, lasting=False)
    keep.save(STAGE, at, lasting=False, final=True)
    return losses


def _loss(
    problem: Problem, guide: AutoGuide | Normals, source: InMemory | None, arguments: tuple, particles: int
) -> Tensor:
    r"""The negative ELBO, :math:`\log q(\theta) - \log p(\theta, y)`, averaged over draws: Pyro's ``Trace_ELBO``."""
    data, log_prior, chosen = arguments
    store, losses = pyro.get_param_store(), []
    for _ in range(particles):
        values, log_density = _draw(guide, arguments)
        values |= {name: store[name] for name in store}
        at = log_posterior_at(problem.model, data, values, log_prior, source, chosen)
        losses.append(log_density - at)
    return torch.stack(losses).mean()


def _draw(guide: AutoGuide | Normals, arguments: tuple) -> tuple[dict[str, Tensor], Any]:
    """One draw of a guide by parameter, and its log-density."""
    if isinstance(guide, Normals):
        reals, log_density = guide()
        return {REALS: reals}, log_density
    trace = poutine.trace(guide).get_trace(*arguments)
    sites: Any = {n: s for n, s in trace.nodes.items() if s["type"] == "sample" and not site_is_subsample(s)}
    return {n: s["value"] for n, s in sites.items() if not s["infer"].get("is_auxiliary")}, trace.log_prob_sum()


def _put(values: dict[str, Tensor], others: dict[str, Tensor]) -> None:
    with torch.no_grad():
        for name, value in values.items():
            value.copy_(others[name])


def _batches(problem: Problem, source: InMemory | None, seed: int, done: int = 0) -> Iterator[Batch]:
    """Batches without end: epoch after epoch, or all tasks every time; ``done`` of them are left out."""
    n_tasks, inputs = problem.data.n_tasks, problem.inputs
    if source is None:
        everyone = [np.arange(n_tasks)]
        kept = None if inputs is None else next(inputs.batches(everyone))
        while True:
            yield Batch(None, kept, n_tasks)
            if inputs is not None and inputs.dataset is not None:
                kept = next(inputs.batches(everyone))
    key = jax.random.key(seed)
    number, begin = divmod(done, source.n_batches)
    while True:
        chosen = source.shuffled(jax.random.fold_in(key, number))[0][begin:]
        seen = [None] * len(chosen) if inputs is None else inputs.batches(list(np.asarray(chosen)), seed=number)
        for which, x in zip(chosen, seen, strict=True):
            yield Batch(which, x, len(which))
        number, begin = number + 1, 0


def _batch_size(problem: Problem, settings: SVISettings) -> int | None:
    size = minibatch_size(settings, problem.data)
    if size is None:
        return None
    local = by_task(problem.model, problem.data)
    if local:
        raise ValueError(
            f"batch_size={size}: {local[0]!r} has one value a task, and Pyro's guides have all of them in each step; "
            "give batch_size=None, backend='numpyro', or method='em'"
        )
    problem.check_batches(size)
    return size


def _schedule(n_steps: int) -> Callable[[torch.optim.Optimizer], torch.optim.lr_scheduler.LRScheduler]:
    """A schedule: one rate in the first half of the steps, which falls to a tenth in the second."""
    half = max(n_steps // 2, 1)
    return lambda optimizer: torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: 0.1 ** (max(step - half, 0) / half)
    )


def _draws(
    problem: Problem, guide: AutoGuide | Normals, arguments: tuple, names: list[str], n_draws: int
) -> dict[str, np.ndarray]:
    """Draws of the fitted guide, ``(1, draw, ...)``."""
    with torch.no_grad():
        if isinstance(guide, Normals):
            reals = torch.stack([guide()[0] for _ in range(n_draws)])
            found = many_from_reals(problem.model, problem.data, to_jax(reals))
            return {name: np.asarray(found[name])[None] for name in names}
        draws = [guide(*arguments) for _ in range(n_draws)]
    return {name: np.stack([draw[name].cpu().numpy() for draw in draws])[None] for name in names}
