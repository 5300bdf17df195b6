"""Annotations in partitions: coded, sorted by task, and packed into batches of whole tasks where the partitions are.

Two passes of the engine: one finds the distinct workers and labels, the other shuffles by task and packs. A packed
batch is one row of the engine's frame, with its arrays and the identifiers of its tasks as bytes.
"""

import hashlib
import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .annotations import Annotations
from .batch import Batch, padded_batch
from .build import check_counts
from .errors import AnnotationError
from .ids import Ids
from .kinds import Kind, sorted_labels
from .partitions import Partitions, asked, values_of
from .preparing import classes_among, missing_cells, plain_values, refused_labels
from .scan import KINDS, Scan, kind_of
from .store import Plan, Slice, Store, tell_prepared

AT_ONCE = 2**18  # rows that are counted at once
SIZES = ("key", "tasks", "rows")
PACKED = pa.schema([*((name, pa.int64()) for name in SIZES), ("arrays", pa.binary()), ("ids", pa.binary())])
"""Columns of packed batches."""


class Census(NamedTuple):
    """Numbers and names found in one pass over a partition's rows, before any is coded."""

    rows: int
    left_out: int  # rows that lack a value, where these are dropped
    lacking: Mapping[str, int]  # by role
    kinds: Mapping[str, set[str]]  # of values, by role
    workers: Counter[Any]  # annotations of each
    labels: Counter[Any]
    wrong_count: str | None


class Columns(NamedTuple):
    """The reader of the columns of a frame."""

    names: Mapping[str, str]  # by role
    drop: bool  # rows that lack a value

    def read(self, batch: pa.RecordBatch) -> tuple[dict[str, pa.Array], int]:
        """Return the columns by role, without what is left out, and how many rows those are."""
        columns = {role: plain_values(batch.column(name)) for role, name in self.names.items()}
        if not self.drop:
            return columns, 0
        kept = ~np.logical_or.reduce([missing_cells(values) for values in columns.values()])
        mask = pa.array(kept)
        return {role: values.filter(mask) for role, values in columns.items()}, int((~kept).sum())

    def counted(self, batches: Iterator[pa.RecordBatch]) -> Census | None:
        """Return the census of a partition; None where it is empty."""
        rows = left_out = 0
        lacking: Counter[str] = Counter()
        kinds: dict[str, set[str]] = {role: set() for role in self.names}
        of_workers: Counter[Any] = Counter()
        of_labels: Counter[Any] = Counter()
        wrong = None
        for batch in _of_many_rows(batches):
            columns, out = self.read(batch)
            left_out += out
            rows += len(columns["label"])
            for role, values in columns.items():
                lacking[role] += int(missing_cells(values).sum())
                if values.null_count < len(values):
                    kinds[role].add(kind_of(values.type))
            weight, problem = _weights(columns)
            wrong = wrong or problem
            if problem is None and not any(lacking.values()):
                of_labels.update(_totals(columns["label"], weight))
                if "worker" in columns:
                    of_workers.update(_totals(columns["worker"], weight))
        return Census(rows, left_out, lacking, kinds, of_workers, of_labels, wrong) if rows + left_out else None


def _of_many_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches of about :data:`AT_ONCE`; engines give them by the thousands."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(part.num_rows for part in waiting) >= AT_ONCE:
            yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
            waiting = []
    if waiting:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()


def _weights(columns: Mapping[str, pa.Array]) -> tuple[np.ndarray, str | None]:
    """Return how many annotations each row stands for, or what is wrong with a count."""
    if "count" not in columns:
        return np.ones(len(columns["label"])), None
    counts = columns["count"].to_numpy(zero_copy_only=False)
    tasks = columns["task"]
    try:
        return check_counts(counts, "", lambda row: f"a row of task {tasks[row].as_py()!r}"), None
    except AnnotationError as error:
        return counts, str(error).removeprefix(", ")


def _totals(values: pa.Array, weight: np.ndarray) -> dict[Any, int]:
    """Return the sum of the weights of each distinct value."""
    table = pa.table({"value": values, "weight": weight}).group_by("value").aggregate([("weight", "sum")])
    pairs = zip(table["value"].to_pylist(), table["weight_sum"].to_pylist(), strict=True)
    return {value: int(total) for value, total in pairs}


class Packing(NamedTuple):
    """The way in which the rows of a partition are coded and cut."""

    columns: Columns
    workers: pa.Array | None  # in the order of their numbers
    labels: pa.Array
    order: np.ndarray  # the class of each label
    n_rows: int  # of a batch at the most, unless one task has more

    def packed(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a partition, a row each."""
        parts = [self._coded(batch) for batch in batches]
        if not sum(map(len, parts)):
            return
        table = pa.concat_tables(parts)
        table = table.sort_by(
            [(name, "ascending") for name in ("task", "worker", "label") if name in table.column_names]
        )
        encoded = table["task"].combine_chunks().dictionary_encode()
        tasks, rows = encoded.dictionary, np.bincount(encoded.indices.to_numpy()).astype(np.int32)
        arrays = {name: table[name].to_numpy() for name in table.column_names if name != "task"}
        ends = rows.cumsum()
        task = row = 0
        n_left = -(-int(ends[-1]) // self.n_rows)
        while task < len(rows):
            aim = row + (int(ends[-1]) - row) / max(n_left, 1)
            stop = max(int(np.searchsorted(ends, aim, side="right")), task + 1)
            end = int(ends[stop - 1])
            some = {name: values[row:end] for name, values in arrays.items()}
            content = pickle.dumps({"rows": rows[task:stop], **some})
            ids = _as_bytes(tasks[task:stop])
            key = int.from_bytes(hashlib.sha256(ids + content).digest()[:8], "little") >> 1
            about = {"key": key, "tasks": stop - task, "rows": end - row, "arrays": content, "ids": ids}
            yield pa.RecordBatch.from_pylist([about], schema=PACKED)
            task, row, n_left = stop, end, n_left - 1

    def _coded(self, batch: pa.RecordBatch) -> pa.Table:
        """Return the rows with workers and labels as numbers."""
        columns, _ = self.columns.read(batch)
        task = columns["task"]
        coded = {"task": task.cast(pa.int64()) if pa.types.is_integer(task.type) else task}
        if self.workers is not None:
            found = pc.index_in(columns["worker"].cast(self.workers.type), value_set=self.workers)
            coded["worker"] = found
        labels = pc.index_in(columns["label"].cast(self.labels.type), value_set=self.labels)
        coded["label"] = pa.array(self.order[labels.to_numpy(zero_copy_only=False)].astype(np.int16))
        if "count" in columns:
            coded["count"] = columns["count"].cast(pa.float32())
        return pa.table(coded)


def _as_bytes(values: pa.Array) -> bytes:
    batch = pa.record_batch({"task": values})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def task_ids(ids: bytes) -> pa.ChunkedArray:
    """Return the identifiers of a packed batch's tasks."""
    return pa.ipc.open_stream(ids).read_all()["task"]


class Layout(NamedTuple):
    """Sizes and shapes by which each packed batch becomes a :class:`.Batch`, the same for all of them."""

    size: tuple[int, int]  # rows and tasks of each batch
    first: Mapping[int, int]  # by key the position of a batch's first task among all
    workers: Ids
    classes: Ids
    kind: Kind

    def batch(self, key: int, arrays: bytes) -> Batch:
        """Return a packed batch as compiled programs take it."""
        return padded_batch(
            pickle.loads(arrays),
            size=self.size,
            first=self.first[key],
            workers=self.workers,
            classes=self.classes,
            kind=self.kind,
        )

    def batches(self, rows: Iterator[pa.RecordBatch]) -> Iterator[tuple[Batch, bytes]]:
        """Yield the batches of a partition, each with the identifiers of its tasks where they are there."""
        for part in rows:
            for row in part.to_pylist():
                yield self.batch(row["key"], row["arrays"]), row.get("ids", b"")


def only(key: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the packed batch of a key, if the partition has it."""
    for batch in batches:
        yield batch.filter(pc.equal(batch["key"], key))


class PackedStore(Store):
    """Annotations that an engine keeps packed; what is known of them without a row is here. Made by :func:`pack`.

    Args:
        scan: of the frame.
        census: what the first pass found of all of its partitions.
        packed: the batches, kept.
        classes: in their order.
        kind: of the labels.
        workers: in the order of their numbers.
    """

    def __init__(
        self, scan: Scan, census: Census, packed: Partitions, classes: Ids, kind: Kind, order: np.ndarray, workers: Ids
    ) -> None:
        self.partitions = packed
        with asked(packed.engine):
            sizes = packed.select(SIZES).collected()
        self._keys, n_tasks, n_rows = (sizes[name].to_pylist() for name in SIZES)
        task, row = np.concatenate([[0], np.cumsum(n_tasks)]), np.concatenate([[0], np.cumsum(n_rows)])
        self._slices = tuple(
            Slice(slice(int(task[i]), int(task[i + 1])), slice(int(row[i]), int(row[i + 1])))
            for i in range(len(self._keys))
        )
        self.n_tasks, self.n_rows, self.most_rows = int(task[-1]), int(row[-1]), max(n_rows)
        self.classes, self.kind, self.workers = classes, kind, workers
        self.by_class = np.bincount(order, list(census.labels.values()), len(classes))
        self.n_by_worker = np.array([census.workers[worker] for worker in workers], np.int64)
        self._types = dict.fromkeys(scan.columns)  # type: ignore[assignment]  # whose names are all that is asked here
        about = (self._keys, repr(list(classes)), scan.missing, kind.name)
        self.fingerprint = hashlib.sha256(repr(about).encode()).hexdigest()[:16]
        self._last: tuple[int, dict[str, Any]] | None = None

    def plan(self, n_rows: int = 0) -> Plan:
        """Return the plan of the batches as they are packed, whatever size is asked for."""
        longest = max(part.tasks.stop - part.tasks.start for part in self._slices)
        return Plan(self._slices, self.most_rows, longest + 1, n_rows)

    def layout(self, plan: Plan, *, with_names: bool) -> Layout:
        """Return what the engine's processes need beside the batches: as of :meth:`.Store.batch`."""
        return Layout(
            (plan.n_rows, plan.n_tasks),
            {key: part.tasks.start for key, part in zip(self._keys, plan.slices, strict=True)},
            self.workers if with_names else Ids.range(len(self.workers)),
            self.classes if with_names else Ids.range(len(self.classes)),
            self.kind,
        )

    def batch(self, plan: Plan, number: int, *, with_names: bool = False) -> Batch:
        """Fetch a batch from the engine: :meth:`.Store.batch`."""
        row = self._row(number)
        return self.layout(plan, with_names=with_names).batch(row["key"], row["arrays"])

    def batches(self, plan: Plan, numbers: Iterable[int] | None = None, *, with_names: bool = False) -> Iterator[Batch]:
        """Fetch one batch after the other."""
        for number in range(len(plan.slices)) if numbers is None else numbers:
            yield self.batch(plan, int(number), with_names=with_names)

    def annotations(self, n_rows: int | None = None) -> Annotations:
        """Fetch all annotations from the engine, whatever number is asked for."""
        with asked(self.partitions.engine):
            rows = {row["key"]: row for row in self.partitions.collected().to_pylist()}
        batches = [pickle.loads(rows[key]["arrays"]) for key in self._keys]
        arrays = {name: np.concatenate([batch[name] for batch in batches]) for name in batches[0]}
        return self.together(arrays, [name for key in self._keys for name in task_ids(rows[key]["ids"]).to_pylist()])

    def task_values(self, part: Slice) -> pa.ChunkedArray:
        """Return the identifiers of a batch's tasks as an Arrow array."""
        return task_ids(self._row(self._slices.index(part))["ids"])

    def _row(self, number: int) -> dict[str, Any]:
        """Fetch a packed batch; the last one is kept here, since its tasks are asked for after it."""
        key = self._keys[number]
        if self._last is None or self._last[0] != key:
            with asked(self.partitions.engine):
                found = self.partitions.map(partial(only, key), PACKED).collected()
            self._last = key, found.to_pylist()[0]
        return self._last[1]

    def _check(self) -> None:
        """There are no files to look at."""


def pack(scan: Scan, n_rows: Any) -> PackedStore:
    """Return the annotations of a frame, packed by its engine; with a warning of the rows that are left out.

    Args:
        scan: of the frame.
        n_rows: from the number of classes to the rows of a batch at the most.

    Raises:
        AnnotationError: values are missing or cannot be used; the message names the column, and a value.
        PartitionsError: the engine gave up.
    """
    frame = scan.partitions
    assert frame is not None
    columns = Columns(scan.columns, scan.missing == "drop")
    frame = frame.select(list(scan.columns.values()))
    census = _merged(values_of(frame, columns.counted), scan.columns)
    where = f"the frame of {frame.engine}, "
    _refuse(census, scan, where)
    labels = sorted_labels(census.labels)
    if refused := refused_labels(labels, scan, where):
        raise AnnotationError(f"{where}column {scan.columns['label']!r}: {next(iter(refused.values()))}")
    classes, kind, order = classes_among(labels, scan, census.rows)
    census = census._replace(labels=Counter({label: census.labels[label] for label in labels}))
    workers = sorted_labels(census.workers)
    how = Packing(columns, _as_arrow(workers) if scan.named else None, _as_arrow(labels), order, n_rows(len(classes)))
    with asked(frame.engine):
        packed = frame.by(scan.columns["task"], census.rows).map(how.packed, PACKED).kept(census.rows)
    store = PackedStore(scan, census, packed, classes, kind, order, Ids(workers, what="workers"))
    tell_prepared(scan, store, census.left_out, census.left_out + census.rows)
    return store


def _as_arrow(values: list[Any]) -> pa.Array:
    """Return identifiers as they are looked up: text of one type."""
    return plain_values(pa.array(values))


def _merged(parts: list[Census], columns: Mapping[str, str]) -> Census:
    """Return the census of all partitions."""
    lacking, workers, labels = Counter[str](), Counter[Any](), Counter[Any]()
    kinds: dict[str, set[str]] = {role: set() for role in columns}
    for part in parts:
        lacking.update(part.lacking)
        workers.update(part.workers)
        labels.update(part.labels)
        for role, found in part.kinds.items():
            kinds[role] |= found
    wrong = next((part.wrong_count for part in parts if part.wrong_count is not None), None)
    rows, left_out = sum(part.rows for part in parts), sum(part.left_out for part in parts)
    return Census(rows, left_out, lacking, kinds, workers, labels, wrong)


def _refuse(census: Census, scan: Scan, where: str) -> None:
    """Refuse rows without values, and values of a kind that cannot be used."""
    if not census.rows and not census.left_out:
        raise AnnotationError(f"{where}no row: no annotations")
    if not census.rows:
        raise AnnotationError(f"missing='drop' leaves no row: each of the {census.left_out:,} lacks a value")
    for role, name in scan.columns.items():
        if lacking := census.lacking[role]:
            raise AnnotationError(
                f"{where}column {name!r}: {lacking:,} of {census.rows:,} rows lack a value; fill them in, or leave "
                "them out: cp.scan(frame, missing='drop')"
            )
        kinds = sorted(census.kinds[role])
        if not set(kinds) <= set(KINDS[role]) or len(kinds) > 1:
            raise AnnotationError(
                f"{where}column {name!r}: its values are {' and '.join(kinds)}; for {role}= {' or '.join(KINDS[role])} "
                "are needed, all of one kind: convert the column first"
            )
    if census.wrong_count is not None:
        raise AnnotationError(f"{where}column {scan.columns['count']!r}, {census.wrong_count}")
    if "count" in scan.columns and not any(census.labels.values()):
        raise AnnotationError(f"{where}column {scan.columns['count']!r} is 0 in every row: there is no annotation")
