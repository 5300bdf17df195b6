"""A factor that judges share, on a grid: its points, their probabilities by class, and scores given the factor."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import ndtr, ndtri
from scipy import special

from .kernels import SMALLEST

EDGE = 1e-6  # of a share of annotations, below and above which a level has the normal score of the edge
REACH = 3.0  # standard deviations, of the points that are equally distant


def grid(n_points: int) -> tuple[Array, Array]:
    """Return equally probable points of a standard normal, scaled to a variance of 1, and their shares, ``(M,)``."""
    points = special.ndtri((np.arange(n_points) + 0.5) / n_points)
    return jnp.asarray(points / np.sqrt((points**2).mean())), jnp.full(n_points, 1 / n_points)


def even_grid(n_points: int) -> tuple[Array, Array]:
    """Return equally distant points, as far as rare classes lie, in the form of :func:`grid`."""
    points = jnp.linspace(-REACH, REACH, n_points)
    share = jax.nn.softmax(-(points**2) / 2)
    return points / jnp.sqrt(share @ points**2), share


def equal_cuts(n_classes: int) -> Array:
    """Return the cuts of a standard normal into equally probable classes, ``(K - 1,)``."""
    return jnp.asarray(special.ndtri(np.arange(1, n_classes) / n_classes))


@jax.custom_jvp
def normal_score(share: Array) -> Array:
    """Return the standard normal's quantiles, whose derivative is one over its density.

    Through the polynomials by which they are computed, a gradient takes three times as long to compile.
    """
    return ndtri(share)


@normal_score.defjvp
def _of_normal_score(share: tuple[Array], change: tuple[Array]) -> tuple[Array, Array]:
    score = normal_score(*share)
    return score, change[0] * math.sqrt(2 * math.pi) * jnp.exp(score**2 / 2)


def crowd_cuts(share: Array, correlation: Array, is_real: Array) -> Array:
    r"""Return the cuts of a standard normal into the levels as the crowd uses them, ``(L - 1,)``.

    .. math::
        c_l = \sum_j w_j \, \Phi^{-1}(p_{j1} + \dots + p_{jl}) \Big/ \sum_j w_j, \qquad
            w_j = \max(\lambda_j, 0) / (1 - \lambda_j^2)

    A worker counts as in the factor's estimate from normal scores, so that noise has no say in what a level means.

    Args:
        share: :math:`p`, of the levels, rows sum to one, ``(J, L)``.
        correlation: :math:`\lambda`, between −1 and 1, ``(J,)``.
        is_real: whether a worker is none that is padded, ``(J,)``.
    """
    own = normal_score(jnp.clip(jnp.cumsum(share, -1)[:, :-1], EDGE, 1 - EDGE))
    weight = is_real * (jnp.maximum(correlation, 0) / (1 - correlation**2) + EDGE)
    return weight @ own / weight.sum()


def joint_shares(grid: tuple[Array, Array], cuts: Array, correlation: Array | float) -> Array:
    r"""Return how often a task is of a class and at a point, ``(K, M)``, which sum to one.

    A task's class is that between whose cuts :math:`r q + \sqrt{1 - r^2} \, e` falls, with the point :math:`q` and a
    standard normal :math:`e`.

    Args:
        grid: points :math:`q` and their shares, ``(M,)``.
        cuts: between the classes, rising, ``(K - 1,)``.
        correlation: :math:`r`, between −1 and 1.
    """
    points, share = grid
    upto = ndtr((cuts[:, None] - correlation * points) / jnp.sqrt(1 - correlation**2))
    ends = jnp.zeros((1, len(points))), jnp.ones((1, len(points)))
    return share * jnp.maximum(jnp.diff(jnp.concatenate([ends[0], upto, ends[1]]), axis=0), SMALLEST)


def score_rows(share: Array, correlation: Array, points: Array) -> Array:
    r"""Return each worker's probabilities of the levels at each point, ``(J, M, L)``.

    A level has the normal score :math:`x_{jl} = \Phi^{-1}(p_{j1} + \dots + p_{j,l-1} + p_{jl} / 2)` of the worker's
    own shares :math:`p`. Scores and points are normal with the worker's correlation :math:`\lambda`:

    .. math::
        P(y = l \mid q) \propto p_{jl}
            \exp\Big(\frac{\lambda_j x_{jl} q - \lambda_j^2 x_{jl}^2 / 2}{1 - \lambda_j^2}\Big)

    so that neighbouring levels, which have near scores, speak for near points.

    Args:
        share: :math:`p`, rows sum to one, ``(J, L)``.
        correlation: :math:`\lambda`, between −1 and 1, ``(J,)``.
        points: :math:`q`, ``(M,)``.
    """
    score = normal_score(jnp.clip(jnp.cumsum(share, -1) - share / 2, EDGE, 1 - EDGE))[:, None]
    weight = (correlation / (1 - correlation**2))[:, None, None]
    log_odds = weight * score * (points[:, None] - correlation[:, None, None] * score / 2)
    return jax.nn.softmax(jnp.log(jnp.maximum(share, SMALLEST))[:, None] + log_odds, axis=-1)
