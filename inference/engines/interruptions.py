"""Requests to end that reach a process while it computes."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_asked: list[int] = []  # signals that have come and have ended nothing yet


class Terminated(SystemExit):
    """The process was told to end; it does so with the status that shells know for the signal."""


@contextmanager
def terminable() -> Iterator[None]:
    """Have SIGTERM end the block by :class:`Terminated` instead of ending the process at once, and remember Ctrl-C.

    Python raises what a signal asks for wherever it is, and loses it where it is called back by another library or by
    the collector of garbage. So signals are remembered, and :func:`heed` raises those that were lost. Nothing changes
    where the program has handlers of its own, or the block does not run in the main thread.
    """
    ours: dict[signal.Signals, tuple[Any, Any]] = {
        signal.SIGTERM: (signal.SIG_DFL, _end),
        signal.SIGINT: (signal.default_int_handler, _interrupt),
    }
    is_main = threading.current_thread() is threading.main_thread()
    taken = {number: pair for number, pair in ours.items() if is_main and signal.getsignal(number) is pair[0]}
    heeded()
    for number, (_, handler) in taken.items():
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, (before, _) in taken.items():
            signal.signal(number, before)


def heed() -> None:
    """Raise what a signal asked for that was lost on its way.

    Raises:
        KeyboardInterrupt: by Ctrl-C.
        Terminated: by SIGTERM.
    """
    if _asked:
        (_interrupt if _asked.pop() == signal.SIGINT else _end)(signal.SIGTERM, None)


def heeded() -> None:
    """Forget the signals that have come, as they have ended something."""
    _asked.clear()


def _end(number: int, frame: FrameType | None) -> None:
    _asked.append(number)
    raise Terminated(128 + number)


def _interrupt(number: int, frame: FrameType | None) -> None:
    _asked.append(signal.SIGINT)
    raise KeyboardInterrupt
