r"""Log-probabilities of annotations that a story is not shown, for any story: rows that are left out count nothing."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..densities.enumerated import Parameters
from ..fitted.fitted import Fitted
from ..fitted.pointwise import counts, leave_one_annotation_out, rounds


@partial(jax.jit, static_argnames="n_rounds")
def predict_annotations(fitted: Fitted, number: Array, n_rounds: int) -> Array:
    r"""For rows that are not seen, :math:`\log p(y_a \mid y_\text{seen})`, averaged over draws: ``(A,)``, 0 for others.

    .. math:: p(y_a \mid y_\text{seen}) = E_{\theta \mid y_\text{seen}}
        \frac{p(y_{i, \text{seen}}, y_a \mid \theta)}{p(y_{i, \text{seen}} \mid \theta)}

    Args:
        fitted: the story at draws given the annotations that it has seen, which have counts; of each row to predict
            one annotation at least is not among them.
        number: of each row to predict within its task, −1 for the others, ``(A,)``.
        n_rounds: the largest number plus one.
    """
    seen = fitted.annotations
    task, count = seen.task, jnp.asarray(seen.count)

    def add(total: Array, draw: Parameters) -> tuple[Array, None]:
        part = fitted.at(draw).log_likelihood

        def put_in(r: Array, values: Array) -> Array:
            whole = fitted.with_data(seen.replace(count=count + (number == r))).at(draw).log_likelihood
            return jnp.where(number == r, (whole - part)[task], values)

        values = jax.lax.fori_loop(0, n_rounds, put_in, jnp.full(len(task), -jnp.inf))
        return jnp.logaddexp(total, values), None

    total, _ = jax.lax.scan(add, jnp.full(len(task), -jnp.inf), fitted.flat_draws)
    return jnp.where(number >= 0, total - jnp.log(int(np.prod(fitted.shape))), 0.0)


@jax.jit
def predict_tasks(fitted: Fitted) -> Array:
    r"""Of each task :math:`\log E_\theta \, p(y_i \mid \theta)` over the draws, the truth summed out: ``(N,)``.

    Args:
        fitted: the story at draws given the other tasks' annotations, beside all annotations.
    """

    def add(total: Array, draw: Parameters) -> tuple[Array, None]:
        return jnp.logaddexp(total, fitted.at(draw).log_likelihood), None

    total, _ = jax.lax.scan(add, jnp.full(fitted.annotations.n_tasks, -jnp.inf), fitted.flat_draws)
    return total - jnp.log(int(np.prod(fitted.shape)))


__all__ = ["counts", "leave_one_annotation_out", "predict_annotations", "predict_tasks", "rounds"]
