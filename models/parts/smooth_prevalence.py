"""A prevalence of ordered classes that rises and falls smoothly from one class to the next."""

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

USUAL, SPREAD = 1.6, 0.5
"""Median of a scale that is learned, and the standard deviation of its logarithm."""

TREND = 4.0
"""Standard deviation of the mean slope: of the log-share of the last class less that of the first."""


@promised
@dataclass(frozen=True)
class SmoothPrevalence(ClassPrior):
    r"""Shares of ordered classes whose logarithms are a smooth curve: its slope is a random walk.

    .. math::
        u_m &\sim \text{Normal}(0, 1) & (K - 1) \\
        c_m &= \sigma \, (u_2 + \dots + u_m) / \sqrt{K - 1}, \quad c_1 = 0 & (K - 1) \\
        s_m &= (\tau u_1 + c_m - \bar c) / (K - 1) & (K - 1) \\
        \rho_k &\propto \exp\left(s_1 + \dots + s_{k-1}\right) & (K)

    A middle class that everybody overuses then does not take the tasks of its neighbours: that its share differs
    from theirs costs, the more the smaller :math:`\sigma` is, and that workers put its neighbours into it does not.
    Shares that fall or rise from one end to the other cost hardly anything, by :math:`\tau` = :data:`TREND`. With
    thousands of tasks these decide whatever the scale is. Where several questions are asked about tasks, each has
    shares of its own.

    It is the integrated Wiener process by which smoothing splines are Bayesian estimates (Wahba 1978), at K places of
    one line from its first class to its last, so that a scale means the same for any number of classes.

    Sites: ``prevalence_step (K - 1,)`` (:math:`u`), or ``(Q, K - 1)``, and ``prevalence_scale`` where it is learned;
    derived: ``prevalence (K,)``, or ``(Q, K)``.

    Args:
        scale: :math:`\sigma`, the standard deviation of the change of the log-shares' slope from one end of the classes
            to the other, of a line of length one; None to learn it, with
            :math:`\log \sigma \sim \text{Normal}(\log 1.6, \tfrac12)`.
    """

    scale: float | None = USUAL

    kind: ClassVar[str] = "smooth_prevalence"
    by_task: ClassVar[bool] = False

    def __call__(self, annotations: Annotations) -> Array:
        """Sample the slopes and return the log-shares, ``(K,)``; those of each task's question, ``(N, K)``.

        Raises:
            StoryError: the scale is not positive, or there are more than two classes, without an order.
        """
        n_steps = ordered_classes(annotations, "truth_prior=cp.SmoothPrevalence()") - 1
        if self.scale is None:
            scale = numpyro.sample("prevalence_scale", dist.LogNormal(jnp.log(USUAL), SPREAD))
        else:
            scale = positive("scale", self.scale)
        asked = annotations.question is not None
        with numpyro.plate("question", len(annotations.questions), dim=-1) if asked else nullcontext():
            steps = dist.Normal(0.0, 1.0).expand([n_steps]).to_event(1)
            step = numpyro.sample("prevalence_step", steps, infer={"event_dims": ["gap"]})
        change = scale / jnp.sqrt(n_steps) * jnp.cumsum(step.at[..., 0].set(0.0), axis=-1)
        slope = TREND * step[..., :1] + change - change.mean(-1, keepdims=True)
        walk = jnp.cumsum(slope / n_steps, axis=-1)
        log_shares = jax.nn.log_softmax(jnp.concatenate([jnp.zeros_like(walk[..., :1]), walk], axis=-1), axis=-1)
        derived("prevalence", jnp.exp(log_shares), *["question"] * asked, "class")
        return log_shares[annotations.question] if asked else log_shares
