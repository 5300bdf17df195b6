r"""Comparisons in two orders: confusion matrices are of sides as they were shown, true labels are of items.

.. math:: P(y_a = l \mid z_i = k) = P_\text{story}(y = \sigma_a(l) \mid z = \sigma_a(k))

where :math:`\sigma_a` exchanges left and right if annotation :math:`a` was shown the other way round than its task has
its items, and else changes nothing. A worker who takes what stands left has this in the confusion matrix, and it says
nothing of the items. It lies right over a story's own emission: errors that workers share, difficulties and
abstentions, which lie over this, are of items.
"""

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from jax import Array

from ...data import Annotations
from .contract import StoryError
from .emissions import Emission, Over


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Mirrored(Over):
    """Another emission, of annotations and true classes as they were shown, in some rows the other way round.

    It is of the rows of the annotations that its story was run with.

    Args:
        emission: of what was shown; annotations to a task are independent given its class.
        is_mirrored: of each row, ``(A,)`` of bool.
        mirror: each of the K classes as it is where the sides change places.
    """

    emission: Emission
    is_mirrored: Array
    mirror: tuple[int, ...] = field(metadata={"static": True})

    def probs(self, worker: Array | None, task: Array) -> Array:
        """Rows and columns of what was shown in the order of the items: ``(A, K, L)``."""
        return self._in_order(self._in_order(self.emission.probs(worker, task), -2), -1)

    def log_prob(self, worker: Array | None, task: Array, annotation: Array) -> Array:
        """Of the sides that were said, under each class of the items: ``(A, K)``."""
        return self._in_order(self.emission.log_prob(worker, task, self._as_shown(annotation)), -1)

    def probs_given(self, worker: Array | None, task: Array, truth: Array) -> Array:
        """Of all annotations in the order of the items: ``(A, L)``."""
        return self._in_order(self.emission.probs_given(worker, task, self._as_shown(truth)), -1)

    def further(self, annotations: Annotations, annotation: Array) -> Emission:
        """Return the emission beneath: one more annotation is shown as the task has its items."""
        return self.emission

    def _as_shown(self, label: Array) -> Array:
        """A class of each row, ``(A,)``, in the other order of the sides."""
        return jnp.where(self.is_mirrored, jnp.asarray(self.mirror)[label], label)

    def _in_order(self, values: Array, axis: int) -> Array:
        """Values by row with the classes along an axis, those of mirrored rows exchanged."""
        size = values.shape[axis]
        others = jnp.array([*self.mirror, *range(len(self.mirror), size)])
        to_rows = (-1,) + (1,) * (values.ndim - 1)
        return jnp.where(self.is_mirrored.reshape(to_rows), jnp.take(values, others, axis=axis), values)


def in_order(emission: Emission, annotations: Annotations) -> Emission:
    """The emission of a story with the orders of the sides over it, of comparisons of which rows were mirrored.

    Raises:
        StoryError: the story's annotations depend on more than their task's true class.
    """
    mirror = tuple(int(k) for k in annotations.kind.mirror(annotations.n_classes))

    def over(beneath: Emission) -> Emission:
        if not (beneath.independent and beneath.by_truth):
            raise StoryError(
                f"pairs were shown in both orders, and {type(beneath).__name__} has no sides: the annotations of this "
                "story depend on more than their task's true class; fit another story, or leave the orders out by "
                "annotations.replace(mirrored=None)"
            )
        return Mirrored(beneath, jnp.asarray(annotations.mirrored), mirror)

    return emission.wrapped(over)
