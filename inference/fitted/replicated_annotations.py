"""New annotations on the fitted design, from the posterior or from the prior, and the prior's log-density."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax import Array

from ...data import Annotations
from ..densities.enumerated import Parameters
from ..densities.prior import log_prior_by_site, prior_draws
from ..densities.programs import compiled
from .fitted import Fitted
from .named_draws import parameter_dataset

if TYPE_CHECKING:
    import xarray as xr


def posterior_predictive(fitted: Fitted, *, seed: int = 0) -> xr.Dataset:
    """For each draw a true label of each task given its annotations, and new annotations of the same workers.

    Args:
        fitted: a story at its draws.
        seed: the same seed gives the same replicates.

    Returns:
        ``truth (chain, draw, task)`` and ``annotation (chain, draw, row)``, as positions of classes.
    """
    truth, new = _replicate(fitted, jax.random.split(jax.random.key(seed), fitted.shape))
    return _dataset(truth, new, fitted.annotations)


def prior(fitted: Fitted, n: int, *, seed: int = 0) -> tuple[xr.Dataset, xr.Dataset]:
    """Draws from the story's prior on the fitted design, as one chain.

    Args:
        fitted: whose story and design these are.
        n: how many draws.
        seed: the same seed gives the same draws.

    Returns:
        the parameters with the dimensions chain, draw and named others; and true labels and annotations in the form of
        :func:`posterior_predictive`.
    """
    drawn = prior_draws(fitted.model, fitted.data, jax.random.split(jax.random.key(seed), n))
    one_chain = {name: np.asarray(value)[None] for name, value in drawn.items()}
    parameters = {name: value for name, value in one_chain.items() if name in fitted.draws}
    new = _dataset(one_chain["truth"], one_chain["annotation"], fitted.annotations)
    return parameter_dataset(parameters, fitted.dims, fitted.annotations, fitted.model.hyperparameters), new


def log_prior(fitted: Fitted) -> xr.Dataset:
    """The log-density of each parameter's prior in each draw: by site, with the dimensions chain and draw."""
    import xarray as xr

    return xr.Dataset({name: (("chain", "draw"), np.asarray(value)) for name, value in _log_prior(fitted).items()})


def _dataset(truth: Any, annotation: Any, annotations: Annotations) -> xr.Dataset:
    import xarray as xr

    variables = {
        "truth": (("chain", "draw", "task"), np.asarray(truth)),
        "annotation": (("chain", "draw", "row"), np.asarray(annotation)),
    }
    return xr.Dataset(variables, coords={"task": annotations.tasks.coords()})


@compiled
def _log_prior(fitted: Fitted) -> Parameters:
    return fitted.over_draws(lambda draw: log_prior_by_site(fitted.model, draw | fitted.fixed, fitted.annotations))


@compiled
def _replicate(fitted: Fitted, keys: Array) -> tuple[Array, Array]:
    """Truths ``(chain, draw, N)`` and annotations ``(chain, draw, A)``, with one random key a draw."""
    annotations = fitted.annotations

    def once(draw_and_key: tuple[Parameters, Array]) -> tuple[Array, Array]:
        draw, key = draw_and_key
        at = fitted.at(draw)
        truth_key, annotation_key = jax.random.split(key)
        truth = jax.random.categorical(truth_key, at.log_joint)
        emission = at.responses.emission
        new = emission.sample(annotation_key, annotations.worker, annotations.task, truth[annotations.task])
        return truth, new

    return jax.lax.map(lambda chain: jax.lax.map(once, chain), (fitted.draws, keys))
