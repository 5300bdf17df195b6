r"""A prevalence of ordered classes that changes little from one class to the next."""

from contextlib import nullcontext
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax import Array

from ...data import Annotations
from .concentration import positive
from .contract import promised
from .derived import derived
from .truth import ordered_classes
from .truth_prior import ClassPrior

USUAL, SPREAD = 0.5, 0.5
"""Median of a scale that is learned, and the standard deviation of its logarithm."""


@promised
@dataclass(frozen=True)
class SmoothPrevalence(ClassPrior):
    r"""Shares of ordered classes whose logarithms are a random walk, so that neighbours have similar ones.

    .. math::
        u_k \sim \text{Normal}(0, 1), \quad
        \rho_k \propto \exp\left(\sigma \sum_{m < k} u_m\right)

    A middle class that everybody overuses then does not take the tasks of its neighbours: that its share is far above
    theirs costs, the more the smaller :math:`\sigma` is, and that workers put its neighbours into it does not. With
    thousands of tasks these decide whatever the scale is. Where several questions are asked about tasks, each has
    shares of its own.

    Sites: ``prevalence_step (K - 1,)`` (:math:`u`), or ``(Q, K - 1)``, and ``prevalence_scale`` where it is learned;
    derived: ``prevalence (K,)``, or ``(Q, K)``.

    Args:
        scale: :math:`\sigma`, the standard deviation of the difference of neighbours' log-shares; None to learn it,
            with :math:`\log \sigma \sim \text{Normal}(\log 0.5, \tfrac12)`.
    """

    scale: float | None = USUAL

    kind: ClassVar[str] = "smooth_prevalence"
    by_task: ClassVar[bool] = False

    def __call__(self, annotations: Annotations) -> Array:
        """Sample the walk and return the log-shares, ``(K,)``; those of each task's question, ``(N, K)``.

        Raises:
            StoryError: the scale is not positive, or there are more than two classes, without an order.
        """
        n_classes = ordered_classes(annotations, "truth_prior=cp.SmoothPrevalence()")
        if self.scale is None:
            scale = numpyro.sample("prevalence_scale", dist.LogNormal(jnp.log(USUAL), SPREAD))
        else:
            scale = positive("scale", self.scale)
        asked = annotations.question is not None
        with numpyro.plate("question", len(annotations.questions), dim=-1) if asked else nullcontext():
            steps = dist.Normal(0.0, 1.0).expand([n_classes - 1]).to_event(1)
            step = numpyro.sample("prevalence_step", steps, infer={"event_dims": ["gap"]})
        walk = jnp.cumsum(scale * step, axis=-1)
        log_shares = jax.nn.log_softmax(jnp.concatenate([jnp.zeros_like(walk[..., :1]), walk], axis=-1), axis=-1)
        derived("prevalence", jnp.exp(log_shares), *["question"] * asked, "class")
        return log_shares[annotations.question] if asked else log_shares
