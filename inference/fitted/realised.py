"""Share of right annotations of each worker: expected, and in draws."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...data import Annotations
from ...models.parts.abstaining import of_classes
from ..densities.enumerated import Parameters
from ..densities.programs import compiled
from .fitted import Fitted
from .misled import MisledShare

DRAWS = (200, 500)  # of truths for an interval, at the least and at the most


def realised_accuracy(posterior: np.ndarray, annotations: Annotations, counted: np.ndarray | None = None) -> np.ndarray:
    r"""The expected share of each worker's annotations that equal the truth: ``(J,)``, NaN for a worker without any.

    .. math:: \frac{1}{n_j} \sum_{a \in j} P(z_{i_a} = y_a \mid y)

    Args:
        posterior: probabilities of the labels, ``(N, K)``, which allow for misled tasks (:mod:`.misled`).
        annotations: whose workers are named.
        counted: whether a task's annotations count, ``(N,)``; all do by default.
    """
    annotations = annotations.of_classes()
    right = np.asarray(posterior, dtype=float)[annotations.task, annotations.label]
    weight, worker = _weight(annotations, counted), np.asarray(annotations.worker)
    total, n = (np.bincount(worker, each, annotations.n_workers) for each in (right * weight, weight))
    return np.minimum(total / _n_or_nan(n), 1.0)  # up to the rounding of the posterior


def n_truths(fitted: Fitted) -> int:
    """Return the number of truths to draw for an interval: one for each parameter draw, within :data:`DRAWS`."""
    return int(np.clip(np.prod(fitted.shape), *DRAWS))


def realised_accuracy_draws(
    fitted: Fitted, misled: MisledShare, n: int | None = None, seed: int = 0, counted: np.ndarray | None = None
) -> np.ndarray:
    """Return each worker's share of right annotations, at truths drawn from the posterior: ``(n, J)``.

    Args:
        fitted: a fit with named workers.
        misled: distribution of the share of tasks that mislead the whole crowd.
        n: truths, each at a draw of the parameters and of the share of misled tasks; :func:`n_truths` by default. Where
            truths outnumber parameter draws, several truths share a draw.
        seed: of the truths.
        counted: whether a task's annotations count, ``(N,)``; all do by default.
    """
    n = n_truths(fitted) if n is None else n
    n_parameters = min(n, int(np.prod(fitted.shape)))
    shape = (n_parameters, -(-n // n_parameters))
    keys = jax.random.split(jax.random.key(seed), shape)
    shares = np.zeros(shape, np.float32).T
    shares.flat[:n] = misled.draws(n, seed)
    counts = np.ones(fitted.annotations.n_tasks, bool) if counted is None else counted
    drawing = _Drawing(keys, jnp.asarray(shares.T), jnp.asarray(misled.told), jnp.asarray(counts))
    right = np.asarray(_right(fitted.thinned(n_parameters), drawing), dtype=float)
    annotations = fitted.annotations.of_classes()
    total = np.bincount(np.asarray(annotations.worker), _weight(annotations, counted), annotations.n_workers)
    return right.swapaxes(0, 1).reshape(-1, right.shape[-1])[:n] / _n_or_nan(total)


class _Drawing(NamedTuple):
    """Inputs for drawing truths, beside the story; D parameter draws, R truths at each."""

    keys: Array  # (D, R)
    misled: Array  # shares of misled tasks, (D, R)
    told: Array  # tasks that mislead nobody, (N,)
    counted: Array  # whether a task's annotations count, (N,)


def _weight(annotations: Annotations, counted: np.ndarray | None) -> np.ndarray:
    """Return the weight of each row: its number of annotations, and 0 where its task does not count."""
    weight = np.ones(annotations.n_rows) if annotations.count is None else np.asarray(annotations.count, float)
    return weight if counted is None else weight * np.asarray(counted)[annotations.task]


def _n_or_nan(n: np.ndarray) -> np.ndarray:
    return np.where(n > 0, n, np.nan)


@compiled(once=True)
def _right(fitted: Fitted, drawing: _Drawing) -> Array:
    data, label = of_classes(fitted.annotations, jnp.asarray(fitted.annotations.label))
    weight = drawing.counted[data.task] * (1.0 if data.count is None else jnp.asarray(data.count))
    count = partial(jax.ops.segment_sum, segment_ids=jnp.asarray(data.worker), num_segments=data.n_workers)

    def at_parameters(row: tuple[Parameters, Array, Array]) -> Array:
        draw, keys, shares = row
        at = fitted.at(draw)

        def of_truth(row: tuple[Array, Array]) -> Array:
            key, share = row
            of_story, whether, which = jax.random.split(key, 3)
            truth = at.drawn(of_story)
            other = (truth + jax.random.randint(which, truth.shape, 1, max(data.n_classes, 2))) % data.n_classes
            is_misled = (jax.random.uniform(whether, truth.shape) < share) & ~drawing.told
            return count((jnp.where(is_misled, other, truth)[data.task] == label) * weight)

        return jax.lax.map(of_truth, (keys, shares))

    return jax.lax.map(at_parameters, (fitted.flat_draws, drawing.keys, drawing.misled))
