"""Tables of comparisons: which columns have the two items, what was said of them, by whom, and of which prompt."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from .column_names import is_name_of, named_for, plain
from .comparisons import word_of_side
from .errors import AnnotationError

ENDS = (("left", "right"), ("a", "b"), ("1", "2"), ("first", "second"))
"""What tells the columns of two items apart, beside the word for what is compared."""

COMPARED = ("", "model", "system", "item", "candidate", "option", "player", "answer", "response", "output")
"""Words for what is compared, in plain letters; of two pairs of columns the one whose word comes first is taken."""

SAID = ("winner", "preference", "preferred", "better", "choice", "label", "verdict", "result", "outcome")
"""Names of the column of what was said, beside those of labels."""

TASKS = ("task", "pair", "comparison", "battle")
"""Names, without "id" at the end, of a column that names each pair; of any other name for tasks it is the prompt."""


@dataclass(frozen=True)
class ComparisonColumns:
    """The columns of a table of comparisons, by the options of :meth:`.Annotations.from_comparisons`."""

    left: str
    right: str
    label: str
    worker: str | None
    task: str | None
    prompt: str | None

    def said(self) -> str:
        """Return which column was taken for what."""
        others = {"worker": self.worker, "task": self.task, "prompt": self.prompt}
        named = [f"{role} {name!r}" for role, name in others.items() if name is not None]
        return ", ".join([f"{self.left!r} with {self.right!r}", f"label {self.label!r}", *named])


def find_comparison_columns(
    table: pd.DataFrame, *, given: dict[str, Any] | None = None, abstain: Iterable[Any] = ()
) -> ComparisonColumns | None:
    """Return the columns of a table of comparisons, or None where it is none.

    It is taken for one where two columns have the names of two sides (left and right, model_a and model_b, item1 and
    item2), and one of labels has nothing but words for the sides, or the names of the items.

    Args:
        table: the table.
        given: columns that were named, by role; None for a role that is not there.
        abstain: labels that are no class.
    """
    given, names = given or {}, [str(name) for name in table.columns]
    sides = _two_sides(names)
    if sides is None:
        return None
    free = [name for name in names if name not in sides]
    label = given["label"] if "label" in given else _label(table, free, sides, {str(value) for value in abstain})
    if label is None or label not in free:
        return None
    free = [name for name in free if name != label]
    worker = given["worker"] if "worker" in given else _first([n for n in free if is_name_of(n, "worker")])
    free = [name for name in free if name != worker]
    asked = given["task"] if "task" in given else _first(named_for("task", free))
    if asked is None:
        return ComparisonColumns(*sides, label, worker, None, None)
    names_pairs = _word(asked) in TASKS and not _has_several_pairs(table, asked, sides)
    return ComparisonColumns(*sides, label, worker, *((asked, None) if names_pairs else (None, asked)))


def needed_comparison_columns(table: pd.DataFrame, what: str, **options: Any) -> ComparisonColumns:
    """Return the columns of a table that is one of comparisons.

    Raises:
        AnnotationError: it is none; the message says what would be one.
    """
    found = find_comparison_columns(table, **options)
    if found is None:
        names = [str(name) for name in table.columns]
        sides = _two_sides(names)
        lacks = "no two columns of items, such as left and right, or model_a and model_b"
        if sides is not None:
            lacks = (
                f"the items in {sides[0]!r} and {sides[1]!r}, and no column, such as label or winner, with nothing but "
                "sides (left, right, tie; a, b; 1, 2) or the items' names"
            )
        raise AnnotationError(
            f"{what} is no table of comparisons: of its columns {', '.join(map(repr, names))} there are {lacks}. "
            "cp.Annotations.from_comparisons(table, left=…, right=…, label=…) takes columns of any name"
        )
    return found


def _two_sides(names: Sequence[str]) -> tuple[str, str] | None:
    """The columns of two items: of the pairs with names of sides the one whose word comes first."""
    by_name = {plain(name): name for name in names}
    for word in COMPARED:
        for one, two in ENDS:
            forms = [(one, two)] if not word else [(word + one, word + two), (one + word, two + word)]
            for left, right in forms:
                if left in by_name and right in by_name and not (not word and len(one) == 1):
                    return by_name[left], by_name[right]
    return None


def _label(table: pd.DataFrame, free: Sequence[str], sides: tuple[str, str], abstain: set[str]) -> str | None:
    """The column of what was said: named as one, with nothing but sides or items in it."""
    candidates = [name for name in free if plain(name) in SAID] + [name for name in free if is_name_of(name, "label")]
    candidates.sort(key=lambda name: SAID.index(plain(name)) if plain(name) in SAID else len(SAID))
    items = {str(item) for side in sides for item in table[side].dropna().unique()}
    for name in candidates:
        values = {str(value) for value in table[name].dropna().unique()} - abstain
        words = {value: word_of_side(value, sides) for value in values}
        if values and (
            all(word is not None for word in words.values()) or all(v in items or words[v] == 2 for v in values)
        ):
            return name
    return None


def _has_several_pairs(table: pd.DataFrame, task: str, sides: tuple[str, str]) -> bool:
    pairs = table[list(sides)].astype(str).apply(lambda row: tuple(sorted(row)), axis=1)
    return bool(pairs.groupby(table[task]).nunique().max() > 1)


def _word(name: str) -> str:
    return re.sub(r"(?<=.)ids?$", "", plain(name))


def _first(names: Sequence[str]) -> str | None:
    return names[0] if names else None
