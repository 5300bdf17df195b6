"""CSV, TSV and Parquet files, read as tables."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from .columns import Where
from .errors import AnnotationError
from .frames import missing_column
from .text import convert_text


def read_text_table(path: str | Path, separator: str | None = None) -> pd.DataFrame:
    """Read a CSV or TSV file as a table of text, with NaN where a cell is empty.

    "NA" and "None" are text like any other, and so is "007".

    Args:
        path: the file, in UTF-8, with a header.
        separator: what separates the columns; None for a tab in files named .tsv, else a comma.

    Raises:
        AnnotationError: the separator is no single character; the file is empty or no text, names a column twice,
            or has a row with more fields than the header.
        FileNotFoundError: there is no such file.
    """
    path = Path(path)
    _check_separator(separator)
    with path.open("rb") as file:
        start = file.read(4096)
    if not start.strip():
        raise AnnotationError(
            f"{path}: the file is empty; expected a header such as task,worker,label and rows below it"
        )
    if start.startswith(b"PAR1"):
        raise AnnotationError(f"{path} is a Parquet file, not CSV; read it with from_parquet")
    if b"\0" in start:
        raise AnnotationError(f"{path} is no CSV file in UTF-8: it holds zero bytes")
    try:
        _refuse_repeated_names(path, separator)
        table = pd.read_csv(
            path,
            sep=separator or separator_of(path),
            dtype=str,
            keep_default_na=False,
            na_values=[""],
            encoding="utf-8-sig",
        )
    except UnicodeDecodeError as error:
        raise AnnotationError(f"{path} is no CSV file in UTF-8: {error}; convert it, or check what it is") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, csv.Error) as error:
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise AnnotationError(f"{path} is no CSV file that can be read: {reason}") from None
    # Where every row has more fields than the header, pandas takes the first ones for an index.
    if not isinstance(table.index, pd.RangeIndex):
        line = line_of(path, 0, separator)
        raise AnnotationError(
            f"{path}, row 0 (line {line}): the row has more fields than the header, which names "
            f"{', '.join(map(repr, table.columns))}; name every column, and quote fields that contain the "
            "separator"
        )
    return table


def _check_separator(separator: str | None) -> None:
    is_character = isinstance(separator, str) and len(separator) == 1
    if separator is not None and not (is_character and separator not in '\r\n"'):
        raise AnnotationError(
            f"separator={separator!r}: a single character is needed, such as ',', ';', '|' or '\\t' for a tab"
        )


def _refuse_repeated_names(path: Path, separator: str | None) -> None:
    # pandas would call the second one "label.1", and an annotation would be lost without a word.
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=separator or separator_of(path))
        header = next((fields for fields in reader if fields), [])
    if twice := sorted({name for name in header if name and header.count(name) > 1}):
        raise AnnotationError(f"{path}: the header names {', '.join(map(repr, twice))} more than once; rename one")


def separator_of(path: Path) -> str:
    """Return what separates the columns of a file with this name."""
    return "\t" if path.suffix.lower() == ".tsv" else ","


def line_of(path: Path, row: int, separator: str | None = None) -> int:
    """Return the line of a file, counted from 1, on which a data row, counted from 0, ends."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter=separator or separator_of(path))
        filled = (reader.line_num for fields in reader if fields)
        return next((line for number, line in enumerate(filled, start=-1) if number == row), reader.line_num)


def row_and_line(path: str | Path, separator: str | None = None) -> Where:
    """Return what says where a row is: "row 3 (line 5 of crowd.csv)"."""
    path = Path(path)
    return lambda row: f"row {row} (line {line_of(path, row, separator)} of {path.name})"


def read_csv_tables(
    path: str | Path, gold: str | Path | None, separator: str | None, names: Iterable[str | None]
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """Read annotations and, where given, gold labels.

    A column named in `names` is of whole numbers where all its values, in both files, are.

    Raises:
        AnnotationError: as `read_text_table`.
    """
    tables = [read_text_table(path, separator)]
    if gold is not None:
        tables.append(read_text_table(gold, separator))
    for name in dict.fromkeys(names):
        having = [table for table in tables if name in table.columns]
        for table, column in zip(having, convert_text(*(table[name] for table in having)), strict=True):
            table[name] = column
    return tables[0], tables[1] if gold is not None else None


def read_parquet(path: str | Path, names: dict[str, str]) -> pa.Table:
    """Read the columns `names` (role -> column) of a Parquet file.

    Raises:
        AnnotationError: it is no Parquet file, or has no such column.
        FileNotFoundError: there is no such file.
    """
    path = Path(path)
    if path.is_file() and path.stat().st_size == 0:
        raise AnnotationError(f"{path}: the file is empty")
    try:
        columns = pq.read_schema(path).names
        for role, name in names.items():
            if name not in columns:
                raise missing_column(name, role, columns, str(path))
        return pq.read_table(path, columns=list(dict.fromkeys(names.values())))
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise AnnotationError(f"{path} is no Parquet file that can be read: {error}") from None
