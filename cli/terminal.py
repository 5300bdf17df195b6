"""Printing for the command line: results, tables, warnings and errors."""

from __future__ import annotations

import atexit
import gc
import math
import sys
import time
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TextIO

import typer

from ..data.id_text import name_text
from ..data.lazy import uncollected
from ..inference.engines import progress
from .advice import fitted_again, for_the_shell, mended
from .request import Request

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table

    from .. import Fit

BAD_INPUT, FAILURE = 2, 1  # exit statuses
PACKAGE = __name__.partition(".")[0]
FOLDER = Path(__file__).resolve().parents[1]  # of the package


def stdout(*, quiet: bool = False) -> Console:
    """Return the console for results, which prints none where quiet was asked for."""
    from rich.console import Console

    return Console(highlight=False, quiet=quiet)


def stderr() -> Console:
    """Return the console for warnings and errors."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


def doing(what: str, request: Request) -> AbstractContextManager[None]:
    """Say what is being done while a block runs, where standard error is a terminal and quiet was not asked for."""
    return progress.doing(what, show=request.shows_progress)


@contextmanager
def starting(request: Request) -> Iterator[None]:
    """Say so while the libraries are imported; what they have made is never again looked through for garbage.

    It stays until the process ends, whose last look for garbage would be for nothing, too.
    """
    first = "jax" not in sys.modules
    with uncollected(), doing("starting", request):
        yield
        if first:
            gc.freeze()
            atexit.register(gc.freeze)


@contextmanager
def plain_messages(folder: str | None = None) -> Iterator[None]:
    """Show the warnings of crowdppl as yellow lines and no others, and an error as a red panel with an exit status.

    Below the panel is the command that mends it, on one line that can be pasted, where the error names one.

    Args:
        folder: where the fit that they speak of is saved; None where that is not known.

    Raises:
        typer.Exit: with status 2 for input that cannot be used (any ValueError), 1 for failures of the computation or
            the disk.
    """
    with warnings.catch_warnings(action="ignore"):
        warnings.filterwarnings("always", category=UserWarning)
        warnings.showwarning = partial(_show_warning, folder)
        try:
            yield
        except (ValueError, FloatingPointError, OSError) as error:
            from rich.panel import Panel
            from rich.text import Text

            said = for_the_shell(str(error), folder)
            stderr().print(Panel(Text(said), title="Error", title_align="left", border_style="red"))
            if command := mended(said, sys.argv[1:]):
                stderr().print(Text.assemble("Try: ", (command, "cyan")), soft_wrap=True)
            raise typer.Exit(BAD_INPUT if isinstance(error, ValueError) else FAILURE) from None


def _show_warning(
    folder: str | None,
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

        stderr().print(Text(f"Warning: {for_the_shell(str(message), folder)}", style="yellow"))


def show_result(
    result: Fit, files: Mapping[str, str], began: float, folder: str | None = None, content: str = ""
) -> None:
    """Print the verdict on a fit, or on an average of several, then its summary and the files that were written.

    Args:
        result: the fit, or the average of fits.
        files: what is in each file, by path.
        began: when the command began, by `time.perf_counter`.
        folder: where the fit is saved, for commands that read it; None where it is not.
        content: options of the page of gold labels, which show what the tasks are.
    """
    from rich.table import Table
    from rich.text import Text

    console = stdout()
    summary = result.summary()
    show_verdict(result, console, folder, content)
    console.print(Text(f"\n{summary.title}\n", style="bold"))
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="bold")
    facts.add_column(overflow="fold")
    for name, text in summary.facts.items():
        facts.add_row(name, Text(text if name == "hyperparameters" else for_the_shell(text, folder)))
    console.print(facts)
    for name, frame in summary.tables.items():
        for table in frame_tables(frame, name):
            console.print()
            console.print(table)
    show_files(files, console, written_in(began))


def show_verdict(result: Fit, console: Console, folder: str | None, content: str = "") -> None:
    """Print whether to trust the crowd, which labels are doubtful, whom to review, and commands to go on with."""
    from rich.text import Text

    verdict = result.verdict
    for heading, lines in verdict.sections.items():
        if lines:
            console.print(Text(f"\n{heading}", style="bold"))
        for line in lines:
            console.print(Text(for_the_shell(line, folder)))
    if folder is not None and verdict.next:
        console.print(Text("\nNext", style="bold"))
        for command, text in verdict.commands(folder).items():
            shown = fitted_again(command, sys.argv[1:]) + content * command.startswith("crowdppl next-gold ")
            console.print(Text.assemble((shown, "cyan"), f"  # {text}"), soft_wrap=True)


def frame_table(frame: pd.DataFrame, title: str | None = None) -> Table:
    """Return a frame as a table; the columns `x_low` and `x_high`, or `low` and `high`, become one of intervals.

    Where not all columns fit, the last ones are left out, which the caption says: no number is cut.

    Args:
        frame: the rows.
        title: above the table.
    """
    from rich.text import Text

    shown, left_out = _fitting(frame, _columns(frame))
    table = _filled(frame, shown, title)
    names = "; ".join(column.name.replace("_", " ") for column in left_out if column.of == column.name)
    if names:
        table.caption, table.caption_justify = Text(f"a wider terminal shows {names}", style="dim"), "left"
    return table


def frame_tables(frame: pd.DataFrame, title: str, *, interval: float | None = None) -> Iterator[Table]:
    """Yield a frame as one table, or, where not all columns fit, as several one below the other.

    Args:
        frame: the rows.
        title: above the first table; that of the others says that they go on.
        interval: mass of the intervals; None for the one that fits have.
    """
    columns = _columns(frame, interval)
    shown, left = _fitting(frame, columns)
    yield _filled(frame, shown, title)
    while left:
        shown, rest = _fitting(frame, left)
        if not shown:  # one score is wider than the terminal
            shown = [column for column in left if column.of == left[0].of]
            rest = left[len(shown) :]
        left = rest
        yield _filled(frame, shown, f"{title.partition(', ')[0]}, more columns")


def _fitting(frame: pd.DataFrame, columns: Sequence[_Column]) -> tuple[list[_Column], list[_Column]]:
    """The columns that fit beside the rows' names, each score with its interval, and those that do not."""
    index = list(map(name_text, frame.index))
    columns = [column for column in columns if column.cells or not len(frame)]
    head = name_text(tuple(frame.index.names))
    room = stdout().width - EDGES - _width(head, index, fold=MOST_NAME)
    shown: list[_Column] = []
    for at, column in enumerate(columns):
        together = [column, *(other for other in columns[at + 1 : at + 2] if other.of == column.of)]
        if column.of not in {other.of for other in shown} and sum(map(_needed, together)) > room:
            break
        shown.append(column)
        room -= _needed(column)
    return shown, columns[len(shown) :]


def _filled(frame: pd.DataFrame, columns: Sequence[_Column], title: str | None) -> Table:
    """The table; where whole headings do not fit, numbers have the width they need, and no column is cut for another's.

    Left to itself rich narrows the widest column first, below the width that its numbers need.
    """
    from rich.text import Text

    index = _width(name_text(tuple(frame.index.names)), list(map(name_text, frame.index)), fold=MOST_NAME)
    whole = sum(max(_needed(column), len(column.heading) + GAP) for column in columns)
    is_narrow = EDGES + index + whole > stdout().width
    table = make_table(title)
    table.add_column(name_text(tuple(frame.index.names)), overflow="fold", max_width=MOST_NAME)
    for column in columns:
        side: Literal["left", "right"] = "right" if column.is_number else "left"
        least = _needed(column) - GAP
        fixed = least if is_narrow and column.is_number else None
        table.add_column(column.heading, justify=side, overflow="fold", min_width=least, width=fixed)
    for row in zip(map(name_text, frame.index), *(column.cells for column in columns), strict=True):
        table.add_row(*map(Text, row))
    return table


class _Column(NamedTuple):
    """Content of a column: a score, or a score's intervals."""

    name: str
    of: str  # the column whose interval it is, or itself
    heading: str
    cells: list[str]
    is_number: bool


NONE = "–"
"""A number that there is none of."""

GAP = 3  # characters between columns
EDGES = 2  # and beside the table
MOST_NAME = 30  # a row's name is folded beyond it
MOST_TEXT = 40  # and a column's text


def _columns(frame: pd.DataFrame, interval: float | None = None) -> list[_Column]:
    from pandas.api.types import is_numeric_dtype

    from ..inference.fitted.intervals import INTERVAL

    heading = f"{interval or INTERVAL:.0%} interval"
    frame = frame.set_axis(list(map(str, frame.columns)), axis=1)
    found: list[_Column] = []
    for name in frame.columns:
        if name.endswith("high") or (len(frame) and frame[name].isna().all()):
            continue
        if name.endswith("low"):
            stem = name.removesuffix("low")
            bounds = zip(frame[name], frame[f"{stem}high"], strict=True)
            cells = [interval_text(*pair) for pair in bounds]
            found.append(_Column(name, stem.rstrip("_") or name, heading, cells, True))
        else:
            cells = [_cell(value) for value in frame[name].tolist()]
            is_number = is_numeric_dtype(frame[name])
            found.append(_Column(name, name, name.replace("_", " "), cells, is_number))
    return found


def _needed(column: _Column) -> int:
    return _width(column.heading, column.cells, fold=None if column.is_number else MOST_TEXT)


def _width(heading: str, cells: Sequence[str], fold: int | None = None) -> int:
    """Characters that a column takes with its gap: its longest cell whole, and the longest word of its heading."""
    from rich.cells import cell_len

    longest = max(map(cell_len, cells), default=0)
    longest = longest if fold is None else min(longest, fold)
    return max(longest, *(cell_len(word) for word in heading.split() or [""])) + GAP


def make_table(title: str | None = None, *heads: str, right: Collection[str] = ()) -> Table:
    """Return a table without rows in the style that all tables share.

    Args:
        title: above it.
        heads: of its columns.
        right: those of them that are set right.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    heading: str | Text | None = title
    if title is not None and len(title) < stdout().width:  # else rich folds it to the columns' width
        heading = Text(title, no_wrap=True, overflow="ignore")
    made = Table(title=heading, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for head in heads:
        made.add_column(head, justify="right" if head in right else "left", overflow="fold")
    return made


def interval_text(low: float, high: float) -> str:
    """Return an interval as numbers of its kind are shown: 0.267–0.487, 1–3, and -0.120 to 0.035 beside a minus.

    Where there is none it is a dash, as a number that is none is.
    """
    if math.isnan(low) and math.isnan(high):
        return NONE
    return f"{_cell(low)}{' to ' if low < 0 else '–'}{_cell(high)}"


def _cell(value: object) -> str:
    if isinstance(value, float) and math.isnan(value):
        return NONE
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def written_in(began: float) -> str:
    """Return the heading of files that were written since a time by `time.perf_counter`."""
    return f"Written in {time.perf_counter() - began:.1f} s:"


def show_files(files: Mapping[str, str], console: Console, heading: str) -> None:
    """Print a heading, the paths of files, and what is in each; nothing where there are none."""
    from rich.table import Table
    from rich.text import Text

    if not files:
        return
    console.print(Text(f"\n{heading}", style="bold"))
    table = Table.grid(padding=(0, 2))
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for path, content in files.items():
        table.add_row(Text(path, style="cyan"), content)
    console.print(table)
