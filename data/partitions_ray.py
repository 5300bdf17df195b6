"""Ray's Dataset as :class:`.Partitions`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from .partitions import Map, n_partitions


class RayPartitions:
    """A Dataset of Ray, whose blocks are the partitions."""

    engine = "Ray"

    def __init__(self, frame: Any) -> None:
        self.frame = frame

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

    def kept(self) -> RayPartitions:
        """Return the Dataset materialised in the object store."""
        return RayPartitions(self.frame.materialize())

    def collected(self) -> pa.Table:
        """Return the rows of all blocks."""
        batches = list(self.frame.iter_batches(batch_size=None, batch_format="pyarrow"))
        return pa.concat_tables(batches, promote_options="default")
