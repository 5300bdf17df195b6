"""A column of identifiers as integer codes and distinct values; errors name the row."""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from .errors import AnnotationError
from .id_text import listing, n_shown
from .ids import Ids, clash_text, python_values, type_clash, unhashable

SHOWN = 3  # rows that a message names

Where = Callable[[int], str]
"""Says where a row of the input is: "row 3", "row 3 (line 5 of crowd.csv)", "task 'a', worker 'b'"."""


def row_number(row: int) -> str:
    """Say where a data row is, counted from 0."""
    return f"row {row}"


@dataclass(frozen=True)
class Column:
    """One column of the input: row a holds the identifier `ids[codes[a]]`."""

    title: str  # as messages call it: "column 'task'"
    codes: np.ndarray  # (A,) int32
    ids: Ids  # the distinct values, in order of first appearance unless aligned
    where: Where = row_number
    categories: Ids | None = None  # all values that the column's type lists, in its order; None where it lists none
    in_order: bool = False  # whether the type says that its values are in an order, from the least to the greatest

    def rows_with(self, code: int) -> np.ndarray:
        """Return the rows that hold an identifier, shape (number of them,)."""
        return np.flatnonzero(self.codes == code)

    def renamed(self, names: Iterable[Any]) -> "Column":
        """Return the same column with another name for each of its `ids`, of which several may become one."""
        names = list(names)
        ids = Ids(dict.fromkeys(names), what=self.title)
        return replace(self, codes=ids.index_of(names)[self.codes], ids=ids, categories=None)

    def aligned(self, ids: Ids, option: str) -> "Column":
        """Return the same column with codes into the given `ids`.

        Raises:
            AnnotationError: a value of the column is none of `ids`; the message calls them `option`.
        """
        position = ids.index_of(self.ids)
        if (unknown := np.flatnonzero(position < 0)).size:
            value = self.ids[int(unknown[0])]
            row = int(self.rows_with(int(unknown[0]))[0])
            raise AnnotationError(f"{self.title}, {self.where(row)}: {not_listed(value, ids, option)}")
        return replace(self, codes=position[self.codes], ids=ids)


def encode(values: Any, title: str, where: Where = row_number) -> Column:
    """Turn a column's values into codes, distinct values in order of first appearance.

    Numbers and text are hashed in bulk; only a column of Python objects is looked at value by value.

    Args:
        values: a pandas Series, or anything that a Series can be made of, shape (A,).
        title: the column's name for messages.
        where: says where a row is, for messages.

    Raises:
        AnnotationError: a value is missing (None, NaN), infinite or cannot be hashed, or two differ only in type.
    """
    series = values if isinstance(values, pd.Series) else pd.Series(values, dtype=object)
    if (missing := series.isna().to_numpy(dtype=bool)).any():
        raise missing_values({title: missing}, where)
    if isinstance(series.dtype, pd.CategoricalDtype):
        categories = Ids(series.cat.categories, what=title)
        column = encode(series.astype(series.cat.categories.dtype), title, where)
        return replace(column, categories=categories, in_order=bool(series.cat.ordered))
    if series.dtype != object:
        codes, distinct = pd.factorize(series)
        if series.dtype.kind == "f":
            _refuse_infinite(codes, distinct, title, where)
        return Column(title, codes.astype(np.int32), Ids(distinct, what=title), where)
    return _encode_objects(python_values(series, title), title, where)


def _encode_objects(values: list[Any], title: str, where: Where) -> Column:
    positions: dict[Hashable, int] = {}
    try:
        # A clash must be looked for first: 1 and True are one key of a dictionary.
        clash = (
            type_clash(values)
            if len(set(map(type, values))) > 1 or isinstance(next(iter(values), None), tuple)
            else None
        )
        codes = np.fromiter((positions.setdefault(v, len(positions)) for v in values), np.int32, len(values))
    except TypeError:
        raise unhashable(values, title, where) from None
    if clash:
        first, second = clash
        raise AnnotationError(f"{title}, {where(first)} and {where(second)}: {clash_text(values, first, second)}")
    _refuse_infinite(codes, positions, title, where)
    return Column(title, codes, Ids(positions, what=title), where)


def _refuse_infinite(codes: np.ndarray, distinct: Iterable[Any], title: str, where: Where) -> None:
    """Refuse an infinite number, which a division by zero leaves, and which names nothing."""
    for position, value in enumerate(distinct):
        if isinstance(value, float) and math.isinf(value):
            raise AnnotationError(
                f"{title}, {where(int(np.argmax(codes == position)))}: {float(value)} names nothing; text or a finite "
                "number is needed"
            )


def missing_values(missing: Mapping[str, np.ndarray], where: Where, advice: str = "") -> AnnotationError:
    """Make the error for rows without a value.

    Args:
        missing: by a column's title whether it has none in each row, shape (A,).
        where: says where a row is.
        advice: what else can be done.
    """
    found = {title: np.flatnonzero(rows) for title, rows in missing.items() if rows.any()}
    places = "; ".join(f"{title}: the value is missing in {some_rows(rows, where)}" for title, rows in found.items())
    several = len(np.unique(np.concatenate(list(found.values())))) > 1
    return AnnotationError(f"{places}; fill it in, or remove the {'rows' if several else 'row'} first{advice}")


def some_rows(rows: np.ndarray, where: Where = row_number) -> str:
    """Say where the first few of some rows are, and how many there are."""
    said = listing(rows.tolist(), SHOWN, where)
    return said if len(rows) == n_shown(len(rows), SHOWN) else f"{said} ({len(rows):,} in all)"


def positions_of(
    names: Iterable[Any], ids: Ids, where: str | Where, mend: str = "", error: type[ValueError] = AnnotationError
) -> np.ndarray:
    """Return where names stand among the identifiers of annotations, shape (names,) int32.

    Args:
        names: each of them one of the identifiers.
        ids: the identifiers.
        where: stands before the name in a message, "workers:"; or says it, by the name's place from 0.
        mend: what helps, after a semicolon, where a name is none of them.
        error: its kind.

    Raises:
        AnnotationError: (or `error`) a name is none of the identifiers.
    """
    listed = python_values(names, "ids")
    positions = ids.index_of(listed)
    if (positions < 0).any():
        at = int(np.argmax(positions < 0))
        name, place = listed[at], where if isinstance(where, str) else where(at)
        raise error(
            f"{place} {name!r} is not in the annotations{type_hint(name, ids)}; known are {listing(ids, 5)}{mend}"
        )
    return positions


def not_listed(value: Hashable, ids: Ids, option: str) -> str:
    """Say that a value is none of those that an option lists, and what would do; fractions must be listed."""
    leave = "" if isinstance(value, float) and value % 1 else f", or leave {option} out to take all that there are"
    return f"{value!r} is not in {option}=[{listing(ids, 10)}]{type_hint(value, ids)}; add it to {option}{leave}"


def type_hint(value: Hashable, ids: Ids) -> str:
    """Say, where `ids` has a value like this one but of another type, that the type is what differs."""
    for other in ids:
        if type(other) is not type(value) and (other == value or str(other) == str(value)):
            return (
                f" (there is {other!r}, of type {type(other).__name__}, but this is of type "
                f"{type(value).__name__}: convert one to the type of the other)"
            )
    return ""
