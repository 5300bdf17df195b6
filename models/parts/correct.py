"""The emission of annotations that are right with some probability, and otherwise any other class alike."""

import math
from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
from jax import Array

from ...data import Annotations
from ...data.padding import counts_by_task
from .emissions import Emission, misshaped
from .kernels import safe_log, sum_by_task


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Correct(Emission):
    r"""Right with a probability that worker, task and true class decide; errors spread evenly over the other classes.

    .. math::
        P(y = l \mid z = k, i, j) = p_{ijk} \text{ if } l = k, \text{ else } \frac{1 - p_{ijk}}{K - 1}, \qquad
        p_{ijk} = g_i + (1 - g_i) \, \sigma(s_i a_{jk} + o_i)

    Args:
        ability: :math:`a`, real, ``(J, K)``, or ``(J, 1)`` where the class does not matter.
        n_classes: K.
        scale: :math:`s`, ``(N,)``, or one number for all tasks.
        offset: :math:`o`, ``(N,)``, or one number for all tasks.
        guess: :math:`g`, probability of being right by luck, ``(N,)``; or rows of :math:`1 - g` and :math:`g`,
            ``(N, 2)``, of which EM has exact M-steps; None for zero.
    """

    ability: Array
    n_classes: int = field(metadata={"static": True})
    scale: Array | float = 1.0
    offset: Array | float = 0.0
    guess: Array | None = None

    def check(self, annotations: Annotations) -> None:
        """Abilities of every worker, by class or not; the rest of every task, or one number for all."""
        n_workers, n_tasks, n_classes = annotations.n_workers, annotations.n_tasks, annotations.n_classes
        if jnp.shape(self.ability) not in {(n_workers, n_classes), (n_workers, 1)}:
            needed = f"{(n_workers, n_classes)} is needed, or {(n_workers, 1)} where the class does not matter"
            raise misshaped("ability", self, annotations, f"{needed}, such as ability[:, None] of {(n_workers,)}")
        for name in ("scale", "offset"):
            if jnp.shape(getattr(self, name)) not in {(), (n_tasks,)}:
                raise misshaped(name, self, annotations, f"{(n_tasks,)} is needed, or one number for all tasks")
        if self.guess is not None and jnp.shape(self.guess) not in {(n_tasks,), (n_tasks, 2)}:
            raise misshaped("guess", self, annotations, f"{(n_tasks,)} is needed, or {(n_tasks, 2)}")

    def probs(self, worker: Array | None, task: Array) -> Array:
        """Tables of each pair: ``(A, K, K)``."""
        log_right, log_wrong = self._all_log_odds(worker, task)
        is_right = jnp.eye(self.n_classes, dtype=bool)
        return jnp.exp(jnp.where(is_right, log_right[..., None], log_wrong[..., None]))

    def log_prob(self, worker: Array | None, task: Array, annotation: Array) -> Array:
        """Of the right annotation under its own class, of an error under the others: ``(A, K)``."""
        log_right, log_wrong = self._all_log_odds(worker, task)
        return jnp.where(annotation[:, None] == jnp.arange(self.n_classes), log_right, log_wrong)

    def by_task(self, annotations: Annotations, annotation: Array) -> Array:
        """The sums of :meth:`log_prob`, class by class, which XLA on CPU does faster: ``(N, K)``.

        Where the class does not matter, each sum is that of wrong annotations plus the differences of those that are
        right under the class, so that each annotation costs two numbers and not K.
        """
        worker, task, n_classes = annotations.worker, annotations.task, self.n_classes
        columns = [self._log_odds(worker, task, k) for k in range(jnp.shape(self.ability)[-1])]
        if len(columns) > 1:
            rows = [jnp.where(annotation == k, right, wrong) for k, (right, wrong) in enumerate(columns)]
            return jnp.stack([sum_by_task(row, annotations) for row in rows], axis=-1)
        ((log_right, log_wrong),) = columns
        count = counts_by_task(annotations)
        weight = 1.0 if count is None else count
        cell = jnp.asarray(task) * n_classes + annotation
        changed = jax.ops.segment_sum(weight * (log_right - log_wrong), cell, annotations.n_tasks * n_classes)
        return sum_by_task(log_wrong, annotations)[:, None] + changed.reshape(annotations.n_tasks, n_classes)

    def probs_given(self, worker: Array | None, task: Array, truth: Array) -> Array:
        """Rows of the tables: ``(A, K)``."""
        log_right, log_wrong = self._all_log_odds(worker, task)
        if log_right.shape[-1] > 1:
            log_right, log_wrong = (jnp.take_along_axis(x, truth[:, None], axis=-1) for x in (log_right, log_wrong))
        return jnp.exp(jnp.where(truth[:, None] == jnp.arange(self.n_classes), log_right, log_wrong))

    def tempered(self, power: Array | float) -> Emission:
        """Log-odds of the right class against any other times the power: less scale, and an offset to 1 / K."""
        if self.guess is not None:
            return super().tempered(power)
        offset = power * jnp.asarray(self.offset) - (1 - power) * math.log(self.n_classes - 1)
        return replace(self, scale=power * jnp.asarray(self.scale), offset=offset)

    def _all_log_odds(self, worker: Array | None, task: Array) -> tuple[Array, Array]:
        """Log-probabilities of the right annotation and of each error: ``(A, K)`` or ``(A, 1)``."""
        columns = [self._log_odds(worker, task, k) for k in range(jnp.shape(self.ability)[-1])]
        log_right, log_wrong = (jnp.stack(x, axis=-1) for x in zip(*columns, strict=True))
        return log_right, log_wrong

    def _log_odds(self, worker: Array | None, task: Array, k: int) -> tuple[Array, Array]:
        """Log-probabilities of the right annotation and of each error, by the abilities of class ``k``: ``(A,)``."""
        scale, offset = (x if jnp.ndim(x) == 0 else jnp.asarray(x)[task] for x in (self.scale, self.offset))
        logit = scale * jnp.asarray(self.ability)[:, k][worker] + offset
        log_wrong = -_softplus(logit)
        log_right = logit + log_wrong
        if self.guess is not None:
            guess = jnp.asarray(self.guess)[task]
            able, lucky = (1 - guess, guess) if guess.ndim == 1 else (guess[:, 0], guess[:, 1])
            log_right = safe_log(lucky + able * jax.nn.sigmoid(logit))
            log_wrong = log_wrong + safe_log(able)
        return log_right, log_wrong - math.log(self.n_classes - 1)


@jax.custom_jvp
def _softplus(x: Array) -> Array:
    r""":math:`\log(1 + e^x)`, whose derivative is known, which autodiff finds in more steps."""
    return jnp.maximum(x, 0.0) + jnp.log1p(jnp.exp(-jnp.abs(x)))


_softplus.defjvps(lambda tangent, _, x: jax.nn.sigmoid(x) * tangent)
