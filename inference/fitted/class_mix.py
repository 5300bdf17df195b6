"""The crowd's mix of tasks: the classes' shares of the labels, over which a worker's scores are means.

It is as uncertain as the labels are, and together with the confusion matrices: where a class is taken for another, the
class has other shares and other rows. So scores in draws are taken over the mix of labels that are drawn with them.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...data import Annotations
from ...data.arrays import longer
from ...data.questions import Units
from ..densities.enumerated import Parameters
from ..densities.programs import compiled, key_of
from ..sources.on_disk import Files
from .fitted import Fitted
from .posterior import Posterior
from .remembered import once

LITTLE = 2**16  # annotations as far as which the mix is drawn; that of more tasks is nearly known


def class_mix(fit: Posterior | Fitted) -> np.ndarray:
    """The classes' shares of the labels, ``(K,)``; where workers are pairs with a question of its tasks, ``(J, K)``.

    Of comparisons they are of sides as they were shown, whatever the task.
    """
    shares, source = fit.class_shares, fit.source
    if isinstance(source, Annotations) and isinstance(source.workers, Units):
        total = np.zeros((len(source.questions), len(shares)))
        np.add.at(total, np.asarray(source.question), fit.posterior)
        shares = _of_workers(source.workers, source, total, shares)
    return _as_shown(shares, source)


def class_mix_draws(fit: Posterior | Fitted) -> np.ndarray:
    """The mix beside each draw of ``fit.with_uncertainty.confusion_draws``: ``(chain, draw, 1 or J, K)``.

    Of each draw's own labels, which are drawn given its parameters. It is the same for all, :func:`class_mix`, where it
    is nearly known, as of much data, and of labels by a rule, which count as known: ``(K,)`` or ``(J, K)``.
    """
    source = fit.source
    if not isinstance(source, Annotations) or source.n_rows > LITTLE:
        return class_mix(fit)
    if isinstance(fit, Posterior):
        if fit.rule is not None:
            return class_mix(fit)
        counts = fit.with_uncertainty.in_draws(_class_counts)
    else:
        counts = _class_counts(fit.with_uncertainty)
    shares = counts.sum(-2, keepdims=True) / max(source.n_tasks, 1)
    if isinstance(source.workers, Units):
        shares = _of_workers(source.workers, source, counts, shares[..., 0, :])
    return _as_shown(shares, source)


def _of_workers(workers: Units, source: Annotations, total: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Of each worker the shares on the own question, or on all: ``(..., J, K)`` of totals ``(..., Q, K)``."""
    own = source.questions.index_of(workers.questions)[workers.question]
    by_question = total / total.sum(-1, keepdims=True)
    return np.concatenate([by_question, shares[..., None, :]], axis=-2)[..., own, :]  # −1 is that of all questions


def _as_shown(shares: np.ndarray, source: Annotations | Files) -> np.ndarray:
    if not isinstance(source, Annotations) or source.mirrored is None:
        return shares
    part = float(np.average(source.mirrored, weights=source.count))
    return (1 - part) * shares + part * shares[..., source.kind.mirror(source.n_classes)]


@once
def _class_counts(fitted: Fitted) -> np.ndarray:
    """By question how many tasks are of each class, at labels drawn in each draw: ``(chain, draw, Q, K)``."""
    source, seen = fitted.annotations, fitted.at_size
    n_questions, n_classes = max(len(source.questions), 1), source.n_classes
    question = np.zeros(source.n_tasks, np.int32) if source.question is None else np.asarray(source.question)
    of_padded = n_questions * n_classes  # which are counted apart
    first = longer(question * n_classes, seen.annotations.n_tasks, of_padded)
    found = np.asarray(_drawn_counts(seen, key_of(0), first, n=of_padded + n_classes))[..., :of_padded]
    return found.reshape(*found.shape[:2], n_questions, n_classes)


@compiled(once=True, static=("n",))
def _drawn_counts(fitted: Fitted, key: Array, first: Array | np.ndarray, n: int) -> Array:
    def of_draw(draw: Parameters, key: Array) -> Array:
        return jnp.zeros(n).at[first + fitted.at(draw).drawn(key)].add(1.0)

    return fitted.over_draws(of_draw, jax.random.split(key, fitted.shape))
