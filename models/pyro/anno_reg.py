"""Confusion matrices of small trace on top of the classifier: :mod:`crowdppl.models.anno_reg` in Pyro."""

import pyro
import pyro.distributions as dist

from ...data import Annotations
from ..parts.concentration import diagonal_concentration
from ..parts.story_error import StoryError
from ..parts.truth import named_workers
from .emissions import Confusion, PerAnnotation
from .tensors import beside_tasks, tensor
from .truth import TruthPrior, by_classifier, observe, tasks
from .twins import takes_arrays


@takes_arrays
def anno_reg(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    weight: float = 0.1,
    diagonal: float = 2.0,
    off_diagonal: float | None = None,
) -> None:
    """Workers have confusion matrices of small trace on top of a classifier, which is needed; labels are its own.

    Sites, hyperparameters and errors are those of :func:`crowdppl.models.anno_reg`.
    """
    n_workers, n_classes = named_workers(annotations), annotations.n_classes
    prior = tensor(diagonal_concentration(n_classes, diagonal, off_diagonal)).to(annotations.task.device)
    if not weight >= 0:
        raise StoryError(f"weight={weight!r}: a number from 0 is needed")
    log_probs = by_classifier("anno_reg", annotations, truth_prior)
    with pyro.plate("worker", n_workers, dim=-2), pyro.plate("class", n_classes, dim=-1):
        confusion = pyro.sample("confusion", dist.Dirichlet(prior))
    if weight:
        with pyro.plate("worker.trace", n_workers, dim=-1):
            pyro.factor("trace", -weight * confusion.diagonal(dim1=-2, dim2=-1).sum(-1))
    emission = PerAnnotation(Confusion(beside_tasks(confusion, 3)), log_probs, annotations.evidence)
    with tasks(annotations, log_probs) as truth:
        observe(truth, emission, annotations)
