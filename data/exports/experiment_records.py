"""Experiments of Braintrust, W&B Weave and Phoenix: a record for each answer, with what its scorers gave."""

import json
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import AnnotationError
from ..frames import read_text_table
from ..json_files import JSON, read_json
from ..text_files import first_bytes, suffix_of
from .opening import TEXT
from .verdicts import LARGEST, Log, Verdict

KEY = re.compile(rb'"([\w.]{2,40})"\s*:')
LISTS = ("events", "data", "calls")  # keys under which an API has its records
OF_PHOENIX = re.compile(r"annotation_(.+)_(label|score|error)")  # columns of its tables
Record = Mapping[str, Any]
Given = tuple[str, str | None, Any, bool]
"""A scorer, which of its several values it is, the value, and whether it is read only where that is asked for."""


@dataclass(frozen=True)
class Experiments:
    """Records of one tool.

    Args:
        tool: its name.
        fields: those that tell its records; of a column ``a.b`` of a table ``a`` is one.
        is_answer: whether a record is an answer, and not one of the steps to it.
        sample: what was answered; None where the record does not say.
        model: what answered; None where the record does not say.
        given: what the scorers gave.
        by_id: whether a model is an id, which says less than the name of a file that has one alone.
    """

    tool: str
    fields: frozenset[str]
    is_answer: Callable[[Record], bool]
    sample: Callable[[Record], Hashable]
    model: Callable[[Record], str | None]
    given: Callable[[Record], Iterator[Given]]
    by_id: bool = False


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
    verdicts: list[Verdict] = []
    left_out: Counter[str] = Counter()
    epochs: Counter[Hashable] = Counter()
    records = _records(path)
    if wrong := [number for number, record in enumerate(records) if not isinstance(record, Mapping)]:
        raise AnnotationError(f"{path.name}, record {wrong[0]}: a dictionary is needed")
    models = [tool.model(record) for record in records]
    if tool.by_id and len(set(models)) == 1:
        models = [None] * len(records)
    for number, (record, named) in enumerate(zip(records, models, strict=True)):
        place = f"{path.name}, record {number}"
        if not tool.is_answer(record):
            left_out["step of an answer"] += 1
            continue
        if record.get("error") is not None and record.get("output") is None:
            left_out["answer with an error"] += 1  # evaluators of Phoenix give scores to it all the same
            continue
        sample, model = tool.sample(record), named or path.stem
        if sample is None:
            raise AnnotationError(f"{place}: there is no id of what was answered")
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
    return Log(tool.tool, verdicts, +left_out)


def _written_by(path: Path) -> Experiments | None:
    suffix = suffix_of(path)
    if suffix in TEXT:
        header = first_bytes(path).partition(b"\n")[0].decode("utf-8", "replace")
        names = {name.strip('\r" ') for name in re.split("[,;\t]", header)}
        names |= {"annotations"} if any(map(OF_PHOENIX.fullmatch, names)) else set()
    elif suffix in JSON:
        names = {key.decode() for key in KEY.findall(first_bytes(path))}
    else:
        return None
    outer = {name.partition(".")[0] for name in names}
    return next((tool for tool in TOOLS if tool.fields <= outer), None)


def _records(path: Path) -> Sequence[Any]:
    """The records of a file; of a table those of columns such as ``scores.Factuality`` are put together."""
    if suffix_of(path) in TEXT:
        return [_nested(row) for row in read_text_table(path).to_dict("records")]
    content = read_json(path, largest=LARGEST)
    if isinstance(content, Mapping):
        content = next((content[name] for name in LISTS if name in content), [content])
    if not isinstance(content, list):
        raise AnnotationError(f"{path}: a list of records is needed")
    return content


def _nested(row: Mapping[Any, Any]) -> dict[str, Any]:
    """A row of text as a record: None for an empty cell, a dictionary, list or number for its text."""
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
        return None
    with suppress(ValueError):
        return json.loads(value.lower() if value.lower() in ("true", "false") else value)
    return value


def _inside(record: Any, *names: str) -> Any:
    """The value in a record under a name, under a name there, and so on; None where there is none."""
    for name in names:
        record = record.get(name) if isinstance(record, Mapping) else None
    return record


def _named(record: Record, *names: str) -> Iterable[tuple[str, Any]]:
    found = _inside(record, *names)
    return found.items() if isinstance(found, Mapping) else ()


def _of_braintrust(record: Record) -> Iterator[Given]:
    """Values of scorers; none is one that a person has not given, or that the scorer did not apply."""
    return ((name, None, value, False) for name, value in _named(record, "scores") if value is not None)


def _of_weave(record: Record) -> Iterator[Given]:
    """Values of scorers; of a dictionary the numbers and truth values, or its texts where there are none."""
    for name, value in _named(record, "output", "scores"):
        if not isinstance(value, Mapping):
            yield name, None, value, False
            continue
        values: dict[str, Any] = {key: one for key, one in value.items() if isinstance(one, bool | int | float)}
        values = values or {key: one for key, one in value.items() if isinstance(one, str)}
        for key, one in values.items():
            yield name, key if len(values) > 1 else None, one, False


def _sample_of_weave(record: Record) -> Hashable:
    example = _inside(record, "inputs", "example")
    if not isinstance(example, Mapping):
        return _name_of_weave(example)
    named = example.get("id")
    return named if isinstance(named, str | int) else json.dumps(example, sort_keys=True, ensure_ascii=False)


def _name_of_weave(reference: Any) -> str | None:
    """The end of a reference: the object's name and version, or a row of its dataset."""
    return reference.rpartition("/")[2] if isinstance(reference, str) else None


def _of_phoenix(record: Record) -> Iterator[Given]:
    """Scores of evaluators, or their labels where they have no score; labels beside scores where asked for."""
    given = record.get("annotations")
    if given is None:
        columns = {match: record[name] for name in record if (match := OF_PHOENIX.fullmatch(name))}
        names = dict.fromkeys(match[1] for match, value in columns.items() if value is not None)
        given = [{m[2]: v for m, v in columns.items() if m[1] == name} | {"name": name} for name in names]
    for each in given:
        name, score, label = str(each.get("name")), each.get("score"), each.get("label")
        if each.get("error") is not None:
            yield name, None, None, False
            continue
        yield name, None, label if score is None else score, False
        if score is not None and label is not None:
            yield name, "label", label, True


TOOLS = (
    Experiments(
        "Braintrust",
        frozenset({"scores", "root_span_id", "span_id"}),
        lambda record: record.get("span_id") == record.get("root_span_id"),
        lambda record: record.get("dataset_record_id") or _inside(record, "origin", "id") or record.get("id"),
        lambda record: record.get("experiment_id"),
        _of_braintrust,
        by_id=True,
    ),
    Experiments(
        "Weave",
        frozenset({"op_name", "inputs", "output"}),
        lambda record: "predict_and_score" in str(record.get("op_name")),
        _sample_of_weave,
        lambda record: _name_of_weave(_inside(record, "inputs", "model")),
        _of_weave,
    ),
    Experiments(
        "Phoenix",
        frozenset({"example_id", "repetition_number", "annotations"}),
        lambda record: True,
        lambda record: record.get("example_id"),
        lambda record: None,
        _of_phoenix,
    ),
)
"""By tool, what its records look like."""
