"""Spark's DataFrame as :class:`.Partitions`."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from .partitions import Map, n_partitions


class SparkPartitions:
    """A DataFrame of Spark."""

    engine = "Spark"

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.frame.columns)

    def select(self, names: Sequence[str]) -> SparkPartitions:
        """Return some of the columns."""
        quoted = ["`{}`".format(name.replace("`", "``")) for name in names]
        return SparkPartitions(self.frame.select(*quoted))

    def by(self, column: str, n_rows: int) -> SparkPartitions:
        """Return the rows shuffled into a few partitions: Spark's 200, each a task of its own, would take longer."""
        session = self.frame.sparkSession
        context = getattr(session, "sparkContext", None)
        slots = context.defaultParallelism if context else int(session.conf.get("spark.sql.shuffle.partitions"))
        quoted = "`{}`".format(column.replace("`", "``"))
        return SparkPartitions(self.frame.repartition(n_partitions(n_rows, slots), self.frame[quoted]))

    def map(self, function: Map, schema: pa.Schema) -> SparkPartitions:
        """Return the frame by ``mapInArrow``."""
        from pyspark.sql.pandas.types import from_arrow_schema

        return SparkPartitions(self.frame.mapInArrow(function, from_arrow_schema(schema)))

    def kept(self) -> SparkPartitions:
        """Return the frame persisted, in memory and on the disk, for as long as it is used."""
        kept = SparkPartitions(self.frame.persist())
        weakref.finalize(kept, kept.frame.unpersist).atexit = False
        return kept

    def collected(self) -> pa.Table:
        """Return the rows by ``toArrow``."""
        return self.frame.toArrow()
