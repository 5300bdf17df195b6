"""Replicated annotations: the same workers annotate the same tasks, and what they give is drawn anew."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpyro import handlers

from ...data import Annotations
from ...models.parts.emissions import Emission
from ...models.parts.kernels import FAST
from ..densities.enumerated import site_values
from ..densities.model import Model
from ..densities.prior import proper
from ..densities.programs import compiled
from ..densities.random_keys import key_of
from ..fitted.fitted import Fitted
from ..fitted.replicated_annotations import before_annotations

NewTruth = Literal["prior", "posterior"]


def from_posterior(
    fitted: Fitted, design: Annotations, draws: int, replicates: int, truth: NewTruth, seed: int
) -> Iterator[np.ndarray]:
    r"""Annotations :math:`\tilde y \sim p(y \mid \theta)` of the rows of ``design``: ``(replicates, A)`` for each draw.

    The draws are the fit's, evenly thinned or, where it has fewer, each taken several times; a point is one draw.
    """
    flat, available = fitted.flat_draws, int(np.prod(fitted.shape))
    data = fitted.data if design.mirrored is None else design  # orders are of the rows that the story is run with
    at_one = fitted.replace(source=jax.tree.map(jnp.asarray, data))
    rows = jax.tree.map(jnp.asarray, (design.worker, design.task))
    there, key = None, key_of(seed, FAST)
    for i in range(draws):
        if (which := i * available // draws) != there:
            at = _at(at_one.with_draws({name: value[which][None, None] for name, value in flat.items()}))
            there = which
        yield np.asarray(_replicate(at, *rows, key, np.int32(i), replicates, truth))


def from_prior(model: Model, design: Annotations, draws: int, seed: int) -> np.ndarray:
    """Annotations of the rows of ``design`` with parameters and true labels from their priors: ``(draws, A)``."""
    unannotated = jax.tree.map(jnp.asarray, design.replace(label=None, gold=None))
    return np.stack([_simulate(model, unannotated, key_of(seed, FAST), np.int32(i)) for i in range(draws)])


class _At(NamedTuple):
    """Distributions from which annotations are drawn, at one draw of the parameters."""

    emission: Emission
    posterior: Array  # (N, K) log-weights of the true labels given the annotations
    prior: Array  # (N, K) and before them


@compiled
def _at(fitted: Fitted) -> _At:
    """At the only draw of ``fitted``."""
    at = fitted.at({name: value[0, 0] for name, value in fitted.draws.items()})
    return _At(at.likelihood.emission, at.log_joint, before_annotations(at, fitted.annotations))


@compiled(static=("replicates", "truth"))
def _replicate(
    at: _At, worker: Array | None, task: Array, key: Array, number: Array, replicates: int, truth: NewTruth
) -> Array:
    """Annotations of the rows, of one draw by its number: ``(replicates, A)``."""
    shared_key, own_key = jax.random.split(jax.random.fold_in(key, number))
    shared = jax.random.categorical(shared_key, at.posterior)

    def once(key: Array) -> Array:
        truth_key, annotation_key = jax.random.split(key)
        new = jax.random.categorical(truth_key, at.prior) if truth == "prior" else shared
        return at.emission.sample(annotation_key, worker, task, new[task])

    return jax.lax.map(once, jax.random.split(own_key, replicates))


@compiled(static=("model",))
def _simulate(model: Model, design: Annotations, key: Array, number: Array) -> Array:
    """Annotations of the rows of ``design``, of one draw by its number, ``(A,)``: everything from its prior."""
    key = jax.random.fold_in(key, number)
    started = handlers.substitute(substitute_fn=site_values({}))
    with handlers.trace() as sites, proper(), started, handlers.seed(rng_seed=key):
        model(design)
    return sites["annotation"]["value"]
