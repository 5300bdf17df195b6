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
from .contract import StoryError, promised
from .derived import derived
from .offsets import sample_offsets
from .truth import needed_features
from .truth_prior import ClassPrior

USUAL_SCALE = 1.5
r"""The scale of the half-normal prior of a scale that is learned, in log-odds.

Its density falls so fast that a scale does not run away where the comparisons contradict no order, whose likelihood
rises with it for ever. Of .5, 1 and 1.5, and of a log-normal with the median 1, it has the best log-score of who beats
whom, in the mean over simulated scores of spread .5, 1.5, 3 and 30 with 60 and 240 comparisons: -.419; the log-normal
-.421, 1 -.425, .5 -.444.
"""

USUAL_SLOPE = 1.0
"""Standard deviation of what a standard deviation of an item's feature adds to its score, unless given."""

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

    of items l, r, with :math:`\tau \sim \text{HalfNormal}(1.5)` and :math:`\nu \sim \text{Normal}(-1, 1)`. Without ties
    it is Bradley and Terry's (1952) model, with them Davidson's (1970). It is the truth prior of comparisons
    (:meth:`.Annotations.from_comparisons`) where none is given: a worker's confusion matrix then says what he makes of
    the better item, and the scores are of items.

    Where items have features (``item_features=`` of :meth:`.Annotations.from_comparisons`), scores lie around what
    follows from these, so that an item that few compared, or none, has one too. With `by_prompt` an item may be better
    on some tasks than on others, by the tasks' features :math:`x_i`, such as those of a prompt:

    .. math::
        s_m &= \tau \, (u_m - \bar u) + \sum_d \beta_d \, \frac{x_{md} - \bar x_d}{\text{sd}(x_d)}, \quad
        \beta_d \sim \text{Normal}(0, b^2) \\
        s_{mi} &= s_m + \sum_p \gamma_{mp} x_{ip}, \quad
        \gamma_{mp} = g \, (v_{mp} - \bar v_p), \quad v_{mp} \sim \text{Normal}(0, 1)

    Tasks' features are taken as they are: :math:`s_m` is the score where all are zero, so they are best centred, and
    scaled to about one.

    Sites: ``item_effect (I,)``, ``item_scale`` where it is learned, ``item_slope (D,)`` (:math:`\beta`) of features
    that differ in a standard deviation each, ``prompt_effect (I, P)`` (:math:`v`), ``tie`` where ties are a class;
    derived: ``score (I,)``, in log-odds, and ``prompt_slope (I, P)`` (:math:`\gamma`).

    Args:
        scale: :math:`\tau`, the standard deviation of the scores, in log-odds, around what follows from features;
            None to learn it.
        slope: :math:`b`, the standard deviation of an item's score along each of its features, in log-odds; 1 by
            default.
        by_prompt: :math:`g`, the standard deviation of what each feature of a task changes in an item's score, in
            log-odds; None for scores that are the same on all tasks.
    """

    scale: float | None = None
    slope: float | None = None
    by_prompt: float | None = None

    kind: ClassVar[str] = "bradley_terry"
    by_task: ClassVar[bool] = True
    newton: ClassVar[bool] = True

    def __call__(self, annotations: Annotations) -> Array:
        """Sample the items' scores and return the log-probabilities of left, right and, where it is one, tie.

        Returns:
            ``(N, K)``.

        Raises:
            StoryError: the annotations are no comparisons, or answer several questions, a standard deviation is not
                positive, or what it is of has no features.
        """
        if annotations.sides is None:
            raise StoryError(
                "BradleyTerry() is a prior of comparisons, and the annotations do not say which items they compare; "
                "make them by cp.Annotations.from_comparisons"
            )
        if len(annotations.questions):
            names = ", ".join(map(repr, annotations.questions))
            raise StoryError(
                f"the comparisons answer {len(annotations.questions)} questions, {names}, by which an item has other "
                f"scores: fit one of them by annotations.of_question({annotations.questions[0]!r}); or the labels of "
                "all without scores of items by truth_prior=cp.Prevalence()"
            )
        score = jnp.asarray(self._scores(len(annotations.items)) + self._by_features(annotations))
        derived("score", score, "item", role="item_score")
        sides = jnp.asarray(annotations.sides)
        of_sides = score[sides]
        if self.by_prompt is not None:
            slope, x = self._prompt_slope(self.by_prompt, annotations)
            derived("prompt_slope", slope, "item", "feature")
            of_sides = of_sides + jnp.einsum("nsp,np->ns", slope[sides], x)
        if annotations.n_classes == 2:
            return jax.nn.log_softmax(of_sides, axis=-1)
        tie = numpyro.sample("tie", dist.Normal(USUAL_TIE, TIE_SPREAD), infer={"role": "tie"})
        of_tie = tie + of_sides.mean(-1, keepdims=True)
        return jax.nn.log_softmax(jnp.concatenate([of_sides, of_tie], axis=-1), axis=-1)

    def _scores(self, n_items: int) -> Array:
        """The items' scores ``(I,)``, whose spread and effects are sampled."""
        if self.scale is None:
            scale = numpyro.sample("item_scale", dist.HalfNormal(USUAL_SCALE))
        else:
            scale = positive("scale", self.scale)
        effect = sample_offsets("item_effect", (n_items,), 1.0, ["item"])
        return scale * (effect - effect.mean())

    def _by_features(self, annotations: Annotations) -> Array | float:
        """The part of the scores that follows from the items' features, ``(I,)``; 0 without any."""
        if annotations.item_features is None:
            if self.slope is not None:
                raise StoryError(
                    f"BradleyTerry(slope={self.slope}) is of features of the items, and the annotations have none; "
                    "give cp.Annotations.from_comparisons(table, item_features=…)"
                )
            return 0.0
        slope = positive("slope", USUAL_SLOPE if self.slope is None else self.slope)
        x = jnp.asarray(annotations.item_features, dtype=float)
        differs = x.max(0) > x.min(0)
        units = jnp.where(differs, (x - x.mean(0)) / jnp.where(differs, x.std(0), 1.0), 0.0)
        return units @ sample_offsets("item_slope", x.shape[1:], slope, ["item_feature"])

    def _prompt_slope(self, by_prompt: float, annotations: Annotations) -> tuple[Array, Array]:
        """The change of each item's score by each feature of a task, ``(I, P)``, and these features, ``(N, P)``."""
        spread = positive("by_prompt", by_prompt)
        x = jnp.asarray(needed_features(annotations, f"BradleyTerry(by_prompt={by_prompt})"), dtype=float)
        if x.ndim != 2:
            raise StoryError(f"BradleyTerry(by_prompt=…): features of tasks have shape {x.shape[1:]}; give vectors")
        sizes = (len(annotations.items), x.shape[1])
        effect = sample_offsets("prompt_effect", sizes, 1.0, ["item", "feature"])
        return spread * (effect - effect.mean(0)), x
