"""Derived quantities in Pyro: what a story computes from its parameters for its readers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import pyro
import torch
from torch import Tensor

from ...data import Annotations
from .ragged import sum_by
from .tensors import beside_tasks

_LEFT_OUT: ContextVar[bool] = ContextVar("left_out", default=False)


@contextmanager
def without_derived() -> Iterator[None]:
    """Leave derived quantities out of the stories that run within: nobody looks at them, and they take time."""
    token = _LEFT_OUT.set(True)
    try:
        yield
    finally:
        _LEFT_OUT.reset(token)


def derived(name: str, value: Tensor | Callable[[], Tensor], *dims: str) -> None:
    """Record ``value`` under ``name``, a deterministic site: Pyro's ``Predictive`` returns it.

    It is called outside of all plates, and engines leave it out. A fit's ``fit.derived`` has the quantities of the
    NumPyro twin, at the same parameters.

    Args:
        name: of the site.
        value: an array with as many dimensions as there are names, and those of particles before them; or a function
            that computes it, which is not called where it is left out.
        dims: names of its dimensions.
    """
    if _LEFT_OUT.get():
        return
    known = value if isinstance(value, Tensor) else value()
    pyro.deterministic(name, beside_tasks(known, len(dims)), event_dim=len(dims))


def mean_over_rows(values: Tensor, position: Tensor, size: int, count: Tensor | None) -> Tensor:
    """The mean of rows' values ``(A,)`` at each position, ``(size,)``; rows as often as they count, NaN without any."""
    weight = torch.ones_like(values) if count is None else count.expand_as(values)
    total, of = (
        sum_by(position, x.reshape(-1, x.shape[-1]).T.contiguous(), size).T.reshape(*x.shape[:-1], size)
        for x in (weight * values, weight)
    )
    return torch.where(of > 0, total / of.clamp_min(1.0), torch.nan)


def share_of_annotations(membership: Tensor, annotations: Annotations) -> Tensor:
    """Each group's share of the annotations, ``(M,)``, where workers have weights ``(J, M)`` over the groups."""
    count = membership.new_ones(len(annotations.task)) if annotations.count is None else annotations.count
    worker: Any = annotations.worker  # of a story that follows workers
    given = sum_by(worker, count[:, None], annotations.n_workers)[:, 0]
    return given @ membership / given.sum().clamp_min(1.0)
