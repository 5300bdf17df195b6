"""Emissions that score each annotation by itself under the classifier's probabilities, with no truth between them."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import Array

from ...data import Annotations
from .emissions import Emission
from .story_error import StoryError
from .truth_prior import TruthPrior, class_log_probs


class Scored(Emission):
    r"""Annotations that do not depend on their task's true class, but on its prior alone: :math:`P(y = l \mid i, j)`.

    A task's annotations then leave its class at its prior. A subclass defines :meth:`scores`.
    """

    def scores(self, worker: Array | None, task: Array) -> Array:
        r""":math:`\log P(y = l \mid i, j)` of each (worker, task) pair: ``(A, K)``."""
        raise NotImplementedError(f"{type(self).__name__} has no scores(worker, task)")

    def probs(self, worker: Array | None, task: Array) -> Array:
        """The same under each class: ``(A, K, K)``."""
        found = jnp.exp(self.scores(worker, task))
        return jnp.broadcast_to(found[:, None], (*found.shape, found.shape[-1]))

    def log_prob(self, worker: Array | None, task: Array, annotation: Array) -> Array:
        """Of the observed annotations, the same under each class: ``(A, K)``."""
        scores = self.scores(worker, task)
        return jnp.broadcast_to(jnp.take_along_axis(scores, annotation[:, None], axis=-1), scores.shape)

    def probs_given(self, worker: Array | None, task: Array, truth: Array) -> Array:
        """The same whatever the truth: ``(A, K)``."""
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
        """What each worker annotates where the classifier is certain of a class: ``(J, K, K)``."""
        layer = jnp.asarray(self.layer)
        layer = layer[..., None] * jnp.eye(layer.shape[-1]) if layer.ndim == 2 else layer
        return jax.nn.softmax(layer if self.bias is None else layer + jnp.asarray(self.bias)[:, None], axis=-1)


def classifier_needed(story: str) -> str:
    """What a story says that learns nothing of labels without a classifier."""
    return (
        f"{story} scores annotations by what a classifier says of their task, and labels are the classifier's: give "
        "classifier= (annotations need features), or probabilities by task as truth_prior="
    )


def by_classifier(story: str, annotations: Annotations, truth_prior: TruthPrior | Array | None) -> Array:
    """Log-probabilities of the classes by task, ``(N, K)``, of a story that learns nothing of labels without them.

    Raises:
        StoryError: tasks do not differ in them.
    """
    log_probs = None if truth_prior is None else class_log_probs(annotations, truth_prior)
    if log_probs is None or jnp.ndim(log_probs) != 2:
        raise StoryError(classifier_needed(story))
    return log_probs
