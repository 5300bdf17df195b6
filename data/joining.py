"""Annotations that came later, put to those that were there."""

from numbers import Number
from typing import Any

import numpy as np
import pandas as pd

from .arrays import counts, longer, read_only
from .columns import Column, type_hint
from .comparisons import together
from .errors import AnnotationError, warn
from .features import columns_by_name
from .ids import Ids
from .question_classes import refuse_not_own
from .questions import SHARED, fields_of, questions_of
from .repeats import resolve_repeats

NO_CHOICE = (
    "the annotations were made with repeats='error', so leave these out, or make annotations of everything with "
    "repeats='keep' or repeats='first'"
)

CLOSED = (
    "classes cannot be added to; make annotations of everything with classes=[…], and fit them anew where there is a "
    "fit"
)
"""Said of a label to be added that is none of the classes."""

GIVEN = {
    "features": "features of the tasks",
    "worker_features": "features of the workers",
    "item_features": "features of the items",
    "prior": "given probabilities of the classes",
}


def joined(first: Any, more: Any) -> Any:
    """Both together: see :meth:`.Annotations.joined`."""
    if (first.worker is None) != (more.worker is None):
        whose = "these annotations" if first.named else "the annotations to be added"
        raise AnnotationError(f"only {whose} name workers; both or neither are to name them")
    if first.kind == more.kind:
        first.kind.refuse_other_order(first.classes, more.classes)
    if bool(questions_of(first.tasks)) != bool(questions_of(more.tasks)):
        whose = "these annotations" if questions_of(first.tasks) else "the annotations to be added"
        raise AnnotationError(f"only {whose} have questions; both or neither are to have them")
    if (asked := questions_of(first.workers)) and not questions_of(more.workers):
        more = more.by_question(shared=SHARED in asked)
    more, of_pairs = together(first, more)
    more = _with_features_of_prompts(first, more) if of_pairs else more
    if of_pairs and first.item_features is not None:
        items = of_pairs["items"]
        places = items.index_of(more.items)
        of_items = _of(first, more, "item_features", first.items, more.items, places, len(items))
        of_pairs |= {"item_features": of_items}
    classes, abstentions = first.classes.index_of(more.classes), first.abstentions.index_of(more.abstentions)
    for name, place in zip(more.classes, classes, strict=True):
        if place < 0:
            raise AnnotationError(_no_class(first, name))
    for name, place in zip(more.abstentions, abstentions, strict=True):
        if place < 0:
            raise AnnotationError(
                f"the abstention {name!r} is none of the {len(first.abstentions)} known ones "
                f"{list(first.abstentions[:10])}, and categories of annotations cannot be added to; make annotations "
                "of everything with abstain=[…]"
            )
    kinds = np.concatenate([classes, first.n_classes + abstentions]).astype(np.int32)
    known = first.kind, first.classes, first.questions, more.tasks
    refuse_not_own(*known, np.asarray(more.task), kinds[np.asarray(more.label)], lambda _: "a label to be added")
    tasks, task = _together(first.tasks, more.tasks, "task")
    workers, worker = _together(first.workers, more.workers, "worker")
    rows = np.concatenate([np.asarray(first.task), task[np.asarray(more.task)]]).astype(np.int32)
    by = None
    if more.worker is not None:
        by = np.concatenate([np.asarray(first.worker), worker[np.asarray(more.worker)]]).astype(np.int32)
    counted = first.count is not None or more.count is not None
    count = np.concatenate([counts(first), counts(more)]) if counted else None
    kept = np.arange(len(rows))
    if by is not None:

        def where(row: int) -> str:
            return "one is known already" if row < first.n_rows else "one is to be added"

        if first.repeats == "keep":
            label = np.concatenate([np.asarray(first.label), kinds[np.asarray(more.label)]])
            _tell_given_again(rows, by, label, first.n_rows)
        columns = Column("task", rows, tasks, where), Column("worker", by, workers, where)
        kept, count = resolve_repeats(*columns, count, first.repeats, NO_CHOICE)
    place = np.argsort(rows[kept], kind="stable")
    order = kept[place]

    def by_row(old: np.ndarray | None, new: np.ndarray | None, missing: float) -> np.ndarray | None:
        if old is None and new is None:
            return None
        parts = [
            np.full(n_rows, missing, type(missing)) if values is None else np.asarray(values)
            for values, n_rows in ((old, first.n_rows), (new, more.n_rows))
        ]
        return read_only(np.concatenate(parts)[order])

    return first.replace(
        task=read_only(rows[order]),
        worker=None if by is None else read_only(by[order]),
        label=by_row(first.label, kinds[np.asarray(more.label)], 0),
        count=None if count is None else read_only(count[place].astype(np.float32)),
        seconds=by_row(first.seconds, more.seconds, np.nan),
        when=by_row(first.when, more.when, np.nan),
        mirrored=by_row(first.mirrored, more.mirrored, False),
        gold=_gold(first, more, classes, task, len(tasks)),
        features=_of(first, more, "features", first.tasks, more.tasks, task, len(tasks)),
        worker_features=_of(first, more, "worker_features", first.workers, more.workers, worker, len(workers)),
        prior=_of(first, more, "prior", first.tasks, more.tasks, task, len(tasks)),
        evidence=longer(first.evidence, len(tasks), 0),
        model_scores=longer(first.model_scores, len(tasks), np.nan),
        tasks=tasks,
        **fields_of(tasks),
        workers=workers,
        **of_pairs,
    )


def _with_features_of_prompts(first: Any, more: Any) -> Any:
    """Comparisons to be added, whose tasks have the features of their prompts where these are known."""
    if first.features is None or more.features is not None:
        return more
    place = {task[0]: i for i, task in enumerate(first.tasks) if _has_prompt(task)}
    places = np.array([place.get(task[0], -1) if _has_prompt(task) else -1 for task in more.tasks])
    return more if (places < 0).any() else more.replace(features=read_only(np.asarray(first.features)[places]))


def _has_prompt(task: Any) -> bool:
    return isinstance(task, tuple) and len(task) == 3


def _tell_given_again(task: np.ndarray, worker: np.ndarray, label: np.ndarray, known: int) -> None:
    """Warn where each row from `known` on is also among those before, as where a whole table is given again."""
    new, asked = len(task) - known, np.unique(task[known:])
    before = np.flatnonzero(np.isin(task[:known], asked))  # the others are of tasks that nothing is added to
    old, added = (
        pd.MultiIndex.from_arrays([of[at] for of in (task, worker, label)]) for at in (before, slice(known, None))
    )
    if new > 1 and added.isin(old).all():
        warn(
            f"all of the {new:,} annotations to be added are there already, with the same labels, and count once more; "
            "give those that are new, or make the first annotations with repeats='first'"
        )


def refuse_new_classes(first: Any, label: Column) -> None:
    """Refuse a table's labels that are neither among the classes nor among the abstentions.

    Raises:
        AnnotationError: with the first such label and its row.
    """
    place = first.categories.index_of(label.ids)
    if (unknown := np.flatnonzero(place < 0)).size:
        name, row = label.ids[int(unknown[0])], int(label.rows_with(int(unknown[0]))[0])
        raise AnnotationError(
            f"{label.title}, {label.where(row)}: {_no_class(first, name)}{type_hint(name, first.categories)}"
        )


def _no_class(first: Any, name: object) -> str:
    among = f" and no abstention of {list(first.abstentions[:10])}" if first.abstains else ""
    return (
        f"the class {name!r} is none of the {first.n_classes} classes {list(first.classes[:10])}{among}, and {CLOSED}"
    )


def _together(old: Ids, new: Ids, what: str) -> tuple[Ids, np.ndarray]:
    """The old identifiers and then those that are new, and where each of the new ones stands among them.

    Raises:
        AnnotationError: all old ones are whole numbers, and a new one is a number of another type.
    """
    places = np.array(old.index_of(new))
    added = [name for name, place in zip(new, places, strict=True) if place < 0]
    for name in added:
        if old.kind is int and isinstance(name, Number) and type(name) is not int:
            raise AnnotationError(
                f"the {what} {name!r}, which is to be added, is of type {type(name).__name__}, and each that is known "
                f"of type int, such as {old[0]!r}: convert the column first"
            )
    places[places < 0] = len(old) + np.arange(len(added))
    return type(old)([*old, *added]) if added else old, places


def _of(first: Any, more: Any, field: str, old: Ids, new: Ids, places: np.ndarray, size: int) -> np.ndarray | None:
    """Return the values by task or by worker of both; what was given first stays.

    Raises:
        AnnotationError: it is known of the first ones and not of one that is new.
    """
    before, after = getattr(first, field), getattr(more, field)
    if before is None:
        return None
    added = places >= len(old)
    if after is None:
        if added.any():
            raise AnnotationError(
                f"there are {GIVEN[field]}, and none of {new[int(np.argmax(added))]!r}, which is new; bring them with "
                "the annotations to be added"
            )
        return before
    names = field.removesuffix("s") + "_names"  # which features have
    if field != "prior" and len(getattr(first, names)) and len(getattr(more, names)):
        table = pd.DataFrame(np.asarray(after), columns=list(getattr(more, names)))
        after = columns_by_name(table, getattr(first, names), field).to_numpy()
    if np.shape(after)[1:] != np.shape(before)[1:]:
        raise AnnotationError(
            f"{GIVEN[field]} have the shape {np.shape(before)[1:]} each, and of those to be added {np.shape(after)[1:]}"
        )
    both = longer(before, size, 0)
    both[places[added]] = np.asarray(after)[added]
    return read_only(both)


def _gold(first: Any, more: Any, classes: np.ndarray, places: np.ndarray, n_tasks: int) -> np.ndarray | None:
    """Gold labels of both; of a task with two the newer one."""
    if first.gold is None and more.gold is None:
        return None
    gold = np.full(n_tasks, -1, np.int32)
    if first.gold is not None:
        gold[: first.n_tasks] = first.gold
    if more.gold is not None:
        known = np.asarray(more.gold) >= 0
        gold[places[known]] = classes[np.asarray(more.gold)[known]]
    return read_only(gold)
