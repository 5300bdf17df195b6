"""A progress bar for work that comes in chunks."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


@contextmanager
def progress_bar(name: str, total: int, *, show: bool) -> Iterator[Callable[[int, str], None]]:
    """Show a bar on standard error while the block runs; call what it yields with (steps done, what to say)."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not show) as bar:
        task = bar.add_task(name, total=total, note="")
        yield lambda done, note: bar.update(task, completed=done, note=note)
