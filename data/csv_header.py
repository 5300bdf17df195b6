"""The header of a CSV or TSV file, and whether it has the columns that were asked for: quick, without pandas."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .column_names import missing_column
from .errors import AnnotationError
from .text_files import first_bytes, open_text, reading, separator_of


def read_header(path: Path, separator: str | None = None, encoding: str | None = None) -> list[str]:
    """Return the names of a file's columns.

    Args:
        path: the file, with a header.
        separator: what separates the columns; None for what most rows agree on.
        encoding: of the text; None to find it out.

    Raises:
        AnnotationError: the separator is no single character; the file is empty or no text, or names a column twice.
        FileNotFoundError: there is no such file.
    """
    _check_separator(separator)
    start = first_bytes(path, 4096)
    if not start.strip():
        raise AnnotationError(
            f"{path}: the file is empty; expected a header such as task,worker,label and rows below it"
        )
    if start.startswith(b"PAR1"):
        raise AnnotationError(f"{path} is a Parquet file, not CSV; read it with from_parquet")
    try:
        with reading(path), open_text(path, encoding) as file:
            rows = csv.reader(file, delimiter=separator or separator_of(path, encoding))
            header = next((fields for fields in rows if fields), [])
    except UnicodeDecodeError as error:
        raise not_text(path, error) from None
    except csv.Error as error:
        raise AnnotationError(f"{path} is no CSV file that can be read: {error}") from None
    # pandas would call the second one "label.1", and an annotation would be lost without a word.
    if twice := sorted({name for name in header if name and header.count(name) > 1}):
        raise AnnotationError(f"{path}: the header names {', '.join(map(repr, twice))} more than once; rename one")
    return header


def not_text(path: Path, error: UnicodeDecodeError) -> AnnotationError:
    """Make the error for a file that is no text in its encoding."""
    return AnnotationError(f"{path} is no text in {error.encoding}: {error.reason}; give encoding=, or convert it")


def check_columns(names: Mapping[str, str | None], columns: Iterable[Any], what: str) -> None:
    """Refuse a table that lacks a column.

    Args:
        names: by role (task, worker, label, count, seconds) the name of its column, or None where there is none.
        columns: the table's.
        what: what messages call the table.

    Raises:
        AnnotationError: a column is given for two roles, or is not there.
    """
    check_roles(names)
    known = list(columns)
    for role, name in names.items():
        if name is not None and name not in known:
            raise missing_column(name, role, known, what)


def check_roles(columns: Mapping[str, str | None]) -> None:
    """Refuse a column that is given for two roles.

    Args:
        columns: by role (task, worker, ...) the name of a column, or None where there is none.

    Raises:
        AnnotationError: two roles have one column; the message names the roles and the column.
    """
    role_of: dict[str, str] = {}
    for role, name in columns.items():
        if name is not None and (first := role_of.setdefault(name, role)) != role:
            raise AnnotationError(f"column {name!r} is given for both {first}= and {role}=; name a column for each")


def _check_separator(separator: str | None) -> None:
    is_character = isinstance(separator, str) and len(separator) == 1
    if separator is not None and not (is_character and separator not in '\r\n"'):
        raise AnnotationError(
            f"separator={separator!r}: a single character is needed, such as ',', ';', '|' or '\\t' for a tab"
        )
