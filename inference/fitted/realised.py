"""How many of the annotations that each worker gave are right: expected, and in draws."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...models.parts.abstaining import of_classes
from ..densities.enumerated import Parameters
from ..densities.programs import compiled
from .fitted import Fitted
from .labelled import Labelled

MOST_DRAWS = 500  # whose truths are drawn, for an interval


def realised_accuracy(source: Labelled) -> np.ndarray:
    r"""The expected share of each worker's annotations that equal the truth: ``(J,)``, NaN for a worker without any.

    .. math:: \frac{1}{n_j} \sum_{a \in j} P(z_{i_a} = y_a \mid y)
    """
    annotations = source.annotations.of_classes()
    right = np.asarray(source.posterior, dtype=float)[annotations.task, annotations.label]
    weight = 1.0 if annotations.count is None else np.asarray(annotations.count)
    total = np.bincount(np.asarray(annotations.worker), right * weight, annotations.n_workers)
    return np.minimum(total / _n_or_nan(annotations.n_by_worker()), 1.0)  # up to the rounding of the posterior


def realised_accuracy_draws(fitted: Fitted, n: int = MOST_DRAWS, seed: int = 0) -> np.ndarray:
    """The same share at truths drawn from the posterior: ``(draw, J)``.

    Args:
        fitted: whose workers are named.
        n: draws of the parameters at the most, each with its own truths.
        seed: of the truths.
    """
    n = min(int(np.prod(fitted.shape)), n)
    right = _right(fitted.thinned(n), jax.random.split(jax.random.key(seed), n))
    return np.asarray(right, dtype=float) / _n_or_nan(fitted.annotations.of_classes().n_by_worker())


def _n_or_nan(n: np.ndarray) -> np.ndarray:
    return np.where(n > 0, n, np.nan)


@compiled(once=True)
def _right(fitted: Fitted, keys: Array) -> Array:
    data, label = of_classes(fitted.annotations, jnp.asarray(fitted.annotations.label))
    count = partial(jax.ops.segment_sum, segment_ids=jnp.asarray(data.worker), num_segments=data.n_workers)

    def of_draw(draw_and_key: tuple[Parameters, Array]) -> Array:
        draw, key = draw_and_key
        truth = jax.random.categorical(key, fitted.at(draw).log_joint)
        right = (truth[data.task] == label).astype(float)
        return count(right if data.count is None else right * data.count)

    return jax.lax.map(of_draw, (fitted.flat_draws, keys))
