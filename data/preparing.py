"""Parquet files of annotations, coded and sorted by task on the disk.

The rows are read once, in pieces that fit into memory. Each piece is coded, sorted by task and written as a *run*. Then
ranges of tasks, none larger than memory allows, are taken from all runs at once and appended to the final arrays: an
external merge sort, whose merge costs next to nothing where the files were sorted already. A run is kept when something
goes wrong later on, so that the next attempt goes on behind it.
"""

from __future__ import annotations

import errno
import json
import shutil
from bisect import bisect_left
from collections.abc import Iterator, Sequence
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
from .build import LARGEST_COUNT
from .errors import AnnotationError, StorageError
from .ids import Ids
from .kinds import MOST_CLASSES, fraction_text, is_fraction, sorted_labels, whole_as_integers
from .scan import File, Scan, size_text

BATCH = 2**20  # rows that are read at a time
LARGEST_RUN = 2**23  # rows of a run at the most
BYTES_A_ROW = 200  # of memory that sorting takes at the most, text of moderate length included
ARRAYS = {"worker": np.int32, "label": np.int16, "count": np.float32, "rows": np.int32}
"""The arrays of a prepared folder: a value for each row, and ``rows`` how many of them each task has."""


class Coder:
    """Identifiers as numbers, in the order in which they come.

    Args:
        values: those that came before.
    """

    def __init__(self, values: Sequence[Any] = ()) -> None:
        self.codes: dict[Any, int] = {value: code for code, value in enumerate(values)}

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
class Progress:
    """How far the files have been read, and the identifiers found there."""

    runs: list[Path] = field(default_factory=list)
    file: int = 0  # the file to read next
    row: int = 0  # and its row
    workers: Coder = field(default_factory=Coder)
    labels: Coder = field(default_factory=Coder)
    saved_workers: int = 0  # how many of the workers are written beside the runs

    @property
    def sizes(self) -> tuple[int, int]:
        """How many workers and labels are known."""
        return len(self.workers.codes), len(self.labels.codes)

    def forget(self, sizes: tuple[int, int]) -> None:
        """Go back to when so many workers and labels were known."""
        self.workers, self.labels = Coder(self.workers.values[: sizes[0]]), Coder(self.labels.values[: sizes[1]])


def prepare(scan: Scan, folder: Path) -> Path:
    """Return the folder of the scan's prepared arrays below ``folder``, made where it is not there yet.

    Args:
        scan: what to prepare.
        folder: where to; it is made where there is none.

    Raises:
        AnnotationError: a value cannot be used; the message names file, row group, row, column and value. What was
            read before it is kept for the next attempt.
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
                runs = folder / f".runs-{scan.way}"
                runs.mkdir(exist_ok=True)
                progress = _read_runs(scan, runs)
                with whole_folder(done, overwrite=True) as final:
                    _merge(scan, progress, final)
                shutil.rmtree(runs)
    return done


def run_rows(memory: int) -> int:
    """Rows of a run, or of a range of the merge, for this limit of memory."""
    return int(np.clip(memory // (4 * BYTES_A_ROW), 2**12, LARGEST_RUN))


def _read_runs(scan: Scan, folder: Path) -> Progress:
    """Write all rows as sorted runs; those of an earlier attempt are taken as they are.

    Where a file has a value that cannot be used, the rows of the files before it are written first.
    """
    progress = _earlier(scan, folder)
    most = run_rows(scan.memory)
    held: list[pa.RecordBatch] = []
    for number, file in list(enumerate(scan.files))[progress.file :]:
        whole, known = len(held), progress.sizes
        start = progress.row if number == progress.file else 0
        try:
            _refuse_changed(file)
            for first, batch in _batches(file, scan, start):
                if len(coded := _coded(batch, first, file, scan, progress)):
                    held.append(coded)
                progress.file, progress.row = number, first + len(batch)
                if sum(map(len, held)) >= most:
                    _write_run(held, scan, progress, folder)
                    held, whole = [], 0
        except AnnotationError:
            if whole:
                progress.forget(known)
                progress.file, progress.row = number, 0
                _write_run(held[:whole], scan, progress, folder)
            raise
        progress.file, progress.row = number + 1, 0
    if held:
        _write_run(held, scan, progress, folder)
    if not progress.runs:
        raise AnnotationError(f"missing='drop' leaves no row: each of the {scan.n_rows:,} lacks a value")
    return progress


def _refuse_changed(file: File) -> None:
    about = file.path.stat() if file.path.exists() else None
    if about is None or (about.st_size, about.st_mtime_ns) != (file.size, file.modified):
        raise AnnotationError(f"{file.path} has changed since it was scanned; scan again")


def _batches(file: File, scan: Scan, start: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of a file from ``start`` on, each batch with the position of its first row in the file."""
    names = list(scan.columns.values())
    try:
        with pq.ParquetFile(file.path, memory_map=False, pre_buffer=False) as opened:
            first = 0
            for group in range(opened.num_row_groups):
                behind = first + opened.metadata.row_group(group).num_rows
                if behind > start:
                    position = first
                    for batch in opened.iter_batches(BATCH, row_groups=[group], columns=names):
                        skipped = min(max(start - position, 0), len(batch))
                        if skipped < len(batch):
                            yield position + skipped, batch.slice(skipped)
                        position += len(batch)
                first = behind
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise
        raise AnnotationError(f"{file.path} cannot be read to its end: {error}") from error


def _coded(batch: pa.RecordBatch, first: int, file: File, scan: Scan, progress: Progress) -> pa.RecordBatch:
    """The rows with their workers and labels as numbers."""
    columns = {role: _plain(batch.column(name)) for role, name in scan.columns.items()}
    rows = np.arange(first, first + len(batch))
    if scan.missing == "drop":
        kept = np.logical_and.reduce([~_missing(values) for values in columns.values()])
        columns, rows = {role: values.filter(pa.array(kept)) for role, values in columns.items()}, rows[kept]
    for role, values in columns.items():
        _refuse_missing(values, role, rows, file, scan)
    coded = {"task": _as_tasks(columns["task"], file, scan)}
    if scan.named:
        coded["worker"] = pa.array(progress.workers(columns["worker"]))
    labels = progress.labels(columns["label"])
    if scan.classes is None and len(progress.labels.codes) > MOST_CLASSES:
        example = progress.labels.values[:2]
        raise AnnotationError(
            f"{file.path}, column {scan.columns['label']!r}: more than {MOST_CLASSES:,} distinct values, such as "
            f"{example[0]!r} and {example[1]!r}: it looks like an identifier, not like labels. If these are the "
            "classes, list them in classes=[...]"
        )
    if scan.classes is not None:
        _refuse_other_labels(labels, columns["label"], rows, file, scan, progress)
    elif (fractions := np.array([is_fraction(value) for value in progress.labels.values], bool)[labels]).any():
        value = columns["label"][int(np.argmax(fractions))].as_py()
        place = _place(rows[int(np.argmax(fractions))], "label", file, scan)
        raise AnnotationError(f"{place}: {fraction_text(value)}")
    coded["label"] = pa.array(labels.astype(np.int16))
    if "count" in columns:
        coded["count"] = pa.array(_counts(columns["count"], rows, file, scan))
    return pa.RecordBatch.from_pydict(coded)


def _plain(values: pa.Array) -> pa.Array:
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
        raise AnnotationError(f"{file.path}, column {name!r}: whole numbers of 64 bits are needed: {error}") from None


def _missing(values: pa.Array) -> np.ndarray:
    """Where a cell is empty or NaN."""
    return np.asarray(values.is_null(nan_is_null=True).to_numpy(zero_copy_only=False))


def _refuse_missing(values: pa.Array, role: str, rows: np.ndarray, file: File, scan: Scan) -> None:
    """Refuse an empty cell or a NaN."""
    missing = _missing(values)
    if missing.any():
        at = int(np.argmax(missing))
        raise AnnotationError(
            f"{_place(rows[at], role, file, scan)}: the value is missing ({values[at].as_py()!r}); fill it in, or "
            f"remove the row first ({missing.sum():,} such rows near here); missing='drop' leaves them out"
        )


def _refuse_other_labels(
    labels: np.ndarray, values: pa.Array, rows: np.ndarray, file: File, scan: Scan, progress: Progress
) -> None:
    """Refuse a label that is none of the classes given."""
    known = np.array([value in scan.classes for value in progress.labels.values])  # type: ignore[operator]
    if not known.all() and not known[labels].all():
        at = int(np.argmin(known[labels]))
        listing = ", ".join(map(repr, list(scan.classes or ())[:10]))
        raise AnnotationError(
            f"{_place(rows[at], 'label', file, scan)}: {values[at].as_py()!r} is not in classes=[{listing}]; add it "
            "to classes, or leave classes out to take all that there are"
        )


def _counts(values: pa.Array, rows: np.ndarray, file: File, scan: Scan) -> np.ndarray:
    counts = values.to_numpy(zero_copy_only=False).astype(np.float64)
    wrong = ~((counts >= 0) & (counts <= LARGEST_COUNT) & (np.floor(counts) == counts))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise AnnotationError(
            f"{_place(rows[at], 'count', file, scan)}: {values[at].as_py()!r} is no number of annotations; expected "
            f"a whole number from 0 to {LARGEST_COUNT:,}"
        )
    return counts.astype(np.float32)


def _place(row: int | np.integer, role: str, file: File, scan: Scan) -> str:
    """Say where a value is: file, row group, row and column."""
    footer, group, first = pq.read_metadata(file.path), 0, 0
    while group < footer.num_row_groups - 1 and first + footer.row_group(group).num_rows <= row:
        first += footer.row_group(group).num_rows
        group += 1
    return f"{file.path}, row group {group}, row {row}, column {scan.columns[role]!r}"


def _write_run(held: list[pa.RecordBatch], scan: Scan, progress: Progress, folder: Path) -> None:
    """Write the rows held, sorted by task, and how far the files have been read; both or nothing."""
    columns = {name: pa.concat_arrays([batch[name] for batch in held]) for name in held[0].schema.names}
    run = pa.RecordBatch.from_pydict(columns)
    if not in_order(run["task"]):
        run = run.take(pa.array(np.argsort(_ranks(run["task"]), kind="stable")))
    name = f"run-{len(progress.runs):05}"
    path = folder / f"{name}.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, run.schema) as writer:
        writer.write_batch(run)
    new = pa.table({"worker": pa.array(progress.workers.values[progress.saved_workers :])})
    pq.write_table(new, folder / f"{name}.ids")
    about = {
        "file": progress.file,
        "row": progress.row,
        "read": _read_so_far(scan, progress.file, progress.row),
        "labels": Ids(progress.labels.values).to_json(),
    }
    part = folder / f"{name}.part"
    part.write_text(json.dumps(about), encoding="utf-8")
    part.replace(folder / f"{name}.json")  # a run without this file is none
    progress.runs.append(path)
    progress.saved_workers = len(progress.workers.codes)


def _read_so_far(scan: Scan, file: int, row: int) -> str:
    """Of the files that have been read, the last one perhaps in part: what says whether they have changed since."""
    return repr([(str(one.path), one.size, one.modified) for one in scan.files[: file + (row > 0)]])


def _earlier(scan: Scan, folder: Path) -> Progress:
    """The runs that an earlier attempt has left, as far as the files that they are of have not changed."""
    progress, workers = Progress(), []
    while (about := folder / f"run-{len(progress.runs):05}.json").exists():
        found = json.loads(about.read_text(encoding="utf-8"))
        if found["read"] != _read_so_far(scan, found["file"], found["row"]):
            break
        progress.file, progress.row = found["file"], found["row"]
        progress.labels = Coder(list(Ids.from_json(found["labels"])))
        workers += pq.read_table(about.with_suffix(".ids"))["worker"].to_pylist()
        progress.runs.append(about.with_suffix(".arrow"))
    for later in sorted(folder.glob("run-*.json"))[len(progress.runs) :]:
        later.unlink()
    progress.workers, progress.saved_workers = Coder(workers), len(workers)
    return progress


def in_order(values: pa.Array) -> bool:
    """Whether values ascend, equal ones beside each other."""
    return len(values) < 2 or bool(pc.all(pc.less_equal(values[:-1], values[1:])).as_py())


def _ranks(values: pa.Array) -> np.ndarray:
    """The position of each value among the distinct ones in ascending order, (n,) int32."""
    encoded = values.dictionary_encode()
    ascending = pc.sort_indices(encoded.dictionary).to_numpy()
    rank = np.empty(len(ascending), np.int32)
    rank[ascending] = np.arange(len(ascending), dtype=np.int32)
    return rank[encoded.indices.to_numpy()]


def _merge(scan: Scan, progress: Progress, final: Path) -> None:
    """Append the rows of all runs, range of tasks by range, to the arrays in the folder ``final``."""
    labels = progress.labels.values
    if scan.classes is None:
        labels = whole_as_integers(pd.Series(labels, dtype=object)).to_list()
    classes = _classes(scan, labels)
    order = classes.index_of(labels)
    label_type = np.int8 if len(classes) <= 127 else np.int16
    names = [name for name in ARRAYS if name in scan.columns or name == "rows"]
    runs = [pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0) for path in progress.runs]
    by_worker = np.zeros(len(progress.workers.codes))
    by_label = np.zeros(len(classes))
    n_tasks = n_rows = most = 0
    files = {name: (final / name).open("wb") for name in names}
    tasks = pa.ipc.new_file(str(final / "task.ids"), pa.schema([runs[0].schema.field("task")]))
    try:
        for part in _ranges(runs, run_rows(scan.memory)):
            arrays, ids = _sorted_range(part)
            arrays["label"] = order[arrays["label"]].astype(label_type)
            weights = arrays.get("count")
            by_label += np.bincount(arrays["label"], weights, len(classes))
            if scan.named:
                by_worker += np.bincount(arrays["worker"], weights, len(by_worker))
            for name, file in files.items():
                arrays[name].tofile(file)
            tasks.write_batch(pa.RecordBatch.from_arrays([ids], ["task"]))
            n_tasks, n_rows = n_tasks + len(ids), n_rows + len(arrays["label"])
            most = max(most, int(arrays["rows"].max()))
    finally:
        tasks.close()
        for file in files.values():
            file.close()
    if not by_label.any():
        raise AnnotationError(f"column {scan.columns['count']!r} is 0 in every row: there is no annotation")
    pq.write_table(pa.table({"worker": pa.array(progress.workers.values)}), final / "worker.ids")
    np.save(final / "n_by_worker.npy", by_worker.astype(np.int64))
    about = {
        "fingerprint": scan.fingerprint,
        "tasks": n_tasks,
        "rows": n_rows,
        "most_rows": most,
        "arrays": {name: np.dtype(label_type if name == "label" else ARRAYS[name]).str for name in names},
        "classes": classes.to_json(),
        "by_class": by_label.tolist(),
    }
    (final / "about.json").write_text(json.dumps(about), encoding="utf-8")


def _classes(scan: Scan, labels: list[Any]) -> Ids:
    """The classes in their order: those given, or the labels used, sorted.

    Raises:
        AnnotationError: there is one class only.
    """
    if scan.classes is not None:
        return scan.classes
    if len(labels) == 1:
        raise AnnotationError(
            f"column {scan.columns['label']!r} holds a single class, {labels[0]!r}, in all {scan.n_rows:,} rows, so "
            "that there is nothing to infer; if there are classes that nobody used, list all in classes=[...]"
        )
    return Ids(sorted_labels(labels))


def _ranges(runs: list[pa.RecordBatch], most: int) -> Iterator[pa.Table]:
    """The rows of all runs from one task to another, in ascending order, ``most`` rows at a time and rarely more.

    Every so many rows of each run a task is noted; a range lies between two of these, so that no run has more of it
    than lies between its own notes. One task is never cut.
    """
    step = max(1, most // (2 * len(runs)))
    noted = sorted(run["task"][i].as_py() for run in runs for i in range(0, len(run), step))
    bounds = sorted(set(noted[len(runs) :: len(runs)]))
    starts = [0] * len(runs)
    for bound in [*bounds, None]:
        ends = [len(run) if bound is None else _first_from(run["task"], bound) for run in runs]
        parts = [run.slice(a, b - a) for run, a, b in zip(runs, starts, ends, strict=True) if b > a]
        if parts:
            yield pa.Table.from_batches(parts)
        starts = ends


def _first_from(tasks: pa.Array, bound: Any) -> int:
    """The position of the first task that is not below ``bound``."""
    return bisect_left(range(len(tasks)), bound, key=lambda i: tasks[i].as_py())


def _sorted_range(part: pa.Table) -> tuple[dict[str, np.ndarray], pa.Array]:
    """The arrays of a range of tasks, sorted by task, and its tasks."""
    columns = {name: pa.concat_arrays(part[name].chunks) for name in part.column_names}
    task = columns.pop("task")
    arrays = {name: values.to_numpy() for name, values in columns.items()}
    if not in_order(task):
        order = np.argsort(_ranks(task), kind="stable")
        task = task.take(pa.array(order))
        arrays = {name: values[order] for name, values in arrays.items()}
    runs = pc.run_end_encode(task, run_end_type=pa.int64())
    arrays["rows"] = np.diff(runs.run_ends.to_numpy(), prepend=0).astype(np.int32)
    return arrays, runs.values


def _refuse_full_disk(scan: Scan, folder: Path) -> None:
    """Refuse, before anything is written, a disk that has too little room."""
    needed = _bytes_needed(scan)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise StorageError(
            f"{folder}: about {size_text(needed)} are needed to sort {scan.n_rows:,} rows on the disk, and "
            f"{size_text(free)} are free; name a folder on another disk: scan(…, folder=…)"
        )


def _bytes_needed(scan: Scan) -> int:
    """Of runs and final arrays together; text is taken to be as long as it is in the files."""
    is_number = pa.types.is_integer(scan.files[0].types["task"])
    text = 0 if is_number else 2 * sum(file.size for file in scan.files)
    return scan.n_rows * (8 + 2 * (4 + 2 + 4)) + text


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
        raise StorageError(f"{folder} cannot be written: {advice}; what was prepared before is kept") from error
