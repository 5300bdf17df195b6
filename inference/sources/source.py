"""The protocol of a source: whole tasks in batches of one size, and sums over all of them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from ...data import Annotations

T = TypeVar("T")


class Source(Protocol):
    """Annotations as engines take them, wherever they are."""

    @property
    def like(self) -> Annotations:
        """Annotations with the structure of every batch: shapes, workers and classes."""

    @property
    def n_tasks(self) -> int:
        """N, the number of tasks."""

    @property
    def n_batches(self) -> int:
        """The number of batches in a pass."""

    def batches(self, order: Sequence[int] | np.ndarray | None = None, *, begin: int = 0) -> Iterator[Annotations]:
        """Yield whole tasks, in batches padded to one size.

        Args:
            order: positions of the batches; None for all of them as they come.
            begin: the place in the order of the first one to yield.
        """

    @staticmethod
    def refuses(option: str) -> str | None:
        """Return why a fit to this source does not take an option, with the mend; None where it does."""


def added(one: T, other: T) -> T:
    """Return the sum of two sums of one structure."""
    total: T = jax.tree.map(jnp.add, one, other)
    return total


def sum_over_batches(
    source: Source,
    add: Callable[..., T],
    zero: T,
    given: tuple[Any, ...] = (),
    *,
    begin: int = 0,
    after: Callable[[T, int], None] = lambda total, done: None,
    join: Callable[[T, T], T] = added,
) -> T:
    """Return a sum over all batches, no more than two of which are in memory: one pass over the data.

    Args:
        source: the data; where it has a method ``sum`` of its own, its batches are summed where they are.
        add: from a batch, the sum so far and what is given to the sum with the batch.
        zero: the sum over the batches before ``begin``.
        given: pytrees, such as the model and its parameters.
        begin: the first batch to add.
        after: called with the sum and the number of batches in it, after each batch.
        join: from the sums over two parts of the batches to that over both.
    """
    if (sum_in_place := getattr(source, "sum", None)) is not None:
        if begin < source.n_batches:
            zero = sum_in_place(add, zero, given, join)
            after(zero, source.n_batches)
        return zero
    for done, batch in enumerate(source.batches(begin=begin), start=begin + 1):
        zero = jax.block_until_ready(add(batch, zero, *given))
        after(zero, done)
    return zero
