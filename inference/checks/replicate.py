"""New annotations on the same design: who annotated what stays, what they annotated is drawn again."""

from collections.abc import Iterator
from functools import partial
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpyro import handlers

from ...data import Annotations
from ..densities.enumerated import Density, Parameters, density, site_values
from ..densities.model import Model
from ..results import Fit

NewTruth = Literal["prior", "posterior"]
FAST = "rbg"  # a generator of random numbers that XLA compiles several times faster than JAX's own


def from_posterior(
    fit: Fit, design: Annotations, draws: int, replicates: int, truth: NewTruth, seed: int
) -> Iterator[np.ndarray]:
    r"""Annotations :math:`\tilde y \sim p(y \mid \theta)` to the rows of ``design``: ``(replicates, A)`` of each draw.

    The draws are the fit's, evenly thinned or, where it has fewer, each taken several times; EM has its mode.
    """
    outcome = fit.outcome
    flat = {name: value.reshape(-1, *value.shape[2:]) for name, value in outcome.draws.items()}
    available = len(next(iter(flat.values())))
    model, data = fit.model, jax.tree.map(jnp.asarray, fit.annotations.replace(gold=None))
    rows = jax.tree.map(jnp.asarray, (design.worker, design.task))
    for i in range(draws):
        parameters = {name: value[i * available // draws] for name, value in flat.items()} | outcome.fixed
        key = jax.random.fold_in(jax.random.key(seed, impl=FAST), i)
        yield np.asarray(_replicate(model, data, parameters, *rows, key, replicates, truth))


def from_prior(model: Model, design: Annotations, draws: int, seed: int) -> np.ndarray:
    """Annotations to the rows of ``design`` with parameters and true labels of the story's prior: ``(draws, A)``."""
    unannotated = jax.tree.map(jnp.asarray, design.replace(label=None, gold=None))
    keys = (jax.random.fold_in(jax.random.key(seed, impl=FAST), i) for i in range(draws))
    return np.stack([_simulate(model, unannotated, key) for key in keys])


@partial(jax.jit, static_argnames=("model", "replicates", "truth"))
def _replicate(
    model: Model,
    annotations: Annotations,
    parameters: Parameters,
    worker: Array | None,
    task: Array,
    key: Array,
    replicates: int,
    truth: NewTruth,
) -> Array:
    at = density(model, parameters, annotations)
    emission = at.responses.emission
    shared_key, own_key = jax.random.split(key)
    shared = jax.random.categorical(shared_key, at.log_joint)

    def once(key: Array) -> Array:
        truth_key, annotation_key = jax.random.split(key)
        new = shared
        if truth == "prior":
            new = jax.random.categorical(truth_key, _before_annotations(at, annotations))
        return emission.sample(annotation_key, worker, task, new[task])

    return jax.lax.map(once, jax.random.split(own_key, replicates))


def _before_annotations(at: Density, annotations: Annotations) -> Array:
    """Log-weights of the classes that are known without the annotations: the truth's prior, and evidence, ``(N, K)``."""
    weights = jnp.broadcast_to(at.truth_prior, (annotations.n_tasks, annotations.n_classes))
    return weights if annotations.evidence is None else weights + annotations.evidence


@partial(jax.jit, static_argnames="model")
def _simulate(model: Model, design: Annotations, key: Array) -> Array:
    with handlers.trace() as sites, handlers.substitute(substitute_fn=site_values({})), handlers.seed(rng_seed=key):
        model(design)
    return sites["annotation"]["value"]
