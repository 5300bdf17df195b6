"""Two classes, abilities in logits and tasks of different difficulty: :mod:`crowdppl.models.item_response` in Pyro."""

import pyro
import pyro.distributions as dist
import torch

from ...data import Annotations
from ..parts.truth import named_workers, two_classes
from .emissions import Correct
from .tensors import tensor
from .truth import TruthPrior, observe, tasks
from .twins import takes_arrays


@takes_arrays
def item_response(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    difficulty: bool = True,
    discrimination: bool = False,
    guessing: bool = False,
) -> None:
    """Two classes: each worker has a sensitivity and a specificity in logits, each task a difficulty.

    Sites, hyperparameters and errors are those of :func:`crowdppl.models.item_response`.
    """
    two_classes(annotations)
    zero = tensor(0.0).to(annotations.task.device)
    with pyro.plate("worker", named_workers(annotations), dim=-1):
        sensitivity = pyro.sample("sensitivity", dist.Normal(zero + 1.0, 2.0))
        specificity = pyro.sample("specificity", dist.Normal(zero + 2.0, 2.0))
    ability = torch.stack([specificity, sensitivity], dim=-1)
    with tasks(annotations, truth_prior) as truth:
        scale = pyro.sample("discrimination", dist.LogNormal(zero, 0.25)) if discrimination else zero + 1.0
        offset = -scale * pyro.sample("difficulty", dist.Normal(zero, 1.0)) if difficulty else 0.0
        guess = pyro.sample("guess", dist.Dirichlet(zero.new_full((2,), 2.0))) if guessing else None
        observe(truth, Correct(ability, 2, scale, offset, guess), annotations)
