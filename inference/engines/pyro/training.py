r"""EM in minibatches by :mod:`torch.autograd`, as :mod:`crowdppl.inference.engines.epochs` does it for NumPyro.

Each batch gets its label posterior from the current parameters, the network in evaluation mode; then the network and
other real-valued parameters take a step on the batch's expected complete-data log-joint, the network in training mode.
The probability tables' expected counts add up over the batches, and at the epoch's end they take their exact M-step.
What each task has of its own moves first (:mod:`crowdppl.inference.engines.pyro.local_steps`).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ....data import Annotations
from ....models.parts.emissions import SMALLEST
from ....models.pyro import soft_votes
from ...densities.sites import parameter_dims
from ..checkpoints import NOWHERE, Checkpoints, Nest
from ..epochs import BATCH, STAGE, batch_size, warm_epochs
from ..settings import EMSettings
from .ascent import slopes_of, tables_mode
from .batches import Batch, TaskSource
from .density import Anatomy, Density, Parameters, anatomy, density
from .local_steps import Locals
from .options import TorchOptions
from .problem import Problem
from .steps import Solution, Stepper, frozen, noted, restore, snapshot, trainable, went_on


class Trainer:
    """The state of training, which :meth:`epoch` moves on.

    Args:
        problem: the story with its data and its classifier.
        parameters: where to start.
        source: the tasks with the annotations to train on.
        settings: of EM.
    """

    def __init__(self, problem: Problem, parameters: Parameters, source: TaskSource, settings: EMSettings) -> None:
        self.problem, self.settings, self.source = problem, settings, source
        self.model, self.n_tasks = problem.model, source.annotations.n_tasks
        self.size = batch_size(problem.data, settings)
        has_classifier = problem.classifier is not None
        self.warm = warm_epochs(problem.twin, problem.data, settings, has_classifier=has_classifier)
        problem.check_batches(self.size)
        self.generator = torch.Generator().manual_seed(int(torch.randint(2**62, ())))
        self.module = None if problem.classifier is None else problem.classifier.module
        first = next(iter(source.epoch(min(self.size, 2), torch.Generator().manual_seed(0))))
        self.parts: Anatomy = anatomy(self.model, parameters, first.annotations, first.inputs)
        self.own = Locals(self.parts, parameter_dims(problem.twin, problem.data), parameters, settings.learning_rate)
        own = self.own.axes
        self.tables = {name: parameters[name].detach() for name in self.parts.tables if name not in own}
        reals = {name: real for name, real in self.parts.to_reals(parameters).items() if name not in own}
        self.reals = {name: value.detach().clone().requires_grad_() for name, value in reals.items()}
        self.stepper = Stepper(self._groups(problem.options), problem.options, torch.optim.Adam)

    def _groups(self, options: TorchOptions) -> list[dict[str, Any]]:
        weights: dict[str, Any] = {"params": trainable(self.module)}
        if options.optimizer is None:
            weights["lr"] = self.settings.network_rate
        return [{"params": list(self.reals.values()), "lr": self.settings.learning_rate}, weights]

    @property
    def parameters(self) -> Parameters:
        """Return the story's parameters, in their own space."""
        return {**self.tables, **self._held(), **self.own.everyone}

    def epoch(self, number: int) -> float:
        """Pass over all tasks once; return the log-posterior, summed over the batches before their steps."""
        tables = {name: value.clone().requires_grad_() for name, value in self.tables.items()}
        counts = {name: torch.zeros_like(value) for name, value in self.tables.items()}
        log_likelihood, log_priors = 0.0, []
        population = None if self.own.is_empty else self.n_tasks
        for i, batch in enumerate(self.source.epoch(self.size, self.generator, population=population)):
            with frozen(self.module):
                own = self.own.at(batch.chosen).values(self.parts)
                at = density(self.model, {**tables, **self._held(), **own}, batch.annotations, batch.inputs)
                total = (batch.weight * at.log_likelihood).sum()
                slopes = slopes_of(total, tables)
            counts = {name: counts[name] + self.tables[name] * slopes[name] for name in counts}
            log_likelihood += float(total.detach())
            target = at.posterior.detach()
            if number <= self.warm:
                target = _votes_with_evidence(batch.annotations)
            log_priors.append(float(at.log_prior_in_log_odds.detach()))
            if not self.own.is_empty:
                with frozen(self.module):
                    self.own.climb(partial(self._at, batch), target, batch.chosen, batch.weight)
            if self.stepper.parameters:
                self._move(batch, target, f"step {i + 1} of epoch {number}")
        slopes = slopes_of(self._log_prior(tables, batch), tables)
        counts = {name: counts[name] + self.tables[name] * slopes[name] for name in counts}
        self.tables = tables_mode(counts, self.tables)
        return log_likelihood + sum(log_priors) / len(log_priors)

    def _at(self, batch: Batch, own: Parameters) -> Density:
        """The density of a batch at parameters of its tasks' own."""
        return density(self.model, {**self.tables, **self._held(), **own}, batch.annotations, batch.inputs)

    def _held(self) -> Parameters:
        return {name: value.detach() for name, value in self.parts.from_reals(self.reals).items()}

    def _move(self, batch: Batch, target: Tensor, where: str) -> None:
        """A step of the network and the other real-valued parameters towards the labels' probabilities ``target``."""
        values = self.tables | self.parts.from_reals(self.reals) | self.own.at(batch.chosen).values(self.parts)
        at = density(self.model, values, batch.annotations, batch.inputs, train=True)
        expected = torch.where(target > 0, target * at.log_joint, torch.zeros_like(target)).sum(-1)
        loss = -((batch.weight * expected).sum() / batch.weight.sum() + at.log_prior_in_log_odds / self.n_tasks)
        if not torch.isfinite(loss):
            finite = bool(torch.isfinite(at.truth_prior).all())
            what = f"the loss is {float(loss)}" if finite else "the classifier's logits are not finite"
            raise FloatingPointError(
                f"{what} at {where}; lower network_rate or clip=, scale the features, or use batch norm"
            )
        self.stepper.step(loss)

    def _log_prior(self, tables: Parameters, batch: Batch) -> Tensor:
        with frozen(self.module):
            own = self.own.at(batch.chosen).values(self.parts)
            at = density(self.model, {**tables, **self._held(), **own}, batch.annotations, batch.inputs)
        return at.log_prior_in_log_odds

    def predicted(self) -> float:
        r"""Return the log-probability of the held-out annotations given the seen ones.

        It is :math:`\log p(y) - \log p(y_\text{seen})`.
        """
        whole, part = (self.log_likelihood(source) for source in (self.problem.source, self.source))
        return whole - part

    def log_likelihood(self, source: TaskSource) -> float:
        """Return the log-likelihood of ``source``, the labels summed out."""
        size, total = max(self.size, BATCH), 0.0
        shared = {**self.tables, **self._held()}
        with torch.no_grad():
            for batch in source.epoch(min(size, self.n_tasks), torch.Generator().manual_seed(0)):
                own = self.own.at(batch.chosen).values(self.parts)
                at = density(self.model, shared | own, batch.annotations, batch.inputs)
                total += float((batch.weight * at.log_likelihood).sum())
        return total

    def log_posterior(self) -> float:
        """Return the log-posterior of the parameters on all data."""
        few = min(self.size, 2) if self.own.is_empty else self.n_tasks  # the prior is of all that tasks have
        batch = next(iter(self.source.epoch(few, torch.Generator().manual_seed(0))))
        with torch.no_grad():
            log_prior = self._at(batch, self.own.at(batch.chosen).values(self.parts)).log_prior_in_log_odds
        return self.log_likelihood(self.problem.source) + float(log_prior)

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint saves."""
        return {
            "tables": self.tables,
            "reals": {name: value.detach().clone() for name, value in self.reals.items()},
            "module": snapshot(self.module),
            "generator": self.generator.get_state(),
            "stepper": self.stepper.state(),
            "own": self.own.state(),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Go on from what :meth:`state` returned."""
        self.tables = dict(state["tables"])
        with torch.no_grad():
            for name, value in self.reals.items():
                value.copy_(state["reals"][name])
        restore(self.module, state["module"])
        self.generator.set_state(state["generator"])
        self.stepper.load(state["stepper"])
        self.own.load(state["own"])


def run(
    problem: Problem,
    parameters: Parameters,
    settings: EMSettings,
    tell: Callable[[int, float], None],
    keep: Checkpoints = NOWHERE,
) -> Solution:
    """Train from ``parameters`` for ``settings.epochs``, or until the held-out annotations' log-probability has peaked.

    Raises:
        FloatingPointError: where the loss or the classifier's logits are not finite, with the step.
        ValueError: for a batch size or a share held out that cannot be, or batch norm with batches of one task.
    """
    device = problem.source.device
    batch_size(problem.data, settings)  # before anything is held out
    seen = problem.source if settings.held_out == 0 else _without(problem, settings.held_out)
    trainer = Trainer(problem, parameters, seen, settings)
    history: list[float] = []
    best, best_score, best_epoch = trainer.state(), -np.inf, 0
    if (found := keep.found(STAGE)) is not None:
        state = went_on(found, device)
        trainer.load(state["at"])
        history, best, best_score, best_epoch = (state[name] for name in ("history", "best", "score", "epoch"))

    def at() -> Nest:
        of_best = {"best": best, "score": best_score, "epoch": best_epoch}
        return noted({"at": trainer.state(), "history": history, **of_best}, device)

    for number in range(len(history) + 1, settings.epochs + 1):
        if settings.held_out > 0 and number - 1 - max(best_epoch, trainer.warm) >= settings.patience:
            break
        history.append(trainer.epoch(number))
        tell(number, history[-1])
        score = -np.inf if settings.held_out == 0 else trainer.predicted()
        if score > best_score or settings.held_out == 0:
            best, best_score, best_epoch = trainer.state(), score, number
        keep.note(STAGE, at, lasting=False)
    keep.note(STAGE, at, lasting=False, final=True)
    trainer.load(best)
    return Solution(trainer.parameters, [*history, trainer.log_posterior()], {}, snapshot(trainer.module))


def _without(problem: Problem, share: float) -> TaskSource:
    """Return the tasks with a random share of the annotations taken out: their rows count less."""
    annotations = problem.source.annotations
    count = torch.ones(len(annotations.task)) if annotations.count is None else annotations.count
    out = torch.distributions.Binomial(count, torch.full_like(count, share)).sample()
    return problem.source.with_annotations(annotations.replace(count=count - out))


def _votes_with_evidence(annotations: Annotations) -> Tensor:
    """Return the soft majority vote, combined with the evidence on the true labels where there is any."""
    votes = soft_votes(annotations)
    if annotations.evidence is None:
        return votes
    return torch.softmax(votes.clamp_min(SMALLEST).log() + annotations.evidence, dim=-1)
