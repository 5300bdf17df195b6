"""Every worker is right with one probability, whatever the class: :mod:`crowdppl.models.one_coin` in Pyro."""

import pyro
import pyro.distributions as dist
import torch

from ...data import Annotations
from ..parts.concentration import positive
from ..parts.truth import named_workers
from .emissions import Confusion
from .tensors import tensor
from .truth import TruthPrior, observe, tasks
from .twins import takes_arrays


@takes_arrays
def one_coin(
    annotations: Annotations, *, truth_prior: TruthPrior | None = None, right: float = 2.0, wrong: float = 1.0
) -> None:
    """Every worker is right with one probability, whatever the class, and errs evenly over the other classes.

    Sites, hyperparameters and errors are those of :func:`crowdppl.models.one_coin`.
    """
    n_workers, n_classes, device = named_workers(annotations), annotations.n_classes, annotations.task.device
    concentration = tensor([positive("wrong", wrong), positive("right", right)]).to(device)
    with pyro.plate("worker", n_workers, dim=-1):
        ability = pyro.sample("ability", dist.Dirichlet(concentration))
    hit, miss = ability[..., 1, None, None], ability[..., 0, None, None] / (n_classes - 1)
    table = torch.where(torch.eye(n_classes, dtype=torch.bool, device=device), hit, miss)
    with tasks(annotations, truth_prior) as truth:
        observe(truth, Confusion(table), annotations)
