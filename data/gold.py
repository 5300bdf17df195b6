"""Gold labels: true labels that are known for some of the tasks, and which labels are right by them."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .column_names import BOTH, both_columns, columns_with, gold_columns, gold_columns_by_content, names_of_both
from .columns import Column, Where, encode, row_number, type_hint
from .errors import AnnotationError, warn
from .excel import EXCEL, read_excel
from .frames import as_frame, is_frame, read_parquet_table, read_text_table, row_and_line, take_column
from .id_text import name_text
from .ids import Ids
from .input_warnings import spelt_as
from .json_files import JSON, read_json
from .kinds import NOMINAL, Kind, encode_labels
from .question_classes import refuse_not_own
from .questions import QUESTION, Units, pairs_in, questions_of, tasks_of, unknown_question
from .text import are_digits, as_numbers
from .text_files import suffix_of

NO_ABSTENTIONS = Ids()
INCLUSION = "inclusion_probability"
"""The column of a table of gold labels that has each task's probability of having been drawn."""
TRUTH = {form(word): number for word, number in (("false", 0), ("true", 1)) for form in (str, str.title, str.upper)}
TIE = 1e-6  # probabilities that differ by less are equal: they come in single precision


class TextFormat(NamedTuple):
    """The format of a text file with gold labels."""

    separator: str | None = None  # None to find out
    encoding: str | None = None
    truth_values: bool = False  # whether true and false stand for 1 and 0


FOUND_OUT = TextFormat()


def resolve_gold(
    gold: Any,
    tasks: Ids,
    classes: Ids,
    *,
    task: str = "task",
    label: str = "label",
    question: str = QUESTION,
    text_format: TextFormat = FOUND_OUT,
    abstentions: Ids = NO_ABSTENTIONS,
    pairs: tuple[np.ndarray, Ids] | None = None,
    kind: Kind = NOMINAL,
    option: str = "classes",
) -> np.ndarray:
    """Return the gold label of each task as a class index, shape (N,) int32; −1 where it is unknown.

    Args:
        gold: a mapping task -> label, a pandas Series indexed by task, a table with columns `task` and `label`, or the
            path of a CSV, TSV, JSON, Excel or Parquet file with such a table, in JSON also with the mapping; columns of
            other names are found by their names (`gold_columns`), or with a warning as the only ones that have tasks
            and classes alone. A missing label (None, NaN) says that it is unknown. A cell of any file but Parquet
            stands for the task or class that is written so. A label that differs from one class by case, blanks or a
            full stop alone is taken for it, with a warning; and one says so where all labels are missing.
        tasks: the N tasks.
        classes: the K classes.
        task: the column of the table that names the task.
        label: the column of the table that holds the label.
        question: where the tasks have questions, the column of the table that names the question.
        text_format: of a text file.
        abstentions: the annotations that are no class.
        pairs: of comparisons the two items of each task, (N, 2), as positions in all items, and these: a label may
            then be the item that is better.
        kind: of the labels, which says where questions have classes of their own.
        option: that lists the classes.

    Raises:
        AnnotationError: a task or class is unknown, a class is none of its question, a label is an abstention, a task
            has two different labels, or there is no such file.
    """
    what = f"gold={str(gold)!r}" if isinstance(gold, str | Path) else "gold"
    gold, task, label, where = _table(gold, tasks, classes, task, label, question, what, text_format)
    named, labels = _columns(gold, task, label, where)
    known = ~labels.isna().to_numpy(dtype=bool)
    labels = labels if pairs is None else _sides_of_items(named, labels, tasks, classes, *pairs)
    given = encode_labels(labels[known], "gold label", classes=classes)
    rows = np.flatnonzero(known)
    if len(known) and not rows.size:
        number = f"each of the {len(known):,} labels" if len(known) > 1 else "the only label"
        warn(f"{what}: {number} is missing (None, NaN or an empty cell), so that no true label is known")
    elif not known.all() and is_frame(gold):
        number = f"{len(known) - rows.size:,} of {len(known):,} labels"
        warn(f"{what}: {number} are missing (NaN or an empty cell), so that no true label of those tasks is known")
    position = _positions(named, tasks)
    given = spelt_as(given, classes, "gold labels differ from the classes")
    class_of = classes.index_of(given.ids)
    if (unknown := np.flatnonzero(class_of < 0)).size:
        value = given.ids[int(unknown[0])]
        row = int(rows[given.rows_with(int(unknown[0]))[0]])
        if value in abstentions:
            raise AnnotationError(
                f"gold, {named.where(row)}: label {value!r} of task {named.ids[int(named.codes[row])]!r} is an "
                f"abstention and no class, and the classes are {', '.join(map(repr, classes))}; leave out the task, or "
                "give its class"
            )
        raise AnnotationError(
            f"gold, {named.where(row)}: label {value!r} of task {named.ids[int(named.codes[row])]!r} is "
            f"none of the classes{type_hint(value, classes)}, which are {', '.join(map(repr, classes))}; correct "
            f"it, or read the annotations anew with {option}=[...] that include it{_of_ratings(value, classes, kind)}"
        )
    index, value_of = position[named.codes[rows]], class_of[given.codes]
    resolved = np.full(len(tasks), -1, np.int32)
    resolved[index] = value_of
    if (differs := np.flatnonzero(resolved[index] != value_of)).size:
        row = int(differs[0])
        other = int(np.flatnonzero((index == index[row]) & (value_of != value_of[row]))[0])
        raise AnnotationError(
            f"gold: task {tasks[int(index[row])]!r} has two labels, {classes[int(value_of[row])]!r} "
            f"({named.where(int(rows[row]))}) and {classes[int(value_of[other])]!r} "
            f"({named.where(int(rows[other]))}); "
            "keep one"
        )
    refuse_not_own(
        kind, classes, questions_of(tasks), tasks, index, value_of, lambda at: f"gold, {named.where(int(rows[at]))}"
    )
    return resolved


def _of_ratings(value: Any, classes: Ids, kind: Kind) -> str:
    """Say what takes a number between the classes, or on another scale, where they are ordered; nothing of another."""
    if not kind.in_order or isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    if value % 1:
        return "; means of ratings are no labels, and cp.score(fit, ratings) compares with them"
    numbers = [name for name in classes if isinstance(name, int | float)]
    if len(numbers) < len(classes):
        return ""
    first, last = numbers[0], numbers[-1]
    return (
        f"; where these are ratings on another scale, such as 0 to 100, rescale all to that of the classes, and "
        f"cp.score(fit, ratings) compares with them: {first} + rating * {last - first} / 100"
    )


def resolve_ratings(gold: Any, tasks: Ids, classes: Ids) -> np.ndarray | None:
    """The numbers that tasks are rated with, such as means of several people's ratings, ``(N,)``; NaN where none is.

    Args:
        gold: as for :func:`resolve_gold`. A task that is in several rows has their mean.
        tasks: the N tasks.
        classes: the K classes.

    Returns:
        None where `gold` has labels: something else than numbers, or classes and whole numbers alone.

    Raises:
        AnnotationError: a task is unknown.
    """
    gold, task, label, where = _table(gold, tasks, classes, "task", "label", QUESTION, "gold", tell=False)
    named, labels = _columns(gold, task, label, where)
    known = ~labels.isna().to_numpy(dtype=bool)
    number = pd.to_numeric(labels[known].astype(object), errors="coerce").to_numpy(dtype=float)
    is_label = (classes.index_of(labels[known].tolist()) >= 0) | (number == number.round())
    if not np.isfinite(number).all() or is_label.all():
        return None
    position = _positions(named, tasks)[named.codes[known]]
    n = np.bincount(position, minlength=len(tasks))
    return np.where(n > 0, np.bincount(position, number, len(tasks)) / np.maximum(n, 1), np.nan)


def _positions(named: Column, tasks: Ids) -> np.ndarray:
    """The position of each task that is named, among the tasks.

    Raises:
        AnnotationError: one is not among them.
    """
    position = tasks.index_of(named.ids)
    if (unknown := np.flatnonzero(position < 0)).size:
        value, row = named.ids[int(unknown[0])], int(named.rows_with(int(unknown[0]))[0])
        more = f" ({unknown.size} such tasks)" if unknown.size > 1 else ""
        mend = _other_zeros(value, tasks) or "to keep a task that nobody has annotated, list all tasks in tasks=[...]"
        raise AnnotationError(
            f"gold, {named.where(row)}: task {value!r} is not among the annotated "
            f"tasks{type_hint(value, tasks)}{more}{unknown_question(value, tasks)}; {mend}"
        )
    return position


def _other_zeros(value: Any, tasks: Ids) -> str:
    """Say how to mend a task that differs from one of the tasks by leading zeros alone; nothing where none is so."""
    if not are_digits([str(value)]):
        return ""
    bare = str(int(value))
    like = next((task for task in tasks if are_digits([str(task)]) and str(int(str(task))) == bare), None)
    if like is None or str(like) == str(value):
        return ""
    return (
        f"the annotations have {like!r}: identifiers with leading zeros are text, so write them alike in both, and "
        "read them as text (dtype=str in pandas)"
    )


def _sides_of_items(
    named: Column, labels: pd.Series, tasks: Ids, classes: Ids, sides: np.ndarray, items: Ids
) -> pd.Series:
    """Return the labels with the side, the first or second class, in the place of an item of the row's task.

    Raises:
        AnnotationError: a label is an item that the row's task does not compare.
    """
    place, given = tasks.index_of(named.ids)[named.codes], labels.tolist()
    for row, value in enumerate(given):
        if place[row] < 0 or value in classes or value not in items:
            continue
        of_task = sides[place[row]].tolist()
        item = int(items.index_of([value])[0])
        if item not in of_task:
            raise AnnotationError(
                f"gold, {named.where(row)}: the task {tasks[int(place[row])]!r} compares {items[of_task[0]]!r} with "
                f"{items[of_task[1]]!r}, and not {value!r}; give the better one of both, or {classes[0]!r} or "
                f"{classes[1]!r} as the task's pairs have it"
            )
        given[row] = classes[of_task.index(item)]
    return pd.Series(given, labels.index, dtype=object)


def resolve_inclusion(gold: Any, tasks: Ids, classes: Ids) -> np.ndarray | None:
    """The probability with which each task was drawn for its gold label, ``(N,)``; NaN of tasks without a row.

    Args:
        gold: as for :func:`resolve_gold`.
        tasks: the N tasks.
        classes: the K classes.

    Returns:
        None where `gold` is no table with the column ``inclusion_probability``.

    Raises:
        AnnotationError: a task has none, or it is not above 0 and at most 1.
    """
    gold, task, _, _ = _table(gold, tasks, classes, "task", "label", QUESTION, "gold", tell=False)
    if not is_frame(gold) or INCLUSION not in gold.columns:
        return None
    frame = as_frame(gold, "gold")
    given = pd.to_numeric(take_column(frame, INCLUSION, "probability", "gold"), errors="coerce").to_numpy(dtype=float)
    named = take_column(frame, task, "task", "gold").tolist()
    if (bad := np.flatnonzero(~((given > 0) & (given <= 1)))).size:
        row = int(bad[0])
        value = take_column(frame, INCLUSION, "probability", "gold").tolist()[row]
        raise AnnotationError(
            f"gold, row {row}, column {INCLUSION!r}: {value!r} of task {named[row]!r} is no probability above 0 and at "
            "most 1; give those of cp.next_gold, or leave out the column where all tasks had the same chance"
        )
    position = tasks.index_of(named)
    found = np.full(len(tasks), np.nan)
    found[position[position >= 0]] = given[position >= 0]
    return found


def _table(
    gold: Any,
    tasks: Ids,
    classes: Ids,
    task: str,
    label: str,
    question: str,
    what: str,
    text_format: TextFormat = FOUND_OUT,
    *,
    tell: bool = True,
) -> tuple[Any, str, str, Where | None]:
    """Return the gold labels, their columns of tasks and labels where they are a table, and what says where a row is.

    Where the tasks have questions, a table's tasks are pairs.
    """
    where, asked = None, {str(value): value for value in questions_of(tasks)}
    if isinstance(gold, str | Path):
        gold, where = _read(Path(gold), task, label, text_format)
    elif is_frame(gold) and (asked or any(BOTH in str(name) for name in tasks_of(tasks)[:1])):
        frame = as_frame(gold, "gold")
        gold = pd.DataFrame({name: take_column(frame, name, "task", what) for name in frame.columns})
    if not is_frame(gold):
        return gold, task, label, where
    if isinstance(gold, pd.DataFrame):
        gold = _with_one_task(gold, tasks, task)
        named = columns_with(gold, asked) if question not in gold else []
        gold = gold.rename(columns={named[0]: question}) if len(named) == 1 else gold
    task, label = _columns_in(as_frame(gold, "gold"), tasks, classes, task, label, question, what, tell=tell)
    if where is not None:  # text, which stands for the identifiers that are written so
        gold = gold.rename(columns={name: asked[name] for name in gold.columns if name in asked})
        gold[task] = _identified(gold[task], _by_text(tasks_of(tasks)))
        if asked and question in gold:
            gold[question] = _identified(gold[question], asked)
        for name in [label] if label in gold else [name for name in gold if name in asked.values()]:
            gold[name] = _identified(gold[name], (TRUTH if text_format.truth_values else {}) | _by_text(classes))
    if isinstance(tasks, Units):
        gold, where = pairs_in(gold, tasks, task, label, question, what), where if question in gold.columns else None
    return gold, task, label, where


def _read(path: Path, task: str, label: str, text_format: TextFormat) -> tuple[pd.DataFrame, Where | None]:
    """Return the table in a file, and what says where a row is; None for the latter where it has types of its own."""
    if not path.is_file():
        raise AnnotationError(
            f"gold={str(path)!r}: there is no such file; give a .csv, .tsv, .json, .jsonl, .xlsx or .parquet file, a "
            "dictionary task -> label, a Series indexed by task, or a table"
        )
    if path.suffix.lower() == ".parquet":
        return read_parquet_table(path), None
    if suffix_of(path) in EXCEL:
        sheet = read_excel(path, mend="leave one, or give the table: pd.read_excel(path, sheet_name={!r})")
        return _as_text(sheet.table.rename(columns=str)), sheet.where
    if suffix_of(path) in JSON:
        return _json_table(path, task, label), row_number
    return read_text_table(path, *text_format[:2]), row_and_line(path, *text_format[:2])


def table_of_gold(gold: Any, known: Mapping[str, Ids]) -> pd.DataFrame | None:
    """Return gold labels that came as a table or a file with one; None where they did not, or a column is lacking.

    Args:
        gold: as for :func:`resolve_gold`.
        known: by column the identifiers that are known of it, for which text in a file stands that is written so.
    """
    if isinstance(gold, str | Path):
        table, where = _read(Path(gold), "task", "label", FOUND_OUT)
    elif is_frame(gold):
        frame, where = as_frame(gold, "gold"), None
        table = pd.DataFrame({name: take_column(frame, name, "task", "gold") for name in frame.columns})
    else:
        return None
    if not isinstance(table, pd.DataFrame) or not set(known) <= set(table.columns):
        return None
    if where is not None:
        table = table.assign(**{name: _identified(table[name], _by_text(ids)) for name, ids in known.items()})
    return table


def _with_one_task(table: pd.DataFrame, tasks: Ids, task: str) -> pd.DataFrame:
    """Return a table with one column that names its tasks, where their names are made of two of its columns."""
    both = both_columns(table, tasks_of(tasks))
    if both is None:
        return table
    return table.drop(columns=list(both)).assign(**{task: names_of_both(table, *both)})


def _json_table(path: Path, task: str, label: str) -> pd.DataFrame:
    """The table, as text, in a file with ``{task: label}``, a list of records, or a record in each line.

    Raises:
        AnnotationError: it has something else.
    """
    content = read_json(path)
    if isinstance(content, Mapping):
        content = [{task: each, label: value} for each, value in content.items()]
    if not isinstance(content, list) or not all(isinstance(record, Mapping) for record in content):
        raise AnnotationError(f"gold={str(path)!r}: a list of records, or a dictionary {{task: label}}, is needed")
    return _as_text(pd.DataFrame(content, dtype=object))


def _as_text(table: pd.DataFrame) -> pd.DataFrame:
    table = table.astype(object)
    return table.where(table.isna(), table.map(str))


def _columns_in(
    table: Any, tasks: Ids, classes: Ids, task: str, label: str, question: str, what: str, *, tell: bool
) -> tuple[str, str]:
    """The columns of tasks and of labels: by their names, or with a warning by what is in them.

    Of a table with a column for each question, the labels are to be in a new column, called `label`.

    Raises:
        AnnotationError: neither tells.
    """
    asked = questions_of(tasks)
    names = [name for name in table.columns if not (asked and (name == question or name in asked))]
    are_wide = bool(asked) and question not in table.columns and label not in names
    names += [label] * are_wide
    try:
        return gold_columns(names, task, label, what, table.columns)
    except AnnotationError:
        if not isinstance(table, pd.DataFrame):
            table = pd.DataFrame({name: take_column(table, name, "label", what) for name in table.columns})
        if are_wide:
            of_tasks = columns_with(table[names[:-1]], tasks_of(tasks))
            found = (of_tasks[0], label) if len(of_tasks) == 1 else None
        else:
            found = gold_columns_by_content(table, tasks_of(tasks), classes)
        if found is None:
            raise
        of_task, of_label = found
        if tell:
            labels = "" if are_wide else f" and {of_label!r} for the labels"
            warn(f"{what}: by what is in them, column {of_task!r} is taken for the tasks{labels}")
        return of_task, of_label


def _by_text(ids: Ids) -> dict[str, Any]:
    """By text the identifiers; whole numbers also with a point, "1.0", as tables write them beside an empty cell.

    Those of several parts are known by their text in files, ``q1 · x · y``, where no other has it, and by Python's.
    """
    # No two identifiers look alike as Python writes them: `Ids` refuses them.
    parted = [value for value in ids if isinstance(value, tuple)]
    times = Counter(map(name_text, parted))
    by_text = {name_text(value): value for value in parted if times[name_text(value)] == 1}
    whole: dict[str, Any] = {f"{value}.0": value for value in ids if type(value) is int}
    whole |= {str(int(value)): value for value in ids if isinstance(value, float) and value.is_integer()}
    return whole | by_text | {str(value): value for value in ids}


def _identified(column: pd.Series, by_text: dict[str, Any]) -> pd.Series:
    """Return the identifiers of texts; unknown ones are whole numbers where all are, so that messages compare them."""
    distinct = column.dropna().unique()
    others = as_numbers([text for text in distinct if text not in by_text])
    # A list, because a Series maps whole numbers beside missing values to floats.
    return pd.Series([by_text.get(text, others.get(text)) for text in column], dtype=object)


def _columns(gold: Any, task: str, label: str, where: Where | None) -> tuple[Column, pd.Series]:
    if isinstance(gold, pd.Series):
        is_unique, several = gold.index.is_unique, {task: gold.index, label: gold.to_numpy()}
        gold = dict(zip(gold.index, gold, strict=True)) if is_unique else pd.DataFrame(several)
    if isinstance(gold, Mapping):
        keys = list(gold)
        labels = pd.Series(list(gold.values()), dtype=object)
        return encode(pd.Series(keys, dtype=object), "gold task", lambda row: f"gold[{keys[row]!r}]"), labels
    if not is_frame(gold):
        raise AnnotationError(
            "gold: expected a dictionary task -> label, a Series indexed by task, a table with columns "
            f"{task!r} and {label!r} or the path of a file with one, got a {type(gold).__name__}"
        )
    frame = as_frame(gold, "gold")
    named = encode(take_column(frame, task, "task", "gold"), f"gold column {task!r}", where or row_number)
    return named, take_column(frame, label, "label", "gold")


def right_shares(probabilities: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Return 1 where the most probable class is the gold label, else 0, shape (n,); a tie of m classes counts for 1/m.

    Args:
        probabilities: of the classes, shape (n, K).
        gold: the gold labels as class indices, shape (n,).
    """
    best = probabilities >= probabilities.max(-1, keepdims=True) - TIE
    shares: np.ndarray = best[np.arange(len(gold)), gold] / best.sum(-1)
    return shares
