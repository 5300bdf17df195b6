r"""Annotations come from a few groups of annotators, named or not (Mena & Ñanculef, the Crowd Mixture Model).

.. math::
    \beta^{(m)}_k &\sim \text{Dirichlet}(\gamma_k) & (M, K, K) \\
    \alpha &\sim \text{Dirichlet}(\eta) & (M), \text{ or } (J, M) \text{ by worker} \\
    z_i &\sim \text{Categorical}(f(x_i)) & (N) \\
    P(y_a = l \mid z_i = k) &= \sum_m \alpha_m \beta^{(m)}_{kl} & (A)

With ``membership="answer"`` every annotation comes from one of the groups, workers need no names, and the cost does
not depend on the number of workers: the paper's *Global* setting. The likelihood then depends on
:math:`\sum_m \alpha_m \beta^{(m)}` alone, so that it does not identify the groups. With ``membership="worker"`` each
worker has weights over the groups, which are identified where workers annotate more than one task.

With ``truth="answer"`` the truth is summed out of each annotation by itself, as in the paper:
:math:`p(y_a \mid x_i) = \sum_k f_k(x_i) \sum_m \alpha_m \beta^{(m)}_{k y_a}` (its equations 3 and 4). The annotations
of a task are then independent given the classifier, whose probabilities are the truth's posterior.
"""

from typing import Literal

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax import Array

from ..data import Annotations
from ..data.errors import check_name
from ..data.padding import n_real_workers, real_tasks
from .parts.concentration import diagonal_concentration, sample_shares, whole
from .parts.contract import StoryError
from .parts.derived import derived, share_of_annotations
from .parts.emissions import Confusion, Emission, Gated, PerAnnotation, SharedConfusion
from .parts.model_probabilities import refuse_probabilities
from .parts.own_classes import wrong_classes
from .parts.starts import annotation_confusions, graded_confusions, k_means, vote_confusions
from .parts.truth import named_workers, needed_features, observe, tasks
from .parts.truth_prior import TruthPrior, class_log_probs


def annotator_groups(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    groups: int = 3,
    membership: Literal["answer", "worker"] = "answer",
    truth: Literal["shared", "answer"] = "shared",
    gated: bool = False,
    diagonal: float = 2.0,
    off_diagonal: float | None = None,
    share: float | None = None,
    start: Literal["workers", "annotations"] = "workers",
) -> None:
    r"""Annotations come from a few groups of annotators, each with a confusion matrix; workers need no names.

    Sites: ``weights (M,)``, or ``(J, M)`` with ``membership="worker"``; ``group_confusion (M, K, K)``; where gated
    ``gate (D, M)`` in place of the weights; ``prevalence (K,)``, ``truth (N,)``, ``annotation (A,)``. Derived:
    ``group_share (M,)``, ``group_entropy (M,)`` in nats, ``group_similarity (M,)`` to the identity, and with
    ``membership="worker"`` each worker's confusion matrix ``worker_confusion (J, K, K)``.

    Args:
        annotations: who labelled what; workers are named only for ``membership="worker"``.
        truth_prior: prior of the true labels; a prevalence with a flat Dirichlet by default.
        groups: number M of groups.
        membership: whether each annotation comes from one of the groups, or each worker has weights over them.
        truth: whether the annotations to a task share one truth, or each has its own, as in the paper.
        gated: whether the weights depend on the tasks' features, :math:`\alpha(x_i) = \text{softmax}(V^\top x_i)`, the
            paper's mixture of experts.
        diagonal: Dirichlet concentration of right annotations, :math:`\gamma_{kk}`.
        off_diagonal: of each wrong annotation, :math:`\gamma_{kl}`; :math:`1 / (K - 1)` by default.
        share: :math:`\eta`, concentration of each group's weight; 1 by default. Where each worker has weights it is 0.1
            by default, which puts workers into about one group each: at 1, where any weights are alike to the prior, EM
            takes workers for mixtures of groups that are more extreme than any worker.
        start: what k-means makes the groups of that EM starts from: workers with like confusion matrices (where none
            is named the groups start between the crowd as a whole and noise), or annotations that the others to their
            task contradict alike, as in the paper (:func:`.annotation_confusions`), which have to be in memory.

    Raises:
        UnknownNameError: ``membership``, ``truth`` or ``start`` is another word.
        StoryError: there is no group or there are more than annotations, no worker is named where workers have weights,
            the tasks have no features where these decide the weights, or a number is not positive.
    """
    n_groups, n_classes = _group_count(groups, annotations), annotations.n_classes
    check_name("membership", membership, ("answer", "worker"))
    check_name("truth", truth, ("shared", "answer"))
    check_start(start, membership)
    prior = diagonal_concentration(n_classes, diagonal, off_diagonal, wrong_classes(annotations))
    share = share_of_a_group(share, membership, n_groups, gated=gated)

    def start_of_groups(key: Array) -> Array:
        if start == "annotations":
            return annotation_confusions(annotations, n_groups, key)
        if annotations.worker is None or annotations.n_workers < n_groups:
            return graded_confusions(annotations, n_groups, key)
        points, n_workers = vote_confusions(annotations).reshape(annotations.n_workers, -1), n_real_workers(annotations)
        centres = k_means(points, n_groups, key, n_workers)[1].reshape(n_groups, n_classes, n_classes)
        if isinstance(n_workers, int):
            return centres
        return jnp.where(n_workers < n_groups, graded_confusions(annotations, n_groups, key), centres)

    with numpyro.plate("group", n_groups, dim=-2), numpyro.plate("class", n_classes, dim=-1):
        tables = numpyro.sample(
            "group_confusion",
            dist.Dirichlet(prior),
            infer={"event_dims": ["annotation"], "start": start_of_groups, "role": "group_confusion"},
        )
    emission: Emission
    if membership == "worker":
        if gated:
            raise StoryError("annotator_groups(gated=True) gives each annotation a group; it needs membership='answer'")
        by_worker = ("worker", named_workers(annotations))
        weights = sample_shares("weights", n_groups, share, "group", plate=by_worker)
        mixed = jnp.einsum("jm,mkl->jkl", weights, tables)
        emission = Confusion(mixed)
        derived("worker_confusion", mixed, "worker", "class", "annotation", role="confusion")
    elif gated:
        weights = _gate(annotations, n_groups)
        emission = Gated(tables, weights)
    else:
        weights = sample_shares("weights", n_groups, share, "group")
        emission = SharedConfusion(jnp.einsum("m,mkl->kl", weights, tables))
    log_probs = class_log_probs(annotations, truth_prior)
    if truth != "shared":
        refuse_probabilities(
            annotations, f"and annotator_groups(truth={truth!r}) has no annotations that share a truth"
        )
    shown = emission if truth == "shared" else PerAnnotation(emission, log_probs, annotations.evidence)
    with tasks(annotations, log_probs) as true_class:
        observe(true_class, shown, annotations)
    _describe(tables, weights, annotations, membership)


def share_of_a_group(share: float | None, membership: str, n_groups: int, *, gated: bool = False) -> float:
    """The concentration of a group's weight; where none is given that of one group for each worker, or of any shares.

    Raises:
        StoryError: it is given where no weights are drawn.
    """
    if share is None:
        return 0.1 if membership == "worker" else 1.0
    if gated or n_groups == 1:
        why = "the network gives the groups' weights" if gated else "one group has all the weight"
        raise StoryError(f"share={share!r} would be ignored: {why}; leave it out")
    return share


def check_start(start: str, membership: str) -> None:
    """Refuse a start of the groups that there is not, or one by annotations where groups are of workers.

    Raises:
        UnknownNameError: there is no such start.
        StoryError: with what would be accepted.
    """
    check_name("start", start, ("workers", "annotations"))
    if start == "annotations" and membership == "worker":
        raise StoryError("start='annotations' needs membership='answer': where workers have weights, they are grouped")


def _gate(annotations: Annotations, n_groups: int) -> Array:
    """Each task's weights over the groups, ``(N, M)``."""
    features = needed_features(annotations, "annotator_groups(gated=True)")
    x = jnp.asarray(features).reshape(annotations.n_tasks, -1)
    normal = dist.Normal(0.0, 1.0).expand((x.shape[-1] + 1, n_groups)).to_event(2)
    gate = numpyro.sample("gate", normal, infer={"event_dims": ["feature", "group"]})
    return jax.nn.softmax(x @ gate[:-1] + gate[-1])


def _describe(tables: Array, weights: Array, annotations: Annotations, membership: str) -> None:
    """Derive each group's share of the annotations, and its confusion matrix's entropy and similarity."""
    if membership == "worker":
        share = share_of_annotations(weights, annotations)
    else:
        is_real = real_tasks(annotations)
        counts = None if is_real is None else is_real[:, None]
        share = weights if weights.ndim == 1 else jnp.mean(weights, 0, where=counts)
    log_tables = jnp.log(jnp.where(tables > 0, tables, 1.0))
    derived("group_share", share, "group", role="group_share")
    derived("group_entropy", -(tables * log_tables).sum(-1).mean(-1), "group")
    derived("group_similarity", _similarity_to_identity(tables), "group")


def _similarity_to_identity(tables: Array) -> Array:
    """One minus the mean Jensen–Shannon divergence (bits) of confusion matrices' rows from the identity's: ``(M,)``."""
    right = jnp.diagonal(tables, axis1=-2, axis2=-1)
    middle = (1 + right) / 2  # of the right annotation; the others have half of the row's own probability
    from_identity = -jnp.log2(middle)
    hit = jnp.where(right > 0, right * jnp.log2(jnp.where(right > 0, right / middle, 1.0)), 0.0)
    return 1 - ((from_identity + hit + (1 - right)) / 2).mean(-1)


def _group_count(groups: int, annotations: Annotations) -> int:
    n_groups = whole("groups", groups)
    if n_groups > len(annotations.task):
        raise StoryError(
            f"groups={n_groups}: there are {len(annotations.task)} rows of annotations; give 1 to that many groups"
        )
    return n_groups
