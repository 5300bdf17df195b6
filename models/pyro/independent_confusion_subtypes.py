"""Classes have subtypes of tasks: :mod:`crowdppl.models.independent_confusion_subtypes` in Pyro."""

import pyro
import pyro.distributions as dist
import torch

from ...data import Annotations
from ..parts.concentration import diagonal_concentration, positive, whole
from ..parts.truth import named_workers
from .emissions import Subtypes
from .tensors import tensor
from .truth import TruthPrior, observe, tasks
from .twins import takes_arrays


@takes_arrays
def independent_confusion_subtypes(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    subtypes: int = 2,
    diagonal: float = 2.0,
    off_diagonal: float | None = None,
    share: float = 1.0,
) -> None:
    """Classes have subtypes of tasks, and every worker a row of annotations for each subtype of each class.

    Sites, hyperparameters and errors are those of :func:`crowdppl.models.independent_confusion_subtypes`.
    """
    n_workers, n_classes, device = named_workers(annotations), annotations.n_classes, annotations.task.device
    n_subtypes = whole("subtypes", subtypes)
    prior = tensor(diagonal_concentration(n_classes, diagonal, off_diagonal)).to(device)
    rows = dist.Dirichlet(prior[:, None].expand(n_classes, n_subtypes, n_classes)).to_event(2)
    shares = dist.Dirichlet(torch.full((n_subtypes,), positive("share", share), device=device))
    weights = torch.ones(n_classes, 1, device=device)
    if n_subtypes > 1:
        with pyro.plate("class", n_classes, dim=-1):
            weights = pyro.sample("weights", shares)
    with pyro.plate("worker", n_workers, dim=-1):
        confusion = pyro.sample("confusion", rows)
    with tasks(annotations, truth_prior) as truth:
        observe(truth, Subtypes(confusion, weights), annotations)


@takes_arrays
def ebcc(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    subtypes: int = 10,
    diagonal: float = 4.0,
    off_diagonal: float | None = 1.0,
    share: float | None = None,
) -> None:
    """Classes have subtypes of tasks, with the priors and the ten subtypes of its authors (EBCC).

    Sites, hyperparameters and errors are those of :func:`crowdppl.models.independent_confusion_subtypes.ebcc`.
    """
    independent_confusion_subtypes(
        annotations,
        truth_prior=truth_prior,
        subtypes=subtypes,
        diagonal=diagonal,
        off_diagonal=off_diagonal,
        share=0.1 / whole("subtypes", subtypes) if share is None else share,
    )
