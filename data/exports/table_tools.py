"""Exports as tables: MTurk, Toloka, CrowdFlower and Appen, Label Studio's tables."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..errors import AnnotationError
from ..text import convert_text
from ..wide import MOST_VALUES
from .gathered import Gathered, Held, chosen_question


def read_tool_table(table: pd.DataFrame, what: str, question: str | None) -> Held | None:
    """Return what a table of a known tool holds; None where it is none that is known.

    Args:
        table: of text, NaN where a cell is empty.
        what: the file, for messages.
        question: the one that was asked for.

    Raises:
        AnnotationError: the tool is known, and the question is not, or an annotation cannot be used.
    """
    columns = set(map(str, table.columns))
    if {"HITId", "WorkerId"} <= columns:
        return _mturk(table, what, question)
    if "ASSIGNMENT:worker_id" in columns:
        return _toloka(table, what, question)
    if "_unit_id" in columns:
        return _appen(table, what, question)
    if {"annotator", "annotation_id"} <= columns:
        return _label_studio(table, what, question)
    return None


def _mturk(table: pd.DataFrame, what: str, question: str | None) -> Held:
    what = f"{what}: MTurk results"
    answers = _mturk_answers(table, what)
    question = None if question is None else question.removeprefix("Answer.").removesuffix(".label")
    asked = chosen_question(question, _questions(answers), what)
    gathered = Gathered(what, asked)
    status = _column(table, "AssignmentStatus")
    seconds = _column(table, "WorkTimeInSeconds")
    for row, (task, worker, label) in enumerate(_rows(table["HITId"], table["WorkerId"], answers[asked])):
        if status[row] == "Rejected":
            gathered.leave_out("rejected assignment")
        else:
            gathered.add(task, worker, label, _place(row), seconds=seconds[row])
    return gathered.held()


def _mturk_answers(table: pd.DataFrame, what: str) -> pd.DataFrame:
    """The answers by question: of radio buttons that are a column each, and out of JSON."""
    found: dict[str, list[Any]] = {}
    for name in [column for column in map(str, table.columns) if column.startswith("Answer.")]:
        short, values = name.removeprefix("Answer."), table[name]
        if short == "taskAnswers":
            for row, text in enumerate(values):
                for key, value in _task_answers(text, what, row):
                    found.setdefault(key, [None] * len(table))[row] = value
            continue
        group, dot, option = short.rpartition(".")
        given = values.dropna().str.casefold()
        if dot and len(given) and given.isin(["true", "false"]).all() and option not in ("label",):
            chosen = found.setdefault(group, [None] * len(table))
            for row in np.flatnonzero(values.str.casefold() == "true").tolist():
                if chosen[row] is not None:
                    raise AnnotationError(
                        f"{what}, {_place(row)}: Answer.{group} has {chosen[row]!r} and {option!r}; one is needed"
                    )
                chosen[row] = option
        else:
            found[short.removesuffix(".label")] = values.tolist()
    return pd.DataFrame(found, index=table.index, dtype=object)


def _task_answers(text: Any, what: str, row: int) -> Iterable[tuple[str, Any]]:
    if not isinstance(text, str):
        return
    try:
        answers = json.loads(text)
    except json.JSONDecodeError as error:
        raise AnnotationError(f"{what}, {_place(row)}: Answer.taskAnswers is no JSON: {error}") from None
    for answer in answers if isinstance(answers, list) else [answers]:
        for key, value in answer.items():
            if isinstance(value, dict) and "label" in value:
                yield key, value["label"]
            elif isinstance(value, dict) and value and all(isinstance(is_on, bool) for is_on in value.values()):
                on = [option for option, is_on in value.items() if is_on]
                yield key, on if len(on) > 1 else (on[0] if on else None)
            elif not isinstance(value, dict | list):
                yield key, value


def _toloka(table: pd.DataFrame, what: str, question: str | None) -> Held:
    what = f"{what}: Toloka assignments"
    outputs = [name.removeprefix("OUTPUT:") for name in map(str, table.columns) if name.startswith("OUTPUT:")]
    question = None if question is None else question.removeprefix("OUTPUT:")
    asked = chosen_question(question, [name for name in outputs if _is_question(table[f"OUTPUT:{name}"])], what)
    gathered = Gathered(what, asked)
    inputs = [name for name in map(str, table.columns) if name.startswith("INPUT:")]
    if "ASSIGNMENT:task_id" in table:
        tasks = table["ASSIGNMENT:task_id"].tolist()
    elif inputs:
        tasks = table[inputs[0]].tolist() if len(inputs) == 1 else list(map(tuple, table[inputs].fillna("").to_numpy()))
    else:
        raise AnnotationError(f"{what}: neither ASSIGNMENT:task_id nor a column INPUT:… names the tasks")
    status = _column(table, "ASSIGNMENT:status")
    labels, gold = _together(table[f"OUTPUT:{asked}"], _column(table, f"GOLDEN:{asked}"))
    for row, (worker,) in enumerate(_rows(table["ASSIGNMENT:worker_id"])):
        gathered.add_gold(tasks[row], gold[row], _place(row))
        if status[row] == "REJECTED":
            gathered.leave_out("rejected assignment")
        else:
            gathered.add(tasks[row], worker, labels[row], _place(row))
    return gathered.held()


def _appen(table: pd.DataFrame, what: str, question: str | None) -> Held:
    what = f"{what}: CrowdFlower (Appen) report"
    if "_worker_id" not in table:
        raise AnnotationError(f"{what}: it has no column '_worker_id', so it is aggregated; export the full report")
    names = [name for name in map(str, table.columns) if not name.startswith("_")]
    with_gold = [name for name in names if f"{name}_gold" in table]
    others = [name for name in names if not name.endswith(("_gold", "_gold_reason", ":confidence"))]
    known = with_gold or [name for name in others if _is_question(table[name])]
    asked = chosen_question(question, known if question is None else others, what)
    gathered = Gathered(what, asked)
    tainted = _column(table, "_tainted")
    labels, gold = _together(table[asked], _column(table, f"{asked}_gold"))
    several = set()
    for row, (task, worker) in enumerate(_rows(table["_unit_id"], table["_worker_id"])):
        if isinstance(gold[row], str) and "\n" in gold[row]:
            several.add(task)
        else:
            gathered.add_gold(task, gold[row], _place(row))
        if str(tainted[row]).casefold() == "true":
            gathered.leave_out("tainted judgment")
        else:
            gathered.add(task, worker, labels[row], _place(row))
    for _ in several:
        gathered.leave_out("gold label of several classes")
    return gathered.held()


def _label_studio(table: pd.DataFrame, what: str, question: str | None) -> Held:
    what = f"{what}: Label Studio table"
    own = {"annotator", "annotation_id", "created_at", "updated_at", "lead_time", "id"}
    task = table["id"] if "id" in table else pd.Series(range(len(table)))
    others = [name for name in map(str, table.columns) if name not in own]
    known = [name for name in others if _is_question(table[name]) and not _is_of_task(table[name], task)]
    asked = chosen_question(question, known, what)
    gathered = Gathered(what, asked)
    seconds = _column(table, "lead_time")
    for row, (name, worker, label) in enumerate(_rows(task, table["annotator"], table[asked])):
        gathered.add(name, worker, label, _place(row), seconds=seconds[row])
    return gathered.held()


def _questions(answers: pd.DataFrame) -> list[str]:
    return [str(name) for name in answers if _is_question(answers[name])]


def _is_question(values: pd.Series) -> bool:
    """Return whether a column's values may be classes: few, and used again."""
    given = values.dropna()
    if not len(given):
        return False
    try:
        n_distinct = given.nunique()
    except TypeError:  # lists
        n_distinct = given.astype(str).nunique()
    return bool(n_distinct <= min(MOST_VALUES, max(len(given) // 2, 2)))


def _is_of_task(values: pd.Series, task: pd.Series) -> bool:
    """Return whether each task has one value, which no other task has: its text, say."""
    pairs = pd.DataFrame({"task": task.to_numpy(), "value": values.astype(str).to_numpy()}).drop_duplicates()
    return bool(pairs["task"].is_unique and pairs["value"].is_unique)


def _rows(*columns: Sequence[Any] | pd.Series) -> Iterable[tuple[Any, ...]]:
    """The rows of some columns; those of text become whole numbers where all values are."""
    given: list[list[Any]] = []
    for column in columns:
        series = pd.Series(column)
        is_text = series.dropna().map(lambda value: isinstance(value, str)).all()
        given.append((convert_text(series)[0] if is_text else series).tolist())
    return zip(*given, strict=True)


def _together(labels: pd.Series, gold: list[Any]) -> tuple[list[Any], list[Any]]:
    """Annotations and gold labels, as whole numbers where all of both are; None where a cell is empty."""
    pair = [pd.Series(column, dtype=object).reset_index(drop=True) for column in (labels, gold)]
    return tuple([None if v != v else v for v in column] for column in convert_text(*pair))  # type: ignore[return-value]


def _column(table: pd.DataFrame, name: str) -> list[Any]:
    """A column's values; None where a cell is empty, and in each row where there is no such column."""
    if name not in table:
        return [None] * len(table)
    return [None if value != value else value for value in table[name].tolist()]


def _place(row: int) -> str:
    return f"row {row}"
