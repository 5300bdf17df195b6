"""Columns of pandas, polars and pyarrow tables, read through narwhals."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import pandas as pd
from narwhals.exceptions import DuplicateError

from .column_names import missing_column
from .errors import AnnotationError


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
            "dictionaries and matrices see the other constructors (from_csv, from_dict, from_matrix, ...)"
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
    dtype = column.dtype
    if dtype.is_numeric() and not dtype.is_decimal():
        return column.to_pandas()
    if isinstance(dtype, nw.Enum):
        return pd.Series(pd.Categorical(column.cast(nw.String).to_list(), categories=list(dtype.categories)))
    if dtype in (nw.String, nw.Categorical):
        return column.cast(nw.String).to_pandas()
    # Dates, UUIDs and the like stay the Python objects that the library makes of them.
    return pd.Series(column.to_list(), dtype=object)
