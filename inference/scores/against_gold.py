"""Label probabilities of the tasks with gold labels, beside those gold labels."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ...data import AnnotationError, Annotations, Ids, unknown_name
from ...data.gold import resolve_gold, resolve_inclusion, resolve_ratings, right_shares
from ...data.kinds import NOMINAL, Kind
from ...data.questions import QUESTION, ids_of_index
from ..densities.probabilities import refuse_others
from ..fitted.posterior import Posterior


@dataclass(frozen=True, eq=False)
class GoldTasks:
    """The n tasks whose gold label is known and was not used by the fit, with their label probabilities.

    Args:
        probabilities: of the classes, ``(n, K)``.
        gold: the gold labels as positions of classes, ``(n,)``.
        tasks: the tasks, n of them.
        classes: the K classes.
        gold_used: how many further gold tasks are left out, because the fit used their gold labels as evidence.
        kind: the kind of the labels.
    """

    probabilities: np.ndarray
    gold: np.ndarray
    tasks: pd.Index
    classes: pd.Index
    gold_used: int
    kind: Kind = NOMINAL

    @property
    def right(self) -> np.ndarray:
        """1 where the most probable class is the gold label, else 0, ``(n,)``; a tie of m classes counts for 1/m."""
        return right_shares(self.probabilities, self.gold)

    @property
    def gold_probability(self) -> np.ndarray:
        """The probability of each task's gold label, ``(n,)``."""
        return self.probabilities[np.arange(len(self.gold)), self.gold]

    @property
    def label_probability(self) -> np.ndarray:
        """The probability of each task's most probable class, ``(n,)``."""
        return self.probabilities.max(-1)

    def position(self, positive: object = None) -> int:
        """The position of the positive class: the one named, or the second of two.

        Raises:
            UnknownNameError: `positive` is no class.
            ValueError: none is named and there are more than two.
        """
        listed = self.classes.tolist()
        if positive is None:
            if len(listed) != 2:
                raise ValueError(
                    f"there are {len(listed)} classes, {listed}; give positive=, the one that is set against all others"
                )
            return 1
        if positive not in listed:
            raise unknown_name("class", positive, listed)
        return listed.index(positive)


def against_gold(source: Any, gold: Any = None) -> GoldTasks:
    """Label probabilities and gold labels of the tasks that have both.

    Args:
        source: a fit, or anything with ``probabilities`` and ``annotations``; or a frame of probabilities, tasks ×
            classes.
        gold: label by task, as :meth:`.Annotations.with_gold` takes it, or annotations that carry gold labels; None for
            those that the annotations carry.

    Raises:
        AnnotationError: there are no gold labels, they do not fit the tasks or the classes, the fit used all of them,
            or a frame holds no probabilities.
        TypeError: `source` is something else.
    """
    found = with_gold(source, gold)
    kind = NOMINAL if found.annotations is None else found.annotations.kind
    return _of_arrays(found.probabilities, found.gold, found.gold_used, kind)


def by_question(source: Any, gold: Any = None) -> dict[Any, GoldTasks]:
    """The gold tasks of each question that has some, with the question's classes and the kind of its labels.

    Arguments are those of :func:`against_gold`.

    Raises:
        AnnotationError: one question is asked about each task, or as :func:`against_gold`.
    """
    found = with_gold(source, gold)
    index, n_classes = found.probabilities.index, found.probabilities.shape[1]
    if QUESTION not in index.names:
        raise AnnotationError("by='question' is of several questions about each task: these annotations have one")
    kind: Kind = NOMINAL if found.annotations is None else found.annotations.kind
    question, names = pd.factorize(index.get_level_values(QUESTION))
    parts = {}
    for place, name in enumerate(names):
        chosen, rows = kind.classes_of(place, n_classes), question == place
        where = np.full(n_classes + 1, -1)  # the last is of an unknown gold label
        where[chosen] = np.arange(len(chosen))
        known = where[found.gold[rows]]
        if (known >= 0).any() and not found.gold_used[rows][known >= 0].all():
            of = kind.of_question(place)
            parts[name] = _of_arrays(found.probabilities.iloc[rows, chosen], known, found.gold_used[rows], of)
    if not parts:
        _of_arrays(found.probabilities, found.gold, found.gold_used, kind)
    return parts


def ratings_of(source: Any, gold: Any) -> np.ndarray | None:
    """Numbers that tasks of a fit of ordered classes are rated with, ``(N,)``, NaN where none is; None for labels.

    Arguments are those of :func:`against_gold`.

    Raises:
        AnnotationError: a task is unknown.
    """
    if gold is None or isinstance(gold, Annotations) or not isinstance(source, Posterior):
        return None
    annotations = source.annotations
    return resolve_ratings(gold, annotations.tasks, annotations.classes) if annotations.kind.in_order else None


@dataclass(frozen=True, eq=False)
class TasksWithGold:
    """All N tasks with their label probabilities, whether or not a gold label is known.

    Args:
        probabilities: of the labels, N tasks × K classes.
        gold: the gold labels as positions of classes, ``(N,)``; −1 where none is known.
        gold_used: whether the fit used a certain label of the task as evidence, ``(N,)``.
        annotations: the annotations as they were given; None where `probabilities` came as a frame.
        inclusion: the probabilities with which the gold tasks were drawn, ``(N,)``, NaN of other tasks; None where the
            gold labels say nothing of it.
    """

    probabilities: pd.DataFrame
    gold: np.ndarray
    gold_used: np.ndarray
    annotations: Annotations | None
    inclusion: np.ndarray | None


def with_gold(source: Any, gold: Any = None, *, needed: bool = True) -> TasksWithGold:
    """All tasks with their label probabilities, and the gold labels that are known.

    Args:
        source: as for :func:`against_gold`.
        gold: as for :func:`against_gold`.
        needed: whether gold labels are refused that are not there.

    Raises:
        AnnotationError: there are no gold labels where they are needed, they do not fit the tasks or the classes, or a
            frame holds no probabilities.
        TypeError: `source` is something else.
    """
    if isinstance(gold, Annotations):
        gold = _labels_by_task(gold)
    if isinstance(source, pd.DataFrame):
        return _of_frame(source, gold, needed)
    if not isinstance(source, Posterior):
        raise TypeError(
            f"a fit with labels or a frame of probabilities (tasks × classes) is needed, got a {type(source).__name__}"
        )
    annotations = source.given if gold is None else source.given.with_gold(gold)
    if annotations.gold is None and needed:
        raise AnnotationError("the annotations carry no gold labels; give gold={task: label, …}")
    known = np.full(annotations.n_tasks, -1) if annotations.gold is None else np.asarray(annotations.gold)
    drawn = None if gold is None else resolve_inclusion(gold, annotations.tasks, annotations.classes)
    return TasksWithGold(source.probabilities, known, _gold_used(source), annotations, drawn)


def _labels_by_task(annotations: Annotations) -> dict[Any, Any]:
    """The gold labels that annotations carry, by task."""
    if annotations.gold is None:
        raise AnnotationError("gold: the annotations carry no gold labels; give gold={task: label, …}")
    known = np.flatnonzero(np.asarray(annotations.gold) >= 0)
    return {annotations.tasks[int(i)]: annotations.classes[int(annotations.gold[i])] for i in known}


def _of_frame(frame: pd.DataFrame, gold: Any, needed: bool) -> TasksWithGold:
    """The tasks of a frame of probabilities, tasks × classes, after a check that it holds probabilities."""
    if gold is None and needed:
        raise AnnotationError("a frame of probabilities carries no gold labels; give gold={task: label, …}")
    values = frame.to_numpy(dtype=float)
    refuse_others(values, lambda row: f"task {frame.index[row]!r}", frame.columns)
    tasks, classes = ids_of_index(frame.index), Ids(frame.columns, what="classes")
    known = np.full(len(frame), -1) if gold is None else resolve_gold(gold, tasks, classes)
    drawn = None if gold is None else resolve_inclusion(gold, tasks, classes)
    return TasksWithGold(frame, known, np.zeros(len(frame), bool), None, drawn)


def _of_arrays(probabilities: pd.DataFrame, gold: np.ndarray, gold_used: np.ndarray, kind: Kind) -> GoldTasks:
    """The tasks whose gold label, ``gold (N,)`` with −1 for none, is known and is not among ``gold_used (N,)``."""
    known = gold >= 0
    use = known & ~gold_used
    if not use.any():
        why = "the fit used all of them as evidence" if known.any() else "they are all missing"
        raise AnnotationError(f"there is no gold label to score by: {why}; give others by gold={{task: label, …}}")
    return GoldTasks(
        probabilities.to_numpy(dtype=float)[use],
        gold[use],
        probabilities.index[use],
        probabilities.columns,
        int((known & gold_used).sum()),
        kind,
    )


def _gold_used(source: Posterior) -> np.ndarray:
    """The tasks whose label was certain evidence in the fit, or in any of a stack's fits, ``(N,)`` bool."""
    used = np.zeros(source.annotations.n_tasks, bool)
    for data in [source.annotations, *(fitted.annotations for fitted in source.members.values())]:
        if data.evidence is not None:
            used |= np.isneginf(np.asarray(data.evidence)).any(-1)
    return used
