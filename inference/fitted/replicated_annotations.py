"""New annotations on the fitted design, from the posterior or from the prior, and the prior's log-density."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import logsumexp

from ...data import AnnotationError, Annotations
from ...data.arrays import counts
from ...models.parts.kernels import FAST
from ..densities.enumerated import Density, Parameters
from ..densities.prior import log_prior_by_site, prior_draws
from ..densities.programs import compiled, keys_of, traced
from .fitted import Fitted
from .named_draws import NamedArrays, parameter_arrays
from .pointwise import rounds, row_scores
from .posterior import Posterior, fitted_of

if TYPE_CHECKING:
    import xarray as xr

Unit = Literal["task", "annotation"]


def posterior_predictive(fit: Posterior | Fitted, *, seed: int = 0) -> xr.Dataset:
    """For each draw a true label of each task given its annotations, and new annotations of the same workers.

    Args:
        seed: the same seed gives the same replicates.

    Returns:
        ``truth (chain, draw, task)`` and ``annotation (chain, draw, row)``, as positions of classes.
    """
    fitted = fitted_of(fit)
    truth, new = _replicate(fitted, keys_of(seed, fitted.shape, FAST))
    variables = {
        "truth": (("chain", "draw", "task"), np.asarray(truth)),
        "annotation": (("chain", "draw", "row"), np.asarray(new)),
    }
    return NamedArrays(variables, {"task": fitted.annotations.tasks.coords()}).dataset()


def prior(fitted: Fitted, n: int, *, seed: int = 0) -> tuple[NamedArrays, np.ndarray]:
    """Draws from the story's prior on the fitted design, as one chain.

    Returns:
        the parameters with the dimensions chain, draw and named others; and annotations, ``(1, n, A)``.
    """
    drawn = prior_draws(fitted.model, fitted.data, keys_of(seed, n))
    one_chain = {name: np.asarray(value)[None] for name, value in drawn.items()}
    parameters = {name: value for name, value in one_chain.items() if name in fitted.draws}
    named = parameter_arrays(parameters, fitted.dims, fitted.annotations, fitted.model.hyperparameters)
    return named, one_chain["annotation"]


def predicted(fitted: Fitted, unit: Unit, *, seed: int = 0) -> np.ndarray:
    r"""For each draw new annotations of the rows, as the log-likelihood by this unit has them: ``(chain, draw, A)``.

    By task, :math:`\tilde y_i \sim p(y_i \mid \theta)`: the truth is drawn before any annotation of the task. By
    annotation, :math:`\tilde y_a \sim p(y_a \mid y_{i \setminus a}, \theta)`: given the other annotations of the task,
    each row for itself. Weighted by :math:`1 / p(y_u \mid \cdot, \theta)` these are draws of the leave-one-out
    predictive distribution of the unit.

    Args:
        unit: ``"task"`` or ``"annotation"``.

    Raises:
        AnnotationError: by annotation, where the story lets the annotations of a task depend on each other beyond its
            class, and rows stand for several annotations.
    """
    if unit == "task":
        keys = keys_of(seed, fitted.shape, FAST)
        return np.asarray(_replicate(fitted, keys, before=True)[1])
    keys = keys_of(seed, fitted.shape)
    annotations, count = fitted.annotations, counts(fitted.annotations)
    if not independent(fitted) and (count != 1).any():
        raise AnnotationError(
            f"{fitted.story}: rows that stand for several annotations cannot be predicted one annotation at a time; "
            "give each annotation a row (annotations.expanded()), or take log_likelihood='task'"
        )
    seen = fitted.with_data(fitted.data.replace(count=count))
    number = rounds(np.asarray(annotations.task), np.ones(annotations.n_rows, bool))
    return np.asarray(_replicate_rows(seen, keys, number))


def independent(fitted: Fitted) -> bool:
    """Return whether a task's annotations are independent given its class."""
    return traced(lambda: fitted.with_data(fitted.data).at(fitted.first_draw).likelihood.emission.independent)


def log_prior(fitted: Fitted) -> NamedArrays:
    """The log-density of each parameter's prior in each draw: by site, with the dimensions chain and draw."""
    return NamedArrays(
        {name: (("chain", "draw"), np.asarray(value)) for name, value in _log_prior(fitted.at_size).items()}
    )


@compiled(once=True)
def _log_prior(fitted: Fitted) -> Parameters:
    return fitted.over_draws(lambda draw: log_prior_by_site(fitted.model, draw | fitted.fixed, fitted.annotations))


@compiled(once=True, static=("before",))
def _replicate(fitted: Fitted, keys: Array, *, before: bool = False) -> tuple[Array, Array]:
    """Truths ``(chain, draw, N)`` and annotations ``(chain, draw, A)``, with one random key a draw.

    Args:
        keys: ``(chain, draw)``.
        before: whether a task's truth is drawn before any annotation of it, and not given its annotations.
    """
    annotations = fitted.annotations

    def once(draw: Parameters, key: Array) -> tuple[Array, Array]:
        at = fitted.at(draw)
        truth_key, annotation_key = jax.random.split(key)
        drawn = at.drawn if not before else partial(jax.random.categorical, logits=before_annotations(at, annotations))
        truth = drawn(truth_key)
        emission = at.likelihood.emission
        return truth, emission.sample(annotation_key, annotations.worker, annotations.task, truth[annotations.task])

    return fitted.over_draws(once, keys)


@compiled(once=True)
def _replicate_rows(fitted: Fitted, keys: Array, number: Array) -> Array:
    """Each row given the other rows of its task, ``(chain, draw, A)``; `number` is of the row within its task."""
    annotations = fitted.annotations
    task = jnp.asarray(annotations.task)

    def once(draw: Parameters, key: Array) -> Array:
        at = fitted.at(draw)
        emission = at.likelihood.emission
        truth_key, annotation_key = jax.random.split(key)
        if emission.independent:
            others = at.log_joint[task] - row_scores(emission, annotations)
            truth = jax.random.categorical(truth_key, others)
            return emission.sample(annotation_key, annotations.worker, task, truth)
        return jax.random.categorical(annotation_key, _substituted(at, annotations, number))

    return fitted.over_draws(once, keys)


def _substituted(at: Density, annotations: Annotations, number: Array) -> Array:
    """Log-weights ``(A, L)`` of what each row may be, by putting each in its place, one row of a task at a time."""
    task, label = jnp.asarray(annotations.task), jnp.asarray(annotations.label)
    emission = at.likelihood.emission
    before = at.log_joint - emission.by_task(annotations, label)

    def of_kind(kind: Array) -> Array:
        def put(r: Array, values: Array) -> Array:
            instead = jnp.where(number == r, kind, label)
            whole = logsumexp(before + emission.by_task(annotations, instead), axis=-1)
            return jnp.where(number == r, whole[task], values)

        return jax.lax.fori_loop(0, number.max() + 1, put, jnp.zeros(len(task)))

    return jax.lax.map(of_kind, jnp.arange(annotations.n_categories)).T


def before_annotations(at: Density, annotations: Annotations) -> Array:
    """Log-weights of the classes before any annotation, ``(N, K)``: of the prior, of evidence and of models."""
    if at.together is not None:
        own = at.likelihood.emission.by_task(annotations, jnp.asarray(annotations.label))
        return at.together.kinds.given(at.together.scores - own).log_joint
    weights = jnp.broadcast_to(at.truth_prior, (annotations.n_tasks, annotations.n_classes))
    if annotations.model_scores is not None:
        return at.log_joint - at.likelihood.emission.by_task(annotations, jnp.asarray(annotations.label))
    return weights if annotations.evidence is None else weights + annotations.evidence
