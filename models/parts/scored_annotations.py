"""Emissions that score each annotation by itself under the classifier's probabilities, with no truth between them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from ...data import Annotations
from ...data.errors import real_number
from .contract import StoryError
from .emissions import Emission, Over
from .kernels import SMALLEST, sum_by_task
from .truth_prior import TruthPrior, class_log_probs


class Scored(Emission):
    r"""Annotations that do not depend on their task's true class, but on its prior alone: :math:`P(y = l \mid i, j)`.

    A task's annotations then leave its class at its prior. A subclass defines :meth:`scores`.
    """

    by_truth: ClassVar[bool] = False

    def scores(self, worker: Array | None, task: Array) -> Array:
        r""":math:`\log P(y = l \mid i, j)` of each (worker, task) pair: ``(A, K)``."""
        raise NotImplementedError(f"{type(self).__name__} has no scores(worker, task)")

    def probs(self, worker: Array | None, task: Array) -> Array:
        """Return rows that are equal under each class: ``(A, K, K)``."""
        found = jnp.exp(self.scores(worker, task))
        return jnp.broadcast_to(found[:, None], (*found.shape, found.shape[-1]))

    def log_prob(self, worker: Array | None, task: Array, annotation: Array) -> Array:
        """Of the observed annotations, the same under each class: ``(A, K)``."""
        scores = self.scores(worker, task)
        return jnp.broadcast_to(jnp.take_along_axis(scores, annotation[:, None], axis=-1), scores.shape)

    def probs_given(self, worker: Array | None, task: Array, truth: Array) -> Array:
        """Return log-probabilities that are equal whatever the truth: ``(A, K)``."""
        return jnp.exp(self.scores(worker, task))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Taught(Scored):
    r"""Annotations are drawn from the classifier's probabilities: :math:`P(y = l \mid i) = f_l(x_i)`.

    Args:
        log_probs: of the classes, ``(N, K)``.
    """

    log_probs: Array

    def scores(self, worker: Array | None, task: Array) -> Array:
        """The classifier's log-probabilities: ``(A, K)``."""
        return jnp.asarray(self.log_probs)[task]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class CrowdLayer(Scored):
    r"""A worker's layer on top of the classifier's probabilities, and a softmax.

    .. math::
        P(y = l \mid i, j) = \text{softmax}_l\left(\sum_k W_{jkl} f_k(x_i) + b_{jl}\right)

    The same under each class, so that a task's annotations leave its class at its prior (Rodrigues & Pereira 2018).

    Args:
        layer: :math:`W`, ``(J, K, K)``, from classes to annotations; ``(J, K)`` for a diagonal one.
        bias: :math:`b`, ``(J, K)``, or None.
        classes: :math:`f`, probabilities of the classes, ``(N, K)``.
    """

    layer: Array
    bias: Array | None
    classes: Array

    def scores(self, worker: Array | None, task: Array) -> Array:
        r""":math:`\log P(y = l \mid i, j)` of each (worker, task) pair: ``(A, K)``."""
        probs, layer = jnp.asarray(self.classes)[task], jnp.asarray(self.layer)[worker]
        logits = layer * probs if layer.ndim == 2 else jnp.einsum("ak,akl->al", probs, layer)
        return jax.nn.log_softmax(logits if self.bias is None else logits + jnp.asarray(self.bias)[worker])

    def confusions(self, annotations: Annotations) -> Array:
        """Return each worker's matrix where the classifier is certain of a class: ``(J, K, K)``."""
        layer = jnp.asarray(self.layer)
        layer = layer[..., None] * jnp.eye(layer.shape[-1]) if layer.ndim == 2 else layer
        return jax.nn.softmax(layer if self.bias is None else layer + jnp.asarray(self.bias)[:, None], axis=-1)


def classifier_needed(story: str) -> str:
    """Return the error of a story that learns nothing of labels without a classifier."""
    return (
        f"{story} scores annotations by what a classifier says of their task, and labels are the classifier's: give "
        "classifier= (annotations need features), or probabilities by task as truth_prior="
    )


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Heads(Scored):
    r"""Each worker has an output of a network: :math:`P(y = l \mid i, j) = h_{jl}(x_i)`.

    Args:
        log_probs: of what each worker annotates to each task, ``(N, J, K)``.
    """

    log_probs: Array

    def scores(self, worker: Array | None, task: Array) -> Array:
        """The log-probabilities of the workers' own outputs: ``(A, K)``."""
        return jnp.asarray(self.log_probs)[task, worker]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class InformationGain(Scored):
    r"""Mutual information of a classifier and an aggregator of annotations, task by task (Max-MIG).

    .. math::
        g_i &= \text{softmax}\left(b + \sum_{a \in i} W_{j_a y_a}\right), \quad p = \text{softmax}(b) \\
        \kappa_{ii'} &= \sum_c h_{ic} g_{i'c} / p_c \\
        s_i &= \log \kappa_{ii} - \frac{1}{n - 1} \sum_{i' \neq i} \kappa_{ii'}

    over the n tasks at hand: their mean, plus one, estimates a lower bound of the mutual information (Cao et al. 2019,
    equation 4, with the Kullback–Leibler divergence). It is no log-probability.

    Args:
        votes: :math:`W`, what an annotation says for each class, ``(J, K, K)``, from annotations to classes.
        bias: :math:`b`, ``(K,)``.
        log_probs: :math:`\log h`, of the classifier, ``(N, K)``.
    """

    votes: Array
    bias: Array
    log_probs: Array
    independent: ClassVar[bool] = False

    def aggregated(self, annotations: Annotations, annotation: Array) -> Array:
        r"""Return the aggregator's log-probabilities of each task: :math:`\log g`, ``(N, K)``."""
        said = jnp.asarray(self.votes)[jnp.asarray(annotations.worker), annotation]
        return jax.nn.log_softmax(self.bias + sum_by_task(said, annotations))

    def by_task(self, annotations: Annotations, annotation: Array) -> Array:
        """The gain of each task, the same under each class: ``(N, K)``."""
        h, log_p = jnp.exp(self.log_probs), jax.nn.log_softmax(self.bias)
        log_g = self.aggregated(annotations, annotation)
        own = jax.nn.logsumexp(self.log_probs + log_g - log_p, axis=-1)
        ratio = jnp.exp(log_g - log_p)
        others = (h * (ratio.sum(0) - ratio)).sum(-1) / max(len(h) - 1, 1)  # by sums, since there are n² pairs
        return jnp.broadcast_to((own - others)[:, None], h.shape)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Focused(Over):
    r"""Annotations that are explained already weigh less: the focal loss in the place of the log-probability.

    .. math:: s_a = (1 - p_a)^\gamma \log p_a

    with :math:`p_a` the probability of an annotation under an emission beneath (Lin et al. 2017). It is no
    log-probability; what is drawn and predicted follows the emission beneath.

    Args:
        emission: scores annotations one by one.
        focus: :math:`\gamma`, above 0.
    """

    emission: Emission
    focus: Array | float

    def probs(self, worker: Array | None, task: Array) -> Array:
        """Return the probabilities of the emission beneath: ``(A, K, L)``."""
        return self.emission.probs(worker, task)

    def probs_given(self, worker: Array | None, task: Array, truth: Array) -> Array:
        """Return the probabilities of the emission beneath: ``(A, L)``."""
        return self.emission.probs_given(worker, task, truth)

    def log_prob(self, worker: Array | None, task: Array, annotation: Array) -> Array:
        """The log-probabilities of the emission beneath, weighed: ``(A, K)``."""
        score = self.emission.log_prob(worker, task, annotation)
        missing = jnp.maximum(-jnp.expm1(score), SMALLEST)
        return missing**self.focus * score

    def wrapped(self, wrap: Callable[[Emission], Emission]) -> Emission:
        """Return the weights over ``wrap`` of the emission beneath."""
        return replace(self, emission=self.emission.wrapped(wrap))

    def over_classes(self, wrap: Callable[[Emission], Emission]) -> Emission:
        """Return the weights over ``wrap`` of the emission beneath.

        Raises:
            StoryError: annotations then share more than their task's class.
        """
        inner = self.emission.over_classes(wrap)
        if not inner.independent:
            raise StoryError("focus= weighs annotations one by one, and with shared errors they depend on each other")
        return replace(self, emission=inner)


def focused(emission: Emission, focus: float) -> Emission:
    """The emission with the focal loss in the place of its log-probability, or itself where the focus is 0.

    Raises:
        StoryError: the focus is not a finite number from 0.
    """
    if isinstance(focus, jax.core.Tracer):
        return Focused(emission, focus)
    exponent = real_number("focus", focus, 0, error=StoryError)
    return Focused(emission, exponent) if exponent else emission


def by_classifier(story: str, annotations: Annotations, truth_prior: TruthPrior | Array | None) -> Array:
    """Log-probabilities of the classes by task, ``(N, K)``, of a story that learns nothing of labels without them.

    Raises:
        StoryError: tasks do not differ in them.
    """
    log_probs = None if truth_prior is None else class_log_probs(annotations, truth_prior)
    if log_probs is None or jnp.ndim(log_probs) != 2:
        raise StoryError(classifier_needed(story))
    return log_probs
