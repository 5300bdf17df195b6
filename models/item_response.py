r"""Two classes: workers have a sensitivity and a specificity in logits, tasks a difficulty (Han et al. 2024).

.. math::
    \rho &\sim \text{Dirichlet}(\alpha) & (2) \\
    \text{sensitivity}_j &\sim \text{Normal}(1, 2), \quad \text{specificity}_j \sim \text{Normal}(2, 2) & (J) \\
    d_i &\sim \text{Normal}(0, 1) & (N) \\
    \delta_i &\sim \text{LogNormal}(0, 1/4) & (N) \\
    g_i &\sim \text{Dirichlet}(2, 2) & (N, 2) \\
    z_i &\sim \text{Categorical}(\rho) & (N) \\
    P(y_a = z_i) &= g_i[1] + g_i[0] \, \sigma(\delta_i (a_{j z_i} - d_i)),
    \quad a_{j1} = \text{sensitivity}_j, \ a_{j0} = \text{specificity}_j & (A)

(Han, Adıgüzel & Carpenter 2024, "Crowdsourcing with difficulty", with the priors of their full model.
Abilities and difficulties have a common origin because the difficulties are centred at zero.)
"""

import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from ..data import Annotations
from .parts.correct import Correct
from .parts.truth import named_workers, observe, tasks, two_classes
from .parts.truth_prior import TruthPrior


def item_response(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    difficulty: bool = True,
    discrimination: bool = False,
    guessing: bool = False,
) -> None:
    """Two classes: each worker has a sensitivity and a specificity in logits, each task a difficulty.

    Sites: ``prevalence (2,)``, ``sensitivity (J,)`` and ``specificity (J,)`` (real, logits of being right about a
    positive and a negative task of difficulty 0), ``difficulty (N,)`` (real), ``discrimination (N,)`` (positive),
    ``guess (N, 2)`` (annotated by ability, right by luck), ``truth (N,)``, ``annotation (A,)``.

    The paper also keeps each sensitivity above minus the specificity, so that no worker is an adversary; here only the
    priors favour that.

    Args:
        annotations: who labelled what, of two classes; workers are named. The second class is the positive one.
        truth_prior: prior of the true labels; a prevalence with a flat Dirichlet by default.
        difficulty: whether tasks differ in difficulty.
        discrimination: whether they differ in how sharply they separate able workers from others.
        guessing: whether an annotation may be right by luck, with a probability by task.

    Raises:
        StoryError: there are other than two classes, or no worker is named.
    """
    two_classes(annotations)
    with numpyro.plate("worker", named_workers(annotations), dim=-1):
        sensitivity = numpyro.sample("sensitivity", dist.Normal(1.0, 2.0))
        specificity = numpyro.sample("specificity", dist.Normal(2.0, 2.0))
    ability = jnp.stack([specificity, sensitivity], axis=-1)
    with tasks(annotations, truth_prior) as truth:
        scale = numpyro.sample("discrimination", dist.LogNormal(0.0, 0.25)) if discrimination else jnp.ones(())
        offset = -scale * numpyro.sample("difficulty", dist.Normal(0.0, 1.0)) if difficulty else 0.0
        guess = None
        if guessing:
            luck = dist.Dirichlet(jnp.array([2.0, 2.0]))
            guess = numpyro.sample("guess", luck, infer={"event_dims": ["by_luck"]})
        observe(truth, Correct(ability, 2, scale, offset, guess), annotations)
