r"""Scores of items as the prior of comparisons: Bradley and Terry (1952) with the ties of Davidson (1970)."""

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
from .story_error import StoryError
from .truth_prior import ClassPrior

SPREAD = 0.5
"""Standard deviation of the logarithm of a scale that is learned, around a scale of 1."""

USUAL_TIE, TIE_SPREAD = -1.0, 1.0
"""Mean and standard deviation of the log-weight of ties: between equal items 16 % are ties at the mean."""


@promised
@dataclass(frozen=True)
class BradleyTerry(ClassPrior):
    r"""The better of two items by their scores, which sum to zero; ties are the more frequent, the nearer the scores.

    .. math::
        u_m &\sim \text{Normal}(0, 1), \quad s_m = \tau \, (u_m - \bar u) \\
        P(\text{left}) &\propto e^{s_l}, \quad P(\text{right}) \propto e^{s_r}, \quad
        P(\text{tie}) \propto e^{\nu + (s_l + s_r) / 2}

    of items l, r, with :math:`\log \tau \sim \text{Normal}(0, \tfrac12)` and :math:`\nu \sim \text{Normal}(-1, 1)`.
    Without ties it is Bradley and Terry's (1952) model, with them Davidson's (1970). It is the truth prior of
    comparisons (:meth:`.Annotations.from_comparisons`) where none is given: a worker's confusion matrix then says what
    he makes of the better item, and the scores are of items.

    Sites: ``item_effect (I,)``, ``item_scale`` where it is learned, ``tie`` where ties are a class; derived: ``score
    (I,)``, in log-odds.

    Args:
        scale: :math:`\tau`, the standard deviation of the scores, in log-odds; None to learn it.
    """

    scale: float | None = None

    kind: ClassVar[str] = "bradley_terry"
    by_task: ClassVar[bool] = True
    newton: ClassVar[bool] = True

    def __call__(self, annotations: Annotations) -> Array:
        """Sample the items' scores and return the log-probabilities of left, right and, where it is one, tie.

        Returns:
            ``(N, K)``.

        Raises:
            StoryError: the annotations are no comparisons, or the scale is not positive.
        """
        if annotations.sides is None:
            raise StoryError(
                "BradleyTerry() is a prior of comparisons, and the annotations do not say which items they compare; "
                "make them by cp.Annotations.from_comparisons"
            )
        score = jnp.asarray(self._scores(len(annotations.items)))
        derived("score", score, "item", role="item_score")
        of_sides = score[jnp.asarray(annotations.sides)]
        if annotations.n_classes == 2:
            return jax.nn.log_softmax(of_sides, axis=-1)
        tie = numpyro.sample("tie", dist.Normal(USUAL_TIE, TIE_SPREAD), infer={"role": "tie"})
        of_tie = tie + of_sides.mean(-1, keepdims=True)
        return jax.nn.log_softmax(jnp.concatenate([of_sides, of_tie], axis=-1), axis=-1)

    def _scores(self, n_items: int) -> Array:
        """The items' scores ``(I,)``, whose spread and effects are sampled."""
        if self.scale is None:
            scale = numpyro.sample("item_scale", dist.LogNormal(0.0, SPREAD))
        else:
            scale = positive("scale", self.scale, "standard deviation of scores")
        effect = numpyro.sample(
            "item_effect",
            dist.Normal(0.0, 1.0).expand([n_items]).to_event(1),
            infer={"event_dims": ["item"], "start": lambda key: jnp.zeros(n_items)},
        )
        return scale * (effect - effect.mean())
