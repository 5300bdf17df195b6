"""Where the rows of a scan lie: Parquet files here or at a URL, and lazy tables of DuckDB, Polars and Arrow."""

import errno
import hashlib
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from .errors import AnnotationError, StorageError


class Stamp(NamedTuple):
    """Marks by which a file that has changed since it was looked at is told."""

    size: int  # bytes; 0 where it is not known
    version: int  # nanoseconds of the last change of a file here; else a number that changes with the content


class Origin(Protocol):
    """Rows of annotations, of which nothing is read until they are asked for; ``str`` is its name in messages."""

    def stamp(self) -> Stamp | None:
        """Return its size and version; None where it is not there any more."""

    def footer(self) -> pq.FileMetaData | None:
        """Return the footer of a Parquet file; None of what has none."""

    def schema(self) -> pa.Schema:
        """Return names and types of its columns."""

    def n_rows(self) -> int:
        """Return the number of its rows."""

    def batches(self, columns: list[str], n_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield its rows, about so many at a time."""


class ParquetFile:
    """A Parquet file in a folder of this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def stamp(self) -> Stamp | None:
        """Return size and time of change."""
        if not self.path.exists():
            return None
        about = self.path.stat()
        return Stamp(about.st_size, about.st_mtime_ns)

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """Yield what Arrow reads the file from."""
        yield self.path

    def footer(self) -> pq.FileMetaData:
        """Return the footer, of which alone is read."""
        with self.opened() as file:
            return pq.read_metadata(file)

    def schema(self) -> pa.Schema:
        """Return names and types of the columns."""
        return self.footer().schema.to_arrow_schema()

    def n_rows(self) -> int:
        """Return the number of rows."""
        return int(self.footer().num_rows)

    def batches(self, columns: list[str], n_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows, a row group after the other."""
        with self.opened() as file, pq.ParquetFile(file, memory_map=False, pre_buffer=False) as content:
            yield from content.iter_batches(n_rows, columns=columns)


class RemoteFile(ParquetFile):
    """A Parquet file at a URL, such as ``s3://bucket/a.parquet``, read in parts by fsspec.

    Args:
        system: fsspec's file system.
        place: of the file there.
    """

    def __init__(self, system: Any, place: str) -> None:
        self.system, self.place = system, place

    def __str__(self) -> str:
        return str(self.system.unstrip_protocol(self.place))

    def stamp(self) -> Stamp | None:
        """Return the size, and what the store says of the version."""
        with reached(str(self)):
            self.system.invalidate_cache()
            if not self.system.exists(self.place):
                return None
            version = hashlib.sha256(str(self.system.ukey(self.place)).encode()).digest()[:7]
            return Stamp(int(self.system.size(self.place)), int.from_bytes(version, "little"))

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """Yield what Arrow reads the file from."""
        with reached(str(self)), self.system.open(self.place, "rb") as file:
            yield file


class Table:
    """A table that is computed when it is read; of its content nothing is known before.

    Args:
        name: what it is.
        about: its schema, of all columns.
        counted: gives the number of its rows.
        read: gives the rows of some columns, about so many at a time.
    """

    def __init__(
        self,
        name: str,
        about: pa.Schema,
        counted: Callable[[], int],
        read: Callable[[list[str], int], Iterator[pa.RecordBatch]],
    ) -> None:
        self.name, self.about, self.counted, self.read = name, about, counted, read
        self._stamp = Stamp(0, uuid.uuid4().int >> 72)

    def __str__(self) -> str:
        return self.name

    def stamp(self) -> Stamp:
        """Return a number of its own, so that what is prepared of it is not taken for that of another table."""
        return self._stamp

    def footer(self) -> None:
        """There is none."""

    def schema(self) -> pa.Schema:
        """Return names and types of the columns."""
        return self.about

    def n_rows(self) -> int:
        """Return the number of rows, which are counted."""
        with reached(self.name):
            return int(self.counted())

    def batches(self, columns: list[str], n_rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        with reached(self.name):
            yield from self.read(columns, n_rows)


@contextmanager
def reached(name: str) -> Iterator[None]:
    """Say in one sentence of what cannot be reached why.

    Raises:
        AnnotationError: with the reason that the store or the query gave.
    """
    try:
        yield
    except (AnnotationError, StorageError, pa.ArrowInvalid, pa.ArrowTypeError, GeneratorExit):
        raise
    except FileNotFoundError:
        raise AnnotationError(f"there is no file {name}") from None
    except Exception as error:
        if getattr(error, "errno", None) == errno.ENOSPC:  # of our own disk, which is said elsewhere
            raise
        reason = " ".join(str(error).split()) or type(error).__name__
        raise AnnotationError(f"{name} cannot be read: {type(error).__name__}: {reason}") from error


def table_of(data: object) -> Table | None:
    """Return a relation of DuckDB, a LazyFrame of Polars or a Dataset of Arrow; None of anything else."""
    package, kind = type(data).__module__.partition(".")[0], type(data).__name__
    if package in ("duckdb", "_duckdb") and kind == "DuckDBPyRelation":
        return _of_duckdb(data)
    if package == "polars" and kind == "LazyFrame":
        return _of_polars(data)
    datasets = sys.modules.get("pyarrow._dataset")  # where nobody has imported it, nothing is of it
    if datasets is not None and isinstance(data, datasets.Dataset):

        def read(columns: list[str], n_rows: int) -> Iterator[pa.RecordBatch]:
            yield from data.to_batches(columns=columns, batch_size=n_rows)

        return Table("the Dataset of Arrow", data.schema, data.count_rows, read)
    return None


def _of_duckdb(relation: Any) -> Table:
    def read(columns: list[str], n_rows: int) -> Iterator[pa.RecordBatch]:
        quoted = ", ".join('"{}"'.format(name.replace('"', '""')) for name in columns)
        yield from relation.project(quoted).to_arrow_reader(n_rows)

    name = "the relation of DuckDB"
    with reached(name):
        about = relation.limit(0).to_arrow_table().schema
    return Table(name, about, lambda: relation.aggregate("count(*)").to_arrow_table()[0][0].as_py(), read)


def _of_polars(frame: Any) -> Table:
    import polars as pl

    def read(columns: list[str], n_rows: int) -> Iterator[pa.RecordBatch]:
        for part in frame.select(columns).collect_batches(chunk_size=n_rows, maintain_order=True):
            yield from part.to_arrow().to_batches()

    name = "the LazyFrame of Polars"
    if not hasattr(frame, "collect_batches"):
        raise AnnotationError(f"{name}: polars {pl.__version__} does not give it in batches; frame.sink_parquet a file")
    with reached(name):
        about = frame.head(0).collect().to_arrow().schema
    return Table(name, about, lambda: frame.select(pl.len()).collect().item(), read)


def remote_files(url: str) -> list[RemoteFile]:
    """Return the Parquet files at a URL: a file, a pattern, or a folder whose files are taken.

    Raises:
        AnnotationError: there is none, the store refuses, or what is needed to reach it is not installed.
    """
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise AnnotationError(f"{url}: URLs are read by fsspec: pip install 'crowdppl[remote]'") from None
    with reached(url):
        system, place = url_to_fs(url)
        system.invalidate_cache()
        if any(sign in place for sign in "*?["):
            found = system.glob(place)
        elif system.isdir(place):
            found = [path for path in system.find(place) if path.endswith(".parquet")]
        else:
            found = [place] if system.exists(place) else []
    if not found:
        raise AnnotationError(
            f"there is no file at {url}; give a Parquet file, a folder of them, or a pattern such as "
            "'s3://bucket/folder/*.parquet'"
        )
    return list(map(partial(RemoteFile, system), sorted(found)))
