"""The fields of `Annotations` from encoded columns: the checks and the sorting that all readers share."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from .abstentions import abstentions_of, resolve_kinds, tell_abstainers
from .arrays import read_only
from .columns import Column, Where
from .errors import AnnotationError, warn
from .features import features_fields
from .gold import FOUND_OUT, TextFormat, resolve_gold
from .ids import Ids
from .input_warnings import (
    merged,
    tell_alike_names,
    tell_classes,
    tell_codes,
    tell_far,
    tell_no_workers,
    tell_order,
    tell_other_scales,
    tell_repeated_table,
    tell_scale,
    tell_sums,
    tell_tags,
    tell_two_scales,
    tidied,
    tidied_names,
)
from .kinds import NOMINAL, Kind, Ordered, kind_of, listed_classes, stated_classes
from .levels import scored
from .question_classes import own_classes
from .questions import (
    QUESTION,
    Units,
    fields_of,
    in_order,
    questions_of,
    tasks_of,
    tell_lone_workers,
)
from .repeats import Repeats, resolve_repeats
from .text import decimal_numbers

ZONE = r"[T ]\d\d.*[+-](?!00:?00$)\d\d:?\d\d$"  # at the end of a time
SINCE_1970 = 1e8  # seconds, from which on a number is hardly anything but a time: of the year 1973
UNITS_APART = 30  # times as large as the usual, from which on a number is of another unit
LARGEST_COUNT = 2**24  # up to here single precision holds every whole number


@dataclass(frozen=True)
class Rows:
    """Annotations in the order of the input, A rows."""

    task: Column
    worker: Column | None
    label: Column
    count: np.ndarray | None = None  # (A,) float64, whole and not negative
    seconds: np.ndarray | None = None  # (A,) float64, not negative, NaN where unknown
    when: np.ndarray | None = None  # (A,) float64, NaN where unknown
    mirrored: np.ndarray | None = None  # (A,) bool, whether a pair was shown the other way round
    ordered_tasks: bool = False  # whether the input itself gives the order of the tasks, as a matrix does
    ordered_workers: bool = False  # whether it gives the order of the workers


def build(
    rows: Rows,
    *,
    classes: Iterable[Any] | Mapping[Any, Any] | None = None,
    ordered: bool | Iterable[Any] | Mapping[Any, Any] | None = None,
    abstain: Any = None,
    truth_classes: Iterable[Any] | None = None,
    tasks: Iterable[Any] | None = None,
    workers: Iterable[Any] | None = None,
    gold: Any = None,
    features: Any = None,
    worker_features: Any = None,
    repeats: Repeats = "keep",
    tidy: bool = False,
    merge: Mapping[Any, Any] | None = None,
    names: tuple[str, str, str] = ("task", "worker", "label"),
    question: str = QUESTION,
    gold_format: TextFormat = FOUND_OUT,
    suggest: Callable[[], str] = lambda: "",
    kind: Kind | None = None,
    tell: bool = True,
) -> dict[str, Any]:
    """Return the fields of `Annotations`: checked, sorted by task, read-only.

    The options are those of `Annotations.from_frame`; `names` are the columns of tables given for gold and features,
    `question` that of questions, `gold_format` is as for `resolve_gold`, `suggest` improves messages (see
    `Kind.with_classes`), `tell` is whether to warn of what abstentions leave without an annotation, of abstentions that
    nobody used, and of questions that one worker alone answered. `kind` is
    the kind of the labels where it is known, else `ordered` and the labels' type say it.

    Raises:
        AnnotationError: a label, task, worker, gold label, feature or count cannot be used, or an option needs named
            workers.
    """
    label = rows.label
    abstain = list(abstain) if isinstance(abstain, Iterator) else abstain
    if merge:
        label = merged(label, merge)
    if tidy:
        listed = listed_classes({"classes": classes, "ordered": ordered})
        label = tidied(label, [*(listed or ()), *abstentions_of(abstain)])
    own = None
    if kind is None and truth_classes is None:
        of: dict[str, Any] = {"classes": classes, "ordered": ordered, "abstain": abstain, "suggest": suggest}
        own = own_classes(label, rows.task.ids, rows.task.codes, **of, tell=tell)
    if own is not None:
        classes, ordered = own.classes, None
    classes, is_ordered, option = stated_classes(classes, ordered)
    of_itself = False
    if truth_classes is not None:
        if is_ordered is False:
            raise AnnotationError("truth_classes= is of ordered levels; leave ordered=False out, or truth_classes=")
        kind = Ordered()
    if own is not None:
        kind = NOMINAL
    if kind is None:
        kind, of_itself = kind_of(label, classes, is_ordered, abstentions_of(abstain, label.ids))
    label, named, abstentions = resolve_kinds(label, classes, abstain, suggest, kind=kind, option=option, tell=tell)
    if truth_classes is not None:
        if len(abstentions):
            raise AnnotationError(
                "abstain= and truth_classes= do not go together: leave out the rows that are no level"
            )
        label, named, kind, abstentions = *scored(label, truth_classes), label.ids
    if tell and (classes is None or own is not None) and truth_classes is None:
        tell_classes(named)
        if own is None:
            tell_two_scales(label.title, named)
            if kind.in_order:
                tell_far(label.title, named)
        if kind == NOMINAL and own is None and is_ordered is None:
            tell_scale(label.title, named)
            tell_tags(label.title, named)
            if rows.label.categories is None:
                tell_codes(label.title, named)
    if tell and of_itself:
        tell_order(label.title, named)
    ordered_tasks = rows.ordered_tasks or tasks is not None
    ordered_workers = rows.ordered_workers or workers is not None
    task, worker = rows.task, rows.worker
    if tidy:
        task = tidied_names(task, case=False)
        worker = None if worker is None else tidied_names(worker, case=True)
    elif tell:
        tell_alike_names(task.title, task.ids, case=False)
        if worker is not None:
            tell_alike_names(worker.title, worker.ids, case=True)
    if tell:
        tell_sums(task, label.codes, named)
        if worker is not None and workers is None:
            tell_no_workers(worker.ids)
    if tell and kind.in_order and worker is not None and not isinstance(task.ids, Units):
        tell_other_scales(label.title, named, label.codes, worker)
    if tasks is not None:
        asked = questions_of(task.ids)
        task = in_order(task, tasks) if asked else task.aligned(Ids(tasks, what="tasks"), "tasks")
    if own is not None:
        kind = own.kind(questions_of(task.ids))
    count, seconds, when, mirrored = rows.count, rows.seconds, rows.when, rows.mirrored
    if worker is None:
        _refuse_worker_options(workers, worker_features, repeats, seconds, when)
        task, label, count = _aggregate(task, label, rows.count)
        mirrored = None
    else:
        worker = worker if workers is None else worker.aligned(Ids(workers, what="workers"), "workers")
        if tell and rows.count is None and repeats == "keep":
            # a pair in both orders, and an annotation at two times, is there twice, and not in the table twice
            apart = [each for each in (mirrored, seconds, when) if each is not None]
            tell_repeated_table(task.codes, worker.codes, label.codes, *apart)
        if tell:
            tell_lone_workers(task.ids, task.codes, worker)
        kept, count = resolve_repeats(task, worker, rows.count, repeats)
        task, worker, label = (replace(column, codes=column.codes[kept]) for column in (task, worker, label))
        seconds, when, mirrored = (None if x is None else x[kept] for x in (seconds, when, mirrored))
    order = np.argsort(task.codes, kind="stable")
    fields: dict[str, Any] = {
        "task": task.codes[order],
        "worker": None if worker is None else worker.codes[order],
        "label": label.codes[order],
        "count": None if count is None else count[order].astype(np.float32),
        "gold": None,
        "features": None,
        "worker_features": None,
        "tasks": task.ids,
        **fields_of(task.ids),
        "workers": Ids() if worker is None else worker.ids,
        "classes": named,
        "seconds": None if seconds is None else seconds[order].astype(np.float32),
        "when": None if when is None else when[order],
        "mirrored": mirrored[order] if mirrored is not None and mirrored.any() else None,
        "abstentions": abstentions,
        "repeats": repeats,
        "kind": kind,
        "scored": truth_classes is not None,
    }
    if tell and len(abstentions) and truth_classes is None:
        given = fields["label"] < len(named)
        tell_abstainers(fields["task"], task.ids, fields["worker"], fields["workers"], given)
    if gold is not None:
        fields["gold"] = resolve_gold(
            gold,
            task.ids,
            named,
            task=names[0],
            label=names[2],
            question=question,
            text_format=gold_format,
            abstentions=Ids() if truth_classes is not None else abstentions,
            kind=kind,
            option="classes" if truth_classes is None else "truth_classes",
        )
    if features is not None:
        about: dict[str, Any] = {"column": names[0], "ordered": ordered_tasks}
        fields |= features_fields("features", features, tasks_of(task.ids), "task", **about)
        if isinstance(task.ids, Units):
            fields["features"] = fields["features"][task.ids.task]
    if worker_features is not None and worker is not None:
        about = {"column": names[1], "ordered": ordered_workers}
        fields |= features_fields("worker_features", worker_features, worker.ids, "worker", **about)
    return {name: read_only(value) for name, value in fields.items()}


def check_counts(values: Any, title: str, where: Where) -> np.ndarray:
    """Return counts of annotations as float64 of the same shape.

    Raises:
        AnnotationError: a count is no number, negative, not whole, or above 2^24.
    """
    counts = given = np.asarray(values)
    if counts.dtype.kind not in "iuf":
        try:
            counts = counts.astype(np.float64)
        except (TypeError, ValueError):
            raise AnnotationError(f"{title}: expected whole numbers, got values such as {counts.flat[0]!r}") from None
    counts = counts.astype(np.float64)
    wrong = ~((counts >= 0) & (counts <= LARGEST_COUNT) & (np.floor(counts) == counts))
    if wrong.any():
        cell = int(np.flatnonzero(wrong)[0])
        raise AnnotationError(
            f"{title}, {where(cell)}: {given.ravel()[[cell]].tolist()[0]!r} is no number of annotations; expected a "
            f"whole number from 0 to {LARGEST_COUNT:,}"
        )
    return counts


def check_seconds(values: pd.Series, title: str, where: Where) -> np.ndarray:
    """Return how long each annotation took as float64, shape (A,), NaN where it is unknown.

    Raises:
        AnnotationError: a time is no number, negative or infinite.
    """
    unknown, seconds = values.isna().to_numpy(dtype=bool), _numbers(values)
    wrong = ~unknown & ~((seconds >= 0) & (seconds < np.inf))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise AnnotationError(
            f"{title}, {where(row)}: {values.iloc[[row]].tolist()[0]!r} is no time; expected a number of seconds from "
            "0, or nothing where it is unknown"
        )
    return seconds


def _numbers(values: pd.Series) -> np.ndarray:
    """Return numbers, also in text, as float64, shape (A,); NaN where there is none, as of dates and truth values."""
    if values.dtype.kind in "bmM":  # pandas would count nanoseconds
        return np.full(len(values), np.nan)
    text = values if values.dtype.kind in "iuf" else decimal_numbers(values.astype(str).where(values.notna()))
    return pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)


def check_when(values: pd.Series, title: str, where: Where) -> np.ndarray:
    """Return when each annotation was given as float64, shape (A,): dates as seconds since 1970, NaN where unknown.

    Raises:
        AnnotationError: a value is neither a finite number nor a date.
    """
    unknown, when = values.isna().to_numpy(dtype=bool), _numbers(values)
    if values.dtype.kind not in "bmiuf" and not np.isfinite(when).any():
        text = values.astype(str).where(~unknown)
        dates = pd.to_datetime(text, format="ISO8601", utc=True, errors="coerce")
        if (zoned := text[text.str.contains(ZONE, na=False)]).size:
            warn(f"{title}: times such as {zoned.iloc[0]!r} are of another zone, and are kept and shown in UTC")
        when = (dates - pd.Timestamp(0, tz="UTC")).dt.total_seconds().to_numpy(dtype=np.float64)
    wrong = ~unknown & ~np.isfinite(when)
    if not wrong.any():
        _refuse_other_units(when, values, title, where)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise AnnotationError(
            f"{title}, {where(row)}: {values.iloc[[row]].tolist()[0]!r} does not say when; expected numbers that grow "
            "with time, or dates such as 2024-03-01 10:30, or nothing where it is unknown"
        )
    return when


def _refuse_other_units(when: np.ndarray, values: pd.Series, title: str, where: Where) -> None:
    """Refuse a time that stands for an unknown one, or has another unit, among those that count from 1970.

    Raises:
        AnnotationError: there is one; the message has its row.
    """
    known = when[np.isfinite(when)]
    usual = float(np.median(known)) if known.size else 0.0
    if usual < SINCE_1970:
        return
    with np.errstate(invalid="ignore"):
        unlike = (when < usual / UNITS_APART) | (when > usual * UNITS_APART)
    if not unlike.any():
        return
    row, other = int(np.flatnonzero(unlike)[0]), int(np.nanargmin(np.abs(when - usual)))
    value, like = (values.iloc[[place]].tolist()[0] for place in (row, other))
    mend = "which seems to stand for an unknown time; leave the cell empty"
    if when[row] > 0:
        mend = f"and has another unit than most, such as {like!r}; write all of them in one, such as seconds"
    raise AnnotationError(f"{title}, {where(row)}: {value!r} is among times since 1970, {mend}")


def _refuse_worker_options(workers: Any, worker_features: Any, repeats: str, seconds: Any, when: Any) -> None:
    given = {"workers": workers is not None, "worker_features": worker_features is not None}
    given |= {"repeats": repeats != "keep", "seconds": seconds is not None, "when": when is not None}
    if names := [f"{name}=" for name, is_given in given.items() if is_given]:
        raise AnnotationError(f"{' and '.join(names)} cannot be used where no worker is named")


def _aggregate(task: Column, label: Column, count: np.ndarray | None) -> tuple[Column, Column, np.ndarray]:
    """Return the distinct pairs of task and label, sorted, and how many annotations each stands for."""
    width = len(label.ids)
    cell, inverse = np.unique(task.codes.astype(np.int64) * width + label.codes, return_inverse=True)
    total = np.bincount(inverse, weights=count, minlength=len(cell)).astype(np.float64)
    cell, total = cell[total > 0], total[total > 0]
    if (total > LARGEST_COUNT).any():
        raise AnnotationError(f"a task has more than {LARGEST_COUNT:,} equal annotations, which is the most accepted")
    codes = (cell // width).astype(np.int32), (cell % width).astype(np.int32)
    return replace(task, codes=codes[0]), replace(label, codes=codes[1]), total
