r"""Every worker's confusion matrix is near the crowd's, which falls with the distance between ordered classes.

.. math::
    \rho &\sim \text{Dirichlet}(\alpha) & (K) \\
    \log \lambda_k &\sim \text{Normal}(\log \lambda, 1/2), \quad m_k \sim \text{Normal}(k, \tau) & (K) \\
    c_{kl} &\propto \exp\left(-\lambda_k \sqrt{(l - m_k)^2 + 1/4}\right) & (K, K) \\
    \beta_{jk} &\sim \text{Dirichlet}(1 / K + s \, c_k) & (J, K, K) \\
    z_i &\sim \text{Categorical}(\rho) & (N) \\
    y_a &\sim \text{Categorical}(\beta_{j_a z_{i_a}}) & (A)

It is Dawid and Skene's story (1979) with another prior: the rows of a class are expected around the place :math:`m_k`
where the crowd puts it, and fall from there by a factor of :math:`e^{-\lambda_k}` a step. Both are learned. Where the
crowd's errors do not fall with distance, :math:`\lambda_k` tends to 0 and the rows' prior is the same for all
annotations, as it is for a class beside the order; and a worker's annotations outweigh the crowd by their number.

Where questions have classes of their own, k and l are the places of the classes in the order of the questions that have
them (:mod:`.order_of_questions`), and :math:`c_{kl}` is 0 of two classes that no question has both of.
"""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist

from ..data import Annotations
from .parts.concentration import positive
from .parts.derived import derived
from .parts.emissions import Confusion
from .parts.order_of_questions import order_of_classes
from .parts.own_classes import NEVER
from .parts.simulated_inputs import in_order, simulated_with
from .parts.truth import named_workers, observe, tasks
from .parts.truth_prior import TruthPrior

SPREAD = 0.5  # standard deviation of the logarithms of how fast rows fall


@simulated_with(in_order, n_classes=5)
def ordinal_dawid_skene(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    strength: float = 5.0,
    fall: float = 1.0,
    shift: float = 1.0,
) -> None:
    r"""Every worker's confusion matrix is near the crowd's, which falls with the distance between ordered classes.

    Sites: ``prevalence (K,)``, ``fall (K,)`` (:math:`\lambda`), ``place (K,)`` (:math:`m`, in classes from 0),
    ``confusion (J, K, K)``, ``truth (N,)``, ``annotation (A,)``. Derived: ``common_confusion (K, K)`` (:math:`c`).

    Args:
        annotations: who labelled what, in classes from the least to the greatest; workers are named.
        truth_prior: prior of the true labels; of ordered classes a :class:`.Prevalence` by default.
        strength: :math:`s`, how many annotations to tasks of each class the crowd's confusion matrix counts for in
            each worker's, beside one annotation of any kind.
        fall: :math:`\lambda`, the median of how fast a row falls, in logarithms a step.
        shift: :math:`\tau`, how far from itself the crowd may put a class, in classes.

    Raises:
        StoryError: no worker is named, more than two classes have no order, those of two questions have two orders, or
            ``strength``, ``fall`` or ``shift`` is not positive.
    """
    n_workers, n_classes = named_workers(annotations), annotations.n_classes
    order = order_of_classes(annotations)
    beside = order.beside
    usual, apart = jnp.log(positive("fall", fall)), positive("shift", shift)
    with numpyro.plate("class", n_classes, dim=-1):
        rate = numpyro.sample("fall", dist.LogNormal(usual, SPREAD))
        place = numpyro.sample("place", dist.Normal(order.place, apart))
    falling = -rate[:, None] * jnp.hypot(order.level - place[:, None], 0.5)
    common = jax.nn.softmax(falling if beside is None else jnp.where(beside, falling, NEVER), axis=-1)
    concentration = 1 / annotations.n_levels + positive("strength", strength) * common
    with numpyro.plate("worker", n_workers, dim=-2), numpyro.plate("class", n_classes, dim=-1):
        confusion = numpyro.sample(
            "confusion", dist.Dirichlet(concentration), infer={"event_dims": ["annotation"], "role": "confusion"}
        )
    with tasks(annotations, truth_prior) as truth:
        observe(truth, Confusion(confusion), annotations)
    derived("common_confusion", common, "class", "annotation", role="confusion")
