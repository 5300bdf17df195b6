"""How the command line speaks: tables, lists of files, warnings and errors."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pandas as pd
import typer
from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from ..inference.fitted.intervals import INTERVAL
from ..inference.fitted.summary import Summary

BAD_INPUT, FAILURE = 2, 1  # exit statuses
IN_PYTHON = re.compile(r"(Did you mean|pass) (task|worker|label|count|separator)=('[^']*')")  # an option's advice
PACKAGE = Path(__file__).resolve().parent


def stdout() -> Console:
    """The console for what was asked for."""
    return Console(highlight=False)


def stderr() -> Console:
    """The console for warnings and errors."""
    return Console(stderr=True, highlight=False)


@contextmanager
def speaking_plainly() -> Iterator[None]:
    """Show our warnings as yellow lines and no others; turn errors into one red panel and an exit status.

    Raises:
        typer.Exit: with status 2 for input that cannot be used (any ValueError), 1 for what goes wrong later.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", category=UserWarning)
        warnings.showwarning = _show_warning
        try:
            yield
        except (ValueError, FloatingPointError, OSError) as error:
            text = IN_PYTHON.sub(r"\1 --\2 \3", str(error))
            stderr().print(Panel(Text(text), title="Error", title_align="left", border_style="red"))
            raise typer.Exit(BAD_INPUT if isinstance(error, ValueError) else FAILURE) from None


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    ours = Path(filename).resolve().is_relative_to(PACKAGE) or category.__module__.startswith(f"{__package__}.")
    if ours and not str(message).startswith("Glyph "):  # Matplotlib has no picture of some letter
        stderr().print(Text(f"Warning: {message}", style="yellow"))


def show_summary(summary: Summary, console: Console) -> None:
    """Print a fit's summary: the facts, and a table for each of its sections."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold")
    facts.add_column(overflow="fold")
    for name, text in summary.facts.items():
        facts.add_row(name, Text(text))
    console.print(Text(f"\n{summary.title}\n", style="bold"))
    console.print(facts)
    for name, frame in summary.tables.items():
        console.print()
        console.print(frame_table(frame, name))


def frame_table(frame: pd.DataFrame, title: str | None = None) -> Table:
    """A frame as a table; bounds in columns `x_low` and `x_high`, or `low` and `high`, become one column."""
    table = make_table(title)
    table.add_column(str(frame.index.name), overflow="fold")
    columns = []
    for name in map(str, frame.columns):
        if name.endswith("high") or (len(frame) and frame[name].isna().all()):  # nothing is known of it
            continue
        if name.endswith("low"):
            high = f"{name.removesuffix('low')}high"
            columns.append([interval_text(*bounds) for bounds in zip(frame[name], frame[high], strict=True)])
            table.add_column(f"{INTERVAL:.0%} interval", justify="right")
        else:
            columns.append([_cell(value) for value in frame[name].tolist()])
            number = pd.api.types.is_numeric_dtype(frame[name])
            table.add_column(name.replace("_", " "), justify="right" if number else "left", overflow="fold")
    for row in zip(map(str, frame.index), *columns, strict=True):
        table.add_row(*map(Text, row))
    return table


def make_table(title: str | None = None) -> Table:
    """An empty table in the style of all of them."""
    return Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)


def interval_text(low: float, high: float) -> str:
    """An interval with three decimals: 0.267–0.487."""
    return f"{low:.3f}–{high:.3f}"


def _cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def show_files(folder: Path, files: Mapping[str, str], console: Console) -> None:
    """Print where files are, and what is in each."""
    table = Table.grid(padding=(0, 2))
    for name, content in files.items():
        table.add_row(Text(os.path.join(folder, name), style="cyan"), content)
    console.print(table)
