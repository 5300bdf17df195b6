"""A story's starting values, which are those of all the data also where a source has them in several batches."""

import jax
import jax.numpy as jnp
from jax import Array

from ...data import Annotations
from ...models.parts.whole_sums import collected, given
from ..densities.enumerated import Parameters
from ..densities.model import Model
from ..densities.programs import compiled
from ..densities.sites import starting_point
from .source import Source, added, sum_over_batches


@compiled
def start_sums(model: Model, batch: Annotations, key: Array) -> list[Array]:
    """Return the batch's part of the sums over all tasks that the story's starting values need."""
    with collected() as noted:
        starting_point(model, batch, key)
    return noted


@compiled
def start_from(model: Model, like: Annotations, key: Array, totals: list[Array]) -> Parameters:
    """Return the story's starting values, from the totals of these sums; of the annotations only shapes matter."""
    with given(totals):
        return starting_point(model, like, key)


def start(model: Model, source: Source, key: Array) -> Parameters:
    """Return the story's starting values."""
    totals = _no_totals(model, source.like, key)
    if totals:

        def add(batch: Annotations, sums: list[Array], model: Model, key: Array) -> list[Array]:
            return added(sums, start_sums(model, batch, key))

        totals = sum_over_batches(source, add, totals, (model, key))
    return start_from(model, source.like, key, totals)


def parameter_shapes(model: Model, like: Annotations) -> Parameters:
    """Return shapes and types of the parameters' arrays, by site."""

    def parameters(key: Array) -> Parameters:
        return start_from(model, like, key, _no_totals(model, like, key))

    return jax.eval_shape(parameters, jax.random.key(0))


def _no_totals(model: Model, like: Annotations, key: Array) -> list[Array]:
    return list(map(jnp.zeros_like, jax.eval_shape(start_sums, model, like, key)))
