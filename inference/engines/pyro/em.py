r"""Expectation maximisation of any Pyro story by :mod:`torch.autograd`.

It uses the identities of :mod:`crowdppl.inference.engines.em`.
The expected counts of a probability table are :math:`n = \theta \odot \nabla_\theta \log Z(\theta)`, and its exact
M-step is :math:`\theta' \propto \alpha + n`. Parameters that are no probability tables climb by Adam;
where the exact M-step is not all of an iteration, it is halved until the log-posterior does not fall.
"""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import torch

from ....data import Annotations
from ...densities.model import Model
from ..checkpoints import NOWHERE, Checkpoints, Nest
from ..em_climber import CHANGE_DECAY, STEP_GROWTH
from ..outcome import Outcome
from ..progress import progress_bar
from ..settings import EMSettings
from ..unused_options import refuse_unused, unused_by_em
from . import training
from .ascent import gradient, tables_mode
from .density import Anatomy, Parameters, anatomy, density
from .options import unused_with_optimizer
from .problem import Problem, to_arrays
from .steps import Solution, noted, refuse, restore, snapshot, went_on

STAGE = "em"  # of a checkpoint
CHUNK = 25  # iterations between two looks at the progress


def run(
    problem: Problem, key: jax.Array, settings: EMSettings, *, progress: bool, keep: Checkpoints = NOWHERE
) -> Outcome:
    """Run EM from each of ``settings.restarts`` starts, and keep the solution of the highest log-posterior.

    Raises:
        FloatingPointError: where the log-posterior is not finite, with the iteration or the step.
        ValueError: for an option that this story does not use, or minibatches that the data or the story do not allow.
    """
    has_weights = problem.classifier is not None
    unused = unused_by_em(
        in_batches=_in_batches(problem, settings), has_weights=has_weights, holds_out=settings.held_out > 0
    )
    refuse_unused(settings, unused | unused_with_optimizer(problem.options))
    best = solve(problem, key, settings, progress=progress, keep=keep)
    draws = {name: value[None, None] for name, value in to_arrays(best.parameters).items()}
    ends = tuple(map(to_arrays, best.ends))
    return Outcome(draws, problem.fixed(), np.array(best.history), {}, best.facts, is_point=True, ends=ends)


def solve(
    problem: Problem, key: jax.Array, settings: EMSettings, *, progress: bool, keep: Checkpoints = NOWHERE
) -> Solution:
    """Return the best solution; the classifier is left at its weights there."""
    in_batches = _in_batches(problem, settings)
    if not in_batches:
        refuse(problem.options, "EM over all data", ("optimizer", "scheduler", "clip"))
    per_start = settings.epochs if in_batches else settings.max_iterations
    module = None if problem.classifier is None else problem.classifier.module
    first = snapshot(module)
    solutions: list[Solution] = []
    with progress_bar("EM", settings.restarts * per_start, show=progress) as bar:
        for restart in range(settings.restarts):

            def tell(done: int, log_posterior: float, before: int = restart * per_start) -> None:
                bar(before + done, f"log-posterior {log_posterior:,.2f}")

            kept = keep.within(f"start {restart}")
            restore(module, first)
            start_key = key if restart == 0 else jax.random.fold_in(key, restart)
            start = problem.start(start_key, perturbed=restart > 0)
            if in_batches:
                solutions.append(training.run(problem, start, settings, tell, kept))
            else:
                solutions.append(_iterate(problem, start, settings, tell, kept))
    best = max(solutions, key=lambda solution: solution.history[-1])
    restore(module, best.weights)
    several = len(solutions) > 1 and module is None  # what a module would say at its other weights is not kept
    return best._replace(ends=tuple(solution.parameters for solution in solutions) if several else ())


def _in_batches(problem: Problem, settings: EMSettings) -> bool:
    """Whether the story is trained in minibatches: it has a classifier, or the user asks for them."""
    return settings.batch_size is not None or problem.classifier is not None


def _iterate(
    problem: Problem,
    parameters: Parameters,
    settings: EMSettings,
    tell: Callable[[int, float], None],
    keep: Checkpoints,
) -> Solution:
    """Iterate over all data until EM converges."""
    model, annotations = problem.model, problem.source.whole().annotations
    parts = anatomy(model, parameters, annotations)
    climber = Climber(model, annotations, parts, parameters, settings)
    history: list[float] = []
    device = problem.source.device
    if (found := keep.found(STAGE)) is not None:
        state = went_on(found, device)
        climber.load(state)
        history = state["history"]

    def at() -> Nest:
        return noted({**climber.state(), "history": history}, device)

    while len(history) < settings.max_iterations and climber.change > settings.tolerance:
        climber.step()
        history.append(climber.log_posterior)
        if not np.isfinite(history[-1]):
            raise FloatingPointError(f"the log-posterior is {history[-1]} at iteration {len(history)}")
        if len(history) % CHUNK == 0:
            tell(len(history), history[-1])
        keep.note(STAGE, at, lasting=False)
    keep.note(STAGE, at, lasting=False, final=True)
    with torch.no_grad():
        history.append(float(density(model, climber.parameters, annotations).log_posterior_in_log_odds))
    return Solution(climber.parameters, history, {"change": float(climber.change)})


class Climber:
    """EM over all data: where it stands, and one iteration after the other.

    Args:
        model: the Pyro story.
        annotations: of tensors.
        parts: of the story.
        parameters: where to start.
        settings: of EM.
    """

    def __init__(
        self, model: Model, annotations: Annotations, parts: Anatomy, parameters: Parameters, settings: EMSettings
    ) -> None:
        self.model, self.annotations, self.parts, self.settings = model, annotations, parts, settings
        self.parameters = {name: value.detach() for name, value in parameters.items()}
        self.log_posterior, self.change, self.stride = -np.inf, np.inf, 1.0
        self._reals = {name: value.clone() for name, value in parts.to_reals(self.parameters).items()}
        self._adam = torch.optim.Adam([*self._reals.values()] or [torch.zeros(1)], lr=settings.learning_rate)

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint saves."""
        names = ("parameters", "log_posterior", "change", "stride")
        return {name: getattr(self, name) for name in names} | {"adam": self._adam.state_dict()}

    def load(self, state: dict[str, Any]) -> None:
        """Go on from what :meth:`state` returned."""
        self.parameters, self.log_posterior = state["parameters"], state["log_posterior"]
        self.change, self.stride = state["change"], state["stride"]
        self._adam.load_state_dict(state["adam"])

    def step(self) -> None:
        """Take one iteration: E-step, M-step of the probability tables and a step of the others, by one gradient."""
        parts, old = self.parts, self.parameters
        counts, slope, at = gradient(self.model, self.annotations, parts, old)
        log_posterior = float(at.log_posterior_in_log_odds.detach())
        with torch.no_grad():
            new = {**old, **tables_mode(counts, old)}
            change = abs((log_posterior - self.log_posterior) / log_posterior)
            if parts.bijections:
                new |= parts.from_reals(self._moved(parts.to_reals(old), slope))
                change = max(change, CHANGE_DECAY * (self.change if np.isfinite(self.change) else 0.0))
            if parts.bijections or parts.has_factors:
                new, share = self._stepped_back(old, new, log_posterior)
                self.stride = max(self.stride * max(share, 0.1), 1e-4) if share < 1 else self.stride * STEP_GROWTH
                self.stride = min(self.stride, 1.0)
                if share == 0:
                    self._adam.state.clear()
        self.parameters, self.log_posterior, self.change = new, log_posterior, change

    def _moved(self, reals: Parameters, slope: Parameters) -> Parameters:
        """Return the reals after a share of Adam's step uphill."""
        for name, value in self._reals.items():
            value.copy_(reals[name])
            value.grad = -slope[name]
        self._adam.step()
        return {name: real + self.stride * (self._reals[name] - real) for name, real in reals.items()}

    def _stepped_back(self, old: Parameters, new: Parameters, least: float) -> tuple[Parameters, float]:
        """Return the parameters where the log-posterior does not fall, on the way from ``old`` to ``new``, halved."""
        parts = self.parts
        old_reals, new_reals = parts.to_reals(old), parts.to_reals(new)
        share = 1.0
        while share > 0.5**self.settings.halvings:
            there = {name: (1 - share) * old[name] + share * new[name] for name in parts.tables}
            there |= parts.from_reals({n: (1 - share) * old_reals[n] + share * new_reals[n] for n in old_reals})
            if float(density(self.model, there, self.annotations).log_posterior_in_log_odds) >= least:
                return there, share
            share /= 2
        return old, 0.0
