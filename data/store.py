"""Annotations on the disk, sorted by task, that are read in batches of whole tasks, all of one size."""

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from .annotations import Annotations
from .batch import Batch, padded_batch
from .errors import StorageError, warn
from .ids import Ids
from .input_warnings import tell_order
from .kinds import KINDS, NOMINAL
from .preparing import prepare
from .scan import Scan

BY_TASK = ("rows",)  # arrays with a value for each task
BLOCK = 2**22  # tasks that are looked at together where batches are planned
RUNS = 64  # of tasks that follow each other, of which a sample is


class Slice(NamedTuple):
    """The tasks and the rows of a batch."""

    tasks: slice
    rows: slice


class Plan(NamedTuple):
    """The slices of the data that are read as batches."""

    slices: tuple[Slice, ...]
    n_rows: int  # of a batch, padded ones among them
    n_tasks: int
    asked: int  # rows of a batch that were asked for, which decide the rest


class Store:
    """Annotations in a folder of arrays, sorted by task. Made by :func:`open_store`.

    Args:
        folder: of the arrays.
        temporary: what removes the folder when nobody needs it any more; None where it stays.
    """

    def __init__(self, folder: Path, temporary: tempfile.TemporaryDirectory[str] | None = None) -> None:
        self.folder, self._temporary = folder, temporary
        about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
        self.fingerprint: str = about["fingerprint"]
        self.n_tasks: int = about["tasks"]
        self.n_rows: int = about["rows"]
        self.most_rows: int = about["most_rows"]
        self.classes = Ids.from_json(about["classes"])
        self.kind = KINDS[about.get("kind", NOMINAL.name)]
        self.by_class = np.array(about["by_class"])
        self._types = {name: np.dtype(kind) for name, kind in about["arrays"].items()}
        self._check()

    @property
    def named(self) -> bool:
        """True where it is known which worker gave which annotation."""
        return "worker" in self._types

    @property
    def once(self) -> bool:
        """True where every row counts once."""
        return "count" not in self._types

    @property
    def n_annotations(self) -> int:
        """The number of annotations, which is the sum of the counts where rows have counts."""
        return int(self.by_class.sum())

    @cached_property
    def workers(self) -> Ids:
        """The J identifiers, in the order in which they came; none where no worker is named."""
        return Ids(pq.read_table(self.folder / "worker.ids")["worker"].to_pylist(), what="workers")

    @cached_property
    def n_by_worker(self) -> np.ndarray:
        """The number of annotations of each worker, (J,) int64."""
        return np.load(self.folder / "n_by_worker.npy")

    def tasks(self, part: Slice) -> pd.Index:
        """Return the identifiers of a batch's tasks."""
        return pd.Index(self.task_values(part).to_pandas(), name="task")

    def task_values(self, part: Slice) -> pa.ChunkedArray:
        """Return the identifiers of a batch's tasks as an Arrow array."""
        whole = pa.ipc.open_file(pa.memory_map(str(self.folder / "task.ids"))).read_all()
        return whole["task"].slice(part.tasks.start, part.tasks.stop - part.tasks.start)

    def names(self) -> Annotations:
        """Return annotations without a row or a task, which have the identifiers of workers and classes."""
        none = np.zeros(0, np.int32)
        workers, classes = self.workers, self.classes
        worker = none if self.named else None
        return Annotations(none, worker, none, None, None, None, None, Ids(), workers, classes, kind=self.kind)

    def annotations(self, n_rows: int | None = None) -> Annotations:
        """Return annotations in memory: all of them, or of evenly spaced runs of tasks.

        Args:
            n_rows: about how many rows at the most; None for all of them.
        """
        runs = [slice(0, self.n_tasks)]
        if n_rows is not None and n_rows < self.n_rows:
            firsts = np.linspace(0, self.n_tasks, min(RUNS, self.n_tasks), endpoint=False).astype(int)
            length = max(1, int(n_rows / self.n_rows * self.n_tasks / len(firsts)))
            runs = [slice(first, first + length) for first in firsts.tolist()]
        parts = list(self._parts(runs))
        arrays = {
            name: np.concatenate([self._read(name, part.tasks if name in BY_TASK else part.rows) for part in parts])
            for name in self._types
        }
        return self.together(arrays, [name for part in parts for name in self.task_values(part).to_pylist()])

    def together(self, arrays: Mapping[str, np.ndarray], tasks: Iterable[Any]) -> Annotations:
        """Return the annotations that some tasks have, by their names and the arrays of all that is stored."""
        rows = arrays["rows"]
        return self.names().replace(
            task=np.repeat(np.arange(len(rows), dtype=np.int32), rows),
            worker=arrays["worker"].astype(np.int32) if self.named else None,
            label=arrays["label"].astype(np.int32),
            count=None if self.once else arrays["count"].astype(np.float32),
            tasks=Ids(tasks),
        )

    def _parts(self, runs: list[slice]) -> Iterator[Slice]:
        """Yield the tasks and rows of runs of tasks in ascending order, of a block at a time."""
        before = 0
        for first in range(0, self.n_tasks, BLOCK):
            stop = min(first + BLOCK, self.n_tasks)
            ends = np.append(before, before + self._read("rows", slice(first, stop)).cumsum(dtype=np.int64))
            for run in runs:
                low, high = max(run.start, first), min(run.stop, stop)
                if low < high:
                    yield Slice(slice(low, high), slice(int(ends[low - first]), int(ends[high - first])))
            before = int(ends[-1])

    def plan(self, n_rows: int) -> Plan:
        """Return a plan to read the data in batches of whole tasks, as even as they come.

        Args:
            n_rows: rows of a batch at the most; a task that has more makes all batches as large.
        """
        n_batches = -(-self.n_rows // n_rows)
        capacity = min(max(n_rows, self.most_rows), -(-self.n_rows // n_batches) + self.most_rows)
        slices, task, row, before = [], 0, 0, 0  # before the block
        for first in range(0, self.n_tasks, BLOCK):
            rows = self._read("rows", slice(first, min(first + BLOCK, self.n_tasks)))
            ends = before + rows.cumsum(dtype=np.int64)
            while ends[-1] - row > capacity:
                at = int(np.searchsorted(ends, row + capacity, side="right"))
                stop, end = first + at, int(ends[at - 1]) if at else before
                slices.append(Slice(slice(task, stop), slice(row, end)))
                task, row = stop, end
            before = int(ends[-1])
        slices.append(Slice(slice(task, self.n_tasks), slice(row, self.n_rows)))
        longest = max(part.tasks.stop - part.tasks.start for part in slices)
        return Plan(tuple(slices), capacity, longest + 1, n_rows)  # padded rows are of a padded task

    def batch(self, plan: Plan, number: int, *, with_names: bool = False) -> Batch:
        """Read a batch.

        Args:
            plan: the slices of the data.
            number: of the batch.
            with_names: whether the batch has the identifiers of workers and classes, or numbers in their place.
        """
        part = plan.slices[number]
        return padded_batch(
            {name: self._read(name, part.tasks if name in BY_TASK else part.rows) for name in self._types},
            size=(plan.n_rows, plan.n_tasks),
            first=part.tasks.start,
            workers=self.workers if with_names else Ids.range(len(self.n_by_worker)),
            classes=self.classes if with_names else Ids.range(len(self.classes)),
            kind=self.kind,
        )

    def batches(self, plan: Plan, numbers: Iterable[int] | None = None, *, with_names: bool = False) -> Iterator[Batch]:
        """Read one batch after the other; the next is read while one is worked on.

        Args:
            plan: the slices of the data.
            numbers: of the batches, in their order; all of them by default.
            with_names: as for :meth:`batch`.
        """
        with ThreadPoolExecutor(1) as reader:
            ahead = None
            for number in range(len(plan.slices)) if numbers is None else numbers:
                before, ahead = ahead, reader.submit(self.batch, plan, int(number), with_names=with_names)
                if before is not None:
                    yield before.result()
            if ahead is not None:
                yield ahead.result()

    def _check(self) -> None:
        """Refuse arrays that are not as long as they were written.

        Raises:
            StorageError: a file is missing or was cut short.
        """
        for name, kind in self._types.items():
            path = self.folder / name
            size = path.stat().st_size if path.exists() else -1
            expected = (self.n_tasks if name in BY_TASK else self.n_rows) * kind.itemsize
            if size != expected:
                what = "is missing" if size < 0 else f"has {size:,} bytes instead of {expected:,}"
                raise StorageError(f"{path} {what}; delete the folder {self.folder} to prepare the data anew")

    def _read(self, name: str, part: slice) -> np.ndarray:
        """A part of an array, read anew each time: what is mapped would count as memory that is used."""
        kind = self._types[name]
        return np.fromfile(self.folder / name, kind, part.stop - part.start, offset=part.start * kind.itemsize)


def open_store(scan: Scan, folder: Path | None = None) -> Store:
    """Return the scan's annotations, prepared where they are not yet; with a warning of the rows that are left out.

    Args:
        scan: what to prepare.
        folder: where to, if the scan names no folder; None for a temporary one.

    Raises:
        AnnotationError: a value cannot be used; see :func:`.prepare`.
        StorageError: the disk is full or cannot be written to.
    """
    where, temporary = scan.folder or folder, None
    if where is None:
        temporary = _temporary(scan)
        where = Path(temporary.name)
    store = Store(prepare(scan, where), temporary)
    tell_prepared(scan, store, scan.n_rows - store.n_rows, scan.n_rows)
    return store


def tell_prepared(scan: Scan, store: Store, left_out: int, n_rows: int) -> None:
    """Warn of the rows of all that are left out, and of classes that are ordered where nothing is said of it."""
    if left_out > 0:
        warn(f"missing='drop' left out {left_out:,} of {n_rows:,} rows, which lack a value")
    if scan.classes is None and scan.ordered is None and store.kind != NOMINAL:
        tell_order(f"column {scan.columns['label']!r}", store.classes)


def _temporary(scan: Scan) -> tempfile.TemporaryDirectory[str]:
    """Return the scan's temporary folder, which lives as long as the scan or what is prepared of it."""
    kept: dict[str, Any] = scan.__dict__
    if "_temporary" not in kept:
        kept["_temporary"] = tempfile.TemporaryDirectory(prefix="crowdppl-scan-")
    return kept["_temporary"]
