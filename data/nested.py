"""Nested annotations: {task: {worker: label}} in memory and as JSON (the format of peerannot), and records of several.

Such records have lists side by side, lists of dictionaries, or a dictionary by judge.
"""

import ast
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .build import Rows
from .column_names import CONTENT, SYSTEMS, are_criteria, is_name_of, plain, stem
from .columns import Column, encode
from .comparison_columns import two_sides
from .errors import AnnotationError, check_name, given_path, warn
from .ids import Ids
from .json_files import read_json
from .kinds import encode_labels
from .text import as_numbers, convert_text
from .text_files import first_bytes

RESULT = "result"  # a dictionary with what a grader said
FAR_MORE = 5  # times as many inner keys as outer ones, from which on these may be the workers


def nested_rows(
    by_outer: Mapping[Any, Mapping[Any, Any]], classes: Iterable[Any] | None = None, outer: str | None = None
) -> Rows:
    """Return the annotations in {task: {worker: label}}; a task with an empty dictionary has no annotation.

    Args:
        by_outer: the dictionary.
        classes: those that were given; None for those that are used.
        outer: whether the outer keys are each a "task" or a "worker"; None for tasks, with a warning where the inner
            keys are so many more that they may be the tasks.

    Raises:
        AnnotationError: the dictionary is empty or not nested, or a label is missing or cannot be hashed.
        UnknownNameError: `outer` is another word.
    """
    if outer is not None:
        check_name("value of outer", outer, ("task", "worker"))
    one, other = ("worker", "task") if outer == "worker" else ("task", "worker")
    if not isinstance(by_outer, Mapping):
        raise AnnotationError(f"expected a dictionary {{{one}: {{{other}: label}}}}, got a {type(by_outer).__name__}")
    codes: list[int] = []
    inner: list[Any] = []
    labels: list[Any] = []
    for position, (name, by_inner) in enumerate(by_outer.items()):
        if not isinstance(by_inner, Mapping):
            raise AnnotationError(
                f"{one} {name!r}: expected a dictionary {{{other}: label}}, got {by_inner!r} "
                f"({type(by_inner).__name__})"
            )
        codes += [position] * len(by_inner)
        inner += by_inner.keys()
        labels += by_inner.values()
    ids = Ids(by_outer.keys(), what=f"{one}s")
    if not labels:
        raise AnnotationError(f"the dictionary has {len(ids)} {one}s and no annotation; expected at least one")

    def where(row: int) -> str:
        places = {one: ids[codes[row]], other: inner[row]}
        return f"task {places['task']!r}, worker {places['worker']!r}"

    columns = {
        one: Column(one, np.array(codes, np.int32), ids, where),
        other: encode(pd.Series(inner, dtype=object), other, where),
    }
    n_inner = len(columns[other].ids)
    if outer is None and 1 < len(ids) <= n_inner / FAR_MORE:
        warn(
            f"{len(ids):,} dictionaries of {n_inner:,} keys are read as {len(ids):,} tasks and {n_inner:,} workers; "
            "where they are {worker: {task: label}} give outer='worker', and else outer='task'"
        )
    return Rows(
        task=columns["task"],
        worker=columns["worker"],
        label=encode_labels(pd.Series(labels, dtype=object), "label", where, classes),
    )


def read_nested(path: str | Path) -> dict[Any, dict[Any, Any]]:
    """Read {task: {worker: label}} from a JSON file.

    The keys of JSON are text. As in CSV files, the tasks become whole numbers where all of them are written as one
    ("7", not "007"), and so do the workers; labels keep the type that the file gives them.

    Raises:
        AnnotationError: the file is empty or no JSON, is not nested, or names a task or worker of a task
            twice.
    """
    path = given_path(path)
    if not first_bytes(path).strip():
        raise AnnotationError(f"{path}: the file is empty; expected {{task: {{worker: label}}}}")
    by_task = read_json(path)
    if not isinstance(by_task, dict) or not all(isinstance(value, dict) for value in by_task.values()):
        raise AnnotationError(
            f"{path}: expected a dictionary {{task: {{worker: label}}}} with a dictionary for each task"
        )
    tasks = as_numbers(by_task)
    workers = as_numbers(dict.fromkeys(worker for by_worker in by_task.values() for worker in by_worker))
    return {tasks[task]: {workers[w]: label for w, label in by_task[task].items()} for task in by_task}


Records = Sequence[Mapping[str, Any]]


def flat_records(records: Records, what: str, named: Iterable[Any] = ()) -> list[dict[str, Any]]:
    """Return records with one annotation each, and without what is no number or text.

    - ``{"annotations": [{"annotator": "a", "label": 1}, …]}``: a record for each dictionary of the list.
    - ``{"judges": [{"name": "a", "verdict": 1}, …]}``, ``{"judges": {"a": {"verdict": 1, "why": "…"}, …}}``: likewise.
    - ``{"annotators": ["a", "b"], "labels": [1, 0]}``: a record for each place of the lists.
    - ``{"item": 1, "labels": {"a": 1, "b": 0}}``: a record for each key, which is the worker; or the task, where the
      record names a worker and no task.
    - ``{"judge": {"model": "a", "temperature": 0}, "verdict": {"label": 1, "reason": "…"}}``: columns ``judge.model``,
      ``judge.temperature``, ``verdict.label``, ``verdict.reason``.
    - ``{"sample": {"id": 1}, "grades": [{"grader": {"name": "a"}, "result": {"verdict": 1}}, …]}``: a record for each
      dictionary of the one list whose dictionaries name workers and labels, whatever it is called; ``result`` is left
      out of the names of columns.

    What else is a list or a dictionary, as metadata are, is left out, unless it has a column that is named.

    Args:
        records: the records.
        what: the file, for messages.
        named: the columns that were asked for, of which ``"output.parsed.label"`` is a place in dictionaries.

    Raises:
        AnnotationError: lists side by side have different lengths, or a worker has labels by what are no workers.
    """
    named = [name for name in named if isinstance(name, str)]
    paths = [name for name in named if "." in name]
    if opened := _opened(records, named):
        return opened
    own = [_own(record, paths) for record in records]
    are_flat = all(_names(each, "label") or (paths and each.keys() >= set(paths)) for each in own)
    if are_flat and (any(_names(each, "worker") for each in own) or not all(map(_has_verdicts, records))):
        return own
    if are_flat:  # what is judged, such as "output", is no label beside the judges' verdicts
        own = [{f"record.{key}" if is_name_of(key, "label") else key: each[key] for key in each} for each in own]
    _refuse_criteria(records, own, what)
    return [flat for number, record in enumerate(records) for flat in _flat(record, own[number], what, number)]


def unnamed_labels(records: Records, field: str) -> list[dict[str, Any]] | None:
    """Return a record for each label in the lists of a field, where a label stands in one twice, as no tag would.

    None is returned of others.
    """
    lists = [record.get(field) for record in records]
    if not all(isinstance(each, list) and all(map(_is_scalar, each)) for each in lists):
        return None
    if not any(len(set(each)) < len(each) for each in lists if each):
        return None
    return [_own(record) | {"label": label} for record in records for label in record[field]]


def with_sides(records: Records) -> Records:
    """Return records of two systems by side, ``{"responses": {"a": {"model": "x"}, "b": {"model": "y"}}}``, flat.

    They then have "model_a" and "model_b"; others are as they are.
    """
    first = records[0] if records else {}
    field = next((name for name, value in first.items() if _systems_by_side(value)), None)
    if field is None or not all(_systems_by_side(record.get(field)) for record in records):
        return records
    return [
        {name: value for name, value in record.items() if name != field} | _systems_by_side(record[field])
        for record in records
    ]


def _systems_by_side(value: Any) -> dict[str, Any]:
    """The names of two systems by column; none of what is no dictionary of two dictionaries by side."""
    if not isinstance(value, Mapping) or len(value) != 2:
        return {}
    columns = [f"model_{key}" if len(str(key)) == 1 else str(key) for key in value]
    if two_sides(columns) is None or not all(isinstance(each, Mapping) for each in value.values()):
        return {}
    names = [[each[key] for key in each if SYSTEMS.fullmatch(stem(str(key)))] for each in value.values()]
    is_named = all(len(found) == 1 and _is_scalar(found[0]) for found in names)
    return {column: found[0] for column, found in zip(columns, names, strict=True)} if is_named else {}


def labels_in_lists(records: Records) -> tuple[str, str, list[Any]] | None:
    """Return the first list of several labels: where it is, the name of its field, and it; None without one."""
    for number, record in enumerate(records):
        for place, value in _lists(record):
            name = place.rpartition(".")[2].partition("[")[0]
            is_of_labels = is_name_of(name, "label") or is_name_of(_one(name), "label") or _are_of_workers(name)
            if is_of_labels and value and all(map(_is_scalar, value)):
                return f"record {number}, {place}", name, value
    return None


def _are_of_workers(name: str) -> bool:
    """Return whether a field is called as the labels of workers: ``annotator_labels``."""
    who, _, what = name.partition("_")
    return is_name_of(who, "worker") and is_name_of(_one(what), "label")


def _lists(value: Any, before: str = "") -> Iterator[tuple[str, list[Any]]]:
    if isinstance(value, Mapping):
        for name, each in value.items():
            yield from _lists(each, f"{before}.{name}" if before else str(name))
    elif isinstance(value, list):
        yield before, value
        for number, each in enumerate(value):
            yield from _lists(each, f"{before}[{number}]") if isinstance(each, Mapping) else ()


def records_of_cells(table: pd.DataFrame, *, is_text: bool) -> list[dict[str, Any]] | None:
    """Return the rows of a table of which a column that is called as workers or labels are has lists or dictionaries.

    None is returned of other tables, and of a column of text whose lists have one value each.

    Args:
        table: with lists, arrays and dictionaries, or with text of them: JSON, or as Python shows them.
        is_text: whether all cells are text, of which whole numbers are made where a column has them alone.
    """
    cells = {name: _cells(table[name]) for name in table if _of_annotations(str(name))}
    cells = {name: found for name, found in cells.items() if found is not None}
    if not cells:
        return None
    others = table.drop(columns=list(cells))
    columns = {name: convert_text(others[name])[0] if is_text else others[name] for name in others}
    of_rows = {name: [None if each != each else each for each in column] for name, column in columns.items()} | cells
    names = list(map(str, table.columns))
    return [dict(zip(names, row, strict=True)) for row in zip(*(of_rows[name] for name in table), strict=True)]


def _cells(values: pd.Series) -> list[Any] | None:
    """The lists or dictionaries of a column, or those whose text it has; None of others, and of texts of one value."""
    found = parsed_cells(values)
    return _plain_cells(values) if found is None or all(map(_is_single, found)) else found


def _plain_cells(values: pd.Series) -> list[Any] | None:
    """The cells of a column of lists, arrays or dictionaries, as of JSON; None of another column."""
    if values.dtype != object or not any(isinstance(each, list | np.ndarray | Mapping) for each in values):
        return None
    return [_plain_cell(each) for each in values]


def _plain_cell(value: Any) -> Any:
    """A cell with lists in the place of arrays, and dictionaries without the keys that only other rows have."""
    if isinstance(value, list | np.ndarray):
        return [_plain_cell(each) for each in value]
    if isinstance(value, Mapping):
        return {key: _plain_cell(each) for key, each in value.items() if each is not None}
    return value


def parsed_cells(values: pd.Series) -> list[Any] | None:
    """Return the lists or dictionaries whose text a column has, None for an empty cell; None of another column."""
    texts = values.dropna()
    if not all(isinstance(each, str) and each.lstrip()[:1] in ("[", "{") for each in texts):
        return None
    try:
        cells = texts.map(_parsed_cell)
    except (ValueError, SyntaxError):
        return None
    are_parsed = len(cells) > 0 and all(isinstance(each, list | Mapping) for each in cells)
    return [cells.get(row) for row in values.index] if are_parsed else None


def are_lists(values: pd.Series) -> bool:
    """Return whether a column has lists or dictionaries, or text of them."""
    return _plain_cells(values) is not None or parsed_cells(values) is not None


def _is_single(cell: Any) -> bool:
    return cell is None or (isinstance(cell, list) and len(cell) == 1)


def _parsed_cell(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return ast.literal_eval(text.strip())


def with_field(records: Records, field: str) -> list[dict[str, Any]]:
    """Return a record for each dictionary that has a field, in a list of each record, whose own values it has, too.

    Records are as they are where they have the field themselves.
    """
    found = []
    for record in records:
        inner = [value for value in record.values() if _are_records(value) and any(field in part for part in value)]
        if field in record or len(inner) != 1:
            found.append(dict(record))
        else:
            found += [_own(record) | {str(name): value for name, value in part.items()} for part in inner[0]]
    return found


def by_worker_and_criterion(
    records: Records, place: Callable[[int], str]
) -> tuple[pd.DataFrame, list[str], list[str]] | None:
    """Return records ``{"id": 1, "judges": {"a": {"clear": 4, "true": 5}, …}}`` with a row for each worker of each.

    Args:
        records: the records.
        place: says where one is, by its number from 0.

    Returns:
        The table with the records' own values, "worker", and a column for each criterion; the criteria; and where each
        row is. None of other records.

    Raises:
        AnnotationError: one of them has something else where others have the workers.
    """
    found = (str(name) for each in records for name, value in each.items() if _has_cells(str(name), value))
    field = next(found, None)
    if field is None or all(_names(own, "worker") and _names(own, "label") for own in map(_own, records)):
        return None
    rows: list[dict[str, Any]] = []
    places: list[str] = []
    criteria: dict[str, None] = {}
    for number, record in enumerate(records):
        by_worker = _by_worker(record.get(field) or {})
        cells = by_worker.values() if isinstance(by_worker, Mapping) else [by_worker]
        wrong = [cell for cell in cells if not (isinstance(cell, Mapping) and all(map(_is_scalar, cell.values())))]
        if wrong:
            raise AnnotationError(
                f"{place(number)}: {field!r} has {wrong[0]!r}, and each worker has a dictionary of labels by "
                "criterion in other records; mend the record, or leave it out"
            )
        own = _own(record)
        rows += [own | {"worker": worker} | dict(cell) for worker, cell in by_worker.items()]
        places += [f"{place(number)}, {field}.{worker}" for worker in by_worker]
        criteria |= {str(key): None for cell in cells for key in cell}
    if criteria.keys() & {"worker", *(str(name) for record in records for name in record)}:
        return None
    return pd.DataFrame(rows), list(criteria), places


def _by_worker(cells: Any) -> Any:
    """Labels by worker, also where the outer keys are called as criteria are, and the inner ones are not."""
    inner = [each for each in cells.values() if isinstance(each, Mapping)] if isinstance(cells, Mapping) else []
    keys = dict.fromkeys(key for each in inner for key in each)
    if not inner or len(inner) < len(cells) or not are_criteria(cells, 1) or are_criteria(keys, 1):
        return cells
    return {key: {name: each[key] for name, each in cells.items() if key in each} for key in keys}


def _has_cells(name: str, value: Any) -> bool:
    """Return whether it is a dictionary by worker of dictionaries by criterion, of which none is called as a label."""
    if not (_of_annotations(name) and isinstance(value, Mapping) and value) or _describes(name, value):
        return False
    cells = list(value.values())
    return all(isinstance(c, Mapping) and len(c) > 0 and all(map(_is_scalar, c.values())) for c in cells) and not any(
        map(_has_label, cells)
    )


def places_in(records: Records) -> list[str]:
    """Return the places of single values in dictionaries that most records have, such as ``output.parsed.label``."""
    found = Counter(place for record in records for place in _places(record))
    return [place for place, n in found.items() if n > len(records) / 2]


def _places(record: Mapping[str, Any], before: str = "") -> Iterator[str]:
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from _places(value, f"{before}{name}.")
        elif before and _is_scalar(value):
            yield f"{before}{name}"


def _opened(records: Records, named: Sequence[str]) -> list[dict[str, Any]]:
    """The dictionaries of the one list whose dictionaries each name a worker and a label, as no record does itself.

    None are returned where there is no such list, or several.
    """
    own = [_own(record, named) for record in records]
    if any(_names(each, role) for each in own for role in ("worker", "label")):
        return []
    found = []
    for name in {name for record in records for name, value in record.items() if _are_records(value)}:
        lists = [record.get(name) or [{}] for record in records]  # without any the label is missing, which is refused
        if _of_annotations(str(name)) or not all(map(_are_records, lists)):
            continue
        parts = [[_spread(part) | _own(part, named) for part in each] for each in lists]
        if all(_has_role(p, role, named) for each in parts for p in each if p for role in ("worker", "label")):
            found.append(parts)
    if len(found) != 1:
        return []
    return [
        each | {f"part.{key}" if key in each else key: value for key, value in part.items()}
        for each, parts in zip(own, found[0], strict=True)
        for part in parts
    ]


def _are_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(part, Mapping) for part in value)


def _spread(part: Mapping[str, Any]) -> dict[str, Any]:
    """The single values of a dictionary and of those in it, as ``grader.name``; those of a ``result`` as its own."""
    found = {str(name): value for name, value in part.items() if _is_scalar(value)}
    for name, value in part.items():
        if isinstance(value, Mapping):
            before = "" if plain(str(name)) == RESULT else f"{name}."
            found |= {f"{before}{key}": each for key, each in value.items() if _is_scalar(each)}
    return found


def _has_role(own: Mapping[str, Any], role: str, named: Sequence[str]) -> bool:
    return _names(own, role) or any(name in own for name in named)


def _refuse_criteria(records: Records, own: Sequence[Mapping[str, Any]], what: str) -> None:
    """Refuse labels by key, ``{"task": 1, "judge": "a", "scores": {"helpful": 4, "harmless": 5}}``, of named workers.

    Raises:
        AnnotationError: a task has such records of two workers, so that the keys are not the workers; or a record has
            a "worker", which the keys would take the place of.
    """
    workers: dict[Any, Any] = {}
    for number, (record, each) in enumerate(zip(records, own, strict=True)):
        roles = [next((name for name in each if is_name_of(name, role)), None) for role in ("task", "worker")]
        name = next((str(name) for name, value in record.items() if _are_labels(str(name), value)), None)
        if None in roles or name is None:
            continue
        task, worker = (each[str(role)] for role in roles)
        first = workers.setdefault(task, worker)
        if first != worker or roles[1] == "worker":
            paths = [f"{name}.{key}{_label_in(value)}" for key, value in record[name].items()]
            keys = [f"label={path!r}" for path in paths]
            by = f"by {worker!r}" if first == worker else f"by {first!r} and by {worker!r}"
            raise AnnotationError(
                f"{what}, record {number}: task {task!r} has {name!r} {by} ({roles[1]!r}), a dictionary of labels: say "
                f"which is meant by {' or '.join(keys[:3])}, or read all as questions by "
                f"question={paths!r}. Where the keys of {name!r} are the workers, leave {roles[1]!r} out, or make "
                "it part of the task"
            )


def _are_labels(name: str, value: Any) -> bool:
    """Return whether it is a dictionary of labels by something."""
    is_labels = is_name_of(_one(name), "label") and isinstance(value, Mapping) and not _describes(name, value)
    if not is_labels or not value:
        return False
    return all(map(_is_scalar, value.values())) or all(map(_has_label, value.values()))


def _label_in(value: Any) -> str:
    """Return the place of a dictionary's label, such as ``.score``; nothing of a value that is the label itself."""
    return next((f".{key}" for key in value if is_name_of(str(key), "label")), "") if isinstance(value, Mapping) else ""


def _own(record: Mapping[str, Any], paths: Iterable[str] = ()) -> dict[str, Any]:
    """Return the single values of a record, and in dictionaries that describe its task, its worker or its label."""
    found = {str(name): value for name, value in record.items() if _is_scalar(value)}
    for name, value in record.items():
        if _describes(str(name), value):
            found |= {f"{name}.{key}": each for key, each in value.items() if _is_scalar(each)}
    for path in paths:
        if path not in found and _is_scalar(value := _at(record, path)) and value is not None:
            found[path] = value
    return found


def _describes(name: str, value: Any) -> bool:
    """Return whether a dictionary describes one task, worker or label: it has a key that names it, beside others."""
    roles = [role for role in ("task", "worker", "label") if is_name_of(name, role)]
    return isinstance(value, Mapping) and any(is_name_of(f"{name}.{key}", role) for role in roles for key in value)


def _at(record: Any, path: str) -> Any:
    """The value at a place such as ``output.label``; None where there is none."""
    for part in path.split("."):
        record = record.get(part) if isinstance(record, Mapping) else None
    return record


def _flat(record: Mapping[str, Any], own: dict[str, Any], what: str, number: int) -> list[dict[str, Any]]:
    """The records in one, whose own values each of them has."""
    nested = {
        str(name): value for name, value in record.items() if str(name) not in own and not _describes(str(name), value)
    }
    for name, value in nested.items():
        if _of_annotations(name) and _are_records(value):
            parts = [{_named_in(name, key): v for key, v in _own(each).items()} for each in value]
            return [
                own | part | given
                for part, each in zip(parts, value, strict=True)
                for given in _by_criterion(part, each)
            ]
    for name, value in nested.items():
        if isinstance(value, Mapping) and any(plain(str(key)) in CONTENT for key in value):
            continue
        if _of_annotations(name) and isinstance(value, Mapping) and value and all(map(_has_label, value.values())):
            return [own | _own(each) | {"worker": worker} for worker, each in value.items()]
        if _of_annotations(name) and isinstance(value, Mapping) and all(_is_scalar(v) for v in value.values()):
            is_judges = _names(own, "worker") and not _names(own, "task")
            key = "task" if is_judges else "worker"
            if not is_judges and are_criteria(value):
                keys = [f"{name}.{each}" for each in value]
                raise AnnotationError(
                    f"{what}, record {number}: the keys {', '.join(map(repr, value))} of {name!r} are called as "
                    f"criteria are, and no worker: say label={keys[0]!r} and worker=None to read one; or make a record "
                    "of each with its 'criterion', 'label' and 'worker'"
                )
            return [own | {key: each, "label": label} for each, label in value.items()]
    lists = {name: list(value) for name, value in nested.items() if isinstance(value, list | tuple)}
    beside = {name: value for name, value in lists.items() if _of_annotations(name) or is_name_of(_one(name), "worker")}
    if len(beside) < 2:
        return [own]
    sizes = {name: len(value) for name, value in beside.items()}
    if len(set(sizes.values())) > 1:
        said = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise AnnotationError(f"{what}, record {number}: the lists are of different lengths: {said}")
    rows = zip(*beside.values(), strict=True)
    return [own | dict(zip(map(_one, beside), row, strict=True)) for row in rows]


def _by_criterion(part: Mapping[str, Any], given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The labels of a worker by criterion, ``{"judge": "a", "scores": {"helpful": 4, "safe": 5}}``.

    One empty dictionary is returned where the worker has a label itself, or no labels or several fields of them.
    """
    found = [value for name, value in given.items() if _are_labels(str(name), value)]
    if (
        _names(part, "label")
        or not _names(part, "worker")
        or len(found) != 1
        or not all(map(_is_scalar, found[0].values()))
    ):
        return [{}]
    return [{"criterion": str(key), "label": value} for key, value in found[0].items()]


def _has_verdicts(record: Mapping[str, Any]) -> bool:
    """Return whether a record has a dictionary by worker of dictionaries with a label each."""
    return any(
        _of_annotations(str(name)) and isinstance(value, Mapping) and value and all(map(_has_label, value.values()))
        for name, value in record.items()
    )


def _has_label(value: Any) -> bool:
    return isinstance(value, Mapping) and _names(_own(value), "label")


def _named_in(name: str, key: str) -> str:
    """A key of the dictionaries in a list, whose id or name is that of what the list is of."""
    return f"{_one(name)}.{key}" if key in ("id", "name") and is_name_of(_one(name), "worker") else key


def _names(own: Mapping[str, Any], role: str) -> bool:
    return any(is_name_of(name, role) for name in own)


def _of_annotations(name: str) -> bool:
    return is_name_of(_one(name), "label") or is_name_of(_one(name), "worker")


def _one(name: str) -> str:
    """A name without the s of a plural."""
    return name[:-1] if len(name) > 1 and name.endswith("s") and not name.endswith("ss") else name


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, list | tuple | Mapping)
