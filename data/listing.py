"""A table of names and texts, such as the stories that there are, which shows its texts whole."""

from collections.abc import Callable, Iterator
from io import StringIO
from shutil import get_terminal_size

import pandas as pd

from .cards import render

TEXT = 32  # characters from which a text is wrapped; its column is as wide at the least
WIDEST = 10_000  # columns of a terminal
ATTRIBUTE = "more"


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
