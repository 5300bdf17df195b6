r"""Every worker is right with one probability, whatever the class, and errs evenly over the others.

.. math::
    \rho &\sim \text{Dirichlet}(\alpha) & (K) \\
    a_j &\sim \text{Dirichlet}(\text{wrong}, \text{right}) & (J, 2) \\
    z_i &\sim \text{Categorical}(\rho) & (N) \\
    P(y_a = l \mid z_i = k) &= a_j[1] \text{ if } l = k, \text{ else } a_j[0] / (K - 1) & (A)

It is Dawid & Skene's story with one number for a worker (Zhang, Chen, Zhou & Jordan 2014, section 2).
"""

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from ..data import Annotations
from .parts.concentration import positive
from .parts.emissions import Confusion
from .parts.own_classes import wrong_classes
from .parts.truth import named_workers, observe, tasks
from .parts.truth_prior import TruthPrior


def one_coin(
    annotations: Annotations, *, truth_prior: TruthPrior | None = None, right: float = 2.0, wrong: float = 1.0
) -> None:
    """Every worker is right with one probability, whatever the class, and errs evenly over the other classes.

    Sites: ``prevalence (K,)``, ``ability (J, 2)`` (wrong, right), ``truth (N,)``, ``annotation (A,)``.

    Args:
        annotations: who labelled what; workers are named.
        truth_prior: prior of the true labels; a prevalence with a flat Dirichlet by default.
        right: Dirichlet concentration of right annotations.
        wrong: of wrong annotations.

    Raises:
        StoryError: no worker is named, or a concentration is not positive.
    """
    n_workers, wrong_each = named_workers(annotations), wrong_classes(annotations)
    concentration = jnp.array([positive("wrong", wrong), positive("right", right)])
    with numpyro.plate("worker", n_workers, dim=-1):
        ability = numpyro.sample("ability", dist.Dirichlet(concentration), infer={"event_dims": ["is_right"]})
    hit, miss = ability[:, 1, None, None], ability[:, 0, None, None]
    table = jnp.where(jnp.eye(len(wrong_each), dtype=bool), hit, miss * wrong_each)
    with tasks(annotations, truth_prior) as truth:
        observe(truth, Confusion(table), annotations)
