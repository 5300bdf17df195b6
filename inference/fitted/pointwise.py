r"""The log-likelihood by unit: of each task, or of each annotation given the other annotations to its task."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import logsumexp

from ...data import Annotations
from ...data.arrays import counts
from ...models import Emission
from ..densities.enumerated import Density, Parameters
from ..densities.programs import compiled
from .fitted import Fitted


def log_likelihood_by_annotation(fitted: Fitted) -> np.ndarray:
    r""":math:`\log p(y_a \mid y_{i \setminus a}, \theta)` of each row in each draw: ``(chain, draw, A)``.

    The truth is summed out. Of a row that stands for several annotations it is that of one of them.
    """
    annotations = fitted.data.replace(count=counts(fitted.annotations))
    task = np.asarray(annotations.task)
    number = rounds(task, np.ones(len(task), bool))
    return np.asarray(leave_one_annotation_out(fitted.with_data(annotations), number))


def rounds(task: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The chosen rows numbered within each task, from 0; −1 for the others: rows of one number share no task.

    Args:
        task: of each row, ascending ``(A,)``.
        chosen: ``(A,)`` bool.
    """
    before = np.cumsum(chosen) - chosen
    first = np.searchsorted(task, task)
    return np.where(chosen, before - before[first], -1)


@compiled(once=True)
def leave_one_annotation_out(fitted: Fitted, number: Array) -> Array:
    r"""For each draw :math:`\log p(y_a \mid y_{i \setminus a}, \theta)` of each row: ``(chain, draw, A)``.

    .. math::
        \log \sum_k p(z_i = k, y_i \mid \theta) - \log \sum_k p(z_i = k, y_{i \setminus a} \mid \theta), \qquad
        p(z_i = k, y_{i \setminus a} \mid \theta) = p(z_i = k, y_i \mid \theta) / P(y_a \mid z_i = k, \theta)

    where a task's annotations are independent given its class, so that all rows take one density. Where they are not,
    the second term is taken for one row of each task at a time.

    Args:
        fitted: the story at its draws, of annotations with counts; of a row that stands for several annotations one is
            left out.
        number: of each row within its task, from :func:`rounds`, ``(A,)``.
    """

    def of_draw(draw: Parameters) -> Array:
        at = fitted.at(draw)
        return at.log_likelihood[fitted.annotations.task] - changed_by_one(at, fitted.annotations, number, -1)

    return fitted.over_draws(of_draw)


def changed_by_one(at: Density, annotations: Annotations, number: Array, more: int) -> Array:
    """The log-likelihood of each row's task with one annotation of the row more, or less: ``(A,)``.

    Args:
        at: the density of the annotations.
        number: of each row within its task, from :func:`rounds`, ``(A,)``; rows of −1 have no meaning.
        more: 1, or −1 for one less.
    """
    task, count = jnp.asarray(annotations.task), jnp.asarray(annotations.count)
    emission = at.likelihood.emission
    if emission.independent:
        return logsumexp(at.log_joint[task] + more * row_scores(emission, annotations), axis=-1)
    before = at.log_joint - emission.by_task(annotations, annotations.label)

    def of_round(r: Array, values: Array) -> Array:
        changed = annotations.replace(count=count + more * (number == r))
        log_changed = logsumexp(before + emission.by_task(changed, annotations.label), axis=-1)
        return jnp.where(number == r, log_changed[task], values)

    return jax.lax.fori_loop(0, number.max() + 1, of_round, jnp.zeros(len(task)))


def row_scores(emission: Emission, annotations: Annotations) -> Array:
    """Log-probability of one annotation of each row under each class, ``(A, K)``."""
    return emission.log_prob(annotations.worker, annotations.task, annotations.label)
