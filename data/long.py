"""Long tables with one row for each annotation, in memory and as CSV files."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from .abstentions import abstentions_of
from .build import Rows, build, check_counts, check_seconds, check_when
from .columns import Where, encode, missing_values, row_number, some_rows
from .errors import AnnotationError, check_name, warn
from .frames import as_frame, listed, read_text_table, row_and_line, take_column, with_whole_numbers
from .gold import TextFormat
from .ids import Ids
from .kinds import (
    MOST_CLASSES,
    encode_labels,
    fraction_text,
    listed_classes,
    order_of_all,
    orders_by_column,
    stated_classes,
    whole_as_integers,
)
from .question_classes import are_0_and_1, with_scales, with_truth_values
from .questions import QUESTION, paired
from .text import decimal_numbers
from .text_files import check_roles

Missing = Literal["refuse", "drop"]
FILLED_DOWN = 0.3  # of the tasks are missing: it looks as if only the first row of each task named it


@dataclass(frozen=True)
class LongColumns:
    """The columns of a table with a row for each annotation, by the options of :meth:`.Annotations.from_frame`.

    Attributes:
        task: of tasks.
        worker: of workers, or None where none is named.
        question: of questions; or several, one for each question, with labels in the place of `label`; None for one
            question.
        label: of annotations.
        count: of how many annotations a row stands for, or None for one each.
        seconds: of how long annotations took, or None where it is not said.
        when: of when they were given, or None where it is not said.
    """

    task: str = "task"
    worker: str | None = "worker"
    question: str | Sequence[str] | None = None
    label: str = "label"
    count: str | None = None
    seconds: str | None = None
    when: str | None = None

    @classmethod
    def among(cls, options: Mapping[str, Any]) -> tuple["LongColumns", dict[str, Any]]:
        """Return the columns that are among options, and the other options."""
        others = {name: value for name, value in options.items() if name not in cls.__dataclass_fields__}
        return cls(**{name: value for name, value in options.items() if name not in others}), others

    def check(self) -> None:
        """Refuse a column that is given for two roles.

        Raises:
            AnnotationError: there is one.
        """
        if isinstance(self.question, str | None):
            check_roles(vars(self))
            return
        for question in self.question:
            check_roles(vars(self) | {"label": None, "question": question})

    @property
    def other_names(self) -> tuple[tuple[str, Any], ...]:
        """By role the columns whose names are others than the roles'; of several columns of questions a tuple."""
        return other_names(vars(self) | ({} if isinstance(self.question, str | None) else {"label": None}))

    @property
    def named(self) -> dict[str, str]:
        """By role the columns there are; several columns of questions are the labels."""
        roles = {role: name for role, name in vars(self).items() if name is not None}
        if not isinstance(self.question, str | None):
            del roles["question"], roles["label"]
            roles |= {f"question {name!r}": name for name in self.question}
        return roles


def other_names(columns: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return the pairs of a role and its column that are named otherwise; several columns are a tuple."""
    named = {role: name if isinstance(name, str | None) else tuple(name) for role, name in columns.items()}
    return tuple((role, name) for role, name in named.items() if name is not None and name != role)


def frame_rows(
    table: Any,
    columns: LongColumns,
    *,
    where: Where | None = None,
    source: str = "the table",
    classes: Ids | None = None,
    missing: Missing | None = None,
    skip_blank: bool = False,
    blank_label: bool = False,
) -> Rows:
    """Return the annotations in a long table.

    Args:
        table: a pandas, polars or pyarrow table with A rows.
        columns: its columns.
        where: says where a row is, for messages.
        source: what messages call the table.
        classes: those that were given; None for those that are used.
        skip_blank: leave out rows that have nothing in any column of the table.
        missing: what is done with rows that lack a task, worker, label or count: "refuse" the table, or "drop" them
            with a warning; None to refuse it where nobody can choose.
        blank_label: whether a label may be blank; else it is missing.

    Raises:
        AnnotationError: a column is missing or given twice, there is no row, or a value cannot be used.
        UnknownNameError: `missing` is another word.
    """
    if missing is not None:
        check_name("value of missing", missing, get_args(Missing))
    where = where or row_number
    if not isinstance(columns.question, str | None):
        own = {role: name for role, name in vars(columns).items() if role not in ("question", "label")}
        questions = list(columns.question)
        table, where, question = wide_answers(as_frame(table), own, questions, columns.label, where, source)
        columns = replace(columns, question=question)
    columns.check()
    names = columns.named
    frame = as_frame(table)
    values = {role: take_column(frame, name, role, source) for role, name in names.items()}
    texts = [role for role in ("task", "worker", "question", *(() if blank_label else ("label",))) if role in values]
    values |= {role: without_blanks(values[role]) for role in texts}
    if not len(frame):
        raise AnnotationError(
            f"{source} has the columns {', '.join(map(repr, frame.columns))} but no row; a row for each annotation is "
            "needed"
        )
    titles = {role: f"column {name!r}" for role, name in names.items()}
    filled = {titles[role]: each for role, each in values.items() if role not in ("seconds", "when")}
    used = _filled_rows(frame, filled) if skip_blank else np.arange(len(frame))
    if len(used) < len(frame):
        filled = {title: each.iloc[used] for title, each in filled.items()}
    kept = used[rows_kept(filled, missing, before(used, where))]
    if len(kept) < len(frame):
        values = {role: _rows(each, kept) for role, each in values.items()}
        where = before(kept, where)

    coded = {role: encode(values[role], titles[role], where) for role in texts if role != "label"}
    label = encode_labels(values["label"], titles["label"], where, classes)
    checks = {"count": check_counts, "seconds": check_seconds, "when": check_when}
    numbers: dict[str, Any] = {
        role: check(values[role], titles[role], where) for role, check in checks.items() if role in values
    }
    if not numbers.get("count", np.ones(1)).any():
        raise AnnotationError(f"{titles['count']} is 0 in every row: there is no annotation")
    units = paired(coded["task"], coded["question"]) if "question" in coded else coded["task"]
    return Rows(units, coded.get("worker"), label, **numbers)


def without_blanks(values: pd.Series) -> pd.Series:
    """The column with text that is empty, or blanks alone, as a missing value."""
    if values.dtype.kind in "biufcmM" or isinstance(values.dtype, pd.CategoricalDtype):
        return values
    blank = values.map(_is_blank).to_numpy(dtype=bool)
    return values.astype(object).where(~blank, None) if blank.any() else values


def _is_blank(value: object) -> bool:
    return isinstance(value, str) and not value.strip()


def wide_answers(
    frame: Any, own: dict[str, str | None], questions: list[str], label: str, where: Where, source: str
) -> tuple[pd.DataFrame, Where, str]:
    """Return the table with a row for each answer, of one with a column for each question; empty cells are no answer.

    Args:
        frame: the table.
        own: by role the column that belongs to a whole row, None where there is none.
        questions: the columns of questions.
        label: the name of the new column of labels.
        where: says where a row is.
        source: what messages call the table.

    Returns:
        The table, row by row in the order of `questions`, what says where a row of it was, and its column of questions.

    Raises:
        AnnotationError: a column is not there or has two roles; or a column of questions is listed twice, or is empty,
            or two have two orders of classes.
    """
    roles = {name: role for role, name in own.items() if name is not None}
    if both := [name for name in questions if name in roles]:
        check_roles({roles[both[0]]: both[0], "question": both[0]})
    columns = {name: take_column(frame, name, role, source) for name, role in roles.items()}
    columns |= {name: take_column(frame, name, "question", source) for name in questions}
    table, named = pd.DataFrame(columns), QUESTION if QUESTION not in roles else f"{QUESTION} of {label}"
    if len(questions) < 2 or len(set(questions)) < len(questions):
        raise AnnotationError(
            f"question={list(questions)!r}: two columns or more are needed, each once; for one question name its "
            f"column by label="
        )
    if empty := [name for name in questions if table[name].isna().all()]:
        raise AnnotationError(
            f"{source}, column {empty[0]!r}: the question has no annotation; leave it out of question=[...]"
        )
    of_all = order_of_all({f"column {name!r}": table[name] for name in questions})
    answers = pd.concat({name: table[[name]].set_axis([label], axis=1) for name in questions}).dropna()
    answers = answers.iloc[np.argsort(answers.index.get_level_values(1), kind="stable")]
    rows = answers.index.get_level_values(1).to_numpy()
    stacked = table[list(roles)].iloc[rows].reset_index(drop=True)
    stacked[named], stacked[label] = answers.index.get_level_values(0), answers[label].array
    if of_all is not None:
        stacked[label] = stacked[label].astype(of_all)
    if pd.api.types.is_float_dtype(stacked[label]) and any(table[name].dtype.kind in "iu" for name in questions):
        stacked[label] = stacked[label].astype(object)
    answered = stacked[named].to_numpy()
    return stacked, lambda place: f"{where(int(rows[place]))}, column {answered[place]!r}", named


def long_fields(
    table: Any,
    columns: LongColumns,
    *,
    where: Where | None = None,
    source: str = "the table",
    missing: Missing = "refuse",
    skip_blank: bool = False,
    mirrored: np.ndarray | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Return the fields of `Annotations` for a long table; `options` are those of `build`.

    `mirrored` says of each row of comparisons whether it shows its pair the other way round.
    """
    question = columns.question
    if not isinstance(question, str | None) and options.get("classes") is options.get("ordered") is None:
        frame = as_frame(table)
        answers = [name for name in question if name in frame.columns]
        options |= {"ordered": orders_by_column({name: take_column(frame, name, "question") for name in answers})}
    if not any(isinstance(options.get(name), Mapping) for name in ("classes", "ordered")):
        stated = stated_classes(options.get("classes"), options.get("ordered"))
        if stated.classes is not None:
            options |= {stated.option: Ids(stated.classes, what=stated.option)}  # which are looked at twice
    if isinstance(options.get("abstain"), Iterator):
        options["abstain"] = list(options["abstain"])
    listed = [*(listed_classes(options) or ()), *abstentions_of(options.get("abstain"))]
    rows = frame_rows(
        table,
        columns,
        where=where,
        source=source,
        classes=listed_classes(options),
        missing=missing,
        skip_blank=skip_blank,
        blank_label=any(map(_is_blank, listed)),
    )
    label, taken = columns.label, (columns.task, columns.worker)
    names = (columns.task, columns.worker or "worker", label)
    options |= {"question": question} if isinstance(question, str) else {}
    rows = replace(rows, mirrored=mirrored)
    fields = build(rows, names=names, suggest=lambda: suggest_label(table, label, taken), **options)
    return fields | {"columns": columns.other_names}


def csv_fields(
    path: str | Path,
    separator: str | None,
    columns: LongColumns,
    options: dict[str, Any],
    encoding: str | None = None,
    table: pd.DataFrame | None = None,
    where: Where | None = None,
) -> dict[str, Any]:
    """Return the fields of `Annotations` for a CSV file; `options` are other ones of `Annotations.from_frame`.

    `table` is the file's, where it was read as text, or of several files, and `where` then says where a row is.

    Raises:
        AnnotationError: as `read_text_table` and `frame_rows`; or labels are fractions, and no classes are listed.
    """
    options = {name: list(value) if isinstance(value, Iterator) else value for name, value in options.items()}
    silent = abstentions_of(options.get("abstain"))
    question = columns.question
    columns.check()
    labels = columns.label if isinstance(question, str | None) else list(question)
    named: dict[str, Any] = {"task": columns.task, "worker": columns.worker, "label": labels, "count": columns.count}
    named |= {"question": question} if isinstance(question, str) else {}
    table = read_text_table(path, separator, encoding) if table is None else table
    said = {columns.task: options.get("tasks"), **dict.fromkeys(listed(labels), listed_classes(options))}
    texts = {
        name: [each for each in given if isinstance(each, str)] for name, given in said.items() if given is not None
    }
    beside = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in texts.items()})
    table = with_whole_numbers(table, beside, columns=named, abstentions=silent)[0]  # text where what is listed is
    has_truth_values = False
    if question is not None and isinstance(options.get("classes"), Mapping | None):
        text = {value for value in listed_classes(options) or () if isinstance(value, str)}
        table = with_scales(table, question, labels, text, options.get("abstain"))
        stated = options.get("classes") or {}
        table = with_truth_values(table, question, labels, stated)
        has_truth_values = any(map(are_0_and_1, stated.values()))
    options |= {"gold_format": TextFormat(separator, encoding, has_truth_values)}
    where = where or row_and_line(path, separator, encoding)
    steps = listed_classes(options) or ()
    if any(isinstance(value, float) for value in steps) and not any(isinstance(value, str) for value in steps):
        numbers = {name: _numbers_in(table[name], silent) for name in listed(labels) if name in table}
        table = table.assign(**{name: of.combine_first(table[name].astype(object)) for name, of in numbers.items()})
    for label in listed(labels):
        if label in table and listed_classes(options) is None and not options.get("merge"):
            refuse_fractions(table[label], options.get("abstain"), f"column {label!r}", where)
    return long_fields(table, columns, where=where, source=str(path), **options)


def refuse_fractions(labels: pd.Series, abstain: Any, title: str, where: Where) -> None:
    """Refuse labels in text that are real numbers, not all of them whole.

    Raises:
        AnnotationError: they are; the message has the first fraction.
    """
    if labels.dtype.kind in "iuf":
        return
    numbers = _numbers_in(labels, abstentions_of(abstain))
    if len(fractions := numbers.index[numbers.notna() & (numbers % 1 != 0)]):
        row = int(fractions[0])
        raise AnnotationError(f"{title}, {where(row)}: {fraction_text(labels[row])}")


def _numbers_in(labels: pd.Series, abstentions: Ids) -> pd.Series:
    """Return labels in text as real numbers by row, beside abstentions; none where others are no numbers."""
    written = labels.where(labels.map(lambda label: isinstance(label, str)))
    numbers = decimal_numbers(written[~written.isin([str(value) for value in abstentions])])
    return numbers if numbers.dtype.kind == "f" else numbers[:0].astype(float)


def _filled_rows(frame: Any, filled: dict[str, pd.Series]) -> np.ndarray:
    """The rows that have something in any column of the table, shape (A',); all where none has.

    Spreadsheets write blank rows below a table, or between its parts.
    """
    blank = np.logical_and.reduce([values.isna().to_numpy(dtype=bool) for values in filled.values()])
    for name in frame.columns if blank.any() else ():
        blank &= take_column(frame, name, "label").isna().to_numpy(dtype=bool)
    return np.flatnonzero(~blank) if not blank.all() else np.arange(len(blank))


def rows_kept(filled: dict[str, pd.Series], missing: Missing | None, where: Where = row_number) -> np.ndarray:
    """Return the rows in which no column lacks a value, shape (A',): all, or with a warning those that are left.

    Raises:
        AnnotationError: rows are not to be dropped, or none is left.
    """
    if not len(next(iter(filled.values()))):
        raise AnnotationError("the table has no row; a row for each annotation is needed")
    lacks = {title: values.isna().to_numpy(dtype=bool) for title, values in filled.items()}
    lacking = np.logical_or.reduce(list(lacks.values()))
    if lacking.any() and missing != "drop":
        advice = f"; missing='drop' leaves {'them' if lacking.sum() > 1 else 'it'} out" * (missing is not None)
        tasks = next(iter(lacks.values()))
        if not tasks[0] and tasks.mean() > FILLED_DOWN:
            advice += (
                ". If an empty cell stands for the task above it, as in merged cells, fill it in downwards instead"
            )
        raise missing_values(lacks, where, advice)
    if lacking.all():
        raise AnnotationError(f"missing='drop' leaves no row: each of the {len(lacking):,} lacks a value")
    if lacking.any():
        number = {title: int(rows.sum()) for title, rows in lacks.items() if rows.any()}
        listing = ", ".join(f"{n:,} in {title}" for title, n in number.items())
        warn(
            f"missing='drop' left out {lacking.sum():,} of {len(lacking):,} rows, which lack a value ({listing}): "
            f"{some_rows(np.flatnonzero(lacking), where)}"
        )
    return np.flatnonzero(~lacking)


def before(kept: np.ndarray, where: Where) -> Where:
    """Return what says where a row was before others were dropped."""
    return lambda row: where(int(kept[row]))


def _rows(values: pd.Series, kept: np.ndarray) -> pd.Series:
    """These rows of a column; whole numbers that were floats beside an empty cell are integers again."""
    chosen = values.iloc[kept].reset_index(drop=True)
    return whole_as_integers(chosen) if values.isna().any() else chosen


def suggest_label(table: Any, label: str, taken: tuple[str | None, ...] = ()) -> str:
    """Return a sentence, after a space, that names the column that may hold the labels; nothing where there is none.

    It is the column with the fewest distinct values, two at least; those `taken` for something else come last.
    """
    frame = as_frame(table)
    most = min(MOST_CLASSES, len(frame) // 2)
    sizes = {name: _distinct(frame, name) for name in frame.columns if name != label}
    fitting = {name: size for name, size in sizes.items() if 2 <= size <= most}
    if not fitting:
        return ""
    best = min(fitting, key=lambda name: (name in taken, fitting[name]))
    return f" Column {best!r} has {fitting[best]} distinct values: is it the one, label={best!r}?"


def _distinct(frame: Any, name: str) -> int:
    try:
        return int(frame[name].n_unique())
    except Exception:  # any library's, on values that it cannot compare; such a column holds no labels
        return int(np.iinfo(np.int32).max)
