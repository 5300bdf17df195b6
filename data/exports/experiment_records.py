"""Experiments of Braintrust, W&B Weave, Phoenix and LangSmith: answers, with what their scorers gave."""

import json
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

from ..column_names import plain
from ..errors import AnnotationError
from ..frames import read_text_table
from ..json_files import JSON, read_json
from ..text_files import start_of_text, suffix_of
from .experiment_tools import OF_PHOENIX, TOOLS, Experiments
from .opening import TEXT
from .verdicts import LARGEST, Log, Verdict

KEY = re.compile(rb'"([\w.]{2,40})"\s*:')
LOOKED_AT = 20  # entries of a dictionary or a list in memory whose fields tell the tool


def is_experiment(path: Path) -> bool:
    """Return whether a file has records of an experiment, by its first keys or its columns."""
    return _written_by(path) is not None


def read_experiment(path: Path) -> Log:
    """Return the verdicts in records of experiments; a scorer's several values have keys.

    Where several records are of one sample and model, each is an epoch. The model is what the record names, else, and
    where it is an id and the only one, the file's name.

    Raises:
        AnnotationError: the file cannot be read, or a record lacks what is needed.
    """
    tool = _written_by(path)
    assert tool is not None
    return _log(tool, tool.records(_content(path), str(path)), path.name, path.stem)


def experiment_in(content: Any, what: str) -> Log | None:
    """Return the verdicts in records of experiments in memory, as :func:`read_experiment`; None where they are none.

    Raises:
        AnnotationError: a record lacks what is needed.
    """
    tool = _tool_of({key for key in _keys(content) if isinstance(key, str)})
    return None if tool is None else _log(tool, tool.records(content, what), what, what)


def experiment_in_table(table: pd.DataFrame, what: str) -> Log | None:
    """Return the verdicts in a table of an experiment, as :func:`read_experiment`; None where it is none.

    Raises:
        AnnotationError: a row lacks what is needed.
    """
    tool = _tool_of_columns(list(map(str, table.columns)))
    if tool is None:
        return None
    return _log(tool, tool.records([_nested(row) for row in table.to_dict("records")], what), what, what)


def _keys(content: Any, depth: int = 4) -> Iterator[Hashable]:
    """The keys of a dictionary and of those in it, and in lists of the first, as deep as that."""
    if isinstance(content, Mapping):
        yield from content
    values = content.values() if isinstance(content, Mapping) else content if isinstance(content, list) else ()
    for value in list(values)[:LOOKED_AT] if depth else ():
        yield from _keys(value, depth - 1)


def _log(tool: Experiments, records: Sequence[Any], what: str, name: str) -> Log:
    """The verdicts in records; `what` has them, and a model without a name is called `name`."""
    verdicts: list[Verdict] = []
    left_out: Counter[str] = Counter()
    epochs: Counter[Hashable] = Counter()
    if wrong := [number for number, record in enumerate(records) if not isinstance(record, Mapping)]:
        raise AnnotationError(f"{what}, record {wrong[0]}: a dictionary is needed")
    models = [tool.model(record) for record in records]
    if tool.by_id and len(set(models)) == 1:
        models = [None] * len(records)
    for number, (record, named) in enumerate(zip(records, models, strict=True)):
        place = f"{what}, record {number}"
        if not tool.is_answer(record):
            left_out["step of an answer"] += 1
            continue
        if record.get("error") is not None and not _has_output(record):
            left_out["answer with an error"] += 1  # evaluators of Phoenix and LangSmith give scores to it all the same
            continue
        sample, model = tool.sample(record), named or name
        if sample is None:
            raise AnnotationError(f"{place}: there is no id of what was answered")
        if not isinstance(sample, str | int | float):
            raise AnnotationError(f"{place}: the id of what was answered is {sample!r}; text or a number is needed")
        epochs[sample, model] += 1
        common: dict[str, Any] = {"suite": tool.tool, "sample": sample, "epoch": epochs[sample, model], "model": model}
        given = list(tool.given(record))
        left_out["answer without a score"] += not given
        for scorer, key, value, aside in given:
            about: dict[str, Any] = {
                "place": f"{place}, scorer {scorer!r}",
                "scorer": scorer,
                "key": key,
                "aside": aside,
            }
            verdicts.append(Verdict(value=None if value != value else value, **about, **common))
    return Log(tool.tool, verdicts, +left_out, tool.said)


def _has_output(record: Mapping[str, Any]) -> bool:
    """Return whether a record has an output, or a column of one."""
    output = record.get("output", record.get("outputs"))
    return any(value is not None for value in output.values()) if isinstance(output, Mapping) else output is not None


def _written_by(path: Path) -> Experiments | None:
    suffix = suffix_of(path)
    if suffix in TEXT:
        header = start_of_text(path).partition(b"\n")[0].decode("utf-8", "replace")
        return _tool_of_columns({name.strip('\r" ') for name in re.split("[,;\t]", header)})
    if suffix in JSON:
        return _tool_of({key.decode().partition(".")[0] for key in KEY.findall(start_of_text(path))})
    return None


def _tool_of_columns(names: Iterable[str]) -> Experiments | None:
    """The tool whose tables have these columns, of which ``a.b`` is one of ``a``; None where none is known to."""
    of_phoenix = ["annotations"] if any(map(OF_PHOENIX.fullmatch, names)) else []
    return _tool_of([*(name.partition(".")[0] for name in names), *of_phoenix])


def _tool_of(names: Iterable[str]) -> Experiments | None:
    """The tool whose records have these fields; None where none is known to."""
    outer = set(map(plain, names))
    return next((tool for tool in TOOLS if tool.fields <= outer), None)


def _content(path: Path) -> Any:
    """The content of a file; of a table records, those of columns such as ``scores.Factuality`` put together."""
    if suffix_of(path) in TEXT:
        return [_nested(row) for row in read_text_table(path).to_dict("records")]
    content = read_json(path, largest=LARGEST)
    of_table = isinstance(content, list) and all(isinstance(row, Mapping) for row in content)
    if of_table and any("." in str(name) for row in content[:1] for name in row):
        return [_nested(row) for row in content]
    return content


def _nested(row: Mapping[Any, Any]) -> dict[str, Any]:
    """A row as a record: None for an empty cell, a dictionary, list or number for its text."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        *outer, last = str(name).split(".")
        inside = found
        for part in outer:
            inside = inside.setdefault(part, {})
            if not isinstance(inside, dict):  # both ``a`` and ``a.b`` are columns
                break
        else:
            inside[last] = _of_text(value)
    return found


def _of_text(value: Any) -> Any:
    if not isinstance(value, str):
        return None if isinstance(value, float) and value != value else value
    with suppress(ValueError):
        return json.loads(value.lower() if value.lower() in ("true", "false") else value)
    return value
