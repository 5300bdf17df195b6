"""Workers err more on difficult tasks: :mod:`crowdppl.models.difficulty` in Pyro."""

import math
from typing import Literal

import numpy as np
import pyro
import pyro.distributions as dist
import torch
from torch import Tensor

from ...data import Annotations
from ..difficulty import difficulty as in_numpyro
from ..difficulty import learns_through
from ..parts.concentration import positive
from ..parts.simulated_inputs import simulated_with, simulation_of
from ..parts.story_error import StoryError
from ..parts.truth import named_workers
from .classifier import TorchClassifier
from .emissions import Correct, safe_log
from .tensors import soft_votes, tensor
from .truth import TruthPrior, class_log_probs, differs_by_task, observe, tasks
from .twins import takes_arrays


@simulated_with(simulation_of(in_numpyro))
@takes_arrays
def difficulty(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    kind: Literal["adaptive", "fixed"] | None = None,
    votes: np.ndarray | None = None,
    votes_as_prior: bool = True,
    by_class: bool | None = None,
    through_difficulty: bool | None = None,
    location: float = 1.5,
    scale: float = 1.0,
) -> None:
    """Workers err more on difficult tasks; a classifier or the vote counts decide which tasks are difficult.

    Sites, hyperparameters and errors are those of :func:`crowdppl.models.difficulty`.
    """
    n_workers, n_classes = named_workers(annotations), annotations.n_classes
    n_abilities = n_classes if (n_classes == 2 if by_class is None else by_class) else 1
    mean = torch.tensor(float(location), device=annotations.task.device)
    prior = dist.LogNormal(mean, positive("scale", scale)).expand([n_abilities]).to_event(1)
    with pyro.plate("worker", n_workers, dim=-1):
        ability = pyro.sample("ability", prior)
    if kind is None:
        kind = "adaptive" if votes is None and differs_by_task(truth_prior, annotations) else "fixed"
    log_probs, clarity = _by_task(annotations, truth_prior, kind, votes, votes_as_prior, through_difficulty)
    with tasks(annotations, log_probs) as truth:
        emission = Correct(ability, n_classes, scale=clarity, offset=-math.log(n_classes - 1))
        observe(truth, emission, annotations)


def _by_task(
    annotations: Annotations,
    truth_prior: TruthPrior | None,
    kind: str,
    votes: np.ndarray | None,
    votes_as_prior: bool,
    through_difficulty: bool | None,
) -> tuple[Tensor, Tensor]:
    """Log-probabilities of the classes ``(N, K)``, and how clear each task is, ``(N,)``."""
    if kind == "adaptive":
        if votes is not None:
            raise StoryError("votes= are difficulties for kind='fixed'; leave them out, or give kind='fixed'")
        log_probs = class_log_probs(annotations, truth_prior)
        if log_probs.ndim != 2:
            raise StoryError(
                "difficulty(kind='adaptive') takes a task's difficulty from the probabilities of its classes, and this "
                "prior is the same for all tasks; give a classifier, probabilities as truth_prior, or kind='fixed'"
            )
        probs = log_probs.exp()
        if not isinstance(truth_prior, TorchClassifier):
            return log_probs, _clarity(probs if learns_through(truth_prior, through_difficulty) else probs.detach())
        through = truth_prior.is_linear if through_difficulty is None else through_difficulty
        return log_probs, _clarity(probs if through else probs.detach())
    if kind != "fixed":
        raise StoryError(f"kind={kind!r}: 'adaptive' or 'fixed' is needed")
    if through_difficulty is not None:
        raise StoryError(
            f"through_difficulty={through_difficulty} would be ignored: difficulties of kind='fixed' come from the "
            "annotations, and no classifier learns through them; leave it out"
        )
    if votes is None and annotations.label is None:
        raise StoryError(
            "difficulty(kind='fixed') takes difficulties from annotations; to simulate annotations, give votes=, or "
            "leave out kind"
        )
    shares = soft_votes(annotations) if votes is None else tensor(votes).to(annotations.task.device)
    if not votes_as_prior:
        return class_log_probs(annotations, truth_prior), _clarity(shares)
    log_shares = safe_log(shares)
    if not isinstance(truth_prior, TorchClassifier):
        return log_shares, _clarity(shares)
    student = truth_prior(annotations)
    return log_shares + student - student.detach(), _clarity(shares)  # the student's gradient alone


def _clarity(probs: Tensor) -> Tensor:
    return (probs.amax(-1) - 1 / probs.shape[-1]) ** 2
