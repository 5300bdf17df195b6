"""What the command line prints: results, tables, warnings and errors."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import typer

from ..inference.engines import progress
from .advice import for_the_shell
from .request import Request

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table

    from .. import Fit, Stack, StreamedFit

BAD_INPUT, FAILURE = 2, 1  # exit statuses
PACKAGE = __name__.partition(".")[0]
FOLDER = Path(__file__).resolve().parents[1]  # of the package


def stdout() -> Console:
    """Return the console for results."""
    from rich.console import Console

    return Console(highlight=False)


def stderr() -> Console:
    """Return the console for warnings and errors."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def doing(what: str, request: Request) -> AbstractContextManager[None]:
    """Say what is being done while a block runs, where standard error is a terminal and quiet was not asked for."""
    return progress.doing(what, show=request.shows_progress)


@contextmanager
def plain_messages() -> Iterator[None]:
    """Show the warnings of crowdppl as yellow lines and no others, and an error as a red panel with an exit status.

    Raises:
        typer.Exit: with status 2 for input that cannot be used (any ValueError), 1 for failures of the computation or
            the disk.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", category=UserWarning)
        warnings.showwarning = _show_warning
        try:
            yield
        except (ValueError, FloatingPointError, OSError) as error:
            from rich.panel import Panel
            from rich.text import Text

            stderr().print(
                Panel(Text(for_the_shell(str(error))), title="Error", title_align="left", border_style="red")
            )
            raise typer.Exit(BAD_INPUT if isinstance(error, ValueError) else FAILURE) from None


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    ours = category.__module__.startswith(f"{PACKAGE}.") or Path(filename).resolve().is_relative_to(FOLDER)
    if ours and not str(message).startswith("Glyph "):  # Matplotlib's font lacks a letter
        from rich.text import Text

        stderr().print(Text(f"Warning: {for_the_shell(str(message))}", style="yellow"))


def show_result(result: Fit | Stack | StreamedFit, files: Mapping[str, str], began: float) -> None:
    """Print a summary of a fit, or of an average of several, and the files that were written.

    Args:
        result: the fit, the stack of fits, or the streamed fit.
        files: what is in each file, by path.
        began: when the command began, by `time.perf_counter`.
    """
    from rich.table import Table
    from rich.text import Text

    console = stdout()
    summary = result.summary()
    console.print(Text(f"\n{summary.title}\n", style="bold"))
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold")
    facts.add_column(overflow="fold")
    for name, text in summary.facts.items():
        facts.add_row(name, Text(text))
    console.print(facts)
    for name, frame in summary.tables.items():
        console.print()
        console.print(frame_table(frame, name))
    console.print(Text(f"\nWritten in {time.perf_counter() - began:.1f} s:", style="bold"))
    show_files(files, console)


def frame_table(frame: pd.DataFrame, title: str | None = None) -> Table:
    """Return a frame as a table; the columns `x_low` and `x_high`, or `low` and `high`, become one of intervals."""
    from pandas.api.types import is_numeric_dtype
    from rich.text import Text

    from ..inference.fitted.intervals import INTERVAL

    table = make_table(title)
    table.add_column(str(frame.index.name), overflow="fold")
    columns = []
    for name in map(str, frame.columns):
        if name.endswith("high") or (len(frame) and frame[name].isna().all()):
            continue
        if name.endswith("low"):
            high = f"{name.removesuffix('low')}high"
            columns.append([interval_text(*bounds) for bounds in zip(frame[name], frame[high], strict=True)])
            table.add_column(f"{INTERVAL:.0%} interval", justify="right")
        else:
            columns.append([_cell(value) for value in frame[name].tolist()])
            number = is_numeric_dtype(frame[name])
            table.add_column(name.replace("_", " "), justify="right" if number else "left", overflow="fold")
    for row in zip(map(str, frame.index), *columns, strict=True):
        table.add_row(*map(Text, row))
    return table


def make_table(title: str | None = None) -> Table:
    """Return an empty table in the style that all tables share."""
    from rich import box
    from rich.table import Table

    return Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)


def interval_text(low: float, high: float) -> str:
    """Return an interval with three decimals: 0.267–0.487."""
    return f"{low:.3f}–{high:.3f}"


def _cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def show_files(files: Mapping[str, str], console: Console) -> None:
    """Print the paths of files, and what is in each."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for path, content in files.items():
        table.add_row(Text(path, style="cyan"), content)
    console.print(table)
