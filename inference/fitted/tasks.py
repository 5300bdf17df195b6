"""Tasks: their labels, how uncertain these are, and whether the task or its workers are the cause."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array
from jax.scipy.special import logsumexp

from ...data import Annotations
from ...data.errors import whole_number
from ...data.ids import class_values
from ...models.parts.emissions import Emission
from ...models.parts.kernels import kind_at, upto
from ..densities.enumerated import Parameters
from ..densities.programs import compiled, keys_of
from .fitted import Fitted
from .posterior import Posterior, posterior_of
from .remembered import remembered

REPLICATES = (25, 200)  # of the annotations, at the least and at the most
NUMBERS = 2e7  # annotations in all of them, about
SAME = 1e-4  # nats: log-likelihoods that differ by less are equal, as their sums are in single precision


@remembered
def task_scores(fit: Posterior | Fitted, *, replicates: int | None = None, seed: int = 0) -> pd.DataFrame:
    r"""By task its label, how uncertain it is, and whether the task or its workers are the cause.

    A label may be uncertain because the task is ambiguous, so that good workers disagree, or because the workers who
    annotated it are poor or few. To tell these apart, new annotations :math:`\tilde y_i` of the same workers and
    tasks are drawn from the story at draws :math:`\theta` of its parameters. With :math:`H(z_i \mid y_i, \theta)` the
    entropy of the label given the annotations,

    .. math::
        \text{expected\_entropy}_i &= \mathrm{E} \, H(z_i \mid \tilde y_i, \theta), \qquad
            \tilde z_i \sim p(z_i \mid \theta), \; \tilde y_i \sim p(y_i \mid \tilde z_i, \theta) \\
        \text{ambiguity}_i &= \mathrm{E} \, H(z_i \mid y_i, \theta) - \text{expected\_entropy}_i \\
        \text{surprise}_i &=
            \frac{\mathrm{E} \log p(\tilde y_i \mid \theta) - \mathrm{E} \log p(y_i \mid \theta)}{n_i}, \qquad
            \tilde z_i \sim p(z_i \mid y_i, \theta)

    - expected_entropy is the uncertainty that these workers leave about a task on average: high for poor workers, near
      0 for many good ones.
    - ambiguity is the uncertainty beyond that: near 0 where the workers are the cause, high where good workers
      disagree; negative where the label is more certain than these workers make labels on average.
    - surprise compares the annotations with new ones of a task whose true class has the same posterior: by how many
      nats an annotation they are less probable. It is high also where so many good workers disagree that the story, in
      which a task has one true class, is certain of the majority: the ambiguity of such tasks is near 0. surprise_p is
      the probability that new annotations are at least as surprising (ties count half); a small one flags the task.

    All expectations are over the draws; EM has one, the mode.

    Args:
        fit: a fit of any story. Evidence about a task counts as known before its annotations. Of an average the
            labels are the averaged ones, and the expectations those of its fits, averaged by weight.
        replicates: how often all annotations are drawn anew; the error of the means falls with its root. None for 200,
            of more than 100,000 annotations fewer, down to 25.
        seed: the same seed gives the same numbers.

    Returns:
        By task: annotations (their number), label, probability, entropy (of the label's posterior, in nats), runner_up
        and runner_up_probability (the second most probable class), expected_entropy, ambiguity, surprise, surprise_p.
        A task without annotations has no surprise: NaN. Where the story has difficulties of tasks
        (``task_difficulty=True``) also difficulty: the expected level, from 0 to below 1.

    Raises:
        TypeError: `fit` is no fit, or without a likelihood.
        ValueError: `replicates` is no whole number from 1.
    """
    source = posterior_of(fit)
    weighty = source.weighty
    annotations, p = source.annotations, source.posterior
    if replicates is None:
        replicates = int(np.clip(NUMBERS / max(annotations.n_rows, 1), *REPLICATES))
    replicates = whole_number("replicates", replicates, least=1)
    rows = np.arange(annotations.n_tasks)
    second = np.argsort(-p, axis=-1, kind="stable")[:, 1]
    classes = class_values(annotations.classes.to_index())
    n_annotations = annotations.counts_by_kind().sum(-1)
    keys = keys_of(seed, replicates)
    each = []
    for fitted, _ in weighty:
        again = fitted.with_data(fitted.data.expanded()).thinned(min(replicates, int(np.prod(fitted.shape))))
        each.append([np.asarray(mean, dtype=float) for mean in _replicated(again, keys)])
    weights = [weight for _, weight in weighty]
    now, expected, surprise, tail = np.tensordot(weights, each, axes=1)
    given = np.where(n_annotations > 0, n_annotations, np.nan)
    labels = source.labels
    columns: dict[str, Any] = {
        "annotations": source.given.counts_by_kind().sum(-1),
        **{str(name): labels[name] for name in labels},
        "runner_up": pd.Series(classes[second], labels.index, dtype=classes.dtype),
        "runner_up_probability": p[rows, second],
        "expected_entropy": expected,
        "ambiguity": now - expected,
        "surprise": surprise / given,
        "surprise_p": np.where(n_annotations > 0, tail, np.nan),
    }
    difficulties = [expected_difficulty(fitted) for fitted, _ in weighty]
    if all(difficulty is not None for difficulty in difficulties):
        columns["difficulty"] = np.tensordot(weights, np.array(difficulties), axes=1)
    return pd.DataFrame(columns, index=labels.index)


def expected_difficulty(fitted: Fitted) -> np.ndarray | None:
    """The expected level of each task's difficulty, ``(N,)``; None where the story has none (``task_difficulty``)."""
    if not fitted.model.hyperparameters.get("task_difficulty"):
        return None
    found = _difficulties(fitted.at_size)
    return np.asarray(found, dtype=float)[: fitted.annotations.n_tasks]


@compiled(once=True)
def _difficulties(fitted: Fitted) -> Array:
    def of_draw(draw: Parameters) -> Array | None:
        at, data = fitted.at(draw), fitted.annotations
        return at.likelihood.emission.difficulties(data, data.label, at.posterior)

    return fitted.mean_over_draws(of_draw)


def expected_confusion(source: Any) -> pd.DataFrame:
    r"""Return the expected number of tasks with each class and label: likely confusions, without gold.

    .. math:: C[k, l] = \sum_i P(z_i = k) \, [l = \arg\max_{k'} P(z_i = k')]

    Where the probabilities are calibrated this is the expectation of :func:`.label_confusion`.

    Args:
        source: a fit, a stack, or a frame of probabilities, tasks × classes.

    Returns:
        Classes (rows, ``truth``) × labels (columns, ``label``); a column sums to the number of tasks with that label.
    """
    frame = source if isinstance(source, pd.DataFrame) else source.probabilities
    p = frame.to_numpy(dtype=float)
    chosen = p.argmax(-1)[:, None] == np.arange(p.shape[-1])
    return pd.DataFrame(p.T @ chosen, index=frame.columns.rename("truth"), columns=frame.columns.rename("label"))


@compiled(once=True, times="keys")
def _replicated(fitted: Fitted, keys: Array) -> tuple[Array, Array, Array, Array]:
    """Means over the keys, ``(N,)`` each: entropy now, entropy after new annotations, surprise, and its tail.

    Of more keys than draws each draw is taken again and again: the first key is of the first draw.
    """
    data = fitted.annotations

    def of_draw(draw: Parameters, keys: Array, is_one: Array) -> tuple[Array, Array, Array, Array]:
        at = fitted.at(draw)
        emission = at.likelihood.emission
        before = at.log_joint - emission.by_task(data, data.label)  # prior and evidence
        observed = logsumexp(at.log_joint, axis=-1)
        own, design = (upto(jax.nn.softmax(log_truth, axis=-1)) for log_truth in (at.log_joint, before))

        def of_key(total: Any, key_and_is_one: tuple[Array, Array]) -> tuple[Any, None]:
            key, is_one = key_and_is_one
            truth_key, number_key, annotation_key = jax.random.split(key, 3)
            of_tasks = jax.random.uniform(truth_key, (data.n_tasks,))
            of_rows = jax.random.uniform(number_key, (data.n_rows,))

            def joint_of_new(truths: Array) -> Array:
                truth = kind_at(of_tasks, truths)
                return before + emission.by_task(data, _drawn(emission, of_rows, annotation_key, data, truth))

            more = logsumexp(joint_of_new(own), axis=-1) - observed
            tail = jnp.where(jnp.abs(more) < SAME, 0.5, (more < 0).astype(float))
            new = _entropy(joint_of_new(design)), more, tail
            return jax.tree.map(lambda sum_, value: sum_ + is_one * value, total, new), None

        sums, _ = jax.lax.scan(of_key, (zero, zero, zero), (keys, is_one))
        return is_one.sum() * _entropy(at.log_joint), *sums

    n_draws, zero = int(np.prod(fitted.shape)), jnp.zeros(data.n_tasks)
    place = jnp.arange(n_draws * -(-len(keys) // n_draws)).reshape(-1, n_draws).T  # a row for each draw
    draws = jax.tree.map(jnp.asarray, fitted.flat_draws)

    def add(total: Any, one: tuple[Parameters, Array]) -> tuple[Any, None]:
        draw, place = one
        is_one = (place < len(keys)).astype(float)
        return jax.tree.map(jnp.add, total, of_draw(draw, keys[place % len(keys)], is_one)), None

    total, _ = jax.lax.scan(add, (zero, zero, zero, zero), (draws, place))
    return jax.tree.map(lambda value: value / len(keys), total)


def _drawn(emission: Emission, numbers: Array, key: Array, data: Annotations, truth: Array) -> Array:
    """An annotation for each row, ``(A,)``, of tasks whose truth ``(N,)`` is given.

    Args:
        emission: what they follow from.
        numbers: from 0 to 1, ``(A,)``, by which annotations are drawn one by one. One a row takes a quarter of the time
            of one for each class, and of two draws that nothing compares it may be the same.
        key: for an emission whose rows share more than the class.
        data: who annotates which task.
        truth: of the tasks.
    """
    if type(emission).sample is not Emission.sample:
        return emission.sample(key, data.worker, data.task, truth[data.task])
    return kind_at(numbers, upto(emission.probs_given(data.worker, data.task, truth[data.task])))


def _entropy(log_joint: Array) -> Array:
    """Of the classes given unnormalised log-probabilities, in nats: ``(N, K)`` to ``(N,)``."""
    log_p = jax.nn.log_softmax(log_joint, axis=-1)
    return -jnp.where(jnp.isneginf(log_p), 0.0, jnp.exp(log_p) * log_p).sum(-1)
