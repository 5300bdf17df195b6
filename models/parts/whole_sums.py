"""Sums over all tasks that a story makes beside its density, where the data come in chunks of tasks.

A story's start or a derived quantity may need a sum over all annotations, such as how often each worker gave each
label. It says so by :func:`over_all`. On data in memory that changes nothing. On data in chunks, the story is run on
each chunk within :func:`collected`, which notes the chunk's sums, and then once more within :func:`given`, which puts
their totals in the place of the sums of whatever chunk it is run on.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

from jax import Array

from .contract import set_to

_noted: ContextVar[list[Array] | None] = ContextVar("noted", default=None)
_totals: ContextVar[Iterator[Array] | None] = ContextVar("totals", default=None)


def over_all(total: Array) -> Array:
    """A sum over tasks or rows: of all chunks, where the data come in chunks.

    It is called in the order of the story's lines, outside of loops and maps of JAX.

    Args:
        total: the sum over the tasks or rows of these annotations.
    """
    if (totals := _totals.get()) is not None:
        return next(totals)
    if (noted := _noted.get()) is not None:
        noted.append(total)
    return total


def collected() -> AbstractContextManager[list[Array]]:
    """Note the sums that are made in the block, in their order."""
    return set_to(_noted, [])


def given(totals: Sequence[Array]) -> AbstractContextManager[Any]:
    """Put totals in the place of the sums that are made in the block, in their order."""
    return set_to(_totals, iter(totals))
