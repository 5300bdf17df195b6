"""Tables with several tags an annotation: yes or no to each tag that the table knows, which are questions."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from .column_names import missing_column
from .columns import Where, row_number, some_rows
from .description import count_text
from .errors import AnnotationError, check_name, warn
from .frames import as_frame, read_parquet_table, read_text_table
from .input_warnings import BETWEEN_TAGS
from .long import LongColumns, long_fields
from .questions import QUESTION

NO, YES = "no", "yes"
"""The classes: whether a tag is given."""


Empty = Literal["refuse", "no", "drop"]

OPTIONS = (
    *("count", "seconds", "when", "classes", "ordered", "abstain", "truth_classes", "tasks", "workers", "features"),
    *("worker_features", "repeats", "tidy", "merge", "missing"),
)
"""Those of `Annotations.from_frame` that tables of tags take, beside columns."""


def tag_fields(
    frame: Any,
    *,
    task: str,
    worker: str | None,
    tags: str,
    tag_separator: str | None,
    empty: Empty,
    known: Iterable[Any] | None,
    gold: Any,
    where: Where = row_number,
    **options: Any,
) -> dict[str, Any]:
    """Return the fields of `Annotations` of a table of tags: see :meth:`.Annotations.from_tags`."""
    if other := sorted(options.keys() - set(OPTIONS)):
        near = "; between the tags of a text stands tag_separator=" if other[0] == "separator" else ""
        raise AnnotationError(f"{other[0]}= cannot be used of tags{near}; options are {', '.join(OPTIONS)}")
    check_name("value of empty", empty, get_args(Empty))
    table = as_frame(frame).to_pandas()
    for role, name in (("task", task), ("worker", worker), ("tags", tags)):
        if name is not None and name not in table.columns:
            raise missing_column(name, role, table.columns, "the table", taken={task, worker, tags})
    places = [f"column {tags!r}, {where(row)}" for row in range(len(table))]
    values = table[tags].tolist()
    gold = _gold_table(gold, task, table[task])
    if isinstance(gold, pd.DataFrame) and QUESTION in gold and tags not in gold:  # as of a fit: yes or no to each tag
        options, gold = options | {"gold": gold}, None
    of_gold = {name: (value, f"gold of {name!r}") for name, value in _pairs(gold, task, tags)}
    separator = tag_separator or _separator([*zip(values, places, strict=True), *of_gold.values()])
    row = np.array([i for i, value in enumerate(values) if empty != "drop" or not _is_empty(value)], int)
    _tell_dropped(np.setdiff1d(np.arange(len(values)), row), row, table[task], tags, where)
    given = [_tags(values[i], separator, places[i], empty) for i in row.tolist()]
    by_task = {name: _tags(value, separator, where, "no") for name, (value, where) in of_gold.items()}
    used = dict.fromkeys(tag for each in [*given, *by_task.values()] for tag in each)
    all_tags = list(used if known is None else dict.fromkeys(known))
    if unknown := [tag for tag in used if tag not in all_tags]:
        raise AnnotationError(f"the tag {unknown[0]!r} is none of known=[{', '.join(map(repr, all_tags))}]; add it")
    if len(all_tags) < 2:
        raise AnnotationError(
            f"column {tags!r}: the tags are {all_tags}, and two are needed, each a question; of one, label it yes or no"
        )
    row = np.repeat(row, len(all_tags))
    rows = table[[name for name in table.columns if name != tags]].iloc[row].reset_index(drop=True)
    rows[QUESTION] = pd.Series(all_tags * len(given), dtype=object)
    rows["label"] = [YES if tag in each else NO for each in given for tag in all_tags]
    if by_task:
        pairs = {(name, tag): YES if tag in each else NO for name, each in by_task.items() for tag in all_tags}
        options |= {"gold": pairs}
    columns, options = LongColumns.among({"task": task, "worker": worker, "question": QUESTION} | options)
    options = {"classes": [NO, YES]} | options
    fields = long_fields(rows, columns, where=lambda place: where(int(row[place])), **options)
    return fields | {"columns": (*fields["columns"], ("tags", tags))}


def _tell_dropped(dropped: np.ndarray, kept: np.ndarray, tasks: pd.Series, tags: str, where: Where) -> None:
    """Warn of rows that are left out, and of how many tasks no row is left."""
    if dropped.size:
        lost = tasks.iloc[dropped][~tasks.iloc[dropped].isin(tasks.iloc[kept])].nunique()
        of_tasks = f", and with them {count_text(lost, 'task')}" if lost else ""
        warn(
            f"empty='drop' left out {dropped.size:,} of {len(tasks):,} rows, whose cell in column {tags!r} is empty"
            f"{of_tasks}: {some_rows(dropped, where)}"
        )


def _separator(cells: Iterable[tuple[Any, str]]) -> str:
    """Return what separates the tags of texts where nobody says it.

    Raises:
        AnnotationError: a text may have several tags, by another character than the usual one.
    """
    texts = [(value, where) for value, where in cells if isinstance(value, str)]
    if any(BETWEEN_TAGS[0] in text for text, _ in texts):
        return BETWEEN_TAGS[0]
    for text, where in texts:
        for character in BETWEEN_TAGS[1:]:
            if character in text:
                raise AnnotationError(
                    f"{where}: {text!r} may be one tag or several; tag_separator={character!r} takes it apart, and "
                    f"tag_separator={BETWEEN_TAGS[0]!r} keeps it as one"
                )
    return BETWEEN_TAGS[0]


def _gold_table(gold: Any, task: str, tasks: pd.Series) -> Any:
    """Gold labels as a table, which a file may have; a mapping, and None, as they are."""
    if gold is None or isinstance(gold, Mapping):
        return gold
    if isinstance(gold, str | Path):
        is_text = not str(gold).endswith(".parquet")
        gold = read_text_table(gold) if is_text else read_parquet_table(Path(gold))
        by_text = {str(name): name for name in tasks if is_text}
        gold = gold.assign(**{task: [by_text.get(name, name) for name in gold[task]]} if task in gold else {})
    return as_frame(gold).to_pandas()


def _pairs(gold: Mapping[Any, Any] | pd.DataFrame | None, task: str, tags: str) -> Iterable[tuple[Any, Any]]:
    """The tasks of gold labels with their tags."""
    if gold is None or isinstance(gold, Mapping):
        return dict(gold or {}).items()
    for role, name in (("task", task), ("tags", tags)):
        if name not in gold.columns:
            raise missing_column(name, role, gold.columns, "gold")
    return zip(gold[task].tolist(), gold[tags].tolist(), strict=True)


def _is_empty(value: Any) -> bool:
    """Return whether a cell says nothing: it is missing, or a text without a letter. An empty list says: no tag."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (not isinstance(value, Iterable) and bool(pd.isna(value)))


def _tags(value: Any, separator: str, where: str, empty: Empty) -> list[Any]:
    """The tags of one cell, each once: a list, or text with a separator.

    Raises:
        AnnotationError: it is empty and nobody says what that means, or it is something else.
    """
    if _is_empty(value):
        if empty == "no":
            return []
        raise AnnotationError(
            f"{where}: the cell is empty; empty='no' says that the worker gave no tag there, and empty='drop' leaves "
            "such rows out; a list without tags, [], needs neither"
        )
    if isinstance(value, str):
        return list(dict.fromkeys(part for part in map(str.strip, value.split(separator)) if part))
    if not isinstance(value, Iterable) or isinstance(value, Mapping | bytes):
        raise AnnotationError(
            f"{where}: {value!r} is no list of tags; a list is needed, or text such as 'a{separator}b'"
        )
    return list(dict.fromkeys(value))
