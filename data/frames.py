"""Tables: those of pandas, polars and pyarrow, read through narwhals, and CSV, TSV and Parquet files."""

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import narwhals as nw
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from narwhals.exceptions import DuplicateError

from .column_names import missing_column
from .columns import Where
from .errors import AnnotationError, given_path, warn
from .harmless_csv import as_before
from .scan import BYTES_IN_MEMORY, physical_memory, size_text
from .text import convert_labels, convert_text
from .text_files import (
    encoding_of,
    has_blanks,
    not_text,
    open_text,
    read_header,
    reading,
    separator_line,
    separator_of,
)

RAGGED = re.compile(r"Expected (\d+) fields in line (\d+), saw (\d+)")
"""Pandas' message on a row with more cells than the header has."""


def as_frame(table: Any, what: str = "frame") -> nw.DataFrame[Any]:
    """Wrap a table of any of the libraries; lazy ones are collected.

    Raises:
        AnnotationError: it is no table, or two of its columns have one name.
    """
    try:
        frame = nw.from_native(table)
        return frame.collect() if isinstance(frame, nw.LazyFrame) else frame
    except DuplicateError as error:
        raise AnnotationError(f"{what}: two columns have the same name: {error}") from None
    except TypeError:
        raise AnnotationError(
            f"{what}: expected a pandas, polars or pyarrow table, got a {type(table).__name__}; for files, "
            "dictionaries and matrices see the other constructors (from_csv, from_dict, from_matrix, ...); cp.scan "
            "takes a Dataset of Arrow"
        ) from None


def is_frame(table: Any) -> bool:
    """Tell whether narwhals knows this as a table."""
    try:
        return isinstance(nw.from_native(table, pass_through=True), nw.DataFrame | nw.LazyFrame)
    except DuplicateError:  # a table, of which `as_frame` says what is wrong
        return True


def take_column(frame: nw.DataFrame[Any], name: str, role: str, what: str = "the table") -> pd.Series:
    """Return one column as a pandas Series, with its values as they are.

    Args:
        frame: the table.
        name: the column's name.
        role: the argument that names the column, for messages: task, worker, label, count or seconds.
        what: the table's name in messages.

    Raises:
        AnnotationError: there is no such column; the message lists those that exist and suggests one.
    """
    if name not in frame.columns:
        raise missing_column(name, role, frame.columns, what)
    column = frame[name]
    if column.implementation.is_pandas_like():
        return column.to_pandas().reset_index(drop=True)
    if column.implementation.is_pyarrow() and pa.types.is_dictionary(arrow := column.to_native().type):
        if arrow.ordered:
            return column.to_native().to_pandas()  # an ordered Categorical
        column = nw.from_native(column.to_native().cast(arrow.value_type), series_only=True)  # numbers stay numbers
    dtype = column.dtype
    if dtype.is_numeric() and not dtype.is_decimal():
        return column.to_pandas()
    if isinstance(dtype, nw.Enum):
        return pd.Series(pd.Categorical(column.cast(nw.String).to_list(), categories=list(dtype.categories)))
    if dtype in (nw.String, nw.Categorical):
        return column.cast(nw.String).to_pandas()
    # Dates, UUIDs and the like stay the Python objects that the library makes of them.
    return pd.Series(column.to_list(), dtype=object)


def read_text_table(
    path: str | Path, separator: str | None = None, encoding: str | None = None, *, may_repeat: bool = False
) -> pd.DataFrame:
    """Read a CSV or TSV file as a table of text, with NaN where a cell is empty.

    "NA" and "None" are text like any other, and so is "007". Cells that were made harmless to spreadsheets
    (:mod:`.harmless_csv`) are as they were before, and a blank after each separator of the header is part of no cell.
    A file that is neither UTF-8 nor UTF-16 is read as Windows-1252, with a warning.

    Args:
        path: the file, with a header; it may be compressed (.gz, .zst, .bz2, .xz).
        separator: what separates the columns; None for a tab in files named .tsv, else what most rows agree on.
        encoding: of the text; None to find it out.
        may_repeat: whether a name may stand twice, of columns that are known by their places.

    Raises:
        AnnotationError: the separator is no single character; the file is empty or no text, names a column twice,
            or has a row with more fields than the header.
        FileNotFoundError: there is no such file.
    """
    path = given_path(path)
    encoding = encoding or _encoding(path)
    separator = separator_of(path, encoding) if separator is None else separator
    read_header(path, separator, encoding, may_repeat=may_repeat)
    try:
        with reading(path), open_text(path, encoding) as file:
            table = pd.read_csv(
                file,
                sep=separator,
                dtype=str,
                keep_default_na=False,
                na_values=[""],
                skipinitialspace=has_blanks(path, separator, encoding),
            )
    except UnicodeDecodeError as error:
        raise not_text(path, error) from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        if reason.startswith("EOF inside string"):
            raise _unclosed(path, separator, encoding) from None
        if ragged := RAGGED.fullmatch(reason):
            reason = (
                f"line {ragged[2]} has {ragged[3]} cells, and the header {ragged[1]}; put a cell that has "
                f"{separator!r} in it between quotation marks, or say what separates the columns"
            )
        raise AnnotationError(f"{path} is no CSV file that can be read: {reason}") from None
    # Where every row has more fields than the header, pandas takes the first ones for an index.
    if not isinstance(table.index, pd.RangeIndex):
        line = line_of(path, 0, separator, encoding)
        raise AnnotationError(
            f"{path}, row 0 (line {line}): the row has more fields than the header, which names "
            f"{', '.join(map(repr, table.columns))}; name every column, and quote fields that contain the "
            "separator"
        )
    for name, column in table.items():
        if (before := as_before(column)) is not column:
            table[name] = before
    return table


def _unclosed(path: Path, separator: str, encoding: str) -> AnnotationError:
    """The error of a file that ends in a cell whose quotation mark is not closed: this cell is in its last row."""
    first, line, row = 1 + (separator_line(path, encoding) is not None), 0, -2
    begins = first
    with open_text(path, encoding) as file:
        reader = csv.reader(file, delimiter=separator)
        try:
            for fields in reader:
                begins, line, row = line + first, reader.line_num, row + bool(fields)
        except csv.Error:  # the rest of the file is too long for a cell
            begins, row = line + first, row + 1
    place = "the header" if row < 0 else f"row {row}"
    return AnnotationError(
        f"{path}, {place} (line {begins}): a cell begins with a quotation mark that is not closed before the end of "
        "the file; close it, or where the mark is part of the text put the cell between quotation marks and write "
        "each mark in it twice"
    )


def _encoding(path: Path) -> str:
    if not path.is_file() or not path.stat().st_size:
        return "utf-8-sig"  # what reads the header says what is wrong
    found = encoding_of(path)
    if not found.startswith("utf"):
        warn(f"{path} is not UTF-8 and is read as {found}; give encoding= if letters look wrong")
    return found


def line_of(path: Path, row: int, separator: str | None = None, encoding: str | None = None) -> int:
    """Return the line of a file, counted from 1, on which a data row, counted from 0, ends."""
    with open_text(path, encoding) as file:
        between = separator or separator_of(path, encoding)
        reader = csv.reader(file, delimiter=between, skipinitialspace=has_blanks(path, between, encoding))
        above = separator_line(path, encoding) is not None
        filled = (reader.line_num + above for fields in reader if fields)
        return next((line for number, line in enumerate(filled, start=-1) if number == row), reader.line_num)


def row_and_line(path: str | Path, separator: str | None = None, encoding: str | None = None) -> Where:
    """Return what says where a row is: "row 3 (line 5 of crowd.csv)"."""
    path = Path(path)
    return lambda row: f"row {row} (line {line_of(path, row, separator, encoding)} of {path.name})"


def with_whole_numbers(
    *tables: pd.DataFrame, columns: Mapping[str, str | Sequence[str] | None], abstentions: Iterable[object] = ()
) -> list[pd.DataFrame]:
    """Return tables of text in which columns are of whole numbers where all their values, in all tables, are.

    Labels are so also where they are written as "1.0", and beside `abstentions`.

    Args:
        tables: in which a column may be missing.
        columns: those of each role, which are looked at together.
        abstentions: labels that are no class.
    """
    found = [table.copy(deep=False) for table in tables]
    for role, names in columns.items():
        having = [(table, name) for table in found for name in listed(names) if name in table.columns]
        text = [table[name] for table, name in having]
        converted = convert_labels(*text, abstentions=abstentions) if role == "label" else convert_text(*text)
        for (table, name), column in zip(having, converted, strict=True):
            table[name] = column
    return found


def listed(names: str | Sequence[str] | None) -> list[str]:
    """Return the names of columns as a list: none, one, or several."""
    return [names] if isinstance(names, str) else list(names or ())


def read_parquet(path: str | Path, names: dict[str, str]) -> pa.Table:
    """Read the columns `names` (role -> column) of a Parquet file.

    Raises:
        AnnotationError: it is no Parquet file, or has no such column.
        FileNotFoundError: there is no such file.
    """
    path = given_path(path)
    if path.is_file() and path.stat().st_size == 0:
        raise AnnotationError(f"{path}: the file is empty")
    try:
        columns, n_rows = pq.read_schema(path).names, pq.read_metadata(path).num_rows
        for role, name in names.items():
            if name not in columns:
                raise missing_column(name, role, columns, str(path))
        if n_rows * BYTES_IN_MEMORY > physical_memory():
            size = size_text(n_rows * BYTES_IN_MEMORY)
            warn(
                f"{path} has {n_rows:,} rows, which may take {size} of memory while they are read; cp.scan(path) "
                "leaves them on the disk, and cp.fit takes it in the place of annotations"
            )
        return pq.read_table(path, columns=list(dict.fromkeys(names.values())))
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise AnnotationError(f"{path} is no Parquet file that can be read: {error}") from None


def read_parquet_table(path: str | Path) -> pd.DataFrame:
    """Read all columns of a Parquet file.

    Raises:
        AnnotationError: it is no Parquet file.
    """
    try:
        return pq.read_table(Path(path)).to_pandas()
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise AnnotationError(f"{path} is no Parquet file that can be read: {error}") from None
