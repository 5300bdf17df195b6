"""Every worker has a confusion matrix (Dawid & Skene 1979): :func:`crowdppl.models.dawid_skene` in plain Pyro."""

import pyro
import pyro.distributions as dist
import torch
from pyro.ops.indexing import Vindex

from ...data import Annotations
from ..parts.concentration import diagonal_concentration
from .padded import padded


def dawid_skene(annotations: Annotations, *, diagonal: float = 2.0, off_diagonal: float | None = None) -> None:
    """Every worker has a confusion matrix: how often each class is annotated to tasks of each class.

    Args:
        annotations: who labelled what; their ``label`` is None where annotations are to be drawn.
        diagonal: Dirichlet concentration of right annotations.
        off_diagonal: of each wrong annotation; 1 / (K - 1) by default.
    """
    worker, label, is_real, n_workers, k = padded(annotations)
    concentration = torch.tensor(diagonal_concentration(k, diagonal, off_diagonal), dtype=torch.get_default_dtype())
    with pyro.plate("worker", n_workers, dim=-2), pyro.plate("class", k, dim=-1):
        confusion = pyro.sample("confusion", dist.Dirichlet(concentration))  # (J, K, K)
    prevalence = pyro.sample("prevalence", dist.Dirichlet(torch.ones(k)))
    with pyro.plate("task", annotations.n_tasks, dim=-1):
        truth = pyro.sample("truth", dist.Categorical(prevalence), infer={"enumerate": "parallel"})
        with pyro.plate("place", len(worker), dim=-2), pyro.poutine.mask(mask=is_real):
            pyro.sample("annotation", dist.Categorical(Vindex(confusion)[..., worker, truth, :]), obs=label)
