"""Annotations come from a few groups of annotators, named or not: :mod:`crowdppl.models.annotator_groups` in Pyro."""

import math
from typing import Literal

import pyro
import pyro.distributions as dist
import torch
from torch import Tensor

from ...data import Annotations
from ..annotator_groups import check_start, share_of_a_group
from ..parts.concentration import diagonal_concentration, positive, whole
from ..parts.story_error import StoryError
from ..parts.truth import named_workers
from .derived import derived, share_of_annotations
from .emissions import Confusion, Emission, Gated, PerAnnotation, SharedConfusion, safe_log
from .tensors import beside_tasks, outside_plates, tensor
from .truth import TruthPrior, class_log_probs, observe, tasks
from .twins import takes_arrays


@takes_arrays
def annotator_groups(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    groups: int = 3,
    membership: Literal["answer", "worker"] = "answer",
    truth: Literal["shared", "answer"] = "shared",
    gated: bool = False,
    diagonal: float = 2.0,
    off_diagonal: float | None = None,
    share: float | None = None,
    start: Literal["workers", "annotations"] = "workers",
) -> None:
    """Annotations come from a few groups of annotators, each with a confusion matrix; workers need no names.

    Sites, hyperparameters and errors are those of :func:`crowdppl.models.annotator_groups`, whose start it is.
    """
    n_groups, n_classes, device = whole("groups", groups), annotations.n_classes, annotations.task.device
    if membership == "worker" and gated:
        raise StoryError("annotator_groups(gated=True) gives each annotation a group; it needs membership='answer'")
    check_start(start, membership)
    prior = diagonal_concentration(n_classes, diagonal, off_diagonal)
    share = share_of_a_group(share, membership, n_groups, gated=gated)
    shares = dist.Dirichlet(torch.full((n_groups,), positive("share", share), device=device))
    alone = n_groups == 1  # one group writes everything
    with pyro.plate("group", n_groups, dim=-2), pyro.plate("class", n_classes, dim=-1):
        tables = pyro.sample("group_confusion", dist.Dirichlet(tensor(prior).to(device)))
    tables = beside_tasks(tables, 3)
    emission: Emission
    if membership == "worker":
        n_workers = named_workers(annotations)
        with pyro.plate("worker", n_workers, dim=-1):
            weights = tables.new_ones(n_workers, 1) if alone else pyro.sample("weights", shares)
        mixed = torch.einsum("...jm,...mkl->...jkl", weights, tables)
        emission = Confusion(mixed)
        derived("worker_confusion", mixed, "worker", "class", "annotation")
    elif gated:
        weights = _gate(annotations, n_groups)
        emission = Gated(tables, weights)
    else:
        weights = tables.new_ones(1) if alone else outside_plates(pyro.sample("weights", shares), 1)
        emission = SharedConfusion(torch.einsum("...m,...mkl->...kl", weights, tables))
    log_probs = class_log_probs(annotations, truth_prior)
    shown = emission if truth == "shared" else PerAnnotation(emission, log_probs, annotations.evidence)
    with tasks(annotations, log_probs) as true_class:
        observe(true_class, shown, annotations)
    given = share_of_annotations(weights, annotations) if membership == "worker" else weights
    derived("group_share", given.mean(-2) if gated else given, "group")
    derived("group_entropy", -(tables * safe_log(tables)).sum(-1).mean(-1), "group")
    derived("group_similarity", lambda: _similarity_to_identity(tables), "group")


def _gate(annotations: Annotations, n_groups: int) -> Tensor:
    """Each task's weights over the groups, ``(N, M)``."""
    if annotations.features is None:
        raise StoryError(
            "annotator_groups(gated=True) needs features of the tasks, and the annotations have none; give them with "
            "Annotations.from_frame(frame, features={task: vector, …})"
        )
    x = annotations.features.reshape(annotations.n_tasks, -1)
    zero = x.new_zeros(())
    gate = pyro.sample("gate", dist.Normal(zero, 1.0).expand([x.shape[-1] + 1, n_groups]).to_event(2))
    gate = outside_plates(gate, 2)
    return torch.softmax(x @ gate[..., :-1, :] + gate[..., -1:, :], dim=-1)


def _similarity_to_identity(tables: Tensor) -> Tensor:
    """One minus the mean Jensen–Shannon divergence (bits) of confusion matrices' rows from the identity's: ``(M,)``."""
    right = tables.diagonal(dim1=-2, dim2=-1)
    middle = (1 + right) / 2  # of the right annotation; the others have half of the row's own probability
    hit = torch.xlogy(right, right / middle) / math.log(2)
    return 1 - ((hit - middle.log2() + (1 - right)) / 2).mean(-1)
