"""Workers have an ability and tasks a difficulty: :mod:`crowdppl.models.glad` in Pyro."""

import pyro
import pyro.distributions as dist

from ...data import Annotations
from ..parts.concentration import positive
from ..parts.truth import named_workers
from ..parts.truth_prior import UNIFORM
from .emissions import Correct
from .tensors import tensor
from .truth import TruthPrior, observe, tasks
from .twins import takes_arrays


@takes_arrays
def glad(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = UNIFORM,
    ability_scale: float = 1.0,
    difficulty_scale: float = 1.0,
) -> None:
    """Every worker has an ability and every task a difficulty; errors are spread evenly over the other classes.

    Sites, hyperparameters and errors are those of :func:`crowdppl.models.glad`.
    """
    n_workers, one = named_workers(annotations), tensor(1.0).to(annotations.task.device)
    ability_prior = dist.Normal(one, positive("ability_scale", ability_scale))
    difficulty_prior = dist.Normal(-one, positive("difficulty_scale", difficulty_scale))
    with pyro.plate("worker", n_workers, dim=-1):
        ability = pyro.sample("ability", ability_prior)
    with tasks(annotations, truth_prior) as truth:
        difficulty = pyro.sample("difficulty", difficulty_prior)
        observe(truth, Correct(ability[..., None], annotations.n_classes, scale=(-difficulty).exp()), annotations)
