"""A worker knows the truth or annotates by habit: :mod:`crowdppl.models.mace` in Pyro."""

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
def mace(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    knows: float = 2.0,
    spams: float = 1.0,
    habit: float = 1.5,
) -> None:
    """Every worker knows the truth or spams: annotations by habit, whatever the task.

    Sites, hyperparameters and errors are those of :func:`crowdppl.models.mace`.
    """
    n_workers, n_classes, device = named_workers(annotations), annotations.n_classes, annotations.task.device
    concentration = tensor([positive("spams", spams), positive("knows", knows)]).to(device)
    habits = torch.full((n_classes,), positive("habit", habit), device=device)
    with pyro.plate("worker", n_workers, dim=-1):
        ability = pyro.sample("ability", dist.Dirichlet(concentration))
        strategy = pyro.sample("strategy", dist.Dirichlet(habits))
    spamming, knowing = ability[..., 0, None, None], ability[..., 1, None, None]
    table = knowing * torch.eye(n_classes, device=device) + spamming * strategy[..., None, :]
    with tasks(annotations, truth_prior) as truth:
        observe(truth, Confusion(table), annotations)
