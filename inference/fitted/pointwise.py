r"""The log-likelihood unit by unit: of each task, or of each annotation given the other annotations of its task."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...data import Annotations
from ..densities.enumerated import Parameters
from .fitted import Fitted


def log_likelihood_by_annotation(fitted: Fitted) -> np.ndarray:
    r""":math:`\log p(y_a \mid y_{i \setminus a}, \theta)` of each row in each draw: ``(chain, draw, A)``.

    The truth is summed out. Of a row that stands for several annotations it is that of one of them.
    """
    annotations = fitted.data.replace(count=counts(fitted.annotations))
    task = np.asarray(annotations.task)
    number = rounds(task, np.ones(len(task), bool))
    return np.asarray(leave_one_annotation_out(fitted.with_data(annotations), number, int(number.max()) + 1))


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


@partial(jax.jit, static_argnames="n_rounds")
def leave_one_annotation_out(fitted: Fitted, number: Array, n_rounds: int) -> Array:
    r"""For each draw :math:`\log p(y_a \mid y_{i \setminus a}, \theta)` of each row: ``(chain, draw, A)``.

    It is :math:`\log p(y_i \mid \theta) - \log p(y_{i \setminus a} \mid \theta)`, the truth summed out of both; one row
    of each task is left out at a time.

    Args:
        fitted: the story at its draws, of annotations with counts.
        number: of each row within its task, ``(A,)``.
        n_rounds: the largest number plus one.
    """
    annotations = fitted.annotations
    task, count = annotations.task, jnp.asarray(annotations.count)

    def of_draw(draw: Parameters) -> Array:
        whole = fitted.at(draw).log_likelihood

        def leave_out(r: Array, values: Array) -> Array:
            part = annotations.replace(count=count - (number == r))
            found = whole - fitted.with_data(part).at(draw).log_likelihood
            return jnp.where(number == r, found[task], values)

        return jax.lax.fori_loop(0, n_rounds, leave_out, jnp.zeros(len(task)))

    return fitted.over_draws(of_draw)
