"""What judges share, on a grid: its points, how often a class has each, and how scores follow from it."""

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import ndtr, ndtri

from .kernels import SMALLEST

EDGE = 1e-6  # of a share of annotations, below and above which a level has the normal score of the edge


def grid(n_points: int) -> Array:
    """Return equally probable points of a standard normal, scaled to a variance of 1, ``(M,)``."""
    points = ndtri((jnp.arange(n_points) + 0.5) / n_points)
    return points / jnp.sqrt((points**2).mean())


def shares_of_points(points: Array, n_classes: int, correlation: Array | float) -> Array:
    r"""Return how often each class has each point, rows that sum to one: ``(K, M)``.

    A task's class is that of K equally frequent ones, from the least to the greatest, in which
    :math:`r q + \sqrt{1 - r^2} \, e` falls, with the point :math:`q` and a standard normal :math:`e`.

    Args:
        points: :math:`q`, equally probable, ``(M,)``.
        n_classes: K.
        correlation: :math:`r`, between −1 and 1.
    """
    upper = ndtri(jnp.arange(1, n_classes) / n_classes)
    upto = ndtr((upper[:, None] - correlation * points) / jnp.sqrt(1 - correlation**2))
    ends = jnp.zeros((1, len(points))), jnp.ones((1, len(points)))
    joint = jnp.maximum(jnp.diff(jnp.concatenate([ends[0], upto, ends[1]]), axis=0), SMALLEST)
    return joint / joint.sum(-1, keepdims=True)


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
    score = ndtri(jnp.clip(jnp.cumsum(share, -1) - share / 2, EDGE, 1 - EDGE))[:, None]
    weight = (correlation / (1 - correlation**2))[:, None, None]
    log_odds = weight * score * (points[:, None] - correlation[:, None, None] * score / 2)
    return jax.nn.softmax(jnp.log(jnp.maximum(share, SMALLEST))[:, None] + log_odds, axis=-1)
