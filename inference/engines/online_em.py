r"""Stochastic EM as a climber: the parameters take a step after each batch of files instead of after each pass.

With :math:`n_t` the expected counts of the batch of step t, scaled to all tasks, their running average is

.. math:: s_t = (1 - \gamma_t) s_{t-1} + \gamma_t n_t, \qquad \gamma_t = (t + 2)^{-0.6}

and the probability tables take the exact M-step of the average (Cappé & Moulines 2009, "On-line
expectation-maximization algorithm for latent data models"). Other parameters take a step of Adam along the batch's
slope, whose rate falls with the passes as :math:`\gamma` does with the steps. The average begins at the counts of the
soft majority vote. A few passes lead near to where EM ends, the nearer the more passes; memory does not grow with the
number of tasks.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from ...data import Annotations
from ...data.padding import real_tasks
from ..densities.enumerated import Parameters, density
from ..densities.model import Model
from ..densities.programs import compiled
from ..densities.sites import parameter_spec
from ..sources.memory import Minibatch
from ..sources.on_disk import Files
from ..sources.starting import parameter_shapes, start
from .checkpoints import NO_CHECKPOINTS, Checkpoints
from .climber import climb
from .looks import PART, look_over, lost, prior_sums
from .m_step import Sums, sums_over_tasks, tables_mode
from .outcome import Outcome
from .progress import progress_bar
from .settings import EMSettings

FORGETTING = 0.6  # exponent of the step sizes, between a half and one
PASSES = 5  # where the user says nothing


class OnlineState(NamedTuple):
    """The state between two batches."""

    parameters: Parameters
    counts: Parameters  # running average of each table's expected counts, those of the prior not included
    optimizer: optax.OptState
    steps: Array  # batches seen
    total: Array  # log-likelihood of this pass's batches so far, each at the parameters before its step
    lost: Array  # what rounding has taken from it
    log_prior: Array  # at the end of a pass


class BatchLook(NamedTuple):
    """The gradient at one point, of a batch and of the priors."""

    data: Sums
    prior: Sums
    scale: Array  # all tasks for each task of the batch


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class OnlineEM:
    """Stochastic EM of a story over files: :class:`.InOrder`."""

    model: Model
    settings: EMSettings  # epochs and learning_rate
    orders: Array  # random key of the batches' order
    n_tasks: int
    n_batches: int

    moves: ClassVar[str] = "batch"
    most: ClassVar[int] = 1
    quantity: ClassVar[str] = "log-posterior"
    stage: ClassVar[str] = "stochastic"

    def order(self, state: OnlineState, n_batches: int) -> tuple[np.ndarray, int]:
        """Return the batches in an order that key and pass decide, and how many of them were seen."""
        passes, begin = divmod(int(state.steps), n_batches)
        return np.asarray(jax.random.permutation(jax.random.fold_in(self.orders, passes), n_batches)), begin

    def point(self, like: Annotations, state: OnlineState) -> Parameters:
        """Return the parameters."""
        return state.parameters

    def look(self, like: Annotations, batch: Minibatch, at: Parameters) -> BatchLook:
        """Return the gradients there: two programs, since one that is pulled back twice takes longer than both."""
        n_tasks = jnp.sum(jnp.asarray(real_tasks(batch.annotations)))
        data = sums_over_tasks(self.model, batch.annotations, at)
        return BatchLook(data, prior_sums(self.model, batch.annotations, at)[0], self.n_tasks / n_tasks)

    def step(self, like: Annotations, state: OnlineState, at: Parameters, look: BatchLook) -> OnlineState:
        """Return the state after the step of one batch."""
        spec = parameter_spec(self.model, like)
        (data, prior, scale), seen = look, jnp.asarray(state.steps + 1, float)
        gamma = (seen + 1) ** -FORGETTING
        counts = {name: (1 - gamma) * state.counts[name] + gamma * scale * data.counts[name] for name in data.counts}
        new = at | tables_mode({name: counts[name] + prior.counts[name] for name in counts}, at)
        optimizer = state.optimizer
        if spec.bijections:
            rate = self.settings.learning_rate * (1 + seen / self.n_batches) ** -FORGETTING
            reals = spec.to_reals(at)
            downhill = jax.tree.map(lambda of_batch, of_prior: -(scale * of_batch + of_prior), data.slope, prior.slope)
            moves, optimizer = optax.adam(rate).update(downhill, optimizer, reals)
            new = new | spec.from_reals(jax.tree.map(jnp.add, reals, moves))
        before, rounding = (
            jnp.where(state.steps % self.n_batches == 0, 0.0, value) for value in (state.total, state.lost)
        )
        total = before + data.log_likelihood
        rounding = lost(rounding, before, data.log_likelihood, total)
        is_last = (state.steps + 1) % self.n_batches == 0
        log_prior = jax.lax.cond(is_last, self._log_prior(like), lambda parameters: state.log_prior, new)
        return OnlineState(new, counts, optimizer, state.steps + 1, total, rounding, log_prior)

    def finished(self, state: OnlineState) -> Array:
        """Return whether all passes are made."""
        return self.n_values(state) >= self.settings.passes

    def n_values(self, state: OnlineState) -> Array:
        """Return the number of passes."""
        return state.steps // self.n_batches

    def value(self, state: OnlineState) -> tuple[Array, ...]:
        """Return the log-posterior of the last pass, in parts: each batch at the parameters before its step."""
        return state.total, state.lost, state.log_prior

    def check(self, state: OnlineState, history: list[float], n_new: int) -> None:
        """Refuse a log-posterior that is not finite.

        Raises:
            FloatingPointError: with the pass.
        """
        if not np.isfinite(history[-1]):
            raise FloatingPointError(f"the log-posterior is {history[-1]} in pass {len(history)}; lower learning_rate")

    def _log_prior(self, like: Annotations) -> Any:
        def log_prior(parameters: Parameters) -> Array:
            return jnp.asarray(density(self.model, parameters, like).log_prior_in_log_odds, float)

        return log_prior


def run(
    model: Model,
    source: Files,
    key: Array,
    settings: EMSettings,
    *,
    progress: bool,
    keep: Checkpoints = NO_CHECKPOINTS,
) -> Outcome:
    """Make ``settings.epochs`` passes over files, each in an order of its own, and one to see where they led.

    Args:
        settings: ``epochs`` and ``learning_rate``.

    Raises:
        FloatingPointError: the log-posterior is not finite.
    """
    state, history = solve(model, source, key, settings, progress=progress, keep=keep)
    of_last = f"{PART} after {len(history)}"  # more epochs may be asked for later
    last, _ = look_over(model, source, state.parameters, keep=keep, stage=of_last)
    history.append(float(last.log_posterior) + float(last.remainder))
    draws = {name: np.asarray(value)[None, None] for name, value in state.parameters.items()}
    facts = {"chunks": source.n_batches, "rows": source.store.n_rows}
    return Outcome(draws, {}, np.array(history), {}, facts, is_point=True)


def solve(
    model: Model, source: Files, key: Array, settings: EMSettings, *, progress: bool, keep: Checkpoints
) -> tuple[OnlineState, list[float]]:
    """Return the state after ``settings.epochs`` passes, and the log-posterior of each: :func:`run`."""
    climber = OnlineEM(model, settings, key, source.n_tasks, source.n_batches)
    with progress_bar("stochastic EM", settings.passes, show=progress) as bar:

        def tell(done: int) -> None:
            bar(0, f"chunk {done:,} of {source.n_batches:,}")

        if keep.found(climber.stage) is not None:
            state = state_shapes(model, source.like)
        else:
            parameters = start(model, source, key)
            votes, of_data = look_over(model, source, parameters, on_votes=True, tell=tell, keep=keep)
            state = first_state(model, source.like, parameters | tables_mode(votes.counts, parameters), of_data.counts)
        return climb(climber, source, state, keep=keep, tell=bar)


@compiled
def first_state(model: Model, like: Annotations, parameters: Parameters, counts: Parameters) -> OnlineState:
    """Return the state before the first batch."""
    optimizer, zero = optax.adam(0.0).init(parameter_spec(model, like).to_reals(parameters)), jnp.zeros((), float)
    return OnlineState(parameters, counts, optimizer, jnp.int32(0), zero, zero, zero)


def state_shapes(model: Model, like: Annotations) -> OnlineState:
    """Return shapes and types of the arrays of a state."""

    def at(parameters: Parameters) -> OnlineState:
        tables = {name: parameters[name] for name in parameter_spec(model, like).tables}
        return first_state(model, like, parameters, tables)

    return jax.eval_shape(at, parameter_shapes(model, like))
