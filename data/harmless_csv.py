"""CSV cells that a spreadsheet would run as formulas: made harmless when a table is written, and back when it is read.

A spreadsheet takes a cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a line break, with blanks before it or
not, for a formula, whoever wrote it (OWASP, CSV injection). Such a cell, unless it is a plain number, gets an
apostrophe in front, by which a spreadsheet takes it for text; so does one that begins with apostrophes before such a
sign, so that no two cells become one.
"""

import csv
import re
from collections.abc import Iterable
from os import PathLike
from typing import Any, Literal

import pandas as pd

from .id_text import name_text

RUN = "=+-@\t\r\n＝＋－＠"
"""With what cells begin that a spreadsheet would run; the wide signs are those of East Asian keyboards."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_ESCAPED = re.compile(rf"'+ *[{re.escape(RUN)}]", re.DOTALL)
_SUSPECT = re.compile(rf"'* *[{re.escape(RUN)}]")


def harmless(text: str) -> str:
    """Return a cell's text such that no spreadsheet runs it.

    >>> harmless("=1+1"), harmless("-5"), harmless("plain"), harmless("'=1")
    ("'=1+1", '-5', 'plain', "''=1")
    """
    return f"'{text}" if _SUSPECT.match(text) and (text[0] == "'" or would_run(text)) else text


def would_run(text: str) -> bool:
    """Tell whether a spreadsheet would take a cell for a formula; plain numbers it takes for numbers."""
    bare = text.lstrip(" ")
    return bare[:1] in tuple(RUN) and not _NUMBER.fullmatch(bare)


def as_before(column: pd.Series) -> pd.Series:
    """Return a column of text with the apostrophes taken off that :func:`harmless` puts on.

    A column in which a cell would run is none that :func:`harmless` wrote, and is returned as it is: nothing that
    differs in a file becomes the same.

    Args:
        column: text, NaN where a cell is empty.
    """
    texts = [text for text in pd.unique(column) if isinstance(text, str)]
    escaped = {text: text[1:] for text in texts if text[:1] == "'" and _ESCAPED.match(text)}
    if not escaped or any(would_run(text) for text in texts):
        return column
    return column.map(lambda text: escaped.get(text, text))


def write_csv(table: pd.DataFrame, path: str | PathLike[str]) -> None:
    """Write a table to a CSV file in UTF-8, with cells and names that no spreadsheet runs.

    A name of several parts, such as a prompt and its two items, is written as terminal and report have it, with a dot
    between the parts.

    Args:
        table: its index too is written.
        path: of the file.
    """
    safe = table.copy(deep=False)
    for place, kind in enumerate(table.dtypes):
        if not pd.api.types.is_numeric_dtype(kind):
            safe.isetitem(place, _cells(table.iloc[:, place]))
    safe.columns = pd.Index(_cells(table.columns), dtype=object)
    safe.index = _safe_index(table.index)
    # A carriage return that is not quoted ends a row for some readers.
    quoting: Literal[0, 2] = csv.QUOTE_NONNUMERIC if "\r" in _letters(safe) else csv.QUOTE_MINIMAL
    safe.to_csv(path, encoding="utf-8", quoting=quoting)


def _cells(values: Iterable[Any]) -> list[Any]:
    return [harmless(name_text(value)) if isinstance(value, str | tuple) else value for value in values]


def _safe_index(index: pd.Index) -> pd.Index:
    names = [harmless(name) if isinstance(name, str) else name for name in index.names]
    if isinstance(index, pd.MultiIndex):
        return pd.MultiIndex.from_arrays([_cells(index.get_level_values(i)) for i in range(index.nlevels)], names=names)
    if pd.api.types.is_numeric_dtype(index.dtype):
        return index.rename(names[0])
    return pd.Index(_cells(index), dtype=object, name=names[0], tupleize_cols=False)


def _letters(table: pd.DataFrame) -> str:
    """Every text of a table, in a row."""
    found = [str(name) for name in table.columns]
    for level in range(table.index.nlevels):
        found += [value for value in table.index.get_level_values(level) if isinstance(value, str)]
    for place in range(table.shape[1]):
        if not pd.api.types.is_numeric_dtype(table.dtypes.iloc[place]):
            found += [value for value in table.iloc[:, place] if isinstance(value, str)]
    return "".join(found)
