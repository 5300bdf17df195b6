"""Annotations in partitions of Spark, Dask or Ray as a source: each adds up its own batches."""

from collections.abc import Callable, Iterator
from functools import partial, reduce
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow as pa

from ...data.batch import Batch
from ...data.packed import Layout, PackedStore, pack
from ...data.partitions import Partitions, values_of
from ...data.scan import Scan
from ..densities.model import Model
from ..densities.ready_programs import use_program_cache
from .on_disk import LEAST_ROWS, Files, rows_within

T = TypeVar("T")
MOST_PACKED = 2**18
"""Rows of a packed batch at the most: larger ones are no faster, and an engine moves rows of a few megabytes best."""


class InPlace(NamedTuple):
    """The maker of batches of the packed ones of a partition, as a process of the engine needs it."""

    layout: Layout
    double: bool  # whether programs are in double precision, as here

    def batches(self, rows: Iterator[pa.RecordBatch]) -> Iterator[tuple[Batch, bytes]]:
        """Yield the batches of a partition, with the identifiers of their tasks where they are asked for."""
        use_program_cache()
        return self.layout.batches(rows)


def summed(
    place: InPlace, add: Callable[..., Any], zero: Any, given: tuple[Any, ...], rows: Iterator[pa.RecordBatch]
) -> Any:
    """Return the sum over the batches of a partition, or None of a partition without any."""
    total = None
    with jax.enable_x64(place.double):
        for batch, _ in place.batches(rows):
            total = jax.block_until_ready(add(batch, zero if total is None else total, *given))
    return None if total is None else on_host(total)


def mapped(
    place: InPlace, of_batch: Callable[..., pa.RecordBatch], given: tuple[Any, ...], rows: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield what a function makes of each batch of a partition and the identifiers of its tasks."""
    with jax.enable_x64(place.double):
        for batch, ids in place.batches(rows):
            yield of_batch(batch, ids, *given)


def on_host(tree: T) -> T:
    """Return a tree with arrays of NumPy's, which another process reads in the precision that they have."""

    def moved(leaf: Any) -> Any:
        is_key = isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return np.asarray(leaf) if isinstance(leaf, jax.Array) and not is_key else leaf

    found: T = jax.tree.map(moved, tree)
    return found


class Partitioned(Files):
    """Annotations that an engine keeps in partitions, as compiled programs take them there.

    Args:
        store: the annotations.
        model: the story.
    """

    store: PackedStore

    def __init__(self, store: PackedStore, model: Model) -> None:
        super().__init__(store, store.plan(), model)

    def sample(self, n_rows: int) -> None:
        """Return None: the annotations stay with the engine."""

    def sum(self, add: Callable[..., T], zero: T, given: tuple[Any, ...], join: Callable[[T, T], T]) -> T:
        """Return a sum over all batches; arguments are those of :func:`.sum_over_batches`.

        Raises:
            PartitionsError: the engine gave up.
        """
        packed = self.store.partitions.select(("key", "arrays"))
        parts: list[T] = values_of(packed, partial(summed, self._place, add, on_host(zero), on_host(given)))
        return reduce(join, parts)

    def map(self, of_batch: Callable[..., pa.RecordBatch], schema: pa.Schema, given: tuple[Any, ...]) -> Partitions:
        """Return a frame of what a function makes of each batch, the identifiers of its tasks, and what is given."""
        return self.store.partitions.map(partial(mapped, self._place, of_batch, on_host(given)), schema)

    @property
    def _place(self) -> InPlace:
        layout = self.store.layout(self.plan, with_names=self.with_names)
        return InPlace(layout, jnp.result_type(float) == np.float64)


def packed_by_its_engine(scan: Scan) -> PackedStore:
    """Return the annotations of a frame, packed in batches that fit into the memory of the engine's tasks."""
    return pack(scan, lambda n_classes: max(min(rows_within(scan.memory, n_classes), MOST_PACKED), LEAST_ROWS))
