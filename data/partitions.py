"""Frames of Spark, Dask and Ray behind one small protocol: partitions, which functions are mapped over and reduced.

The engine schedules, spills to the disk, and tries again what failed. A function goes to its processes pickled; it is
given the rows of one partition as Arrow's record batches, and gives record batches.
"""

from __future__ import annotations

import pickle
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import pandas as pd
import pyarrow as pa

T = TypeVar("T")
Map = Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]
A_PARTITION = 2**21  # rows at the most, which one process sorts in memory
A_TASK = 2**24  # rows at the most that a task of Spark adds up, batch by batch
VALUE = pa.schema({"value": pa.binary()})  # of a partition that is reduced


class PartitionsError(RuntimeError):
    """Spark, Dask or Ray gave up on a pass over the partitions; the message has the reason that it gave."""


class Partitions(ABC):
    """A frame of an engine, whose rows are in partitions.

    Args:
        frame: the engine's own.

    Attributes:
        engine: its name, for messages.
    """

    engine: str

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.frame.columns)

    @abstractmethod
    def select(self, names: Sequence[str]) -> Partitions:
        """Return some of the columns."""

    @abstractmethod
    def by(self, column: str, n_rows: int) -> Partitions:
        """Return the ``n_rows`` rows in partitions of which each value of a column is in one alone."""

    @abstractmethod
    def map(self, function: Map, schema: pa.Schema) -> Partitions:
        """Return what a function makes of each partition, with the columns of the schema."""

    @abstractmethod
    def kept(self, n_rows: int) -> Partitions:
        """Return what is made of ``n_rows`` rows, computed and kept by the engine, in memory or on its disks."""

    @abstractmethod
    def collected(self) -> pa.Table:
        """Return the rows of all partitions here."""


class DaskPartitions(Partitions):
    """A DataFrame of Dask, computed by threads, processes or a cluster, as Dask is told."""

    engine = "Dask"

    def select(self, names: Sequence[str]) -> DaskPartitions:
        """Return some of the columns."""
        return DaskPartitions(self.frame[list(names)])

    def by(self, column: str, n_rows: int) -> DaskPartitions:
        """Return the rows shuffled, in as many partitions as they were in."""
        return DaskPartitions(self.frame.shuffle(column))

    def map(self, function: Map, schema: pa.Schema) -> DaskPartitions:
        """Return the frame by ``map_partitions``."""
        meta = schema.empty_table().to_pandas()
        return DaskPartitions(self.frame.map_partitions(_mapped, function, schema, meta=meta))

    def kept(self, n_rows: int) -> DaskPartitions:
        """Return the frame persisted."""
        return DaskPartitions(self.frame.persist())

    def collected(self) -> pa.Table:
        """Return the rows by ``compute``."""
        return pa.Table.from_pandas(self.frame.compute(), preserve_index=False)


def _mapped(part: pd.DataFrame, function: Map, schema: pa.Schema) -> pd.DataFrame:
    rows = pa.Table.from_pandas(part, preserve_index=False).to_batches()
    return pa.Table.from_batches(function(iter(rows)), schema).to_pandas()


class SparkPartitions(Partitions):
    """A DataFrame of Spark."""

    engine = "Spark"

    def select(self, names: Sequence[str]) -> SparkPartitions:
        """Return some of the columns."""
        quoted = ["`{}`".format(name.replace("`", "``")) for name in names]
        return SparkPartitions(self.frame.select(*quoted))

    def by(self, column: str, n_rows: int) -> SparkPartitions:
        """Return the rows shuffled into a few partitions: Spark's 200, each a task of its own, would take longer."""
        quoted = "`{}`".format(column.replace("`", "``"))
        return SparkPartitions(self.frame.repartition(n_partitions(n_rows, self._slots), self.frame[quoted]))

    def map(self, function: Map, schema: pa.Schema) -> SparkPartitions:
        """Return the frame by ``mapInArrow``."""
        from pyspark.sql.pandas.types import from_arrow_schema

        return SparkPartitions(self.frame.mapInArrow(function, from_arrow_schema(schema)))

    def kept(self, n_rows: int) -> SparkPartitions:
        """Return the frame persisted, in memory and on the disk, for as long as it is used.

        It has as few partitions as there are slots, since a task takes longer to start than to add up a few batches.
        """
        kept = SparkPartitions(self.frame.coalesce(n_partitions(n_rows, self._slots, A_TASK)).persist())
        weakref.finalize(kept, kept.frame.unpersist).atexit = False
        return kept

    def collected(self) -> pa.Table:
        """Return the rows by ``toArrow``."""
        return self.frame.toArrow()

    @property
    def _slots(self) -> int:
        """The number of tasks that run at once; where Spark does not say, of partitions that it shuffles into."""
        session = self.frame.sparkSession
        context = getattr(session, "sparkContext", None)
        return context.defaultParallelism if context else int(session.conf.get("spark.sql.shuffle.partitions"))


class RayPartitions(Partitions):
    """A Dataset of Ray, whose blocks are the partitions."""

    engine = "Ray"

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.frame.columns())

    def select(self, names: Sequence[str]) -> RayPartitions:
        """Return some of the columns."""
        return RayPartitions(self.frame.select_columns(list(names)))

    def by(self, column: str, n_rows: int) -> RayPartitions:
        """Return the rows shuffled into blocks, as many as there are processors, or more of many rows."""
        import ray

        n_blocks = n_partitions(n_rows, int(ray.cluster_resources().get("CPU", 1)))
        return RayPartitions(self.frame.repartition(n_blocks, keys=[column]))

    def map(self, function: Map, schema: pa.Schema) -> RayPartitions:
        """Return the Dataset by ``map_batches``, of which each batch is a block."""

        def mapped(block: pa.Table) -> pa.Table:
            return pa.Table.from_batches(function(iter(block.to_batches())), schema)

        return RayPartitions(self.frame.map_batches(mapped, batch_size=None, batch_format="pyarrow"))

    def kept(self, n_rows: int) -> RayPartitions:
        """Return the Dataset materialised in the object store."""
        return RayPartitions(self.frame.materialize())

    def collected(self) -> pa.Table:
        """Return the rows of all blocks."""
        batches = list(self.frame.iter_batches(batch_size=None, batch_format="pyarrow"))
        return pa.concat_tables(batches, promote_options="default")


ADAPTERS: dict[str, tuple[str, type[Partitions]]] = {
    "pyspark": ("mapInArrow", SparkPartitions),
    "dask": ("map_partitions", DaskPartitions),
    "ray": ("map_batches", RayPartitions),
}
"""By the package of a frame's class: a method that its frames have, and what adapts them."""


def partitions_of(data: object) -> Partitions | None:
    """Return a frame of Spark, Dask or Ray as partitions, and None for anything else; no engine is imported."""
    package = type(data).__module__.partition(".")[0]
    if package not in ADAPTERS:
        return None
    method, adapter = ADAPTERS[package]
    return adapter(data) if hasattr(data, method) and hasattr(data, "columns") else None


def n_partitions(n_rows: int, n_slots: int, most: int = A_PARTITION) -> int:
    """Return how many partitions rows are in: as many for each of the engine's slots, of at most so many rows."""
    return n_slots * max(1, -(-n_rows // (most * n_slots)))


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
