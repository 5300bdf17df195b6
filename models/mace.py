r"""A worker either knows the truth or spams: then the annotation comes from the worker's own habits (Hovy et al. 2013).

.. math::
    \rho &\sim \text{Dirichlet}(\alpha) & (K) \\
    a_j &\sim \text{Dirichlet}(\text{spams}, \text{knows}) & (J, 2) \\
    \xi_j &\sim \text{Dirichlet}(\gamma) & (J, K) \\
    z_i &\sim \text{Categorical}(\rho) & (N) \\
    P(y_a = l \mid z_i = k) &= a_j[1] \, [l = k] + a_j[0] \, \xi_j[l] & (A)

(Whether an annotation is spam is summed out. Their truth prior is uniform.)
"""

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from ..data import Annotations
from .parts.concentration import positive
from .parts.emissions import Confusion
from .parts.truth import named_workers, observe, tasks
from .parts.truth_prior import TruthPrior


def mace(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    knows: float = 2.0,
    spams: float = 1.0,
    habit: float = 1.5,
) -> None:
    """Every worker knows the truth or spams: annotations by habit, whatever the task.

    Sites: ``prevalence (K,)``, ``ability (J, 2)`` (spams, knows), ``strategy (J, K)`` (the annotations of a worker who
    does not know), ``truth (N,)``, ``annotation (A,)``.

    Args:
        annotations: who labelled what; workers are named.
        truth_prior: prior of the true labels; a prevalence with a flat Dirichlet by default.
        knows: Dirichlet concentration of knowing.
        spams: of spamming.
        habit: of each annotation of a spammer.

    Raises:
        StoryError: no worker is named, or a concentration is not positive.
    """
    n_workers, n_classes = named_workers(annotations), annotations.n_classes
    concentration = jnp.array([positive("spams", spams), positive("knows", knows)])
    habits = jnp.full(n_classes, positive("habit", habit))
    with numpyro.plate("worker", n_workers, dim=-1):
        ability = numpyro.sample("ability", dist.Dirichlet(concentration), infer={"event_dims": ["knows"]})
        strategy = numpyro.sample("strategy", dist.Dirichlet(habits), infer={"event_dims": ["annotation"]})
    spamming, knowing = ability[:, 0, None, None], ability[:, 1, None, None]
    table = knowing * jnp.eye(n_classes) + spamming * strategy[:, None, :]
    with tasks(annotations, truth_prior) as truth:
        observe(truth, Confusion(table), annotations)
