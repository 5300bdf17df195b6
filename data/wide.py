"""Tables with a row for each task: labels with a column for each worker, or counts with one for each class."""

import re
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .agreement import krippendorff_alpha
from .arrays import groups_sharing
from .build import Rows, check_counts
from .column_names import (
    AGGREGATES,
    CONTENT,
    CRITERIA,
    NAMES,
    SYSTEMS,
    TRUTHS,
    are_criteria,
    is_name_of,
    missing_column,
    name_criteria,
    plain,
    preferred_items,
    stem,
    told_sides,
)
from .columns import Column, Where
from .errors import AnnotationError, warn
from .frames import as_frame, is_frame
from .id_text import listing
from .ids import Ids
from .kinds import encode_labels, order_of_all
from .text import convert_labels, convert_text, without_point

MOST_VALUES = 100
"""A column of text with more distinct values holds no labels."""

MOST_CODES = 10
"""More different whole numbers than these are asked about: whether they are labels or counts."""

ONE_HOT = 5
"""Rows from which on one 1 in each row is no chance, but a vote for one class."""

MANY_ROWS = 20
"""Rows from which on a worker who gave one label in all of them is told."""

IDENTIFIER = re.compile(r"(?<![A-Za-z])(?i:u?u?id|guid|key|index|no|nr|number)$|(?<=[a-z])(?:Id|ID)$")
"""Endings of the names of identifiers: "tweet_id", "docId"."""

BESIDE = frozenset({
    "agree", "agreement", "batch", "certainty", "cluster", "confidence", "date", "day", "difficulty", "disagreement",
    "duration", "epoch", "fold", "group", "index", "iteration", "length", "level", "month", "order", "page", "position",
    "priority", "rank", "round", "run", "seconds", "section", "seed", "session", "split", "step", "subset", "sureness",
    "temperature", "time", "topic", "turn", "unanimous", "version", "week", "year",
})  # fmt: skip
"""Names, or their last parts, of columns that say something of a task or a label, and are no worker's."""

TOTALS = ("total", "sum", "n", "count", "votes", "nvotes", "annotations", "nannotations")
"""Names of columns of vote counts that are of no class."""

NUMBERED = rf"(?i:{'|'.join(NAMES['worker'])})[ _-]?(?:[0-9]+|[A-Za-z])"
"""A word for workers with a number or a letter, such as rater1 and judge_b."""

CRITERION = rf"(?i:{'|'.join(CRITERIA)})"
SEPARATOR = "[ _.:-]+"

COLUMNS = ("workers", "classes", "tasks")
"""Meanings of a table's columns: beside a row for each task, or, of tasks, beside a row for each worker."""


@dataclass(frozen=True)
class Wide:
    """A table with a row for each task or each worker, and columns of what the others are.

    These are workers, with their labels, or classes, with vote counts, beside tasks; and tasks beside workers.
    """

    of: str  # the column that names what has a row
    columns: tuple[str, ...]
    others: tuple[str, ...]  # columns that are none of these
    gold: str | None = None


def wide_roles(
    table: pd.DataFrame,
    what: str,
    *,
    task: str | None,
    gold: str | None,
    columns: str | None,
    asks: bool,
    workers: Collection[Any] = (),
) -> Wide | None:
    """Return the columns of a table with a row for each task, or None where it is none.

    No column is named as workers or labels are. Those of workers have few values, which they share with the others; an
    empty one is none of them, unless it was listed.

    Args:
        table: the table.
        what: the table, for messages.
        task: the column of tasks; None for the one that is known by its name.
        gold: that of gold labels; None for the one that is known by its name.
        columns: what the others are, ``"workers"`` or ``"classes"``; None to find out.
        asks: whether to ask where they may be both; else they are workers.
        workers: those that were listed.

    Raises:
        AnnotationError: the columns may be workers or classes, or are not what they are said to be.
    """
    names = [str(name) for name in table.columns]
    task = task or task_column_of_rows(table)
    known = {stem(name) for name in names if name != task}
    if task in names and tells_rows(table[task]):
        known = {name for name in known if not SYSTEMS.fullmatch(name)}  # of whose answers these are
    if columns is None and (known & {*NAMES["worker"], *NAMES["label"]} or len(names) < 3 or task not in names):
        return None
    if task not in names:
        raise missing_column(task or "task", "task", names, what)
    gold = gold or next((name for name in names if stem(name) in NAMES["gold"]), None)
    free = [name for name in names if name not in (task, gold) and not AGGREGATES.fullmatch(plain(name))]
    whole = {name: _whole_numbers(table[name]) for name in free if plain(name) not in TOTALS}
    counts = {name: numbers for name, numbers in whole.items() if numbers is not None}
    values = _few_values(table[free], workers)
    if columns is None:
        shared = [name for name, found in values.items() if not found or shares(found, name, values)]
        shared = [name for name in shared if not _is_beside(name, values) and not says_more(name)]
        shared = [name for name in shared if plain(name) not in TOTALS]
        truths = [name for name in shared if TRUTHS.fullmatch(plain(name))]
        if truths and len(shared) > len(truths) + 1:
            gold, shared = gold or truths[0], [name for name in shared if name not in truths]
        found = shared if sum(bool(values[name]) for name in shared) > 1 else []
        if name_criteria(found):
            raise _criteria(what, found)
        if preferred_items(found) is not None:
            raise AnnotationError(
                f"{what}: the columns {', '.join(map(repr, found))} are those of a better and a worse item, and no "
                f"worker is named.{told_sides(found)} Where they are workers: columns='workers'."
            )
        _refuse_two_kinds(what, {name: values[name] for name in found if values[name]})
        of_all = not found or _same_total(counts)
        asked = {name: counts[name] for name in (counts if of_all else found) if name in counts}
        if asks and len(asked) > 1 and asked.keys() >= set(found) and (why := like_counts(asked)):
            raise workers_or_classes(what, list(asked), why)
        if are_criteria(found):
            raise _criteria(what, found)
    else:
        found = list(counts if columns == "classes" else values)
        if len(found) < 2:
            held = "vote counts" if columns == "classes" else "few labels"
            raise AnnotationError(f"columns={columns!r}: {what} has {len(found)} columns of {held}; two are needed")
    if not found:
        return None
    if columns is None and not workers:
        _tell_constants(table, what, found)
    others = tuple(name for name in names if name not in (task, gold, *found))
    return Wide(str(task), tuple(name for name in names if name in found), others, gold)


def _tell_constants(table: pd.DataFrame, what: str, workers: Sequence[str]) -> None:
    """Warn of columns that have one value in all rows, where others differ, and may say something else."""
    sizes = {name: table[name].map(hashed).nunique(dropna=False) for name in workers}
    constant = [name for name, size in sizes.items() if size == 1]
    if constant and len(constant) < len(workers) and len(table) >= MANY_ROWS:
        warn(
            f"{what}: taken for workers, though each has one value in all {len(table):,} rows: {listing(constant, 3)}; "
            "leave out the columns that are none"
        )


def _criteria(what: str, found: Sequence[str]) -> AnnotationError:
    return AnnotationError(
        f"{what}: the columns {', '.join(map(repr, found))} are called as criteria are, and no worker is named: say "
        f"label={found[0]!r} and worker=None to read one, or columns='workers' where they are workers"
    )


class Grid(NamedTuple):
    """A table with a row for each task and a column for each worker and question, as one of a row for each answer."""

    frame: pd.DataFrame  # with the columns task, worker, question and label
    where: Where  # says where a row's label stands
    example: str  # of the columns
    others: tuple[str, ...]  # columns that are none of these


def by_worker_and_question(table: pd.DataFrame, abstentions: Iterable[object] = ()) -> Grid | None:
    """Return the answers of a table whose columns are called rater1_fluency, rater1_tone, rater2_fluency, rater2_tone.

    It is one where the first parts of several names, or the last ones, are numbered words for workers (rater1,
    judge_b), or the other parts are known criteria (gpt4_fluency). Each worker has a column for each of two questions
    or more, and these share their labels. None of any other table, such as one of labels and of how sure a worker is
    of each.

    Args:
        table: the table.
        abstentions: labels that are none, beside which others in text may be whole numbers.
    """
    names = [str(name) for name in table.columns]
    task = task_column_of_rows(table)
    for pattern in (
        rf"(?P<worker>{NUMBERED}){SEPARATOR}(?P<question>.+)",
        rf"(?P<question>.+){SEPARATOR}(?P<worker>{NUMBERED})",
        rf"(?P<worker>.+){SEPARATOR}(?P<question>{CRITERION})",
        rf"(?P<question>{CRITERION}){SEPARATOR}(?P<worker>.+)",
    ):
        free = [name for name in names if name != task and not says_more(name)]
        parts = {name: found for name in free if (found := re.fullmatch(pattern, name)) is not None}
        workers, questions = ({found[role] for found in parts.values()} for role in ("worker", "question"))
        if task is None or min(len(workers), len(questions)) < 2 or len(parts) < len(workers) * len(questions):
            continue
        values: dict[str, set[Hashable]] = {question: set() for question in questions}
        for name, found in parts.items():
            values[found["question"]] |= set(map(hashed, table[name].dropna()))
        if not all(shares(found, question, values) for question, found in values.items() if found):
            return None
        parts = {name: found for name, found in parts.items() if table[name].notna().any()}
        others = tuple(name for name in names if name != task and name not in parts)
        of_parts = {name: (found["worker"], found["question"]) for name, found in parts.items()}
        return _grid(table, task, of_parts, others, abstentions)
    return None


def _grid(
    table: pd.DataFrame,
    task: str,
    parts: Mapping[str, tuple[str, str]],
    others: tuple[str, ...],
    abstentions: Iterable[object],
) -> Grid:
    tasks = convert_text(table[task])[0] if is_text(table[task]) else table[task]
    cells, where = filled_cells(tasks, {name: table[name] for name in parts}, "task")
    frame = cells[["task", "label"]].infer_objects()
    frame["worker"], frame["question"] = ([parts[name][at] for name in cells["column"]] for at in range(2))
    if is_text(frame["label"]):
        frame["label"] = convert_labels(frame["label"], abstentions=abstentions)[0]
    return Grid(frame, where, next(iter(parts)), others)


def filled_cells(keys: pd.Series, columns: Mapping[str, pd.Series], key: str) -> tuple[pd.DataFrame, Where]:
    """Return the cells of some columns that are not empty, column by column, and what says where each stands.

    Args:
        keys: what the rows are of.
        columns: by name.
        key: the name of the new column that has what a cell's row is of, beside column and label.
    """
    cells = [
        (each, name, value, f"row {row}, column {name!r}")
        for name, values in columns.items()
        for row, (each, value) in enumerate(zip(keys, values, strict=True))
        if not pd.isna(value)
    ]
    frame = pd.DataFrame([cell[:3] for cell in cells], columns=[key, "column", "label"], dtype=object)
    return frame, lambda row: cells[row][3]


def is_text(values: pd.Series) -> bool:
    """Return whether a column has text alone, but for empty cells."""
    return all(isinstance(value, str) for value in values.dropna())


def _is_beside(name: str, values: Mapping[str, set[Hashable]]) -> bool:
    """Return whether a column is called after another, as ``ann_sure`` after ``ann``, and has none of its values."""
    return any(
        other != name
        and not (found & values[name])
        and re.match(rf"{re.escape(other)}[ _.-]|.*[ _.-]{re.escape(other)}$", name)
        for other, found in values.items()
        if found
    )


def says_more(name: str) -> bool:
    """Return whether a column is called as one that says something of a task or a label: ``batch``, ``ann_seconds``."""
    return plain(name) in BESIDE or plain(re.split(SEPARATOR, name)[-1]) in BESIDE


def _refuse_two_kinds(what: str, values: Mapping[str, set[Hashable]]) -> None:
    """Refuse columns of which several have some labels and several others quite other ones, such as sureness.

    Raises:
        AnnotationError: there are; the message names them.
    """
    named, found = list(values), [set(map(_folded, each)) for each in values.values()]
    groups = [group for group in groups_sharing(found) if len(group) > 1]
    if len(groups) > 1:
        said = " and ".join(
            f"{', '.join(repr(named[at]) for at in group[:3])} have "
            f"{', '.join(map(repr, sorted(set().union(*(found[at] for at in group)), key=str)[:3]))}"
            for group in groups[:2]
        )
        raise AnnotationError(
            f"{what}: {said}, and no value in common, so that they are not all workers' labels; leave out the columns "
            "that are something else, or say columns='workers'"
        )


def workers_or_classes(what: str, names: Sequence[str], why: str, are: str = "columns") -> AnnotationError:
    """Make the error for whole numbers, by what are columns or keys, that may be labels or vote counts."""
    rows = " If each row is one annotation, name its columns by task=, worker= and label=." * (are == "columns")
    shown = listing(names, 3)
    return AnnotationError(
        f"{what}: the {are} {shown} hold whole numbers, and {why}. If they are classes, and the numbers say how "
        "often each was given: columns='classes' (cp.Annotations.from_counts takes them as well). If they are workers, "
        f"and the numbers are labels: columns='workers'.{rows}"
    )


def _few_values(table: pd.DataFrame, workers: Collection[Any]) -> dict[str, set[Hashable]]:
    """The values of columns that have few, and of an empty one only where it is a worker that was listed."""
    most = min(MOST_VALUES, max(3, len(table) // 2))
    values = {str(name): set(map(hashed, column.dropna())) for name, column in table.items()}
    return {name: found for name, found in values.items() if (found or name in workers) and len(found) <= most}


def _whole_numbers(values: pd.Series) -> np.ndarray | None:
    """A column's whole numbers from 0, NaN where a cell is empty; None where it has something else, or nothing."""
    if values.dtype == bool or values.isna().all():
        return None
    numbers = pd.to_numeric(values, errors="coerce")
    if (numbers.isna() & values.notna()).any() or numbers.dtype.kind not in "iuf":
        return None
    whole = numbers.to_numpy(np.float64, na_value=np.nan)
    known = whole[~np.isnan(whole)]
    return whole if ((known >= 0) & (known == np.floor(known))).all() else None


def like_counts(counts: Mapping[str, np.ndarray]) -> str:
    """Return what shows that numbers are vote counts rather than labels; nothing where they may well be labels.

    Numbered columns ("r1", "r2") are workers. Votes for one class are at the expense of the others, so that columns of
    counts agree less than by chance, where those of workers who know something agree more.
    """
    cells = np.column_stack(list(counts.values()))
    if are_numbered(list(counts)):
        return ""
    if np.nanmax(cells) < 2:
        return "one of them is 1 in each row" if len(cells) >= ONE_HOT and (np.nansum(cells, 1) == 1).all() else ""
    values = np.unique(cells[~np.isnan(cells)])
    if len(values) > MOST_CODES:
        return f"{len(values)} different ones are many for labels"
    if _same_total(counts):
        return "their sum is the same in each row"
    votes = np.stack([(cells == value).sum(axis=1) for value in values], axis=1)
    return "they are equal in a row no more often than by chance" if krippendorff_alpha(votes) <= 0 else ""


def _same_total(counts: Mapping[str, np.ndarray]) -> bool:
    if len(counts) < 2:
        return False
    totals = np.nansum(np.column_stack(list(counts.values())), axis=1)
    return len(totals) > 1 and bool((totals == totals[0]).all())


def are_numbered(names: Sequence[str]) -> bool:
    """Return whether columns are called as workers are: "r1" and "r2", "annotator_a" and "annotator_b"."""
    stems = {re.sub(r"[^a-z]+$|[^a-z]+[a-z]$", "", name.casefold()) for name in names}
    of_workers = all(any(name.startswith(word) for word in NAMES["worker"]) for name in stems)
    one = next(iter(stems))
    of_classes = one in ("", "n", "num", "count", "votes") or stem(one) in NAMES["label"]
    return of_workers or (len(stems) == 1 and len(names) > 1 and not of_classes)


def shares(found: set[Hashable], name: str, values: Mapping[str, set[Hashable]]) -> bool:
    """Return whether at least half of a column's values are those of another one, too, whatever their case."""
    if not found:
        return False
    others = {_folded(value) for other, each in values.items() if other != name for value in each}
    return sum(_folded(value) in others for value in found) >= len(found) / 2


def _folded(value: Hashable) -> Hashable:
    return value.strip().casefold() if isinstance(value, str) else value


def hashed(value: Any) -> Hashable:
    """Return a cell's value such that equal labels are equal."""
    if isinstance(value, str):
        return without_point(value)
    return value if isinstance(value, Hashable) else str(value)


def task_column_of_rows(table: pd.DataFrame) -> str | None:
    """The column of a wide table that names its tasks: by its name, or the first where its values differ.

    A column that ends in "id" or "key", and has another value in each row, goes before one that may be the content.
    """
    names = [str(name) for name in table.columns]
    named = [name for name in names if is_name_of(name, "task")]
    if named and all(plain(name) in CONTENT for name in named):
        named = [name for name in names if IDENTIFIER.search(name) and tells_rows(table[name])] + named
    if named:
        return next((name for name in named if plain(name) not in CONTENT), named[0])
    return names[0] if names and tells_rows(table[names[0]]) else None


def tells_rows(values: pd.Series) -> bool:
    """Return whether a column has another value in each row."""
    return bool(values.map(hashed).is_unique and values.notna().all())


def matrix_rows(
    matrix: Any,
    missing: Any,
    tasks: Iterable[Any] | None,
    workers: Iterable[Any] | None,
    classes: Iterable[Any] | None = None,
) -> Rows:
    """Return the annotations in a task x worker matrix of labels, shape (N, J), task by task.

    Args:
        matrix: labels as whole numbers, text or truth values; an array, or a table whose columns are workers
            (and whose index, in pandas, are tasks).
        missing: the value of a cell without an annotation; None stands for None and NaN.
        tasks: the identifiers of the rows of an array, or the order wanted for those of a table.
        workers: the identifiers of the columns of an array, or the order wanted for those of a table.
        classes: those that were given; None for those that are used.

    Raises:
        AnnotationError: the matrix does not have two dimensions, or has an empty cell that is not `missing`, or two
            of its columns have two orders of classes.
    """
    values, task_ids, worker_ids = _axes(matrix, tasks, workers, ("tasks", "workers"), "matrix")

    def cell(row: int, column: int) -> str:
        return f"cell (task {task_ids[row]!r}, worker {worker_ids[column]!r})"

    at_task, at_worker = np.nonzero(~_is_missing(values, missing))
    if not at_task.size:
        raise AnnotationError(
            f"matrix: all {values.size} cells are {missing!r}, which stands for no annotation; expected at least one"
        )
    labels = pd.Series(values[at_task, at_worker])
    if isinstance(matrix, pd.DataFrame):
        of_all = order_of_all({f"column {name!r}": column for name, column in matrix.items()})
        labels = labels if of_all is None else labels.astype(of_all)

    def where(row: int) -> str:
        return cell(int(at_task[row]), int(at_worker[row]))

    if (blank := labels.isna().to_numpy(dtype=bool)).any():
        row = int(np.flatnonzero(blank)[0])
        raise AnnotationError(
            f"matrix, {where(row)}: {labels[row : row + 1].tolist()[0]!r} is no label, but missing={missing!r}; pass "
            "missing=None if such cells have no annotation"
        )
    return Rows(
        task=Column("task", at_task.astype(np.int32), task_ids, where),
        worker=Column("worker", at_worker.astype(np.int32), worker_ids, where),
        label=encode_labels(labels, "label", where, classes),
        ordered_tasks=True,
        ordered_workers=True,
    )


def count_rows(counts: Any, tasks: Iterable[Any] | None, classes: Iterable[Any] | None) -> tuple[Rows, Ids]:
    """Return the non-zero cells of task x class counts, shape (N, K), and the K classes.

    Args:
        counts: how many annotations of each class each task has; an array, or a table whose columns are classes
            (and whose index, in pandas, are tasks).
        tasks: the identifiers of the rows of an array, or the order wanted for those of a table.
        classes: the identifiers of the columns of an array, or the order wanted for those of a table.

    Raises:
        AnnotationError: the shape is wrong, or a cell is no whole number of annotations.
    """
    values, task_ids, class_ids = _axes(counts, tasks, classes, ("tasks", "classes"), "counts")

    def where(cell: int) -> str:
        row, column = divmod(cell, len(class_ids))
        return f"task {task_ids[row]!r}, class {class_ids[column]!r}"

    numbers = check_counts(values, "counts", where)
    at_task, at_class = np.nonzero(numbers)
    if not at_task.size:
        raise AnnotationError("counts: every cell is 0; expected at least one annotation")
    rows = Rows(
        task=Column("task", at_task.astype(np.int32), task_ids),
        worker=None,
        label=Column("class", at_class.astype(np.int32), class_ids),
        count=numbers[at_task, at_class],
        ordered_tasks=True,
    )
    return rows, class_ids


def _axes(
    table: Any, rows: Iterable[Any] | None, columns: Iterable[Any] | None, options: tuple[str, str], what: str
) -> tuple[np.ndarray, Ids, Ids]:
    """Return the cells and the identifiers of rows and columns, in the wanted order of both."""
    if isinstance(table, pd.DataFrame):
        own_rows: Ids | None = Ids(table.index, what=options[0])
        own_columns: Ids | None = Ids(table.columns, what=options[1])
        values = table.to_numpy()
    elif is_frame(table):
        frame = as_frame(table, what)
        own_rows, own_columns = None, Ids(frame.columns, what=options[1])
        # Through objects, because a column of whole numbers with gaps would turn into floats.
        values = np.array([frame[name].to_list() for name in frame.columns], dtype=object).T
    else:
        own_rows = own_columns = None
        values = np.asarray(table)
    if values.ndim != 2 or values.size == 0:
        raise AnnotationError(
            f"{what}: expected {options[0]} x {options[1]} with at least one of each, got {values.shape}"
        )
    row_ids, row_order = _axis(values.shape[0], own_rows, rows, options[0], what)
    column_ids, column_order = _axis(values.shape[1], own_columns, columns, options[1], what)
    return values[np.ix_(row_order, column_order)], row_ids, column_ids


def _axis(size: int, own: Ids | None, given: Iterable[Any] | None, option: str, what: str) -> tuple[Ids, np.ndarray]:
    """Return the identifiers along an axis and, for each, where it stands in the table."""
    if given is None:
        return (Ids.range(size) if own is None else own), np.arange(size)
    ids = Ids(given, what=option)
    if own is None:
        if len(ids) != size:
            raise AnnotationError(f"{what}: {option}= names {len(ids)} {option}, but the {what} has {size}")
        return ids, np.arange(size)
    Column(f"{what}, {option}", np.arange(size, dtype=np.int32), own).aligned(ids, option)
    position = own.index_of(ids)
    if (absent := np.flatnonzero(position < 0)).size:
        raise AnnotationError(f"{what}: {option}= names {ids[int(absent[0])]!r}, which the {what} does not have")
    return ids, position


def _is_missing(values: np.ndarray, missing: Any) -> np.ndarray:
    blank = pd.isna(values)
    if missing is None or missing != missing:
        return blank
    empty = np.zeros(values.shape, dtype=bool)
    empty[~blank] = values[~blank] == missing
    return empty
