r"""Rows gathered by position, and rows summed by position: ragged, and each the gradient of the other.

A sum by position is ``torch.nn.functional.embedding_bag``, whose bags are the rows of one position side by side. On a
CPU it is several times as fast as ``index_add``, which is also what autograd would take for the gradient of a gather.
The order that puts the rows side by side is found once for each tensor of positions, and kept as long as that lives.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag
from torch.utils.weak import WeakTensorKeyDictionary

from ...data import Annotations


class Bags(NamedTuple):
    """Rows side by side that add up."""

    rows: Tensor  # (A,) which row comes where
    first: Tensor  # (R,) where each sum's rows begin
    weight: Tensor | None = None  # (A,) of each, for one each None


_bags: Any = WeakTensorKeyDictionary()  # of a tensor of positions
_pairs: Any = WeakTensorKeyDictionary()  # of a tensor of positions, for sums over tasks and back
_cells: Any = WeakTensorKeyDictionary()  # of a tensor of annotations, with the workers


def gather(values: Tensor, position: Tensor) -> Tensor:
    """Rows of ``values (R, ...)`` at ``position (A,)``: ``(A, ...)``."""
    found: Tensor = _Gather.apply(values.reshape(len(values), -1), position)
    return found.reshape(position.shape + values.shape[1:])


def sum_by(position: Tensor, values: Tensor, size: int) -> Tensor:
    """Sums of the rows ``values (A, K)`` that have the same ``position (A,)``: ``(size, K)``."""
    found: Tensor = _Sum.apply(values, position, size)
    return found


def sum_by_task(values: Tensor, annotations: Annotations) -> Tensor:
    """Sum rows ``(A, K)`` over each task's annotations: ``(N, K)``. Rows with a count weigh that much."""
    if annotations.count is not None:
        count = annotations.count[:, None]
        values = torch.where(count > 0, values * count, torch.zeros_like(values))
    return sum_by(annotations.task, values, annotations.n_tasks)


def gathered_by_task(values: Tensor, position: Tensor, annotations: Annotations) -> Tensor:
    """Sum the rows of ``values (R, K)`` at ``position (A,)`` over each task's annotations: ``(N, K)``.

    It is :func:`sum_by_task` of :func:`gather` in one pass, in which the rows ``(A, K)`` are never made.
    """
    found: Tensor = _Bags.apply(values, *_pair(position, len(values), annotations))
    return found


def cells(worker: Tensor, annotation: Tensor, n_annotations: int) -> Tensor:
    """The position of each (worker, annotation) pair among all of them, ``(A,)``; the same tensor for the same data."""
    known = _cells.get(annotation)
    if known is None or known[0] is not worker or known[1] != n_annotations:
        known = _cells[annotation] = (worker, n_annotations, worker * n_annotations + annotation)
    found: Tensor = known[2]
    return found


def bags(position: Tensor, size: int) -> Bags:
    """Put the rows of each position side by side."""
    known: Bags | None = _bags.get(position)
    if known is None or len(known.first) != size:
        ordered, rows = torch.sort(position, stable=True)
        known = _bags[position] = Bags(rows, torch.searchsorted(ordered, torch.arange(size, device=position.device)))
    return known


def _pair(position: Tensor, size: int, annotations: Annotations) -> tuple[Bags, Bags]:
    """Sums over tasks of the values at ``position``, and sums over positions of the values of tasks."""
    task, count = annotations.task, annotations.count
    known = _pairs.get(position)
    if known is None or known[0] is not task or known[1] is not count or len(known[3].first) != size:
        into = (bags(task, annotations.n_tasks), position), (bags(position, size), task)
        weight = None if count is None else count.to(torch.get_default_dtype())
        there, back = (Bags(of[rows], first, None if weight is None else weight[rows]) for (rows, first, _), of in into)
        known = _pairs[position] = (task, count, there, back)
    return known[2], known[3]


def _bag(values: Tensor, bags: Bags) -> Tensor:
    weight = None if bags.weight is None else bags.weight.to(values.dtype)
    values = values.detach().contiguous()  # detached, or it would prepare a gradient of its own
    return embedding_bag(bags.rows, values, bags.first, mode="sum", per_sample_weights=weight)


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, position: Tensor) -> Tensor:
        ctx.position, ctx.size = position, len(values)
        return values.index_select(0, position)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        return _Sum.apply(slopes[0], ctx.position, ctx.size), None


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, position: Tensor, size: int) -> Tensor:
        ctx.position = position
        return _bag(values, bags(position, size))

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        return _Gather.apply(slopes[0], ctx.position), None, None


class _Bags(torch.autograd.Function):
    """Sums of bags; the gradient is a sum of bags too."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, there: Bags, back: Bags) -> Tensor:
        ctx.transposed = back, there
        return _bag(values, there)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        return _Bags.apply(slopes[0], *ctx.transposed), None, None
