r"""Every worker's confusion matrix departs from the crowd's, as far as the crowd's members differ (Paun et al. 2018).

.. math::
    \rho &\sim \text{Dirichlet}(\alpha) & (K) \\
    \zeta_{kl} &\sim \text{Normal}(\mu [k = l], 1) & (K, K) \\
    \Omega_{kl} &\sim \text{HalfNormal}(1) & (K, K) \\
    \epsilon_{jkl} &\sim \text{Normal}(0, 1) & (J, K, K) \\
    \beta_{jk} &= \text{softmax}(\zeta_k + \Omega_k \odot \epsilon_{jk}) & (J, K, K) \\
    z_i &\sim \text{Categorical}(\rho) & (N) \\
    y_a &\sim \text{Categorical}(\beta_{j_a z_{i_a}}) & (A)

(Theirs, not centred, with the crowd's right annotations expected to be the more frequent ones.) Rows that are
Dirichlet around the crowd's with an unknown strength were the alternative: their joint density has no mode, it grows
without end as the strength does and the workers become alike, so EM would end there and NUTS begin there.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from ..data import Annotations
from .parts.concentration import finite, positive
from .parts.derived import derived
from .parts.emissions import Confusion
from .parts.own_classes import beside
from .parts.truth import named_workers, observe, tasks
from .parts.truth_prior import TruthPrior


def hierarchical_dawid_skene(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    diagonal: float | None = None,
    spread: float = 1.0,
) -> None:
    r"""Every worker's confusion matrix departs from the crowd's, as far as the crowd's members differ.

    Sites: ``prevalence (K,)``, ``common (K, K)`` (the crowd's logits :math:`\zeta`), ``spread (K, K)``
    (:math:`\Omega`), ``individual (J, K, K)`` (:math:`\epsilon`), ``truth (N,)``, ``annotation (A,)``. Derived:
    ``confusion (J, K, K)`` and ``common_confusion (K, K)``.

    Args:
        annotations: who labelled what; workers are named.
        truth_prior: prior of the true labels; a prevalence with a flat Dirichlet by default.
        diagonal: :math:`\mu`, mean of the logits of right annotations; those of wrong ones have the mean 0.
            :math:`\log(K + 1)` by default, which expects more than half of the annotations to be right, whatever the K;
            0 in the paper, which expects nothing, so that classes are known by where a fit starts alone.
        spread: scale of the half-normal prior of :math:`\Omega`.

    Raises:
        StoryError: no worker is named, or ``diagonal`` is no number, or ``spread`` is not positive.
    """
    n_workers, n_classes = named_workers(annotations), annotations.n_classes
    right = np.log(beside(annotations) + 1) if diagonal is None else finite("diagonal", diagonal)
    width = positive("spread", spread)
    with numpyro.plate("class", n_classes, dim=-1):
        logits = dist.Normal(right * jnp.eye(n_classes), 1.0).to_event(1)
        common = numpyro.sample("common", logits, infer={"event_dims": ["annotation"]})
        scales = dist.HalfNormal(width).expand([n_classes]).to_event(1)
        scale = numpyro.sample("spread", scales, infer={"event_dims": ["annotation"]})
    with numpyro.plate("worker", n_workers, dim=-1):
        standard = dist.Normal().expand([n_classes, n_classes]).to_event(2)
        individual = numpyro.sample("individual", standard, infer={"event_dims": ["class", "annotation"]})
    confusion = jax.nn.softmax(common + scale * individual, axis=-1)
    with tasks(annotations, truth_prior) as truth:
        observe(truth, Confusion(confusion), annotations)
    derived("confusion", confusion, "worker", "class", "annotation", role="confusion")
    derived("common_confusion", jax.nn.softmax(common, axis=-1), "class", "annotation", role="confusion")
