"""Progress on standard error, or in a notebook: a line with a spinner, and a bar for work that comes in steps.

Nothing is shown, and Rich is not imported, where nobody asks for it. Where standard error is neither a terminal nor a
notebook, nothing is written; a notebook's line is written over, and needs nothing but IPython. Of several threads one
at a time is shown.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from threading import get_ident
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from markupsafe import Markup

EVERY = 0.2  # seconds between two updates, at the least
WIDTH = 160  # of the bar, in pixels

_of_cell: dict[str, Any] = {}  # the display of the cell that runs: several fits, and what they start from, share it


class NotebookLine:
    """Progress of one piece of work in a notebook, with the methods of Rich's ``Progress``."""

    def __init__(self) -> None:
        self._now: dict[str, Any] = {}
        self._begun = monotonic()
        self._written = 0.0
        self._seen = False

    def add_task(self, what: str, **fields: Any) -> int:
        """Say what is done; there is one."""
        self._now = {"what": what, **fields}
        return 0

    def update(self, task: int, **fields: Any) -> None:
        """Change what is said: total, completed, steps, note."""
        self._now |= fields
        if self._seen and monotonic() - self._written >= EVERY:
            self._write()

    def start(self) -> None:
        """Show the line."""
        self._seen = True
        self._write()

    def stop(self) -> None:
        """Leave an empty line."""
        self._seen = False
        _show({"text/plain": "", "text/html": ""})

    def _write(self) -> None:
        self._written = monotonic()
        steps, note = str(self._now.get("steps", "")), str(self._now.get("note", ""))
        elapsed = int(self._written - self._begun)
        parts = [str(self._now["what"]), steps, f"{elapsed // 60}:{elapsed % 60:02}", note]
        total, completed = self._now.get("total"), self._now.get("completed", 0)
        plain = "  ".join(part for part in parts if part)
        bar = Markup('<progress style="width:{}px" value="{}" max="{}"></progress>').format(WIDTH, completed, total)
        html = Markup("<div>{} <small>{}</small></div>").format(bar if total else "", plain)
        _show({"text/plain": plain, "text/html": str(html)})


def _show(said: dict[str, str]) -> None:
    """Write over the display of the cell that runs, or make it."""
    from IPython.core.getipython import get_ipython
    from IPython.display import display, update_display

    cell = getattr(get_ipython(), "execution_count", None)
    if _of_cell.get("cell") == cell:
        update_display(said, display_id=_of_cell["handle"].display_id, raw=True)
    elif any(said.values()):
        _of_cell.update(cell=cell, handle=display(said, raw=True, display_id=True))


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
