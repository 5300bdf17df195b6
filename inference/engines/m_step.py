r"""The gradient of the log-posterior, and the steps that follow from it: exact M-steps, Newton's steps.

A probability table is a Dirichlet site, such as the workers' confusion matrices or the prevalence. With :math:`L` the
log-posterior of the parameters, the true labels summed out and the tables in log-odds, the counts of a table's row are
:math:`n = \theta \odot \nabla_\theta L` (Fisher's identity): :math:`\alpha` of its Dirichlet prior, plus the expected
number of annotations, plus the contributions of other parameters' priors and of factors.

The density of log-odds is that of the probabilities times :math:`\prod_k \theta_k`. Its mode, :math:`\theta \propto
\alpha + n`, is the mean of the probabilities given the labels: it exists for every :math:`\alpha > 0`, has no zeros,
and lies where samplers and normal guides look for the parameters, which move in log-odds too.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from numpyro import handlers

from ...data import Annotations
from ...data.padding import real_tasks, task_copies
from ...models import Classifier
from ...models.parts.kernels import SMALLEST
from ...models.parts.truth_prior import prior_in_use
from ..densities.enumerated import Density, Parameters, density, is_latent
from ..densities.model import Model
from ..densities.sites import ParameterSpec, parameter_spec

NEWTON_STEPS = 5  # towards labels, from which a logistic regression learns at the start
CG_STEPS = 50  # at the most, for one Newton step
DAMPING = 1e-3  # of Newton's matrix, where weights have no prior


class Gradient(NamedTuple):
    """The log-posterior's gradient at some parameters."""

    counts: Parameters  # of each probability table, those of the prior included
    slope: Parameters  # of the other parameters, unconstrained
    at: Density


class Sums(NamedTuple):
    """Sums over tasks at some parameters."""

    counts: Parameters  # expected counts of each probability table
    slope: Parameters  # of the log-likelihood along the other parameters, unconstrained
    log_likelihood: Array


def gradient(model: Model, annotations: Annotations, spec: ParameterSpec, parameters: Parameters) -> Gradient:
    """Return the counts of the probability tables and the slopes of the others: the E-step of one EM iteration."""
    tables = {name: parameters[name] for name in spec.tables}

    def log_posterior(tables: Parameters, reals: Parameters) -> tuple[Array, Density]:
        at = density(model, parameters | tables | spec.from_reals(reals), annotations)
        return at.log_posterior_in_log_odds, at

    by = jax.grad(log_posterior, argnums=(0, 1), has_aux=True)
    (of_tables, slope), at = by(tables, spec.to_reals(parameters))
    return Gradient({name: table * of_tables[name] for name, table in tables.items()}, slope, at)


def sums_over_tasks(model: Model, annotations: Annotations, parameters: Parameters, votes: Array | None = None) -> Sums:
    """Return what the tasks add to the :func:`gradient`, without the priors; it is a sum over tasks.

    Args:
        votes: log-probabilities that are taken as evidence of the true labels, ``(N, K)``. Parameters are those without
            it: a story may have more of them where gold labels are evidence.
    """
    return sums_of(model, annotations, parameters, lambda at: at.total, votes)


def sums_of(
    model: Model,
    annotations: Annotations,
    parameters: Parameters,
    value: Callable[[Density], Array],
    votes: Array | None = None,
) -> Sums:
    """Return the value of a part of the log-posterior, in the place of the log-likelihood, with counts and slopes."""
    spec = parameter_spec(model, annotations)
    tables = {name: parameters[name] for name in spec.tables}
    annotations = annotations if votes is None else annotations.replace(evidence=votes)

    def at(tables: Parameters, reals: Parameters) -> Array:
        return value(density(model, parameters | tables | spec.from_reals(reals), annotations))

    found, (of_tables, slope) = jax.value_and_grad(at, (0, 1))(tables, spec.to_reals(parameters))
    return Sums({name: table * of_tables[name] for name, table in tables.items()}, slope, found)


def tables_mode(counts: Parameters, parameters: Parameters) -> Parameters:
    r"""Return the mode of each row, :math:`\propto \max(n, 0)`; a row without any counts stays as it is."""
    modes = {}
    for name, count in counts.items():
        count = jnp.maximum(count, 0.0)
        total = count.sum(-1, keepdims=True)
        mode = jnp.where(total > SMALLEST, count / jnp.maximum(total, SMALLEST), parameters[name])
        modes[name] = jnp.maximum(mode, 2 * SMALLEST)
    return modes


def newton(classifier: Classifier, annotations: Annotations, weights: Parameters, slope: Parameters) -> Parameters:
    r"""Return the step :math:`(H + \lambda I)^{-1} g` of a logistic regression's weights.

    :math:`H = \sum_i x_i x_i^\top \otimes (\text{diag}(p_i) - p_i p_i^\top)` is the information of the complete data,
    never formed, and :math:`g` the slope of the log-posterior: EM's gradient algorithm (Lange 1995), which is Raykar et
    al.'s (2010) Newton step with the label posterior held fixed.

    Args:
        weights: where it stands.
        slope: of the log-posterior.
    """

    def log_probs(weights: Parameters) -> Array:
        with handlers.substitute(data=weights), handlers.seed(rng_seed=0):
            return classifier(annotations)

    at, push = jax.linearize(log_probs, weights)
    pull = jax.linear_transpose(push, weights)
    scale = (annotations.population or annotations.n_tasks) / annotations.n_tasks
    precision = DAMPING if classifier.prior is None else classifier.prior**-2

    expected = scale * _of_real_tasks(jnp.exp(at), annotations)

    def information(v: Parameters) -> Parameters:
        (back,) = pull(expected * push(v))
        return jax.tree.map(lambda b, w: b + precision * w, back, v)

    step, _ = jax.scipy.sparse.linalg.cg(information, slope, tol=1e-4, maxiter=CG_STEPS)
    return step


def newton_sites(model: Model, annotations: Annotations) -> tuple[str, ...]:
    """The sites of a truth prior whose moves are Newton's; none of any other prior."""
    prior = prior_in_use(annotations, model.given_prior)
    if not getattr(prior, "newton", False):
        return ()
    sites = handlers.trace(handlers.seed(prior, rng_seed=0)).get_trace(annotations)
    return tuple(name for name, site in sites.items() if is_latent(site))


def newton_of_prior(
    model: Model, annotations: Annotations, spec: ParameterSpec, parameters: Parameters, slope: Parameters
) -> Parameters:
    r"""Return Newton's step of a truth prior's parameters, in unconstrained space; none of priors without such steps.

    As :func:`newton`, with the information :math:`\sum_i J_i^\top (\text{diag}(p_i) - p_i p_i^\top) J_i` of the
    complete data, by the derivative :math:`J_i` of a task's log-odds along the parameters, less the curvature of their
    own prior.

    Args:
        parameters: where it stands.
        slope: of the log-posterior along the parameters that are no tables.
    """
    if not (names := newton_sites(model, annotations)):
        return {}
    prior = prior_in_use(annotations, model.given_prior)

    def at(reals: Parameters) -> tuple[Array, Array]:
        own = {name: spec.bijections[name](real) for name, real in reals.items()}
        with handlers.trace() as sites, handlers.substitute(data=own), handlers.seed(rng_seed=0):
            log_probs = prior(annotations)
        return log_probs, sum(sites[name]["fn"].log_prob(sites[name]["value"]).sum() for name in names)

    reals = {name: spec.bijections[name].inv(parameters[name]) for name in names}
    log_probs, push = jax.linearize(lambda reals: at(reals)[0], reals)
    pull = jax.linear_transpose(push, reals)
    scale = (annotations.population or annotations.n_tasks) / annotations.n_tasks
    expected = scale * _of_real_tasks(jnp.exp(log_probs), annotations)

    def information(v: Parameters) -> Parameters:
        (back,) = pull(expected * push(v))
        _, bend = jax.jvp(jax.grad(lambda reals: at(reals)[1]), (reals,), (v,))
        return jax.tree.map(lambda b, c, w: b - c + DAMPING * w, back, bend, v)

    uphill = {name: slope[name] for name in names}
    step, _ = jax.scipy.sparse.linalg.cg(information, uphill, tol=1e-4, maxiter=CG_STEPS)
    return step


def learnt_from(target: Array, classifier: Classifier, annotations: Annotations, weights: Parameters) -> Parameters:
    """Return a logistic regression's weights after Newton's steps towards the probabilities ``target (N, K)``."""

    def fit(weights: Parameters) -> Array:
        with handlers.substitute(data=weights), handlers.seed(rng_seed=0):
            log_likelihood = (_of_real_tasks(target, annotations) * classifier(annotations)).sum()
        return log_likelihood - sum(_penalty(classifier, w) for w in weights.values())

    for _ in range(NEWTON_STEPS):
        moves = newton(classifier, annotations, weights, jax.grad(fit)(weights))
        weights = jax.tree.map(jnp.add, weights, moves)
    return weights


def _of_real_tasks(by_task: Array, annotations: Annotations) -> Array:
    """Weights ``(N, K)`` as often as tasks are there, padded ones not at all."""
    is_real, copies = real_tasks(annotations), task_copies(annotations)
    if copies is not None:
        return copies[:, None] * by_task
    return by_task if is_real is None else jnp.where(is_real[:, None], by_task, 0.0)


def _penalty(classifier: Classifier, weight: Array) -> Array:
    """Return the negative log-density of a weight's normal prior, up to a constant."""
    precision = DAMPING if classifier.prior is None else classifier.prior**-2
    return 0.5 * precision * (weight**2).sum()
