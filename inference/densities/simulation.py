"""Simulated data: parameters, true labels and annotations of a story, for any number of tasks and workers."""

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from ...data import Annotations, Ids
from ...data.abstentions import abstentions_of
from ...data.comparisons import KIND, SIDES
from ...data.errors import real_number, whole_number
from ...data.features import resolve_features, resolve_worker_features
from ...data.questions import Units, fields_of
from ...models import Story, find_story
from ...models.parts.abstaining import SITE
from ...models.parts.simulated_inputs import prepared, simulated_classes
from .evidence import with_truth_prior
from .model import Model
from .portable import with_numbers
from .prior import sampled
from .programs import compiled, key_of
from .ready_programs import use_program_cache

CELLS = 10_000_000  # tasks × workers to draw an assignment for at a time

_sampled = compiled(sampled, once=True)


def simulate(
    story: str | Story,
    *,
    n_tasks: int,
    n_workers: int,
    n_classes: int | None = None,
    items: int | Sequence[Hashable] | None = None,
    questions: int | Sequence[Hashable] | None = None,
    annotations_per_task: int | None = None,
    tail: float = 0.0,
    gold: float = 1.0,
    features: np.ndarray | None = None,
    worker_features: np.ndarray | None = None,
    parameters: Mapping[str, Any] | None = None,
    abstain: Any = None,
    abstain_rate: float | None = None,
    seed: int = 0,
    **hyperparameters: Any,
) -> tuple[Annotations, dict[str, np.ndarray]]:
    r"""Draw parameters from a story's prior, then true labels and annotations given the parameters.

    A story declares what its simulation needs beside tasks and workers
    (:func:`~crowdppl.models.parts.simulated_inputs.simulated_with`): ``difficulty`` brings features that decide the
    truth, unless a truth prior or votes are given, and the annotations of stories of ordered classes are ordered.

    Args:
        story: a story's name, or any function that keeps the contract of a story.
        n_tasks: number of tasks N.
        n_workers: number of workers J.
        n_classes: number of classes K, which are called 0 to K − 1; 2 by default, of a story of ordered classes 5.
        items: of comparisons, how many items there are, which are called 0, 1, …, or their names. A task is a pair of
            them, taken at random as is which stands left in each row; the classes are left and right, and tie where
            ``n_classes`` is 3. True labels follow the items' scores (:class:`.BradleyTerry`), whose order is that of
            the parameter ``item_effect``. None for classes that are no sides.
        questions: how many questions are asked about each task, which are called 0, 1, …, or their names: each has a
            true label of its own, and each worker of a task answers all. None for one question without a name.
        annotations_per_task: different workers who annotate each task; None for all of them.
        tail: how unevenly workers annotate: worker :math:`j` is taken with weight :math:`(j + 1)^{-\text{tail}}`, so
            that 0 is even and 1 is Zipf's law.
        gold: share of the tasks, of several questions of their pairs with one, taken at random, whose true label the
            annotations carry.
        features: of the tasks, ``(N, ...)``, for stories and truth priors that read them.
        worker_features: of the workers, ``(J, D)``.
        parameters: values of some or all parameters by site, which are then not drawn.
        abstain: the categories of annotations that are no class, L − K of them, as for ``Annotations.from_frame``; None
            for none. How often each worker abstains is the parameter ``abstention``, ``(J, K, 1 + L − K)``: of the
            classes together, and of each abstention.
        abstain_rate: how often every worker abstains, whatever the true class, from 0 to 1, spread evenly over the
            kinds of ``abstain`` (``"abstain"`` where it names none); None for rates that are drawn.
        seed: the same seed gives the same data.
        **hyperparameters: of the story, ``truth_prior`` among them.

    Returns:
        The annotations, with true labels as gold and with the features that the simulation used, and the parameters by
        site.

    Raises:
        UnknownNameError: there is no story of that name, or a parameter is none of the story's.
        StoryError: the story has no site ``truth`` or ``annotation``, or a prior that nothing can be drawn from.
        AnnotationError: features are not one row of finite numbers a task, or a worker.
        ValueError: a size, a share or the shape of a parameter cannot be; items are asked for of a story of ordered
            classes, or with more classes than left, right and tie.
    """
    use_program_cache()
    program = find_story(story)
    if n_classes is None:
        n_classes = simulated_classes(program) if items is None else 2
    _check_sizes(n_tasks, n_workers, n_classes, annotations_per_task)
    real_number("tail", tail, 0)
    real_number("gold", gold, 0, 1)
    tasks, workers = Ids.range(n_tasks), Ids.range(n_workers)
    if features is not None:
        features = resolve_features(features, tasks, noun="task", column="task", ordered=True)
    if worker_features is not None:
        worker_features = resolve_worker_features(worker_features, workers)
    abstentions = abstentions_of("abstain" if abstain is None and abstain_rate is not None else abstain)
    parameters = dict(parameters or {}) | _rates(abstain_rate, n_workers, n_classes, len(abstentions))
    rng = np.random.default_rng(seed)
    task, worker = _assign(rng, n_tasks, n_workers, annotations_per_task or n_workers, tail)
    design = Annotations(
        task=task,
        worker=worker,
        label=np.zeros(len(task), dtype=np.int32),
        count=None,
        gold=None,
        features=features,
        worker_features=worker_features,
        tasks=tasks,
        workers=workers,
        classes=Ids.range(n_classes),
        abstentions=abstentions,
    )
    if items is not None:
        design = _compared(design, _names("items", items, 2), rng, questions)
    elif questions is not None:
        design = _asked(design, _names("questions", questions, 1))
    kind = design.kind
    if "truth_prior" in hyperparameters:
        prior, design = with_truth_prior(design, hyperparameters["truth_prior"])
        hyperparameters["truth_prior"] = prior
    design, hyperparameters = prepared(program, design, hyperparameters, rng)
    if items is not None and design.kind != kind:
        raise ValueError(
            f"items={items!r} is of comparisons, and {getattr(program, '__name__', program)} is of ordered classes; "
            "take a story of classes, such as 'one_coin'"
        )
    values = {name: np.asarray(value, dtype=jax.dtypes.canonicalize_dtype(float)) for name, value in parameters.items()}
    given, key, model = design.replace(label=None), key_of(seed), Model(program, hyperparameters)
    if (of_numbers := with_numbers(model, design)).numbers:
        jax.eval_shape(partial(sampled, model), given, values, key)  # which looks at the numbers
    sites = _sampled(of_numbers, given, values, key)
    truth = np.asarray(sites.pop("truth"), dtype=np.int32)
    known = rng.permutation(len(truth)) < round(gold * len(truth))
    annotations = design.replace(
        label=np.asarray(sites.pop("annotation"), dtype=np.int32),
        gold=np.where(known, truth, -1).astype(np.int32) if known.any() else None,
    )
    return annotations, {name: np.asarray(value) for name, value in sites.items()}


def _names(name: str, given: int | Sequence[Hashable], least: int) -> Ids:
    """The names of items or questions, or of so many of them: 0, 1, …"""
    if isinstance(given, list | tuple | Ids):
        whole_number(f"len({name})", len(given), least)
        return Ids(given, what=name)
    return Ids.range(whole_number(name, given, least))


def _compared(design: Annotations, items: Ids, rng: np.random.Generator, questions: Any) -> Annotations:
    """The design with pairs of items as tasks; in its first row a pair stands as the task has it."""
    if questions is not None:
        raise ValueError(f"questions={questions!r}: comparisons have one question, by which items have scores")
    if design.n_classes > len(SIDES):
        raise ValueError(f"n_classes={design.n_classes!r}: of comparisons it is 2, or {len(SIDES)} with ties")
    left = rng.integers(len(items), size=design.n_tasks)
    right = (left + rng.integers(1, len(items), size=design.n_tasks)) % len(items)
    first = np.r_[True, np.asarray(design.task)[1:] != np.asarray(design.task)[:-1]]
    return design.replace(
        sides=np.column_stack([left, right]).astype(np.int32),
        items=items,
        mirrored=rng.random(len(first)) < np.where(first, 0, 0.5),
        kind=KIND,
        classes=Ids(SIDES[: design.n_classes], what="classes"),
        preferences=False,
    )


def _asked(design: Annotations, questions: Ids) -> Annotations:
    """The design with several questions about each task, all of which its workers answer."""
    per_task, n = len(np.asarray(design.task)) // design.n_tasks, len(questions)
    worker = np.repeat(np.asarray(design.worker).reshape(design.n_tasks, 1, per_task), n, axis=1).ravel()
    units = Units([(task, question) for task in design.tasks for question in questions])
    return design.replace(
        task=np.repeat(np.arange(design.n_tasks * n, dtype=np.int32), per_task),
        worker=worker,
        label=np.zeros(len(worker), dtype=np.int32),
        tasks=units,
        **fields_of(units),
        features=None if design.features is None else np.repeat(design.features, n, axis=0),
    )


def _check_sizes(n_tasks: int, n_workers: int, n_classes: int, annotations_per_task: int | None) -> None:
    for name, value, least in (("n_tasks", n_tasks, 1), ("n_workers", n_workers, 1), ("n_classes", n_classes, 2)):
        whole_number(name, value, least)
    if annotations_per_task is not None and not 1 <= annotations_per_task <= n_workers:
        raise ValueError(
            f"annotations_per_task={annotations_per_task!r}: 1 to {n_workers} workers can annotate a task, or "
            "None for all"
        )


def _rates(rate: float | None, n_workers: int, n_classes: int, n_abstentions: int) -> dict[str, np.ndarray]:
    """The parameter ``abstention`` where all workers abstain at one rate; nothing where rates are drawn."""
    if rate is None:
        return {}
    rate = real_number("abstain_rate", rate, 0, 1)
    if not n_abstentions:
        raise ValueError(f"abstain_rate={rate!r}: abstain= with a value at least is needed")
    row = np.r_[1 - rate, np.full(n_abstentions, rate / n_abstentions)]
    return {SITE: np.broadcast_to(row, (n_workers, n_classes, 1 + n_abstentions))}


def _assign(
    rng: np.random.Generator, n_tasks: int, n_workers: int, per_task: int, tail: float
) -> tuple[np.ndarray, np.ndarray]:
    """Task and worker of each annotation: ``(N · per_task,)`` each, by task, without repeats."""
    task = np.repeat(np.arange(n_tasks, dtype=np.int32), per_task)
    if per_task == n_workers:
        return task, np.tile(np.arange(n_workers, dtype=np.int32), n_tasks)
    log_weight, step = -tail * np.log(np.arange(1, n_workers + 1)), max(CELLS // n_workers, 1)
    sizes = (min(step, n_tasks - begin) for begin in range(0, n_tasks, step))
    chosen = [
        np.sort(np.argpartition(-(log_weight + rng.gumbel(size=(size, n_workers))), per_task)[:, :per_task])
        for size in sizes
    ]  # the largest of log-weights with Gumbel noise are a draw by the weights without replacement
    return task, np.concatenate(chosen).astype(np.int32).ravel()
