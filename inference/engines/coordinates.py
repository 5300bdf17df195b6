r"""Coordinates in which a story's posterior is nearly a standard normal, for samplers.

A row of probabilities :math:`\theta` of K classes is cut in two halves, these in two, and so on. Each of the
:math:`K - 1` cuts has a log-odds :math:`z` of its left half against its right one. Where :math:`\theta \sim
\text{Dirichlet}(a)`, the cuts are independent and :math:`\sigma(z) \sim \text{Beta}(a_l, a_r)`, the sums of :math:`a`
over both halves, and whatever the cuts are,

.. math:: \log \left| \det \frac{\partial \theta}{\partial z} \right| = \sum_k \log \theta_k.

A coordinate :math:`x` has the standard deviation, the skewness and the tails of such a log-odds taken out: with
:math:`s^2 = 1 / a_l + 1 / a_r`, :math:`c` the start and :math:`t = s x / 4`,

.. math:: z = c + s x \sqrt{1 + t^2} + \frac{1}{6} \left( \frac{1}{a_r} - \frac{1}{a_l} \right) x^2,

which is the signed root of the log-density at its mode to second order, grows as :math:`x^2` in the tails, as the
logarithms of a Beta's density need it, and rises everywhere. As :math:`a` serve the prior's concentrations and the
expected counts of annotations at the start, :math:`1 + \theta \odot \nabla \log p(\theta, y)` (Fisher's identity).
"""

from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from ...data import Annotations
from ...data.padding import real_by_plate
from ..densities.enumerated import Parameters, density
from ..densities.model import Model
from ..densities.sites import parameter_spec

LEAST = 0.1  # of the concentrations that rows are taken to have
LOWEST = -80.0  # logarithm of the least probability that a density sees: float32 has zeros from -103


class Cuts(NamedTuple):
    """The log-odds of a table's cuts, ``(..., K - 1)`` each, as functions of coordinates."""

    centre: Array
    scale: Array
    tilt: Array

    def log_odds(self, x: Array) -> tuple[Array, Array]:
        """The log-odds at coordinates of their shape, and the logarithm of their derivative."""
        t = self.scale / 4 * x
        root = jnp.sqrt(1 + t * t)
        slope = self.scale * (1 + 2 * t * t) / root + 2 * self.tilt * x
        return self.centre + self.scale * x * root + self.tilt * x * x, jnp.log(slope)


class Coordinates(NamedTuple):
    """Values that the coordinates are made from; zero is where the chains start."""

    tables: dict[str, Cuts]
    reals: Parameters  # other parameters in unconstrained space, where the chains start


class Place(NamedTuple):
    """A point in the parameters' own space."""

    parameters: Parameters
    log_det: Array  # () of the parameters by unconstrained ones, as NumPyro has it, without padded tasks and workers
    correction: Array  # () what is to be added to it for the coordinates


def coordinates_near(model: Model, annotations: Annotations, values: Parameters, fixed: Parameters) -> Coordinates:
    """Coordinates for the posterior around ``values``.

    Args:
        values: parameters by site, tables without zeros.
        fixed: sites among them that are held where they are, and have no coordinates.
    """
    spec = parameter_spec(model, annotations)
    tables = {name: values[name] for name in spec.tables if name not in fixed}

    def log_posterior(tables: Parameters) -> Array:
        return density(model, values | fixed | tables, annotations).log_posterior

    slopes = jax.grad(log_posterior)(tables)
    cuts = {name: _cuts(table, jnp.maximum(1 + table * slopes[name], LEAST)) for name, table in tables.items()}
    reals = {name: real for name, real in spec.to_reals(values).items() if name not in fixed}
    return Coordinates(cuts, reals)


def origin(coordinates: Coordinates) -> Array:
    """The point that the coordinates were made for: zeros, one for each degree of freedom."""
    return jnp.zeros_like(ravel_pytree(_centres(coordinates))[0])


def place(model: Model, annotations: Annotations, coordinates: Coordinates, point: Array) -> Place:
    """The parameters at a vector of coordinates."""
    spec = parameter_spec(model, annotations)
    by_site = ravel_pytree(_centres(coordinates))[1](point)
    parameters, log_det, correction = {}, jnp.zeros(()), jnp.zeros(())
    for name, cuts in coordinates.tables.items():
        log_odds, log_slope = cuts.log_odds(by_site[name])
        log_probs = log_probabilities(log_odds)
        parameters[name] = jnp.exp(jnp.maximum(log_probs, LOWEST))
        of_all = log_probs.sum()
        of_real = _of_real(log_probs, spec.dims[name], annotations).sum()
        log_det += of_real
        correction += log_slope.sum() + of_all - of_real  # which is uniform for padded rows
    for name, centre in coordinates.reals.items():
        real = centre + by_site[name]
        parameters[name] = spec.bijections[name](real)
        of_plates = spec.bijections[name].log_abs_det_jacobian(real, parameters[name])
        log_det += _of_real(of_plates, spec.dims[name], annotations).sum()
    return Place(parameters, log_det, correction)


def log_probabilities(log_odds: Array) -> Array:
    """Logarithms of rows of probabilities ``(..., K)`` whose cuts have these log-odds, ``(..., K - 1)``."""
    left, right = halves(log_odds.shape[-1] + 1)
    rest = jnp.log(1 + jnp.exp(-jnp.abs(log_odds)))
    # One branch at zero, that of the derivative of abs there: with jnp.minimum the slope at zero would be wrong.
    below = log_odds < 0
    lower, upper = jnp.where(below, log_odds, 0.0), jnp.where(below, 0.0, -log_odds)
    return _sums(lower - rest, left) + _sums(upper - rest, right)


@cache
def halves(n: int) -> tuple[np.ndarray, np.ndarray]:
    """The classes of ``n`` in the left and in the right half of each cut, ``(n - 1, n)`` of 0 and 1.

    >>> halves(3)[0].tolist(), halves(3)[1].tolist()
    ([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]], [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    """
    left, right = [], []
    pieces = [np.arange(n)]
    while pieces:
        piece = pieces.pop()
        if len(piece) > 1:
            parts = np.array_split(piece, 2)
            pieces += parts
            left.append(np.isin(np.arange(n), parts[0]))
            right.append(np.isin(np.arange(n), parts[1]))
    shape = (max(n - 1, 0), n)
    return np.reshape(left, shape).astype(np.float32), np.reshape(right, shape).astype(np.float32)


def _cuts(table: Array, concentration: Array) -> Cuts:
    left, right = halves(table.shape[-1])
    of_left, of_right = (_sums(concentration, half.T) for half in (left, right))
    centre = jnp.log(_sums(table, left.T)) - jnp.log(_sums(table, right.T))
    return Cuts(centre, jnp.sqrt(1 / of_left + 1 / of_right), (1 / of_right - 1 / of_left) / 6)


def _sums(values: Array, members: np.ndarray) -> Array:
    return jnp.matmul(values, jnp.asarray(members, values.dtype), precision="highest")


def _centres(coordinates: Coordinates) -> Parameters:
    return {name: cuts.centre for name, cuts in coordinates.tables.items()} | coordinates.reals


def _of_real(values: Array, dims: tuple[str, ...], annotations: Annotations) -> Array:
    """Values with the plates ``dims`` in front, zeros for padded tasks and workers."""
    real = real_by_plate(annotations)
    for axis, dim in enumerate(dims[: values.ndim]):
        if dim in real:
            is_real = jnp.expand_dims(real[dim], [i for i in range(values.ndim) if i != axis])
            values = jnp.where(is_real, values, 0.0)
    return values
