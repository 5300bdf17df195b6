r"""Scores have one thing in common, which is told apart from each judge's own use of the scale, and from the truth.

.. math::
    \zeta_l &\sim \text{Normal}(0, 1) & (K) \\
    \epsilon_{jl} &\sim \text{Normal}(0, 1) & (J, K) \\
    \ell_j &\sim \text{Normal}(\tanh^{-1} \lambda, \sigma) & (J) \\
    v &\sim \text{Normal}(\tanh^{-1} r, \sigma) \\
    p_j &= \text{softmax}(\zeta + \epsilon_j), \quad
        x_{jl} = \Phi^{-1}(p_{j1} + \dots + p_{j,l-1} + p_{jl} / 2), \quad \lambda_j = \tanh \ell_j & (J, K) \\
    q_i &\sim \text{Normal}(0, 1), \quad t_i = \tanh(v) \, q_i + \sqrt{1 - \tanh^2 v} \, e_i,
        \quad e_i \sim \text{Normal}(0, 1) & (N) \\
    z_i &= k \text{ where } c_{k-1} < t_i \le c_k & (N) \\
    P(y_a = l \mid q_i) &\propto p_{jl}
        \exp\Big(\frac{\lambda_j x_{jl} q_i - \lambda_j^2 x_{jl}^2 / 2}{1 - \lambda_j^2}\Big) & (A)

It is a factor analysis of each judge's normal scores, with levels for scores (Jöreskog & Moustaki 2001): a judge who
gives 7 to nearly everything says little by it, whatever 7 means to others. What judges share, :math:`q`, is not the
truth: they share errors too, so that many of them do not make it certain. How far it is the truth, :math:`r`, cannot be
told from annotations; gold labels tell it. (:math:`q` and :math:`e` are summed out, :math:`q` over a grid.)

What the cuts :math:`c` of the truth are depends on what its classes are:

- where they are the levels, the crowd's: the mean of its judges' cuts :math:`\Phi^{-1}(p_{j1} + \dots + p_{jl})`,
  weighted by :math:`\max(\lambda_j, 0) / (1 - \lambda_j^2)`, so that a class is as frequent as judges who hear the
  factor use its level. :math:`r` is then expected near 1: a label is nearly as sure as the factor is known.
- where the truth has classes of its own (``truth_classes=``), or there are two, every class is equally frequent, since
  scores do not tell where on their scale the classes begin. At the :math:`r = 1 / \sqrt 2` that is expected there, the
  second of two classes has the probability :math:`\Phi(q)`. Gold labels tell: where there are any the classes' shares
  are :math:`\text{softmax}(\eta)` with :math:`\eta_k \sim \text{Normal}(0, 1)`.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from jax.scipy.special import ndtr, ndtri
from scipy import special

from ..data import Annotations
from ..data.errors import real_number
from ..data.padding import n_real_workers
from .parts.concentration import positive, whole
from .parts.contract import StoryError
from .parts.derived import derived
from .parts.kernels import SMALLEST, safe_log
from .parts.simulated_inputs import in_order, simulated_with
from .parts.subtypes import Subtypes
from .parts.truth import named_workers, observe, ordered_classes, tasks
from .parts.truth_prior import UNIFORM, TruthPrior

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
    return jax.nn.softmax(safe_log(share)[:, None] + log_odds, axis=-1)


VALIDITY = {"of levels": 0.98, "of its own classes": 0.5**0.5}
"""The correlation of the factor with the truth that is expected: where its classes are the levels, and where not."""


@simulated_with(in_order, n_classes=5)
def score_factor(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    loading: float = 0.6,
    validity: float | None = None,
    spread: float = 0.3,
    points: int = 21,
) -> None:
    r"""Scores have a common factor, and each judge a scale; the truth is related to the factor, and not the same.

    Sites: ``common (K,)`` (:math:`\zeta`, the crowd's logits of the levels), ``individual (J, K)``
    (:math:`\epsilon`), ``loading (J,)`` (:math:`\ell`) and ``validity ()`` (:math:`v`), real numbers whose hyperbolic
    tangents are correlations, with gold labels ``share (K,)`` (:math:`\eta`, logits of the shares of the truth's own
    classes), ``truth (N,)``, ``annotation (A,)``. Derived: ``confusion (J, K, K)``, ``correlation
    (J,)``, of a judge's normal scores with the factor, and ``truth_correlation ()``, of the factor with the truth.

    Args:
        annotations: who gave which score, from the least to the greatest; workers are named.
        truth_prior: prior of the true labels; by default the shares between the cuts: the crowd's of the levels; where
            the truth has classes of its own, or two, which the scores do not tell, even ones, or as gold labels tell.
        loading: the correlation of a judge's scores with the factor that is expected, :math:`\lambda`.
        validity: the correlation of the factor with the truth that is expected, :math:`r`; by default 0.98 where the
            classes are more than two and the levels themselves, and 0.71 where not. It bounds how sure labels are: with
            the factor known exactly, the most probable of equally frequent classes has in the mean 0.75 of two classes,
            0.41 of five and 0.24 of ten at 0.71, and 0.90, 0.67 and 0.45 at 0.95, which suits judges who see the truth
            and err one by one.
        spread: :math:`\sigma`, how far judges differ from that, and the truth from this, in inverse hyperbolic
            tangents.
        points: number M of points of the grid.

    Raises:
        StoryError: no worker is named, more than two classes have no order, a correlation is not between −1 and 1,
            ``spread`` is not positive, or there is no point.
    """
    n_workers, n_classes = named_workers(annotations), ordered_classes(annotations)
    are_levels = n_classes > 2 and not annotations.scored
    if validity is None:
        validity = VALIDITY["of levels" if are_levels else "of its own classes"]
    usual, valid = (jnp.arctanh(_correlation(*each)) for each in (("loading", loading), ("validity", validity)))
    apart = positive("spread", spread)
    at = (even_grid if are_levels else grid)(whole("points", points))
    shares = dist.Normal(0.0, 1.0).expand([annotations.n_levels]).to_event(1)
    common = numpyro.sample("common", shares, infer={"event_dims": ["annotation"]})
    with numpyro.plate("worker", n_workers, dim=-1):
        individual = numpyro.sample("individual", shares, infer={"event_dims": ["annotation"]})
        correlation = jnp.tanh(numpyro.sample("loading", dist.Normal(usual, apart)))
    to_truth = jnp.tanh(numpyro.sample("validity", dist.Normal(valid, apart)))
    share = jax.nn.softmax(common + individual, axis=-1)
    by_item = annotations.sides is not None  # comparisons have a prior by item
    are_told = annotations.evidence is not None and truth_prior is None and not (are_levels or by_item)
    cuts = equal_cuts(n_classes)
    if are_levels:
        cuts = crowd_cuts(share, correlation, jnp.arange(n_workers) < n_real_workers(annotations))
    elif are_told:
        logits = dist.Normal(0.0, 1.0).expand([n_classes]).to_event(1)
        logits = numpyro.sample("share", logits, infer={"event_dims": ["truth"]})
        cuts = normal_score(jnp.clip(jnp.cumsum(jax.nn.softmax(logits))[:-1], EDGE, 1 - EDGE))
    joint = joint_shares(at, cuts, to_truth)
    by_class = joint.sum(-1, keepdims=True)
    prior: TruthPrior | Array | None = truth_prior
    if prior is None and not by_item:
        prior = jnp.log(by_class[:, 0]) if are_levels or are_told else UNIFORM
    emission = Subtypes(score_rows(share, correlation, at[0])[:, None], joint / by_class)
    with tasks(annotations, prior) as truth:
        observe(truth, emission, annotations)
    derived("confusion", emission.confusions(annotations), "worker", "class", "annotation", role="confusion")
    derived("correlation", correlation, "worker")
    derived("truth_correlation", to_truth)


def _correlation(name: str, value: float) -> float | Array:
    """The number itself where it is a correlation."""
    return value if isinstance(value, Array) else real_number(name, value, above=-1, below=1, error=StoryError)
