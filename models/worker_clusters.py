r"""Workers come in clusters, and each confusion matrix is near that of a cluster (Venanzi et al. 2014).

.. math::
    \rho &\sim \text{Dirichlet}(\alpha) & (K) \\
    w &\sim \text{Dirichlet}(\eta) & (M) \\
    \zeta_{mkl} &\sim \text{Normal}(\mu [k = l], 1), \quad c_{mk} = \text{softmax}(\zeta_{mk}) & (M, K, K) \\
    \beta_j &\sim \sum_m w_m \prod_k \text{Dirichlet}(1 / K + s \, c_{mk}) & (J, K, K) \\
    z_i &\sim \text{Categorical}(\rho) & (N) \\
    y_a &\sim \text{Categorical}(\beta_{j_a z_{i_a}}) & (A)

(CommunityBCC, with Dirichlet rows around the cluster's instead of normal logits, so that EM updates
the workers' confusion matrices in closed form. Which cluster a worker is of is summed out.) It helps where most workers
gave few annotations. As :math:`s` grows, all workers of a cluster have its confusion matrix, which is the story of
Imamura, Sato & Sugiyama (2018); ``annotator_groups`` with ``membership="worker"`` and a small ``share`` is near it
too, and is what ``label_then_train("dl_wc", …)`` takes.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist

from ..data import Annotations
from ..data.padding import n_real_workers
from .parts.concentration import finite, positive, sample_shares, whole
from .parts.derived import derived, share_of_annotations
from .parts.emissions import Confusion
from .parts.own_classes import beside
from .parts.starts import k_means, vote_confusions
from .parts.subtypes import ConfusionMixture
from .parts.truth import named_workers, observe, tasks
from .parts.truth_prior import TruthPrior


def worker_clusters(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    clusters: int = 3,
    strength: float = 2.0,
    diagonal: float | None = None,
    share: float = 1.0,
) -> None:
    r"""Workers come in clusters, and every worker's confusion matrix is near that of the worker's cluster.

    Sites: ``prevalence (K,)``, ``weights (M,)``, ``cluster_logits (M, K, K)`` (:math:`\zeta`),
    ``confusion (J, K, K)``, ``truth (N,)``, ``annotation (A,)``. Derived:
    ``group_confusion (M, K, K)``, the clusters' confusion matrices; ``membership (J, M)``, the probabilities of each
    worker's cluster; ``group_share (M,)``, each cluster's share of the annotations.

    Args:
        annotations: who labelled what; workers are named.
        truth_prior: prior of the true labels; a prevalence with a flat Dirichlet by default.
        clusters: number M of clusters.
        strength: :math:`s`, how many annotations to tasks of each class a cluster's confusion matrix counts for in
            each of its workers', beside one annotation of any kind; the greater, the more alike a cluster's workers.
        diagonal: :math:`\mu`, mean of the logits of right annotations; those of wrong ones have the mean 0.
            :math:`\log(K + 1)` by default, which expects more than half of the annotations to be right, whatever the K.
        share: :math:`\eta`, concentration of each cluster's share of the workers.

    Raises:
        StoryError: no worker is named, ``strength`` or ``share`` is not positive, ``diagonal`` is no number, or there
            is no cluster.
    """
    n_workers, n_classes = named_workers(annotations), annotations.n_classes
    n_clusters = whole("clusters", clusters)
    right = np.log(beside(annotations) + 1) if diagonal is None else finite("diagonal", diagonal)
    worth = positive("strength", strength)

    def start(key: jax.Array) -> jax.Array:
        points = vote_confusions(annotations).reshape(n_workers, -1)
        _, centres = k_means(points, n_clusters, key, n_real_workers(annotations))
        return jnp.log(centres).reshape(n_clusters, n_classes, n_classes)

    weights = sample_shares("weights", n_clusters, share, "group")
    with numpyro.plate("group", n_clusters, dim=-1):
        cluster_logits = numpyro.sample(
            "cluster_logits",
            dist.Normal(right * jnp.eye(n_classes), 1.0).to_event(2),
            infer={"event_dims": ["class", "annotation"], "start": start},
        )
    cluster_confusion = jax.nn.softmax(cluster_logits, axis=-1)
    near_a_cluster = ConfusionMixture(weights, cluster_confusion, worth)
    with numpyro.plate("worker", n_workers, dim=-1):
        confusion = numpyro.sample(
            "confusion", near_a_cluster, infer={"event_dims": ["class", "annotation"], "role": "confusion"}
        )
    with tasks(annotations, truth_prior) as truth:
        observe(truth, Confusion(confusion), annotations)
    membership = near_a_cluster.membership(confusion)
    derived("group_confusion", cluster_confusion, "group", "class", "annotation", role="group_confusion")
    derived("group_share", share_of_annotations(membership, annotations), "group", role="group_share")
    derived("membership", membership, "worker", "group", role="membership")
