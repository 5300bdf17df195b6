"""Sections of the page and what stands in them: tables, pictures and downloads, each rendered by a template.

A section is a heading over a template, which the table of contents links by its anchor. Frames are tables that the
page's script makes sortable, and long ones filterable; plots are SVG or PNG within the page; a download is CSV inside
the page, of which no cell is run by a spreadsheet.
"""

import base64
import csv
import io
import math
import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from ...data.description import count_text
from ...data.harmless_csv import harmless
from ...data.html_templates import templates_of
from ...data.id_text import name_text
from ..plots.style import every

render = templates_of(__package__, counted=count_text, every=every)
"""A template of this room, by its name, with values by the names that it has for them."""


MOST_SVG = 300_000  # bytes of an SVG; a plot of very many marks takes more and is written as PNG
FITS_A_PHONE = 6.5  # inches of width that can be read on a phone as a whole; a wider plot scrolls in its box
DPI = 150  # of PNGs
LOOK = {"svg.fonttype": "none", "svg.hashsalt": "crowdppl", "figure.dpi": 100}  # the browser's letters, fixed ids
MOST = 1_800_000  # characters of an address: browsers refuse to download longer ones (2 MiB in Chromium)
CSV_ROWS = 10_000  # that are written at a time
BYTE_ORDER_MARK = "\ufeff"  # by which spreadsheets know that the letters are UTF-8
LONG = 12  # rows from which a table has a filter and a box of its own height
WIDE, NARROW = 14, 8  # characters of a text below which it is not broken into lines: of the first column, of others
MANY, CROWDED = 9, 13  # columns from which they are set closer, and from which their headings break anywhere
WORD = 14  # characters of a word up to which it is not broken in a heading
PRINTED = 10  # rows of a table that are printed
BESIDE = ("low", "high", "se")  # columns with the uncertainty of another one, written into its cells
NOTHING = "–"  # for a missing value


def picture(draw: Callable[[], Any], alt: str) -> Markup:
    """A plot as an image of the page, in Matplotlib's default style whatever style the reader has set.

    Args:
        draw: makes a figure and returns its axes.
        alt: what the plot shows; the titles of the axes are added to it.
    """
    from matplotlib import pyplot as plt
    from matplotlib import style

    with style.context(["default", LOOK]), plt.ioff(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)  # the browser has more letters
        axes = np.ravel(np.asarray(draw(), dtype=object))
        figure = axes[0].figure
        try:
            width = float(figure.get_size_inches()[0])
            kind, data = _written(figure)
            titles = _titles(figure, axes)
        finally:
            plt.close(figure)
    return render(
        "picture",
        alt=alt,
        titles=titles,
        kind=kind,
        data=base64.b64encode(data).decode("ascii"),
        width=f"{width * 96:.0f}",
        wide=width > FITS_A_PHONE,
    )


def _written(figure: Any) -> tuple[str, bytes]:
    """The kind of image and its bytes, which hold neither a date nor anything else that changes."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    if buffer.tell() <= MOST_SVG:
        return "svg+xml", buffer.getvalue()
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI, transparent=True, metadata={"Software": None})
    return "png", buffer.getvalue()


def _titles(figure: Any, axes: np.ndarray) -> str:
    """The titles of the figure and its axes, in one line."""
    found = [figure.get_suptitle()] + [ax.get_title(loc=side) for ax in axes for side in ("left", "center")]
    return "; ".join(" ".join(title.split()) for title in found if title)


def csv_text(frame: pd.DataFrame, most: float = math.inf) -> str:
    """A frame with its index as CSV: all text in quotes, so that no separator splits a cell into two.

    Args:
        frame: its columns and index hold text and numbers; numbers get six significant digits.
        most: letters after which it may end, as who has no use for more asks.
    """
    table, made = frame.reset_index(), BYTE_ORDER_MARK
    table.columns = pd.Index([harmless(str(name)) for name in table.columns])
    for first in range(0, max(len(table), 1), CSV_ROWS):
        rows = table.iloc[first : first + CSV_ROWS].copy()
        for place, dtype in enumerate(rows.dtypes):
            values = rows.iloc[:, place].tolist()
            if not pd.api.types.is_numeric_dtype(dtype):
                rows.isetitem(place, np.array(list(map(_cell, values)), dtype=object))
            elif pd.api.types.is_float_dtype(dtype):  # a float_format would put numbers in quotes
                rows.isetitem(place, [float(f"{value:.6g}") for value in values])
        made += rows.to_csv(index=False, header=not first, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")
        if len(made) > most:
            break
    return made


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
    for place, (words, frame) in enumerate(frames, 1):
        text = csv_text(frame, 3 / 4 * MOST if place < len(frames) else math.inf)
        data = base64.b64encode(text.encode("utf-8")).decode("ascii")
        which, address = words, f"data:text/csv;charset=utf-8;base64,{data}"
        if len(address) <= MOST:
            break
    return render("download", file=f"{name}.csv", address=address, which=which)


class Head(NamedTuple):
    """The heading of a column: its text, classes of the style sheet, and least width in characters."""

    text: str
    classes: str
    least: int | None


class Cell(NamedTuple):
    """A cell: text or a number, with its uncertainty beside it, the number to sort by, and the share of its bar."""

    shown: str
    is_number: bool = False
    beside: str = ""
    sort: Any = None
    bar: str | None = None


def table(frame: pd.DataFrame, caption: str, *, bars: Collection[str] = (), details: Markup | None = None) -> Markup:
    """A frame as a table, its index as first columns.

    Columns named ``x_low``, ``x_high`` and ``x_se`` are written into the cells of the column ``x``.

    Args:
        frame: columns of numbers are set right and sorted as numbers; all others are text.
        bars: columns of probabilities that are also drawn as bars.
        details: data of the rows, which the script of the page shows on a click on a row's name.
    """
    headed = frame.reset_index() if frame.index.name is not None or frame.index.nlevels > 1 else frame
    headed = headed.set_axis(list(map(str, headed.columns)), axis=1)
    names = [name for name in map(str, headed) if not is_beside(name, headed)]
    numeric = {name: pd.api.types.is_numeric_dtype(headed[name].dtype) for name in names}
    numeric = {name: is_number and headed[name].dtype != bool for name, is_number in numeric.items()}
    cells = [
        number_cells(headed, name, bar=name in bars) if numeric[name] else _text_cells(headed[name], first=not i)
        for i, name in enumerate(names)
    ]
    heads = [
        _head(name, None if numeric[name] else headed[name], WIDE if not i else NARROW) for i, name in enumerate(names)
    ]
    return render(
        "table",
        caption=caption,
        heads=heads,
        rows=zip(*cells, strict=True),
        n_rows=len(headed),
        printed=PRINTED,
        long=len(headed) > LONG,
        close=" many" * (len(names) >= MANY) + " crowded" * (len(names) >= CROWDED),
        details=details,
    )


def number(value: object, decimals: int = 3) -> str:
    """A number as text: whole ones with commas, others with this many decimals, – where it is missing."""
    if value is None or value is pd.NA or (isinstance(value, float | np.floating) and np.isnan(value)):
        return NOTHING
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    shown = f"{float(value):,.{decimals}f}"  # type: ignore[arg-type]
    return shown.removeprefix("-") if not any(digit in shown for digit in "123456789") else shown


def decimals(values: pd.Series) -> int:
    """Number of decimals of a column: four significant digits of its largest number, and at most eight."""
    finite = np.abs(values.to_numpy(dtype=float, na_value=np.nan))
    finite = finite[np.isfinite(finite)]
    largest = float(finite.max()) if len(finite) else 0.0
    if largest < 5e-9:  # nothing to be seen with eight decimals
        return 3
    return int(np.clip(3 - np.floor(np.log10(largest)), 1, 3 if largest >= 0.001 else 8))


def text(value: object) -> str:
    """Anything but a number as text; markup stays markup."""
    if isinstance(value, Markup):
        return value
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return NOTHING
    return name_text(value)


def _head(name: str, texts: pd.Series | None, most: int) -> Head:
    """The heading of a column; one of texts is as wide as the longest of them, up to `most` characters.

    A word of more than :data:`WORD` characters, which only names of classes have, is broken into lines. A heading of
    many words has about four lines.
    """
    heading = name.replace("_", " ")
    breaks = max(map(len, heading.split()), default=0) > WORD
    least = WORD if breaks else len(heading) // 4 if len(heading) > 2 * WORD else None
    if texts is not None:
        longest = max((len(text(value)) for value in texts if not isinstance(value, Markup)), default=0)
        least = max(min(longest, most) + 2, least or 0)
    classes = " ".join(name for name, has in (("n", texts is None), ("breaks", breaks)) if has)
    return Head(heading, classes, least)


def number_cells(frame: pd.DataFrame, name: str, *, bar: bool = False) -> list[Cell]:
    """The cells of a column of numbers, with its bounds or errors; they sort by more places than are shown.

    Args:
        frame: with the column, and those that :data:`BESIDE` names.
        bar: whether each is drawn as a bar, too.
    """
    beside = {side: frame[f"{name}_{side}"].tolist() for side in BESIDE if f"{name}_{side}" in frame}
    made, places = [], decimals(frame[name])
    to = " to " if any(value < 0 for value in beside.get("low", [])) else "–"  # beside a minus, a dash is one more
    for i, value in enumerate(frame[name].tolist()):
        shown = number(value, places)
        if shown == NOTHING:
            made.append(Cell(shown, True))
            continue
        more = {side: number(values[i], places) for side, values in beside.items()}
        if "low" in more and "high" in more:
            uncertainty = f"{more['low']}{to}{more['high']}"
        else:
            uncertainty = f"± {more['se']}" if "se" in more else ""
        share = f"{min(max(float(value), 0.0), 1.0):.3f}" if bar else None
        made.append(Cell(shown, True, uncertainty, f"{value:.7g}" if isinstance(value, float) else value, share))
    return made


def _text_cells(values: pd.Series, *, first: bool) -> list[Cell]:
    """The cells of a column of texts, which break after underscores in the first one."""
    texts = [text(value) for value in values.tolist()]
    return [Cell(Markup("_<wbr>").join(map(escape, one.split("_"))) if first else one) for one in texts]


def is_beside(name: str, frame: pd.DataFrame) -> bool:
    """Return whether a column is written into another column's cells."""
    value, _, side = name.rpartition("_")
    return side in BESIDE and value in frame and pd.api.types.is_numeric_dtype(frame[value].dtype)


@dataclass(frozen=True)
class Section:
    """A section of the page.

    Args:
        anchor: by which it is linked.
        title: its heading.
        content: what stands below the heading.
    """

    anchor: str
    title: str
    content: Markup

    @property
    def html(self) -> Markup:
        """The section with its heading."""
        return render("section", section=self)


def section(anchor: str, title: str, **values: object) -> Section:
    """A section by the template of its anchor's name, which may call ``table``, ``picture`` and ``download``."""
    return Section(anchor, title, render(anchor, table=table, picture=picture, download=download, **values))
