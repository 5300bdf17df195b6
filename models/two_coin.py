r"""Two classes: a worker is right about positives with one probability, about negatives with another.

.. math::
    \rho &\sim \text{Dirichlet}(\alpha) & (2) \\
    \text{sensitivity}_j &\sim \text{Dirichlet}(\text{wrong}, \text{right}) & (J, 2) \\
    \text{specificity}_j &\sim \text{Dirichlet}(\text{right}, \text{wrong}) & (J, 2) \\
    z_i &\sim \text{Categorical}(\rho) & (N) \\
    P(y_a = l \mid z_i = 1) &= \text{sensitivity}_j[l], \quad
    P(y_a = l \mid z_i = 0) = \text{specificity}_j[l] & (A)

(Raykar et al. 2010, equations 1 and 2, with their Beta priors as Dirichlet rows of length two.) The second class of the
annotations is the positive one.
"""

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from ..data import Annotations
from .parts.concentration import positive
from .parts.emissions import Confusion
from .parts.truth import named_workers, observe, tasks, two_classes
from .parts.truth_prior import TruthPrior


def two_coin(
    annotations: Annotations, *, truth_prior: TruthPrior | None = None, right: float = 1.5, wrong: float = 1.0
) -> None:
    """Two classes: each worker has a sensitivity and a specificity.

    Sites: ``prevalence (2,)``, ``sensitivity (J, 2)`` and ``specificity (J, 2)`` (probabilities of both annotations to
    a positive and to a negative task), ``truth (N,)``, ``annotation (A,)``.

    Args:
        annotations: who labelled what, of two classes; workers are named. The second class is the positive one.
        truth_prior: prior of the true labels; a prevalence with a flat Dirichlet by default.
        right: Dirichlet concentration of right annotations, of either class.
        wrong: of wrong annotations.

    Raises:
        StoryError: there are other than two classes, no worker is named, or a concentration is not positive.
    """
    two_classes(annotations)
    prior = jnp.array([positive("wrong", wrong), positive("right", right)])
    with numpyro.plate("worker", named_workers(annotations), dim=-1):
        sensitivity = numpyro.sample("sensitivity", dist.Dirichlet(prior), infer={"event_dims": ["annotation"]})
        specificity = numpyro.sample("specificity", dist.Dirichlet(prior[::-1]), infer={"event_dims": ["annotation"]})
    with tasks(annotations, truth_prior) as truth:
        observe(truth, Confusion(jnp.stack([specificity, sensitivity], axis=1)), annotations)
