"""Totals of tasks over their questions, such as the score of a rubric."""

import jax
import numpy as np
import pandas as pd
from jax import Array

from ...data import AnnotationError, Annotations
from ...data.questions import Units
from ..densities.programs import compiled
from .fitted import Fitted
from .intervals import INTERVAL, of_draws
from .posterior import Posterior

TRUTHS = 500  # drawn of all tasks together


def totals(fit: Posterior, interval: float = INTERVAL, seed: int = 0) -> pd.DataFrame:
    r"""The sum of each task's true scores over its questions, :math:`\sum_q x_{z_{iq}}`, with its interval.

    Ordered classes have the values that their means are taken of; of two classes the second counts 1 and the first 0,
    so that the total is the number of questions, or tags, that are answered by the second. The interval is of draws of
    all truths of a task together, at draws of the parameters: where questions depend on each other
    (:class:`.CorrelatedQuestions`) it is wider than their own intervals say.

    Args:
        fit: of annotations with several questions a task.
        interval: mass, between 0 and 1.
        seed: of the draws of truths.

    Returns:
        By task: total, total_low, total_high, and questions, how many were asked.

    Raises:
        AnnotationError: one question is asked about each task, or there are more than two classes without an order.
    """
    annotations, units = fit.annotations, fit.annotations.tasks
    if not isinstance(units, Units):
        raise AnnotationError("totals are over several questions about each task: make the annotations with question=")
    values = class_values(annotations)
    expected = np.bincount(units.task, np.asarray(fit.posterior, float) @ values)
    drawn = np.stack([np.bincount(units.task, values[truth]) for truth in drawn_truths(fit, seed)])
    low, high = of_draws(drawn[None], interval, expected)
    asked = np.bincount(units.task)
    return pd.DataFrame(
        {"total": expected, "total_low": low, "total_high": high, "questions": asked}, units.tasks.to_index("task")
    )


def has_totals(fit: Posterior) -> bool:
    """Return whether tasks have several questions, whose classes can be summed."""
    if fit.on_disk or not isinstance(fit.annotations.tasks, Units):
        return False
    return fit.annotations.n_classes == 2 or fit.annotations.kind.in_order


def class_values(annotations: Annotations) -> np.ndarray:
    """The number that each class adds to a total, ``(K,)``.

    Raises:
        AnnotationError: there are more than two classes without an order.
    """
    return np.arange(2.0) if annotations.n_classes == 2 else annotations.kind.values(list(annotations.classes))


def drawn_truths(fit: Posterior, seed: int = 0) -> np.ndarray:
    """Classes of all tasks, about :data:`TRUTHS` times, drawn from the posterior: ``(S, N)``."""
    if fit.rule is not None:
        upto = np.asarray(fit.posterior, float).cumsum(-1)
        numbers = np.random.default_rng(seed).random((TRUTHS, len(upto), 1))
        return np.minimum((numbers > upto).sum(-1), upto.shape[-1] - 1)
    parts = []
    for fitted, weight in fit.with_uncertainty.weighty:
        n = max(1, round(TRUTHS * weight))
        seen = fitted.thinned(n).at_size
        keys = jax.random.split(jax.random.key(seed), (1, n))
        parts.append(np.asarray(_truths(seen, keys))[0, :, : fit.annotations.n_tasks])
    return np.concatenate(parts)


@compiled(once=True)
def _truths(fitted: Fitted, keys: Array) -> Array:
    return fitted.over_draws(lambda draw, key: fitted.at(draw).drawn(key), keys)
