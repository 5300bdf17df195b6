"""`crowdppl.read`: annotations out of any file that people have them in."""

import glob
import inspect
import os
import re
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..abstentions import abstentions_of
from ..annotations import Annotations
from ..column_names import INFER, is_name_of, missing_column, parts_of, stem
from ..columns import Where, missing_values, row_number
from ..comparison_columns import with_drawn_sides, with_one_winner
from ..comparisons import OF_DRAWN_SIDES
from ..description import count_text
from ..errors import AnnotationError, check_name, given_path, truth_value, warn
from ..excel import EXCEL, read_excel
from ..frames import is_frame, read_parquet_table, read_text_table, row_and_line
from ..id_text import listing
from ..ids import Ids
from ..joining import CLOSED
from ..json_files import JSON, LINES, read_json
from ..kinds import listed_classes
from ..long import LongColumns, csv_fields, long_fields, refuse_fractions
from ..nested import (
    by_worker_and_criterion,
    flat_records,
    labels_in_lists,
    parsed_cells,
    places_in,
    records_of_cells,
    unnamed_labels,
    with_field,
    with_sides,
)
from ..questions import names_questions, question_column
from ..repeats import n_repeated
from ..tags import tag_fields
from ..text import convert_labels, convert_text
from ..text_files import check_encoding, first_bytes, suffix_of
from ..wide import COLUMNS, Wide, by_worker_and_question, filled_cells, is_text, wide_roles
from .counted_votes import Records, are_counts, counted_table, field_of_counts, field_of_results
from .eval_logs import held_of, is_log, read_logs
from .experiment_records import experiment_in, experiment_in_table
from .gathered import Held
from .harness_logs import is_beside, means_alone
from .json_tools import criteria_table, read_mapping, read_records
from .judged_pairs import JudgedPairs, are_judged_pairs, pairs_judged
from .known_columns import (
    Asked,
    Roles,
    count_column,
    find_roles,
    gold_column,
    gold_in,
    judged_column,
    left_out,
    name_of_parts,
    ranked_columns,
    with_answers_of_systems,
    with_identifiers_of_content,
    with_named_parts,
    with_questions_of_content,
    with_repeated_content,
    with_rows_of_answers,
    with_task_of_questions,
)
from .opening import (
    FILE,
    PARQUET,
    TEXT,
    ZIPPED,
    are_tables,
    as_records,
    beside_fits,
    files_in,
    files_left_out,
    is_json,
    of_its_name,
    records_of_files,
    table_of,
    table_of_files,
    table_of_json,
    tables_beside,
    unpacked,
    workers_of_files,
)
from .scorer_scales import NO_ANSWER
from .table_tools import (
    compared_annotations,
    comparison_roles,
    form_roles,
    is_question,
    not_compared,
    read_tool_table,
    refuse_examples,
    refuse_metrics,
    without_import_rows,
)
from .verdicts import Log

STANDARD_INPUT = "-"
COLUMNS_AND_GOLD = ("frame", "task", "worker", "label", "count", "seconds", "question", "gold")
OPTIONS = tuple(name for name in inspect.signature(Annotations.from_frame).parameters if name not in COLUMNS_AND_GOLD)
NO_OPTIONS = ("source", "options")
"""Parameters of :func:`read` that are no options."""
SEVERAL = ("refuse", "leave_out")
SHOWN = 5  # columns that are named of those read
PLACES = ("start", "startoffset", "offset", "begin", "span", "sentence", "turn")
"""Names, in plain letters and without "id", of columns that say which part of a task an annotation is of."""
MOST_KINDS = 20  # values of a column that tells a worker's annotations to a task apart, such as a temperature
ACCEPTED = "CSV or TSV, Parquet, Excel, JSON, JSON Lines, and what annotation tools export as one of these"


MARKUP = (b"<?xml", b"<!doctype", b"<html")
PDF = b"%PDF"


@dataclass(frozen=True)
class Table:
    """A table as it was read."""

    frame: pd.DataFrame
    what: str  # what messages call it
    where: Where = row_number  # says where a row is, for messages
    path: Path | None = None  # of the text that it was read from, a file or several; None where values have types
    places: Sequence[str] = ()  # in dictionaries of the records that it was made of, each a column where it is named


def read_if_needed(data: Any, *, tell: bool = True) -> Any:
    """The annotations in a path, a table or records; anything else as it is.

    Args:
        data: as of :func:`read`, or annotations.
        tell: whether to say what was taken for what.
    """
    if isinstance(data, str | os.PathLike | Mapping | list) or (
        not isinstance(data, Annotations) and (hasattr(data, "to_pandas") or is_frame(data))
    ):
        return read(os.fspath(data) if isinstance(data, os.PathLike) else data, tell=tell)
    return data


def read(
    source: Any,
    *,
    question: Any = INFER,
    task: str | Sequence[str] = INFER,
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
    preferences: bool | None = None,
    item_features: Any = None,
    tags: str | None = None,
    tag_separator: str | None = None,
    empty: str | None = None,
    gold: Any = INFER,
    like: Annotations | None = None,
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
      dictionary, ``{"label": …, "reason": …}``; counts of votes by class, ``{"votes": {"toxic": 3, "ok": 2}}``,
      asked about where they may be workers' scores; records with nested judges and verdicts, whose columns are called
      ``judge.model`` and ``verdict.label``: any place in them can be named so. Lists and dictionaries in the cells of a
      table are read as the same in JSON is.
    - Tables of comparisons, with two columns of items (left and right, model_a and model_b, item1 and item2) and one of
      which is better (a side or an item; ``tie (bothbad)``, too), or a column for each outcome (winner_model_a,
      winner_model_b, winner_tie), or the columns winner and loser alone: :meth:`Annotations.from_comparisons`.
    - Exports of Label Studio, Labelbox, Argilla, Prodigy, doccano, MTurk, SageMaker Ground Truth, Zooniverse, Toloka
      and CrowdFlower (Appen), feedback that LangSmith lists, and LeWiDi's datasets.
      Cancelled, rejected and ignored annotations are left out, which is said; gold labels are taken.
    - Logs of evaluations, one or a folder of them: inspect_ai's ``.json`` and ``.eval``, lm-evaluation-harness's
      ``samples_*.jsonl``, results of promptfoo, logs of OpenAI's evals, test runs of deepeval, exported scores of
      langfuse, experiments of Braintrust, Weave and Phoenix, feedback on traces of MLflow, and FastChat's judgments
      of answers (those of pairs are comparisons). Scorers annotate samples; where several models are under test,
      each model's answer is a task. Here `tasks` may be ``"sample"``, ``"answer"`` or ``"epoch"``, and `workers`
      ``"scorer"`` or ``"model"``.
    - Output of batches of requests to OpenAI, Anthropic and Gemini, a file or several: a request's id is a task, the
      model a worker, and the label what its answer says, in free text (``Rating: [[8]]``, ``I'd say 4/5``) or in JSON.

    Files may be compressed (.gz, .zst, .bz2, .xz). Of a .zip, a folder or a pattern (``"batches/*.csv"``) all files are
    annotators' of one export, or tables in CSV or Parquet with equal columns, which are read as one, as
    files of JSON Lines are. Files that name no workers, and of which most tasks stand in several, have one worker each,
    of the file's name.

    Args:
        source: a path, a pattern of several, ``"-"`` for standard input, a table in memory, a list of
            ``(task, worker, label)``, or what a JSON file would have: a list of dictionaries, or a dictionary.
        question: of several questions the one to read: of an export, in a table's column of questions, or a column with
            the labels of one, ``"helpfulness"``. Or of a table with a row for each annotation the column of questions,
            and of one with a row for each task and worker the columns of labels, a list with one for each question, as
            for :meth:`Annotations.from_frame`; by default a column that is called so (question, aspect, dimension,
            criterion) and has several for a task; None not to look for one.
        task: the column of tasks; by default found out by its name. Or two columns, ``["prompt", "model"]`` or
            ``"prompt,model"``, each pair of whose values is a task: ``"p1 | m1"``.
        worker: that of workers; None where no worker is named.
        label: that of annotations.
        count: the column that says how many equal annotations a row stands for.
        seconds: the column that says how long each annotation took, in seconds; None not to look for one.
        separator: what separates the columns of a text file; None to find out.
        encoding: of a text file; None to find out.
        sheet: of an Excel file with several.
        columns: of a table with a row for each task, or a dictionary for each, whether the other columns, or the keys,
            are ``"workers"``, with their labels, or ``"classes"``, with vote counts; or ``"tasks"``, beside a row for
            each worker, such as answers to a form. By default found out, and asked where workers and classes may both
            be meant.
        outer: of nested dictionaries, whether the outer keys are each a ``"task"`` or a ``"worker"``.
        several: of an export, what is done with annotations of several classes in one: ``"refuse"`` the file and name
            the first, or ``"leave_out"`` them.
        comparisons: whether a table with a row for each annotation is of comparisons of two items; by default found out
            by its columns' names, and False for labels left and right that are classes like any other.
        meaning: of comparisons, what labels stand for that are neither sides nor items, such as
            ``{0: "left", 1: "right"}``, as for :meth:`Annotations.from_comparisons`.
        preferences: of comparisons, whether each row is a preference of its own, as for
            :meth:`Annotations.from_comparisons`; by default it is where nearly every task has one annotation.
        item_features: of comparisons, features of the items, as for :meth:`Annotations.from_comparisons`.
        tags: the column whose cells have several tags, as lists or as text such as "sports|politics": each tag is then
            a question, with the answers yes and no (:meth:`Annotations.from_tags`).
        tag_separator: between the tags of a text, where it is another than "|".
        empty: what a cell without tags is: ``"no"`` of a worker who gave none, or ``"drop"`` a row to leave out.
        gold: as for :meth:`Annotations.from_frame`, or a column's name; by default what the file itself has, None for
            none.
        like: annotations of tables of the same form: columns that are called as theirs were have the same roles.
        tell: say on standard error what was taken for what, where anything had to be found out; or a function of that
            sentence, which returns the one to say.
        **options: when, classes, ordered, abstain, truth_classes, tasks, workers, features, worker_features, repeats,
            tidy, merge and missing as for :meth:`Annotations.from_frame`; missing and when are of tables with a row for
            each annotation, and in one with a row for each task an empty cell is no annotation.

    Raises:
        AnnotationError: something cannot be used; the message names the place, and what would do.
        FileNotFoundError: there is no such file.
    """
    own = [name for name in inspect.signature(read).parameters if name not in NO_OPTIONS]
    for name in options:
        check_name("option", name, [*own, *OPTIONS])
    check_name("several", several, SEVERAL)
    if columns is not None:
        check_name("value of columns", columns, COLUMNS)
    if encoding is not None:
        check_encoding(encoding)
    asked = Asked(
        question=None if question == INFER else question,
        looks=question == INFER,
        task=name_of_parts(task),
        worker=worker,
        label=label,
        count=count,
        seconds=seconds,
        separator=separator,
        encoding=encoding,
        sheet=sheet,
        columns=columns,
        outer=outer,
        several=several,
        comparisons=truth_value("comparisons", comparisons, maybe=True, error=AnnotationError),
        meaning=meaning,
        preferences=truth_value("preferences", preferences, maybe=True, error=AnnotationError),
        item_features=item_features,
        tags=tags,
        tag_separator=tag_separator,
        empty=empty,
        gold=gold,
        options=options,
        first=like,
    )
    for name in ("tag_separator", "empty") if tags is None else ():
        if (value := getattr(asked, name)) is not None:
            raise AnnotationError(f"{name}={value!r} is of a column of tags; name it by tags='COL'")
    for name in ("meaning", "preferences"):
        if (value := getattr(asked, name)) and asked.comparisons is False:
            raise AnnotationError(f"{name}={value!r} is of comparisons; leave it out, or comparisons=False")
    if isinstance(source, str) and source == STANDARD_INPUT:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "input"
            with path.open("wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file)
            try:
                annotations, said = _from_path(path, asked)
            except AnnotationError as error:
                raise AnnotationError(str(error).replace(str(path), "standard input")) from None
            said = said.replace(str(path), "standard input")
    elif isinstance(source, str | Path):
        annotations, said = _from_path(given_path(source), asked)
    elif isinstance(source, Mapping) or (isinstance(source, list) and all(isinstance(row, Mapping) for row in source)):
        annotations, said = _of_experiment(source, asked) or _from_json(source, Path("the records"), asked)
    else:
        annotations, said = _from_table(Table(table_of(source), "the table"), asked)
    if item_features is not None and annotations.sides is None:
        raise AnnotationError("item_features= is of comparisons, and these annotations are none; leave it out")
    if tell and said:
        sys.stderr.write(f"{_wrapped(tell(said) if callable(tell) else said)}\n")
    return annotations


NAMING = frozenset(inspect.signature(read).parameters) - {*NO_OPTIONS, "gold", "like", "tell"} | frozenset(OPTIONS)
"""Keyword arguments of `read` that say how a file or a table is read."""


def read_more(first: Annotations, more: Any, *, tell: bool | Callable[[str], str] = True, **options: Any) -> Any:
    """Annotations to be added, read as `read` does; and as it is what :meth:`.Annotations.joined` takes.

    Where nothing is said of classes and abstentions they are those of `first`, unless these are of comparisons or each
    question has classes of its own. Tasks and workers that are written alike are the same: a column of numbers is read
    as numbers, and as text where it has a name too.

    Args:
        first: what they are added to.
        more: as of :func:`read`, or annotations, or None.
        tell: as of :func:`read`.
        options: of :func:`read`, those in `NAMING`.

    Raises:
        AnnotationError: as :func:`read`; options are given for what is read already, or for nothing.
    """
    name = next(iter(options), None)
    if more is None or isinstance(more, Annotations):
        if name is not None:
            what = "nothing is" if more is None else "annotations are made already, and no table or file is"
            raise AnnotationError(f"{name}={options[name]!r} says how a file or a table is read, and {what} given")
        return more
    if name is None and is_frame(more):
        return more
    if first.sides is None and first.kind.own is None:  # a file may have one class, and then says nothing of others
        stated: dict[str, Any] = {"classes": list(first.classes)}
        if first.scored:
            stated = {"ordered": list(first.levels), "truth_classes": list(first.classes)}
        stated = {} if {"classes", "ordered", "truth_classes"} & set(options) else stated
        options = stated | options
        if first.abstains and options.get("abstain") is None:
            options["abstain"] = list(first.abstentions)
    else:
        options = {"preferences": first.preferences} | options if first.sides is not None else options
        stated = {}
    try:
        found = read(os.fspath(more) if isinstance(more, os.PathLike) else more, like=first, tell=tell, **options)
    except AnnotationError as error:
        if not stated:
            raise
        raise AnnotationError(re.sub(r"\badd it to (classes|ordered)\b.*", CLOSED, str(error))) from None
    if first.sides is not None:  # whose tasks are named by their items
        return found
    return found.replace(tasks=_named_as(first.tasks, found.tasks), workers=_named_as(first.workers, found.workers))


def _named_as(first: Ids, names: Ids) -> Ids:
    """The names, each as the first have it where it is written alike."""

    def text(name: Hashable) -> Hashable:
        return tuple(map(str, name)) if isinstance(name, tuple) else str(name)

    known = {text(name): name for name in first}
    return type(names)([known.get(text(name), name) for name in names])


def _wrapped(said: str) -> str:
    """A sentence in lines as wide as the terminal, where there is one or its width is set; else in one line."""
    if not (sys.stderr.isatty() or "COLUMNS" in os.environ):
        return said
    width = shutil.get_terminal_size().columns
    return textwrap.fill(said, width, break_long_words=False, break_on_hyphens=False)


def _from_path(path: Path, asked: Asked) -> tuple[Annotations, str]:
    if suffix_of(path) == ".zip":
        return _from_zip(path, asked)
    if path.is_dir():
        return _from_files(files_in(path), path, asked)
    if not path.exists() and glob.has_magic(str(path)):
        files = sorted(file for file in map(Path, glob.glob(str(path), recursive=True)) if file.is_file())
        if not files:
            raise AnnotationError(
                f"no file is named like {path}; give a file, a folder or a pattern such as 'folder/*.csv'"
            )
        return _from_files(files, path, asked)
    start = first_bytes(path, 4096)
    if not start.strip():
        raise AnnotationError(f"{path}: the file is empty; there is to be {ACCEPTED}")
    if start.lstrip(b"\xef\xbb\xbf \t\r\n")[:9].lower().startswith(MARKUP):
        raise AnnotationError(f"{path} is XML or a page of HTML, and no table; there is to be {ACCEPTED}")
    if start.startswith(PDF):
        raise AnnotationError(f"{path} is a PDF, and no table; there is to be {ACCEPTED}")
    if is_beside(path):
        raise means_alone(path)
    if is_log(path):
        return _of_logs([path], path, asked)
    _refuse_of_logs(path, asked.options)
    _refuse_unused(path, start, asked)
    if start.startswith(PARQUET):
        return _from_table(Table(read_parquet_table(path), str(path)), asked)
    if suffix_of(path) in EXCEL or start.startswith(ZIPPED):
        found = read_excel(path, asked.sheet)
        annotations, said = _from_table(Table(found.table, str(path), found.where), asked)
        if about := found.said():
            said = (said or f"{path}: a row for each annotation") + about
        return annotations, said
    if is_json(path, start):
        return _from_json(read_json(path, asked.encoding), path, asked)
    written = asked.separator, asked.encoding
    return _from_table(Table(read_text_table(path, *written), str(path), row_and_line(path, *written), path), asked)


def _from_files(files: list[Path], path: Path, asked: Asked) -> tuple[Annotations, str]:
    """Read logs of evaluations, tables with equal columns, or the JSON files of an export; `path` names them."""
    if len(others := beside_fits(files)) < len(files):
        if not others:
            raise AnnotationError(
                f"{path} is the folder of a fit, and annotations are needed; crowdppl.load_fit reads it"
            )
        annotations, said = _from_files(others, path, asked)
        return annotations, (said or str(path)) + files_left_out(files, others)
    if logs := [file for file in files if is_log(file)]:
        known = set(logs)
        others = [file for file in files if file not in known and not is_beside(file)]
        return _of_logs(logs, path, asked, others)
    _refuse_of_logs(path, asked.options)
    if files and all(map(is_beside, files)):
        raise means_alone(path)
    if (tables := tables_beside(files)) and not any(suffix_of(file) in JSON for file in files):
        annotations, said = _from_files(tables, path, asked)
        return annotations, (said or str(path)) + files_left_out(files, tables)
    if not are_tables(files):
        records = records_of_files(files, str(path), asked.encoding)
        if _may_be_judged(asked):
            judged = {record["_path"] for record in records if are_judged_pairs(record)}
            records = [record for record in records if not judged or record["_path"] in judged]
        held = read_records(records, str(path), asked.question, path.stem)
        annotations, said = _of_held(held, asked) if held is not None else _of_record_files(records, path, asked)
        unread = files_left_out(files, {record["_path"] for record in records})
        return annotations, (said or f"{path}" * bool(unread)) + unread
    _refuse_unused(files[0], first_bytes(files[0], 4096), asked)
    frames, where = table_of_files(files, asked.separator, asked.encoding)
    if names := workers_of_files(frames, files, asked):
        frames = [frame.assign(worker=name) for frame, name in zip(frames, names, strict=True)]
    is_text = suffix_of(files[0]) in TEXT
    table = Table(pd.concat(frames, ignore_index=True), str(path), where, path if is_text else None)
    annotations, said = _from_table(table, asked)
    return annotations, (said or f"{path}" * bool(names)) + of_its_name(names)


def _of_record_files(records: Records, path: Path, asked: Asked) -> tuple[Annotations, str]:
    """Read the records of several files as those of one, with a worker for each file where none is named in them."""
    by_file: dict[Path, list[Mapping[str, Any]]] = {}
    for record in records:
        by_file.setdefault(record["_path"], []).append(record)
    own = [[{key: record[key] for key in record if key not in FILE} for record in each] for each in by_file.values()]
    frames = [pd.DataFrame(flat_records(each, str(file))) for file, each in zip(by_file, own, strict=True)]
    names = workers_of_files(frames, list(by_file), asked)
    named = [[{"worker": name} | record for record in each] for name, each in zip(names, own, strict=False)] or own
    places = [record["_place"] for record in records]
    annotations, said = _from_json([record for each in named for record in each], path, asked, places)
    return annotations, (said or f"{path}" * bool(names)) + of_its_name(names)


def _from_table(table: Table, asked: Asked) -> tuple[Annotations, str]:
    frame, asked = with_named_parts(table.frame.rename(columns=str), asked, table.what)
    table, asked = replace(table, frame=frame), asked.with_known(frame.columns)
    what, question = table.what, asked.question
    if asked.tags is not None:
        return _tagged(table, asked.tags, asked)
    if table.path is None and not asked.named and asked.columns is None and (log := experiment_in_table(frame, what)):
        return _of_log(log, what, asked)
    if _may_be_judged(asked) and (pairs := pairs_judged(frame, what, table.where)) is not None:
        return _of_judged_pairs(pairs, what, asked)
    may_compare = asked.comparisons is not False
    if may_compare and "label" not in asked.named and (drawn := with_drawn_sides(frame)) is not frame:
        annotations, said = _from_table(replace(table, frame=drawn), asked)
        return annotations if annotations.sides is None else annotations.replace(**OF_DRAWN_SIDES), said
    frame, outcomes = with_one_winner(frame) if may_compare and "label" not in asked.named else (frame, [])
    if outcomes:
        annotations, said = _from_table(replace(table, frame=frame), asked)
        return annotations, f"{said}; 'winner' is of {', '.join(map(repr, outcomes))}"
    if isinstance(question, list | tuple) or question in frame.columns:
        compared = comparison_roles(frame, what, asked) if may_compare else None
        if compared is not None:
            return compared_annotations(frame, compared, what, asked)
        return _of_cells(table, asked) or _long(table, asked)
    if held := read_tool_table(frame.astype(object), what, question):
        return _of_held(held, asked)
    of_all = asked if question is None else replace(asked, question=None, looks=True)
    if may_compare and (compared := comparison_roles(frame, what, of_all)):
        annotations, said = compared_annotations(frame, compared, what, of_all)
        return (annotations, said) if question is None else _of_question(annotations, said, question, what)
    annotations, said = _of_rows(table, asked)
    return annotations, said and said + not_compared(frame, asked)


def _of_question(annotations: Annotations, said: str, question: str, what: str) -> tuple[Annotations, str]:
    """Return the annotations of the question that was asked for.

    Raises:
        AnnotationError: there is none of that name, or there are no questions.
    """
    names = {str(name): name for name in annotations.questions}
    if question not in names:
        raise _no_question(question, list(names), what)
    return annotations.of_question(names[question]), f"{said}; {question!r} of these alone"


def _no_question(question: str, known: Sequence[str], what: str) -> AnnotationError:
    if known:
        return AnnotationError(f"{what}: there is no question {question!r}; there are {', '.join(map(repr, known))}")
    return AnnotationError(
        f"{what} is no export with questions, so that question={question!r} has no meaning; name the column of "
        "annotations by label="
    )


def _may_be_judged(asked: Asked) -> bool:
    """Return whether judgments of pairs are read as their tool means them: where nothing is said of their columns."""
    return asked.comparisons is not False and not asked.named and not asked.meaning


def _of_judged_pairs(pairs: JudgedPairs, what: str, asked: Asked) -> tuple[Annotations, str]:
    """Read judgments of pairs by a known tool, with a row for each order that was shown."""
    if (pairs.frame["winner"] == pairs.abstain).any():
        abstain = dict.fromkeys([*abstentions_of(asked.options.get("abstain")), pairs.abstain])
        asked = replace(asked, options={**asked.options, "abstain": list(abstain)})
    annotations, said = _from_table(Table(pairs.frame, what), replace(asked, comparisons=True))
    annotations = annotations.replace(**OF_DRAWN_SIDES) if pairs.drawn else annotations
    return annotations, f"{said}; {pairs.said}"


def _tagged(table: Table, tags: str, asked: Asked) -> tuple[Annotations, str]:
    """Read a table with a row for each task and worker and a column of tags.

    Raises:
        AnnotationError: there is no such column, or as `tag_fields`.
    """
    frame, what = table.frame, table.what
    if tags not in frame.columns:
        raise missing_column(tags, "tags", frame.columns, what)
    names = [name for name in frame.columns if name != tags]
    made = frame[names].assign(label=None)
    roles = find_roles(list(made), asked.roles | {"label": "label"}, what, made, shown=frame.columns)
    if table.path is not None:
        ids = [name for name in (roles.task, roles.worker) if name is not None]
        frame = frame.assign(**{name: convert_text(frame[name])[0] for name in ids})
    if (lists := parsed_cells(frame[tags])) is not None:
        frame = frame.assign(**{tags: lists})
    known = None if asked.first is None else list(asked.first.questions) or None
    own: dict[str, Any] = {"tag_separator": asked.tag_separator, "empty": asked.empty or "refuse", "known": known}
    own |= {"task": roles.task, "worker": roles.worker, "tags": tags, "gold": asked.truth}
    rest = left_out(frame.columns, [roles.task, roles.worker, tags])
    found = Annotations(**tag_fields(frame, where=table.where, **own, **asked.options))
    return _with_said(found, what, f"{roles.said() or f'task {roles.task!r}'}, tags {tags!r}", "", "", rest)


def _of_rows(table: Table, asked: Asked) -> tuple[Annotations, str]:
    """Read a table with a row for each annotation, each task or each worker."""
    frame, what = without_import_rows(table.frame), table.what
    name = what if table.path is None else table.path.stem
    has_lists = any(str(column).endswith((".responses", ".suggestion")) for column in frame.columns)
    if has_lists and (held := read_records(as_records(frame), what, asked.question, name)):
        return _of_held(held, asked)
    if not asked.named and asked.columns is None:
        refuse_examples(frame, what)
    if nested := _of_cells(table, asked):
        return nested
    if asked.question is None and (form := _form_roles(frame, what, asked)):
        return _form(frame, form, what, asked)
    if not asked.named and asked.columns is None:
        refuse_metrics(frame, what)
    frame = frame if asked.named else with_rows_of_answers(frame)
    may_be_grid = not asked.named and asked.columns is None
    if may_be_grid and (grid := by_worker_and_question(frame, abstentions_of(asked.options.get("abstain")))):
        of_grid = asked if asked.question is not None else replace(asked, question="question")
        annotations, said = _long(Table(grid.frame, what, grid.where), of_grid)
        return (
            annotations,
            f"{said}; a column for each worker and question ({grid.example!r}){left_out(grid.others, table=frame)}",
        )
    if asked.question is None and (wide := _wide_roles(frame, what, asked)):
        return _wide(frame, wide, what, asked)
    return _long(table, asked)


def _of_cells(table: Table, asked: Asked) -> tuple[Annotations, str] | None:
    """Read a table of which a column of workers or labels has lists or dictionaries, as the same in JSON; else None."""
    records = None if asked.options.get("tidy") else records_of_cells(table.frame, is_text=table.path is not None)
    if records is None:
        return None
    return _of_records(records, table.what, asked, table.where, list(map(table.where, range(len(records)))))


def _long(table: Table, asked: Asked) -> tuple[Annotations, str]:
    """Read a table with a row for each annotation, or for each task and worker with a column for each question.

    A question that names no column is one of those in the column of questions; one that names a column of labels, where
    a task and a worker have one row, is that column.
    """
    frame, what, path, question = table.frame, table.what, table.path, asked.question
    only = question if isinstance(question, str) and question not in frame.columns else None
    if only is not None:
        asked = replace(asked, question=None, looks=True)
        question = None
    elif isinstance(question, str) and _has_labels_of(question, table, asked):
        asked = replace(asked, label=question, question=None, looks=False)
        question = None
    answers = list(question) if isinstance(question, list | tuple) else []
    if lacking := [name for name in answers if name not in frame.columns]:
        raise missing_column(lacking[0], "question", frame.columns, what)
    names = [name for name in frame.columns if name not in (*answers, question)]
    made = frame[names].assign(label=frame[answers[0]]) if answers else frame[names]
    named = asked.roles | ({"label": "label"} if answers and "label" not in asked.named else {})
    roles = find_roles(list(made), named, what, made, table.places, shown=frame.columns)
    of_task: list[str] = []
    if asked.looks:
        if asked.task == INFER:
            roles = with_identifiers_of_content(with_repeated_content(roles, frame), frame)
        roles = with_task_of_questions(roles, frame, what, [asked.count, asked.options.get("when")])
        taken = (roles.worker, roles.label, roles.seconds, roles.gold)
        question = question_column(frame, roles.task, taken)
        if asked.task == INFER and question is None and not answers:
            roles, frame, of_task = with_questions_of_content(roles, frame)
    if only is not None:
        return _long_of_question(replace(table, frame=frame), asked, question, only)
    if asked.task == INFER and not of_task:
        roles, frame, of_task = with_answers_of_systems(roles, frame, None if answers else question)
    table = replace(table, frame=frame)
    if answers:
        roles, questions = replace(roles, gold=None), f"a column for each of {len(answers)} questions"
    else:
        questions = "" if question is None else f"question {question!r}"
    silent = abstentions_of(asked.options.get("abstain"))
    truth, said_gold = gold_in(frame, roles, asked.gold, question if questions and not answers else None, silent)
    if path is None and not answers and listed_classes(asked.options) is None:
        given = frame[roles.label]
        if is_text(given) and given.isin([str(value) for value in silent]).any():  # as pandas reads numbers beside it
            frame = frame.assign(**{roles.label: convert_labels(given, abstentions=silent)[0]})
            table = replace(table, frame=frame)
    if (when := asked.options.get("when")) is not None:
        questions = ", ".join(filter(None, (questions, f"when {when!r}")))
    columns = {"question": question} if question is not None else {}
    count = count_column(roles, frame) if asked.count is None and not answers else asked.count
    if count != asked.count:
        questions = ", ".join(filter(None, (questions, f"count {count!r}")))
    columns |= {"task": roles.task, "worker": roles.worker, "label": roles.label, "count": count}
    columns["seconds"] = None if asked.seconds is None or roles.worker is None else roles.seconds
    of_table, options = LongColumns.among({**columns, **asked.options, "gold": truth, "skip_blank": True})
    if path is None:
        fields = long_fields(frame, of_table, where=table.where, source=what, **options)
    else:
        _refuse_repeated_header(table, [roles.task, roles.worker, *(answers or [roles.label])])
        fields = csv_fields(path, asked.separator, of_table, options, asked.encoding, frame, table.where)
    apart = "" if question is not None else _telling_apart(frame, roles)
    said = ", ".join(filter(None, (roles.said(), questions)))
    used = [roles.task, roles.worker, roles.label, columns["seconds"], count, when]
    used += of_task
    used += [question, *answers, (gold_column(frame, asked.gold) or roles.gold) if said_gold else None]
    takes_when = when is None and roles.worker is not None
    rest = left_out(frame.columns, used, ranked=ranked_columns(frame, roles.task), takes_when=takes_when)
    return _with_said(Annotations(**fields), what, said, said_gold, apart, rest)


def _has_labels_of(question: str, table: Table, asked: Asked) -> bool:
    """Return whether a column has a question's labels: no other is named so, and no worker has a task twice."""
    made = table.frame.drop(columns=question).assign(label=table.frame[question])
    taken: list[str | None] = [name for name in asked.roles.values() if name not in (INFER, None)]
    taken += [judged_column(made, {role: name for role, name in asked.roles.items() if name != INFER})]
    names = [name for name in table.frame.columns if name not in (question, *taken)]
    if asked.label != INFER or any(is_name_of(str(name), "label") for name in names):
        return False
    roles = find_roles(list(made), asked.roles | {"label": "label"}, table.what, made, shown=table.frame.columns)
    pair = [name for name in (roles.task, roles.worker) if name is not None]
    return roles.worker is not None and not table.frame.duplicated(pair).any()


def _long_of_question(table: Table, asked: Asked, column: str | None, only: str) -> tuple[Annotations, str]:
    """Read the rows of one question of a table, by its column of questions.

    Raises:
        AnnotationError: there is no such column, or no such question in it.
    """
    known = [] if column is None else list(dict.fromkeys(table.frame[column].dropna().astype(str)))
    if only not in known:
        raise _no_question(only, known, table.what)
    rows = np.flatnonzero((table.frame[column].astype(str) == only).to_numpy())
    frame = table.frame.iloc[rows].reset_index(drop=True).drop(columns=[column])
    of_rows = replace(table, frame=frame, where=lambda row: table.where(int(rows[row])))
    annotations, said = _long(of_rows, replace(asked, looks=False))
    return annotations, f"{said or f'{table.what}: a row for each annotation'}; {only!r} of {column!r} alone"


def _from_json(content: Any, path: Path, asked: Asked, places: Sequence[str] = ()) -> tuple[Annotations, str]:
    what = str(path)
    if isinstance(content, Mapping):
        if (table := table_of_json(content)) is not None:
            return _from_table(Table(table, what), asked)
        counted, asked = (None, asked) if asked.outer == "worker" else _counted(_by_task(content), what, asked)
        if counted is not None:
            return counted
        held = read_mapping(content, what, asked.outer)
        if held is None and (records := _only_records(content)) is not None:
            return _from_json(records, path, asked)
        if held is None and (table := criteria_table(content, what, asked.outer)) is not None:
            criteria = [str(name) for name in table.columns if name not in ("task", "worker")]
            return _of_criteria(Table(table, what), criteria, asked)
        if held is None:
            raise AnnotationError(
                f"{what}: the dictionary is no {{task: {{worker: label}}}}, no {{worker: {{task: {{criterion: "
                f"score}}}}}} and no export that is known"
            )
        return _of_held(held, asked)
    if not isinstance(content, list) or not all(isinstance(record, Mapping) for record in content):
        raise AnnotationError(f"{what}: a list of records, or a dictionary {{task: {{worker: label}}}}, is needed")
    if asked.tags is not None and content:
        return _from_table(Table(pd.DataFrame(with_field(content, asked.tags)), what), asked)
    held = read_records(content, what, asked.question, path.stem)
    if held is not None:
        return _of_held(held, asked)
    if not content:
        raise AnnotationError(f"{what}: the list is empty; a record for each annotation is needed")
    if are_judged_pairs(content[0]) and _may_be_judged(asked):
        where = places.__getitem__ if places else row_number
        return _from_table(Table(pd.DataFrame(content), what, where), asked)
    lines = suffix_of(path) in LINES
    return _of_records(
        content, what, asked, lambda n: f"{f'line {n + 1}' if lines else f'record {n}'} of {path.name}", places
    )


def _of_records(
    content: Records, what: str, asked: Asked, place: Callable[[int], str], places: Sequence[str] = ()
) -> tuple[Annotations, str]:
    """Read records of no known tool, of which lists and dictionaries may be the labels and who gave them."""
    content = with_sides(content)
    nested = by_worker_and_criterion(content, place)
    if nested is not None:
        frame, criteria, places = nested
        return _of_criteria(Table(frame, what, places.__getitem__), criteria, asked)
    counted, asked = _counted(content, what, asked)
    if counted is not None:
        return counted
    if (field := field_of_results(content)) is not None:
        content = [{"labels" if name == field else name: value for name, value in each.items()} for each in content]
    questions = asked.question if isinstance(asked.question, list | tuple) else ()
    named = [*parts_of(asked.task), *asked.roles.values(), *questions]
    frame = pd.DataFrame(flat_records(content, what, named))
    no_label = asked.label == INFER and not any(is_name_of(str(name), "label") for name in frame.columns)
    if no_label and (several := labels_in_lists(content)) is not None:
        first, field, labels = several
        if asked.worker in (INFER, None) and (rows := unnamed_labels(content, field)) is not None:
            annotations, said = _from_table(Table(pd.DataFrame(rows), what), replace(asked, worker=None))
            return (
                annotations,
                f"{said}; the lists in {field!r} have a label for each of several workers without a name",
            )
        raise AnnotationError(
            f"{what}, {first}: {labels!r} is a list of labels, and an annotation has one; tags={field!r} takes each of "
            "them for a question that is answered by yes or no"
        )
    where = places.__getitem__ if len(places) == len(frame) else row_number
    return _from_table(Table(frame, what, where, places=places_in(content)), asked)


def _of_criteria(table: Table, criteria: list[str], asked: Asked) -> tuple[Annotations, str]:
    """Read a table with a column for each criterion, of which those are questions that have few values."""
    if asked.label != INFER or asked.question is not None:
        named = isinstance(asked.question, str)
        if named and asked.question not in criteria:
            raise missing_column(asked.question, "question", criteria, table.what)
        chosen = replace(asked, label=asked.question, question=None, looks=False) if named else asked
        return _from_table(table, chosen)
    questions = [name for name in criteria if is_question(table.frame[name])]
    if not questions:
        raise AnnotationError(
            f"{table.what}: none of {', '.join(map(repr, criteria))} has few values, used again, as labels are"
        )
    asked = (
        replace(asked, label=questions[0]) if len(questions) == 1 else replace(asked, question=questions, looks=False)
    )
    return _from_table(table, asked)


def _by_task(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Records of a dictionary {task: {key: number}} that has no more keys than tasks; none of another."""
    records = [{"task": name, "": value} for name, value in content.items()]
    keys = {key for value in content.values() if isinstance(value, Mapping) for key in value}
    return records if len(keys) <= len(records) else []


def _counted(records: Records, what: str, asked: Asked) -> tuple[tuple[Annotations, str] | None, Asked]:
    """Read records with vote counts by class; beside None for others it is said what is left to ask of them."""
    field = field_of_counts(records)
    if field is None:
        return None, asked
    if not are_counts(records, field, what, asked):
        return None, replace(asked, columns=None)
    table, wide = counted_table(records, field, what, asked)
    annotations, said = _wide(table, wide, what, replace(asked, columns="classes"))
    said += "" if asked.columns else "; columns='workers' says that they are workers, and the numbers labels"
    return (annotations, said), asked


def _only_records(content: Mapping[str, Any]) -> list[Any] | None:
    """The one list of records in a dictionary, beside what is said of it: ``{"judgments": [{…}, …], "version": 1}``."""
    lists = [value for value in content.values() if isinstance(value, list) and value]
    lists = [value for value in lists if all(isinstance(record, Mapping) for record in value)]
    return lists[0] if len(lists) == 1 else None


def _of_held(held: Held, asked: Asked, options: Mapping[str, Any] | None = None) -> tuple[Annotations, str]:
    """Read what an export has; `options` are those of `Annotations.from_frame`, None for all that were given."""
    options = asked.options if options is None else options
    if named := asked.named + ["worker"] * (asked.worker is None):
        column = asked.roles[named[0]]
        raise AnnotationError(f"{named[0]}={column!r} names a column, and {held.what} has none to choose; leave it out")
    if asked.columns is not None:
        raise AnnotationError(
            f"columns={asked.columns!r} is of a table with a row for each task, and {held.what} is none"
        )
    for name in ("meaning", "preferences"):
        if value := getattr(asked, name):
            raise AnnotationError(f"{name}={value!r} is of a table of comparisons, and {held.what} is none")
    if held.several and asked.several == "refuse":
        raise AnnotationError(held.several[0])
    if options.get("truth_classes") is not None:
        held = held.without_abstentions()
    places = held.places
    truth = (held.gold or None) if asked.infers_gold else asked.gold
    if isinstance(truth, Mapping):
        known = set(held.frame["task"])
        truth = {task: label for task, label in truth.items() if task in known} or None
    if held.abstain:
        abstain = abstentions_of(options.get("abstain"), held.frame["label"].unique())
        options = {**options, "abstain": list(dict.fromkeys([*abstain, *held.abstain]))}
    options = {"tidy": True, **options} if held.tidy else options
    if options.get("ordered") is None and options.get("classes") is None:
        classes = [label for label in held.classes if label not in abstentions_of(options.get("abstain"))]
        stated = {"ordered": held.ordered, "classes": classes}
        options = {**options, **{name: value for name, value in stated.items() if value}}
    beside = {name: name for name in ("question", "seconds") if name in held.frame}
    columns, options = LongColumns.among({**beside, **options})
    fields = long_fields(
        held.frame,
        columns,
        where=(lambda row: places[row]) if places else None,
        source=held.what,
        gold=truth,
        **options,
    )
    return Annotations(**fields), held.said


def _of_logs(logs: list[Path], path: Path, asked: Asked, others: Sequence[Path] = ()) -> tuple[Annotations, str]:
    """Read logs of evaluations, where `tasks` and `workers` may say what these are."""
    said, options = _said_of_logs(asked)
    return _of_held(read_logs(logs, str(path), asked.question, others=others, **said), asked, options)


def _of_experiment(content: Any, asked: Asked) -> tuple[Annotations, str] | None:
    """Read records in memory of an experiment, as a tool's function returns them; None where they are of none."""
    what = "the records"
    if (log := experiment_in(content, what)) is None:
        return None
    return _of_log(log, what, asked)


def _of_log(log: Log, what: str, asked: Asked) -> tuple[Annotations, str]:
    said, options = _said_of_logs(asked)
    return _of_held(held_of([log], what, asked.question, **said), asked, options)


def _said_of_logs(asked: Asked) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments for logs of evaluations, and the options of annotations that are left."""
    said = {name: asked.options[name] for name in ("tasks", "workers") if isinstance(asked.options.get(name), str)}
    options = {name: value for name, value in asked.options.items() if name not in said}
    no_answer = NO_ANSWER in abstentions_of(asked.options.get("abstain"))
    return {"tasks": None, "workers": None} | said | {"no_answer": no_answer}, options


def _wide(table: pd.DataFrame, wide: Wide, what: str, asked: Asked) -> tuple[Annotations, str]:
    """Read a table with a row for each task, whose columns are workers where nothing else was said.

    Raises:
        AnnotationError: `missing` or `when` is given, or a value cannot be used.
    """
    _refuse_row_options(what, "task", asked.options)
    lacks = table[wide.of].isna().to_numpy() & table.notna().any(axis=1).to_numpy()
    if lacks.any():
        raise missing_values({f"column {wide.of!r}": lacks}, row_number)
    table = table.dropna(how="all")
    are_classes = asked.columns == "classes"
    names, truth = pd.Series(wide.columns, dtype=object), [] if wide.gold is None else [table[wide.gold]]
    labels = [names, *truth] if are_classes else [*(table[name] for name in wide.columns), *truth]
    if not are_classes and listed_classes(asked.options) is None and not asked.options.get("merge"):
        for name in wide.columns:
            refuse_fractions(table[name], asked.options.get("abstain"), f"{what}, column {name!r}", row_number)
    if all(is_text(column) for column in labels):
        labels = convert_labels(*labels, abstentions=abstentions_of(asked.options.get("abstain")))
    tasks = convert_text(table[wide.of])[0] if is_text(table[wide.of]) else table[wide.of]
    said = f"{what}: a row for each task ({wide.of!r}) and a column for each of {len(wide.columns)} "
    shown = listing(wide.columns, SHOWN)
    said += f"classes ({shown}), with vote counts" if are_classes else f"workers ({shown})"
    known = asked.truth
    if wide.gold is not None and (asked.infers_gold or gold_column(table, asked.gold) == wide.gold):
        given = zip(tasks.tolist(), labels.pop().tolist(), strict=True)
        known = {task: label for task, label in given if label is not None and label == label} or None
        said += f", gold labels in {wide.gold!r}"
    said += left_out(wide.others, table=table, ranked=ranked_columns(table, wide.of))
    if are_classes:
        counts = table[list(wide.columns)].apply(pd.to_numeric).fillna(0).set_axis(tasks.tolist())
        return Annotations.from_counts(counts.set_axis(labels[0].tolist(), axis=1), gold=known, **asked.options), said
    values = {name: column.tolist() for name, column in zip(wide.columns, labels, strict=False)}
    cells = pd.DataFrame(values, index=tasks.tolist(), dtype=object)
    return Annotations.from_matrix(cells, missing=None, gold=known, **asked.options), said


def _form_roles(table: pd.DataFrame, what: str, asked: Asked) -> Wide | None:
    """The columns of a table with a row for each worker, unless others were named than that of workers.

    Raises:
        AnnotationError: columns were named that it does not have, or as `form_roles`.
    """
    is_form, named = asked.columns == "tasks", [role for role in asked.named if role != "worker"]
    if is_form and (named or asked.worker is None):
        other = f"{named[0]}={asked.roles[named[0]]!r}" if named else "worker=None"
        raise AnnotationError(f"columns='tasks' is of a table with a row for each worker; leave it out, or {other}")
    if named or asked.worker is None or asked.columns not in (None, "tasks"):
        return None
    return form_roles(table, what, worker=None if asked.worker == INFER else asked.worker, asked=is_form)


def _form(table: pd.DataFrame, form: Wide, what: str, asked: Asked) -> tuple[Annotations, str]:
    """Read a table with a row for each worker, where an empty cell is no annotation.

    Raises:
        AnnotationError: `missing` or `when` is given, or a value cannot be used.
    """
    _refuse_row_options(what, "worker", asked.options)
    workers = table[form.of]
    if workers.isna().any():
        raise AnnotationError(
            f"{what}, row {int(np.argmax(workers.isna()))}: column {form.of!r} is empty, and a row is a worker's; "
            "fill it in, or name the column of workers by worker='COL'"
        )
    labels = [table[name] for name in form.columns]
    if all(is_text(column) for column in labels):
        labels = convert_labels(*labels, abstentions=abstentions_of(asked.options.get("abstain")))
    cells, where = filled_cells(workers, dict(zip(form.columns, labels, strict=True)), "worker")
    answers = cells.rename(columns={"column": "task"})
    columns, options = LongColumns.among(asked.options)
    fields = long_fields(answers, columns, where=where, source=what, gold=asked.truth, **options)
    said = f"{what}: a row for each worker ({form.of!r}) and a column for each of {len(form.columns)} tasks"
    again = workers[workers.duplicated()].unique()
    repeats = f"; in several rows: {', '.join(map(repr, again[:3]))}{' and more' * (len(again) > 3)}"
    return Annotations(**fields), f"{said}{repeats * (len(again) > 0)}{left_out(form.others, table=table)}"


def _refuse_row_options(what: str, of: str, options: Mapping[str, Any]) -> None:
    if given := [name for name in ("missing", "when") if options.get(name) is not None]:
        raise AnnotationError(
            f"{given[0]}={options[given[0]]!r} is of a table with a row for each annotation; {what} has a row for each "
            f"{of}, where an empty cell is no annotation, so leave it out"
        )


def _wide_roles(table: pd.DataFrame, what: str, asked: Asked) -> Wide | None:
    """The columns of a wide table, unless columns were named of which it has none.

    Raises:
        AnnotationError: such a column and `columns` were given, or as `wide_roles`.
    """
    named = [role for role in asked.named if role != "task"]
    if asked.columns is not None and (named or asked.worker is None):
        raise AnnotationError(
            f"columns={asked.columns!r} is of a table with a row for each task, which has no column of "
            f"{(named or ['worker'])[0]}s; leave one of the two out"
        )
    if named or asked.worker is None:
        return None
    task = None if asked.task == INFER else asked.task
    workers, gold = asked.options.get("workers"), gold_column(table, asked.gold)
    asks = workers is None and listed_classes(asked.options) is None
    return wide_roles(table, what, task=task, gold=gold, columns=asked.columns, asks=asks, workers=list(workers or ()))


def _refuse_repeated_header(table: Table, columns: list[str | None]) -> None:
    """Refuse a row that is the header again, as where files were put one after the other."""
    names = [name for name in columns if name is not None]
    again = np.flatnonzero((table.frame[names] == names).all(axis=1))
    if again.size:
        raise AnnotationError(f"{table.where(int(again[0]))}: the header is there again; remove the row")


def _telling_apart(table: pd.DataFrame, roles: Roles) -> str:
    """Say by which column of few values the annotations of a worker to a task differ; nothing where there is none."""
    pair = [name for name in (roles.task, roles.worker) if name is not None]
    if not table.duplicated(pair).any():
        return ""
    free = [name for name in table.columns if name not in (*pair, roles.label, roles.seconds, roles.gold)]
    few = [name for name in free if names_questions(name) or stem(name) in PLACES]
    few += [name for name in free if 1 < table[name].map(str).nunique() <= MOST_KINDS]
    found = next((name for name in few if not table[[*pair, name]].astype(str).duplicated().any()), None)
    if found is None:
        return ""
    return f", each with another {found!r} (where that is another task or worker, make it part of its name)"


def _with_said(
    annotations: Annotations, what: str, roles: str, gold: str, apart: str, rest: str
) -> tuple[Annotations, str]:
    workers = count_text(annotations.n_workers, "worker") if annotations.named else "workers not named"
    sizes = (
        f"{count_text(annotations.n_annotations, 'annotation')} of {count_text(annotations.n_tasks, 'task')}, {workers}"
    )
    if not (roles or gold or apart or rest):
        return annotations, ""  # nothing was guessed, and nothing left out
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
    return annotations, f"{what}: a row for each annotation{taken}: {sizes}{gold}{rest}"


def _refuse_unused(path: Path, start: bytes, asked: Asked) -> None:
    """Refuse options of other kinds of files."""
    of_json = is_json(path, start)
    is_text = not (of_json or start.startswith((PARQUET, ZIPPED)) or suffix_of(path) in EXCEL)
    wrong = {"separator": not is_text, "encoding": not (is_text or of_json), "outer": not of_json}
    wrong["sheet"] = is_text or of_json or start.startswith(PARQUET)
    for name, unused in wrong.items():
        if unused and (value := getattr(asked, name)) is not None:
            raise AnnotationError(f"{name}={value!r} is of another kind of file than {path}")


def _refuse_of_logs(path: Path, options: Mapping[str, Any]) -> None:
    """Refuse what says what tasks and workers are in logs of evaluations."""
    for name in ("tasks", "workers"):
        if isinstance(options.get(name), str):
            raise AnnotationError(
                f"{name}={options[name]!r} is of logs of evaluations, and {path} is none; leave it out"
            )


def _from_zip(path: Path, asked: Asked) -> tuple[Annotations, str]:
    """Read the one file of a .zip, or its files as those of a folder; messages name the .zip."""
    with unpacked(path) as folder:
        files = files_in(folder)
        try:
            if len(files) == 1:
                annotations, said = _from_path(files[0], asked)
            else:
                annotations, said = _from_files(files, path, asked)
        except AnnotationError as error:
            raise AnnotationError(str(error).replace(str(folder), str(path))) from None
        return annotations, said.replace(str(folder), str(path))
