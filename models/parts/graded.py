"""The emission of graded responses: a worker cuts the line on which the true classes lie into levels."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...data import Annotations
from .emissions import Confusion, OfTables, misshaped


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Graded(OfTables):
    r"""Cumulative logits: L ordered levels of K true classes that have places on a line, where K and L may differ.

    .. math::
        P(y \ge l \mid z = k, j) = \sigma(a_j (x_k - c_{jl})), \qquad l = 1, \dots, L - 1

    Worker j perceives the class at :math:`x_k` with logistic noise, the less the larger :math:`a_j` is, and gives the
    level between whose cuts it falls. Cuts that are higher by the same number are a severe worker's, cuts that lie
    close a worker's who uses the ends of the scale. Only :math:`a_j (x_k - c_{jl})` matters, so that a story fixes the
    places.

    (The graded response model, Samejima 1969, with a rater's own cuts, Uebersax & Grove 1993, and severity, Linacre
    1989, whose many-facet Rasch model has logits of adjacent levels instead.)

    Args:
        place: :math:`x`, of the classes, rising, ``(K,)``.
        discrimination: :math:`a`, positive, ``(J,)``.
        cut: :math:`c`, rising along the levels, ``(J, L - 1)``.
    """

    place: Array
    discrimination: Array
    cut: Array

    def check(self, annotations: Annotations) -> None:
        """A place of every class, a discrimination and cuts of every worker."""
        n_workers = annotations.n_workers
        for name, needed in (("place", (annotations.n_classes,)), ("discrimination", (n_workers,))):
            if jnp.shape(getattr(self, name)) != needed:
                raise misshaped(name, self, annotations, f"{needed} is needed")
        if jnp.ndim(self.cut) != 2 or jnp.shape(self.cut)[0] != n_workers:
            raise misshaped("cut", self, annotations, f"({n_workers}, levels - 1) is needed")

    @property
    def table(self) -> Array:  # type: ignore[override]  # which follows from the rest
        r"""The workers' confusion matrices, ``(J, K, L)``.

        The probability between two cuts is :math:`\sigma(u) \, \sigma(-v) \, (1 - e^{v - u})` of the logits
        :math:`u > v` of reaching the lower and the upper one, which keeps its digits where both are far away.
        """
        logit = self.discrimination[:, None, None] * (self.place[:, None] - self.cut[:, None])
        inner = jax.nn.sigmoid(logit[..., :-1]) * jax.nn.sigmoid(-logit[..., 1:])
        inner = inner * -jnp.expm1(logit[..., 1:] - logit[..., :-1])
        ends = jax.nn.sigmoid(-logit[..., :1]), jax.nn.sigmoid(logit[..., -1:])
        return jnp.concatenate([ends[0], inner, ends[1]], axis=-1)


def on_lines(each: Sequence[Graded], lines: Sequence[np.ndarray]) -> Graded | Confusion:
    """Return the emission of classes on several lines: an annotation is on the line of the true class.

    Args:
        each: the emission on each line.
        lines: the classes of each line in their order, as class indices; together all K.
    """
    n_classes = sum(map(len, lines))
    if len(each) == 1 and (lines[0] == np.arange(n_classes)).all():
        return each[0]
    table = jnp.zeros((len(each[0].discrimination), n_classes, n_classes))
    for of_line, classes in zip(each, lines, strict=True):
        table = table.at[:, classes[:, None], classes].set(of_line.table)
    return Confusion(table)


def places(step: Array) -> Array:
    """Return the places of K classes on a line, the first at 0, ``(K,)``.

    Args:
        step: logarithms of the distances of neighbours, ``(K - 1,)``.
    """
    return jnp.concatenate([jnp.zeros_like(step[:1]), jnp.cumsum(jnp.exp(step))])


def even_cuts(place: Array, n_levels: int) -> Array:
    """Return cuts that are as far apart as the classes, ``(L - 1,)``: in the middle between neighbours where L is K.

    Args:
        place: of the classes, rising, ``(K,)``; beyond the first and the last the line goes on as it is there.
        n_levels: L.
    """
    n_classes = len(place)
    cut = np.arange(1, n_levels) * n_classes / n_levels - 0.5  # in classes from 0
    below = np.clip(np.floor(cut), 0, n_classes - 2).astype(int)
    return place[below] + (cut - below) * (place[below + 1] - place[below])


def cuts_around(usual: Array, change: Array) -> Array:
    """Return cuts between L levels, which rise whatever the change, ``(..., L - 1)``.

    Args:
        usual: the cuts that they are at no change, rising, ``(L - 1,)``.
        change: of the cuts' mean, and of the logarithms of the widths of the L - 2 inner levels, ``(..., L - 1)``.
    """
    above_first = jnp.cumsum((usual[1:] - usual[:-1]) * jnp.exp(change[..., 1:]), axis=-1)
    cut = jnp.concatenate([jnp.zeros_like(change[..., :1]), above_first], axis=-1)
    return cut + (usual.mean() + change[..., :1] - cut.mean(-1, keepdims=True))
