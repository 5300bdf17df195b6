"""Workers come in clusters, and each confusion matrix is near one's: :mod:`crowdppl.models.worker_clusters` in Pyro."""

import math

import pyro
import pyro.distributions as dist
import torch

from ...data import Annotations
from ..parts.concentration import finite, positive, whole
from ..parts.truth import named_workers
from .confusion_mixture import ConfusionMixture
from .derived import derived, share_of_annotations
from .emissions import Confusion
from .truth import TruthPrior, observe, tasks
from .twins import takes_arrays


@takes_arrays
def worker_clusters(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    clusters: int = 3,
    strength: float = 2.0,
    diagonal: float | None = None,
    share: float = 1.0,
) -> None:
    """Workers come in clusters, and every worker's confusion matrix is near that of the worker's cluster.

    Sites, hyperparameters and errors are those of :func:`crowdppl.models.worker_clusters`.
    """
    n_workers, n_classes, device = named_workers(annotations), annotations.n_classes, annotations.task.device
    n_clusters = whole("clusters", clusters)
    right = finite("diagonal", math.log(n_classes + 1) if diagonal is None else diagonal)
    worth = positive("strength", strength)
    shares = dist.Dirichlet(torch.full((n_clusters,), positive("share", share), device=device))
    weights = torch.ones(1, device=device) if n_clusters == 1 else pyro.sample("weights", shares)
    with pyro.plate("group", n_clusters, dim=-1):
        logits = dist.Normal(right * torch.eye(n_classes, device=device), 1.0).to_event(2)
        cluster_logits = pyro.sample("cluster_logits", logits)
    cluster_confusion = torch.softmax(cluster_logits, dim=-1)
    near_a_cluster = ConfusionMixture(weights, cluster_confusion, worth)
    with pyro.plate("worker", n_workers, dim=-1):
        confusion = pyro.sample("confusion", near_a_cluster)
    with tasks(annotations, truth_prior) as truth:
        observe(truth, Confusion(confusion), annotations)
    membership = near_a_cluster.membership(confusion)
    derived("group_confusion", cluster_confusion, "group", "class", "annotation")
    derived("group_share", share_of_annotations(membership, annotations), "group")
    derived("membership", membership, "worker", "group")
