r"""Expectation maximisation of any story, without a derivation per story.

A probability table is a Dirichlet site, such as the workers' confusion matrices or the prevalence. With
:math:`Z(\theta)` the likelihood with the true labels summed out, the expected counts of a probability table are

.. math:: n = \theta \odot \nabla_\theta \log Z(\theta)

(Fisher's identity), and its exact M-step under a :math:`\text{Dirichlet}(\alpha)` prior is
:math:`\theta' \propto \alpha + n`, the mode of its log-odds (:mod:`crowdppl.inference.engines.m_step`): one gradient
is one iteration.
Parameters that are no tables climb the log-posterior in the same iteration by a step of Adam, or of Newton for a
logistic regression and for scores of items (ECME, Liu & Rubin 1994).
Where the exact M-step is not all of the iteration, it is halved until the log-posterior does not fall.

Where all of a story's parameters move so, EM is accelerated (:mod:`.squarem`).

A story with parts over it, such as errors that workers share (:mod:`crowdppl.models.parts.general`), may take a class
for an error of all workers, from which EM does not come back. So it starts a second time where its plain form ends,
and that solution is kept where its log-posterior is higher.

Where data are thin, label probabilities are not those at the mode but averaged over what the parameters may be
(:mod:`crowdppl.inference.fitted.averaged_labels`); the engine leaves the mode.

The steps are those of :mod:`.em_climber`, driven over any source by :mod:`.climber`: annotations in memory, on several
devices, or in files, where a look is a pass.
"""

from collections.abc import Callable

import jax
import numpy as np
from jax import Array

from ...data import Annotations
from ...data.sharding import ShardedAnnotations, as_on_one_device, on_this_host
from ...models.parts.kernels import safe_log
from ...models.parts.starts import soft_votes
from ..densities.enumerated import Parameters
from ..densities.model import Model
from ..densities.programs import compiled
from ..densities.sites import parameter_names, parameter_spec, start_and_spec
from ..sources.memory import InMemory
from ..sources.on_disk import Files, n_bytes_of
from ..sources.source import Source
from ..sources.starting import parameter_shapes
from ..sources.starting import start as start_of
from . import em_climber, minibatch_em
from .checkpoints import NO_CHECKPOINTS, Checkpoints
from .climber import climb
from .em_climber import EMClimber, EMState
from .looks import look_over, memory_of_look, nothing_yet
from .m_step import gradient, learnt_from, newton_sites, tables_mode
from .outcome import Outcome, Solution
from .progress import progress_bar
from .settings import EMSettings, refuse_unused, unused_by_em

RESTART_NOISE = 0.5  # share of random numbers in the soft majority vote, in every start after the first
MODES_APART = 10.0  # tolerances that lie between two ends of EM at the least for them to be two modes


@compiled(static=("perturbed", "accelerated"), once=True)
def init(
    model: Model,
    annotations: Annotations,
    key: Array,
    *,
    perturbed: bool = False,
    accelerated: bool = False,
) -> EMState:
    """Return the state at the story's starting values, after an M-step towards the soft majority vote.

    Args:
        perturbed: mix the soft majority vote with random probabilities, for a restart.
        accelerated: prepare for accelerated steps, which a story with parameters of Adam's does not take.
    """
    votes = soft_votes(annotations)
    if perturbed:
        random = as_on_one_device(jax.random.exponential(key, votes.shape), annotations)
        votes = (1 - RESTART_NOISE) * votes + RESTART_NOISE * random / random.sum(-1, keepdims=True)
    evidence = safe_log(votes)
    if annotations.evidence is not None:
        evidence = evidence + annotations.evidence
    parameters, spec = start_and_spec(model, annotations, key)
    if (classifier := model.logistic) is not None:
        weights = {name: parameters[name] for name in spec.weights}
        parameters |= learnt_from(jax.nn.softmax(evidence), classifier, annotations, weights)
    counts = gradient(model, annotations.replace(evidence=evidence), spec, parameters).counts
    parameters |= tables_mode(counts, parameters)
    return state_at(model, annotations, parameters, accelerated=accelerated)


@compiled(static=("accelerated",), once=True)
def state_at(model: Model, annotations: Annotations, parameters: Parameters, *, accelerated: bool = False) -> EMState:
    """Return the state before the first look, at ``parameters``; arguments are those of :func:`init`."""
    spec = parameter_spec(model, annotations)
    # An earlier fit's rows do not sum to one where there are new classes.
    parameters |= {name: parameters[name] / parameters[name].sum(-1, keepdims=True) for name in spec.tables}
    direct = (() if model.logistic is None else spec.weights) + newton_sites(model, annotations)
    return em_climber.init(spec, parameters, accelerated=accelerated, direct=direct)


def run(
    model: Model,
    data: Annotations | Source,
    key: Array,
    settings: EMSettings,
    *,
    progress: bool,
    start: Parameters | None = None,
    keep: Checkpoints = NO_CHECKPOINTS,
    after: Callable[[EMState], None] = lambda state: None,
) -> Outcome:
    """Run EM from each of ``settings.restarts`` starts, and keep the solution of the highest log-posterior.

    A story with parts over it starts once more, where its plain form ends, unless it is trained in minibatches or
    ``start`` is given.

    Args:
        start: parameters to start from the first time, such as an earlier fit's; the story's own start by default.
        after: called with the state after each piece of the work; over files that is a pass.

    Raises:
        FloatingPointError: where the log-posterior is not finite, with the iteration or the step.
        ValueError: for an option that this story does not use, or minibatches that the data or the story do not allow.
    """
    refuse_unused(
        settings._replace(sweeps=settings.sweeps or None),  # none is what fits in parts have anyway
        unused_by_em(
            in_batches=trained_in_batches(model, settings),
            in_parts=not isinstance(data, Annotations) or isinstance(data, ShardedAnnotations),
            has_weights=model.has_weights,
            has_prior=model.classifier is not None and model.classifier.has_posterior,
            holds_out=settings.held_out > 0,
        ),
    )
    best = solve(model, data, key, settings, progress=progress, start=start, keep=keep, after=after)
    fixed = parameter_names(model, data if isinstance(data, Annotations) else data.like).without_posterior
    draws = {name: on_this_host(value)[None, None] for name, value in best.parameters.items() if name not in fixed}
    kept = {name: on_this_host(value) for name, value in best.parameters.items() if name in fixed}
    ends = tuple({name: on_this_host(value) for name, value in end.items()} for end in best.ends)
    return Outcome(draws, kept, np.array(best.history), {}, best.facts, is_point=True, ends=ends)


def solve(
    model: Model,
    data: Annotations | Source,
    key: Array,
    settings: EMSettings,
    *,
    progress: bool,
    start: Parameters | None = None,
    keep: Checkpoints = NO_CHECKPOINTS,
    after: Callable[[EMState], None] = lambda state: None,
) -> Solution:
    """Return the solution of the highest log-posterior; options that the story does not use are not looked at."""
    source = InMemory(data) if isinstance(data, Annotations) else data
    in_batches = trained_in_batches(model, settings)
    plain = None if in_batches or start is not None else model.plain
    if in_batches:
        settings = minibatch_em.with_epochs(source.like, settings, has_network=model.has_network)
    per_start = settings.passes if in_batches else settings.max_iterations
    n_starts = settings.restarts + 2 * (plain is not None)
    solutions: list[Solution] = []
    with progress_bar("EM", n_starts * per_start, show=progress) as bar:

        def told(number: int) -> Callable[[int, str], None]:
            return lambda done, text: bar(number * per_start + done, text)

        def first(of: Model, number: int, kept: Checkpoints, key: Array, *, perturbed: bool) -> EMState:
            if isinstance(source, InMemory):
                return init(of, source.like, key, perturbed=perturbed, accelerated=settings.accelerate)
            return _first_over(of, source, key, settings, told(number), kept)

        def climbed(of: Model, state: EMState, number: int, kept: Checkpoints) -> Solution:
            state, history = climb(EMClimber(of, settings), source, state, keep=kept, tell=told(number), after=after)
            return Solution(state.parameters, history, {"change": float(state.settled)})

        for restart in range(settings.restarts):
            kept = keep.within(f"start {restart}")
            start_key = key if restart == 0 else jax.random.fold_in(key, restart)
            if isinstance(source, InMemory) and start is not None and restart == 0:
                state = state_at(model, source.like, start, accelerated=settings.accelerate)
            else:
                state = first(model, restart, kept, start_key, perturbed=restart > 0)
            if in_batches:
                tell = told(restart)
                solutions.append(
                    minibatch_em.run(model, source.like, state.parameters, start_key, settings, tell, kept)
                )
            else:
                solutions.append(climbed(model, state, restart, kept))
        best = max(solutions, key=lambda solution: solution.history[-1])
        if plain is not None:
            kept, last = keep.within("plain"), n_starts - 1
            state = first(plain, last - 1, kept, key, perturbed=False)
            begin = start_of(model, source, key) | climbed(plain, state, last - 1, kept).parameters
            state = state_at(model, source.like, begin, accelerated=settings.accelerate)
            solutions.append(climbed(model, state, last, keep.within("from plain")))
            if _is_better(solutions[-1], best, settings):
                best = solutions[-1]
    several = settings.restarts > 1
    return best._replace(ends=tuple(solution.parameters for solution in solutions) if several else ())


def _is_better(one: Solution, other: Solution, settings: EMSettings) -> bool:
    """Return whether a solution is higher by more than what the iterations that were not taken any more may give."""
    rise = one.history[-1] - other.history[-1]
    return rise > MODES_APART * settings.tolerance * abs(other.history[-1])


def _first_over(
    model: Model,
    source: Source,
    key: Array,
    settings: EMSettings,
    tell: Callable[[int, str], None],
    keep: Checkpoints,
) -> EMState:
    """Return the state that :func:`init` gives, from a pass over files; shapes where a later one is kept."""
    if keep.found(EMClimber.stage) is not None:
        return state_shapes(model, source.like, accelerated=settings.accelerate)
    tell(0, "start")
    parameters = start_of(model, source, key)

    def tell_batch(done: int) -> None:
        tell(0, f"start, chunk {done:,} of {source.n_batches:,}")

    votes, _ = look_over(model, source, parameters, on_votes=True, tell=tell_batch, keep=keep)
    # The step to the tables' M-step towards the votes is not judged, as in memory.
    parameters |= tables_mode(votes.counts, parameters)
    return state_at(model, source.like, parameters, accelerated=settings.accelerate)


def state_shapes(model: Model, like: Annotations, *, accelerated: bool) -> EMState:
    """Return shapes and types of the arrays of a state."""

    def at(parameters: Parameters) -> EMState:
        return state_at(model, like, parameters, accelerated=accelerated)

    return jax.eval_shape(at, parameter_shapes(model, like))


def bytes_needed(model: Model, source: Files) -> int:
    """Return what a fit to files takes of memory at its peak, by XLA's own analysis of the program on a batch."""
    parameters = parameter_shapes(model, source.like)
    running = jax.eval_shape(nothing_yet, model, source.like, parameters)
    held = 2 * n_bytes_of(state_shapes(model, source.like, accelerated=True)) + n_bytes_of(running)
    if held > 2**40:  # nothing of that size is worth compiling
        return held
    return memory_of_look(model, source, parameters) + held + 2 * n_bytes_of(source.like)


def trained_in_batches(model: Model, settings: EMSettings) -> bool:
    """Return whether the story is trained in minibatches: it has a network, or the user asks for them."""
    return settings.batch_size is not None or model.has_network
