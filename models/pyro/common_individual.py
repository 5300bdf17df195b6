"""A confusion matrix in common, or the worker's own: :func:`crowdppl.models.common_individual` in plain Pyro."""

import pyro
import pyro.distributions as dist
import torch
from pyro.ops.indexing import Vindex

from ...data import Annotations
from ..parts.concentration import diagonal_concentration
from .padded import padded


def common_individual(
    annotations: Annotations, *, diagonal: float = 2.0, off_diagonal: float | None = None, coin: float = 1.0
) -> None:
    """Annotations follow a confusion matrix that all workers have in common, or the worker's own, by a worker's coin.

    Args:
        annotations: who labelled what; their ``label`` is None where annotations are to be drawn.
        diagonal: Dirichlet concentration of right annotations.
        off_diagonal: of each wrong annotation; 1 / (K - 1) by default.
        coin: concentration of both sides of a worker's coin.
    """
    worker, label, is_real, n_workers, k = padded(annotations)
    rows = dist.Dirichlet(
        torch.tensor(diagonal_concentration(k, diagonal, off_diagonal), dtype=torch.get_default_dtype())
    )
    with pyro.plate("class", k, dim=-1):
        common = pyro.sample("common", rows)  # (K, K)
    with pyro.plate("worker", n_workers, dim=-1):
        individual = pyro.sample("individual", rows.to_event(1))  # (J, K, K)
        toss = pyro.sample("coin", dist.Dirichlet(torch.full((2,), coin)))  # (J, 2): own, common
    confusion = toss[:, 0, None, None] * individual + toss[:, 1, None, None] * common
    prevalence = pyro.sample("prevalence", dist.Dirichlet(torch.ones(k)))
    with pyro.plate("task", annotations.n_tasks, dim=-1):
        truth = pyro.sample("truth", dist.Categorical(prevalence), infer={"enumerate": "parallel"})
        with pyro.plate("place", len(worker), dim=-2), pyro.poutine.mask(mask=is_real):
            pyro.sample("annotation", dist.Categorical(Vindex(confusion)[..., worker, truth, :]), obs=label)
