"""Confusion matrices from features of worker and task: :mod:`crowdppl.models.confusion_from_features` in Pyro."""

import math
from typing import Any, Literal

import pyro
import pyro.distributions as dist
import torch
from pyro.distributions import TorchDistribution
from torch import Tensor

from ...data import Annotations
from ...data.errors import check_name
from ..confusion_from_features import DEVIATION, checked_by_task, checked_sizes, diagonal_log_odds
from ..parts.concentration import positive
from ..parts.truth import named_workers
from .confusion_logits import AddedLogits, NetworkLogits, through_hidden
from .derived import derived
from .emissions import Confusion, Emission, PerAnnotation
from .tensors import outside_plates
from .truth import TruthPrior, by_classifier, differs_by_task, observe, tasks
from .twins import takes_arrays


@takes_arrays
def confusion_from_features(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    truth: Literal["shared", "answer"] = "shared",
    by_task: bool | None = None,
    hidden: int | None = None,
    embedding: int | None = None,
    accuracy: float = 0.8,
    spread: float = 1.0,
) -> None:
    """Confusion matrices come from the features of the worker and of the task.

    Sites, hyperparameters and errors are those of :func:`crowdppl.models.confusion_from_features`.
    """
    named_workers(annotations)
    check_name("truth", truth, ("shared", "answer"))
    by_task = checked_by_task(annotations, by_task, differs_by_task(truth_prior, annotations))
    sizes = checked_sizes(hidden, embedding)
    width = positive("spread", spread, DEVIATION)
    log_probs: Any = truth_prior
    if truth == "answer":
        log_probs = by_classifier("confusion_from_features(truth='answer')", annotations, truth_prior)
    identity = torch.eye(annotations.n_classes, device=annotations.task.device)
    around = dist.Normal(diagonal_log_odds(accuracy, annotations.n_classes) * identity, width)
    base = outside_plates(pyro.sample("base", around.to_event(2)), 2)
    emission, confusion = _emission(annotations, base, width, sizes, by_task=by_task)
    if truth == "answer":
        emission = PerAnnotation(emission, log_probs, annotations.evidence)
    with tasks(annotations, log_probs) as true_class:
        observe(true_class, emission, annotations)
    derived("base_confusion", torch.softmax(base, dim=-1), "class", "annotation")
    if confusion is not None:
        derived("confusion", confusion, "worker", "class", "annotation")


def _emission(
    annotations: Annotations, base: Tensor, width: float, sizes: tuple[int, int] | None, *, by_task: bool
) -> tuple[Emission, Tensor | None]:
    """The emission, and the workers' confusion matrices ``(J, K, K)`` where tasks have the same."""
    shape = tuple(base.shape[-2:])
    if sizes is None:
        of_workers = base[..., None, :, :] + width * _of_workers(annotations, base, "worker_weights", shape)
        if by_task:
            return AddedLogits(of_workers, width * _of_tasks(annotations, base, "task_weights", shape)), None
    else:
        size, hidden = sizes
        workers = _of_workers(annotations, base, "worker_embedding", (size,))
        at = _of_tasks(annotations, base, "task_embedding", (size,)) if by_task else None
        n_inputs = 3 * size if by_task else size
        weights = _standard("hidden_weights", base, (n_inputs, hidden)) / math.sqrt(n_inputs)
        bias = _standard("hidden_bias", base, (hidden,))
        output = width / math.sqrt(hidden) * _standard("output", base, (hidden, *shape))
        if at is not None:
            return NetworkLogits(workers, at, weights, bias, output, base), None
        of_workers = through_hidden(workers, weights, bias, output, base)
    confusion = torch.softmax(of_workers, dim=-1)
    return Confusion(confusion), confusion


def _of_workers(annotations: Annotations, like: Tensor, name: str, shape: tuple[int, ...]) -> Tensor:
    """What the workers' features bring, ``(J, ...)``; of workers without features, each worker's own."""
    features = annotations.worker_features
    if features is None:
        with pyro.plate("worker", annotations.n_workers, dim=-1):
            return pyro.sample(name, _normal(like, shape))
    return _mapped(features, _standard(name, like, (features.shape[-1], *shape)), len(shape))


def _of_tasks(annotations: Annotations, like: Tensor, name: str, shape: tuple[int, ...]) -> Tensor:
    """What the tasks' features bring, ``(N, ...)``."""
    features: Any = annotations.features
    x = features.reshape(annotations.n_tasks, -1)
    return _mapped(x, _standard(name, like, (x.shape[-1], *shape)), len(shape))


def _mapped(features: Tensor, weights: Tensor, rank: int) -> Tensor:
    """Features ``(n, D)`` by weights ``(D, ...)`` of variance one, divided by the root of D: ``(n, ...)``."""
    flat = features.to(weights.dtype) @ weights.flatten(-rank)
    return flat.unflatten(-1, weights.shape[-rank:]) / math.sqrt(features.shape[-1])


def _standard(name: str, like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Standard normal numbers outside of all plates."""
    return outside_plates(pyro.sample(name, _normal(like, shape)), len(shape))


def _normal(like: Tensor, shape: tuple[int, ...]) -> TorchDistribution:
    found: TorchDistribution = dist.Normal(like.new_zeros(()), 1.0).expand(shape).to_event(len(shape))
    return found
