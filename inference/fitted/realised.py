"""How many of the annotations that each worker gave are right: expected, and in draws."""

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

MOST_DRAWS = 500  # whose truths are drawn, for an interval


def realised_accuracy(posterior: np.ndarray, annotations: Annotations) -> np.ndarray:
    r"""The expected share of each worker's annotations that equal the truth: ``(J,)``, NaN for a worker without any.

    .. math:: \frac{1}{n_j} \sum_{a \in j} P(z_{i_a} = y_a \mid y)

    Args:
        posterior: probabilities of the labels, ``(N, K)``, which allow for misled tasks (:mod:`.misled`).
        annotations: whose workers are named.
    """
    annotations = annotations.of_classes()
    right = np.asarray(posterior, dtype=float)[annotations.task, annotations.label]
    weight = 1.0 if annotations.count is None else np.asarray(annotations.count)
    total = np.bincount(np.asarray(annotations.worker), right * weight, annotations.n_workers)
    return np.minimum(total / _n_or_nan(annotations.n_by_worker()), 1.0)  # up to the rounding of the posterior


def realised_accuracy_draws(fitted: Fitted, misled: MisledShare, n: int = MOST_DRAWS, seed: int = 0) -> np.ndarray:
    """The same share at truths drawn from the posterior: ``(draw, J)``.

    Args:
        fitted: whose workers are named.
        misled: how many tasks may mislead the whole crowd.
        n: draws of the parameters at the most, each with its own truths and its own share of misled tasks.
        seed: of the truths.
    """
    n = min(int(np.prod(fitted.shape)), n)
    keys = jax.random.split(jax.random.key(seed), n)
    change = _Change(jnp.asarray(misled.draws(n, seed), jnp.float32), jnp.asarray(misled.told))
    right = _right(fitted.thinned(n), keys, change)
    return np.asarray(right, dtype=float) / _n_or_nan(fitted.annotations.of_classes().n_by_worker())


class _Change(NamedTuple):
    """How truths differ from those that a story infers: by draw a share of misled tasks, and tasks told."""

    misled: Array
    told: Array


def _n_or_nan(n: np.ndarray) -> np.ndarray:
    return np.where(n > 0, n, np.nan)


@compiled(once=True)
def _right(fitted: Fitted, keys: Array, change: _Change) -> Array:
    data, label = of_classes(fitted.annotations, jnp.asarray(fitted.annotations.label))
    count = partial(jax.ops.segment_sum, segment_ids=jnp.asarray(data.worker), num_segments=data.n_workers)
    weight = 1.0 if data.count is None else jnp.asarray(data.count)

    def of_draw(row: tuple[Parameters, Array, Array]) -> Array:
        draw, key, share = row
        of_truth, whether, which = jax.random.split(key, 3)
        truth = jax.random.categorical(of_truth, fitted.at(draw).log_joint)
        other = (truth + jax.random.randint(which, truth.shape, 1, max(data.n_classes, 2))) % data.n_classes
        truth = jnp.where((jax.random.uniform(whether, truth.shape) < share) & ~change.told, other, truth)
        return count((truth[data.task] == label) * weight)

    return jax.lax.map(of_draw, (fitted.flat_draws, keys, change.misled))
