"""Embeddings of workers and of tasks as unit vectors, whose cosine says how near a worker is to a task."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array

from ...data import Annotations
from .kernels import SMALLEST
from .offsets import sample_offsets


def unit_embeddings(annotations: Annotations, size: int, hidden: int | None, *, bias: bool) -> tuple[Array, Array]:
    r"""Sample embeddings of workers, ``(J, E)``, and of tasks, ``(N, E)``, of length one.

    .. math::
        v_i = W_2^\top (W_1^\top x_i + b_1) + b_2, \qquad u_j = U^\top e_j + b

    with one layer, :math:`v_i = W^\top x_i`, where nothing is hidden. Nothing stands between the layers, as in the
    program of Chu, Ma & Wang (2021). :math:`e_j` are the worker's features, or the worker's number as one hot.

    Sites: ``task_embedding (D, E)`` and ``worker_embedding (J, E)``, or ``(F, E)`` where the workers have F features;
    with H hidden units ``task_hidden (D, H)`` and ``task_embedding (H, E)``; with biases ``task_bias (E,)``,
    ``worker_bias (E,)``, and ``task_hidden_bias (H,)``.

    Args:
        annotations: their tasks have features.
        size: E.
        hidden: H; None for one layer.
        bias: whether every layer has biases.
    """
    x = jnp.asarray(annotations.features).reshape(annotations.n_tasks, -1)
    inputs = "feature"
    if hidden is not None:
        x = x @ _weights("task_hidden", (x.shape[-1], hidden), (inputs, "hidden"))
        x = x + sample_offsets("task_hidden_bias", (hidden,), 1.0, ["hidden"]) if bias else x
        inputs = "hidden"
    x = x @ _weights("task_embedding", (x.shape[-1], size), (inputs, "embedding"))
    if annotations.worker_features is None:
        with numpyro.plate("worker", annotations.n_workers, dim=-1):
            workers = _weights("worker_embedding", (annotations.n_workers, size), ("embedding",))
    else:
        features = jnp.asarray(annotations.worker_features)
        workers = features @ _weights("worker_embedding", (features.shape[-1], size), ("worker_feature", "embedding"))
    if bias:
        x = x + sample_offsets("task_bias", (size,), 1.0, ["embedding"])
        workers = workers + sample_offsets("worker_bias", (size,), 1.0, ["embedding"])
    return _unit(workers), _unit(x)


def _weights(name: str, shape: tuple[int, int], dims: tuple[str, ...]) -> Array:
    """Standard normal weights, which start small and at random: at zero no direction is better than another.

    Args:
        shape: of the weights, ``(rows, columns)``.
        dims: of one matrix, or of one row of many in a plate.
    """

    def start(key: Array) -> Array:
        return jax.random.normal(key, shape) / np.sqrt(shape[-1])

    normal = dist.Normal(0.0, 1.0).expand(shape[-len(dims) :]).to_event(len(dims))
    return numpyro.sample(name, normal, infer={"event_dims": list(dims), "start": start})


def _unit(vectors: Array) -> Array:
    """Vectors of length one; that of a vector of zeros, such as a padded task's, is zero, and so are its slopes."""
    is_zero = (vectors == 0).all(-1, keepdims=True)
    some = jnp.where(is_zero, 1.0, vectors)
    return jnp.where(is_zero, 0.0, some / jnp.sqrt((some**2).sum(-1, keepdims=True) + SMALLEST))
