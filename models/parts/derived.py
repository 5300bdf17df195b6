"""Derived quantities: what a story computes from its parameters for its readers, such as each group's share."""

from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax import Array
from numpyro.primitives import apply_stack

from ...data import Annotations
from .kernels import row_weights
from .whole_sums import over_all

Role = Literal["group_share", "group_confusion", "membership", "switch", "clarity", "confusion", "item_score", "tie"]


def derived(name: str, value: Array, *dims: str, role: Role | None = None) -> None:
    """Record ``value`` under ``name``, a deterministic site that ``fit.derived`` shows with named dimensions.

    It is NumPyro's ``deterministic`` with the names of the dimensions beside it, and lies outside of all plates, so
    that it means the same to samplers that enumerate or vectorise. Engines never compute it.

    Args:
        name: of the site.
        value: an array with as many dimensions as there are names.
        dims: names of its dimensions. Those that crowdppl knows get their ids: ``task``, ``worker``, ``class``,
            ``annotation``; ``row`` is one row of the annotations and ``group`` one group of workers or of annotations.
        role: what the quantity is, for views that show all quantities of a role whatever the story: ``"group_share"``
            (how much of the annotations, or of the workers, a group has; (M,)), ``"group_confusion"`` (the groups'
            confusion matrices; (M, K, K)), ``"membership"`` (probability that a worker is of a group; (J, M)),
            ``"switch"`` (probability that an annotation follows what all workers have in common),
            ``"clarity"`` (how clear a task is, 0 for the hardest; (N,)), ``"confusion"`` (confusion matrices),
            ``"item_score"`` (log-odds with which compared items are better; (I,)), ``"tie"`` (the log-weight of ties
            beside the mean score of two items).
    """
    message: dict[str, Any] = {
        "type": "deterministic",
        "name": name,
        "value": value,
        "cond_indep_stack": [],
        "infer": {"event_dims": dims, "role": role},
    }
    apply_stack(message)


def share_of_annotations(membership: Array, annotations: Annotations) -> Array:
    """Each group's share of the annotations, ``(M,)``, where workers have weights ``(J, M)`` over the groups."""
    worker = jnp.asarray(annotations.worker)
    given = over_all(jax.ops.segment_sum(row_weights(annotations), worker, annotations.n_workers))
    return given @ membership / jnp.maximum(given.sum(), 1.0)
