"""Share of right annotations of each worker: expected, and in draws."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...data import Annotations
from ...data.arrays import longer
from ...data.levels import verdicts
from ...data.some_tasks import some_tasks
from ...models.parts.abstaining import of_classes
from ...models.parts.own_classes import NEVER, own_of_tasks
from ..densities.enumerated import Parameters
from ..densities.programs import compiled, key_of
from .fitted import Fitted
from .misled import MisledShare

DRAWS = (200, 500)  # of truths for an interval, at the least and at the most
LITTLE = 2**16  # rows as far as which the truths of all tasks are drawn at the draws of the parameters
SURE = 0.999  # probability from which on a label of more is taken for the class that the story infers


def realised_accuracy(posterior: np.ndarray, annotations: Annotations, counted: np.ndarray | None = None) -> np.ndarray:
    r"""The expected share of each worker's annotations that equal the truth: ``(J,)``, NaN for a worker without any.

    .. math:: \frac{1}{n_j} \sum_{a \in j} P(z_{i_a} = y_a \mid y)

    Args:
        posterior: probabilities of the labels, ``(N, K)``, which allow for misled tasks (:mod:`.misled`).
        counted: whether a task's annotations count, ``(N,)``; all do by default.
    """
    annotations = annotations.of_classes()
    cell = np.asarray(annotations.task) * np.int64(annotations.n_classes) + np.asarray(annotations.label)
    right = np.ravel(posterior)[cell].astype(float, copy=False)
    weight, worker = _weight(annotations, counted), np.asarray(annotations.worker)
    weighted = right if weight is None else right * weight
    total, n = (np.bincount(worker, each, annotations.n_workers) for each in (weighted, weight))
    return np.minimum(total / _n_or_nan(n), 1.0)  # up to the rounding of the posterior


def n_truths(fitted: Fitted) -> int:
    """Return the number of truths to draw for an interval: one for each parameter draw, within :data:`DRAWS`."""
    return int(np.clip(np.prod(fitted.shape), *DRAWS))


def realised_accuracy_draws(
    fitted: Fitted, misled: MisledShare, n: int | None = None, seed: int = 0, counted: np.ndarray | None = None
) -> np.ndarray:
    """Return each worker's share of right annotations, at truths drawn from the posterior: ``(n, J)``.

    Args:
        misled: distribution of the share of tasks that mislead the whole crowd.
        n: truths, each at a draw of the parameters and of the share of misled tasks; :func:`n_truths` by default. Where
            truths outnumber parameter draws, several truths share a draw.
        counted: whether a task's annotations count, ``(N,)``; all do by default.
    """
    n = n_truths(fitted) if n is None else n
    n_parameters = min(n, int(np.prod(fitted.shape)))
    shape = (n_parameters, -(-n // n_parameters))
    of_draw = misled.draws(n, seed)
    shares = np.zeros(shape, np.float32).T
    shares.flat[:n] = of_draw
    annotations = fitted.annotations.of_classes()
    total = np.bincount(np.asarray(annotations.worker), _weight(annotations, counted), annotations.n_workers)
    counts = np.ones(fitted.annotations.n_tasks, bool) if counted is None else counted
    open_, right = _open_tasks(fitted, misled), np.zeros((n, annotations.n_workers))
    if not open_.all():
        right += _right_of_sure(fitted, ~open_ & counts, of_draw, np.random.default_rng(seed))
        fitted, counts = fitted.with_data(some_tasks(fitted.data, open_)), counts[open_]
    if open_.any():
        seen = fitted.thinned(n_parameters).at_size
        of_tasks = (longer(by_task, seen.annotations.n_tasks, False) for by_task in (misled.told[open_], counts))
        drawn: np.ndarray = np.asarray(_right(seen, shares.T, _Drawing(key_of(seed), *of_tasks)), float)
        right += drawn.swapaxes(0, 1).reshape(-1, drawn.shape[-1])[:n, : annotations.n_workers]
    return right / _n_or_nan(total)


def _open_tasks(fitted: Fitted, misled: MisledShare) -> np.ndarray:
    """The tasks whose truths are drawn, ``(N,)`` of bool: of much data those alone whose labels are uncertain."""
    annotations, every = fitted.annotations, np.ones(fitted.annotations.n_tasks, bool)
    own = any({"task", "row"} & set(fitted.dims.get(name, ("task",))) for name in fitted.draws | fitted.fixed)
    is_much = annotations.n_rows > LITTLE and annotations.count is None
    if not is_much or own or fitted.model.truth_prior.joint:
        return every
    return (fitted.posterior.max(-1) < SURE) | misled.told


def _right_of_sure(fitted: Fitted, sure: np.ndarray, shares: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Numbers of right annotations by each worker of tasks with sure labels, at each share of misled tasks: (n, J).

    They are right by two binomial distributions, of those that are the label and of the others, as if no worker
    annotated a task twice.
    """
    annotations = fitted.annotations.of_classes()
    task, worker = np.asarray(annotations.task), np.asarray(annotations.worker)
    label = np.where(sure, fitted.posterior.argmax(-1), -1)[task]
    given, others = (
        np.bincount(worker[which], minlength=annotations.n_workers)
        for which in (label == annotations.label, (label >= 0) & (label != annotations.label))
    )
    share = shares[:, None]
    return rng.binomial(given, 1 - share) + rng.binomial(others, share / max(annotations.n_classes - 1, 1))


class _Drawing(NamedTuple):
    """Inputs for drawing truths, beside the story and the shares of misled tasks."""

    key: Array
    told: Array | np.ndarray  # tasks that mislead nobody, (N,)
    counted: Array | np.ndarray  # whether a task's annotations count, (N,)


def _weight(annotations: Annotations, counted: np.ndarray | None) -> np.ndarray | None:
    """Return the weight of each row: its number of annotations, and 0 where its task does not count; None of 1 each."""
    if counted is not None:
        return annotations.row_counts * np.asarray(counted)[annotations.task]
    return None if annotations.count is None else annotations.row_counts


def _n_or_nan(n: np.ndarray) -> np.ndarray:
    return np.where(n > 0, n, np.nan)


def _other(key: Array, truth: Array, data: Annotations) -> Array:
    """Return another class of each task, ``(N,)``, drawn evenly from those that it may have."""
    own = own_of_tasks(data)
    if own is not None:
        others = own & (jnp.arange(data.n_classes) != truth[:, None])
        return jax.random.categorical(key, jnp.where(others, 0.0, NEVER)).astype(truth.dtype)
    farther = 1 + (jax.random.uniform(key, truth.shape) * (data.n_classes - 1)).astype(truth.dtype)
    return (truth + farther) % data.n_classes


@compiled(once=True, times="misled")
def _right(fitted: Fitted, misled: Array | np.ndarray, drawing: _Drawing) -> Array:
    """Numbers of right annotations, ``(D, R, J)``, at D draws of the parameters with R shares of misled tasks each."""
    data, label = of_classes(fitted.annotations, jnp.asarray(fitted.annotations.label))
    if data.scored:  # a level counts as the class that it lies in
        label = jnp.asarray(verdicts(data.n_levels, data.n_classes))[label - data.n_classes]
    weight = drawing.counted[data.task] * (1.0 if data.count is None else jnp.asarray(data.count))
    count = partial(jax.ops.segment_sum, segment_ids=jnp.asarray(data.worker), num_segments=data.n_workers)

    def at_parameters(row: tuple[Parameters, Array, Array]) -> Array:
        draw, keys, shares = row
        at = fitted.at(draw)

        def of_truth(row: tuple[Array, Array]) -> Array:
            key, share = row
            of_story, whether, which = jax.random.split(key, 3)
            truth = at.drawn(of_story)
            other = _other(which, truth, data)
            is_misled = (jax.random.uniform(whether, truth.shape) < share) & ~drawing.told
            return count((jnp.where(is_misled, other, truth)[data.task] == label) * weight)

        return jax.lax.map(of_truth, (keys, shares))

    keys = jax.random.split(drawing.key, misled.shape)
    return jax.lax.map(at_parameters, (fitted.flat_draws, keys, misled))
