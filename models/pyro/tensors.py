"""Annotations of tensors: made of NumPy arrays, moved between devices, and counted as a majority vote."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...data import Annotations
from ..parts.emissions import SMALLEST

ARRAYS = ("task", "worker", "label", "count", "gold", "features", "worker_features", "evidence", "prior")


def tensor(values: Any) -> Tensor:
    """A copy of an array as a tensor: whole numbers as int64, others in torch's default precision."""
    array = np.asarray(values)
    whole = np.issubdtype(array.dtype, np.integer)
    return torch.tensor(array, dtype=torch.int64 if whole else torch.get_default_dtype())


def beside_tasks(value: Tensor, rank: int) -> Tensor:
    """A value of ``rank`` dimensions, two plates among them; what it has before them as dimensions left of the tasks'.

    Particles of ``vectorize_particles=True`` stand left of the two dimensions of a story's plates, and of annotations
    one of these is the tasks'.
    """
    return value.unsqueeze(-rank - 1) if value.ndim > rank else value


def outside_plates(value: Tensor, rank: int) -> Tensor:
    """A value of ``rank`` dimensions outside of plates, with what it has before them beside that of a value in one.

    Of vectorised particles it has a dimension of size one for each of a story's two plates, of which a value in one
    plate has the first alone.
    """
    return value.squeeze(-rank - 1) if value.ndim > rank else value


def tensors(annotations: Annotations, device: torch.device | str | None = None) -> Annotations:
    """The annotations with tensors for arrays, on ``device``."""
    found = {name: value for name in ARRAYS if (value := getattr(annotations, name)) is not None}
    return annotations.replace(**{name: tensor(value).to(device) for name, value in found.items()})


def moved(annotations: Annotations, device: torch.device | str | None) -> Annotations:
    """Annotations of tensors, on another device."""
    found = {name: value for name in ARRAYS if (value := getattr(annotations, name)) is not None}
    return annotations.replace(**{name: value.to(device) for name, value in found.items()})


def soft_votes(annotations: Annotations) -> Tensor:
    """Each class's share of a task's annotations, ``(N, K)``; equal shares for a task without annotations."""
    n_tasks, n_classes = annotations.n_tasks, annotations.n_classes
    cell = annotations.task * n_classes + annotations.label
    count = annotations.count
    weight = torch.ones(len(cell), device=cell.device) if count is None else count
    votes = weight.new_zeros(n_tasks * n_classes).index_add(0, cell, weight).reshape(n_tasks, n_classes)
    total = votes.sum(-1, keepdim=True)
    return torch.where(total > 0, votes / total.clamp_min(SMALLEST), torch.full_like(votes, 1 / n_classes))
