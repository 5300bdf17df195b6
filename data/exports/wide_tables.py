"""Tables with a row for each task, and a column for each worker or, with vote counts, for each class."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..agreement import krippendorff_alpha
from ..column_names import CONTENT, NAMES, is_name_of, missing_column, plain, stem
from ..errors import AnnotationError
from ..text import without_point
from .gathered import MOST_CLASSES

MOST_CODES = 10
"""More different whole numbers than these are asked about: whether they are labels or counts."""

IDENTIFIER = re.compile(r"(?<![A-Za-z])(?i:u?u?id|guid|key|index|no|nr|number)$|(?<=[a-z])(?:Id|ID)$")
"""How names of identifiers end: "tweet_id", "docId"."""

AGGREGATES = ("majority", "majorityvote", "mv", "consensus", "aggregated", "adjudicated", "final", "finallabel")
"""What columns of labels are called that no worker gave."""

TOTALS = ("total", "sum", "n", "count", "votes", "nvotes", "annotations", "nannotations")
"""What columns of vote counts are called that are of no class."""

COLUMNS = ("workers", "classes", "tasks")
"""What the columns of a table may be: beside a row for each task, or, of tasks, beside a row for each worker."""


@dataclass(frozen=True)
class Wide:
    """A table with a row for each task, and a column for each worker or, with vote counts, for each class."""

    task: str
    columns: tuple[str, ...]
    gold: str | None
    others: tuple[str, ...]  # columns that are none of these


def wide_roles(
    table: pd.DataFrame, what: str, *, task: str | None, gold: str | None, columns: str | None, asks: bool
) -> Wide | None:
    """Return the columns of a table with a row for each task, or None where it is none.

    No column is named as workers or labels are. Those of workers have few values, which they share with the others.

    Args:
        table: the table.
        what: the table, for messages.
        task: the column of tasks; None for the one that is known by its name.
        gold: that of gold labels; None for the one that is known by its name.
        columns: what the others are, ``"workers"`` or ``"classes"``; None to find out.
        asks: whether to ask where they may be both; else they are workers.

    Raises:
        AnnotationError: the columns may be workers or classes, or are not what they are said to be.
    """
    names = [str(name) for name in table.columns]
    task = task or _task_column(table)
    known = {stem(name) for name in names if name != task}
    if columns is None and (known & {*NAMES["worker"], *NAMES["label"]} or len(names) < 3 or task not in names):
        return None
    if task not in names:
        raise missing_column(task or "task", "task", names, what)
    gold = gold or next((name for name in names if stem(name) in NAMES["gold"]), None)
    free = [name for name in names if name not in (task, gold) and plain(name) not in AGGREGATES]
    whole = {name: _whole_numbers(table[name]) for name in free if plain(name) not in TOTALS}
    counts = {name: numbers for name, numbers in whole.items() if numbers is not None}
    values = _few_values(table[free])
    if columns is None:
        shared = [name for name, found in values.items() if not found or shares(found, name, values)]
        found = shared if sum(bool(values[name]) for name in shared) > 1 else []
        of_all = not found or _same_total(counts)
        asked = {name: counts[name] for name in (counts if of_all else found) if name in counts}
        if asks and len(asked) > 1 and asked.keys() >= set(found) and (why := _like_counts(asked)):
            raise _question(what, list(asked), why)
    else:
        found = list(counts if columns == "classes" else values)
        if len(found) < 2:
            held = "vote counts" if columns == "classes" else "few labels"
            raise AnnotationError(f"columns={columns!r}: {what} has {len(found)} columns of {held}; two are needed")
    if not found:
        return None
    others = tuple(name for name in names if name not in (task, gold, *found))
    return Wide(str(task), tuple(name for name in names if name in found), gold, others)


def _question(what: str, columns: Sequence[str], why: str) -> AnnotationError:
    listing = ", ".join(map(repr, columns[:3])) + ", …" * (len(columns) > 3)
    return AnnotationError(
        f"{what}: the columns {listing} hold whole numbers, and {why}. If they are classes, and the numbers say how "
        "often each was given: columns='classes' (cp.Annotations.from_counts takes them as well). If they are workers, "
        "and the numbers are labels: columns='workers'. If each row is one annotation, name its columns by task=, "
        "worker= and label=."
    )


def _few_values(table: pd.DataFrame) -> dict[str, set[Hashable]]:
    """The values of columns that have few."""
    most = min(MOST_CLASSES, max(3, len(table) // 2))
    values = {str(name): set(map(hashed, column.dropna())) for name, column in table.items()}
    return {name: found for name, found in values.items() if len(found) <= most}


def _whole_numbers(values: pd.Series) -> np.ndarray | None:
    """A column's whole numbers from 0, NaN where a cell is empty; None where it has something else, or nothing."""
    if values.dtype == bool or values.isna().all():
        return None
    numbers = pd.to_numeric(values, errors="coerce")
    if (numbers.isna() & values.notna()).any() or numbers.dtype.kind not in "iuf":
        return None
    whole = numbers.to_numpy(np.float64, na_value=np.nan)
    known = whole[~np.isnan(whole)]
    return whole if ((known >= 0) & (known == np.floor(known))).all() else None


def _like_counts(counts: Mapping[str, np.ndarray]) -> str:
    """Say what shows that numbers are vote counts rather than labels; nothing where they may well be labels.

    Numbered columns ("r1", "r2") are workers. Votes for one class are at the expense of the others, so that columns of
    counts agree less than by chance, where those of workers who know something agree more.
    """
    cells = np.column_stack(list(counts.values()))
    if _are_numbered(list(counts)) or np.nanmax(cells) < 2:
        return ""
    values = np.unique(cells[~np.isnan(cells)])
    if len(values) > MOST_CODES:
        return f"{len(values)} different ones are many for labels"
    if _same_total(counts):
        return "their sum is the same in each row"
    votes = np.stack([(cells == value).sum(axis=1) for value in values], axis=1)
    return "they are equal in a row no more often than by chance" if krippendorff_alpha(votes) <= 0 else ""


def _same_total(counts: Mapping[str, np.ndarray]) -> bool:
    if len(counts) < 2:
        return False
    totals = np.nansum(np.column_stack(list(counts.values())), axis=1)
    return len(totals) > 1 and bool((totals == totals[0]).all())


def _are_numbered(names: Sequence[str]) -> bool:
    """Whether columns are called as workers are: "r1" and "r2", "annotator_a" and "annotator_b"."""
    stems = {re.sub(r"[^a-z]+$|[^a-z]+[a-z]$", "", name.casefold()) for name in names}
    of_workers = all(any(name.startswith(word) for word in NAMES["worker"]) for name in stems)
    one = next(iter(stems))
    of_classes = one in ("", "n", "num", "count", "votes") or stem(one) in NAMES["label"]
    return of_workers or (len(stems) == 1 and len(names) > 1 and not of_classes)


def shares(found: set[Hashable], name: str, values: Mapping[str, set[Hashable]]) -> bool:
    """Return whether at least half of a column's values are those of another one, too."""
    if not found:
        return False
    others: set[Hashable] = set().union(*(each for other, each in values.items() if other != name))
    return len(found & others) >= len(found) / 2


def hashed(value: Any) -> Hashable:
    """Return a cell's value such that equal labels are equal."""
    if isinstance(value, str):
        return without_point(value)
    return value if isinstance(value, Hashable) else str(value)


def _task_column(table: pd.DataFrame) -> str | None:
    """The column of a wide table that names its tasks: by its name, or the first where its values differ.

    A column that ends in "id" or "key", and has another value in each row, goes before one that may be the content.
    """
    names = [str(name) for name in table.columns]
    named = [name for name in names if is_name_of(name, "task")]
    if named and all(plain(name) in CONTENT for name in named):
        named = [name for name in names if IDENTIFIER.search(name) and tells_rows(table[name])] + named
    if named:
        return next((name for name in named if plain(name) not in CONTENT), named[0])
    return names[0] if tells_rows(table[names[0]]) else None


def tells_rows(values: pd.Series) -> bool:
    """Return whether a column has another value in each row."""
    return bool(values.map(hashed).is_unique and values.notna().all())
