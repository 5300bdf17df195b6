"""Frames of Spark, Dask and Ray behind one small protocol: partitions, which functions are mapped over and reduced.

The engine schedules, spills to the disk, and tries again what failed. A function goes to its processes pickled; it is
given the rows of one partition as Arrow's record batches, and gives record batches.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Protocol, TypeVar

import pyarrow as pa

T = TypeVar("T")
Map = Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]
A_PARTITION = 2**21  # rows at the most, which one process sorts in memory
VALUE = pa.schema({"value": pa.binary()})  # of a partition that is reduced


class PartitionsError(RuntimeError):
    """Spark, Dask or Ray gave up on a pass over the partitions; the message has the reason that it gave."""


class Partitions(Protocol):
    """A frame of an engine, whose rows are in partitions.

    Attributes:
        frame: the engine's own.
        engine: its name, for messages.
        columns: names of the columns.
    """

    frame: Any
    engine: str
    columns: list[str]

    def select(self, names: Sequence[str]) -> Partitions:
        """Return some of the columns."""

    def by(self, column: str, n_rows: int) -> Partitions:
        """Return the ``n_rows`` rows in partitions of which each value of a column is in one alone."""

    def map(self, function: Map, schema: pa.Schema) -> Partitions:
        """Return what a function makes of each partition, with the columns of the schema."""

    def kept(self) -> Partitions:
        """Return the rows computed, and kept where the engine keeps them, in memory or on its disks."""

    def collected(self) -> pa.Table:
        """Return the rows of all partitions here."""


ADAPTERS = {
    "pyspark": ("mapInArrow", ".partitions_spark", "SparkPartitions"),
    "dask": ("map_partitions", ".partitions_dask", "DaskPartitions"),
    "ray": ("map_batches", ".partitions_ray", "RayPartitions"),
}
"""By the package of a frame's class: a method that its frames have, and what adapts them."""


def partitions_of(data: object) -> Partitions | None:
    """Return a frame of Spark, Dask or Ray as partitions, and None for anything else; no engine is imported."""
    package = type(data).__module__.partition(".")[0]
    method, module, adapter = ADAPTERS.get(package, ("", "", ""))
    if not (method and hasattr(data, method) and hasattr(data, "columns")):
        return None
    found: Partitions = getattr(import_module(module, __package__), adapter)(data)
    return found


def n_partitions(n_rows: int, n_slots: int) -> int:
    """Return how many partitions rows are shuffled into: one for each of the engine's slots, or more of many rows."""
    return max(n_slots, -(-n_rows // A_PARTITION))


def values_of(partitions: Partitions, function: Callable[[Iterator[pa.RecordBatch]], T | None]) -> list[T]:
    """Return what a function makes of each partition, without the partitions of which it makes None.

    Raises:
        PartitionsError: the engine gave up.
    """
    with asked(partitions.engine):
        found = partitions.map(Pickled(function), VALUE).collected()
    return [pickle.loads(value) for value in found["value"].to_pylist()]


@contextmanager
def asked(engine: str) -> Iterator[None]:
    """Say of an engine that gave up what is to be done.

    Raises:
        PartitionsError: with its reason.
    """
    try:
        yield
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = next((line for line in lines if ":" in line and "Error" in line.partition(":")[0]), None)
        raise PartitionsError(
            f"{engine} gave up on a pass over the partitions: {reason or (lines or [type(error).__name__])[0]}; a fit "
            "with folder=… goes on from its last whole pass when the same call is made again"
        ) from error


class Pickled:
    """A function whose value for a partition is one row, pickled."""

    def __init__(self, function: Callable[[Iterator[pa.RecordBatch]], Any]) -> None:
        self.function = function

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the row, or none."""
        if (value := self.function(batches)) is not None:
            yield pa.record_batch([pa.array([pickle.dumps(value)], pa.binary())], schema=VALUE)
