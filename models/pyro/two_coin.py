"""Two classes, each worker with a sensitivity and a specificity: :func:`crowdppl.models.two_coin` in plain Pyro."""

import pyro
import pyro.distributions as dist
import torch
from pyro.ops.indexing import Vindex

from ...data import Annotations
from .padded import padded


def two_coin(annotations: Annotations, *, right: float = 1.5, wrong: float = 1.0) -> None:
    """Two classes: each worker has a sensitivity and a specificity.

    Args:
        annotations: who labelled what; their ``label`` is None where annotations are to be drawn.
        right: Dirichlet concentration of right annotations.
        wrong: of wrong ones.
    """
    worker, label, is_real, n_workers, _ = padded(annotations)
    prior = torch.tensor([wrong, right])
    with pyro.plate("worker", n_workers, dim=-1):
        sensitivity = pyro.sample("sensitivity", dist.Dirichlet(prior))
        specificity = pyro.sample("specificity", dist.Dirichlet(prior.flip(0)))
    confusion = torch.stack([specificity, sensitivity], dim=-2)  # (J, 2, 2)
    prevalence = pyro.sample("prevalence", dist.Dirichlet(torch.ones(2)))
    with pyro.plate("task", annotations.n_tasks, dim=-1):
        truth = pyro.sample("truth", dist.Categorical(prevalence), infer={"enumerate": "parallel"})
        with pyro.plate("place", len(worker), dim=-2), pyro.poutine.mask(mask=is_real):
            pyro.sample("annotation", dist.Categorical(Vindex(confusion)[..., worker, truth, :]), obs=label)
