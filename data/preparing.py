"""Parquet files of annotations, coded and sorted by task on the disk.

The rows are read once, in batches that fit into memory, and coded. DuckDB sorts what is coded, on the disk where memory
does not hold it, and gives it back in batches, of which whole tasks are appended to the final arrays. DuckDB sees
numbers and tasks alone: names of files and columns are no part of its query.
"""

import errno
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from filelock import FileLock

from .atomic import whole_folder
from .build import check_counts
from .columns import Column, not_listed
from .errors import AnnotationError, StorageError
from .ids import Ids
from .kinds import (
    MOST_CLASSES,
    Kind,
    fraction_text,
    is_fraction,
    kind_of,
    of_one_type,
    refuse_alphabet,
    single_class,
    sorted_labels,
    values_of_labels,
    whole_as_integers,
)
from .scan import File, Scan, as_text, size_text

BATCH = 2**17  # rows that are read at a time
SORTED_BATCH = 2**18  # rows that come back at a time
SHARE = 4  # of the memory allowed, DuckDB's limit is one part: it takes some 100 MiB beside it
LEAST_MEMORY = 2**26  # bytes, with which DuckDB sorts MANY rows; four times as many take twice the memory
MANY = 3e7
TEXT = 16  # bytes of a row's text, of a table that does not say how large it is
ARRAYS = {"worker": np.int32, "label": np.int16, "count": np.float32, "rows": np.int32}
"""The arrays of a prepared folder: a value for each row, and ``rows`` how many of them each task has."""

Place = Callable[[int, str], str]
"""Says where the value of a row and a role is in its file: row group, row and column."""


class Coder:
    """Identifiers as numbers, in the order in which they come."""

    def __init__(self) -> None:
        self.codes: dict[Any, int] = {}

    def __call__(self, values: pa.Array) -> np.ndarray:
        """Return the number of each value, (n,) int32."""
        encoded = values.dictionary_encode()
        listed = encoded.dictionary.to_pylist()
        codes = np.fromiter((self.codes.setdefault(value, len(self.codes)) for value in listed), np.int32, len(listed))
        return codes[encoded.indices.to_numpy(zero_copy_only=False)]

    @property
    def values(self) -> list[Any]:
        """The identifiers in the order of their numbers."""
        return list(self.codes)


@dataclass
class Names:
    """The identifiers of the rows that were read so far."""

    workers: Coder = field(default_factory=Coder)
    labels: Coder = field(default_factory=Coder)


def prepare(scan: Scan, folder: Path) -> Path:
    """Return the folder of the scan's prepared arrays below ``folder``, made where it is not there yet.

    Args:
        scan: what to prepare.
        folder: where to; it is made where there is none.

    Raises:
        AnnotationError: a value cannot be used; the message names file, row group, row, column and value.
        StorageError: the disk is full or cannot be written to.
    """
    done = folder / f"prepared-{scan.fingerprint}"
    if (done / "about.json").exists():
        return done
    with _told_of_the_disk(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f".{done.name}.lock"):
            if not (done / "about.json").exists():
                _refuse_full_disk(scan, folder)
                with whole_folder(done, overwrite=True) as final, _told_of_the_disk(folder):
                    names = Names()
                    with _sorted_by_task(_coded_rows(scan, names), scan, final / "sorting") as batches:
                        _write(scan, names, batches, final)
    return done


def _coded_rows(scan: Scan, names: Names) -> Iterator[pa.RecordBatch]:
    """The rows of all files with their workers and labels as numbers, and their positions."""
    position = 0
    for file in scan.files:
        if file.path.stamp() != (file.size, file.modified):
            raise AnnotationError(f"{file.path} has changed since it was scanned; scan again")
        for first, batch in _batches(file, scan):
            coded = _coded(batch, first, file, scan, names)
            if len(coded):
                numbers = pa.array(np.arange(position, position + len(coded)))
                position += len(coded)
                yield coded.append_column("position", numbers)
    if not position:
        raise AnnotationError(f"missing='drop' leaves no row: each of the {scan.n_rows:,} lacks a value")


def _batches(file: File, scan: Scan) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of a file, each batch with the position of its first row in the file."""
    first = 0
    try:
        for batch in file.path.batches(list(scan.columns.values()), BATCH):
            yield first, batch
            first += len(batch)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise
        raise AnnotationError(f"{file.path} cannot be read to its end: {error}") from error


def _coded(batch: pa.RecordBatch, first: int, file: File, scan: Scan, names: Names) -> pa.RecordBatch:
    """The rows with their workers and labels as numbers."""
    columns = {role: plain_values(batch.column(name)) for role, name in scan.columns.items()}
    rows = np.arange(first, first + len(batch))
    if scan.missing == "drop":
        kept = np.logical_and.reduce([~missing_cells(values) for values in columns.values()])
        columns, rows = {role: values.filter(pa.array(kept)) for role, values in columns.items()}, rows[kept]

    def place(at: int, role: str) -> str:
        return _place(int(rows[at]), role, file, scan)

    for role, values in columns.items():
        _refuse_missing(values, role, place, file)
    coded = {"task": _as_tasks(columns["task"], file, scan)}
    if scan.named:
        coded["worker"] = pa.array(names.workers(columns["worker"]))
    labels = names.labels(columns["label"])
    _refuse_labels(labels, names.labels.values, place, file, scan)
    coded["label"] = pa.array(labels.astype(np.int16))
    if "count" in columns:
        counts = columns["count"].to_numpy(zero_copy_only=False)
        coded["count"] = pa.array(
            check_counts(counts, str(file.path), lambda at: place(at, "count")).astype(np.float32)
        )
    return pa.RecordBatch.from_pydict(coded)


def plain_values(values: pa.Array) -> pa.Array:
    """Values that a dictionary holds as themselves; text of one type."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_string(values.type) or pa.types.is_string_view(values.type):
        return values.cast(pa.large_string())
    return values


def _as_tasks(values: pa.Array, file: File, scan: Scan) -> pa.Array:
    if pa.types.is_large_string(values.type):
        return values
    try:
        return values.cast(pa.int64())
    except pa.ArrowInvalid as error:
        name = scan.columns["task"]
        raise AnnotationError(
            f"{file.path}, column {name!r}: whole numbers of 64 bits with a sign are needed: {error}; "
            f"{as_text(file.path, name)}"
        ) from None


def missing_cells(values: pa.Array) -> np.ndarray:
    """Return where a cell is empty, or NaN, (n,) of bool."""
    missing = values.is_null(nan_is_null=True)
    if pa.types.is_large_string(values.type):
        missing = pc.or_(missing, pc.equal(values, "").fill_null(False))
    return np.asarray(missing.to_numpy(zero_copy_only=False))


def _refuse_missing(values: pa.Array, role: str, place: Place, file: File) -> None:
    """Refuse an empty cell or a NaN."""
    missing = missing_cells(values)
    if missing.any():
        at = int(np.argmax(missing))
        raise AnnotationError(
            f"{file.path}, {place(at, role)}: the value is missing ({values[at].as_py()!r}); fill it in, or "
            f"remove the row first ({missing.sum():,} such rows near here); missing='drop' leaves them out"
        )


def _refuse_labels(codes: np.ndarray, labels: Sequence[Any], place: Place, file: File, scan: Scan) -> None:
    """Refuse labels that are none of the classes given or, where none are, fractions or identifiers."""
    refused = refused_labels(labels, scan, f"{file.path}, ")
    found = np.zeros(len(labels), bool)
    found[list(refused)] = True
    at = found[codes]
    if at.any():
        row = int(np.argmax(at))
        raise AnnotationError(f"{file.path}, {place(row, 'label')}: {refused[int(codes[row])]}")


def refused_labels(labels: Sequence[Any], scan: Scan, where: str) -> dict[int, str]:
    """Return by position the distinct labels that are none of the classes given or, where none are, fractions.

    Args:
        labels: distinct ones.
        scan: what says which classes there are.
        where: put before the column, for messages.

    Returns:
        what is wrong with each, and what would be accepted.

    Raises:
        AnnotationError: there are so many that they look like identifiers.
    """
    if scan.classes is None:
        if len(labels) > MOST_CLASSES:
            raise AnnotationError(
                f"{where}column {scan.columns['label']!r}: more than {MOST_CLASSES:,} distinct values, such as "
                f"{labels[0]!r} and {labels[1]!r}: it looks like an identifier, not like labels. If these are the "
                "classes, list them in classes=[...]"
            )
        return {at: fraction_text(value, merges=False) for at, value in enumerate(labels) if is_fraction(value)}
    labels, classes = as_listed(labels, scan.classes)
    unknown = ((at, value) for at, value in enumerate(labels) if value not in classes)
    return {at: not_listed(value, classes, scan.option) for at, value in unknown}


def as_listed(labels: Sequence[Any], classes: Ids) -> tuple[list[Any], Ids]:
    """Return labels and listed classes with whole numbers of one type, as of annotations in memory."""
    values = values_of_labels(pd.Series(labels, dtype=object), classes).to_list()
    return values, Ids(of_one_type(classes, values), what="classes")


def _place(row: int, role: str, file: File, scan: Scan) -> str:
    """Say where a value is in its file: row group, row and column."""
    footer, group, first = file.path.footer(), 0, 0
    if footer is None:
        return f"row {row}, column {scan.columns[role]!r}"
    while group < footer.num_row_groups - 1 and first + footer.row_group(group).num_rows <= row:
        first += footer.row_group(group).num_rows
        group += 1
    return f"row group {group}, row {row}, column {scan.columns[role]!r}"


@contextmanager
def _sorted_by_task(rows: Iterator[pa.RecordBatch], scan: Scan, folder: Path) -> Iterator[Iterator[pa.RecordBatch]]:
    """The rows by task and then by position, in batches of whole tasks; ``folder`` is for what memory does not hold.

    Raises:
        AnnotationError: as ``rows`` raises it.
        OSError: the disk is full.
    """
    import duckdb

    failures: list[BaseException] = []

    def told_of_failures(first: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        try:
            yield first
            yield from rows
        except BaseException as error:  # which DuckDB would put into words of its own
            failures.append(error)
            raise

    first = next(rows)
    columns = ", ".join(f'"{name}"' for name in first.schema.names if name != "position")
    settings: dict[str, Any] = {
        "memory_limit": f"{max(scan.memory // SHARE, int(LEAST_MEMORY * max(1, scan.n_rows / MANY) ** 0.5))}B",
        "temp_directory": str(folder),
        "threads": 1,  # each takes memory of its own
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    try:
        with duckdb.connect(":memory:", config=settings) as connection:
            connection.execute("SET enable_external_access = false")  # beside the folder above
            connection.register("rows", pa.RecordBatchReader.from_batches(first.schema, told_of_failures(first)))
            query = f'SELECT {columns} FROM "rows" ORDER BY "task", "position"'
            yield _of_whole_tasks(connection.sql(query).to_arrow_reader(SORTED_BATCH))
    except duckdb.Error as error:
        if failures:
            raise failures[0] from None
        if isinstance(error, duckdb.OutOfMemoryException):
            raise OSError(errno.ENOMEM, "too little memory to sort; give scan(…, memory=…) more") from error
        if isinstance(error, duckdb.IOException):
            raise OSError(errno.ENOSPC if "No space" in str(error) else errno.EIO, str(error)) from error
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _of_whole_tasks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the rows in batches of which none ends within a task."""
    held: pa.RecordBatch | None = None
    for batch in batches:
        held = batch if held is None else pa.concat_batches([held, batch])
        tasks = held["task"]
        last = int(tasks.index(tasks[-1]).as_py())
        if last:
            yield held[:last]
            held = held[last:]
    if held is not None:
        yield held


def classes_among(labels: Sequence[Any], scan: Scan, n_rows: int) -> tuple[Ids, Kind, np.ndarray]:
    """Return the classes of labels in their order, their kind, and the position of each label among them.

    Raises:
        AnnotationError: all labels are alike, or have no order where one is said to be.
    """
    title = f"column {scan.columns['label']!r}"
    if scan.classes is None:
        labels = whole_as_integers(pd.Series(labels, dtype=object)).to_list()
        if len(labels) == 1:
            raise single_class(title, labels[0], n_rows)
    kind, _ = kind_of(column := Column(title, np.arange(len(labels)), Ids(labels)), scan.classes, scan.ordered)
    if scan.ordered and scan.classes is None:
        refuse_alphabet(column)
    if scan.classes is None:
        classes = Ids(sorted_labels(labels))
    else:
        labels, classes = as_listed(labels, scan.classes)
    return classes, kind, classes.index_of(labels)


def _write(scan: Scan, names: Names, batches: Iterator[pa.RecordBatch], final: Path) -> None:
    """Append the rows, which are sorted by task, to the arrays in the folder ``final``."""
    classes, kind, order = classes_among(names.labels.values, scan, scan.n_rows)
    types = ARRAYS | {"label": np.int8 if len(classes) <= 127 else np.int16}
    types = {name: kind for name, kind in types.items() if name in scan.columns or name == "rows"}
    by_worker, by_label = np.zeros(len(names.workers.codes)), np.zeros(len(classes))
    n_tasks = n_rows = most = 0
    files = {name: (final / name).open("wb") for name in types}
    ids: pa.ipc.RecordBatchFileWriter | None = None
    try:
        for batch in batches:
            tasks = batch["task"].dictionary_encode()
            arrays = {name: batch[name].to_numpy() for name in types if name != "rows"}
            arrays |= {"label": order[arrays["label"]], "rows": np.bincount(tasks.indices.to_numpy())}
            weights = arrays.get("count")
            by_label += np.bincount(arrays["label"], weights, len(classes))
            if scan.named:
                by_worker += np.bincount(arrays["worker"], weights, len(by_worker))
            for name, file in files.items():
                arrays[name].astype(types[name]).tofile(file)
            ids = ids or pa.ipc.new_file(str(final / "task.ids"), pa.schema([("task", tasks.type.value_type)]))
            ids.write_batch(pa.RecordBatch.from_arrays([tasks.dictionary], ["task"]))
            n_tasks, n_rows = n_tasks + len(tasks.dictionary), n_rows + len(batch)
            most = max(most, int(arrays["rows"].max()))
    finally:
        for file in (*files.values(), *([] if ids is None else [ids])):
            file.close()
    if not by_label.any():
        raise AnnotationError(f"column {scan.columns['count']!r} is 0 in every row: there is no annotation")
    pq.write_table(pa.table({"worker": pa.array(names.workers.values)}), final / "worker.ids")
    np.save(final / "n_by_worker.npy", by_worker.astype(np.int64))
    about = {
        "fingerprint": scan.fingerprint,
        "tasks": n_tasks,
        "rows": n_rows,
        "most_rows": most,
        "arrays": {name: np.dtype(kind).str for name, kind in types.items()},
        "classes": classes.to_json(),
        "kind": kind.name,
        "by_class": by_label.tolist(),
    }
    (final / "about.json").write_text(json.dumps(about), encoding="utf-8")


def _refuse_full_disk(scan: Scan, folder: Path) -> None:
    """Refuse, before anything is written, a disk that has too little room; text is taken to be as long as in files."""
    is_number = pa.types.is_integer(scan.files[0].types["task"])
    text = 0 if is_number else 2 * sum(file.size or file.rows * TEXT for file in scan.files)
    needed = scan.n_rows * (16 + 2 * (4 + 2 + 4)) + text  # of what is sorted, and of the final arrays
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise StorageError(
            f"{folder}: about {size_text(needed)} are needed to sort {scan.n_rows:,} rows on the disk, and "
            f"{size_text(free)} are free; name a folder on another disk: scan(…, folder=…)"
        )


@contextmanager
def _told_of_the_disk(folder: Path) -> Iterator[None]:
    """Say of a disk that has become full what is to be done."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            advice = "the disk is full; make room, or name a folder on another disk: scan(…, folder=…)"
        else:
            advice = str(error.strerror or error)
        raise StorageError(f"{folder} cannot be written: {advice}") from error
