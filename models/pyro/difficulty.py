"""Workers err more on difficult tasks: :func:`crowdppl.models.difficulty` with ``kind="fixed"`` in plain Pyro."""

import pyro
import pyro.distributions as dist
import torch
from torch import Tensor

from ...data import Annotations
from .padded import padded


def difficulty(
    annotations: Annotations, *, votes: Tensor | None = None, location: float = 1.5, scale: float = 1.0
) -> None:
    """Workers err more on difficult tasks, which are those whose votes are split.

    Args:
        annotations: who labelled what; their ``label`` is None where annotations are to be drawn.
        votes: the classes' shares of each task, ``(N, K)``; those of its annotations by default.
        location: mean of the logarithm of the abilities.
        scale: its standard deviation.
    """
    worker, label, is_real, n_workers, k = padded(annotations)
    shares = torch.as_tensor(annotations.votes(), dtype=torch.get_default_dtype()) if votes is None else votes
    total = shares.sum(-1, keepdim=True)
    shares = torch.where(total > 0, shares / total.clamp_min(1), torch.full_like(shares, 1 / k))
    clarity = (shares.max(-1).values - 1 / k) ** 2  # (N,), 0 for the hardest tasks
    prior = dist.LogNormal(torch.tensor(location), scale).expand([k if k == 2 else 1]).to_event(1)
    with pyro.plate("worker", n_workers, dim=-1):
        ability = pyro.sample("ability", prior)  # (J, 2), or (J, 1) where there are more classes
    with pyro.plate("task", annotations.n_tasks, dim=-1):
        truth = pyro.sample("truth", dist.Categorical(shares), infer={"enumerate": "parallel"})
        with pyro.plate("place", len(worker), dim=-2), pyro.poutine.mask(mask=is_real):
            gain = ability[worker, truth if k == 2 else torch.zeros_like(truth)] * clarity
            right = torch.nn.functional.one_hot(truth, k) * gain[..., None]  # log-odds against each other class
            pyro.sample("annotation", dist.Categorical(logits=right), obs=label)
