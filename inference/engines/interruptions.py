"""Requests to end that reach a process while it computes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = "NUTS was interrupted"
"""How the warning begins that says how many draws there are."""


class Terminated(SystemExit):
    """The process was told to end; it does so with the status that shells know for the signal."""


@contextmanager
def terminable() -> Iterator[None]:
    """Have SIGTERM end the block by :class:`Terminated` instead of ending the process at once.

    Nothing changes where the program has a handler of its own, or the block does not run in the main thread.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _end(number: int, frame: FrameType | None) -> None:
    raise Terminated(128 + number)
