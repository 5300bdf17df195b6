r"""EM in minibatches as a climber, for stories with a network, and for data that one pass should not hold at once.

An epoch passes over all tasks in batches. Each batch gets its label posterior from the current parameters, the network
in evaluation mode; then the network and other real-valued parameters take a step of Adam on the batch's expected
complete-data log-joint, the network in training mode. The probability tables' expected counts add up over the batches,
and at the epoch's end the tables take their exact M-step. What each task has of its own is the batch's alone
(:mod:`crowdppl.inference.engines.local_steps`): it moves first, and as far as it does in a few steps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from ...data import Annotations
from ...models.parts.kernels import safe_log
from ...models.parts.starts import soft_votes
from ..densities.enumerated import Parameters, density, log_sum_exp
from ..densities.model import Model
from ..densities.programs import compiled
from ..densities.sites import ParameterSpec, classifier_decides_annotations, parameter_spec
from ..sources.memory import InMemory, in_batches
from . import local_steps
from .checkpoints import NO_CHECKPOINTS, Checkpoints
from .climber import climb
from .local_steps import Locals, of_tasks, put_back, shared
from .m_step import tables_mode
from .outcome import Solution
from .settings import EPOCHS, PATIENCE, EMSettings

ADVICE = "lower network_rate, scale the features, or use batch_norm=True"
BATCH = 64  # tasks, where the user says nothing
STEPS = 800  # that a network takes at the least then: fewer leave one of a few hundred tasks half trained
LONGER = 4  # times as many epochs may be made where held-out annotations end the training
WAITS = 5  # the share of the epochs without LONGER is 1 / WAITS that is waited for a better one
WARM = 3  # the share of the epochs is 1 / WARM in which a classifier that would mislead at first learns from the votes
SILENT = 1e-6  # variance of the class probabilities over tasks, below which a classifier says nothing of a task
LEARNT = 0.3  # correlation of what a classifier says with the votes, which one of random weights hardly ever has


class TrainingState(NamedTuple):
    """Parameters and optimizer between two epochs."""

    tables: Parameters
    reals: Parameters  # every other parameter, unconstrained
    running: Parameters  # statistics of a network
    optimizer: optax.OptState
    of_tasks: Locals  # what each task has of its own


class Watch(NamedTuple):
    """Values of the last epoch, a number for each batch."""

    log_likelihood: Array  # (B,) of the batch's tasks, before its step
    log_prior: Array  # (B,)
    loss: Array  # (B,)
    finite_logits: Array  # (B,)


class Best(NamedTuple):
    """The epoch after which the classifier told most of the held-out annotations."""

    training: TrainingState
    score: Array  # of :func:`gain`
    epoch: Array


class EpochState(NamedTuple):
    """The state between two epochs."""

    training: TrainingState
    epoch: Array  # epochs made
    watch: Watch
    score: Array  # of the held-out annotations, by :func:`gain`; 0 where there are none
    best: Best | None  # None where nothing is held out


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class MinibatchEM:
    """EM of a story in minibatches of annotations in memory: :class:`.Climber`, whose look is an epoch."""

    model: Model
    settings: EMSettings  # epochs, learning_rate, network_rate and patience
    epochs_key: Array  # random key of the batches and of dropout
    warm: int  # epochs at the start that learn from the soft majority vote
    whole: Annotations | None  # the annotations with those that are held out; None where none are
    decides: Array | bool  # whether the classifier decides the annotations

    moves: ClassVar[str] = "pass"
    most: ClassVar[int] = 1
    quantity: ClassVar[str] = "log-posterior"
    stage: ClassVar[str] = "epochs"

    def init(self, source: InMemory, training: TrainingState) -> EpochState:
        """Return the state before the first epoch."""
        nothing, unknown = jnp.zeros(source.n_batches, float), jnp.full((), -jnp.inf, float)
        best = None if self.whole is None else Best(training, unknown, jnp.int32(0))
        watch = Watch(nothing, nothing, nothing, nothing == 0)
        return EpochState(training, jnp.int32(0), watch, jnp.zeros((), float), best)

    def batch(self, source: InMemory, state: EpochState) -> InMemory:
        """Return the source: a look takes all of its minibatches."""
        return source

    def point(self, like: Annotations, state: EpochState) -> EpochState:
        """Return the state: parameters move within an epoch."""
        return state

    def look(self, like: Annotations, batch: InMemory, at: EpochState) -> tuple[TrainingState, Watch]:
        """Return the training after an epoch, and its values."""
        number = at.epoch + 1
        key = jax.random.fold_in(self.epochs_key, number)
        return epoch(self.model, batch, at.training, key, self.settings, on_votes=number <= self.warm)

    def step(
        self, like: Annotations, state: EpochState, at: EpochState, look: tuple[TrainingState, Watch]
    ) -> EpochState:
        """Return the state after an epoch, with the best of all."""
        (training, watch), number = look, state.epoch + 1
        if self.whole is None or state.best is None:
            return EpochState(training, number, watch, state.score, None)
        parameters = _parameters(self.model, self.whole, training)
        score = jnp.asarray(gain(self.model, parameters, self.whole, like, self.decides), float)
        new = Best(training, score, number)
        is_better = score > state.best.score
        best = jax.tree.map(lambda a, b: jnp.where(is_better, a, b), new, state.best)
        return EpochState(training, number, watch, score, best)

    def finished(self, state: EpochState) -> Array:
        """Return whether all epochs are made, or what the classifier tells of held-out annotations has peaked."""
        is_over = state.epoch >= self.settings.passes
        if state.best is None:
            return is_over
        return is_over | (state.epoch - jnp.maximum(state.best.epoch, self.warm) >= self.settings.waits)

    def n_values(self, state: EpochState) -> Array:
        """Return the number of epochs."""
        return state.epoch

    def value(self, state: EpochState) -> tuple[Array, ...]:
        """Return the log-posterior of the last epoch, in parts: each batch at the parameters before its step."""
        return state.watch.log_likelihood.sum(), state.watch.log_prior.mean()

    def check(self, state: EpochState, history: list[float], n_new: int) -> None:
        """Refuse a loss, logits or a score that are not finite, with the step."""
        _check_finite(state.watch, len(history))
        _refuse_non_finite(float(state.score), len(history))


def run(
    model: Model,
    annotations: Annotations,
    parameters: Parameters,
    key: Array,
    settings: EMSettings,
    tell: Callable[[int, str], None],
    keep: Checkpoints = NO_CHECKPOINTS,
) -> Solution:
    """Train from ``parameters`` for ``settings.epochs``, or until held-out annotations are told no better.

    Raises:
        FloatingPointError: where the loss or the classifier's logits are not finite, with the step.
        ValueError: a batch is one task, and the network has batch norm.
    """
    size, holds_out = batch_size(annotations, settings), settings.held_out > 0
    normalises = model.classifier is not None and model.classifier.normalises_batches
    refuse_batches_of_one(size, normalises=normalises, instead="a network without it")
    usual = usual_epochs(annotations, settings, has_network=model.has_network)
    settings = with_epochs(annotations, settings, has_network=model.has_network)
    split_key, key = jax.random.split(key)
    source = in_batches(annotations_left(annotations, settings.held_out, split_key) if holds_out else annotations, size)
    decides = model.has_weights and classifier_decides_annotations(model, annotations)
    misleads = decides or (model.has_network and bool(speaks_at_random(model, parameters, annotations)))
    warm = warm_epochs(settings, usual, misleads=misleads)
    climber = MinibatchEM(model, settings, key, warm, annotations if holds_out else None, decides)
    state = climber.init(source, start(model, annotations, parameters, settings))
    state, history = climb(climber, source, state, keep=keep, tell=tell)
    training = state.training if state.best is None else state.best.training
    parameters = _parameters(model, annotations, training)
    history.append(float(log_posterior(model, annotations, parameters)))
    _refuse_non_finite(history[-1], len(history) - 1)
    facts = course(history[:-1], annotations, size, settings.passes)
    network = model.classifier.network if model.classifier is not None and model.has_network else None
    if isinstance(network, str) and facts["epochs"] == settings.passes:  # a module may come trained
        facts["reach"] = facts["steps"] * settings.network_rate
    return Solution(parameters, history, facts)


def refuse_batches_of_one(size: int, *, normalises: bool, instead: str) -> None:
    """Refuse batches from which a classifier with batch norm learns nothing.

    Raises:
        ValueError: a batch is one task, and the classifier normalises over the batch.
    """
    if size == 1 and normalises:
        raise ValueError(
            "the classifier has batch norm, which cannot learn from a batch of one task; give batch_size=2 or more, or "
            f"{instead}"
        )


def with_epochs(annotations: Annotations, settings: EMSettings, *, has_network: bool) -> EMSettings:
    """Return the settings with epochs and patience: the user's, or as many as give a network enough steps."""
    usual = usual_epochs(annotations, settings, has_network=has_network)
    epochs = usual * (LONGER if settings.held_out > 0 else 1) if settings.epochs is None else settings.epochs
    patience = max(PATIENCE, usual // WAITS) if settings.patience is None else settings.patience
    return settings._replace(epochs=epochs, patience=patience)


def usual_epochs(annotations: Annotations, settings: EMSettings, *, has_network: bool) -> int:
    """Return the number of epochs where neither the user nor held-out annotations say how many."""
    n_batches = -(-annotations.n_tasks // batch_size(annotations, settings))
    return max(EPOCHS, -(-STEPS // n_batches)) if has_network else EPOCHS


def course(history: Sequence[float], annotations: Annotations, size: int, passes: int) -> dict[str, float]:
    """Return facts of the training: its steps, and by how much an annotation's log-posterior rose in the last quarter.

    The rise is left out where held-out annotations ended the training.

    Args:
        history: log-posterior by epoch.
        size: of a minibatch.
        passes: epochs at the most.
    """
    facts: dict[str, float] = {"epochs": len(history), "steps": len(history) * -(-annotations.n_tasks // size)}
    if len(history) == passes and (quarter := passes // 4):
        before, last = (float(np.mean(history[-n * quarter :][:quarter])) for n in (2, 1))
        facts["rise"] = (last - before) / max(annotations.n_annotations, 1)
    return facts


def warm_epochs(settings: EMSettings, usual: int, *, misleads: bool) -> int:
    """Return the number of epochs at the start that learn from the soft majority vote.

    Args:
        usual: number of epochs by :func:`usual_epochs`; held-out annotations may end the training after fewer.
        misleads: whether a classifier that has learnt nothing yet would mislead the label posterior.
    """
    if settings.warmup is not None:
        return settings.warmup
    passes = settings.passes if settings.held_out == 0 else min(settings.passes, usual)
    return max(passes // WARM, 1) if misleads else 1


@compiled
def speaks_at_random(model: Model, parameters: Parameters, annotations: Annotations) -> Array:
    """Return whether a classifier says something of the tasks that has little to do with the votes."""
    prior = density(model, parameters, annotations).truth_prior
    votes = votes_with_evidence(soft_votes(annotations), annotations)
    chance = jnp.isfinite(prior) / jnp.maximum(jnp.isfinite(prior).sum(-1, keepdims=True), 1)
    said, voted = (each - chance - (each - chance).mean(0) for each in (jnp.exp(prior), votes))
    spread, common = (said**2).sum(), (said * voted).sum()
    return (spread > SILENT * len(said)) & (common < LEARNT * jnp.sqrt(spread * (voted**2).sum()))


@compiled
def start(model: Model, annotations: Annotations, parameters: Parameters, settings: EMSettings) -> TrainingState:
    """Return the state at ``parameters``, before the first epoch."""
    spec = parameter_spec(model, annotations)
    reals = spec.to_reals(parameters)
    running = {name: parameters[name] for name in parameters if name not in reals and name not in spec.tables}
    tables = shared(spec, {name: parameters[name] for name in spec.tables})
    reals = shared(spec, reals)
    own = local_steps.by_task(spec, parameters)
    return TrainingState(tables, reals, running, _optimizer(spec, settings).init(reals), own)


@compiled
def epoch(
    model: Model,
    source: InMemory,
    state: TrainingState,
    key: Array,
    settings: EMSettings,
    *,
    on_votes: Array | bool = False,
) -> tuple[TrainingState, Watch]:
    """Pass over all tasks once; ``on_votes`` trains on the soft majority vote instead of the label posterior."""
    spec = parameter_spec(model, source.like)
    n_tasks, tables = source.n_tasks, state.tables
    order_key, key = jax.random.split(key)
    chosen, weights = source.shuffled(order_key)

    def some_tasks(chosen: Array) -> Annotations:
        some = source.take(chosen)
        return some if state.of_tasks.is_empty else some.replace(population=n_tasks)

    def on_batch(carry: tuple, batch: tuple[Array, Array, Array]) -> tuple[tuple, Watch]:
        reals, running, optimizer, counts, everyone = carry
        chosen, weight, key = batch
        some, here = some_tasks(chosen), of_tasks(everyone, spec, chosen)

        def log_likelihood(tables: Parameters) -> tuple[Array, Array]:
            at = density(model, tables | here.values(spec) | spec.from_reals(reals) | running, some)
            return (weight * at.log_likelihood).sum(), at.posterior

        (total, posterior), slope = jax.value_and_grad(log_likelihood, has_aux=True)(tables)
        counts = {name: counts[name] + tables[name] * slope[name] for name in tables}
        posterior = jnp.where(on_votes, votes_with_evidence(soft_votes(some), some), posterior)
        if not here.is_empty:
            rest = tables | spec.from_reals(reals) | running
            rate = settings.learning_rate
            here = local_steps.climb(model, some, spec, here, rest, posterior, weight, rate)
            everyone = put_back(everyone, here, spec, chosen, weight)

        def loss(reals: Parameters) -> tuple[Array, tuple]:
            values = tables | here.values(spec) | spec.from_reals(reals) | running
            at = density(model, values, some, key, train=True)
            expected = jnp.where(posterior > 0, posterior * at.log_joint, 0.0).sum(-1)
            mean = (weight * expected).sum() / weight.sum()
            log_prior = at.log_prior_in_log_odds
            return -(mean + log_prior / n_tasks), (at.running, log_prior, jnp.isfinite(at.truth_prior).all())

        (value, (running, log_prior, finite)), slope = jax.value_and_grad(loss, has_aux=True)(reals)
        updates, optimizer = _optimizer(spec, settings).update(slope, optimizer, reals)
        reals = optax.apply_updates(reals, updates)
        return (reals, running, optimizer, counts, everyone), Watch(total, log_prior, value, finite)

    none = jax.tree.map(jnp.zeros_like, tables)
    keys = jax.random.split(key, len(chosen))
    carry = (state.reals, state.running, state.optimizer, none, state.of_tasks)
    (reals, running, optimizer, counts, everyone), watch = jax.lax.scan(on_batch, carry, (chosen, weights, keys))

    def log_prior(tables: Parameters) -> Array:
        own = of_tasks(everyone, spec, chosen[0]).values(spec)
        at = density(model, tables | own | spec.from_reals(reals) | running, some_tasks(chosen[0]))
        return at.log_prior_in_log_odds

    of_prior = jax.grad(log_prior)(tables)
    counts = {name: counts[name] + tables[name] * of_prior[name] for name in tables}
    return TrainingState(tables_mode(counts, tables), reals, running, optimizer, everyone), watch


def votes_with_evidence(votes: Array, annotations: Annotations) -> Array:
    """Return the soft majority vote, combined with the evidence on the true labels where there is any."""
    if annotations.evidence is None:
        return votes
    return jax.nn.softmax(safe_log(votes) + annotations.evidence)


def _optimizer(spec: ParameterSpec, settings: EMSettings) -> optax.GradientTransformation:
    decayed = optax.add_decayed_weights(settings.weight_decay)  # the slope of the penalty, before Adam
    kinds = {name: "weights" if name in spec.weights else "others" for name in shared(spec, spec.bijections)}
    rates = {
        "weights": optax.chain(decayed, optax.adam(settings.network_rate)),
        "others": optax.adam(settings.learning_rate),
    }
    return optax.multi_transform(rates, kinds)


def batch_size(annotations: Annotations, settings: EMSettings) -> int:
    """Return the number of tasks in a minibatch: all of them where there are fewer than asked for."""
    return min(BATCH if settings.batch_size is None else settings.batch_size, annotations.n_tasks)


def annotations_left(annotations: Annotations, share: float, key: Array) -> Annotations:
    """Return the annotations without those to a random share of the tasks, one at the least: their rows count 0."""
    task = np.asarray(annotations.task)
    count = np.ones(len(task)) if annotations.count is None else np.asarray(annotations.count)
    annotated = np.unique(task[count > 0])
    n_out = min(max(round(share * len(annotated)), 1), len(annotated) - 1)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    out = np.isin(task, rng.choice(annotated, n_out, replace=False))
    return annotations.replace(count=jnp.asarray(np.where(out, 0, count), dtype=float))


@compiled
def gain(
    model: Model, parameters: Parameters, annotations: Annotations, seen: Annotations, decides: Array | bool
) -> Array:
    r"""Return how much more probable held-out annotations are by a classifier's classes than by their mean.

    It is the sum over the held-out tasks of :math:`\log \sum_k p_k(x_i)\, p(y_i \mid k) - \log \sum_k \bar p_k\,
    p(y_i \mid k)`, with :math:`\bar p` the mean of :math:`p` over all tasks. Confusion matrices at their mode, of few
    annotations, call some of those that they have not seen all but impossible, by either. The first term alone is taken
    where the classifier decides the annotations, so that the matrices are its own, and where there is none.

    Args:
        seen: those that are not held out.
        decides: whether the classifier decides the annotations.
    """
    whole, part = (density(model, parameters, some) for some in (annotations, seen))
    told = (whole.log_likelihood - part.log_likelihood).sum()
    prior = whole.truth_prior
    if prior.ndim == 1:
        return told
    mean = safe_log(jnp.exp(prior).mean(0))
    by_mean = [log_sum_exp(jnp.where(jnp.isfinite(prior), at.log_joint - prior + mean, prior)) for at in (whole, part)]
    return told - jnp.where(decides, 0.0, (by_mean[0] - by_mean[1]).sum())


@compiled
def _parameters(model: Model, annotations: Annotations, state: TrainingState) -> Parameters:
    spec = parameter_spec(model, annotations)
    return state.tables | spec.from_reals(state.reals) | state.of_tasks.values(spec) | state.running


@compiled
def log_posterior(model: Model, annotations: Annotations, parameters: Parameters) -> Array:
    """Return the log-posterior that EM maximises, ``()``: with the probability tables in log-odds."""
    return density(model, parameters, annotations).log_posterior_in_log_odds


def _refuse_non_finite(log_probability: float, number: int) -> None:
    """Refuse a log-probability after an epoch that is not finite; no step has started from it that would have."""
    if not np.isfinite(log_probability):
        raise FloatingPointError(f"the log-posterior is not finite after the last step of epoch {number}; {ADVICE}")


def _check_finite(watch: Watch, number: int) -> None:
    """Refuse a loss or logits within an epoch that are not finite, with the step."""
    loss, finite = np.asarray(watch.loss), np.asarray(watch.finite_logits)
    if np.isfinite(loss).all() and finite.all():
        return
    batch = int(np.argmin(np.isfinite(loss) & finite))
    what = f"the loss is {loss[batch]}" if finite[batch] else "the classifier's logits are not finite"
    raise FloatingPointError(
        f"{what} at step {batch + 1} of epoch {number} (step {(number - 1) * len(loss) + batch + 1} in all); {ADVICE}"
    )
