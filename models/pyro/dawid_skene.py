"""Every worker has a confusion matrix: :mod:`crowdppl.models.dawid_skene` in Pyro."""

import numpy as np
import pandas as pd
import pyro
import pyro.distributions as dist

from ...data import Annotations
from ..parts.concentration import diagonal_concentration, pseudo_counts
from ..parts.truth import named_workers
from .emissions import Confusion
from .tensors import beside_tasks, tensor
from .truth import TruthPrior, observe, tasks
from .twins import takes_arrays


@takes_arrays
def dawid_skene(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    diagonal: float = 2.0,
    off_diagonal: float | None = None,
    history: pd.DataFrame | np.ndarray | None = None,
) -> None:
    """Every worker has a confusion matrix: how often each class is annotated to tasks of each class.

    Sites, hyperparameters and errors are those of :func:`crowdppl.models.dawid_skene`.
    """
    n_workers, n_classes = named_workers(annotations), annotations.n_classes
    prior = diagonal_concentration(n_classes, diagonal, off_diagonal)
    concentration = tensor(prior + pseudo_counts(history, annotations)).to(annotations.task.device)
    with pyro.plate("worker", n_workers, dim=-2), pyro.plate("class", n_classes, dim=-1):
        confusion = pyro.sample("confusion", dist.Dirichlet(concentration))
    with tasks(annotations, truth_prior) as truth:
        observe(truth, Confusion(beside_tasks(confusion, 3)), annotations)
