"""Tasks: their labels, how sure these are, and whether doubt comes from the task or from who annotated it."""

from functools import partial
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array
from jax.scipy.special import logsumexp

from ...data import Annotations
from ..densities.enumerated import Parameters, density
from ..densities.model import Model
from .crowd import one_row_an_annotation, thinned

if TYPE_CHECKING:
    from ..results import Fit

REPLICATES = 200
SAME = 1e-4  # nats: log-likelihoods that differ by less are equal, as their sums are in single precision


def task_scores(fit: "Fit", *, replicates: int = REPLICATES, seed: int = 0) -> pd.DataFrame:
    r"""By task its label, the doubt about it, and where the doubt comes from.

    A label may be in doubt because the task is ambiguous, so that good workers disagree, or because the workers who
    annotated it say little. To tell them apart, new annotations :math:`\tilde y_i` of the same workers to the same tasks are
    drawn from the story at draws :math:`\theta` of its parameters. With :math:`H(z_i \mid y_i, \theta)` the entropy of
    the label given the annotations,

    .. math::
        \text{expected\_entropy}_i &= \mathrm{E} \, H(z_i \mid \tilde y_i, \theta), \qquad
            \tilde z_i \sim p(z_i \mid \theta), \; \tilde y_i \sim p(y_i \mid \tilde z_i, \theta) \\
        \text{ambiguity}_i &= \mathrm{E} \, H(z_i \mid y_i, \theta) - \text{expected\_entropy}_i \\
        \text{surprise}_i &= \frac{\mathrm{E} \log p(\tilde y_i \mid \theta) - \mathrm{E} \log p(y_i \mid \theta)}{n_i},
            \qquad \tilde z_i \sim p(z_i \mid y_i, \theta)

    - expected_entropy is the doubt that these workers leave about a task on average: high for a bad crowd, near 0 for
      many good workers.
    - ambiguity is the doubt beyond that: near 0 where it is the crowd's fault, high where good workers are split;
      negative where the label is surer than this crowd makes labels on average.
    - surprise is by how many nats an annotation the annotations are less probable than new ones would be, were the task's true
      class as likely what it is now. It is high too where so many good workers disagree that the story, to which a
      task has one true class, is sure of the majority: their ambiguity is near 0. surprise_p is the probability that
      new annotations are as surprising or more (half of it where they are as surprising); small means strange.

    All expectations are over the draws; EM has its mode alone.

    Args:
        fit: a fit of any story. Evidence about a task counts as known before its annotations.
        replicates: how often all annotations are drawn anew; the error of the means falls with its root.
        seed: the same seed gives the same numbers.

    Returns:
        By task: annotations, label, probability, entropy (of the label's posterior, in nats), runner_up and
        runner_up_probability (the most probable other class), expected_entropy, ambiguity, surprise, surprise_p. A
        task without annotations has no surprise: NaN.

    Raises:
        ValueError: `replicates` is no whole number from 1.
    """
    if not (isinstance(replicates, int | np.integer) and replicates >= 1):
        raise ValueError(f"replicates={replicates!r}: a whole number from 1 is needed")
    annotations = fit.annotations
    p, rows = fit.posterior, np.arange(annotations.n_tasks)
    second = np.argsort(-p, axis=-1, kind="stable")[:, 1]
    classes = np.empty(annotations.n_classes, dtype=object)
    classes[:] = list(annotations.classes)
    answers = annotations.votes().sum(-1)
    data = jax.tree.map(jnp.asarray, one_row_an_annotation(annotations.replace(gold=None)))
    keys = jax.random.split(jax.random.key(seed), replicates)
    found = _replicated(fit.model, data, thinned(fit, int(replicates)), fit.outcome.fixed, keys)
    now, expected, surprise, tail = (np.asarray(mean, dtype=float) for mean in found)
    asked = np.where(answers > 0, answers, np.nan)
    labels = fit.labels
    return pd.DataFrame(
        {
            "annotations": answers,
            **{name: labels[name] for name in labels},
            "runner_up": pd.Series(classes[second], labels.index, dtype=object),
            "runner_up_probability": p[rows, second],
            "expected_entropy": expected,
            "ambiguity": now - expected,
            "surprise": surprise / asked,
            "surprise_p": np.where(answers > 0, tail, np.nan),
        },
        index=labels.index,
    )


def expected_confusion(source: Any) -> pd.DataFrame:
    r"""How many tasks with each label are expected to be of each class: what may be taken for what, without gold.

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


@partial(jax.jit, static_argnames="model")
def _replicated(
    model: Model, data: Annotations, draws: Parameters, fixed: Parameters, keys: Array
) -> tuple[Array, Array, Array, Array]:
    """Means over the draws of the entropy now, the entropy after new annotations, the surprise, and its tail: ``(N,)``."""

    def of_draw(draw: Parameters, key: Array) -> tuple[Array, Array, Array, Array]:
        at = density(model, draw | fixed, data)
        emission = at.responses.emission
        before = at.log_joint - emission.by_task(data, data.label)  # prior and evidence

        def joint_of_new(key: Array, log_truth: Array) -> Array:
            truth_key, annotation_key = jax.random.split(key)
            truth = jax.random.categorical(truth_key, log_truth)
            answer = emission.sample(annotation_key, data.worker, data.task, truth[data.task])
            return before + emission.by_task(data, answer)

        design_key, own_key = jax.random.split(key)
        new = logsumexp(joint_of_new(own_key, at.log_joint), axis=-1)
        more = new - logsumexp(at.log_joint, axis=-1)
        tail = jnp.where(jnp.abs(more) < SAME, 0.5, (more < 0).astype(float))
        return _entropy(at.log_joint), _entropy(joint_of_new(design_key, before)), more, tail

    def add(total: Any, draw_and_key: tuple[Parameters, Array]) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, of_draw(*draw_and_key)), None

    zero = jnp.zeros(data.n_tasks)
    total, _ = jax.lax.scan(add, (zero, zero, zero, zero), (draws, keys))
    return jax.tree.map(lambda value: value / len(keys), total)


def _entropy(log_joint: Array) -> Array:
    """Of the classes given unnormalised log-probabilities, in nats: ``(N, K)`` to ``(N,)``."""
    log_p = jax.nn.log_softmax(log_joint, axis=-1)
    return -jnp.where(jnp.isneginf(log_p), 0.0, jnp.exp(log_p) * log_p).sum(-1)
