"""Files opened by their content: a table, a value of JSON, records of several files."""

import json
import tempfile
import zipfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..column_names import INFER, SYSTEMS, are_criteria, is_name_of, named_for, plain, stem
from ..columns import Where
from ..comparison_columns import SAID
from ..description import count_text
from ..errors import AnnotationError
from ..frames import as_frame, is_frame, read_parquet_table, read_text_table, row_and_line, take_column
from ..id_text import listing
from ..json_files import JSON, read_json
from ..text_files import first_bytes, suffix_of
from .known_columns import NEEDED, Asked

TEXT = (".csv", ".tsv")
TABLES = (*TEXT, ".parquet")
FILE = ("_path", "_file", "_place")  # of a record of several files: the file, its name and the place there
PARQUET, ZIPPED = b"PAR1", b"PK\x03\x04"  # how such files begin; those of Excel are zipped


def table_of(source: Any) -> pd.DataFrame:
    """Return a pandas table of a table of another library, or of a Hugging Face dataset."""
    features = getattr(source, "features", None)
    if isinstance(features, Mapping) and hasattr(source, "to_pandas"):
        table = source.to_pandas()
        for name, feature in features.items():
            names = getattr(feature, "names", None)
            if names and hasattr(feature, "int2str"):
                table[name] = pd.Categorical([names[code] for code in table[name]], categories=names)
        return pd.DataFrame(table)
    if isinstance(source, list) and (rows := _rows_of(source)) is not None:
        return rows
    if not is_frame(source):
        raise AnnotationError(
            f"a path, '-' or a table is needed, not a {type(source).__name__}; cp.read takes dictionaries, lists of "
            "dictionaries or of (task, worker, label), and Annotations.from_matrix matrices"
        )
    frame = as_frame(source)
    if isinstance(source, pd.DataFrame):
        names = [str(name) for name in source.columns]
        named = isinstance(source.index.name, str) and is_name_of(source.index.name, "task")
        return source.reset_index() if named and not named_for("task", names) else source
    return pd.DataFrame({name: take_column(frame, name, "task") for name in frame.columns})


def _rows_of(source: list[Any]) -> pd.DataFrame | None:
    """The table of a list of (task, worker, label); None of another list.

    Raises:
        AnnotationError: a row has another length than the first.
    """
    if not source or not all(isinstance(row, tuple | list) for row in source) or len(source[0]) != len(NEEDED):
        return None
    wrong = next((place for place, row in enumerate(source) if len(row) != len(NEEDED)), None)
    if wrong is not None:
        raise AnnotationError(f"row {wrong}: {source[wrong]!r} is not (task, worker, label), as the rows before are")
    columns = zip(*source, strict=True)
    return pd.DataFrame({role: pd.Series(column) for role, column in zip(NEEDED, columns, strict=True)})


def is_json(path: Path, start: bytes) -> bool:
    """Return whether a file is JSON or JSON Lines: by its suffix, or by how it begins."""
    suffix = suffix_of(path)
    text = start.lstrip(b"\xef\xbb\xbf \t\r\n")
    return suffix in JSON or (suffix not in (".csv", ".tsv") and text[:1] in (b"{", b"["))


def table_of_json(content: Mapping[str, Any]) -> pd.DataFrame | None:
    """Return the table in a dictionary as pandas writes it, by column or split; None where it is none.

    Split tables of other tools have no index (MLflow), or the numbers of rows and columns beside them (W&B).
    """
    names, rows = content.get("columns"), content.get("data")
    if isinstance(names, list) and isinstance(rows, list) and all(isinstance(row, list) for row in rows):
        if wrong := [number for number, row in enumerate(rows) if len(row) != len(names)]:
            raise AnnotationError(
                f"data[{wrong[0]}] has {len(rows[wrong[0]])} values, and there are {len(names)} columns; one each is "
                "needed"
            )
        return pd.DataFrame(rows, columns=names)
    roles = [role for role in ("task", "label") if any(is_name_of(str(name), role) for name in content)]
    if len(roles) < 2:
        return None
    if all(isinstance(column, list) for column in content.values()):
        sizes = {name: len(column) for name, column in content.items()}
        if len(set(sizes.values())) > 1:
            raise AnnotationError(f"the columns are of different lengths: {sizes}")
        return pd.DataFrame(dict(content))
    columns = list(content.values())
    if all(isinstance(column, Mapping) and column.keys() == columns[0].keys() for column in columns):
        return pd.DataFrame({name: list(column.values()) for name, column in content.items()})
    return None


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """Yield a folder with what is in a .zip.

    Raises:
        AnnotationError: it is none.
    """
    with tempfile.TemporaryDirectory() as folder:
        try:
            with zipfile.ZipFile(path) as archive:
                archive.extractall(folder)
        except zipfile.BadZipFile as error:
            raise AnnotationError(f"{path} is no .zip file that can be read: {error}") from None
        yield Path(folder)


def files_in(folder: Path) -> list[Path]:
    """Return the files of a folder and those below it, but for what systems put beside them."""
    found = (file for file in folder.rglob("*") if file.is_file() and not file.name.startswith("."))
    return sorted(file for file in found if "__MACOSX" not in file.parts)


def beside_fits(files: list[Path]) -> list[Path]:
    """Return the files that are in no folder of a saved fit, which its manifest tells."""
    manifests = (file for file in files if file.name == "manifest.json")
    fits = {file.parent for file in manifests if b'"crowdppl"' in first_bytes(file, 4096)}
    return [file for file in files if file.parent not in fits]


def are_tables(files: list[Path]) -> bool:
    """Return whether all files are tables in CSV, TSV or Parquet, by their suffixes."""
    return len(files) > 0 and all(suffix_of(file) in TABLES for file in files)


def tables_beside(files: list[Path]) -> list[Path]:
    """Return the tables in CSV, TSV or Parquet where there are others beside them, such as notes; none where not."""
    found = [file for file in files if suffix_of(file) in TABLES]
    return found if len(found) < len(files) else []


def table_of_files(files: list[Path], separator: str | None, encoding: str | None) -> tuple[list[pd.DataFrame], Where]:
    """Return the tables of several files with equal columns, and what says where a row of all of them is.

    Raises:
        AnnotationError: a file cannot be read, is of text where the first is of Parquet, or has other columns.
    """
    frames: list[pd.DataFrame] = []
    for file in files:
        of_text = suffix_of(file) in TEXT
        if of_text != (suffix_of(files[0]) in TEXT):
            raise AnnotationError(f"{file}: CSV and Parquet are not read as one, and {files[0].name} is of the other")
        frame = read_text_table(file, separator, encoding) if of_text else read_parquet_table(file).rename(columns=str)
        if frames and (differ := set(frame.columns) ^ set(frames[0].columns)):
            name = sorted(differ)[0]
            with_it, without = (file, files[0]) if name in frame else (files[0], file)
            raise AnnotationError(
                f"{without} has no column {name!r}, and {with_it} has one: several files are read as one table where "
                "they have equal columns; read them one by one, or rename the column"
            )
        frames.append(frame)
    starts = np.cumsum([0, *map(len, frames)])

    def where(row: int) -> str:
        at = int(np.searchsorted(starts, row, "right")) - 1
        own = row - int(starts[at])
        is_text = suffix_of(files[at]) in TEXT
        return row_and_line(files[at], separator, encoding)(own) if is_text else f"row {own} of {files[at].name}"

    return frames, where


def workers_of_files(frames: list[pd.DataFrame], files: list[Path], asked: Asked) -> list[str]:
    """Return for each table its worker, the file's name, or its folder's where all files have one name; else none.

    They are tables of a worker each where no column names workers, or the one that does so, such as "model", has in
    several files the same of the same task and so names what is judged; where some have labels, and most tasks stand in
    several.

    Args:
        frames: with equal columns.
        files: of each table.
        asked: what was asked for.
    """
    if asked.worker != INFER or asked.columns is not None or len(files) < 2:
        return []
    names = [file.name[: file.name.lower().rindex(suffix_of(file))] for file in files]
    if len(set(names)) < len(names):
        names = [file.parent.name for file in files]
    columns = [str(name) for name in frames[0].columns]
    tasks = [asked.task] if asked.task in columns else named_for("task", columns)
    labels = named_for("label", columns) or [name for name in columns if plain(name) in SAID or name == asked.label]
    has_labels = labels or isinstance(asked.question, list | tuple) or are_criteria({*columns} - {*tasks})
    workers = named_for("worker", columns)
    if not tasks or not has_labels or len(set(names)) < len(names):
        return []
    if workers and (len(workers) > 1 or "worker" in workers or not SYSTEMS.fullmatch(stem(workers[0]))):
        return []
    keys = [tasks[0], *workers]
    if not all(set(keys) <= set(frame.columns) for frame in frames):
        return []
    tables = pd.concat([frame[keys].astype(str).drop_duplicates() for frame in frames]).value_counts()
    return names if (tables > 1).mean() > 0.5 else []


def of_its_name(names: list[str]) -> str:
    """Return what is said of files that have one worker each; nothing where there are none."""
    return f"; each file has one worker, of its name: {listing(names, 5)}" if names else ""


def files_left_out(files: Collection[Path], read: Collection[Path]) -> str:
    """Return what is said of the files of a folder that were not read; nothing where all were."""
    names = [file.name for file in files if file not in read]
    return (
        f"; {count_text(len(names), 'other file')} left out: {listing(list(dict.fromkeys(names)), 3)}" if names else ""
    )


def records_of_files(files: list[Path], what: str, encoding: str | None) -> list[dict[str, Any]]:
    """Return the records of all JSON files of several, each with its file's name and its place there.

    Raises:
        AnnotationError: there are none, or one is no list of records, or has none.
    """
    if not files:
        raise AnnotationError(f"{what} has no files; logs, tables or an export are to be there")
    unread, files = files, [file for file in files if suffix_of(file) in JSON]
    if not files:
        raise AnnotationError(
            f"{what} has neither .jsonl, .json, .csv, .tsv nor .parquet files: {listing([f.name for f in unread], 3)}"
        )
    found = []
    for file in files:
        records = read_json(file, encoding)
        if not isinstance(records, list) or not all(isinstance(record, Mapping) for record in records):
            raise AnnotationError(f"{file}: a list of records, or a record in each line, is needed")
        if not records:
            raise AnnotationError(f"{file}: there is no record in it; leave the file out, or write it anew")
        for number, record in enumerate(records, start=1):
            found.append({**dict(zip(FILE, (file, file.stem, f"{file.name}, line {number}"), strict=True)), **record})
    return found


def records_in(path: Path) -> list[dict[str, Any]] | None:
    """Return the records in a file of JSON, JSON Lines, Parquet or CSV; None where it has something else.

    Raises:
        AnnotationError: it cannot be read.
    """
    start = first_bytes(path, 64)
    if start.startswith(PARQUET):
        return as_records(read_parquet_table(path))
    if suffix_of(path) in TEXT:
        return as_records(read_text_table(path))
    records = read_json(path, None) if is_json(path, start) else None
    return records if isinstance(records, list) and all(isinstance(each, dict) for each in records) else None


def as_records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows as dictionaries; lists that a CSV file has as JSON are lists again."""
    records = []
    for record in table.to_dict("records"):
        found = {}
        for name, value in record.items():
            if isinstance(value, str) and value[:1] == "[":
                with suppress(json.JSONDecodeError):
                    value = json.loads(value)
            found[str(name)] = None if isinstance(value, float) and value != value else value
        records.append(found)
    return records
