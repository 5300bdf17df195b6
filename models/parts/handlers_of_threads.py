"""A stack of effect handlers for each thread, so that programs run in several threads at a time.

NumPyro keeps the handlers that are active in one list of the process. Two threads that run programs at the same time
would have each other's handlers, and end in an ``AssertionError`` or in each other's values.
"""

import sys
import threading
from collections.abc import Iterator, MutableSequence
from typing import Any

import numpyro.infer
import numpyro.primitives

NAME = "_PYRO_STACK"
"""Name of NumPyro's list in each module that uses it. It is private: a version without it is left as it is."""


class HandlersOfThreads(threading.local, MutableSequence):
    """A list that is another one in each thread, and starts empty there."""

    def __init__(self) -> None:
        self._own: list[Any] = []
        self.append, self.pop = self._own.append, self._own.pop  # type: ignore[method-assign]  # quick: sites need them

    def __getitem__(self, place: Any) -> Any:
        return self._own[place]

    def __setitem__(self, place: Any, handler: Any) -> None:
        self._own[place] = handler

    def __delitem__(self, place: Any) -> None:
        del self._own[place]

    def __len__(self) -> int:
        return len(self._own)

    def insert(self, index: int, value: Any) -> None:
        """Put a handler before the one at ``index``."""
        self._own.insert(index, value)

    def __reversed__(self) -> Iterator[Any]:  # the inherited one takes several calls of those above
        return reversed(self._own)


def use_handlers_of_threads() -> None:
    """Give NumPyro a stack of handlers for each thread; those that are active here stay."""
    shared = getattr(numpyro.primitives, NAME, None)
    if not isinstance(shared, list):
        return
    own = HandlersOfThreads()
    own.extend(shared)
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "numpyro" and getattr(module, NAME, None) is shared:
            setattr(module, NAME, own)
