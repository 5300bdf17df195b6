"""Annotations come from a few groups of annotators: :func:`crowdppl.models.annotator_groups` in plain Pyro."""

import pyro
import pyro.distributions as dist
import torch
from pyro.ops.indexing import Vindex

from ...data import Annotations
from ..parts.concentration import diagonal_concentration
from .padded import padded


def annotator_groups(
    annotations: Annotations,
    *,
    groups: int = 3,
    diagonal: float = 2.0,
    off_diagonal: float | None = None,
    share: float = 1.0,
) -> None:
    """Each annotation comes from one of a few groups, each with a confusion matrix; workers need no names.

    Args:
        annotations: who labelled what; their ``label`` is None where annotations are to be drawn.
        groups: number M of groups.
        diagonal: Dirichlet concentration of right annotations.
        off_diagonal: of each wrong annotation; 1 / (K - 1) by default.
        share: concentration of each group's weight.
    """
    worker, label, is_real, _, k = padded(annotations)
    concentration = torch.tensor(diagonal_concentration(k, diagonal, off_diagonal), dtype=torch.get_default_dtype())
    with pyro.plate("group", groups, dim=-2), pyro.plate("class", k, dim=-1):
        tables = pyro.sample("group_confusion", dist.Dirichlet(concentration))  # (M, K, K)
    weights = pyro.sample("weights", dist.Dirichlet(torch.full((groups,), share)))
    confusion = torch.einsum("m,mkl->kl", weights, tables)
    prevalence = pyro.sample("prevalence", dist.Dirichlet(torch.ones(k)))
    with pyro.plate("task", annotations.n_tasks, dim=-1):
        truth = pyro.sample("truth", dist.Categorical(prevalence), infer={"enumerate": "parallel"})
        with pyro.plate("place", len(worker), dim=-2), pyro.poutine.mask(mask=is_real):
            pyro.sample("annotation", dist.Categorical(Vindex(confusion)[..., truth, :]), obs=label)
