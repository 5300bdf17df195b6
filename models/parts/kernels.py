"""Sums over annotations, rows of tables and draws of annotations, in the forms that are fast on the hardware.

Nothing else knows of hardware: an emission says what it computes, in these.
"""

import math
from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import logsumexp

from ...data import Annotations
from ...data.padding import counts_by_task

VECTORS = (8, 4, 2, 1)  # numbers that XLA on CPU gathers and scatters at once
UNCUT = 15  # columns beyond which they are not cut into such blocks
FEW = 2**12  # rows at the most that are gathered and summed plainly: of few, the rest takes long to compile
UNROLLED = 32  # numbers of an embedding at the most for which sums over them are written out
FAST = "rbg"  # a generator of random numbers that XLA compiles several times faster than JAX's own; not for jax.vmap
SMALLEST = 1e-30  # probabilities are kept above it, so that logarithms and their gradients stay finite in float32


def safe_log(probs: Array | float) -> Array:
    """Logarithms of probabilities, of which none is taken for less than :data:`SMALLEST`."""
    return jnp.log(jnp.maximum(probs, SMALLEST))


def sum_by_task(values: Array, annotations: Annotations) -> Array:
    """Sum rows ``(A, ...)`` over each task's annotations: ``(N, ...)``. Rows with a count weigh that much."""
    count = counts_by_task(annotations)
    if count is not None:
        count = count.reshape((-1,) + (1,) * (values.ndim - 1))
        values = jnp.where(count > 0, values * count, 0.0)  # a padded row may be log 0
    columns = values.reshape(len(values), math.prod(values.shape[1:]))  # there may be no row
    sums = [
        jax.ops.segment_sum(block, annotations.task, annotations.n_tasks, indices_are_sorted=True)
        for block in jnp.split(columns, _block_ends(columns.shape[-1], len(columns)), axis=-1)
    ]
    return jnp.concatenate(sums, axis=-1).reshape(annotations.n_tasks, *values.shape[1:])


def rows_of(table: Array, index: Array) -> Array:
    """Rows ``index (A,)`` of a table ``(R, C)``: ``(A, C)``.

    Of more than :data:`FEW` they are gathered in the blocks of columns that :func:`sum_by_task` sums.
    """
    if len(index) <= FEW:
        return table[index]
    blocks = jnp.split(table, _block_ends(table.shape[-1], len(index)), axis=-1)
    return jnp.concatenate([_materialised(block)[index] for block in blocks], axis=-1)


def _block_ends(n_columns: int, n_rows: int) -> list[int]:
    """The ends of blocks of columns whose widths XLA on CPU gathers and scatters as vectors; 10 are 8 and 2.

    Other widths take up to twice as long. Of many columns the rest after the last whole vector matters little, and of
    few rows (:data:`FEW`) all of it.
    """
    if n_columns > UNCUT or n_rows <= FEW:
        return []
    widths = [width for width in VECTORS if n_columns & width]
    return np.cumsum(widths)[:-1].tolist()


def drawn_kinds(key: Array, probs: Array) -> Array:
    """One column a row, ``(A,)``, drawn by the rows' probabilities ``(A, L)``.

    Of many columns, and by a key of :data:`FAST`, it is the one at a uniform number: one random number a row, instead
    of one for each of its columns, by which ten columns take a tenth of the time.
    """
    if probs.shape[-1] <= UNROLLED and str(jax.random.key_impl(key)) != FAST:
        return jax.random.categorical(key, safe_log(probs))
    return kind_at(jax.random.uniform(key, probs.shape[:-1]), upto(probs))


def kind_at(number: Array, sums: Array) -> Array:
    """The first column whose sum with those before it exceeds a number from 0 to 1: ``(A,)``.

    Args:
        number: of each row, ``(A,)``.
        sums: of rows of probabilities (:func:`upto`), ``(A, L)``.
    """
    return jnp.minimum((sums <= number[..., None] * sums[..., -1:]).sum(-1), sums.shape[-1] - 1)


def upto(probs: Array) -> Array:
    """The sum of each column with those before it, ``(..., L)``; on CPU in a third of the time of ``jnp.cumsum``."""
    probs = jnp.asarray(probs)
    return jnp.matmul(probs, jnp.triu(jnp.ones((probs.shape[-1],) * 2, probs.dtype)), precision="highest")


def numbers_by(key: Array, place: Array, n: int) -> Array:
    """Uniform numbers of each row, ``(A, n)``, which are the same in rows of one place ``(A,)``, such as one task.

    They are drawn by Threefry whatever the key's generator is, since under ``jax.vmap`` others take one row's key for
    all rows.
    """
    own = jax.random.wrap_key_data(jax.random.bits(key, (2,), jnp.uint32), impl="threefry2x32")
    return jax.vmap(lambda at: jax.random.uniform(jax.random.fold_in(own, at), (n,)))(jnp.asarray(place))


def row_weights(annotations: Annotations) -> Array:
    """The number of annotations that each row stands for, ``(A,)``."""
    return jnp.ones(len(annotations.task)) if annotations.count is None else jnp.asarray(annotations.count)


def mean_by_worker(tables: Array, annotations: Annotations, own: Array | None = None) -> Array:
    """The mean of each worker's rows, ``tables (A, K, L)``, by how often they count: ``(J, K, L)``.

    Where tasks have classes of their own, ``own (A, K)``, a class has the rows of tasks that may be of it.
    """
    worker = jnp.asarray(annotations.worker)
    weight = row_weights(annotations)[:, None] * (jnp.ones((1, 1)) if own is None else own)
    sums = jax.ops.segment_sum(tables * weight[..., None], worker, annotations.n_workers)
    total = jax.ops.segment_sum(weight, worker, annotations.n_workers)
    return sums / jnp.maximum(total, 1.0)[..., None]


def tempered_rows(rows: Array, power: Array | float) -> Array:
    r"""Rows of probabilities to a power, scaled to one again: :math:`\theta_l^\beta / \sum_m \theta_m^\beta`.

    The factor :math:`(\sum_l \theta_l)^\beta` is one, and has EM count an annotation for :math:`\beta` annotations.
    """
    logs = power * safe_log(rows)
    total = power * safe_log(rows.sum(-1, keepdims=True))
    return jnp.exp(logs - logsumexp(logs, axis=-1, keepdims=True) + total)


@jax.custom_jvp
def inner_products(workers: Array, tasks: Array, worker: Array | None, task: Array) -> Array:
    """Inner products of rows, ``workers[worker] · tasks[task]``: ``(A,)``.

    Number by number, which XLA on CPU turns into one vectorised loop. The slope is gathered row by row, since sums by
    position are faster so; the barrier keeps XLA from computing what a row shares once for each of its numbers.
    """
    products = [workers[:, e][worker] * tasks[:, e][task] for e in range(workers.shape[-1])]
    return reduce(jnp.add, products)


@inner_products.defjvp
def _inner_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    workers, tasks, worker, task = primals
    by_worker, by_task, *_ = tangents
    slope = (by_worker[worker] * tasks[task] + workers[worker] * by_task[task]).sum(-1)
    return inner_products(workers, tasks, worker, task), jax.lax.optimization_barrier(slope)


def _materialised(x: Array) -> Array:
    """``x`` itself, computed once: without the branch XLA takes the logarithm again for each gathered row."""
    return jax.lax.cond(jnp.isnan(x[0, 0]), lambda x: x + 1, lambda x: x, x)
