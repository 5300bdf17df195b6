r"""The look of EM: the log-posterior and its gradient at one point, summed over all tasks of any source.

The expected counts of the probability tables, and the slope of the log-posterior along the other parameters, are sums
over tasks (Fisher's identity, see :mod:`crowdppl.inference.engines.em`). In memory they are one gradient; over files
they are added up over batches of whole tasks, in one pass, with what rounding takes from them.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...data import Annotations
from ...models.parts.kernels import safe_log
from ...models.parts.starts import soft_votes
from ..densities.enumerated import Parameters
from ..densities.model import Model
from ..densities.programs import compiled
from ..densities.sites import parameter_spec
from ..sources.source import Source, sum_over_batches
from .checkpoints import NO_CHECKPOINTS, Checkpoints, Tree, packed, unpacked
from .m_step import Sums, gradient, newton, newton_of_prior, sums_of, sums_over_tasks

PART = "pass"  # stage of a checkpoint: how far a pass over a source has come


class Look(NamedTuple):
    """The log-posterior's gradient at one point, summed over all tasks."""

    counts: Parameters  # of each probability table, the prior's included
    slope: Parameters  # of the other parameters, unconstrained
    log_posterior: Array  # with the tables in log-odds
    remainder: Array  # of the log-posterior, which single precision does not hold; of use in sums over many batches
    direct: Parameters  # moves that are known, such as Newton's of a logistic regression; Adam makes the others


class Running(NamedTuple):
    """Sums over the batches so far, and what rounding has taken from them (Knuth's exact sum of two)."""

    total: Sums
    lost: Sums


def look_at(model: Model, annotations: Annotations, parameters: Parameters) -> Look:
    """Return the gradient of the log-posterior at ``parameters``, of annotations in memory."""
    spec = parameter_spec(model, annotations)
    counts, slope, at = gradient(model, annotations, spec, parameters)
    moves: Parameters = {}
    if (classifier := model.logistic) is not None:
        weights, uphill = ({name: values[name] for name in spec.weights} for values in (parameters, slope))
        moves = newton(classifier, annotations, weights, uphill)
    moves |= newton_of_prior(model, annotations, spec, parameters, slope)
    return Look(counts, slope, at.log_posterior_in_log_odds, jnp.zeros((), float), moves)


def look_over(
    model: Model,
    source: Source,
    parameters: Parameters,
    *,
    on_votes: bool = False,
    tell: Callable[[int], None] = lambda done: None,
    keep: Checkpoints = NO_CHECKPOINTS,
    stage: str = PART,
) -> tuple[Look, Sums]:
    """Return the gradient of the log-posterior of a source in batches, and the sums without the priors: one pass.

    Args:
        on_votes: take the soft majority vote as evidence of the true labels, as EM does at its start.
        tell: called with the number of batches done.
        keep: where it is kept how far the pass has come; it goes on from where an earlier process was.
    """
    running, begin = nothing_yet(model, source.like, parameters), 0
    if (earlier := keep.found(stage)) is not None:
        running, begin = unpacked(earlier["running"], running), earlier["done"]
    compiled_already = getattr(source, "add", None)
    program = partial(add_batch, on_votes=on_votes) if on_votes or compiled_already is None else compiled_already

    def add(batch: Annotations, running: Running, model: Model, parameters: Parameters) -> Running:
        return program(model, batch, parameters, running)

    def after(running: Running, done: int) -> None:
        keep.save(stage, partial(_noted, running, done), lasting=False)
        tell(done)

    running = sum_over_batches(source, add, running, (model, parameters), begin=begin, after=after, join=joined)
    sums, log_prior = with_prior(model, source.like, parameters, running)
    log_likelihood = float(running.total.log_likelihood) + float(running.lost.log_likelihood)
    return _in_two_numbers(sums, log_likelihood + float(log_prior)), running.total


def _noted(running: Running, done: int) -> Tree:
    """Return a checkpoint of a pass after so many batches: copies, since the sums' memory is used again."""
    return {"running": [array.copy() for array in packed(running)], "done": done}


def _in_two_numbers(sums: Sums, log_posterior: float) -> Look:
    """Return sums as a look, with the log-posterior in two numbers of the programs' precision."""
    value = jnp.asarray(log_posterior, float)
    remainder = log_posterior - float(value) if np.isfinite(log_posterior) else 0.0
    return Look(sums.counts, sums.slope, value, jnp.asarray(remainder, float), {})


@compiled(static=("on_votes",), donate_argnames="running")
def add_batch(model: Model, batch: Annotations, parameters: Parameters, running: Running, *, on_votes: bool) -> Running:
    """Add a batch's sums.

    Args:
        batch: whole tasks.
        running: the sums so far; their memory is used again.
        on_votes: as of :func:`look_over`.
    """
    new = sums_over_tasks(model, batch, parameters, safe_log(soft_votes(batch)) if on_votes else None)
    total = jax.tree.map(jnp.add, running.total, new)
    return Running(total, jax.tree.map(lost, running.lost, running.total, new, total))


@compiled
def joined(one: Running, other: Running) -> Running:
    """Return the sums over two parts of the batches together."""
    total = jax.tree.map(jnp.add, one.total, other.total)
    before = jax.tree.map(jnp.add, one.lost, other.lost)
    return Running(total, jax.tree.map(lost, before, one.total, other.total, total))


def lost(before: Array, earlier: Array, new: Array, total: Array) -> Array:
    """Return what rounding has taken from a sum, that of ``total = earlier + new`` included."""
    part = total - earlier
    return before + ((earlier - (total - part)) + (new - part))


@compiled
def nothing_yet(model: Model, like: Annotations, parameters: Parameters) -> Running:
    """Return the sums over no batch."""
    spec = parameter_spec(model, like)
    counts = {name: jnp.zeros_like(parameters[name]) for name in spec.tables}
    slope = {name: jnp.zeros_like(value) for name, value in spec.to_reals(parameters).items()}
    zero = Sums(counts, slope, jnp.zeros((), float))
    return Running(zero, jax.tree.map(jnp.zeros_like, zero))


@compiled
def with_prior(model: Model, like: Annotations, parameters: Parameters, running: Running) -> tuple[Sums, Array]:
    """Return the sums with the contribution of the priors and factors, and the latter's log-density."""
    of_prior, value = prior_sums(model, like, parameters)
    return jax.tree.map(lambda total, lost, more: total + lost + more, *running, of_prior), value


def prior_sums(model: Model, like: Annotations, parameters: Parameters) -> tuple[Sums, Array]:
    """Return what priors and factors add to the sums, without their log-density, and that."""
    found = sums_of(model, like, parameters, lambda at: at.log_prior_in_log_odds)
    return found._replace(log_likelihood=jnp.zeros((), float)), found.log_likelihood


def memory_of_look(model: Model, source: Any, parameters: Parameters) -> int:
    """Return the bytes that :func:`add_batch` takes, by XLA's own analysis; the source keeps the compiled program."""
    running = jax.eval_shape(nothing_yet, model, source.like, parameters)
    given = (model, source.like, parameters, running)
    program: Any = add_batch.program(*given, on_votes=False).lower(*given, on_votes=False).compile()
    source.add, about = program, program.memory_analysis()
    return int(about.argument_size_in_bytes + about.output_size_in_bytes + about.temp_size_in_bytes)
