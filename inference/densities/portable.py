"""Data as compiled programs see them, and the traits of a story that allow it, asked by running it.

They are padded data, tasks that stand for several, and numbers that may be traced.

A story that gives on padded data without names what it gives on the data as they are can be fitted to annotations of
the ladder's sizes (:mod:`crowdppl.data.padding`), and all data of nearby sizes share its compiled programs, whatever
the names of their tasks and workers. So do all values of a hyperparameter with which it only calculates.
"""

import inspect
import logging
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpyro.distributions import biject_to

from ...data import Annotations, Ids
from ...data.arrays import BY_ROW, BY_TASK, changed, longer
from ...data.padding import MOST_ROWS, PaddedAnnotations, anonymous, numbered, padded, unread
from ...data.some_tasks import some_tasks, tasks_alike
from ...models import Story, StoryError
from ...models.parts.abstaining import with_category_counts
from ...models.parts.contract import is_promised
from ...models.parts.general import are_portable, hyperparameters_of
from .enumerated import Density, Parameters, density, site_dims
from .model import ByKey, Frame, Model
from .padded_sites import cut, real_axes
from .programs import compiled
from .ready_programs import folder_in_use, known
from .sites import Dims, compiled_start, derived, fitting_dims, parameter_sites, starting_point, support

PLAIN = (bool, int, float, str, type(None))  # types of hyperparameters that do not depend on data
TASKS, ROWS = 32, 256  # of the piece of the data on which a story is run, at the most
POINTS = 3
NEAR, FAR = 0.5, 2.0  # standard deviations around the start in unconstrained space: of real parameters, of padded ones
KEPT = 64  # pieces and verdicts of a story

MOST_ROWS_BRIEFLY = 2**24
"""Rows as far as which data are padded that are looked at a few times only: a compilation takes longer than that."""

FEWEST_ROWS = 2**12
"""Rows from which on tasks that look alike are counted once: of fewer, nothing is gained."""

SAVED = 2
"""The factor at the least by which the rows are fewer then."""


class _Known(NamedTuple):
    """Answers that are known of a story."""

    pieces: OrderedDict[Hashable, tuple[Annotations, Annotations]]  # by what its annotations have, as are and padded
    verdicts: OrderedDict[Hashable, bool]  # by that and the hyperparameters


log = logging.getLogger(__name__)

_known: WeakKeyDictionary[Story, _Known] = WeakKeyDictionary()


def is_portable(model: Model, annotations: Annotations) -> bool:
    """Return whether padding leaves the log-posterior, label posteriors, gradient and derived quantities as they are.

    A story that promises it (:mod:`crowdppl.models.parts.contract`) is not run where its truth prior does too and its
    other hyperparameters do not depend on data. Any other is run at random points on a few of the annotations, as they
    are and padded, where it raises an error if it reads an identifier; a story that fails is not portable. Nor is one
    with a table or another value without a hash among its hyperparameters, or with a network of a user's own: hardly
    another fit shares its programs. What was found is kept as long as the story, for each set of hyperparameters
    and whatever the annotations' sizes, so that of a story that behaves otherwise from some size on it is not seen.

    Args:
        annotations: the data; no minibatch needs to be known here.
    """
    return promises_it(model) or _answered(gives_the_same, model, annotations)


def counts_alike(model: Model, annotations: Annotations) -> bool:
    """Return whether a task that stands for several alike gives a story what each of them would give by itself.

    A story that promises to be portable promises this too. Any other is run on a few of the annotations twice, and on
    the same where each task stands for two: the log-posterior, its gradient and the start are compared.
    """
    return promises_it(model) or (is_portable(model, annotations) and _answered(gives_twice, model, annotations))


def _answered(ask: Callable[..., bool], model: Model, annotations: Annotations) -> bool:
    """The answer to a question of a story and of a piece of the data, asked once for each structure of the data."""
    if _has_own_network(model):
        return False
    try:
        hash(tuple(model.hyperparameters.values()))
        answers = _known.setdefault(model.story, _Known(OrderedDict(), OrderedDict()))
    except TypeError:  # a table, or a story that nothing can refer to weakly
        return False
    structure = _structure(annotations)
    given = tuple(sorted(model.hyperparameters.items(), key=lambda item: item[0]))
    key = (ask, structure, model.numbers, given, tuple(type(value) for _, value in given), str(jnp.result_type(float)))
    if key not in answers.verdicts:
        if structure not in answers.pieces:
            answers.pieces[structure] = _pieces(annotations)
        answers.verdicts[key] = ask(model, *answers.pieces[structure])
        for kept in answers:
            while len(kept) > KEPT:
                kept.popitem(last=False)
    return answers.verdicts[key]


def gives_the_same(model: Model, own: Annotations, seen: Annotations) -> bool:
    """Run a story on annotations as they are and padded, at random points, and compare what it gives.

    Args:
        seen: the same, padded.
    """
    try:
        ours, theirs, beyond = jax.tree.map(np.asarray, _both(model, own, seen, jax.random.key(0)))
    except Exception:  # whatever a story of a user's own does with what is padded or unread
        log.info("%r fails on padded data, so that it compiles anew for every size", model.story, exc_info=True)
        return False
    structure: Any = jax.tree.structure(ours)
    values, others = jax.tree.leaves(ours), jax.tree.leaves(theirs)
    if structure != jax.tree.structure(theirs) or not np.isfinite(ours["log_posterior"]).all():
        return False
    pairs = [*zip(values, others, strict=True), *((np.zeros_like(value), value) for value in beyond.values())]
    return all(_close(*pair) for pair in pairs)


def standing_for(
    annotations: Annotations, like: np.ndarray, *, fine: bool = False, spare: int = 0
) -> PaddedAnnotations:
    """Return the tasks that others look like, each standing for all of these, padded.

    Args:
        like: of each task the position of the one that stands for it, ``(N,)``: :func:`.tasks_alike`.
        fine: as of :func:`.padding.padded`.
        spare: as there.
    """
    chosen, copies = np.unique(like, return_counts=True)
    seen = padded(some_tasks(with_category_counts(annotations), chosen), fine=fine, spare=spare)
    return replace(seen, copies=longer(copies.astype(np.float32), seen.n_tasks, 0))


def gives_twice(model: Model, own: Annotations, _: Annotations) -> bool:
    """Run a story on every task twice, and on tasks that stand for two, at random points, and compare what it gives."""
    pair = np.repeat(np.arange(own.n_tasks), 2)
    twice = some_tasks(own, pair)
    key, counted = jax.random.key(0), unread(standing_for(twice, 2 * pair, spare=1))
    ours, theirs, _ = _both(model, twice, counted, key)
    starts = tuple(cut(compiled_start(model, data, key), known_dims(model, own), own) for data in (twice, counted))
    found = [
        (ours["log_posterior"], theirs["log_posterior"]),
        *((slope, theirs["gradient"][name]) for name, slope in ours["gradient"].items()),
        *((value, starts[1][name]) for name, value in starts[0].items()),
    ]
    return all(_close(np.asarray(one), np.asarray(other)) for one, other in found)


def known_dims(model: Model, annotations: Annotations) -> dict[str, tuple[str, ...]]:
    """:func:`.fitting_dims`, which of a story that promises to be portable are looked up for data of these sizes.

    They are the data's own sizes, since what a story refuses may depend on them.

    Raises:
        StoryError: as there.
    """
    is_kept = folder_in_use() is not None and annotations.n_rows <= MOST_ROWS
    if is_kept and annotations.population is None and promises_it(model):
        with suppress(StoryError):  # which names what there is
            return known(fitting_dims, model, anonymous(annotations))
    return fitting_dims(model, annotations)


def promises_it(model: Model) -> bool:
    """Return whether tests have held the story, with such a truth prior and hyperparameters, to be portable."""
    prior = model.hyperparameters.get("truth_prior")
    others = (value for name, value in model.hyperparameters.items() if name != "truth_prior")
    return (
        is_promised(model.story)
        and are_portable(model.hyperparameters)
        and not _has_own_network(model)
        and (prior is None or is_promised(type(prior)))
        and all(isinstance(value, PLAIN) for value in others)
    )


def can_be_padded(model: Model, annotations: Annotations, *, briefly: bool = False) -> bool:
    """Return whether a story gives on padded annotations what it gives on the annotations themselves.

    Besides :func:`is_portable` it may have no network, which is trained in minibatches of tasks, and the annotations
    may not be so many that padding them costs more than a compilation (:data:`.MOST_ROWS`, or where they are looked at
    ``briefly`` :data:`MOST_ROWS_BRIEFLY`).
    """
    most = MOST_ROWS_BRIEFLY if briefly else MOST_ROWS
    small = max(annotations.n_rows, annotations.n_tasks, annotations.n_workers) <= most
    return small and annotations.population is None and not model.has_network and is_portable(model, annotations)


def sized(model: Model, annotations: Annotations, *, fine: bool = False, briefly: bool = False) -> Annotations:
    """The annotations as compiled programs see them: padded and without names, as far as the story allows it.

    Args:
        fine: as of :func:`.padding.padded`.
        briefly: as of :func:`can_be_padded`.
    """
    if isinstance(annotations, PaddedAnnotations):
        return annotations
    if can_be_padded(model, annotations, briefly=briefly):
        return padded(annotations, fine=fine)
    return anonymous(annotations) if is_portable(model, annotations) else annotations


def counted_once(model: Model, annotations: Annotations, dims: Dims, *, fine: bool = False) -> PaddedAnnotations | None:
    """The annotations with each task that looks like others standing for all of them, as compiled programs see them.

    The log-posterior of the parameters is the same, at the cost of the tasks that differ: of a panel of five workers
    who say yes or no, at most 243.

    Args:
        fine: as of :func:`.padding.padded`.

    Returns:
        None where that would not halve the rows, where a parameter is of single tasks, or where truths depend on each
        other.
    """
    of_single_tasks = any({"task", "row"} & set(names) for names in dims.values())
    few = annotations.n_rows < FEWEST_ROWS or annotations.population is not None
    if few or of_single_tasks or model.has_network or model.truth_prior.joint:
        return None
    if (like := tasks_alike(annotations)) is None:
        return None
    n_rows = np.bincount(annotations.task, minlength=annotations.n_tasks)
    if SAVED * n_rows[np.unique(like)].sum() > annotations.n_rows or not counts_alike(model, annotations):
        return None
    return standing_for(annotations, like, fine=fine)


def start_of(model: Model, annotations: Annotations, dims: Dims, key: Array) -> Parameters:
    """Return a story's own :func:`.starting_point`, computed on :func:`sized` annotations."""
    seen = sized(model, annotations, briefly=True)
    return cut(jax.device_get(compiled_start(model, seen, key)), dims, annotations)


def _has_own_network(model: Model) -> bool:
    return model.classifier is not None and not isinstance(model.classifier.network, str)


def _structure(annotations: Annotations) -> Hashable:
    """Return the structure of the annotations, without the numbers of rows, tasks and workers."""
    given = {field.name: getattr(annotations, field.name) for field in fields(Annotations)}
    arrays = {name: value for name, value in given.items() if np.ndim(value) and not isinstance(value, Ids)}
    once = isinstance(annotations, PaddedAnnotations) and annotations.once
    return (
        tuple((name, np.shape(value)[1:]) for name, value in arrays.items() if not (once and name == "count")),
        (annotations.n_classes, annotations.n_categories, annotations.informative, len(annotations.models)),
        annotations.scored,
        len(annotations.questions),
        annotations.kind,
    )


def _pieces(annotations: Annotations) -> tuple[Annotations, Annotations]:
    """The first tasks, with rows and workers of theirs, without names; and the same, padded, whose names raise."""
    n_real, once = annotations.n_tasks, False
    if isinstance(annotations, PaddedAnnotations):
        n_real, once = int(annotations.n_real[0]), annotations.once
    n_tasks = min(TASKS, n_real)
    rows = np.flatnonzero(np.asarray(annotations.task) < n_tasks)[:ROWS]
    given: dict[str, Any] = {
        **dict.fromkeys((*BY_ROW, *BY_TASK, "worker_features")),
        **changed(annotations, BY_ROW, lambda values: np.asarray(values)[rows]),
        **changed(annotations, BY_TASK, lambda values: np.asarray(values)[:n_tasks]),
        **changed(annotations, ("model_reference", "item_features"), np.asarray),
        **numbered(annotations),
        **dict.fromkeys(("gold", "seconds", "when", *["count"] * once)),
    }
    workers = np.zeros(0, int)
    if given["worker"] is not None:
        workers, worker = np.unique(given["worker"], return_inverse=True)
        given["worker"] = worker.astype(np.int32)
        given |= changed(annotations, ("worker_features",), lambda values: np.asarray(values)[workers])
    own = Annotations(
        task=np.asarray(annotations.task)[rows],
        tasks=Ids.range(n_tasks),
        workers=Ids.range(len(workers)),
        classes=Ids.range(annotations.n_classes),
        informative=annotations.informative,
        scored=annotations.scored,
        kind=annotations.kind,
        **given,
    )
    return own, unread(padded(own, spare=1))


@compiled(once=True)
def _both(
    model: Model, own: Annotations, seen: Annotations, key: Array
) -> tuple[dict[str, Any], dict[str, Any], Parameters]:
    """Return the story's quantities on both at each point, without padded entries, and the gradient by these."""
    near, dims = _points(model, own, key, NEAR)
    far, _ = _points(model, seen, key, FAR)

    def with_real(far: Array, near: Array, axes: list[tuple[int, int]]) -> Array:
        place = [slice(None)] * jnp.ndim(far)
        for axis, size in axes:
            place[axis] = slice(size)
        return far.at[tuple(place)].set(near)

    axes = {name: real_axes(dims.get(name, ()), own, leading=1) for name in near}
    grown = {name: with_real(far[name], near[name], axes[name]) for name in near}
    latent = frozenset(dims)
    ours, by_ours = jax.lax.map(lambda point: _given(model, own, point, latent), near)
    theirs, by_theirs = jax.lax.map(lambda point: _given(model, seen, point, latent), grown)
    of_derived: Dims = derived(model, {name: value[0] for name, value in near.items()}, own)[1]
    of_density: Dims = {"posterior": ("task",), "log_likelihood": ("task",), "confusions": ("worker",)}
    theirs["density"] = cut(theirs["density"], of_density, own, leading=1)
    theirs["derived"] = cut(theirs["derived"], of_derived, own, leading=1)
    ours["gradient"], theirs["gradient"] = by_ours, cut(by_theirs, dims, own, leading=1)
    beyond = {name: with_real(by_theirs[name], jnp.zeros_like(by_ours[name]), axes[name]) for name in by_theirs}
    return ours, theirs, beyond


def _points(model: Model, annotations: Annotations, key: Array, spread: float) -> tuple[Parameters, Dims]:
    """Points around the start, :data:`POINTS` of each value, and the names of the parameters' dimensions."""
    start = starting_point(model, annotations, key)
    sites = parameter_sites(model, annotations)
    found = {}
    for place, (name, value) in enumerate(start.items()):
        values = jnp.broadcast_to(value, (POINTS, *jnp.shape(value)))
        if name in sites:
            transform = biject_to(support(sites[name]))
            reals = jax.vmap(transform.inv)(values)
            noise = jax.random.normal(jax.random.fold_in(key, place), reals.shape, reals.dtype)
            values = jax.vmap(transform)(reals + spread * noise)
        found[name] = values
    return found, {name: site_dims(site) for name, site in sites.items()}


def _given(
    model: Model, annotations: Annotations, point: Parameters, latent: frozenset[str]
) -> tuple[dict[str, Any], Parameters]:
    """Return what engines and views compute of a story at a point, and the gradient of its log-posterior."""

    def log_posterior(moved: Parameters) -> tuple[Array, Density]:
        found = density(model, point | moved, annotations)
        return found.log_posterior, found

    moved = {name: value for name, value in point.items() if name in latent}
    (total, found), slope = jax.value_and_grad(log_posterior, has_aux=True)(moved)
    by_task = {"posterior": found.posterior, "log_likelihood": found.log_likelihood}
    if annotations.worker is not None:
        by_task["confusions"] = found.likelihood.emission.confusions(annotations)
    return {"log_posterior": total, "density": by_task, "derived": derived(model, point, annotations)[0]}, slope


def _close(ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Return whether values are the same but for rounding, which is measured by the largest of them."""
    if ours.shape != theirs.shape:
        return False
    if not np.issubdtype(ours.dtype, np.floating):
        return np.array_equal(ours, theirs)
    tolerance = float(np.finfo(ours.dtype).eps) ** (2 / 3) * np.max(np.abs(ours), initial=1.0, where=np.isfinite(ours))
    return np.allclose(theirs, ours, rtol=0, atol=tolerance, equal_nan=True)


def with_numbers(model: Model, annotations: Annotations) -> Model:
    """The model whose numbers are leaves, as many of them as the story takes without a look at their values.

    A real number is one where the story, traced with an abstract number in its place, runs to its density and its
    starting point. A story that branches on it, or turns it into a shape, does not; then it stays static, and each of
    its values has programs of its own. A whole number counts as a real one where the story says that it takes real
    numbers, by the parameter's default or annotation; others stay static.

    Args:
        model: a story that runs on the annotations: what it says of wrong values it has said before.
        annotations: of the structure of the data; their sizes do not matter.
    """
    candidates = {name: value for name, value in model.hyperparameters.items() if isinstance(value, float)}
    if whole := {name: value for name, value in model.hyperparameters.items() if type(value) is int}:
        candidates |= {name: whole[name] for name in real_numbers(model.story) & whole.keys()}
    if not candidates:
        return model
    found = _numbers(replace(model, numbers=tuple(sorted(candidates))).frame, _Example(annotations, candidates))
    given = {name: float(candidates[name]) for name in found}
    return Model(model.story, dict(model.hyperparameters) | given, found)


def real_numbers(story: Story) -> set[str]:
    """Return the names of the hyperparameters that are real numbers by their default or annotation."""
    written = {
        each.name: each.annotation if isinstance(each.annotation, str) else inspect.formatannotation(each.annotation)
        for each in inspect.signature(story).parameters.values()
    }
    defaults = hyperparameters_of(story)
    return {name for name, value in defaults.items() if isinstance(value, float) or "float" in written.get(name, "")}


class _Example(ByKey):
    """Annotations and numbers to try a story with; equal where the annotations have the same fields."""

    def __init__(self, annotations: Annotations, numbers: dict[str, float]) -> None:
        self.annotations = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), annotations)
        self.numbers = numbers
        sizes = (
            annotations.n_classes,
            annotations.n_categories,
            annotations.informative,
            annotations.kind,
            annotations.scored,
        )
        names = (field.name for field in fields(annotations))
        self._key = (*sizes, *(name for name in names if getattr(annotations, name) is not None))


@lru_cache(maxsize=256)
def _numbers(frame: Frame, example: _Example) -> tuple[str, ...]:
    """Those of the frame's numbers that the story does not look at: all together, or else one after the other."""
    if _runs(frame, frame.numbers, example):
        return frame.numbers
    found: tuple[str, ...] = ()
    for name in frame.numbers:
        if _runs(frame, (*found, name), example):
            found = (*found, name)
    return found


def _runs(frame: Frame, names: tuple[str, ...], example: _Example) -> bool:
    """Return whether the story runs with abstract numbers in the place of the hyperparameters ``names``."""

    def run(values: list[Array], annotations: Annotations) -> Array:
        hyperparameters = frame.others | example.numbers | dict(zip(names, values, strict=True))
        model = Model(frame.story, hyperparameters, names)
        start = starting_point(model, annotations, jax.random.key(0))
        return density(model, start, annotations).log_posterior

    try:
        jax.eval_shape(run, [jax.ShapeDtypeStruct((), jnp.result_type(float)) for _ in names], example.annotations)
    except Exception:  # whatever a story of a user's own does with a number that has no value
        return False
    return True
