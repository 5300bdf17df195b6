"""Annotations as PyTorch sees them: the one place where NumPy arrays become tensors."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...data import Annotations

ARRAYS = ("task", "worker", "label", "count", "gold", "features", "worker_features", "evidence", "prior")


def tensor(values: Any) -> Tensor:
    """A copy of an array as a tensor: whole numbers as int64, others in torch's default precision."""
    array = np.asarray(values)
    whole = np.issubdtype(array.dtype, np.integer)
    return torch.tensor(array, dtype=torch.int64 if whole else torch.get_default_dtype())


def tensors(annotations: Annotations, device: torch.device | str | None = None) -> Annotations:
    """The annotations with tensors for arrays, on ``device``."""
    found = {name: value for name in ARRAYS if (value := getattr(annotations, name)) is not None}
    return annotations.replace(**{name: tensor(value).to(device) for name, value in found.items()})


def moved(annotations: Annotations, device: torch.device | str | None) -> Annotations:
    """Annotations of tensors, on another device."""
    found = {name: value for name in ARRAYS if (value := getattr(annotations, name)) is not None}
    return annotations.replace(**{name: value.to(device) for name, value in found.items()})
