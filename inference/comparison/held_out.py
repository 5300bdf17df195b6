r"""Log-probabilities of annotations that a fit has not seen, for any story.

The story runs on the annotations that it has seen: rows that are held out have the count 0, and weigh nothing. Its
emission then scores the held-out annotations.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import logsumexp

from ...data.arrays import counts
from ..densities.enumerated import Parameters
from ..densities.programs import compiled
from ..fit_story import refit
from ..fitted.fitted import Fitted
from ..fitted.pointwise import changed_by_one


def refit_without(fitted: Fitted, held: np.ndarray, method: str | None = None) -> Fitted:
    """The story fitted to all but some annotations, with the same seed and, by the same engine, the same options.

    Args:
        held: how many of each row's annotations are held out, ``(A,)``.
        method: another engine's name, with its default options; None for the fit's own.

    Returns:
        the new fit; its annotations have all rows, with the counts that are left.

    Raises:
        UnknownNameError: there is no such engine.
        ValueError: the fit is one of Pyro's.
    """
    return refit(fitted, fitted.annotations.replace(count=counts(fitted.annotations) - held), method)


@compiled
def reads_counts(fitted: Fitted) -> Array:
    """Return whether the truth prior or the emission depends on the annotations' counts, ``()`` bool.

    Such a story, for example one that takes a task's difficulty from its vote counts, has another truth prior or
    another emission where annotations are left out. The test is the derivative of truth prior and emission with respect
    to the counts, in a random direction.
    """
    annotations = fitted.annotations
    count = jnp.asarray(counts(annotations) if annotations.count is None else annotations.count)
    first = {name: value[0] for name, value in fitted.flat_draws.items()}

    def without_score(count: Array) -> list[Array]:
        at = fitted.with_data(annotations.replace(count=count)).at(first)
        leaves = jax.tree.leaves((at.truth_prior, at.likelihood.emission))
        return [leaf for leaf in map(jnp.asarray, leaves) if jnp.issubdtype(leaf.dtype, jnp.floating)]

    direction = jax.random.uniform(jax.random.key(0), count.shape, minval=0.5, maxval=1.5)
    _, moved = jax.jvp(without_score, (count.astype(float),), (direction,))
    return jnp.stack([(jnp.abs(part) > 0).any() for part in moved]).any()


@compiled
def predict_annotations(fitted: Fitted, number: Array) -> Array:
    r"""For held-out rows :math:`\log p(y_a \mid y_\text{seen})`, averaged over draws: ``(A,)``, 0 for the other rows.

    .. math:: p(y_a \mid y_\text{seen}) = E_{\theta \mid y_\text{seen}}
        \frac{p(y_{i, \text{seen}}, y_a \mid \theta)}{p(y_{i, \text{seen}} \mid \theta)}

    Args:
        fitted: the story at draws given the annotations that it has seen, which are counted; of each row to predict
            one annotation at least is not among them.
        number: of each row to predict within its task, −1 for the others, from :func:`.rounds`, ``(A,)``.
    """
    seen = fitted.annotations

    def of_draw(draw: Parameters) -> Array:
        at = fitted.at(draw)
        return changed_by_one(at, seen, number, 1) - at.log_likelihood[seen.task]

    return jnp.where(number >= 0, _log_mean_exp(fitted, of_draw, seen.n_rows), 0.0)


@compiled
def predict_tasks(fitted: Fitted, held: Array) -> Array:
    r"""Of each task with held-out rows :math:`\log E_\theta \, p(y_i \mid \theta)` over the draws: ``(N,)``.

    The truth is summed out, and all held-out annotations to a task are predicted together. Of truths that depend on
    each other all held-out annotations to the questions of a task are, and each question has an equal part of the sum.

    Args:
        fitted: the story at draws given the annotations that it has seen, which are counted; a task with held-out
            rows has no others.
        held: how many annotations of each row are held out, ``(A,)``.
    """
    unseen = fitted.annotations.replace(count=held)
    is_held = jax.ops.segment_sum((held > 0).astype(float), unseen.task, unseen.n_tasks) > 0

    def of_draw(draw: Parameters) -> Array:
        at = fitted.at(draw)
        own = at.likelihood.emission.by_task(unseen, unseen.label)
        if at.together is None:
            return logsumexp(at.log_joint + own, axis=-1)
        kinds = at.together.kinds
        gained = kinds.given(at.together.scores + own).log_likelihood - at.together.log_likelihood
        return jnp.where(is_held, (gained / jnp.maximum(kinds.by_task(is_held.astype(float)), 1.0))[kinds.task], 0.0)

    return _log_mean_exp(fitted, of_draw, fitted.annotations.n_tasks)


def _log_mean_exp(fitted: Fitted, of_draw: Callable[[Parameters], Array], size: int) -> Array:
    """The logarithm of the mean over draws of the exponential of a function of one draw, ``(size,)``."""

    def add(total: Array, draw: Parameters) -> tuple[Array, None]:
        return jnp.logaddexp(total, of_draw(draw)), None

    total, _ = jax.lax.scan(add, jnp.full(size, -jnp.inf), fitted.flat_draws)
    return total - jnp.log(int(np.prod(fitted.shape)))
