"""Starting points of EM for stories that have symmetries, made from the soft majority vote."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jax import Array

from ...data import Annotations
from ...data.batch import task_numbers
from ...data.ids import NO_IDS
from ...data.levels import level_shares
from ...data.padding import task_copies
from ...data.sharding import as_on_one_device
from .abstaining import of_classes
from .kernels import safe_log
from .whole_sums import over_all

LLOYD_STEPS = 25
SEEDINGS = 8  # of k-means, of which the tightest is kept
SMOOTHING = 1.0  # annotations of each kind added to every row of a worker's table


def soft_votes(annotations: Annotations) -> Array:
    """Probabilities of the classes by the annotations alone (:meth:`.Kind.votes`), ``(N, K)``.

    Equal shares for a task without any but abstentions.
    """
    votes = jnp.zeros((annotations.n_tasks, annotations.n_classes))
    if annotations.scored:
        shares = jnp.asarray(level_shares(annotations.n_levels, annotations.n_classes), votes.dtype)
        rows = shares[annotations.label - annotations.n_classes] * jnp.asarray(_weight(annotations))[..., None]
        return annotations.kind.votes(votes.at[annotations.task].add(rows))
    annotations = _of_classes(annotations)
    return annotations.kind.votes(votes.at[annotations.task, annotations.label].add(_weight(annotations)))


def vote_confusions(annotations: Annotations) -> Array:
    """Each worker's confusion matrix against the soft majority vote, smoothed: ``(J, K, K)``."""
    annotations = _of_classes(annotations)
    return _against(annotations, soft_votes(annotations))


def _against(annotations: Annotations, shares: Array) -> Array:
    """Each worker's smoothed rows of annotations by what tasks are with shares ``(N, M)``: ``(J, M, K)``."""
    n_workers, n_classes = annotations.n_workers, annotations.n_classes
    rows = shares[annotations.task] * jnp.asarray(_weight_in_all(annotations))[..., None]
    cell = jnp.asarray(annotations.worker) * n_classes + annotations.label
    counts = over_all(jax.ops.segment_sum(rows, cell, n_workers * n_classes))
    counts = counts.reshape(n_workers, n_classes, -1).swapaxes(-1, -2) + SMOOTHING
    return counts / counts.sum(-1, keepdims=True)


def subtype_confusions(annotations: Annotations, n_subtypes: int, key: Array) -> Array:
    """Each worker's rows for each subtype of each class, where tasks are given to subtypes at random: ``(J, K, M, K)``.

    (As Li, Rubinstein & Cohn 2019 start.)
    """
    annotations = _of_classes(annotations)
    n_classes = annotations.n_classes
    by_task = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, task_numbers(annotations))
    shares = jax.vmap(lambda key: jax.random.exponential(key, (n_classes, n_subtypes)))(by_task)
    shares = as_on_one_device(shares, annotations)
    shares = shares / shares.sum(-1, keepdims=True)  # Dirichlet(1, …, 1)
    shares = (shares * soft_votes(annotations)[..., None]).reshape(annotations.n_tasks, -1)
    return _against(annotations, shares).reshape(annotations.n_workers, n_classes, n_subtypes, n_classes)


def graded_confusions(annotations: Annotations, n_groups: int, key: Array) -> Array:
    """Tables from the crowd's own, against the soft majority vote, to near noise, slightly perturbed: ``(M, K, K)``."""
    annotations = _of_classes(annotations)
    n_classes = annotations.n_classes
    rows = soft_votes(annotations)[annotations.task] * jnp.asarray(_weight_in_all(annotations))[..., None]
    counts = over_all(jax.ops.segment_sum(rows, jnp.asarray(annotations.label), n_classes)).T + SMOOTHING
    crowd = counts / counts.sum(-1, keepdims=True)
    noise = (jnp.arange(n_groups) / n_groups)[:, None, None]
    jitter = jax.random.dirichlet(key, jnp.full(n_classes, 10.0), (n_groups, n_classes))
    tables = (1 - noise) * crowd + noise / n_classes
    return 0.9 * tables + 0.1 * jitter


def annotation_confusions(annotations: Annotations, n_groups: int, key: Array) -> Array:
    """Confusion matrices of annotations that the others to their task contradict alike: ``(M, K, K)``.

    An annotation is a point: the shares of its task's annotations that say each other class, with 0 for its own.
    k-means makes groups of the points, and a group's matrix counts its annotations against the soft majority vote. So
    does the program of Mena & Ñanculef, which besides turns and scales the points.

    Args:
        annotations: the data, all of them: of data in chunks the start would be another.
        n_groups: how many groups M.
    """
    annotations = _of_classes(annotations)
    n_classes, label = annotations.n_classes, jnp.asarray(annotations.label)
    votes = soft_votes(annotations)[annotations.task]
    weight = jnp.broadcast_to(jnp.asarray(_weight_in_all(annotations), float), label.shape)
    group, _ = k_means(votes * (1 - jax.nn.one_hot(label, n_classes)), n_groups, key, weight=weight)
    counts = jax.ops.segment_sum(votes * weight[:, None], group * n_classes + label, n_groups * n_classes)
    counts = counts.reshape(n_groups, n_classes, n_classes).swapaxes(-1, -2) + SMOOTHING
    return counts / counts.sum(-1, keepdims=True)


def k_means(
    points: Array,
    n_clusters: int,
    key: Array,
    n_points: Array | int | None = None,
    *,
    weight: Array | None = None,
) -> tuple[Array, Array]:
    """Cluster points ``(n, d)`` by Lloyd's algorithm (Lloyd 1982) from a few random seedings, the tightest kept.

    A seeding takes points one after the other, each with a probability that grows with its squared distance from
    those taken before (Arthur & Vassilvitskii 2007). A cluster that loses its points stays where it is.

    Args:
        points: the points.
        n_clusters: how many clusters.
        n_points: how many of the points count, the first ones; all by default.
        weight: how many points each stands for, ``(n,)``, instead of `n_points`.

    Returns:
        the cluster of each point ``(n,)``, and the centres ``(n_clusters, d)``.
    """
    points = jnp.asarray(points)
    if weight is None:
        weight = (jnp.arange(len(points)) < (len(points) if n_points is None else n_points)).astype(points.dtype)
        first = partial(jax.random.randint, shape=(), minval=0, maxval=weight.sum().astype(int))
    else:
        first = partial(jax.random.categorical, logits=jnp.log(weight))

    def run(key: Array) -> tuple[Array, Array, Array]:
        seeds = _seed(points, weight, n_clusters, first, key)
        centres, _ = jax.lax.scan(_move, seeds, None, length=LLOYD_STEPS)
        distances = _distances(points, centres)
        return (weight * distances.min(-1)).sum(), distances.argmin(-1), centres

    def _move(centres: Array, _: None) -> tuple[Array, None]:
        nearest = jax.nn.one_hot(_distances(points, centres).argmin(-1), n_clusters) * weight[:, None]
        size = nearest.sum(0)[:, None]
        return jnp.where(size > 0, nearest.T @ points / jnp.maximum(size, 1.0), centres), None

    spread, labels, centres = jax.lax.map(run, jax.random.split(key, SEEDINGS))
    best = spread.argmin()
    return labels[best], centres[best]


def _seed(points: Array, weight: Array, n_clusters: int, first: Callable[[Array], Array], key: Array) -> Array:
    """Points of positive weight to start from, as in k-means++: ``(n_clusters, d)``."""
    keys = jax.random.split(key, n_clusters)
    centres = jnp.broadcast_to(points[first(keys[0])], (n_clusters, points.shape[-1]))
    for i in range(1, n_clusters):
        nearest = _distances(points, centres).min(-1)  # centres not yet chosen stand on the first
        far = safe_log(nearest) + jnp.log(weight)
        centres = centres.at[i].set(points[jax.random.categorical(keys[i], far)])
    return centres


def _distances(points: Array, centres: Array) -> Array:
    """Squared Euclidean distances, ``(n, n_clusters)``."""
    squares = (points**2).sum(-1)[:, None] - 2 * points @ centres.T + (centres**2).sum(-1)
    return jnp.maximum(squares, 0.0)


def _weight(annotations: Annotations) -> Array | float:
    return 1.0 if annotations.count is None else annotations.count


def _weight_in_all(annotations: Annotations) -> Array | float:
    """Weights of rows in sums over tasks, some of which may stand for several."""
    copies = task_copies(annotations)
    return _weight(annotations) if copies is None else _weight(annotations) * copies[annotations.task]


def _of_classes(annotations: Annotations) -> Annotations:
    """The annotations with abstentions counted 0 times: nothing of the classes starts from them."""
    if not len(annotations.abstentions):
        return annotations
    given, label = of_classes(annotations, jnp.asarray(annotations.label))
    return given.replace(label=label, abstentions=NO_IDS)
