"""Progress on standard error: a line with a spinner, and a bar for work that comes in steps.

Nothing is shown, and Rich is not imported, where nobody asks for it. Where standard error is neither a terminal nor a
notebook, nothing is written. Of several threads one at a time is shown.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from threading import get_ident
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from .notebook_progress import NotebookLine

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")

STARTING, COMPILING = "starting", "compiling (the first time for data of this size)"
LOWERED, COMPILED = "jaxpr_to_mlir_module_duration", "backend_compile_duration"  # ends of JAX's events before and after

PATIENCE = 2.0  # seconds of work without a bar
_silent: list[int] = []  # threads within a block of doing() that shows nothing
_shown: list[_Line] = []  # the innermost last: the only one that is seen


@contextmanager
def doing(what: str, *, show: bool = True) -> Iterator[None]:
    """Say on standard error what is being done while the block runs, and when it compiles a program.

    Where that is not shown, no :func:`late_bar` within the block is.
    """
    thread = get_ident()
    if not show:
        _silent.append(thread)
    try:
        with _line(what, None, show=show):
            yield
    finally:
        if not show:
            _silent.remove(thread)


@contextmanager
def progress_bar(name: str, total: int, *, show: bool) -> Iterator[Callable[[int, str], None]]:
    """Show a bar on standard error while the block runs; call what it yields with (steps done, what to say).

    Until the first step is done there is no share to show, and the bar says whether a program is being compiled.
    Within a block of :func:`doing` the bar bears the name of that.
    """
    with _line(_shown[-1].what if _shown else name, total, show=show) as line:
        yield line.tell if line else lambda done, note: None


@contextmanager
def late_bar(name: str, *, show: bool = True) -> Iterator[Callable[[int, int], None]]:
    """Show a bar once the block has run for :data:`PATIENCE`; call what it yields with (steps done, steps in all).

    It is for what follows a fit, most of which is done before anybody waits.
    """
    began, is_silent = monotonic(), get_ident() in _silent
    bars: list[Callable[[int, str], None]] = []
    with ExitStack() as stack:

        def tell(done: int, total: int) -> None:
            if not show or is_silent or (not bars and (done >= total or monotonic() - began < PATIENCE)):
                return
            if not bars:
                bars.append(stack.enter_context(progress_bar(name, total, show=True)))
            bars[0](done, "")

        yield tell


def told(things: Iterable[T], n: int, tell: Callable[[int, int], None]) -> Iterator[T]:
    """Things one by one, of which a bar is told how many of the ``n`` are done with."""
    for done, thing in enumerate(things):
        tell(done, n)
        yield thing


class _Line:
    """The line of one piece of work."""

    def __init__(self, what: str, total: int | None, live: Progress | NotebookLine) -> None:
        self.what, self.live, self.begun, self.thread = what, live, False, get_ident()
        self.total = total
        self.task: Any = live.add_task(what, total=None, steps="", note=STARTING if total else "")

    def tell(self, done: int, note: str) -> None:
        """Say how many steps are done."""
        self.begun = self.begun or done > 0
        if self.begun:
            steps = f"{done:,}/{self.total:,}"
            self.live.update(self.task, total=self.total, completed=done, steps=steps, note=note)

    def compiles(self, now: bool) -> None:
        """Say whether a program is being compiled."""
        if not self.begun:
            self.live.update(self.task, note=COMPILING if now else STARTING if self.total else "")


@contextmanager
def _line(what: str, total: int | None, *, show: bool) -> Iterator[_Line | None]:
    """Show a line instead of the one around it, until the block ends."""
    live = _live(bar=total is not None) if show else None
    if live is None or (_shown and _shown[-1].thread != get_ident()):
        yield None
        return
    _listen_to_jax()
    if _shown:
        _shown[-1].live.stop()
    line = _Line(what, total, live)
    _shown.append(line)
    live.start()
    try:
        yield line
    finally:
        live.stop()
        _shown.remove(line)
        if _shown:
            _shown[-1].live.start()


def _live(*, bar: bool) -> Progress | NotebookLine | None:
    """Return Rich's progress in a terminal, a line in a notebook, None where nobody would see it."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if console.is_jupyter:
        return NotebookLine()
    if not console.is_interactive:
        return None
    text, steps, note = (TextColumn(f"{{task.{name}}}") for name in ("description", "fields[steps]", "fields[note]"))
    if bar:
        columns: tuple[Any, ...] = (text, BarColumn(), steps, TimeElapsedColumn(), TimeRemainingColumn(), note)
    else:
        columns = (SpinnerColumn(), text, note, TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True)


def _listen_to_jax() -> None:
    """Hear, once JAX is imported, of programs that it is about to compile or has compiled."""
    if "jax" in sys.modules:
        _register()


@cache
def _register() -> None:
    from jax.monitoring import register_event_duration_secs_listener

    def hear(event: str, duration_secs: float, **kwargs: str | int) -> None:
        with suppress(IndexError):
            if event.endswith(LOWERED):
                _shown[-1].compiles(True)
            elif event.endswith(COMPILED):
                _shown[-1].compiles(False)

    register_event_duration_secs_listener(hear)
