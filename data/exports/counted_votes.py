"""Dictionaries in JSON of how often each class was given to a task, told from those of workers' labels."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ..column_names import INFER, is_name_of, missing_column, named_for, one_column, plain
from ..errors import AnnotationError
from ..nested import Records
from ..wide import MOST_VALUES, Wide, are_numbered, like_counts, workers_or_classes
from .known_columns import Asked, gold_column

COUNTS = re.compile(
    r"(counts?|tall(y|ies)|histogram|frequenc(y|ies)|freqs?)$|^(n|num|numberof)(votes|labels|annotations)"
)
"""Names, in plain letters, of fields that have counts."""

VOTES = "votes"
"""The end of the names of fields whose numbers are counts where they look like it."""

SCORES = ("score", "rating", "grade")
"""Names, without the s of a plural, of fields whose numbers are no counts."""

RESULTS = ("result", "results", "responses", "answers")
"""Names, in plain letters, of fields that may have counts where nothing else names workers or labels."""


def field_of_counts(records: Records) -> str | None:
    """Return the one field that has in each record a dictionary of whole numbers, such as
    ``{"id": 1, "votes": {"toxic": 3, "ok": 2}}``, and no name of scores; None where there is none, or several.
    """
    fields = dict.fromkeys(name for record in records for name, value in record.items() if isinstance(value, Mapping))
    named = [name for name in fields if not name or COUNTS.search(plain(name)) or _is_of_labels(name)]
    named = named or [field for field in [field_of_results(records)] if field is not None]
    found = [name for name in named if all(_has_whole_numbers(record.get(name)) for record in records)]
    return found[0] if len(found) == 1 and any(record[found[0]] for record in records) else None


def field_of_results(records: Records) -> str | None:
    """Return the one field called as results are, with a dictionary, where no other field is a worker or a label."""
    fields = dict.fromkeys(name for record in records for name in record)
    found = [name for name in fields if plain(str(name)) in RESULTS]
    alone = not any(is_name_of(str(name), role) for name in fields if name not in found for role in ("worker", "label"))
    all_have = len(found) == 1 and all(isinstance(record.get(found[0]), Mapping) for record in records)
    return found[0] if alone and all_have else None


def are_counts(records: Records, field: str, what: str, asked: Asked) -> bool:
    """Return whether the numbers in a field are counts of classes, and the keys no workers.

    Args:
        records: those of :func:`field_of_counts`.
        field: the one that it names; nothing where the records' dictionaries have no name.
        what: the file, for messages.
        asked: of which ``columns`` may say it.

    Raises:
        AnnotationError: they look like counts, and may as well be labels of workers.
    """
    if asked.columns is not None:
        return asked.columns == "classes"
    if COUNTS.search(plain(field)):
        return True
    counts = _counts(records, field)
    if len(counts.columns) > MOST_VALUES or any(is_name_of(name, "worker") for record in records for name in record):
        return False
    keys = list(counts.columns)
    why = like_counts({str(key): column.to_numpy(np.float64) for key, column in counts.items()})
    are_votes = plain(field).endswith(VOTES)
    if are_votes and not why and counts.to_numpy(np.float64, na_value=0).max() > 1 and not are_numbered(keys):
        why, are_votes = "may be numbers of votes or votes for numbers", False
    if why and not are_votes:
        raise workers_or_classes(f"{what}, in {field!r}" if field else what, keys, why, "keys")
    return bool(why)


def counted_table(records: Records, field: str, what: str, asked: Asked) -> tuple[pd.DataFrame, Wide]:
    """Return the table with a row for each record and a column for each class in a field, and what its columns are.

    Raises:
        AnnotationError: no field names the tasks, or a class has the name of one that is read.
    """
    counts = _counts(records, field)
    own = [{name: value for name, value in record.items() if not isinstance(value, Mapping)} for record in records]
    about = pd.DataFrame(own, dtype=object)
    names = [str(name) for name in about.columns]
    task = asked.task if asked.task != INFER else one_column("task", named_for("task", names), names, what)
    if task not in names:
        raise missing_column(task, "task", names, what)
    gold = gold_column(about, asked.gold) or next(iter(named_for("gold", names)), None)
    kept = [name for name in (task, gold) if name is not None]
    if both := [name for name in kept if name in counts]:
        raise AnnotationError(
            f"{what}: {both[0]!r} is a field of the records, and a key in {field!r}; rename one of them"
        )
    others = tuple(name for name in names if name not in kept)
    return pd.concat([about[kept], counts], axis=1), Wide(task, tuple(counts.columns), others, gold)


def _counts(records: Records, field: str) -> pd.DataFrame:
    return pd.DataFrame([dict(record[field]) for record in records]).rename(columns=str)


def _is_of_labels(name: str) -> bool:
    one = plain(name).removesuffix("s")
    return one not in SCORES and (is_name_of(name, "label") or is_name_of(one, "label"))


def _has_whole_numbers(value: Any) -> bool:
    return isinstance(value, Mapping) and all(type(number) is int and number >= 0 for number in value.values())
