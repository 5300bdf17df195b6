r"""Expectation maximisation of any story, without a derivation per story.

With :math:`Z(\theta)` the likelihood with the true labels summed out, the expected counts of a table are

.. math:: n = \theta \odot \nabla_\theta \log Z(\theta)

(Fisher's identity), and its exact M-step under a :math:`\text{Dirichlet}(\alpha)` prior is
:math:`\theta' \propto \max(\alpha - 1 + n, 0)`: one gradient is one iteration. Parameters that are no tables climb the
expected complete-data log-joint, with the posterior of the labels held fixed, by gradient steps (generalised EM,
Dempster, Laird & Rubin 1977).

The engine is a pure :func:`init` and :func:`step` over an immutable state.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from ..data import Annotations
from ..models.emissions import SMALLEST
from .model import Anatomy, Density, Model, Parameters, anatomy, density, starting_point
from .outcome import Outcome
from .progress import progress_bar

CHUNK = 25  # iterations between two looks at the progress
RESTART_NOISE = 0.5  # of the votes, in every start after the first


class EMSettings(NamedTuple):
    """Options of ``method="em"``.

    Args:
        max_iterations: iterations of one start at the most.
        tolerance: relative change of the log-posterior below which EM has converged.
        restarts: starts; after the first, the votes to start from are perturbed. The best solution is kept.
        gradient_steps: steps of Adam in each M-step, for parameters that are no tables.
        learning_rate: of these steps.
        halvings: times that such an M-step is halved at the most, until the log-posterior does not fall.
    """

    max_iterations: int = 1000
    tolerance: float = 1e-6
    restarts: int = 1
    gradient_steps: int = 10
    learning_rate: float = 0.05
    halvings: int = 10


class EMState(NamedTuple):
    """Where EM stands."""

    parameters: Parameters  # by site, in their own space
    log_posterior: Array  # of the parameters that the last step started from
    change: Array  # its relative change in the last step
    optimizer: optax.OptState
    iteration: Array


def soft_votes(annotations: Annotations) -> Array:
    """Each class's share of a task's answers, ``(N, K)``; equal shares for a task without answers."""
    weight = 1.0 if annotations.count is None else annotations.count
    votes = jnp.zeros((annotations.n_tasks, annotations.n_classes)).at[annotations.task, annotations.label].add(weight)
    total = votes.sum(-1, keepdims=True)
    return jnp.where(total > 0, votes / jnp.maximum(total, SMALLEST), 1 / annotations.n_classes)


@partial(jax.jit, static_argnames=("model", "settings", "perturbed"))
def init(
    model: Model, annotations: Annotations, key: Array, settings: EMSettings, *, perturbed: bool = False
) -> EMState:
    """Uniform tables, moved by the M-step of the soft majority vote; other parameters at their prior's median.

    Args:
        model: the story.
        annotations: the data.
        key: for whatever is random.
        settings: of EM.
        perturbed: mix the votes with random ones, for a restart.
    """
    votes = soft_votes(annotations)
    if perturbed:
        random = jax.random.exponential(key, votes.shape)
        votes = (1 - RESTART_NOISE) * votes + RESTART_NOISE * random / random.sum(-1, keepdims=True)
    evidence = jnp.log(jnp.maximum(votes, SMALLEST))
    if annotations.evidence is not None:
        evidence = evidence + annotations.evidence
    parameters = starting_point(model, annotations, key)
    counts, _ = expected_counts(model, annotations.replace(evidence=evidence), parameters)
    parameters |= tables_mode(counts, parameters)
    optimizer = optax.adam(settings.learning_rate).init(_to_reals(anatomy(model, annotations), parameters))
    unknown = jnp.full((), jnp.inf, float)
    return EMState(parameters, -unknown, unknown, optimizer, jnp.int32(0))


def step(model: Model, annotations: Annotations, state: EMState, settings: EMSettings) -> EMState:
    """One iteration: E-step and M-step of the tables by one gradient, gradient steps for the other parameters."""
    old = state.parameters
    counts, at = expected_counts(model, annotations, old)
    new, optimizer = old | tables_mode(counts, old), state.optimizer
    parts = anatomy(model, annotations)
    if parts.bijections:
        new, optimizer = _climb(model, annotations, parts, new, at.posterior, optimizer, settings)
    if parts.bijections or parts.has_factors:
        new = _step_back(model, annotations, parts, old, new, at.log_posterior, settings.halvings)
    change = jnp.abs((at.log_posterior - state.log_posterior) / at.log_posterior)
    return EMState(new, at.log_posterior, change, optimizer, state.iteration + 1)


@partial(jax.jit, static_argnames=("model", "settings"))
def advance(
    model: Model, annotations: Annotations, state: EMState, n_steps: Array | int, settings: EMSettings
) -> tuple[EMState, Array]:
    """At most ``n_steps`` (up to :data:`CHUNK`) steps, fewer where EM converges.

    Returns:
        the state, and the log-posterior before each step ``(CHUNK,)``, NaN for steps not taken.
    """

    def unfinished(carry: tuple[EMState, Array, Array]) -> Array:
        state, _, i = carry
        return (i < n_steps) & (state.change > settings.tolerance)

    def body(carry: tuple[EMState, Array, Array]) -> tuple[EMState, Array, Array]:
        state, history, i = carry
        state = step(model, annotations, state, settings)
        return state, history.at[i].set(state.log_posterior), i + 1

    history = jnp.full(CHUNK, jnp.nan)
    state, history, _ = jax.lax.while_loop(unfinished, body, (state, history, jnp.int32(0)))
    return state, history


def expected_counts(model: Model, annotations: Annotations, parameters: Parameters) -> tuple[Parameters, Density]:
    r"""Of each table: prior and expected counts, :math:`\alpha - 1 + \theta \odot \nabla \log Z`, and the density."""

    def log_likelihood(parameters: Parameters) -> tuple[Array, Density]:
        at = density(model, parameters, annotations)
        return at.scale * at.log_likelihood.sum(), at

    gradient, at = jax.grad(log_likelihood, has_aux=True)(parameters)
    return {name: alpha - 1 + parameters[name] * gradient[name] for name, alpha in at.concentrations.items()}, at


def tables_mode(counts: Parameters, parameters: Parameters) -> Parameters:
    r"""The mode of each row, :math:`\propto \max(\alpha - 1 + n, 0)`; a row that nothing is known of stays."""
    modes = {}
    for name, count in counts.items():
        count = jnp.maximum(count, 0.0)
        total = count.sum(-1, keepdims=True)
        mode = jnp.where(total > SMALLEST, count / jnp.maximum(total, SMALLEST), parameters[name])
        modes[name] = jnp.maximum(mode, 2 * SMALLEST)
    return modes


def _climb(
    model: Model,
    annotations: Annotations,
    parts: Anatomy,
    parameters: Parameters,
    posterior: Array,
    optimizer: optax.OptState,
    settings: EMSettings,
) -> tuple[Parameters, optax.OptState]:
    """Gradient steps of the parameters that are no tables on the expected complete-data log-joint."""
    adam = optax.adam(settings.learning_rate)

    def loss(reals: Parameters) -> Array:
        at = density(model, parameters | _from_reals(parts, reals), annotations)
        expected = jnp.where(posterior > 0, posterior * at.log_joint, 0.0).sum()
        return -(at.scale * expected + at.log_prior)

    def climb(carry: tuple[Parameters, optax.OptState], _: None) -> tuple[tuple[Parameters, optax.OptState], None]:
        reals, optimizer = carry
        updates, optimizer = adam.update(jax.grad(loss)(reals), optimizer)
        return (optax.apply_updates(reals, updates), optimizer), None

    carry = (_to_reals(parts, parameters), optimizer)
    (reals, optimizer), _ = jax.lax.scan(climb, carry, length=settings.gradient_steps)
    return parameters | _from_reals(parts, reals), optimizer


def _step_back(
    model: Model,
    annotations: Annotations,
    parts: Anatomy,
    old: Parameters,
    new: Parameters,
    old_log_posterior: Array,
    halvings: int,
) -> Parameters:
    """Halve the way from ``new`` to ``old`` until the log-posterior does not fall; ``old`` after so many halvings."""
    old_reals, new_reals = _to_reals(parts, old), _to_reals(parts, new)

    def between(share: Array) -> Parameters:
        mix = jax.tree.map(lambda a, b: (1 - share) * a + share * b, (old, old_reals), (new, new_reals))
        return mix[0] | _from_reals(parts, mix[1])

    def falls(share: Array) -> Array:
        return ~(density(model, between(share), annotations).log_posterior >= old_log_posterior)

    def worth_halving(share: Array) -> Array:
        return (share > 0.5**halvings) & falls(share)

    share = jax.lax.while_loop(worth_halving, lambda share: share / 2, jnp.ones(()))
    return between(jnp.where(share > 0.5**halvings, share, 0.0))


def _to_reals(parts: Anatomy, parameters: Parameters) -> Parameters:
    return {name: bijection.inv(parameters[name]) for name, bijection in parts.bijections.items()}


def _from_reals(parts: Anatomy, reals: Parameters) -> Parameters:
    return {name: parts.bijections[name](real) for name, real in reals.items()}


def run(model: Model, annotations: Annotations, key: Array, settings: EMSettings, *, progress: bool) -> Outcome:
    """Run EM from each of ``settings.restarts`` starts, and keep the solution of the highest log-posterior.

    Raises:
        FloatingPointError: where the log-posterior is not finite, with the iteration.
    """
    solutions: list[tuple[EMState, list[float]]] = []
    with progress_bar("EM", settings.restarts * settings.max_iterations, show=progress) as tell:
        for restart in range(settings.restarts):
            start_key = key if restart == 0 else jax.random.fold_in(key, restart)
            state = init(model, annotations, start_key, settings, perturbed=restart > 0)
            history: list[float] = []
            while len(history) < settings.max_iterations and state.change > settings.tolerance:
                n_steps = min(CHUNK, settings.max_iterations - len(history))
                state, values = advance(model, annotations, state, n_steps, settings)
                history += np.asarray(values)[: int(state.iteration) - len(history)].tolist()
                if not np.isfinite(history[-1]):
                    raise FloatingPointError(f"the log-posterior is {history[-1]} at iteration {len(history)}")
                tell(restart * settings.max_iterations + len(history), f"log-posterior {history[-1]:,.2f}")
            beyond, _ = advance(model, annotations, state._replace(change=jnp.full((), jnp.inf, float)), 1, settings)
            history.append(float(beyond.log_posterior))  # of the last parameters, which no step has started from
            solutions.append((state, history))
    state, history = max(solutions, key=lambda solution: solution[1][-1])
    draws = {name: np.asarray(value)[None, None] for name, value in state.parameters.items()}
    return Outcome(draws, {}, np.array(history), {}, _not_converged(state, settings))


def interior_solution(
    model: Model, annotations: Annotations, key: Array, settings: EMSettings, *, progress: bool
) -> Parameters:
    r"""EM's solution moved off the edges of the tables, for samplers to start from.

    Each table goes to the mean of its conditional posterior, :math:`\propto \alpha + n`, instead of the mode.
    """
    outcome = run(model, annotations, key, settings, progress=progress)
    return _to_interior(model, annotations, {name: value[0, 0] for name, value in outcome.draws.items()})


@partial(jax.jit, static_argnames="model")
def _to_interior(model: Model, annotations: Annotations, solution: Parameters) -> Parameters:
    counts, _ = expected_counts(model, annotations, solution)
    return solution | {name: (count + 1) / (count + 1).sum(-1, keepdims=True) for name, count in counts.items()}


def _not_converged(state: EMState, settings: EMSettings) -> tuple[str, ...]:
    if state.change <= settings.tolerance:
        return ()
    return (
        f"EM did not converge in {settings.max_iterations} iterations: the log-posterior still changes by "
        f"{float(state.change):.1e} of itself a step (tolerance {settings.tolerance:.0e}); raise max_iterations",
    )
