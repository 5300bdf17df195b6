"""Annotations that are no class: which values they are, and what is said where they leave nothing else."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from .columns import Column
from .errors import AnnotationError, nearest, warn
from .id_text import listing, name_quoted
from .ids import Ids
from .kinds import NOMINAL, Kind


class Written(str):
    """An abstention as it is written, such as on a command line: it stands for the label that is written so."""


class Kinds(NamedTuple):
    """A column of annotations with the classes and the abstentions among its values."""

    label: Column  # codes into the K classes and then the L − K abstentions, which are its `ids`
    classes: Ids
    abstentions: Ids


def resolve_kinds(
    label: Column,
    classes: Iterable[Any] | None,
    abstain: Any = None,
    suggest: Callable[[], str] = lambda: "",
    *,
    kind: Kind = NOMINAL,
    option: str = "classes",
    tell: bool = True,
) -> Kinds:
    """Return the label column with codes into the classes and then the abstentions.

    Args:
        label: the annotations.
        classes: all classes in the wanted order, or None: see :meth:`.Kind.with_classes`.
        abstain: the values that are no class, one or several; None for none.
        suggest: as for :meth:`.Kind.with_classes`.
        kind: the kind of the labels, which has the order of the classes.
        option: that lists the classes, for messages.
        tell: whether to warn of abstentions that nobody used.

    Raises:
        AnnotationError: a value is among the classes too, every annotation is an abstention and no classes are given,
            or as the kind says.
    """
    abstentions = abstentions_of(abstain, label.ids)
    if not len(abstentions):
        label = kind.with_classes(label, classes, suggest, option)
        return Kinds(label, label.ids, abstentions)
    wanted = None if classes is None else Ids(classes, what=option)
    if wanted is not None:
        _refuse_classes(abstentions, wanted, option)
    without = _without(label, abstentions)
    if not len(without.ids) and wanted is None and not without.categories:
        raise AnnotationError(
            f"{label.title}: every annotation is one of abstain={list(abstentions)!r}, so that no class is known; "
            "list the classes in classes=[...]"
        )
    named = (
        kind.with_classes(without, wanted, suggest, option).ids
        if len(without.ids)
        else Ids(wanted or without.categories or ())
    )
    kinds = Ids([*named, *abstentions], what="classes and abstain")
    if tell:
        _tell_unused(abstentions, label)
    return Kinds(label.aligned(kinds, "classes and abstain"), named, abstentions)


def abstentions_of(abstain: Any, known: Iterable[Any] = ()) -> Ids:
    """The values that are no class, in the order given.

    Args:
        abstain: one value, several, or None for none.
        known: the labels, among which a value that is :class:`Written` is looked for, and a whole float.

    Raises:
        AnnotationError: a value is given twice, or cannot be hashed.
    """
    if abstain is None:
        return Ids()
    several = isinstance(abstain, Iterable) and not isinstance(abstain, str | bytes | tuple)
    known = list(known)
    by_text = {str(value): value for value in known}
    whole: dict[Any, Any] = {value: value for value in known if type(value) is int}
    listed = [
        by_text.get(value, str(value))
        if isinstance(value, Written)
        else whole.get(value, value)
        if isinstance(value, float)
        else value
        for value in (abstain if several else [abstain])
    ]
    return Ids(listed, what="abstain")


def tell_abstainers(task: np.ndarray, tasks: Ids, worker: np.ndarray | None, workers: Ids, given: np.ndarray) -> None:
    """Warn of tasks and of workers whose annotations are all abstentions.

    Args:
        task: of each row, ``(A,)``.
        tasks: the N tasks.
        worker: of each row, ``(A,)``, or None where none is named.
        workers: the J workers.
        given: whether each row is a class, ``(A,)`` bool.
    """
    empty = _only_abstained(task, len(tasks), given)
    if len(empty):
        warn(
            f"{len(empty):,} of {len(tasks):,} tasks have abstentions only, such as "
            f"{name_quoted(tasks[int(empty[0])])}: their labels follow from the prevalence, and from what abstaining "
            "says of the class"
        )
    silent = np.zeros(0, int) if worker is None else _only_abstained(worker, len(workers), given)
    if len(silent):
        warn(
            f"{len(silent):,} of {len(workers):,} workers gave abstentions only, such as "
            f"{workers[int(silent[0])]!r}: of how often they are right nothing is known but the prior"
        )


def _only_abstained(unit: np.ndarray, n: int, given: np.ndarray) -> np.ndarray:
    return np.flatnonzero((np.bincount(unit, minlength=n) > 0) & (np.bincount(unit[given], minlength=n) == 0))


def _refuse_classes(abstentions: Ids, classes: Ids, option: str) -> None:
    both = [value for value in abstentions if value in classes]
    if both:
        raise AnnotationError(
            f"abstain={list(abstentions)!r}: {both[0]!r} is in {option}={list(classes)!r} too; a value is a class or "
            "an abstention, so leave it out of one of the two"
        )


def _tell_unused(abstentions: Ids, label: Column) -> None:
    others = [value for value in label.ids if value not in abstentions]
    for value in abstentions:
        if value not in label.ids:
            near = nearest(value, others)
            meant = "" if near is None else f" (did you mean {near!r}?)"
            found = listing(label.ids, 10)
            warn(f"abstain: no annotation is {value!r}{meant}; the values found in {label.title} are {found}")


def _without(label: Column, abstentions: Ids) -> Column:
    """The column without its abstentions, whose rows have the code −1, so that the others stay where they are."""
    kept: list[Hashable] = [value for value in label.ids if value not in abstentions]
    place = np.full(len(label.ids), -1, np.int32)
    place[label.ids.index_of(kept)] = np.arange(len(kept), dtype=np.int32)
    listed = label.categories
    categories = None if listed is None else Ids([value for value in listed if value not in abstentions])
    return replace(label, codes=place[label.codes], ids=Ids(kept), categories=categories)
