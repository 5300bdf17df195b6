"""What follows from draws of a story's parameters, one draw at a time so that memory does not grow with them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpyro import handlers

from ...data import Annotations
from ...models import Classifier
from ..densities.enumerated import Parameters, density, site_values
from ..densities.model import Model
from ..densities.sites import derived

Draws = dict[str, np.ndarray]  # site -> (chain, draw, ...)


@partial(jax.jit, static_argnames="model")
def label_posteriors(model: Model, annotations: Annotations, draws: Parameters, fixed: Parameters) -> Array:
    r"""Each chain's mean over its draws of :math:`P(z_i = k \mid \theta, y)`, ``(chain, N, K)``."""

    def add(total: Array, draw: Parameters) -> tuple[Array, None]:
        return total + density(model, draw | fixed, annotations).posterior, None

    def of_chain(chain: Parameters) -> Array:
        zero = jnp.zeros((annotations.n_tasks, annotations.n_classes))
        total, _ = jax.lax.scan(add, zero, chain)
        return total / total.sum(-1, keepdims=True)

    return jax.lax.map(of_chain, draws)


@partial(jax.jit, static_argnames="model")
def log_likelihood(model: Model, annotations: Annotations, draws: Parameters, fixed: Parameters) -> Array:
    r"""Of each task in each draw, the truth summed out: :math:`\log p(y_i \mid \theta)`, ``(chain, draw, N)``."""
    return _over_draws(lambda draw: density(model, draw | fixed, annotations).log_likelihood, draws)


@partial(jax.jit, static_argnames="model")
def worker_confusions(model: Model, annotations: Annotations, draws: Parameters, fixed: Parameters) -> Array:
    r"""Each worker's confusion matrix in each draw, :math:`P(y = l \mid z = k, j)`: ``(chain, draw, J, K, L)``."""

    def tables(draw: Parameters) -> Array:
        return density(model, draw | fixed, annotations).responses.emission.confusions(annotations)

    return _over_draws(tables, draws)


@partial(jax.jit, static_argnames=("model", "names"))
def derived_draws(
    model: Model, annotations: Annotations, draws: Parameters, fixed: Parameters, names: tuple[str, ...]
) -> Parameters:
    """The reported quantities ``names`` in each draw, ``(chain, draw, ...)``."""

    def of_draw(draw: Parameters) -> Parameters:
        values, _ = derived(model, draw | fixed, annotations)
        return {name: values[name] for name in names}

    return _over_draws(of_draw, draws)


@partial(jax.jit, static_argnames="model")
def derived_mean(model: Model, annotations: Annotations, draws: Parameters, fixed: Parameters) -> Parameters:
    """Every reported quantity's mean over the draws, one draw at a time."""

    def of_draw(draw: Parameters) -> Parameters:
        return derived(model, draw | fixed, annotations)[0]

    flat = jax.tree.map(lambda value: jnp.reshape(value, (-1, *value.shape[2:])), draws)
    first = of_draw(jax.tree.map(lambda value: value[0], flat))
    total, _ = jax.lax.scan(
        lambda total, draw: (jax.tree.map(jnp.add, total, of_draw(draw)), None),
        first,
        jax.tree.map(lambda value: value[1:], flat),
    )
    n_draws = len(next(iter(flat.values())))
    return jax.tree.map(lambda value: value / n_draws, total)


@partial(jax.jit, static_argnames="model")
def replicate(
    model: Model, annotations: Annotations, draws: Parameters, fixed: Parameters, keys: Array
) -> tuple[Array, Array]:
    """New annotations of the same workers to the same tasks: ``truth (..., N)`` and annotations ``(..., A)`` for each draw.

    The truth is drawn from its posterior given the draw, the annotations from the story given that truth.

    Args:
        keys: one random key a draw, ``(chain, draw)``.
    """

    def once(draw_and_key: tuple[Parameters, Array]) -> tuple[Array, Array]:
        draw, key = draw_and_key
        at = density(model, draw | fixed, annotations)
        truth_key, annotation_key = jax.random.split(key)
        truth = jax.random.categorical(truth_key, at.log_joint)
        emission = at.responses.emission
        return truth, emission.sample(annotation_key, annotations.worker, annotations.task, truth[annotations.task])

    return jax.lax.map(lambda chain: jax.lax.map(once, chain), (draws, keys))


@partial(jax.jit, static_argnames=("classifier", "n_classes"))
def class_probabilities(
    classifier: Classifier, n_classes: int, x: Array, draws: Parameters, fixed: Parameters
) -> Array:
    """The classifier's probabilities for features ``x (n, ...)``, averaged over its weights' draws: ``(n, K)``."""

    def probs(draw: Parameters) -> Array:
        with handlers.substitute(substitute_fn=site_values(draw | fixed)), handlers.seed(rng_seed=0):
            return jnp.exp(classifier.log_probs(x, n_classes))

    def add(total: Array, draw: Parameters) -> tuple[Array, None]:
        return total + probs(draw), None

    if not draws:
        return probs({})
    flat = jax.tree.map(lambda value: value.reshape(-1, *value.shape[2:]), draws)
    total, _ = jax.lax.scan(add, jnp.zeros((len(x), n_classes)), flat)
    return total / total.sum(-1, keepdims=True)


def _over_draws(f: Callable[[Parameters], Any], draws: Parameters) -> Any:
    return jax.lax.map(lambda chain: jax.lax.map(f, chain), draws)
