"""Confusion matrices that depart from the crowd's: :mod:`crowdppl.models.hierarchical_dawid_skene` in Pyro."""

import math

import pyro
import pyro.distributions as dist
import torch

from ...data import Annotations
from ..parts.concentration import finite, positive
from ..parts.truth import named_workers
from .derived import derived
from .emissions import Confusion
from .truth import TruthPrior, observe, tasks
from .twins import takes_arrays


@takes_arrays
def hierarchical_dawid_skene(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    diagonal: float | None = None,
    spread: float = 1.0,
) -> None:
    """Every worker's confusion matrix departs from the crowd's, as far as the crowd's members differ.

    Sites, hyperparameters and errors are those of :func:`crowdppl.models.hierarchical_dawid_skene`.
    """
    n_workers, n_classes = named_workers(annotations), annotations.n_classes
    right = finite("diagonal", math.log(n_classes + 1) if diagonal is None else diagonal)
    identity = torch.eye(n_classes, device=annotations.task.device)
    zeros = torch.zeros_like(identity)
    with pyro.plate("class", n_classes, dim=-1):
        common = pyro.sample("common", dist.Normal(right * identity, 1.0).to_event(1))
        scale = pyro.sample("spread", dist.HalfNormal(zeros + positive("spread", spread)).to_event(1))
    with pyro.plate("worker", n_workers, dim=-1):
        individual = pyro.sample("individual", dist.Normal(zeros, 1.0).to_event(2))
    confusion = torch.softmax(common[..., None, :, :] + scale[..., None, :, :] * individual, dim=-1)
    with tasks(annotations, truth_prior) as truth:
        observe(truth, Confusion(confusion), annotations)
    derived("confusion", confusion, "worker", "class", "annotation")
    derived("common_confusion", torch.softmax(common, dim=-1), "class", "annotation")
