r"""Log-probabilities of annotations that a story is not shown, for any story: rows that are left out count nothing."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...data import Annotations
from ..densities.enumerated import Parameters, density
from ..densities.model import Model


def counts(annotations: Annotations) -> np.ndarray:
    """How many annotations each row stands for, ``(A,)`` float32."""
    if annotations.count is None:
        return np.ones(annotations.n_rows, np.float32)
    return np.asarray(annotations.count, np.float32)


def rounds(task: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Number the chosen rows within each task, from 0; −1 for the others: rows of one number share no task.

    Args:
        task: of each row, ascending ``(A,)``.
        chosen: ``(A,)`` bool.
    """
    before = np.cumsum(chosen) - chosen
    first = np.searchsorted(task, task)
    return np.where(chosen, before - before[first], -1)


@partial(jax.jit, static_argnames=("model", "n_rounds"))
def leave_one_annotation_out(
    model: Model, annotations: Annotations, draws: Parameters, fixed: Parameters, number: Array, n_rounds: int
) -> Array:
    r"""For each draw :math:`\log p(y_a \mid y_{i \setminus a}, \theta)` of each row: ``(chain, draw, A)``.

    It is :math:`\log p(y_i \mid \theta) - \log p(y_{i \setminus a} \mid \theta)`, the truth summed out of both; one row
    of each task is left out at a time.

    Args:
        model: the story.
        annotations: with counts.
        draws: of the parameters, ``(chain, draw, ...)``.
        fixed: parameters without draws.
        number: of each row within its task, ``(A,)``.
        n_rounds: the largest number plus one.
    """
    task, count = annotations.task, jnp.asarray(annotations.count)

    def of_draw(draw: Parameters) -> Array:
        whole = density(model, draw | fixed, annotations).log_likelihood

        def leave_out(r: Array, values: Array) -> Array:
            part = annotations.replace(count=count - (number == r))
            found = whole - density(model, draw | fixed, part).log_likelihood
            return jnp.where(number == r, found[task], values)

        return jax.lax.fori_loop(0, n_rounds, leave_out, jnp.zeros(len(task)))

    return jax.lax.map(lambda chain: jax.lax.map(of_draw, chain), draws)


@partial(jax.jit, static_argnames=("model", "n_rounds"))
def predict_annotations(
    model: Model, seen: Annotations, draws: Parameters, fixed: Parameters, number: Array, n_rounds: int
) -> Array:
    r"""For rows that are not seen, :math:`\log p(y_a \mid y_\text{seen})`, averaged over draws: ``(A,)``, 0 for others.

    .. math:: p(y_a \mid y_\text{seen}) = E_{\theta \mid y_\text{seen}}
        \frac{p(y_{i, \text{seen}}, y_a \mid \theta)}{p(y_{i, \text{seen}} \mid \theta)}

    Args:
        model: the story.
        seen: with counts; of the rows to predict one annotation at least is not among them.
        draws: given ``seen``, ``(chain, draw, ...)``.
        fixed: parameters without draws.
        number: of each row to predict within its task, −1 for the others, ``(A,)``.
        n_rounds: the largest number plus one.
    """
    task, count = seen.task, jnp.asarray(seen.count)

    def add(total: Array, draw: Parameters) -> tuple[Array, None]:
        part = density(model, draw | fixed, seen).log_likelihood

        def put_in(r: Array, values: Array) -> Array:
            whole = density(model, draw | fixed, seen.replace(count=count + (number == r))).log_likelihood
            return jnp.where(number == r, (whole - part)[task], values)

        values = jax.lax.fori_loop(0, n_rounds, put_in, jnp.full(len(task), -jnp.inf))
        return jnp.logaddexp(total, values), None

    flat, n_draws = _flat(draws)
    total, _ = jax.lax.scan(add, jnp.full(len(task), -jnp.inf), flat)
    return jnp.where(number >= 0, total - jnp.log(n_draws), 0.0)


@partial(jax.jit, static_argnames="model")
def predict_tasks(model: Model, whole: Annotations, draws: Parameters, fixed: Parameters) -> Array:
    r"""Of each task :math:`\log E_\theta \, p(y_i \mid \theta)` over the draws, the truth summed out: ``(N,)``.

    Args:
        model: the story.
        whole: all annotations.
        draws: given the other tasks' annotations, ``(chain, draw, ...)``.
        fixed: parameters without draws.
    """

    def add(total: Array, draw: Parameters) -> tuple[Array, None]:
        return jnp.logaddexp(total, density(model, draw | fixed, whole).log_likelihood), None

    flat, n_draws = _flat(draws)
    total, _ = jax.lax.scan(add, jnp.full(whole.n_tasks, -jnp.inf), flat)
    return total - jnp.log(n_draws)


def _flat(draws: Parameters) -> tuple[Parameters, int]:
    """The draws of all chains in a row, and their number."""
    chains, n = next(iter(draws.values())).shape[:2]
    return jax.tree.map(lambda value: value.reshape(chains * n, *value.shape[2:]), draws), chains * n
