r"""An annotation follows a confusion matrix that all workers share, or the worker's own (Chu, Ma & Wang 2021, CoNAL).

.. math::
    C_k &\sim \text{Dirichlet}(\gamma_k), \quad B_{jk} \sim \text{Dirichlet}(\gamma_k) & (K, K), (J, K, K) \\
    \omega_{ij} &= \sigma\left(\frac{u_j}{|u_j|} \cdot \frac{v_i}{|v_i|}\right), \quad v_i = W^\top x_i & (A) \\
    z_i &\sim \text{Categorical}(f(x_i)) & (N) \\
    P(y_a = l \mid z_i = k) &= \omega_{ij} C_{kl} + (1 - \omega_{ij}) B_{jkl} & (A)

(Their equations 3 to 5; :math:`W` and :math:`u` have standard normal priors.) Without features of the tasks the switch
:math:`\omega_j` is a coin of each worker. Their regulariser adds
:math:`\lambda \sum_j \lVert C - B_j \rVert_2` to the log-posterior, which drives the confusion matrices apart.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array

from ..data import Annotations
from .parts.concentration import diagonal_concentration, positive, whole
from .parts.derived import derived
from .parts.emissions import SMALLEST, Confusion, Emission, Switch
from .parts.story_error import StoryError
from .parts.truth import named_workers, observe, tasks
from .parts.truth_prior import TruthPrior
from .parts.whole_sums import over_all


def common_individual(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    by_task: bool | None = None,
    embedding: int = 20,
    separation: float = 0.0,
    diagonal: float = 2.0,
    off_diagonal: float | None = None,
    coin: float = 1.0,
) -> None:
    r"""Annotations follow a confusion matrix that all workers have in common, or the worker's own, by a switch.

    Sites: ``common (K, K)``, ``individual (J, K, K)``; with a switch by task ``task_embedding (D, E)`` and
    ``worker_embedding (J, E)``, or ``(F, E)`` where the workers have F features; else ``coin (J, 2)`` (individual,
    common). Derived: ``switch (A,)``, the probability that an annotation follows the common one, and its means
    ``switch_by_worker (J,)`` and ``switch_by_task (N,)``.

    Args:
        annotations: who labelled what; workers are named.
        truth_prior: prior of the true labels; a prevalence with a flat Dirichlet by default.
        by_task: whether the switch depends on the tasks' features; None for yes where there are features.
        embedding: E, length of the embeddings.
        separation: :math:`\lambda`, weight of the distance of each worker's confusion matrix from the common one, in
            nats; the paper's :math:`10^{-5}` is of a mean over tasks, so it is :math:`10^{-5} N` here.
        diagonal: Dirichlet concentration of right annotations, :math:`\gamma_{kk}`.
        off_diagonal: of each wrong annotation, :math:`\gamma_{kl}`; :math:`1 / (K - 1)` by default.
        coin: concentration of both sides of a worker's coin.

    Raises:
        StoryError: no worker is named, a number is not positive, or the switch is to depend on features that the tasks
            do not have.
    """
    n_workers, n_classes = named_workers(annotations), annotations.n_classes
    prior = diagonal_concentration(n_classes, diagonal, off_diagonal)
    if not separation >= 0:
        raise StoryError(f"separation={separation!r}: a number from 0 is needed")
    with numpyro.plate("class", n_classes, dim=-1):
        common = numpyro.sample(
            "common", dist.Dirichlet(prior), infer={"event_dims": ["annotation"], "kind": "confusion"}
        )
    with numpyro.plate("worker", n_workers, dim=-1):
        rows = dist.Dirichlet(prior).to_event(1)
        individual = numpyro.sample(
            "individual", rows, infer={"event_dims": ["class", "annotation"], "kind": "confusion"}
        )
    if separation:
        distance = jnp.sqrt(((common - individual) ** 2).sum((-1, -2)) + SMALLEST)
        with numpyro.plate("worker", n_workers, dim=-1):
            numpyro.factor("separation", separation * distance)
    if annotations.features is not None if by_task is None else by_task:
        workers, task = _embeddings(annotations, whole("embedding", embedding))
        switched = Switch(common, individual, workers, task)
        emission: Emission = switched
        share = switched.switch(annotations.worker, annotations.task)
    else:
        even = jnp.full(2, positive("coin", coin))
        with numpyro.plate("worker", n_workers, dim=-1):
            toss = numpyro.sample("coin", dist.Dirichlet(even), infer={"event_dims": ["is_common"]})
        mine, ours = toss[:, 0, None, None], toss[:, 1, None, None]
        emission = Confusion(mine * individual + ours * common)
        share = toss[jnp.asarray(annotations.worker), 1]
    with tasks(annotations, truth_prior) as truth:
        observe(truth, emission, annotations)
    derived("switch", share, "row", kind="switch")
    by_worker = _mean(share, annotations, annotations.worker, n_workers, over_all)
    derived("switch_by_worker", by_worker, "worker", kind="switch")
    derived("switch_by_task", _mean(share, annotations, annotations.task, annotations.n_tasks), "task", kind="switch")


def _embeddings(annotations: Annotations, size: int) -> tuple[Array, Array]:
    """Unit vectors of the workers ``(J, E)`` and of the tasks ``(N, E)``."""
    if annotations.features is None:
        raise StoryError(
            "common_individual(by_task=True) needs features of the tasks, and the annotations have none; give them "
            "with Annotations.from_frame(frame, features={task: vector, …}), or by_task=False for a coin of each worker"
        )
    x = jnp.asarray(annotations.features).reshape(annotations.n_tasks, -1)
    to_task = _weights("task_embedding", (x.shape[-1], size))
    if annotations.worker_features is None:
        with numpyro.plate("worker", annotations.n_workers, dim=-1):
            workers = _weights("worker_embedding", (annotations.n_workers, size), event_dim=1)
    else:
        features = jnp.asarray(annotations.worker_features)
        workers = features @ _weights("worker_embedding", (features.shape[-1], size))
    return _unit(workers), _unit(x @ to_task)


def _weights(name: str, shape: tuple[int, int], event_dim: int = 2) -> Array:
    """Standard normal weights, which start small and at random: at zero no direction is better than another.

    Args:
        name: of the site.
        shape: of the weights, ``(rows, E)``.
        event_dim: 2 for one matrix, 1 for rows in a plate.
    """

    def start(key: Array) -> Array:
        return jax.random.normal(key, shape) / np.sqrt(shape[-1])

    normal = dist.Normal(0.0, 1.0).expand(shape[-event_dim:]).to_event(event_dim)
    dims = ["feature", "embedding"][-event_dim:]
    return numpyro.sample(name, normal, infer={"event_dims": dims, "start": start})


def _unit(vectors: Array) -> Array:
    return vectors / jnp.sqrt((vectors**2).sum(-1, keepdims=True) + SMALLEST)


def _mean(
    share: Array,
    annotations: Annotations,
    index: Array | None,
    size: int,
    whole: Callable[[Array], Array] = lambda total: total,
) -> Array:
    """The mean over the rows of each unit; ``whole`` completes sums of units that have rows elsewhere too."""
    weight = jnp.ones_like(share) if annotations.count is None else annotations.count
    total, of = (whole(jax.ops.segment_sum(x, jnp.asarray(index), size)) for x in (weight * share, weight))
    return jnp.where(of > 0, total / jnp.maximum(of, 1.0), jnp.nan)
