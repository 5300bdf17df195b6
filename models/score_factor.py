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
    z_i &= \lfloor K \, \Phi(t_i) \rfloor & (N) \\
    P(y_a = l \mid q_i) &\propto p_{jl}
        \exp\Big(\frac{\lambda_j x_{jl} q_i - \lambda_j^2 x_{jl}^2 / 2}{1 - \lambda_j^2}\Big) & (A)

It is a factor analysis of each judge's normal scores, with levels for scores (Jöreskog & Moustaki 2001): a judge who
gives 7 to nearly everything says little by it, whatever 7 means to others. What judges share, :math:`q`, is not the
truth: they share errors too, so that many of them do not make it certain. How far it is the truth, :math:`r`, cannot be
told from annotations; gold labels tell it. At :math:`r = 1 / \sqrt 2` and two classes the second has the probability
:math:`\Phi(q)`. That every class is equally frequent is as little to be told from scores of an unknown scale: it is the
prior here, and ``truth_prior`` says another. (:math:`q` and :math:`e` are summed out, :math:`q` over a grid.)
"""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax import Array

from ..data import Annotations
from .parts.concentration import finite, positive, whole
from .parts.derived import derived
from .parts.factor import grid, score_rows, shares_of_points
from .parts.simulated_inputs import in_order, simulated_with
from .parts.story_error import StoryError
from .parts.subtypes import Subtypes
from .parts.truth import named_workers, observe, ordered_classes, tasks
from .parts.truth_prior import UNIFORM, TruthPrior


@simulated_with(in_order, n_classes=5)
def score_factor(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = UNIFORM,
    loading: float = 0.6,
    validity: float = 0.5**0.5,
    spread: float = 0.3,
    points: int = 21,
) -> None:
    r"""Scores have a common factor, and each judge a scale; the truth is related to the factor, and not the same.

    Sites: ``common (K,)`` (:math:`\zeta`, the crowd's logits of the levels), ``individual (J, K)``
    (:math:`\epsilon`), ``loading (J,)`` (:math:`\ell`) and ``validity ()`` (:math:`v`), real numbers whose hyperbolic
    tangents are correlations, ``truth (N,)``, ``annotation (A,)``. Derived: ``confusion (J, K, K)``, ``correlation
    (J,)``, of a judge's normal scores with the factor, and ``truth_correlation ()``, of the factor with the truth.

    Args:
        annotations: who gave which score, from the least to the greatest; workers are named.
        truth_prior: prior of the true labels; even shares of the classes by default, which the scores do not tell.
        loading: the correlation of a judge's scores with the factor that is expected, :math:`\lambda`.
        validity: the correlation of the factor with the truth that is expected, :math:`r`. It bounds how sure labels
            are: with the factor known exactly, the most probable class has in the mean 0.75 of two classes, 0.41 of
            five and 0.24 of ten at the default, and 0.90, 0.67 and 0.45 at 0.95, which suits judges who see the truth
            and err one by one.
        spread: :math:`\sigma`, how far judges differ from that, and the truth from this, in inverse hyperbolic
            tangents.
        points: number M of points of the grid.

    Raises:
        StoryError: no worker is named, more than two classes have no order, a correlation is not between −1 and 1,
            ``spread`` is not positive, or there is no point.
    """
    n_workers, n_classes = named_workers(annotations), ordered_classes(annotations)
    usual, valid = (jnp.arctanh(_correlation(*each)) for each in (("loading", loading), ("validity", validity)))
    apart, at = positive("spread", spread, "scale"), grid(whole("points", points))
    shares = dist.Normal(0.0, 1.0).expand([annotations.n_levels]).to_event(1)
    common = numpyro.sample("common", shares, infer={"event_dims": ["annotation"]})
    with numpyro.plate("worker", n_workers, dim=-1):
        individual = numpyro.sample("individual", shares, infer={"event_dims": ["annotation"]})
        correlation = jnp.tanh(numpyro.sample("loading", dist.Normal(usual, apart)))
    to_truth = jnp.tanh(numpyro.sample("validity", dist.Normal(valid, apart)))
    rows = score_rows(jax.nn.softmax(common + individual, axis=-1), correlation, at)
    emission = Subtypes(rows[:, None], shares_of_points(at, n_classes, to_truth))
    with tasks(annotations, truth_prior) as truth:
        observe(truth, emission, annotations)
    derived("confusion", emission.confusions(annotations), "worker", "class", "annotation", role="confusion")
    derived("correlation", correlation, "worker")
    derived("truth_correlation", to_truth)


def _correlation(name: str, value: float) -> float | Array:
    """The number itself where it is a correlation.

    Raises:
        StoryError: it is not between −1 and 1.
    """
    value = finite(name, value)
    if not isinstance(value, Array) and not -1 < value < 1:
        raise StoryError(f"{name}={value!r} is no correlation; a number between -1 and 1 is needed")
    return value
