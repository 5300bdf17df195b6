"""Tables to download: CSV inside the page, of which no cell is run by a spreadsheet."""

import base64
import csv
from collections.abc import Sequence

import pandas as pd
from markupsafe import Markup

from ...data.harmless_csv import harmless
from .templates import render

MOST = 1_800_000  # characters of an address: browsers refuse to download longer ones (2 MiB in Chromium)
BYTE_ORDER_MARK = "\ufeff"  # by which spreadsheets know that the letters are UTF-8


def csv_text(frame: pd.DataFrame) -> str:
    """A frame with its index as CSV: all text in quotes, so that no separator splits a cell into two.

    Args:
        frame: its columns and index hold text and numbers; numbers get six significant digits.
    """
    table = frame.reset_index()
    table.columns = pd.Index([harmless(str(name)) for name in table.columns])
    for name in table.columns[[not pd.api.types.is_numeric_dtype(dtype) for dtype in table.dtypes]]:
        table[name] = pd.Series([_cell(value) for value in table[name]], index=table.index, dtype=object)
    for name in table.columns[[pd.api.types.is_float_dtype(dtype) for dtype in table.dtypes]]:
        table[name] = [float(f"{value:.6g}") for value in table[name]]  # a float_format would put numbers in quotes
    return BYTE_ORDER_MARK + table.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")


def _cell(value: object) -> object:
    """Text that no spreadsheet runs; numbers, and nothing where a value is missing, as they are."""
    if value is None or value is pd.NA:
        return None
    return value if isinstance(value, bool | int | float) else harmless(str(value))


def download(name: str, frames: Sequence[tuple[str, pd.DataFrame]]) -> Markup:
    """A link by which a table is downloaded, without the network.

    Args:
        name: of the file, without the ending.
        frames: tables of which the first is taken that browsers can download, each with words on which rows it has,
            such as "all 45 labels"; the last one is taken at any length.
    """
    for words, frame in frames:
        data = base64.b64encode(csv_text(frame).encode("utf-8")).decode("ascii")
        which, address = words, f"data:text/csv;charset=utf-8;base64,{data}"
        if len(address) <= MOST:
            break
    return render("download", file=f"{name}.csv", address=address, which=which)
