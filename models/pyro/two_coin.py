"""Two classes, each worker with a sensitivity and a specificity: :mod:`crowdppl.models.two_coin` in Pyro."""

import pyro
import pyro.distributions as dist
import torch

from ...data import Annotations
from ..parts.concentration import positive
from ..parts.truth import named_workers, two_classes
from .emissions import Confusion
from .truth import TruthPrior, observe, tasks
from .twins import takes_arrays


@takes_arrays
def two_coin(
    annotations: Annotations, *, truth_prior: TruthPrior | None = None, right: float = 1.5, wrong: float = 1.0
) -> None:
    """Two classes: each worker has a sensitivity and a specificity.

    Sites, hyperparameters and errors are those of :func:`crowdppl.models.two_coin`.
    """
    two_classes(annotations)
    prior = torch.tensor([positive("wrong", wrong), positive("right", right)], device=annotations.task.device)
    with pyro.plate("worker", named_workers(annotations), dim=-1):
        sensitivity = pyro.sample("sensitivity", dist.Dirichlet(prior))
        specificity = pyro.sample("specificity", dist.Dirichlet(prior.flip(0)))
    with tasks(annotations, truth_prior) as truth:
        observe(truth, Confusion(torch.stack([specificity, sensitivity], dim=-2)), annotations)
