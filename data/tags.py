"""Tables with several tags an annotation: yes or no to each tag that the table knows, which are questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from .column_names import missing_column
from .errors import AnnotationError
from .frames import as_frame
from .questions import QUESTION

NO, YES = "no", "yes"
"""The classes: whether a tag is given."""


def tag_fields(
    frame: Any, task: str, worker: str | None, tags: str, separator: str, known: Iterable[Any] | None, gold: Any
) -> dict[str, Any]:
    """Return the arguments of `Annotations.from_frame` of a table of tags: see :meth:`.Annotations.from_tags`."""
    table = as_frame(frame).to_pandas()
    for role, name in (("task", task), ("worker", worker), ("tags", tags)):
        if name is not None and name not in table.columns:
            raise missing_column(name, role, table.columns, "the table")
    given = [_tags(value, separator, f"column {tags!r}, row {row}") for row, value in enumerate(table[tags].tolist())]
    by_task = {name: _tags(value, separator, f"gold of {name!r}") for name, value in _pairs(gold, task, tags)}
    used = dict.fromkeys(tag for row in [*given, *by_task.values()] for tag in row)
    all_tags = list(used if known is None else dict.fromkeys(known))
    if unknown := [tag for tag in used if tag not in all_tags]:
        raise AnnotationError(f"the tag {unknown[0]!r} is none of known=[{', '.join(map(repr, all_tags))}]; add it")
    if len(all_tags) < 2:
        raise AnnotationError(
            f"column {tags!r}: the tags are {all_tags}, and two are needed, each a question; of one, label it yes or no"
        )
    columns = [name for name in table.columns if name != tags]
    rows = table[columns].loc[table.index.repeat(len(all_tags))].reset_index(drop=True)
    rows[QUESTION] = pd.Series(all_tags * len(table), dtype=object)
    rows["label"] = [YES if tag in row else NO for row in given for tag in all_tags]
    found = {"frame": rows, "task": task, "worker": worker, "label": "label", "question": QUESTION}
    if by_task:
        found["gold"] = {(name, tag): YES if tag in row else NO for name, row in by_task.items() for tag in all_tags}
    return found | {"classes": [NO, YES]}


def _pairs(gold: Any, task: str, tags: str) -> Iterable[tuple[Any, Any]]:
    """The tasks of gold labels with their tags, of a mapping or of a table with these columns."""
    if gold is None or isinstance(gold, Mapping):
        return dict(gold or {}).items()
    table = as_frame(gold).to_pandas()
    for role, name in (("task", task), ("tags", tags)):
        if name not in table.columns:
            raise missing_column(name, role, table.columns, "gold")
    return zip(table[task].tolist(), table[tags].tolist(), strict=True)


def _tags(value: Any, separator: str, where: str) -> list[Any]:
    """The tags of one cell, each once: a list, or text with a separator; an empty cell has none."""
    if isinstance(value, str):
        return list(dict.fromkeys(part for part in map(str.strip, value.split(separator)) if part))
    if value is None or (not isinstance(value, Iterable) and pd.isna(value)):
        return []
    if not isinstance(value, Iterable) or isinstance(value, Mapping | bytes):
        raise AnnotationError(
            f"{where}: {value!r} is no list of tags; a list is needed, or text such as 'a{separator}b'"
        )
    return list(dict.fromkeys(value))
