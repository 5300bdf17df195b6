"""Derived quantities in Pyro: what a story computes from its parameters for its readers."""

from typing import Any

import pyro
from torch import Tensor

from ...data import Annotations
from .ragged import sum_by
from .tensors import beside_tasks


def derived(name: str, value: Tensor, *dims: str) -> None:
    """Record ``value`` under ``name``, a deterministic site: Pyro's ``Predictive`` returns it.

    It is called outside of all plates, and engines do not look at it. A fit's ``fit.derived`` has the quantities of the
    NumPyro twin, at the same parameters.

    Args:
        name: of the site.
        value: an array with as many dimensions as there are names.
        dims: names of its dimensions.
    """
    pyro.deterministic(name, beside_tasks(value, len(dims)), event_dim=len(dims))


def share_of_annotations(membership: Tensor, annotations: Annotations) -> Tensor:
    """Each group's share of the annotations, ``(M,)``, where workers have weights ``(J, M)`` over the groups."""
    count = membership.new_ones(len(annotations.task)) if annotations.count is None else annotations.count
    worker: Any = annotations.worker  # of a story that follows workers
    given = sum_by(worker, count[:, None], annotations.n_workers)[:, 0]
    return given @ membership / given.sum().clamp_min(1.0)
