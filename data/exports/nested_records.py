"""Records that hold several annotations each: lists side by side, lists of dictionaries, a dictionary by judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..column_names import is_name_of
from ..errors import AnnotationError

Records = Sequence[Mapping[str, Any]]


def flat_records(records: Records, what: str) -> list[dict[str, Any]]:
    """Return records with one annotation each, and without what is no number or text.

    - ``{"annotations": [{"annotator": "a", "label": 1}, …]}``: a record for each dictionary of the list.
    - ``{"annotators": ["a", "b"], "labels": [1, 0]}``: a record for each place of the lists.
    - ``{"item": 1, "labels": {"a": 1, "b": 0}}``: a record for each key, which is the worker.

    What else is a list or a dictionary, as metadata are, is left out.

    Raises:
        AnnotationError: lists side by side have different lengths.
    """
    plain = all(_has_label(record) for record in records)
    return [flat for number, record in enumerate(records) for flat in _flat(record, what, number, plain=plain)]


def _flat(record: Mapping[str, Any], what: str, number: int, *, plain: bool) -> list[dict[str, Any]]:
    """The records in one; ``plain`` where a label of its own stands in each."""
    own = {str(name): value for name, value in record.items() if not isinstance(value, list | tuple | Mapping)}
    if plain:
        return [own]
    nested = {str(name): value for name, value in record.items() if str(name) not in own}
    for name, value in nested.items():
        if _of_annotations(name) and isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value):
            return [own | _scalars(each) for each in value]
        if _of_annotations(name) and isinstance(value, Mapping) and all(_is_scalar(v) for v in value.values()):
            return [own | {"worker": worker, "label": label} for worker, label in value.items()]
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


def _has_label(record: Mapping[str, Any]) -> bool:
    return any(is_name_of(str(name), "label") and _is_scalar(value) for name, value in record.items())


def _of_annotations(name: str) -> bool:
    return is_name_of(_one(name), "label") or is_name_of(_one(name), "worker")


def _one(name: str) -> str:
    """A name without the s of a plural."""
    return name[:-1] if len(name) > 1 and name.endswith("s") and not name.endswith("ss") else name


def _scalars(record: Mapping[str, Any]) -> dict[str, Any]:
    return {str(name): value for name, value in record.items() if _is_scalar(value)}


def _is_scalar(value: Any) -> bool:
    return not isinstance(value, list | tuple | Mapping)
