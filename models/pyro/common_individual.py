"""Annotations follow a shared confusion matrix or the worker's own: :mod:`crowdppl.models.common_individual`."""

from typing import Any, Literal

import pyro
import pyro.distributions as dist
import torch
from torch import Tensor

from ...data import Annotations
from ...data.errors import check_name
from ..annotator_groups import share_of_a_group
from ..common_individual import COIN, DEVIATION, DIAGONAL, EMBEDDING, KERNEL, NO_FEATURES, SPREAD, refuse_idle
from ..parts.concentration import diagonal_concentration, positive, whole
from ..parts.emissions import SMALLEST
from ..parts.offsets import PACE
from ..parts.scored_annotations import classifier_needed
from ..parts.story_error import StoryError
from ..parts.truth import named_workers
from .derived import derived, mean_over_rows, share_of_annotations
from .emissions import Confusion, Emission, PerAnnotation, Switch, SwitchedKernels, safe_log, switch_of
from .tensors import beside_tasks, outside_plates, tensor
from .truth import TruthPrior, class_log_probs, observe, tasks
from .twins import takes_arrays


@takes_arrays
def common_individual(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    truth: Literal["shared", "answer"] = "shared",
    kernels: Literal["rows", "free"] = "rows",
    groups: int = 1,
    by_task: bool | None = None,
    embedding: int | None = None,
    hidden: int | None = None,
    bias: bool = False,
    temperature: float | None = None,
    separation: float = 0.0,
    diagonal: float | None = None,
    off_diagonal: float | None = None,
    coin: float | None = None,
    share: float | None = None,
    spread: float | None = None,
) -> None:
    """Annotations follow a confusion matrix that all workers have in common, or the worker's own, by a switch.

    Sites, hyperparameters and errors are those of :func:`crowdppl.models.common_individual`.
    """
    check_name("truth", truth, ("shared", "answer"))
    check_name("kernels", kernels, ("rows", "free"))
    crowd, free = pyro.plate("worker", named_workers(annotations), dim=-1), kernels == "free"
    by_task = annotations.features is not None if by_task is None else by_task
    options = {"embedding": embedding, "hidden": hidden, "bias": bias or None, "temperature": temperature}
    refuse_idle(truth, kernels, groups, by_task, separation, options, coin, (diagonal, off_diagonal), spread)
    log_probs: Any = truth_prior
    if truth == "answer":
        log_probs = class_log_probs(annotations, truth_prior)
        if log_probs.ndim != 2:
            raise StoryError(classifier_needed("common_individual(truth='answer')"))
    if free:
        common, individual = _free(
            annotations, crowd, positive("spread", SPREAD if spread is None else spread, DEVIATION)
        )
        mixed = common
    else:
        right = DIAGONAL if diagonal is None else diagonal
        prior = tensor(diagonal_concentration(annotations.n_classes, right, off_diagonal))
        common, individual = _rows(annotations, crowd, prior, whole("groups", groups))
        mixed = _of_workers(annotations, common, crowd, groups, share)
    by_worker = mixed if groups > 1 else mixed[..., None, :, :]
    if separation:
        distance = torch.sqrt(((by_worker - individual) ** 2).sum((-1, -2)) + SMALLEST)
        with crowd:
            pyro.factor("separation", separation * distance)
    workers, of_tasks, toss = _switch(annotations, crowd, by_task, options, coin)
    emission: Emission
    if free:
        weights = log_probs if annotations.evidence is None else log_probs + annotations.evidence
        emission = SwitchedKernels(common, individual, torch.softmax(weights, dim=-1), workers, of_tasks)
    elif toss is None:
        emission = Switch(mixed, individual, workers, of_tasks, common_rank=2 if groups == 1 else 3)
    else:
        emission = Confusion(toss[..., 0, None, None] * individual + toss[..., 1, None, None] * by_worker)
    if truth == "answer" and not free:
        emission = PerAnnotation(emission, log_probs, annotations.evidence)
    with tasks(annotations, log_probs) as true_class:
        observe(true_class, emission, annotations)
    _describe(workers, of_tasks, toss, annotations)
    if free:
        derived("common", common, "class", "annotation")
        derived("individual", individual, "worker", "class", "annotation")


def _describe(workers: Tensor, of_tasks: Tensor, toss: Tensor | None, annotations: Annotations) -> None:
    """Derive the switch of each annotation, and its means by worker and task."""
    worker: Any = annotations.worker
    task, count = annotations.task, annotations.count

    def follows() -> Tensor:
        return switch_of(workers, of_tasks, worker, task) if toss is None else toss[..., worker, 1]

    derived("switch", follows, "row")
    derived("switch_by_worker", lambda: mean_over_rows(follows(), worker, annotations.n_workers, count), "worker")
    derived("switch_by_task", lambda: mean_over_rows(follows(), task, annotations.n_tasks, count), "task")


def _rows(annotations: Annotations, crowd: pyro.plate, prior: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """The common confusion matrix ``(K, K)``, or each group's ``(M, K, K)``, and the workers' own ``(J, K, K)``."""
    rows = dist.Dirichlet(prior.to(annotations.task.device))
    classes = pyro.plate("class", annotations.n_classes, dim=-1)
    if groups == 1:
        with classes:
            common = pyro.sample("common", rows)
    else:
        with pyro.plate("group", groups, dim=-2), classes:
            common = beside_tasks(pyro.sample("common", rows), 3)
    with crowd:
        individual = pyro.sample("individual", rows.to_event(1))
    return common, individual


def _of_workers(
    annotations: Annotations, common: Tensor, crowd: pyro.plate, groups: int, share: float | None
) -> Tensor:
    """The common confusion matrix ``(K, K)``, or each worker's mixture of those of the groups ``(J, K, K)``."""
    concentration = share_of_a_group(share, "worker", groups)
    if groups == 1:
        return common
    even = common.new_full((groups,), positive("share", concentration))
    with crowd:
        weights = pyro.sample("weights", dist.Dirichlet(even))
    derived("group_share", share_of_annotations(weights, annotations), "group")
    return torch.einsum("...jm,...mkl->...jkl", weights, common)


def _free(annotations: Annotations, crowd: pyro.plate, spread: float) -> tuple[Tensor, Tensor]:
    """The common kernel ``(K, K)`` and the workers' own ``(J, K, K)``, around twice the identity."""
    n_classes, device = annotations.n_classes, annotations.task.device
    around = KERNEL * torch.eye(n_classes, device=device)
    offsets = dist.Normal(torch.zeros_like(around), spread / PACE).to_event(2)
    common = around + PACE * outside_plates(pyro.sample("common_offset", offsets), 2)
    with crowd:
        return common, around + PACE * pyro.sample("individual_offset", offsets)


def _switch(
    annotations: Annotations, crowd: pyro.plate, by_task: bool, options: dict[str, Any], coin: float | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Vectors whose products are the switch's log-odds, ``(J, E)`` and ``(N, E)``, and the coins ``(J, 2)`` or None."""
    if by_task:
        workers, of_tasks = _embeddings(annotations, options)
        return workers, of_tasks, None
    device = annotations.task.device
    even = torch.full((2,), positive("coin", COIN if coin is None else coin), device=device)
    with crowd:
        toss = pyro.sample("coin", dist.Dirichlet(even))
    return safe_log(toss).diff(), toss.new_ones(annotations.n_tasks, 1), toss


def _embeddings(annotations: Annotations, options: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """Unit vectors of the workers ``(J, E)``, divided by the temperature, and of the tasks ``(N, E)``."""
    if annotations.features is None:
        raise StoryError(NO_FEATURES)
    size = whole("embedding", EMBEDDING if options["embedding"] is None else options["embedding"])
    bias, temperature = options["bias"] is not None, options["temperature"]
    x = annotations.features.reshape(annotations.n_tasks, -1)
    if options["hidden"] is not None:
        hidden = whole("hidden", options["hidden"])
        x = x @ _weights("task_hidden", x, (x.shape[-1], hidden))
        x = x + _biases("task_hidden_bias", x, hidden) if bias else x
    x = x @ _weights("task_embedding", x, (x.shape[-1], size))
    features = annotations.worker_features
    if features is None:
        workers = _weights("worker_embedding", x, (annotations.n_workers, size))
    else:
        workers = features @ _weights("worker_embedding", x, (features.shape[-1], size))
    if bias:
        x = x + _biases("task_bias", x, size)
        workers = workers + _biases("worker_bias", x, size)
    workers = _unit(workers)
    return workers if temperature is None else workers / positive("temperature", temperature, "temperature"), _unit(x)


def _weights(name: str, like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Standard normal weights."""
    normal = dist.Normal(like.new_zeros(()), 1.0).expand(shape).to_event(len(shape))
    return outside_plates(pyro.sample(name, normal), len(shape))


def _biases(name: str, like: Tensor, size: int) -> Tensor:
    """Standard normal biases, to be added to rows: ``(1, size)``."""
    return _weights(name, like, (size,))[..., None, :]


def _unit(vectors: Tensor) -> Tensor:
    return vectors / torch.sqrt((vectors**2).sum(-1, keepdim=True) + SMALLEST)
