r"""EM in minibatches, for stories with a network, and for data that one pass should not hold at once.

An epoch passes over all tasks in batches. Each batch gets its label posterior from the current parameters, the network
in evaluation mode; then the network and other real-valued parameters take a step of Adam on the batch's expected
complete-data log-joint, the network in training mode. The probability tables' expected counts add up over the batches,
and at the epoch's end the tables take their exact M-step. What each task has of its own is the batch's alone
(:mod:`crowdppl.inference.engines.local_steps`): it moves first, and as far as it does in a few steps.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from ...data import Annotations
from ...models.parts.emissions import SMALLEST
from ...models.parts.starts import soft_votes
from ..densities.enumerated import Parameters, density
from ..densities.model import Model
from ..densities.prior_in_likelihood import classifier_decides_annotations
from ..densities.programs import compiled
from ..densities.sites import Anatomy, anatomy
from ..sources.memory import InMemory, in_batches
from . import local_steps
from .checkpoints import NOWHERE, Checkpoints, packed, unpacked
from .local_steps import Locals, of_tasks, put_back, shared
from .m_step import tables_mode
from .outcome import Solution
from .settings import EMSettings
from .unused_options import has_weights

ADVICE = "lower network_rate, scale the features, or use batch_norm=True"
STAGE = "epochs"  # of a checkpoint
BATCH = 64  # tasks, where the user says nothing
WARM = 3  # the share of the epochs is 1 / WARM in which a classifier that decides the annotations learns from the votes


class TrainingState(NamedTuple):
    """Where training stands."""

    tables: Parameters
    reals: Parameters  # every other parameter, unconstrained
    running: Parameters  # statistics of a network
    optimizer: optax.OptState
    of_tasks: Locals  # what each task has of its own


class Watch(NamedTuple):
    """What an epoch saw, a number for each batch."""

    log_likelihood: Array  # (B,) of the batch's tasks, before its step
    log_prior: Array  # (B,)
    loss: Array  # (B,)
    finite_logits: Array  # (B,)


def run(
    model: Model,
    annotations: Annotations,
    parameters: Parameters,
    key: Array,
    settings: EMSettings,
    tell: Callable[[int, str], None],
    keep: Checkpoints = NOWHERE,
) -> Solution:
    """Train from ``parameters`` for ``settings.epochs``, or until the held-out annotations' log-probability has peaked.

    Raises:
        FloatingPointError: where the loss or the classifier's logits are not finite, with the step.
        ValueError: for a batch size or a share held out that cannot be.
    """
    size = batch_size(annotations, settings)
    split_key, key = jax.random.split(key)
    seen = annotations if settings.held_out == 0 else annotations_left(annotations, settings.held_out, split_key)
    source = in_batches(seen, size)
    state = start(model, annotations, parameters, settings)
    history: list[float] = []
    warm = warm_epochs(model, annotations, settings, has_classifier=has_weights(model))
    best, best_score, best_epoch = state, -np.inf, 0
    if (found := keep.found(STAGE)) is not None:
        state, best = unpacked(found["state"], state), unpacked(found["best"], state)
        history, best_score, best_epoch = found["history"].tolist(), found["score"], found["epoch"]
    for number in range(len(history) + 1, settings.epochs + 1):
        if settings.held_out > 0 and number - 1 - max(best_epoch, warm) >= settings.patience:
            break
        on_votes = number <= warm
        state, watch = epoch(model, source, state, jax.random.fold_in(key, number), settings, on_votes=on_votes)
        _check_finite(watch, number)
        history.append(float(watch.log_likelihood.sum() + watch.log_prior.mean()))
        tell(number, f"log-posterior {history[-1]:,.2f}")
        score = -np.inf
        if settings.held_out > 0:
            score = float(_predicted(model, annotations, seen, state))
            _refuse_non_finite(score, number)
        if score > best_score or settings.held_out == 0:
            best, best_score, best_epoch = state, score, number
        keep.note(STAGE, partial(_noted, state, best, best_score, best_epoch, list(history)))
    parameters = _parameters(model, annotations, best)
    history.append(float(_log_posterior(model, annotations, parameters)))
    _refuse_non_finite(history[-1], len(history) - 1)
    return Solution(parameters, history)


def _noted(state: TrainingState, best: TrainingState, score: float, epoch: int, history: list[float]) -> dict[str, Any]:
    """What a checkpoint has of training."""
    of_best = {"best": packed(best), "score": score, "epoch": epoch}
    return {"state": packed(state), "history": np.array(history), **of_best}


def warm_epochs(model: Model, annotations: Annotations, settings: EMSettings, *, has_classifier: bool) -> int:
    """Return how many epochs at the start learn from the soft majority vote.

    Args:
        model: the story, in NumPyro.
        annotations: the data.
        settings: of EM.
        has_classifier: whether the truth's prior is a classifier that learns.
    """
    if settings.warmup is not None:
        return settings.warmup
    decides = has_classifier and classifier_decides_annotations(model, annotations)
    return max(settings.epochs // WARM, 1) if decides else 1


@compiled
def start(model: Model, annotations: Annotations, parameters: Parameters, settings: EMSettings) -> TrainingState:
    """Return the state at ``parameters``, before the first epoch."""
    parts = anatomy(model, annotations)
    reals = parts.to_reals(parameters)
    running = {name: parameters[name] for name in parameters if name not in reals and name not in parts.tables}
    tables = shared(parts, {name: parameters[name] for name in parts.tables})
    reals = shared(parts, reals)
    own = local_steps.by_task(parts, parameters)
    return TrainingState(tables, reals, running, _optimizer(parts, settings).init(reals), own)


@compiled(static=("on_votes",))
def epoch(
    model: Model,
    source: InMemory,
    state: TrainingState,
    key: Array,
    settings: EMSettings,
    *,
    on_votes: bool = False,
) -> tuple[TrainingState, Watch]:
    """Pass over all tasks once; ``on_votes`` trains on the soft majority vote instead of the label posterior."""
    parts = anatomy(model, source.like)
    n_tasks, tables = source.n_tasks, state.tables
    order_key, key = jax.random.split(key)
    chosen, weights = source.shuffled(order_key)

    def some_tasks(chosen: Array) -> Annotations:
        some = source.take(chosen)
        return some if state.of_tasks.is_empty else some.replace(population=n_tasks)

    def on_batch(carry: tuple, batch: tuple[Array, Array, Array]) -> tuple[tuple, Watch]:
        reals, running, optimizer, counts, everyone = carry
        chosen, weight, key = batch
        some, here = some_tasks(chosen), of_tasks(everyone, parts, chosen)

        def log_likelihood(tables: Parameters) -> tuple[Array, Array]:
            at = density(model, tables | here.values(parts) | parts.from_reals(reals) | running, some)
            return (weight * at.log_likelihood).sum(), at.posterior

        (total, posterior), slope = jax.value_and_grad(log_likelihood, has_aux=True)(tables)
        counts = {name: counts[name] + tables[name] * slope[name] for name in tables}
        posterior = votes_with_evidence(soft_votes(some), some) if on_votes else posterior
        if not here.is_empty:
            rest = tables | parts.from_reals(reals) | running
            rate = settings.learning_rate
            here = local_steps.climb(model, some, parts, here, rest, posterior, weight, rate)
            everyone = put_back(everyone, here, parts, chosen, weight)

        def loss(reals: Parameters) -> tuple[Array, tuple]:
            values = tables | here.values(parts) | parts.from_reals(reals) | running
            at = density(model, values, some, key, train=True)
            expected = jnp.where(posterior > 0, posterior * at.log_joint, 0.0).sum(-1)
            mean = (weight * expected).sum() / weight.sum()
            log_prior = at.log_prior_in_log_odds
            return -(mean + log_prior / n_tasks), (at.running, log_prior, jnp.isfinite(at.truth_prior).all())

        (value, (running, log_prior, finite)), slope = jax.value_and_grad(loss, has_aux=True)(reals)
        updates, optimizer = _optimizer(parts, settings).update(slope, optimizer, reals)
        reals = optax.apply_updates(reals, updates)
        return (reals, running, optimizer, counts, everyone), Watch(total, log_prior, value, finite)

    none = jax.tree.map(jnp.zeros_like, tables)
    keys = jax.random.split(key, len(chosen))
    carry = (state.reals, state.running, state.optimizer, none, state.of_tasks)
    (reals, running, optimizer, counts, everyone), watch = jax.lax.scan(on_batch, carry, (chosen, weights, keys))

    def log_prior(tables: Parameters) -> Array:
        own = of_tasks(everyone, parts, chosen[0]).values(parts)
        at = density(model, tables | own | parts.from_reals(reals) | running, some_tasks(chosen[0]))
        return at.log_prior_in_log_odds

    of_prior = jax.grad(log_prior)(tables)
    counts = {name: counts[name] + tables[name] * of_prior[name] for name in tables}
    return TrainingState(tables_mode(counts, tables), reals, running, optimizer, everyone), watch


def votes_with_evidence(votes: Array, annotations: Annotations) -> Array:
    """Return the soft majority vote, combined with the evidence on the true labels where there is any."""
    if annotations.evidence is None:
        return votes
    return jax.nn.softmax(jnp.log(jnp.maximum(votes, SMALLEST)) + annotations.evidence)


def _optimizer(parts: Anatomy, settings: EMSettings) -> optax.GradientTransformation:
    kinds = {name: "weights" if name in parts.weights else "others" for name in shared(parts, parts.bijections)}
    rates = {"weights": optax.adam(settings.network_rate), "others": optax.adam(settings.learning_rate)}
    return optax.multi_transform(rates, kinds)


def batch_size(annotations: Annotations, settings: EMSettings) -> int:
    """Return the number of tasks in a minibatch.

    Raises:
        ValueError: for a batch size or a share held out that cannot be.
    """
    size = min(BATCH, annotations.n_tasks) if settings.batch_size is None else settings.batch_size
    if not (isinstance(size, int | np.integer) and 1 <= size <= annotations.n_tasks):
        raise ValueError(f"batch_size={size!r}: there are {annotations.n_tasks} tasks; give 1 to that many, or None")
    if not 0 <= settings.held_out < 1:
        raise ValueError(f"held_out={settings.held_out!r}: a share of the annotations, 0 to below 1, is needed")
    return int(size)


def annotations_left(annotations: Annotations, share: float, key: Array) -> Annotations:
    """Return the annotations with a random share of them taken out: their rows count less."""
    count = np.ones(len(annotations.task)) if annotations.count is None else np.asarray(annotations.count)
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
    out = rng.binomial(count.astype(int), share)
    return annotations.replace(count=jnp.asarray(count - out, dtype=float))


@compiled
def _predicted(model: Model, annotations: Annotations, seen: Annotations, state: TrainingState) -> Array:
    r"""Return the log-probability of the held-out annotations given the seen ones.

    It is :math:`\log p(y) - \log p(y_\text{seen})`.
    """
    parameters = _parameters(model, annotations, state)
    whole, part = (density(model, parameters, some).log_likelihood.sum() for some in (annotations, seen))
    return whole - part


@compiled
def _parameters(model: Model, annotations: Annotations, state: TrainingState) -> Parameters:
    parts = anatomy(model, annotations)
    return state.tables | parts.from_reals(state.reals) | state.of_tasks.values(parts) | state.running


@compiled
def _log_posterior(model: Model, annotations: Annotations, parameters: Parameters) -> Array:
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
