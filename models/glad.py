r"""Workers have an ability and tasks a difficulty, which together decide how likely an annotation is right (GLAD).

.. math::
    a_j &\sim \text{Normal}(1, 1) & (J) \\
    d_i &\sim \text{Normal}(-1, 1) & (N) \\
    z_i &\sim \text{Categorical}(1 / K, \dots, 1 / K) & (N) \\
    P(y_a = l \mid z_i = k) &= \sigma(a_j e^{-d_i}) \text{ if } l = k, \text{ else }
    \frac{1 - \sigma(a_j e^{-d_i})}{K - 1} & (A)

(Whitehill et al. 2009; their :math:`1 / \beta_i` is :math:`e^{d_i}`, and the priors are theirs: the prevalence is not
estimated, but even. One that is may end at one class, since tasks of any class can be as difficult as it takes.) A
negative ability is that of an adversary.
"""

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from ..data import Annotations
from .parts.concentration import positive
from .parts.correct import Correct
from .parts.own_classes import log_fewer_errors
from .parts.truth import named_workers, observe, tasks
from .parts.truth_prior import UNIFORM, TruthPrior


def glad(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = UNIFORM,
    ability_scale: float = 1.0,
    difficulty_scale: float = 1.0,
) -> None:
    """Every worker has an ability and every task a difficulty; errors are spread evenly over the other classes.

    Sites: ``ability (J,)`` (real, in logits), ``difficulty (N,)`` (real, the logarithm of the paper's), ``truth (N,)``,
    ``annotation (A,)``; ``prevalence (K,)`` with a prior that estimates it.

    Args:
        annotations: who labelled what; workers are named.
        truth_prior: prior of the true labels; even shares of the classes by default, as published.
            :class:`.Prevalence` estimates them.
        ability_scale: standard deviation of the abilities around 1.
        difficulty_scale: standard deviation of the difficulties around −1.

    Raises:
        StoryError: no worker is named, or a scale is not positive.
    """
    n_workers = named_workers(annotations)
    ability_prior = dist.Normal(1.0, positive("ability_scale", ability_scale))
    difficulty_prior = dist.Normal(-1.0, positive("difficulty_scale", difficulty_scale))
    with numpyro.plate("worker", n_workers, dim=-1):
        ability = numpyro.sample("ability", ability_prior)
    with tasks(annotations, truth_prior) as truth:
        difficulty = numpyro.sample("difficulty", difficulty_prior)
        easy, fewer = jnp.exp(-difficulty), log_fewer_errors(annotations)
        observe(truth, Correct(ability[:, None], annotations.n_classes, scale=easy, offset=fewer), annotations)
