"""Annotations follow a shared confusion matrix or the worker's own: :mod:`crowdppl.models.common_individual`."""

import pyro
import pyro.distributions as dist
import torch
from torch import Tensor

from ...data import Annotations
from ..parts.concentration import diagonal_concentration, positive, whole
from ..parts.emissions import SMALLEST
from ..parts.story_error import StoryError
from ..parts.truth import named_workers
from .emissions import Confusion, Emission, Switch
from .tensors import tensor
from .truth import TruthPrior, observe, tasks


def common_individual(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    by_task: bool | None = None,
    embedding: int = 20,
    separation: float = 0.0,
    diagonal: float = 2.0,
    off_diagonal: float | None = None,
    coin: float = 1.0,
) -> None:
    """Annotations follow a confusion matrix that all workers have in common, or the worker's own, by a switch.

    Sites, hyperparameters and errors are those of :func:`crowdppl.models.common_individual`.
    """
    n_workers, n_classes, device = named_workers(annotations), annotations.n_classes, annotations.task.device
    rows = dist.Dirichlet(tensor(diagonal_concentration(n_classes, diagonal, off_diagonal)).to(device))
    if not separation >= 0:
        raise StoryError(f"separation={separation!r}: a number from 0 is needed")
    workers = pyro.plate("worker", n_workers, dim=-1)
    with pyro.plate("class", n_classes, dim=-1):
        common = pyro.sample("common", rows)
    with workers:
        individual = pyro.sample("individual", rows.to_event(1))
    if separation:
        distance = torch.sqrt(((common - individual) ** 2).sum((-1, -2)) + SMALLEST)
        pyro.factor("separation", separation * distance.sum())
    emission: Emission
    if annotations.features is not None if by_task is None else by_task:
        emission = Switch(common, individual, *_embeddings(annotations, whole("embedding", embedding)))
    else:
        even = torch.full((2,), positive("coin", coin), device=device)
        with workers:
            toss = pyro.sample("coin", dist.Dirichlet(even))
        emission = Confusion(toss[:, 0, None, None] * individual + toss[:, 1, None, None] * common)
    with tasks(annotations, truth_prior) as truth:
        observe(truth, emission, annotations)


def _embeddings(annotations: Annotations, size: int) -> tuple[Tensor, Tensor]:
    """Unit vectors of the workers ``(J, E)`` and of the tasks ``(N, E)``."""
    if annotations.features is None:
        raise StoryError(
            "common_individual(by_task=True) needs features of the tasks, and the annotations have none; give them "
            "with Annotations.from_frame(frame, features={task: vector, …}), or by_task=False for a coin of each worker"
        )
    x = annotations.features.reshape(annotations.n_tasks, -1)
    to_task = _weights("task_embedding", x, (x.shape[-1], size))
    features = annotations.worker_features
    if features is None:
        workers = _weights("worker_embedding", x, (annotations.n_workers, size))
    else:
        workers = features @ _weights("worker_embedding", x, (features.shape[-1], size))
    return _unit(workers), _unit(x @ to_task)


def _weights(name: str, like: Tensor, shape: tuple[int, int]) -> Tensor:
    """Standard normal weights."""
    return pyro.sample(name, dist.Normal(like.new_zeros(()), 1.0).expand(shape).to_event(2))


def _unit(vectors: Tensor) -> Tensor:
    return vectors / torch.sqrt((vectors**2).sum(-1, keepdim=True) + SMALLEST)
