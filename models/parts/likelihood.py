"""The one distribution behind every story: all annotations of all workers, ragged, given the true labels."""

from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array
from numpyro.distributions import Distribution, constraints
from numpyro.primitives import Messenger

from ...data import Annotations
from .emissions import Emission


def select(scores: Array, truth: Array) -> Array:
    r"""Pick :math:`s_{i, z_i}` for every task: scores ``(N, K)`` and truth ``(..., N)`` give ``(..., N)``.

    A truth that is the same for all tasks, ``(..., 1)``, takes whole columns. Enumeration asks for all of them in
    their order, which is a transposition.
    """
    n_classes = scores.shape[-1]
    if truth.shape[-1:] != (1,):
        scores = jnp.broadcast_to(scores, (*truth.shape, n_classes))
        return jnp.take_along_axis(scores, truth[..., None], axis=-1)[..., 0]
    columns = truth.ravel()
    if len(columns) == n_classes:
        in_order = (columns == jnp.arange(n_classes)).all()
        picked = jax.lax.cond(in_order, lambda s: s.T, lambda s: jnp.take(s, columns, axis=-1).T, scores)
    else:
        picked = jnp.take(scores, columns, axis=-1).T
    return picked.reshape(truth.shape[:-1] + scores.shape[:1])


class AnnotationLikelihood(Distribution):
    r"""All annotations to each task, given its true label.

    .. math:: \log p(y_i \mid z_i) = \sum_{a \in i} \log P(y_a \mid z_i, \text{worker}_a, \text{task}_i)

    The batch shape is that of the tasks, ``broadcast(truth.shape, (N,))``; the ``A`` annotations are one event, so the
    tasks may have any number of annotations each and nothing is padded.

    Args:
        truth: true classes, ``(..., N)``, or ``(K, 1, ..., 1)`` where enumerated.
        emission: what a worker annotates under each truth.
        annotations: which worker annotated which task; ``annotations.label`` is not looked at.
    """

    arg_constraints: ClassVar[dict] = {}  # to check the classes would cost operations of their own, again and again
    support = constraints.independent(constraints.nonnegative_integer, 1)
    pytree_data_fields = ("truth", "emission", "annotations")

    def __init__(
        self, truth: Array, emission: Emission, annotations: Annotations, *, validate_args: bool | None = None
    ) -> None:
        self.truth, self.emission, self.annotations = jnp.asarray(truth), emission, annotations
        batch_shape = jnp.broadcast_shapes(self.truth.shape, (annotations.n_tasks,))
        super().__init__(batch_shape, (len(annotations.task),), validate_args=validate_args)

    def log_prob(self, value: Array) -> Array:
        """Log-probability of the annotations ``value (A,)`` of each task: the batch shape."""
        scores = self.emission.by_task(self.annotations, value)
        return jnp.broadcast_to(select(scores, self.truth), self.batch_shape)

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Array:
        """Annotations ``sample_shape + truth.shape[:-1] + (A,)`` of the given workers to the given tasks."""
        truth = jnp.broadcast_to(self.truth, self.batch_shape)[..., self.annotations.task]
        draw = self.emission.sample
        for _ in truth.shape[:-1]:
            draw = jax.vmap(draw, in_axes=(0, None, None, 0))
        keys = jax.random.split(key, sample_shape + truth.shape[:-1])
        for _ in sample_shape:
            draw = jax.vmap(draw, in_axes=(0, None, None, None))
        return draw(keys, self.annotations.worker, self.annotations.task, truth)


class OverClasses(Messenger):
    """A handler that puts another emission over what the story under it says of annotations that are classes.

    Args:
        wrap: from the story's emission to the one over it: :meth:`.Emission.over_classes`.
    """

    def __init__(self, wrap: Callable[[Emission], Emission]) -> None:
        super().__init__(None)
        self._wrap = wrap

    def process_message(self, msg: dict[str, Any]) -> None:
        """Replace the emission of the site ``annotation``."""
        if msg["type"] == "sample" and msg["name"] == "annotation" and isinstance(msg["fn"], AnnotationLikelihood):
            fn = msg["fn"]
            msg["fn"] = AnnotationLikelihood(fn.truth, fn.emission.over_classes(self._wrap), fn.annotations)
