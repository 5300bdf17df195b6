"""`crowdppl.read`: annotations out of any file that people have them in."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..abstentions import abstentions_of
from ..annotations import Annotations
from ..column_names import missing_column
from ..columns import Where, missing_values, row_number
from ..description import count_text
from ..errors import AnnotationError, check_name, warn
from ..excel import EXCEL, read_excel
from ..frames import read_parquet_table, read_text_table, row_and_line
from ..json_files import read_json
from ..kinds import listed_classes
from ..long import csv_fields, long_fields
from ..nested import flat_records
from ..numbers import truth_value
from ..questions import question_column
from ..repeats import n_repeated
from ..tags import tag_fields
from ..text import convert_labels, convert_text
from ..text_files import check_encoding, encoding_of, first_bytes, suffix_of
from ..wide import COLUMNS, Wide, wide_roles
from .comparison_tables import compared_annotations, comparison_roles, not_compared
from .eval_logs import NO_ANSWER, is_log, read_logs
from .form_tables import Form, answers_of, form_roles
from .gathered import Held
from .harness_logs import is_beside
from .json_tools import read_mapping, read_records
from .known_columns import INFER, Roles, find_roles, gold_column, gold_in
from .opening import (
    PARQUET,
    ZIPPED,
    as_records,
    files_in,
    is_json,
    records_of_folder,
    table_of,
    table_of_json,
    unpacked,
)
from .table_tools import read_tool_table

STANDARD_INPUT = "-"
OPTIONS = (
    "classes",
    "ordered",
    "abstain",
    "truth_classes",
    "tasks",
    "workers",
    "features",
    "worker_features",
    "repeats",
    "tidy",
    "merge",
    "missing",
)
SEVERAL = ("refuse", "leave_out")
MOST_KINDS = 20  # values of a column that tells a worker's annotations to a task apart, such as a temperature
ACCEPTED = "CSV or TSV, Parquet, Excel, JSON, JSON Lines, and what annotation tools export as one of these"


def read(
    source: Any,
    *,
    question: Any = INFER,
    task: str = INFER,
    worker: str | None = INFER,
    label: str = INFER,
    count: str | None = None,
    seconds: str | None = INFER,
    separator: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    columns: str | None = None,
    outer: str | None = None,
    several: str = "refuse",
    comparisons: bool | None = None,
    meaning: Mapping[Any, str] | None = None,
    tags: str | None = None,
    tag_separator: str | None = None,
    empty: str | None = None,
    gold: Any = INFER,
    tell: bool | Callable[[str], str] = True,
    **options: Any,
) -> Annotations:
    """Read annotations from any file that people have them in, and say what was taken for what.

    - Tables with a row for each annotation: CSV and TSV with any separator, UTF-8, UTF-16 or Windows-1252, Excel,
      Parquet, JSON Lines, a list of records in JSON; pandas, polars and pyarrow tables and Hugging Face datasets.
      Columns are known by common names (item_id, annotator, response, …).
      In Excel a title above the header is left out, and each part of a merged cell has its value.
    - Tables with a row for each task and a column for each worker, or for each class with how often it was given; and
      answers to a form, with a row for each worker and a column for each task.
    - Dictionaries ``{task: {worker: label}}`` or ``{judge: {item: label}}`` in JSON, also where a label stands in a
      dictionary, ``{"label": …, "reason": …}``; records with nested judges and verdicts, whose columns are called
      ``judge.model`` and ``verdict.label``: any place in them can be named so.
    - Tables of comparisons, with two columns of items (left and right, model_a and model_b, item1 and item2) and one of
      which is better (a side or an item; ``tie (bothbad)``, too): :meth:`Annotations.from_comparisons`.
    - Exports of Label Studio, Argilla, Prodigy, doccano, MTurk, Toloka and CrowdFlower (Appen), and LeWiDi's datasets.
      Cancelled, rejected and ignored annotations are left out, which is said; gold labels are taken.
    - Logs of evaluations, one or a folder of them: inspect_ai's ``.json`` and ``.eval``, lm-evaluation-harness's
      ``samples_*.jsonl``, results of promptfoo, logs of OpenAI's evals, test runs of deepeval, and exported scores of
      langfuse. Scorers annotate samples; where several models are under test, each model's answer is a task.
      Here `tasks` may be ``"sample"``, ``"answer"`` or ``"epoch"``, and `workers` ``"scorer"`` or ``"model"``.

    Files may be compressed (.gz, .zst, .bz2, .xz); of a .zip or a folder, all files are annotators' of one export.

    Args:
        source: a path, ``"-"`` for standard input, a table in memory, a list of ``(task, worker, label)``, or what a
            JSON file would have: a list of dictionaries, or a dictionary.
        question: of an export with several questions, the one to read. Of a table with a row for each annotation the
            column of questions, and of one with a row for each task and worker the columns of labels, a list with one
            for each question, as for :meth:`Annotations.from_frame`; by default a column that is called so (question,
            aspect, dimension, criterion) and has several for a task; None not to look for one.
        task: the column of tasks; by default found out by its name.
        worker: that of workers; None where no worker is named.
        label: that of annotations.
        count: the column that says how many equal annotations a row stands for.
        seconds: the column that says how long each annotation took, in seconds; None not to look for one.
        separator: what separates the columns of a text file; None to find out.
        encoding: of a text file; None to find out.
        sheet: of an Excel file with several.
        columns: of a table with a row for each task, whether the other columns are ``"workers"``, with their labels, or
            ``"classes"``, with vote counts; or ``"tasks"``, beside a row for each worker, such as answers to a form. By
            default found out, and asked where workers and classes may both be meant.
        outer: of nested dictionaries, whether the outer keys are each a ``"task"`` or a ``"worker"``.
        several: of an export, what is done with annotations of several classes in one: ``"refuse"`` the file and name
            the first, or ``"leave_out"`` them.
        comparisons: whether a table with a row for each annotation is of comparisons of two items; by default found out
            by its columns' names, and False for labels left and right that are classes like any other.
        meaning: of comparisons, what labels stand for that are neither sides nor items, such as
            ``{0: "left", 1: "right"}``, as for :meth:`Annotations.from_comparisons`.
        tags: the column whose cells have several tags, as lists or as text such as "sports|politics": each tag is then
            a question, with the answers yes and no (:meth:`Annotations.from_tags`).
        tag_separator: between the tags of a text, where it is another than "|".
        empty: what a cell without tags is: ``"no"`` of a worker who gave none, or ``"drop"`` a row to leave out.
        gold: as for :meth:`Annotations.from_frame`, or a column's name; by default what the file itself has, None for
            none.
        tell: say on standard error what was taken for what, where anything had to be found out; or a function of that
            sentence, which returns the one to say.
        **options: classes, ordered, abstain, truth_classes, tasks, workers, features, worker_features, repeats, tidy,
            merge and missing as for :meth:`Annotations.from_frame`; missing is of tables with a row for each
            annotation, and in one with a row for each task an empty cell is no annotation.

    Raises:
        AnnotationError: something cannot be used; the message names the place, and what would do.
        FileNotFoundError: there is no such file.
    """
    for name in options:
        check_name("option", name, OPTIONS)
    check_name("several", several, SEVERAL)
    if columns is not None:
        check_name("value of columns", columns, COLUMNS)
    if encoding is not None:
        check_encoding(encoding)
    given: dict[str, Any] = {"task": task, "worker": worker, "label": label, "count": count, "seconds": seconds}
    given |= {"question": None if question == INFER else question, "looks": question == INFER}
    given |= {"separator": separator, "encoding": encoding, "sheet": sheet, "outer": outer}
    given |= {"several": several, "columns": columns}
    given["comparisons"] = truth_value("comparisons", comparisons, maybe=True, error=AnnotationError)
    given["meaning"] = meaning
    given |= {"tags": tags, "tag_separator": tag_separator, "empty": empty}
    for name in ("tag_separator", "empty") if tags is None else ():
        if given[name] is not None:
            raise AnnotationError(f"{name}={given[name]!r} is of a column of tags; name it by tags='COL'")
    if meaning is not None and given["comparisons"] is False:
        raise AnnotationError(f"meaning={meaning!r} is of comparisons; leave it out, or comparisons=False")
    if isinstance(source, str) and source == STANDARD_INPUT:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "input"
            with path.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file)
            try:
                annotations, said = _from_path(path, given, gold, options)
            except AnnotationError as error:
                raise AnnotationError(str(error).replace(str(path), "standard input")) from None
            said = said.replace(str(path), "standard input")
    elif isinstance(source, str | Path):
        annotations, said = _from_path(Path(source), given, gold, options)
    elif isinstance(source, Mapping) or (isinstance(source, list) and all(isinstance(row, Mapping) for row in source)):
        annotations, said = _from_json(source, Path("the records"), given, gold, options)
    else:
        annotations, said = _from_table(table_of(source), "the table", given, gold, options)
    if tell and said:
        sys.stderr.write(f"{_wrapped(tell(said) if callable(tell) else said)}\n")
    return annotations


def _wrapped(said: str) -> str:
    """A sentence in lines as wide as the terminal, where there is one or its width is set; else in one line."""
    if not (sys.stderr.isatty() or "COLUMNS" in os.environ):
        return said
    width = shutil.get_terminal_size().columns
    return textwrap.fill(said, width, break_long_words=False, break_on_hyphens=False)


def _from_path(path: Path, given: dict[str, Any], gold: Any, options: dict[str, Any]) -> tuple[Annotations, str]:
    if suffix_of(path) == ".zip":
        return _from_zip(path, given, gold, options)
    if path.is_dir():
        files = files_in(path)
        if logs := [file for file in files if is_log(file)]:
            others = sum(not is_beside(file) for file in files) - len(logs)
            return _of_logs(logs, path, given, gold, options, others)
        _refuse_of_logs(path, options)
        return _of_held(_of_folder(path, path, given), given, gold, options)
    start = first_bytes(path, 4096)
    if not start.strip():
        raise AnnotationError(f"{path}: the file is empty; there is to be {ACCEPTED}")
    if is_log(path):
        return _of_logs([path], path, given, gold, options)
    _refuse_of_logs(path, options)
    _refuse_unused(path, start, given)
    if start.startswith(PARQUET):
        return _from_table(read_parquet_table(path), str(path), given, gold, options)
    if suffix_of(path) in EXCEL or start.startswith(ZIPPED):
        found = read_excel(path, given["sheet"])
        annotations, said = _from_table(found.table, str(path), given, gold, options, found.where)
        if about := found.said():
            said = (said or f"{path}: a row for each annotation") + about
        return annotations, said
    if is_json(path, start):
        return _from_json(read_json(path, given["encoding"]), path, given, gold, options)
    table = read_text_table(path, given["separator"], given["encoding"])
    return _from_table(table, str(path), given, gold, options, path=path)


def _from_table(
    table: pd.DataFrame,
    what: str,
    given: dict[str, Any],
    gold: Any,
    options: dict[str, Any],
    where: Where | None = None,
    path: Path | None = None,
) -> tuple[Annotations, str]:
    """Read a table; ``path`` is the text file that it was read from, None for tables that have types of their own."""
    table = table.rename(columns=str)
    if given["tags"] is not None:
        return _tagged(table, what, given, gold, options, where, path)
    answers = given["question"] if isinstance(given["question"], list | tuple) else None
    if answers or given["question"] in table.columns:
        return _long(table, what, given, gold, options, where, path)
    if held := read_tool_table(table.astype(object), what, given["question"]):
        return _of_held(held, given, gold, options)
    if given["comparisons"] is not False and (compared := comparison_roles(table, what, given, options)):
        return compared_annotations(table, compared, what, given, gold, options)
    annotations, said = _of_rows(table, what, given, gold, options, where, path)
    return annotations, said and said + not_compared(table, given)


def _tagged(
    table: pd.DataFrame,
    what: str,
    given: dict[str, Any],
    gold: Any,
    options: dict[str, Any],
    where: Where | None,
    path: Path | None,
) -> tuple[Annotations, str]:
    """Read a table with a row for each task and worker and a column of tags.

    Raises:
        AnnotationError: there is no such column, or as `tag_fields`.
    """
    tags = given["tags"]
    if tags not in table.columns:
        raise missing_column(tags, "tags", table.columns, what)
    names = [name for name in table.columns if name != tags]
    roles = find_roles([*names, "label"], given | {"label": "label"}, what)
    if path is not None:
        where = row_and_line(path, given["separator"], given["encoding"])
        ids = [name for name in (roles.task, roles.worker) if name is not None]
        table = table.assign(**{name: convert_text(table[name])[0] for name in ids})
    own = {"tags": tags, "tag_separator": given["tag_separator"], "empty": given["empty"] or "refuse"}
    truth = None if isinstance(gold, str) and gold == INFER else gold
    fields = tag_fields(
        table, task=roles.task, worker=roles.worker, gold=truth, known=None, where=where or row_number, **own, **options
    )
    found = Annotations(**fields)
    return _with_said(found, what, f"{roles.said() or f'task {roles.task!r}'}, tags {tags!r}", "", "")


def _of_rows(
    table: pd.DataFrame,
    what: str,
    given: dict[str, Any],
    gold: Any,
    options: dict[str, Any],
    where: Where | None,
    path: Path | None,
) -> tuple[Annotations, str]:
    """Read a table with a row for each annotation, each task or each worker."""
    name = what if path is None else path.stem
    if _has_lists(table) and (held := read_records(as_records(table), what, given["question"], name)):
        return _of_held(held, given, gold, options)
    _refuse_question(what, given)
    if form := _form_roles(table, what, given):
        return _form(table, form, what, gold, options)
    if wide := _wide_roles(table, what, given, gold, options):
        return _wide(table, wide, what, given["columns"], gold, options)
    return _long(table, what, given, gold, options, where, path)


def _long(
    table: pd.DataFrame,
    what: str,
    given: dict[str, Any],
    gold: Any,
    options: dict[str, Any],
    where: Where | None,
    path: Path | None,
) -> tuple[Annotations, str]:
    """Read a table with a row for each annotation, or for each task and worker with a column for each question."""
    question = given["question"]
    answers = list(question) if isinstance(question, list | tuple) else []
    if lacking := [name for name in answers if name not in table.columns]:
        raise missing_column(lacking[0], "question", table.columns, what)
    names = [name for name in table.columns if name not in (*answers, question)]
    roles = find_roles([*names, "label"] if answers else names, given, what, None if answers else table)
    if given["looks"]:
        taken = (roles.worker, roles.label, roles.seconds, roles.gold)
        question = question_column(table, roles.task, taken)
    if answers:
        roles, asked = replace(roles, gold=None), f"a column for each of {len(answers)} questions"
    else:
        asked = "" if question is None else f"question {question!r}"
    truth, said_gold = gold_in(table, roles, gold, question if asked and not answers else None)
    columns = {"question": question} if question is not None else {}
    columns |= {"task": roles.task, "worker": roles.worker, "label": roles.label, "count": given["count"]}
    columns |= {"seconds": _seconds(roles, given)}
    options = {**columns, **options, "gold": truth, "skip_blank": True}
    if path is None:
        fields = long_fields(table, where=where, source=what, **options)
    else:
        separator, encoding = given["separator"], given["encoding"]
        _refuse_repeated_header(
            table, [roles.task, roles.worker, *(answers or [roles.label])], path, separator, encoding
        )
        fields = csv_fields(path, separator, options, encoding or encoding_of(path))
    apart = "" if question is not None else _telling_apart(table, roles)
    said = ", ".join(filter(None, (roles.said(), asked)))
    return _with_said(Annotations(**fields), what, said, said_gold, apart)


def _from_json(
    content: Any, path: Path, given: dict[str, Any], gold: Any, options: dict[str, Any]
) -> tuple[Annotations, str]:
    what = str(path)
    if isinstance(content, Mapping):
        if (table := table_of_json(content)) is not None:
            return _from_table(table, what, given, gold, options)
        held = read_mapping(content, what, given["outer"])
        if held is None and (records := _only_records(content)) is not None:
            return _from_json(records, path, given, gold, options)
        if held is None:
            raise AnnotationError(
                f"{what}: the dictionary is no {{task: {{worker: label}}}} and no export that is known"
            )
        return _of_held(held, given, gold, options)
    if not isinstance(content, list) or not all(isinstance(record, Mapping) for record in content):
        raise AnnotationError(f"{what}: a list of records, or a dictionary {{task: {{worker: label}}}}, is needed")
    if given["tags"] is not None and content:
        return _from_table(pd.DataFrame(content), what, given, gold, options)
    held = read_records(content, what, given["question"], path.stem)
    if held is not None:
        return _of_held(held, given, gold, options)
    if not content:
        raise AnnotationError(f"{what}: the list is empty; a record for each annotation is needed")
    named = [given[role] for role in ("task", "worker", "label", "count", "seconds")]
    return _from_table(pd.DataFrame(flat_records(content, what, named)), what, given, gold, options)


def _only_records(content: Mapping[str, Any]) -> list[Any] | None:
    """The one list of records in a dictionary, beside what is said of it: ``{"judgments": [{…}, …], "version": 1}``."""
    lists = [value for value in content.values() if isinstance(value, list) and value]
    lists = [value for value in lists if all(isinstance(record, Mapping) for record in value)]
    return lists[0] if len(lists) == 1 else None


def _of_held(held: Held, given: dict[str, Any], gold: Any, options: dict[str, Any]) -> tuple[Annotations, str]:
    named = [role for role in ("task", "worker", "label", "count", "seconds") if given[role] not in (INFER, None)]
    named += ["worker"] * (given["worker"] is None)
    if named:
        raise AnnotationError(
            f"{named[0]}={given[named[0]]!r} names a column, and {held.what} has none to choose; leave it out"
        )
    if given["columns"] is not None:
        raise AnnotationError(
            f"columns={given['columns']!r} is of a table with a row for each task, and {held.what} is none"
        )
    if given["meaning"] is not None:
        raise AnnotationError(f"meaning={given['meaning']!r} is of a table of comparisons, and {held.what} is none")
    if held.several and given["several"] == "refuse":
        raise AnnotationError(held.several[0])
    places = held.places
    truth = (held.gold or None) if isinstance(gold, str) and gold == INFER else gold
    if isinstance(truth, Mapping):
        known = set(held.frame["task"])
        truth = {task: label for task, label in truth.items() if task in known} or None
    if held.abstain:
        abstain = abstentions_of(options.get("abstain"), held.frame["label"].unique())
        options = options | {"abstain": list(dict.fromkeys([*abstain, *held.abstain]))}
    if options.get("ordered") is None and options.get("classes") is None:
        classes = [label for label in held.classes if label not in abstentions_of(options.get("abstain"))]
        options = (
            options | ({"ordered": held.ordered} if held.ordered else {}) | ({"classes": classes} if classes else {})
        )
    fields = long_fields(
        held.frame,
        question="question" if "question" in held.frame else None,
        seconds="seconds" if "seconds" in held.frame else None,
        where=(lambda row: places[row]) if places else None,
        source=held.what,
        gold=truth,
        **options,
    )
    return Annotations(**fields), held.said


def _of_logs(
    logs: list[Path], path: Path, given: dict[str, Any], gold: Any, options: dict[str, Any], others: int = 0
) -> tuple[Annotations, str]:
    """Read logs of evaluations, where `tasks` and `workers` may say what these are."""
    said = {name: options[name] for name in ("tasks", "workers") if isinstance(options.get(name), str)}
    abstain = abstentions_of(options.get("abstain"))
    held = read_logs(
        logs,
        str(path),
        given["question"],
        said.get("tasks"),
        said.get("workers"),
        no_answer=NO_ANSWER in abstain,
        others=others,
    )
    return _of_held(held, given, gold, {name: value for name, value in options.items() if name not in said})


def _wide(
    table: pd.DataFrame, wide: Wide, what: str, kind: str | None, gold: Any, options: dict[str, Any]
) -> tuple[Annotations, str]:
    """Read a table with a row for each task; `kind` is what its columns are, workers where it is None.

    Raises:
        AnnotationError: `missing` is given, or a value cannot be used.
    """
    _refuse_missing(what, "task", options)
    lacks = table[wide.task].isna().to_numpy() & table.notna().any(axis=1).to_numpy()
    if lacks.any():
        raise missing_values({f"column {wide.task!r}": lacks}, row_number)
    table = table.dropna(how="all")
    are_classes = kind == "classes"
    names, truth = pd.Series(wide.columns, dtype=object), [] if wide.gold is None else [table[wide.gold]]
    labels = [names, *truth] if are_classes else [*(table[name] for name in wide.columns), *truth]
    if all(_is_text(column) for column in labels):
        labels = convert_labels(*labels)
    tasks = convert_text(table[wide.task])[0] if _is_text(table[wide.task]) else table[wide.task]
    said = f"{what}: a row for each task ({wide.task!r}) and a column for each of {len(wide.columns)} "
    said += "classes, with vote counts" if are_classes else "workers"
    if wide.gold is not None and gold == wide.gold and gold_column(table, gold):
        gold = INFER
    known = None if isinstance(gold, str) and gold == INFER else gold
    if wide.gold is not None and isinstance(gold, str) and gold == INFER:
        given = zip(tasks.tolist(), labels.pop().tolist(), strict=True)
        known = {task: label for task, label in given if label is not None and label == label} or None
        said += f", gold labels in {wide.gold!r}"
    if wide.others:
        said += f"; left out: {', '.join(map(repr, wide.others))}"
    if are_classes:
        counts = table[list(wide.columns)].apply(pd.to_numeric).fillna(0).set_axis(tasks.tolist())
        return Annotations.from_counts(counts.set_axis(labels[0].tolist(), axis=1), gold=known, **options), said
    values = {name: column.tolist() for name, column in zip(wide.columns, labels, strict=False)}
    cells = pd.DataFrame(values, index=tasks.tolist(), dtype=object)
    return Annotations.from_matrix(cells, missing=None, gold=known, **options), said


def _form_roles(table: pd.DataFrame, what: str, given: dict[str, Any]) -> Form | None:
    """The columns of a table with a row for each worker, unless others were named than that of workers.

    Raises:
        AnnotationError: columns were named that it does not have, or as `form_roles`.
    """
    asked = given["columns"] == "tasks"
    named = [role for role in ("task", "label", "count", "seconds") if given[role] not in (INFER, None)]
    if asked and (named or given["worker"] is None):
        other = f"{named[0]}={given[named[0]]!r}" if named else "worker=None"
        raise AnnotationError(f"columns='tasks' is of a table with a row for each worker; leave it out, or {other}")
    if named or given["worker"] is None or given["columns"] not in (None, "tasks"):
        return None
    worker = None if given["worker"] == INFER else given["worker"]
    return form_roles(table, what, worker=worker, asked=asked)


def _form(table: pd.DataFrame, form: Form, what: str, gold: Any, options: dict[str, Any]) -> tuple[Annotations, str]:
    """Read a table with a row for each worker, where an empty cell is no annotation.

    Raises:
        AnnotationError: `missing` is given, or a value cannot be used.
    """
    _refuse_missing(what, "worker", options)
    labels = [table[name] for name in form.tasks]
    if all(_is_text(column) for column in labels):
        labels = convert_labels(*labels)
    answers, places = answers_of(table, form, labels)
    truth = None if isinstance(gold, str) and gold == INFER else gold
    fields = long_fields(answers, where=lambda row: places[row], source=what, gold=truth, **options)
    said = f"{what}: a row for each worker ({form.worker!r}) and a column for each of {len(form.tasks)} tasks"
    left_out = f"; left out: {', '.join(map(repr, form.others))}" if form.others else ""
    return Annotations(**fields), f"{said}{left_out}"


def _refuse_missing(what: str, of: str, options: dict[str, Any]) -> None:
    if "missing" in options:
        raise AnnotationError(
            f"missing={options['missing']!r} is of a table with a row for each annotation; {what} has a row for each "
            f"{of}, where an empty cell is no annotation, so leave it out"
        )


def _is_text(values: pd.Series) -> bool:
    return all(isinstance(value, str) for value in values.dropna())


def _wide_roles(
    table: pd.DataFrame, what: str, given: dict[str, Any], gold: Any, options: dict[str, Any]
) -> Wide | None:
    """The columns of a wide table, unless columns were named of which it has none.

    Raises:
        AnnotationError: such a column and `columns` were given, or as `wide_roles`.
    """
    named = [role for role in ("worker", "label", "count", "seconds") if given[role] not in (INFER, None)]
    if given["columns"] is not None and (named or given["worker"] is None):
        raise AnnotationError(
            f"columns={given['columns']!r} is of a table with a row for each task, which has no column of "
            f"{(named or ['worker'])[0]}s; leave one of the two out"
        )
    if named or given["worker"] is None:
        return None
    task = None if given["task"] == INFER else given["task"]
    asks = options.get("workers") is None and listed_classes(options) is None
    return wide_roles(table, what, task=task, gold=gold_column(table, gold), columns=given["columns"], asks=asks)


def _refuse_repeated_header(
    table: pd.DataFrame, columns: list[str | None], path: Path, separator: str | None, encoding: str | None
) -> None:
    """Refuse a row that is the header again, as where files were put one after the other."""
    names = [name for name in columns if name is not None]
    again = np.flatnonzero((table[names] == names).all(axis=1))
    if again.size:
        where = row_and_line(path, separator, encoding)(int(again[0]))
        raise AnnotationError(f"{where}: the header is there again; remove the row")


def _telling_apart(table: pd.DataFrame, roles: Roles) -> str:
    """Say by which column of few values the annotations of a worker to a task differ; nothing where there is none."""
    pair = [name for name in (roles.task, roles.worker) if name is not None]
    if not table.duplicated(pair).any():
        return ""
    free = [name for name in table.columns if name not in (*pair, roles.label, roles.seconds, roles.gold)]
    few = [name for name in free if 1 < table[name].map(str).nunique() <= MOST_KINDS]
    found = next((name for name in few if not table[[*pair, name]].astype(str).duplicated().any()), None)
    if found is None:
        return ""
    return f", each with another {found!r} (where that is another task or worker, make it part of its name)"


def _with_said(annotations: Annotations, what: str, roles: str, gold: str, apart: str) -> tuple[Annotations, str]:
    workers = count_text(annotations.n_workers, "worker") if annotations.named else "workers not named"
    sizes = (
        f"{count_text(annotations.n_annotations, 'annotation')} of {count_text(annotations.n_tasks, 'task')}, {workers}"
    )
    if not (roles or gold):
        return annotations, ""  # nothing was guessed
    if annotations.worker is not None and annotations.repeats == "keep":
        repeated = n_repeated(annotations.task, annotations.worker, annotations.n_annotations)
        sizes += f"; repeated by the same worker: {count_text(repeated, 'annotation')}{apart}" if repeated else ""
    if roles.startswith("task ") and annotations.n_tasks == annotations.n_annotations > annotations.n_workers > 1:
        column = roles.partition(", ")[0]
        warn(
            f"{what}: each of the {annotations.n_tasks:,} tasks has one annotation, as where {column} is the number of "
            "a row: say by task='COL' which column names what several workers annotated"
        )
    taken = f" ({roles})" if roles else ""
    return annotations, f"{what}: a row for each annotation{taken}: {sizes}{gold}"


def _seconds(roles: Any, given: dict[str, Any]) -> str | None:
    return None if given["seconds"] is None or roles.worker is None else roles.seconds


def _refuse_unused(path: Path, start: bytes, given: dict[str, Any]) -> None:
    """Refuse options of other kinds of files."""
    of_json = is_json(path, start)
    is_text = not (of_json or start.startswith((PARQUET, ZIPPED)) or suffix_of(path) in EXCEL)
    wrong = {"separator": not is_text, "encoding": not (is_text or of_json), "outer": not of_json}
    wrong["sheet"] = is_text or of_json or start.startswith(PARQUET)
    for name, unused in wrong.items():
        if unused and given[name] is not None:
            raise AnnotationError(f"{name}={given[name]!r} is of another kind of file than {path}")


def _refuse_of_logs(path: Path, options: dict[str, Any]) -> None:
    """Refuse what says what tasks and workers are in logs of evaluations."""
    for name in ("tasks", "workers"):
        if isinstance(options.get(name), str):
            raise AnnotationError(
                f"{name}={options[name]!r} is of logs of evaluations, and {path} is none; leave it out"
            )


def _from_zip(path: Path, given: dict[str, Any], gold: Any, options: dict[str, Any]) -> tuple[Annotations, str]:
    """Read the one file of a .zip, or its JSON files as those of a folder; messages name the .zip."""
    with unpacked(path) as folder:
        files = files_in(folder)
        try:
            if len(files) == 1:
                annotations, said = _from_path(files[0], given, gold, options)
            else:
                annotations, said = _of_held(_of_folder(folder, path, given), given, gold, options)
        except AnnotationError as error:
            raise AnnotationError(str(error).replace(str(folder), str(path))) from None
        return annotations, said.replace(str(folder), str(path))


def _of_folder(folder: Path, path: Path, given: dict[str, Any]) -> Held:
    held = read_records(records_of_folder(folder, given["encoding"]), str(path), given["question"], path.stem)
    if held is None:
        raise AnnotationError(f"{path}: the files in it are no export of a tool that is known; name one file")
    return held


def _refuse_question(what: str, given: dict[str, Any]) -> None:
    if given["question"] is not None:
        raise AnnotationError(
            f"{what} is no export with questions, so that question={given['question']!r} has no meaning; name the "
            "column of annotations by label="
        )


def _has_lists(table: pd.DataFrame) -> bool:
    return any(str(name).endswith((".responses", ".suggestion")) for name in table.columns)
