"""Views of objects: cards for notebooks, and tables of names and texts, such as the stories that there are.

Cards are small HTML in the colours of the notebook, light or dark: text and lines take the colour of what is around
them, so that nothing depends on a style sheet. Where the page is narrow, parts stand below each other, and a table that
is wider still scrolls in its own part.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from io import StringIO
from shutil import get_terminal_size
from typing import TypeVar

import numpy as np
import pandas as pd
from markupsafe import Markup

from .html_templates import templates_of
from .id_text import name_text

T = TypeVar("T")

BLUE, ORANGE = "#4c8bbf", "#d9822b"  # seen on white and on black
LONGEST = 60  # letters of a name

render = templates_of(__package__)
"""A template of this room, by its name, with values by the names that it has for them."""
TEXT = 32  # characters from which a text is wrapped; its column is as wide at the least
WIDEST = 10_000  # columns of a terminal
ATTRIBUTE = "more"


def never_raising(show: Callable[[T], str]) -> Callable[[T], str]:
    """``_repr_html_`` that shows the object's text where it cannot show its card: a notebook goes on."""

    @wraps(show)
    def shown(self: T) -> str:
        try:
            return show(self)
        except Exception:  # whatever is wrong with what is shown, showing it is not where to say so
            return str(Markup("<pre>{}</pre>").format(repr(self)))

    return shown


def card(
    title: str, subtitle: str, *parts: Markup | None, warnings: Iterable[str] = (), then: Sequence[str] = ()
) -> str:
    """A card: a title with what it is of, parts side by side, what to be warned of, and what to call next.

    Args:
        title: what it is.
        subtitle: its sizes.
        parts: from :func:`facts`, :func:`table` and :func:`histogram`; Nones are left out.
        warnings: sentences.
        then: calls that show more.
    """
    boxes = [part for part in parts if part is not None]
    values = {"title": title, "subtitle": subtitle, "parts": boxes, "warnings": list(warnings), "then": then}
    return str(render("card", warning=warning, **values))


def sheet(title: str, facts: Mapping[str, str], tables: Mapping[str, Markup], warnings: Iterable[str] = ()) -> str:
    """A title over facts, sentences to be warned by, and tables below each other, each under its name."""
    values = {"title": title, "facts": facts, "tables": tables, "warnings": list(warnings)}
    return str(render("sheet", warning=warning, **values))


def warning(text: str) -> Markup:
    """A sentence to be warned by, in the colour of the text around it, which is seen on any page."""
    return render("warning", text=text, colour=ORANGE)


def facts(pairs: Mapping[str, object]) -> Markup:
    """Names with a value each."""
    faint = Markup('<span style="opacity:0.7">{}</span>')
    rows = [(faint.format(name), Markup("<span>{}</span>").format(value)) for name, value in pairs.items()]
    return render("table", title=None, heads=(), rows=rows, named=2, more="")


def table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]], more: str = "") -> Markup:
    """Rows under their heads, with what is left out said below."""
    cells = [[value if isinstance(value, Markup) else short(value) for value in row] for row in rows]
    return render("table", title=title or None, heads=heads, rows=cells, named=1, more=more)


def bar(share: float, text: str | None = None, color: str = BLUE, width: int = 80) -> Markup:
    """A share from 0 to 1 as a bar with its number."""
    if not np.isfinite(share):
        return Markup("–")
    filled = width * min(max(float(share), 0.0), 1.0)
    shown = f"{share:.0%}" if text is None else text
    return render("bar", filled=f"{filled:.0f}", rest=f"{width - filled:.0f}", colour=color, text=shown)


def histogram(title: str, counts: Sequence[float] | np.ndarray, low: str, high: str) -> Markup:
    """Counts as columns, with what stands at both ends of the axis.

    Args:
        title: what is counted.
        counts: of each column, from the left.
        low: at the left end.
        high: at the right end.
    """
    values = np.asarray(counts, dtype=float)
    width, height = max(10, 60 // max(len(values), 1)), 44
    columns = _columns(values, width, height)
    span = width * len(values)
    return render("histogram", title=title, columns=columns, span=span, height=height, low=low, high=high, colour=BLUE)


def marked(values: np.ndarray, at: float) -> Markup:
    """The spread of values as a small histogram, with a line at one more."""
    ends = np.quantile(values, [0.005, 0.995]) if len(values) else np.zeros(2)
    low, high = min(float(ends[0]), at), max(float(ends[1]), at)
    if not np.isfinite([low, high]).all() or high <= low:
        return Markup("–")
    counts, _ = np.histogram(values, 24, (low, high))
    width, height = 5, 22
    columns = [column for column in _columns(counts.astype(float), width, height) if column["count"]]
    place = f"{(at - low) / (high - low) * (24 * width - 2) + 1:.1f}"
    return render("marked", columns=columns, span=24 * width, height=height, place=place, colour=BLUE, line=ORANGE)


def _columns(values: np.ndarray, width: int, height: int) -> list[dict[str, object]]:
    """Columns side by side, each as tall as its share of the largest count, from below."""
    shares = values / max(float(values.max(initial=0.0)), 1.0)
    return [
        {
            "x": i * width,
            "y": f"{height - height * share:.1f}",
            "width": width - 1,
            "height": f"{height * share:.1f}",
            "count": round(value),
        }
        for i, (value, share) in enumerate(zip(values.tolist(), shares.tolist(), strict=True))
    ]


def short(name: object) -> str:
    """A name, its middle left out where it is long: ids often differ only at the end."""
    text = name_text(name)
    end = LONGEST // 3
    return text if len(text) <= LONGEST else f"{text[: LONGEST - end - 1]}…{text[-end:]}"


class Listing(pd.DataFrame):
    """A frame whose texts are wrapped where pandas would cut them, in a terminal and in a notebook.

    What is taken from it, such as a column or some rows, is an ordinary frame or series.
    """

    @classmethod
    def of(cls, frame: pd.DataFrame, more: str = "") -> "Listing":
        """The frame as a listing, with a sentence below it that says where to look next."""
        made = cls(frame)
        made.attrs[ATTRIBUTE] = more
        return made

    @property
    def _constructor(self) -> Callable[..., pd.DataFrame]:
        return pd.DataFrame

    def __repr__(self) -> str:
        """The table as text, as wide as the terminal, or as its narrowest form."""
        from rich import box
        from rich.console import Console
        from rich.measure import Measurement
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        columns = list(self._cells())
        for name, cells in columns:
            widest = max(map(len, (name, *cells)))
            table.add_column(Text(name), no_wrap=widest <= TEXT, min_width=min(widest, TEXT))
        for row in zip(*(cells for _, cells in columns), strict=True):
            table.add_row(*map(Text, row))
        console = Console(file=StringIO(), width=WIDEST, no_color=True, highlight=False)
        least = Measurement.get(console, console.options, table).minimum
        console.width = max(get_terminal_size().columns, least)
        with console.capture() as captured:
            console.print(table)
        lines = [line.rstrip() for line in captured.get().strip("\n").splitlines()]
        return "\n".join([*lines, *filter(None, [self.attrs.get(ATTRIBUTE)])])

    def _repr_html_(self) -> str:
        heads, cells = zip(*self._cells(), strict=True)
        rows = zip(*cells, strict=True)
        return str(render("listing", heads=heads, rows=rows, more=self.attrs.get(ATTRIBUTE)))

    def _cells(self) -> Iterator[tuple[str, list[str]]]:
        """By column, those of the index first where it has names, what stands in each row."""
        frame = self.reset_index() if any(self.index.names) else self
        for name in frame.columns:
            yield str(name), _texts(frame[name])


def _texts(column: pd.Series) -> list[str]:
    """Return the cells of a column as text: nothing where a value is missing, and fractions with three decimals."""
    given = column.dropna()
    if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return ["" if pd.isna(value) else str(value) for value in column]
    form = ",.0f" if (given % 1 == 0).all() else ",.3f"
    return ["" if pd.isna(value) else format(value, form) for value in column]
