"""The soft majority vote of annotations of tensors."""

import torch
from torch import Tensor

from ...data import Annotations
from ..parts.emissions import SMALLEST


def soft_votes(annotations: Annotations) -> Tensor:
    """Each class's share of a task's annotations, ``(N, K)``; equal shares for a task without annotations."""
    n_tasks, n_classes = annotations.n_tasks, annotations.n_classes
    cell = annotations.task * n_classes + annotations.label
    count = annotations.count
    weight = torch.ones(len(cell), device=cell.device) if count is None else count
    votes = weight.new_zeros(n_tasks * n_classes).index_add(0, cell, weight).reshape(n_tasks, n_classes)
    total = votes.sum(-1, keepdim=True)
    return torch.where(total > 0, votes / total.clamp_min(SMALLEST), torch.full_like(votes, 1 / n_classes))
