"""Sheets of Excel files as people make them: a title above the header, and merged cells."""

import io
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from .errors import AnnotationError
from .text_files import open_bytes

EXCEL = (".xlsx", ".xlsm", ".xls", ".ods")
MARKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""The beginnings of such files: packed with zip, or as Excel wrote them before 2007."""

SHOWN = 40  # bytes of another file, in the message on it
LOOKED_AT = 20  # rows of a sheet in which its header is looked for


@dataclass(frozen=True)
class Sheet:
    """The table in a sheet.

    Attributes:
        table: its rows.
        header: the row of the sheet that has the names of the columns, counted from 1.
        n_merged: how many cells have the value of the merged cell that they are part of.
    """

    table: pd.DataFrame
    header: int
    n_merged: int

    def where(self, row: int) -> str:
        """Say where a row of the table is."""
        return f"row {row + self.header + 1} of the sheet"

    def said(self) -> str:
        """Return what was changed in the sheet, in words; nothing where it was taken as it is."""
        above = f"; the header is row {self.header} of the sheet" if self.header > 1 else ""
        merged = f"; {self.n_merged:,} cells have the value of their merged cell" if self.n_merged else ""
        return above + merged


def read_excel(path: Path, sheet: str | None = None, *, mend: str = "say which by sheet={!r}") -> Sheet:
    """Read the sheet of an Excel file that has rows, or the one of this name.

    A title above the header is left out, and each part of a merged cell has its value.

    Args:
        path: of the file.
        sheet: a name.
        mend: what is to be done where it has several, about the first one's name.

    Raises:
        AnnotationError: it is no Excel file, has several sheets, or none of this name.
    """
    try:
        with open_bytes(path) as file:
            content = file.read()
        sheets = _sheets(content)
    except ImportError as error:
        raise AnnotationError(f"{path}: Excel files need a package more: {error}") from None
    except (ValueError, zipfile.BadZipFile, KeyError) as error:
        if not content.startswith(MARKS):
            start = content[:SHOWN].decode("utf-8", errors="replace").partition("\n")[0].strip()
            raise AnnotationError(
                f"{path} is no Excel file in spite of its name: it begins with {start!r}. Where it is text with a row "
                "in each line, end its name in .csv (or .tsv), and in .json where it is JSON; else save it as .xlsx"
            ) from None
        raise AnnotationError(f"{path} is no Excel file that can be read: {error}") from None
    filled = {name: table for name, table in sheets.items() if len(table)}
    if sheet is not None and sheet not in sheets:
        raise AnnotationError(f"{path} has no sheet {sheet!r}; it has {', '.join(map(repr, sheets))}")
    if sheet is None and len(filled) > 1:
        raise AnnotationError(
            f"{path} has several sheets: {', '.join(map(repr, filled))}; {mend.format(next(iter(filled)))}"
        )
    if not filled:
        raise AnnotationError(f"{path} has no rows")
    name = next(iter(filled)) if sheet is None else sheet
    table, header = sheets[name], 1
    if _is_title(table):
        header = _header(_sheets(content, header=None)[name])
        table = _sheets(content, header=header - 1)[name]
    n_merged = _fill_merged(table, content, name, header) if table.isna().to_numpy().any() else 0
    return Sheet(table, header, n_merged)


def _sheets(content: bytes, header: int | None = 0) -> dict[str, pd.DataFrame]:
    options = {"sheet_name": None, "keep_default_na": False, "na_values": [""]}
    return pd.read_excel(io.BytesIO(content), header=header, **options)  # type: ignore[call-overload, no-any-return]


def _is_title(table: pd.DataFrame) -> bool:
    """Return whether the first row names one column of several, or none."""
    named = sum(not str(name).startswith("Unnamed: ") for name in table.columns)
    return len(table.columns) > 1 and named < 2 and named < len(table.columns) - 1


def _header(rows: pd.DataFrame) -> int:
    """The first row, counted from 1, that has the most cells, all of them text."""
    first = rows.head(LOOKED_AT)
    n_filled = first.notna().sum(axis=1)
    is_text = first.map(lambda cell: isinstance(cell, str) or pd.isna(cell)).all(axis=1)
    found = first.index[(n_filled == n_filled.max()) & is_text]
    return int(found[0]) + 1 if len(found) else 1


def _fill_merged(table: pd.DataFrame, content: bytes, name: str, header: int) -> int:
    """Give each empty part of a merged cell its value, in place; how many there were."""
    if not zipfile.is_zipfile(io.BytesIO(content)):
        return 0
    import openpyxl

    try:
        areas = openpyxl.load_workbook(io.BytesIO(content))[name].merged_cells.ranges
    except (KeyError, ValueError, openpyxl.utils.exceptions.InvalidFileException):
        return 0  # another kind of zipped file, such as an .ods
    n_before = int(table.isna().to_numpy().sum())
    for area in areas:
        top, left = area.min_row - header - 1, area.min_col - 1
        if top >= 0 and top < len(table) and left < table.shape[1]:
            rows = slice(top, min(area.max_row - header, len(table)))
            for column in range(left, min(area.max_col, table.shape[1])):
                of_table = table.columns[column]
                values = table[of_table].astype(object)
                values.iloc[rows] = table.iat[top, left]
                table[of_table] = values.infer_objects()
    return n_before - int(table.isna().to_numpy().sum())
