"""A story with its truth summed out, for samplers, optimisers and guides that are not crowdppl's."""

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pandas as pd
from jax import Array
from jax.flatten_util import ravel_pytree
from numpyro import handlers
from numpyro.distributions import biject_to
from numpyro.distributions.transforms import Transform

from ...data import Annotations
from ...data.padding import task_copies
from ...models import Story, TruthPrior, find_story
from ...models.parts.classifier import UNTRAINED, training
from .enumerated import (
    Parameters,
    density,
    log_likelihood_of_tasks,
    scale_of,
    scores_of_tasks,
    site_values,
    sum_over_tasks,
    task_sites,
)
from .evidence import Gold, with_evidence, with_truth_prior
from .model import Model
from .probabilities import Probabilities, with_probabilities
from .programs import traced
from .ready_programs import use_program_cache
from .sites import check_rows, parameter_names, parameter_sites, starting_point

Point = Any  # a dict of arrays, or one array
"""A point in unconstrained space: arrays by site, or one vector ``(D,)``."""


@dataclass(frozen=True)
class Potential:
    """A log-density in unconstrained space, with the way back to the parameters. Made by :func:`potential`.

    All functions are pure, can be compiled and differentiated, and take one point: map them over draws with
    ``jax.vmap``.

    Args:
        log_density: of a point, the log-posterior of the parameters with the truth summed out and the log-determinant
            of the transforms added, up to a constant: ``()``.
        constrain: from a point to the parameters by site.
        unconstrain: from parameters by site to a point.
        label_probabilities: of a point, ``P(truth | annotations, parameters)``: ``(N, K)``.
        initial: a point to start from: where crowdppl's own engines start.
    """

    log_density: Callable[[Point], Array]
    constrain: Callable[[Point], Parameters]
    unconstrain: Callable[[Parameters], Point]
    label_probabilities: Callable[[Point], Array]
    initial: Point

    def as_vector(self) -> "Potential":
        """Return the log-density over one vector ``(D,)``, for samplers that take no dictionaries."""
        vector, by_site = ravel_pytree(self.initial)
        return Potential(
            lambda point: self.log_density(by_site(point)),
            lambda point: self.constrain(by_site(point)),
            lambda parameters: ravel_pytree(self.unconstrain(parameters))[0],
            lambda point: self.label_probabilities(by_site(point)),
            vector,
        )


def marginal(
    story: str | Story,
    annotations: Annotations,
    *,
    classifier: Any = None,
    truth_prior: TruthPrior | pd.DataFrame | np.ndarray | None = None,
    gold: Gold = None,
    evidence: pd.DataFrame | np.ndarray | None = None,
    probabilities: Probabilities = None,
    **hyperparameters: Any,
) -> tuple[Callable[[Annotations], None], tuple[Annotations]]:
    r"""A story as a NumPyro program with its truth summed out, and the program's arguments.

    The sites are the story's without ``truth`` and ``annotation``, all of them continuous, so that any of NumPyro's
    samplers and guides runs on it, also those that need no enumeration. The factor ``log_likelihood`` has in the plate
    ``task`` the likelihood of each task, :math:`\log \sum_k p(z_i = k, y_i \mid \theta)`, ``(N,)``.

    ```python
    program, arguments = cp.marginal("dawid_skene", annotations)
    mcmc = MCMC(NUTS(program), num_warmup=500, num_samples=500)
    mcmc.run(jax.random.key(0), *arguments)
    ```

    Args:
        story: a story's name, or any function that keeps the contract of a story.
        annotations: who labelled what.
        classifier: as in :func:`crowdppl.fit`. Weights of a classifier without a prior are ``numpyro.param`` sites,
            which optimisers train and samplers leave untrained.
        truth_prior: as in :func:`crowdppl.fit`.
        gold: as in :func:`crowdppl.fit`.
        evidence: as in :func:`crowdppl.fit`.
        probabilities: as in :func:`crowdppl.fit`.
        **hyperparameters: of the story.

    Returns:
        the program, and the tuple of its arguments.

    Raises:
        UnknownNameError: there is no story of that name.
        AnnotationError: gold labels, evidence or given probabilities do not fit the annotations.
        StoryError: the story cannot be fitted to these annotations with these hyperparameters.
        ValueError: both a classifier and a truth_prior are given.
    """
    model, data = _bound(story, annotations, classifier, truth_prior, gold, evidence, hyperparameters, probabilities)
    return marginal_program(model, by_task=True), (data,)


def potential(
    story: str | Story,
    annotations: Annotations,
    *,
    classifier: Any = None,
    truth_prior: TruthPrior | pd.DataFrame | np.ndarray | None = None,
    gold: Gold = None,
    evidence: pd.DataFrame | np.ndarray | None = None,
    probabilities: Probabilities = None,
    seed: int = 0,
    **hyperparameters: Any,
) -> Potential:
    r"""A story's log-posterior in unconstrained space with its truth summed out, for samplers of any library.

    .. math:: \log p(\theta(u), y) + \log \left| \det \frac{\partial \theta}{\partial u} \right|

    ```python
    target = cp.potential("dawid_skene", annotations)
    warmup = blackjax.window_adaptation(blackjax.nuts, target.log_density)
    (state, tuned), _ = warmup.run(key, target.initial, num_steps=500)
    ```

    Args:
        story: a story's name, or any function that keeps the contract of a story.
        annotations: who labelled what.
        classifier: as in :func:`crowdppl.fit`, with a prior; without one its weights stay as they are drawn at the
            start, and a warning says so.
        truth_prior: as in :func:`crowdppl.fit`.
        gold: as in :func:`crowdppl.fit`.
        evidence: as in :func:`crowdppl.fit`.
        probabilities: as in :func:`crowdppl.fit`.
        seed: of the initial point.
        **hyperparameters: of the story.

    Raises:
        UnknownNameError: there is no story of that name.
        AnnotationError: gold labels, evidence or given probabilities do not fit the annotations.
        StoryError: the story cannot be fitted to these annotations with these hyperparameters.
        ValueError: both a classifier and a truth_prior are given.
    """
    model, data = _bound(story, annotations, classifier, truth_prior, gold, evidence, hyperparameters, probabilities)
    untrained = parameter_names(model, data).without_posterior
    if untrained:
        warnings.warn(UNTRAINED, stacklevel=2)
    start = jax.jit(lambda key: starting_point(model, data, key))(jax.random.key(seed))
    held = {name: value for name, value in start.items() if name in untrained}

    def transforms() -> dict[str, Transform]:  # a support may depend on traced values: made anew in each trace
        sites = parameter_sites(model, data)
        return {name: biject_to(site["fn"].support) for name, site in sites.items() if name not in held}

    def constrain(point: Parameters) -> Parameters:
        return {name: transform(point[name]) for name, transform in transforms().items()}

    def unconstrain(parameters: Parameters) -> Parameters:
        return {name: transform.inv(jnp.asarray(parameters[name])) for name, transform in transforms().items()}

    def log_density(point: Parameters) -> Array:
        log_det, parameters = jnp.zeros(()), {}
        for name, transform in transforms().items():
            parameters[name] = transform(point[name])
            log_det += transform.log_abs_det_jacobian(point[name], parameters[name]).sum()
        return density(model, parameters | held, data).log_posterior + log_det

    def label_probabilities(point: Parameters) -> Array:
        return density(model, constrain(point) | held, data).posterior

    return Potential(log_density, constrain, unconstrain, label_probabilities, jax.jit(unconstrain)(start))


def marginal_program(
    model: Model,
    fixed: Parameters | None = None,
    *,
    train: bool = False,
    by_task: bool = False,
    proper: bool = False,
    weight: Array | float = 1.0,
) -> Callable[[Annotations], None]:
    """The story as a NumPyro program with ``truth`` summed out: the factor ``log_likelihood`` stands in its place.

    It has only continuous sites, so any of NumPyro's samplers, optimisers and guides runs on it.

    Args:
        fixed: values of sites that are not to be sampled or optimised.
        train: let classifiers run in training mode.
        by_task: have the factor's values by task, in the plate ``task``, and keep the derived quantities; engines need
            neither.
        proper: give parameters of padded tasks and workers a proper density, for samplers, instead of none.
        weight: what the log-likelihood of all tasks together is multiplied by, where they are a part of the data.
    """

    def program(annotations: Annotations) -> None:
        held = handlers.substitute(substitute_fn=site_values(fixed or {}))
        silent = handlers.block(hide_fn=lambda site: not by_task and site["type"] == "deterministic")
        with training() if train else nullcontext(), handlers.trace() as sites, silent, held:
            scored = task_sites(model, annotations, proper=proper)
        log_likelihood = log_likelihood_of_tasks(scored, scores_of_tasks(model, annotations, sites, scored))
        if not by_task:
            total = sum_over_tasks(log_likelihood, task_copies(annotations))
            numpyro.factor("log_likelihood", weight * scale_of(scored) * total)
            return
        with numpyro.plate("task", annotations.n_tasks, dim=-1), handlers.scale(scale=scale_of(scored)):
            numpyro.factor("log_likelihood", log_likelihood)

    return program


def _bound(
    story: str | Story,
    annotations: Annotations,
    classifier: Any,
    truth_prior: TruthPrior | pd.DataFrame | np.ndarray | None,
    gold: Gold,
    evidence: pd.DataFrame | np.ndarray | None,
    hyperparameters: dict[str, Any],
    probabilities: Probabilities = None,
) -> tuple[Model, Annotations]:
    """The story with its hyperparameters, checked, and its data as JAX's arrays."""
    use_program_cache()
    annotations = with_probabilities(annotations, probabilities)
    prior, annotations = with_truth_prior(annotations, truth_prior, classifier)
    model = Model(find_story(story), hyperparameters if prior is None else hyperparameters | {"truth_prior": prior})
    data = jax.tree.map(jnp.asarray, with_evidence(annotations, gold, evidence).replace(gold=None))
    traced(lambda: parameter_sites(model, data))  # a story that cannot be run says so at once
    check_rows(model, data)
    return model, data
