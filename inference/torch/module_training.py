r"""EM in minibatches with a torch module as prior of the true labels: the story's part is JAX's, the module's torch's.

An epoch passes over all tasks in batches, as :mod:`crowdppl.inference.engines` does it for networks of Flax. Each batch
gets its label posterior from the current parameters, the module in evaluation mode; then the module and the story's
real-valued parameters take a step of one optimizer on the batch's expected complete-data log-joint, the module in
training mode. JAX gives the slope along the module's log-probabilities, and :mod:`torch.autograd` carries it on to the
weights. Expected counts of the probability tables add up over the batches, and at the epoch's end the tables take their
exact M-step. What each task has of its own moves first (:mod:`crowdppl.inference.engines.local_steps`).
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax import Array
from torch import Tensor, nn

from ...data import Annotations
from ...models.parts.starts import soft_votes
from ..densities.enumerated import Parameters, density
from ..densities.model import Model
from ..densities.programs import compiled
from ..densities.sites import classifier_decides_annotations, parameter_spec
from ..engines import local_steps
from ..engines.checkpoints import NO_CHECKPOINTS, Checkpoints, Tree, packed, unpacked
from ..engines.local_steps import Locals, of_tasks, put_back, shared
from ..engines.m_step import tables_mode
from ..engines.minibatch_em import (
    MinibatchEM,
    annotations_left,
    batch_size,
    course,
    gain,
    log_posterior,
    speaks_at_random,
    usual_epochs,
    votes_with_evidence,
    warm_epochs,
    with_epochs,
)
from ..engines.outcome import Outcome, Solution
from ..engines.progress import progress_bar
from ..engines.settings import EMSettings, refuse_unused, unused_by_em
from ..sources.memory import InMemory, in_batches
from .dlpack import Look, to_jax, to_torch
from .module_classifier import GivenByTorch
from .problem import Problem
from .steps import Stepper, noted, restore, snapshot, trainable, went_on
from .torch_options import unused_with_optimizer

Weights = dict[str, Tensor] | None


class Batch(NamedTuple):
    """Some tasks: one argument of the compiled functions."""

    source: InMemory  # of all tasks
    chosen: Array  # (n,) positions of the batch's tasks
    weight: Array  # (n,) 1, or 0 for tasks that only fill up the last batch

    def tasks(self, own: Locals, log_prior: Array) -> Annotations:
        """The batch's tasks, which stand for all where each has parameters of its own."""
        some = self.source.take(self.chosen).replace(prior=log_prior)
        return some if own.is_empty else some.replace(population=self.source.n_tasks)


class Seen(NamedTuple):
    """Densities, targets and counts of a batch at the parameters before its step."""

    log_likelihood: Array  # () of its tasks
    log_prior: Array  # ()
    target: Array  # (n, K) the labels' probabilities to learn from
    counts: Parameters  # expected ones of the tables
    own: Locals  # of all tasks, after the steps of the batch's


def run(
    problem: Problem, key: Array, settings: EMSettings, *, progress: bool, keep: Checkpoints = NO_CHECKPOINTS
) -> Outcome:
    """Train from each of ``settings.restarts`` starts, and keep the solution of the highest log-posterior.

    Raises:
        FloatingPointError: where the loss or the classifier's logits are not finite, with the step.
        ValueError: for an option that this fit does not use, or minibatches that the data or the module do not allow.
    """
    unused = unused_by_em(in_batches=True, has_weights=True, holds_out=settings.held_out > 0)
    asked = settings._replace(sweeps=settings.sweeps or None)  # none is what such a fit has anyway
    refuse_unused(asked, unused | unused_with_optimizer(problem.options))
    best = solve(problem, key, settings, progress=progress, keep=keep)
    draws = {name: np.asarray(value)[None, None] for name, value in best.parameters.items()}
    return Outcome(draws, problem.fixed(), np.array(best.history), {}, best.facts, is_point=True)


def solve(problem: Problem, key: Array, settings: EMSettings, *, progress: bool, keep: Checkpoints) -> Solution:
    """The best solution; the module is left at its weights there."""
    first, found = snapshot(problem.module), []
    settings = with_epochs(problem.data, settings, has_network=True)
    with progress_bar("EM", settings.restarts * settings.passes, show=progress) as bar:
        for restart in range(settings.restarts):

            def tell(done: int, text: str, before: int = restart * settings.passes) -> None:
                bar(before + done, text)

            restore(problem.module, first)
            start_key = key if restart == 0 else jax.random.fold_in(key, restart)
            start = problem.start(start_key, perturbed=restart > 0)
            found.append(_train(problem, start, start_key, settings, tell, keep.within(f"start {restart}")))
    solution, weights = max(found, key=lambda pair: pair[0].history[-1])
    restore(problem.module, weights)
    return solution


def _train(
    problem: Problem,
    parameters: Parameters,
    key: Array,
    settings: EMSettings,
    tell: Callable[[int, str], None],
    keep: Checkpoints,
) -> tuple[Solution, Weights]:
    """Train for ``settings.epochs``, or until held-out annotations are told no better."""
    trainer = Trainer(problem, parameters, key, settings)
    history: list[float] = []
    best, best_score, best_epoch = trainer.state(), -np.inf, 0
    if (found := keep.found(MinibatchEM.stage)) is not None:
        state = went_on(found, problem.device)
        trainer.load(state["at"])
        history, best, best_score, best_epoch = (state[name] for name in ("history", "best", "score", "epoch"))

    def at() -> Tree:
        of_best = {"best": best, "score": best_score, "epoch": best_epoch}
        return noted({"at": trainer.state(), "history": history, **of_best}, problem.device)

    for number in range(len(history) + 1, settings.passes + 1):
        if settings.held_out > 0 and number - 1 - max(best_epoch, trainer.warm) >= settings.waits:
            break
        history.append(trainer.epoch(number))
        tell(number, f"log-posterior {history[-1]:,.2f}")
        score = -np.inf if settings.held_out == 0 else trainer.gain()
        if score > best_score or settings.held_out == 0:
            best, best_score, best_epoch = trainer.state(), score, number
        keep.save(MinibatchEM.stage, at, lasting=False)
    keep.save(MinibatchEM.stage, at, lasting=False, final=True)
    trainer.load(best)
    at_end = trainer.log_posterior()
    facts = course(history, problem.data, trainer.size, settings.passes)
    return Solution(trainer.parameters, [*history, at_end], facts), snapshot(problem.module)


class Trainer:
    """Training, which :meth:`epoch` moves on.

    Args:
        problem: the story with its data and its classifier.
        parameters: where to start.
        key: of the order of the tasks, and of what is held out.
        settings: of EM.
    """

    def __init__(self, problem: Problem, parameters: Parameters, key: Array, settings: EMSettings) -> None:
        self.problem, self.settings = problem, settings
        self.size = batch_size(problem.data, settings)
        problem.check_batches(self.size)
        split_key, self.key = jax.random.split(key)
        held_out, data = settings.held_out, problem.data
        self.seen = data if held_out == 0 else annotations_left(data, held_out, split_key)
        self.source = in_batches(self.seen, self.size)
        self.decides = classifier_decides_annotations(problem.model, data)
        misleads = self.decides
        if settings.warmup is None and not misleads:  # else a pass over the data tells nothing
            told = data.replace(prior=problem.with_probabilities().prior)
            misleads = bool(speaks_at_random(problem.model, parameters, told))
        self.warm = warm_epochs(settings, usual_epochs(data, settings, has_network=True), misleads=misleads)
        prior: GivenByTorch = problem.model.truth_prior  # type: ignore[assignment]
        model = problem.model
        self.model = Model(model.story, {**model.hyperparameters, "truth_prior": prior.in_logarithms()})
        self.tables, reals, self.own = _start(problem.model, data, parameters)
        self.reals = {name: nn.Parameter(to_torch(value).clone()) for name, value in reals.items()}
        self.stepper = Stepper(self._groups(), problem.options, torch.optim.Adam)

    def _groups(self) -> list[dict[str, Any]]:
        weights: dict[str, Any] = {"params": trainable(self.problem.module)}
        if self.problem.options.optimizer is None:
            weights |= {"lr": self.settings.network_rate, "weight_decay": self.settings.weight_decay}
        return [{"params": list(self.reals.values()), "lr": self.settings.learning_rate}, weights]

    @property
    def parameters(self) -> Parameters:
        """The story's parameters, in their own space."""
        return _parameters(self.problem.model, self.problem.data, self.tables, self._held(), self.own)

    def _held(self) -> Parameters:
        return {name: to_jax(value) for name, value in self.reals.items()}

    def epoch(self, number: int) -> float:
        """Pass over all tasks once; return the log-posterior, summed over the batches before their steps."""
        chosen, weights = self.source.shuffled(jax.random.fold_in(self.key, number))
        inputs = self.problem.inputs.batches(list(np.asarray(chosen)), seed=number)  # type: ignore[union-attr]
        rate, on_votes = jnp.asarray(self.settings.learning_rate), jnp.asarray(number <= self.warm)
        counts = jax.tree.map(jnp.zeros_like, self.tables)
        seen: list[tuple[Array, Array]] = []
        for i, (which, weight, x) in enumerate(zip(chosen, weights, inputs, strict=True)):
            batch = Batch(self.source, which, weight)
            with torch.no_grad():
                before = to_jax(self.problem.log_prior(x, self.size, train=False))  # type: ignore[arg-type]
            state = (self.tables, self._held(), self.own)
            found = _look(self.model, batch, state, before, on_votes, rate)
            counts = jax.tree.map(jnp.add, counts, found.counts)
            seen.append((found.log_likelihood, found.log_prior))
            self.own = found.own
            if self.stepper.parameters:
                self._move(batch, x, found.target, f"step {i + 1} of epoch {number}")
        last = Batch(self.source, chosen[-1], weights[-1])
        self.tables = _new_tables(self.model, last, (self.tables, self._held(), self.own), counts)
        log_likelihoods, log_priors = (np.asarray(jnp.stack(values)) for values in zip(*seen, strict=True))
        return float(log_likelihoods.sum() + log_priors.mean())

    def _move(self, batch: Batch, x: Any, target: Array, where: str) -> None:
        """A step of the module and the other real-valued parameters towards the labels' probabilities ``target``."""
        log_prior = self.problem.log_prior(x, self.size, train=True)
        names = tuple(self.reals)
        look = partial(_loss, self.model, batch, self.tables, self.own, target, names=names)
        loss = Look(lambda arrays: look(list(arrays)))(*self.reals.values(), log_prior)  # type: ignore[arg-type]
        if not torch.isfinite(loss):
            finite = bool(torch.isfinite(log_prior).all())  # type: ignore[arg-type]
            what = f"the loss is {float(loss)}" if finite else "the classifier's logits are not finite"
            raise FloatingPointError(
                f"{what} at {where}; lower network_rate or clip=, scale the features, or use batch norm"
            )
        self.stepper.step(loss)

    def gain(self) -> float:
        """The log-probability of held-out annotations by the module's classes, less that by their mean."""
        prior = self.problem.with_probabilities().prior
        data, seen = (annotations.replace(prior=prior) for annotations in (self.problem.data, self.seen))
        return float(gain(self.problem.model, self.parameters, data, seen, self.decides))

    def log_posterior(self) -> float:
        """The log-posterior with the tables in log-odds."""
        data = self.problem.data.replace(prior=self.problem.with_probabilities().prior)
        return float(log_posterior(self.problem.model, data, self.parameters))

    def state(self) -> dict[str, Any]:
        """Return the state that a checkpoint saves."""
        return {
            "tables": packed(self.tables),
            "reals": {name: value.detach().clone() for name, value in self.reals.items()},
            "own": packed(self.own),
            "module": snapshot(self.problem.module),
            "stepper": self.stepper.state(),
        }

    def load(self, state: dict[str, Any]) -> None:
        """Go on from what :meth:`state` returned."""
        self.tables, self.own = unpacked(state["tables"], self.tables), unpacked(state["own"], self.own)
        with torch.no_grad():
            for name, value in self.reals.items():
                value.copy_(state["reals"][name])
        restore(self.problem.module, state["module"])
        self.stepper.load(state["stepper"])


@compiled
def _start(model: Model, annotations: Annotations, parameters: Parameters) -> tuple[Parameters, Parameters, Locals]:
    """Tables and unconstrained reals that tasks share, and what each task has of its own."""
    spec = parameter_spec(model, annotations)
    tables = shared(spec, {name: parameters[name] for name in spec.tables})
    return tables, shared(spec, spec.to_reals(parameters)), local_steps.by_task(spec, parameters)


@compiled
def _parameters(
    model: Model, annotations: Annotations, tables: Parameters, reals: Parameters, own: Locals
) -> Parameters:
    spec = parameter_spec(model, annotations)
    return tables | spec.from_reals(reals) | own.values(spec)


@compiled
def _look(
    model: Model,
    batch: Batch,
    state: tuple[Parameters, Parameters, Locals],
    log_prior: Array,
    on_votes: Array,
    rate: Array,
) -> Seen:
    tables, reals, everyone = state
    spec, some = parameter_spec(model, batch.source.like), batch.tasks(everyone, log_prior)
    here = of_tasks(everyone, spec, batch.chosen)

    def log_likelihood(tables: Parameters) -> tuple[Array, tuple[Array, Array]]:
        at = density(model, tables | here.values(spec) | spec.from_reals(reals), some)
        return (batch.weight * at.log_likelihood).sum(), (at.posterior, at.log_prior_in_log_odds)

    (total, (posterior, of_prior)), slope = jax.value_and_grad(log_likelihood, has_aux=True)(tables)
    counts = {name: table * slope[name] for name, table in tables.items()}
    target = jnp.where(on_votes, votes_with_evidence(soft_votes(some), some), posterior)
    if not here.is_empty:
        rest = tables | spec.from_reals(reals)
        here = local_steps.climb(model, some, spec, here, rest, target, batch.weight, rate)
        everyone = put_back(everyone, here, spec, batch.chosen, batch.weight)
    return Seen(total, of_prior, target, counts, everyone)


@compiled(static=("names",))
def _loss(
    model: Model,
    batch: Batch,
    tables: Parameters,
    own: Locals,
    target: Array,
    arrays: list[Array],
    *,
    names: tuple[str, ...],
) -> tuple[Array, list[Array]]:
    """The loss at reals by ``names`` and log-probabilities of the classes, and its slopes along them."""
    spec = parameter_spec(model, batch.source.like)
    here = of_tasks(own, spec, batch.chosen).values(spec)

    def loss(arrays: list[Array]) -> Array:
        *values, log_prior = arrays
        reals = spec.from_reals(dict(zip(names, values, strict=True)))
        at = density(model, tables | here | reals, batch.tasks(own, log_prior))
        expected = jnp.where(target > 0, target * at.log_joint, 0.0).sum(-1)
        mean = (batch.weight * expected).sum() / batch.weight.sum()
        return -(mean + at.log_prior_in_log_odds / batch.source.n_tasks)

    value, slopes = jax.value_and_grad(loss)(arrays)
    return value, slopes


@compiled
def _new_tables(
    model: Model, batch: Batch, state: tuple[Parameters, Parameters, Locals], counts: Parameters
) -> Parameters:
    """The exact M-step of the tables at the end of an epoch; the prior is looked at with the tasks of one batch."""
    tables, reals, own = state
    spec = parameter_spec(model, batch.source.like)
    here = of_tasks(own, spec, batch.chosen).values(spec)
    shape = (len(batch.chosen), batch.source.like.n_classes)
    some = batch.tasks(own, jnp.full(shape, -jnp.log(shape[1])))

    def log_prior(tables: Parameters) -> Array:
        return density(model, tables | here | spec.from_reals(reals), some).log_prior_in_log_odds

    slope = jax.grad(log_prior)(tables)
    return tables_mode({name: counts[name] + table * slope[name] for name, table in tables.items()}, tables)
