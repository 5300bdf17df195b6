"""Annotations in Parquet files that stay on the disk: `crowdppl.scan` looks at their footers alone."""

import glob
import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from .column_names import missing_column
from .description import count_text
from .errors import AnnotationError, check_name
from .ids import Ids
from .kinds import stated_classes
from .origins import Origin, ParquetFile, remote_files, table_of
from .partitions import Partitions, partitions_of
from .text_files import check_roles, suffix_of

MISSING = ("refuse", "drop")
FORMAT = 1  # of what is prepared from a scan
UNITS = {"B": 1, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
UNITS |= {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}  # as the command line's tools have them
UNITS |= {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
LEAST_MEMORY = 2**20
OF_A_TASK = 2**31  # bytes, of an engine that goes over a frame
MOST_GIVEN = 2**15 - 1  # classes, whose numbers take two bytes on the disk
BYTES_IN_MEMORY = 400
"""Bytes that a row takes at the most while it is read into memory, text of moderate length included."""
KINDS = {
    "task": ("whole numbers", "text"),
    "worker": ("whole numbers", "text"),
    "label": ("whole numbers", "text", "truth values", "real numbers"),
    "count": ("whole numbers", "real numbers"),
}
"""By role the kinds of values that a column may have."""

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"  # value of a folder's name that stands for none


class File(NamedTuple):
    """One Parquet file, as its footer describes it, or one lazy table."""

    path: Origin
    size: int  # bytes; 0 of a table
    modified: int  # its version: :class:`.Stamp`
    rows: int
    row_groups: int
    types: dict[str, pa.DataType]  # by role
    tasks: tuple[tuple[Any, Any], ...] | None  # least and greatest task of each row group; None where it does not say


@dataclass(frozen=True, repr=False)
class Scan:
    """Annotations in Parquet files, of which nothing is read but the footers, or in a frame of Spark, Dask or Ray.

    Made by :func:`crowdppl.scan`.

    Attributes:
        files: the files, in the order of their names; none where there is a frame.
        columns: by role (task, worker, label, count) the name of its column; no worker where none is named.
        classes: all classes in the wanted order; None for those that are used, sorted.
        memory: bytes that a fit may take.
        folder: where what is prepared of the files is kept; None for a temporary folder.
        missing: what a fit does with rows that lack a value: "refuse" the file, or "drop" them.
        ordered: whether the classes are said to be ordered; None where it follows from the labels.
        option: the option that lists the classes.
        partitions: the frame; None where there are files.
    """

    files: tuple[File, ...]
    columns: dict[str, str]
    classes: Ids | None
    memory: int
    folder: Path | None
    given_memory: bool = field(default=True, compare=False)
    missing: str = "refuse"
    ordered: bool | None = None
    option: str = field(default="classes", compare=False)
    partitions: Partitions | None = None

    @property
    def n_rows(self) -> int:
        """A, the number of rows of all files."""
        return sum(file.rows for file in self.files)

    @property
    def named(self) -> bool:
        """True where it is known which worker gave which annotation."""
        return "worker" in self.columns

    @property
    def is_sorted(self) -> bool | None:
        """True where the row groups follow each other in the order of their tasks; None where they do not say."""
        if any(file.tasks is None for file in self.files):
            return None
        bounds = [bound for file in self.files for bound in file.tasks or ()]
        return all(one[1] <= other[0] for one, other in pairwise(bounds))

    @cached_property
    def fingerprint(self) -> str:
        """Of the files' paths, sizes and times of modification, and of how they are read."""
        classes = None if self.classes is None else [repr(value) for value in self.classes]
        files = [(str(file.path), file.size, file.modified) for file in self.files]
        order = () if self.ordered is None else (self.ordered,)
        content = (FORMAT, files, sorted(self.columns.items()), classes, self.missing, *order)
        return hashlib.sha256(repr(content).encode()).hexdigest()[:16]

    def __repr__(self) -> str:
        if self.partitions is not None:
            columns = ", ".join(role if role == name else f"{role} = {name!r}" for role, name in self.columns.items())
            return f"Scan of a frame of {self.partitions.engine}\n  columns  {columns}"
        size = size_text(sum(file.size for file in self.files))
        groups = count_text(sum(file.row_groups for file in self.files), "row group")
        types = self.files[0].types
        columns = ", ".join(
            f"{role} ({types[role]})" if role == name else f"{role} = {name!r} ({types[role]})"
            for role, name in self.columns.items()
        )
        alone = sum(file.row_groups for file in self.files) == 1
        order = {
            True: "one row group, whose rows are sorted by task, on the disk, before the first fit where they are not"
            if alone
            else "the row groups are in the order of their tasks",
            False: "not sorted by task: sorted once, on the disk, before the first fit",
            None: "the files do not say whether they are sorted by task: sorted once where they are not",
        }[self.is_sorted]
        memory = f"{size_text(self.memory)}{'' if self.given_memory else ', half of the machine'}"
        lines = {
            "columns": columns if self.named else f"{columns}; no worker is named",
            "order": order,
            "memory": memory,
            "folder": "a temporary one" if self.folder is None else str(self.folder),
        }
        if self.missing == "drop":
            lines["missing"] = "rows that lack a value are left out"
        if self.classes is not None:
            from_least = ", from the least to the greatest" if self.ordered else ""
            lines["classes"] = ", ".join(map(repr, self.classes)) + from_least
        elif self.ordered is not None:
            lines["classes"] = "ordered" if self.ordered else "without an order"
        what = f"{count_text(len(self.files), 'Parquet file')} ({size})"
        if not self.files[0].row_groups:
            what, groups = str(self.files[0].path), "no known order"
        head = f"Scan of {what}: {self.n_rows:,} rows in {groups}"
        return "\n".join([head, *(f"  {name:<8} {text}" for name, text in lines.items())])


def scan(
    path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | Any,
    *,
    task: str = "task",
    worker: str | None = "worker",
    label: str = "label",
    count: str | None = None,
    classes: Iterable[Any] | None = None,
    ordered: bool | Iterable[Any] | None = None,
    abstain: Any = None,
    question: str | Iterable[str] | None = None,
    memory: str | int | None = None,
    folder: str | os.PathLike[str] | None = None,
    missing: str = "refuse",
) -> Scan:
    """Describe annotations in Parquet files, or in a frame of Spark, Dask or Ray, for a fit that does not load them.

    Nothing is read but the footers. ``crowdppl.fit`` prepares the files when it needs them first: it codes tasks,
    workers and labels, and sorts by task where the files are not sorted.

    Args:
        path: a file, a pattern such as ``"folder/*.parquet"``, a folder whose files ``*.parquet`` are taken, those in
            its folders too, or several of these; here or at a URL such as ``"s3://bucket/*.parquet"`` (the extra
            ``remote``, and the store's package, such as s3fs); a relation of DuckDB, a LazyFrame of Polars or a Dataset
            of Arrow, which each scan prepares anew, since nobody says whether it has changed; or a DataFrame of Spark
            or Dask, or a Dataset of Ray, whose engine goes over the rows.
        task: the column of tasks, whole numbers or text.
        worker: the column of workers, whole numbers or text; None where no worker is named.
        label: the column of annotations: whole numbers, text, truth values or real numbers.
        count: the column that says how many equal annotations a row stands for, or None for one each.
        classes: all classes in the wanted order; else the labels used, sorted.
        ordered: all classes from the least to the greatest, in the place of `classes`; True for whole numbers, and for
            `classes` listed in their order; False for classes without an order. By default 3 to 20 whole numbers from
            −100 to 100 are ordered where no `classes` are listed, which a fit says.
        abstain: not taken: annotations that are no class are read into memory, by ``Annotations.from_parquet``.
        question: not taken: several questions are read into memory, by ``Annotations.from_parquet``, and a scan is of
            the rows of one, which a query of DuckDB, Polars or Arrow gives.
        memory: what a fit may take beside Python and JAX themselves, in bytes or as text such as ``"4GiB"``; half of
            the machine's by default. Of a frame what each of the engine's tasks may take, 2 GiB by default.
        folder: where what is prepared is kept, for other fits and later processes; a temporary folder by default. Of a
            frame the engine keeps it.
        missing: what to do with rows that lack a task, worker, label or count: "refuse" them, or "drop" them, with a
            warning that says how many.

    Returns:
        The description, which ``crowdppl.fit`` takes in the place of annotations.

    Raises:
        AnnotationError: there is no such file; a file is no Parquet file, has no such column, or has values there of a
            kind that cannot be used or that another file has not; a store or a query refuses; or ``abstain`` or
            ``question`` is given.
        ValueError: ``memory`` is no size.
        UnknownNameError: ``missing`` is another word.
    """
    check_name("value of missing", missing, MISSING)
    if abstain is not None:
        raise AnnotationError(
            f"abstain={abstain!r}: a scan cannot tell abstentions from classes; load the annotations with "
            "cp.Annotations.from_parquet(path, abstain=[...]), or write files without the rows that are abstentions"
        )
    if question is not None:
        named = question if isinstance(question, str) else "question"
        raise AnnotationError(
            f"question={question!r}: a scan takes the annotations of one question; give the rows of one, such as "
            f"cp.scan(duckdb.sql(\"FROM 'file.parquet' WHERE {named} = 'tone'\")), or load all of them with "
            f"cp.Annotations.from_parquet(path, question={question!r})"
        )
    names = {"task": task, "worker": worker, "label": label, "count": count}
    check_roles(names)
    columns = {role: name for role, name in names.items() if name is not None}
    partitions = partitions_of(path)
    if partitions is None:
        files = tuple(_file(found, columns) for found in _paths(path, columns))
        for file in files[1:]:
            _refuse_other_kinds(files[0], file, columns)
        if not sum(file.rows for file in files):
            raise AnnotationError(f"{files[0].path}{' and the other files' * (len(files) > 1)}: no row: no annotations")
    else:
        files = ()
        for role, name in columns.items():
            if name not in partitions.columns:
                raise missing_column(name, role, partitions.columns, f"the frame of {partitions.engine}")
        if folder is not None:
            raise AnnotationError(
                f"folder={os.fspath(folder)!r}: {partitions.engine} keeps what is prepared; leave it out"
            )
    classes, in_order, option = stated_classes(classes, ordered)
    wanted = None if classes is None else Ids(classes, what=option)
    if wanted is not None and len(wanted) < 2:
        raise AnnotationError(f"{option}={list(wanted)!r} must list at least two classes")
    if wanted is not None and len(wanted) > MOST_GIVEN:
        raise AnnotationError(f"{option}=[…] lists {len(wanted):,} classes; at most {MOST_GIVEN:,} can be scanned")
    usual = physical_memory() // 2 if partitions is None else OF_A_TASK
    limit = usual if memory is None else parse_size("memory", memory)
    where = None if folder is None else Path(folder).absolute()
    return Scan(files, columns, wanted, limit, where, memory is not None, missing, in_order, option, partitions)


def parse_size(name: str, size: object) -> int:
    """Return a size in bytes.

    >>> parse_size("memory", "4GiB")
    4294967296

    Args:
        name: the argument, for the message.
        size: bytes, or text such as ``"4GiB"`` or ``"500 MB"``.

    Raises:
        ValueError: it is no size, or less than a MiB.
    """
    found: float = -1
    if isinstance(size, int) and not isinstance(size, bool):
        found = size
    elif isinstance(size, str):
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", size)
        if match and (match[2].upper() or "B") in UNITS:
            found = float(match[1]) * UNITS[match[2].upper() or "B"]
    if found < LEAST_MEMORY:
        raise ValueError(f'{name}={size!r}: bytes, or a text such as "4GiB", from 1 MiB, are needed')
    return int(found)


def size_text(size: float) -> str:
    """Return a number of bytes for people: 1.5 GiB."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:,.1f} {unit}"
        size /= 1024
    return f"{size:,.1f} TiB"


def kind_of(kind: pa.DataType) -> str:
    """Return what values of a type are, in words: one of those in :data:`KINDS`, or the type's own name."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_integer(kind):
        return "whole numbers"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    if pa.types.is_boolean(kind):
        return "truth values"
    return "real numbers" if pa.types.is_floating(kind) else str(kind)


def _paths(path: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | Any, columns: dict[str, str]) -> list[Any]:
    """The files that are meant, in the order of their names, or the table.

    Args:
        path: as :func:`scan` takes it.
        columns: that are needed, by role, which names of folders may have.

    Raises:
        AnnotationError: there is none.
    """
    if (table := table_of(path)) is not None:
        return [table]
    if not isinstance(path, str | os.PathLike):
        if hasattr(path, "columns") or hasattr(path, "schema"):
            raise AnnotationError(
                f"cp.scan takes no table that is in memory, here a {type(path).__name__}: cp.fit and cp.read take it"
            )
        several = list(path) if isinstance(path, Iterable) else []
        if not several:
            raise AnnotationError(
                f"cp.scan({path!r}): a Parquet file, a folder of them, a pattern such as 'folder/*.parquet', or a list "
                "of these is needed, or a table that is lazy: of DuckDB, Polars, Arrow, Spark, Dask or Ray"
            )
        return _once([found for one in several for found in _paths(one, columns)])
    text = os.fspath(path)
    if re.match(r"[a-z][a-z0-9+.-]+(://|::)", text, re.IGNORECASE) and not os.path.exists(text):
        return remote_files(text)
    if os.path.isdir(text):
        files = (file for file in Path(text).rglob("*.parquet") if file.is_file())
        found = [file for file in files if not _is_hidden(file.relative_to(text))]
        missing = f"the folder {text} has no file *.parquet"
        if found and (hive := _of_folders(Path(text), sorted(found), columns)) is not None:
            return [hive]
    elif os.path.exists(text) or not glob.has_magic(text):
        found, missing = [Path(text)] if os.path.isfile(text) else [], f"there is no file {text}"
    else:
        found = [Path(name) for name in glob.glob(text, recursive=True) if os.path.isfile(name)]
        missing = f"no file is named like {text}"
    if not found:
        raise AnnotationError(
            f"{missing}; give a Parquet file, a folder of them, or a pattern such as 'folder/*.parquet'"
        )
    return [ParquetFile(file) for file in sorted(file.absolute() for file in found)]


def _of_folders(folder: Path, files: list[Path], columns: dict[str, str]) -> Any:
    """Return the table of files that lack a column which names of their folders have, as Hive's ``worker=ann/``.

    Args:
        folder: above them.
        files: in it.
        columns: that are needed, by role.

    Returns:
        the table, in which names of folders are text unless all are whole numbers; None where none is needed.

    Raises:
        AnnotationError: a file cannot be read, or lacks a column that no folder has.
    """
    named: dict[str, set[str]] = {}
    for part in {part for file in files for part in file.relative_to(folder).parts[:-1]}:
        key, _, value = part.partition("=")
        if key in columns.values():
            named.setdefault(key, set()).add(value)
    if not named:
        return None
    for file in files:
        _file(ParquetFile(file), {role: name for role, name in columns.items() if name not in named})
    if named.keys() <= set(pq.read_schema(files[0]).names):
        return None
    from pyarrow.dataset import dataset, partitioning

    types = {key: pa.int64() if all(map(_is_number, values)) else pa.string() for key, values in named.items()}
    hive = partitioning(pa.schema(list(types.items())), flavor="hive")
    return table_of(dataset(list(map(str, files)), partitioning=hive, partition_base_dir=str(folder)))


def _is_number(text: str) -> bool:
    """Return whether a name of a folder is a whole number as Python writes it, which 007 is not."""
    return text == HIVE_NULL or (text.removeprefix("-").isdecimal() and len(text) < 19 and str(int(text)) == text)


def _once(found: list[Any]) -> list[Any]:
    """Return the files, each of which is meant once.

    Raises:
        AnnotationError: one is meant twice.
    """
    seen = set[str]()
    for file in found:
        name = os.path.realpath(str(file)) if isinstance(file, ParquetFile) else ""
        if name and name in seen:
            raise AnnotationError(f"{file} is meant twice, and its rows would count twice; name it once")
        seen.add(name)
    return found


def _is_hidden(path: Path) -> bool:
    """Return whether a file, or a folder above it, is named as what is not data: by a dot or an underscore."""
    return any(part.startswith((".", "_")) for part in path.parts)


def _file(path: Origin, columns: dict[str, str]) -> File:
    """Read a file's footer, and check that it has the columns.

    Raises:
        AnnotationError: it is no Parquet file, or lacks a column, or has values there that cannot be used.
    """
    try:
        footer = path.footer()
        schema = path.schema() if footer is None else footer.schema.to_arrow_schema()
    except (pa.ArrowInvalid, pa.ArrowTypeError, OSError) as error:
        reason = str(error)
        if suffix_of(str(path)) != ".parquet":
            reason = "cp.scan takes no other files; cp.read reads CSV and more, also several files, into memory"
        raise AnnotationError(f"{path} is no Parquet file that can be read: {reason}") from None
    for role, name in columns.items():
        if name not in schema.names:
            raise missing_column(name, role, schema.names, str(path))
        if (kind := kind_of(schema.field(name).type)) not in KINDS[role]:
            raise AnnotationError(
                f"{path}, column {name!r}: its values are of type {kind}; for {role}= {' or '.join(KINDS[role])} are "
                f"needed: {as_text(path, name) if 'text' in KINDS[role] else 'convert the column first'}"
            )
    types = {role: schema.field(name).type for role, name in columns.items()}
    stamp = path.stamp()
    if stamp is None:
        raise AnnotationError(f"there is no file {path} any more")
    if footer is None:
        return File(path, *stamp, path.n_rows(), 0, types, None)
    return File(path, *stamp, footer.num_rows, footer.num_row_groups, types, _bounds(footer, columns.get("task")))


def as_text(path: Origin, column: str) -> str:
    """Return the advice on a column of another type: as text, in which different values stay different."""
    if not isinstance(path, ParquetFile):
        return "convert the column to text first"
    name, file = '"' + column.replace('"', '""') + '"', str(path).replace("'", "''")
    query = f"SELECT * REPLACE (CAST({name} AS VARCHAR) AS {name}) FROM '{file}'"
    quoted = repr(query) if '"""' in query else f'"""{query}"""'
    return f"as text it is cp.scan(duckdb.sql({quoted}), …), for which no file is written"


def _bounds(footer: pq.FileMetaData, task: str | None) -> tuple[tuple[Any, Any], ...] | None:
    """The least and greatest task of each row group; None where the footer does not say for all of them."""
    names = [footer.schema.column(i).path for i in range(footer.num_columns)]
    if task not in names:
        return None
    bounds = []
    for i in range(footer.num_row_groups):
        statistics = footer.row_group(i).column(names.index(task)).statistics
        if statistics is None or not statistics.has_min_max:
            return None
        bounds.append((statistics.min, statistics.max))
    return tuple(bounds)


def _refuse_other_kinds(first: File, file: File, columns: dict[str, str]) -> None:
    for role, name in columns.items():
        one, other = kind_of(first.types[role]), kind_of(file.types[role])
        if one != other:
            raise AnnotationError(
                f"{file.path}, column {name!r}: its values are {other}, and those of {first.path} are {one}; convert "
                "one of them, so that equal values are equal"
            )


def physical_memory() -> int:
    """Return the machine's memory in bytes; 8 GiB where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 8 * 2**30
