"""Dask's DataFrame as :class:`.Partitions`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from .partitions import Map


class DaskPartitions:
    """A DataFrame of Dask, computed by threads, processes or a cluster, as Dask is told."""

    engine = "Dask"

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.frame.columns)

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

    def kept(self) -> DaskPartitions:
        """Return the frame persisted."""
        return DaskPartitions(self.frame.persist())

    def collected(self) -> pa.Table:
        """Return the rows by ``compute``."""
        return pa.Table.from_pandas(self.frame.compute(), preserve_index=False)


def _mapped(part: pd.DataFrame, function: Map, schema: pa.Schema) -> pd.DataFrame:
    rows = pa.Table.from_pandas(part, preserve_index=False).to_batches()
    return pa.Table.from_batches(function(iter(rows)), schema).to_pandas()
