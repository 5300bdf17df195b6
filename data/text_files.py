"""Text files whatever their encoding, separator and compression, and headers of CSV files: quick, without pandas."""

import bz2
import codecs
import csv
import gzip
import io
import lzma
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from .column_names import columns_of_task, missing_column
from .errors import AnnotationError, nearest

COMPRESSED = (".gz", ".zst", ".bz2", ".xz")
PACKED = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz"}
"""First bytes of compressed files, which are looked at where the suffix says nothing."""

SEPARATORS = ",;\t|"
MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16's, which it begins with
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
WESTERN, LATIN = "cp1252", "latin-1"
OTHERS = ("cp1251", "cp932", "gb18030", "cp949", "big5")
"""Older encodings of Cyrillic, Japanese, Chinese and Korean text."""

SURE = 0.2  # of charset_normalizer's coherence with a language: a few letters, such as those of names, have none
START = 2**16  # bytes from which the separator is found out
CHUNK = 2**20


def suffix_of(path: str | Path) -> str:
    """Return the suffix of a file in lower case, without one that says how it is compressed."""
    path = Path(path)
    return Path(path.stem).suffix.lower() if path.suffix.lower() in COMPRESSED else path.suffix.lower()


def open_bytes(path: str | Path) -> BinaryIO:
    """Open a file to read its bytes, decompressed where its suffix is .gz, .zst, .bz2 or .xz.

    Raises:
        FileNotFoundError: there is no such file, with the most similar name of one in its folder.
    """
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}{similar(path)}")
    suffix = path.suffix.lower()
    if suffix not in COMPRESSED:
        with path.open("rb") as file:
            start = file.read(6)
        suffix = next((kind for mark, kind in PACKED.items() if start.startswith(mark)), suffix)
    if suffix == ".zst":
        import pyarrow as pa

        return cast(BinaryIO, io.BufferedReader(cast(Any, pa.input_stream(str(path), compression="zstd"))))
    opener: Any = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(suffix, open)
    return cast(BinaryIO, opener(path, "rb"))


def similar(path: Path) -> str:
    """Return "; did you mean ...?" with the file in the same folder that has the most similar name, or nothing."""
    files = [entry.name for entry in path.parent.iterdir() if entry.is_file()] if path.parent.is_dir() else []
    stems = {Path(name).stem: name for name in files}  # ".csv" alone makes no two names alike
    near = nearest(path.stem, stems)
    return f"; did you mean {path.with_name(stems[near])}?" if near else ""


def first_bytes(path: str | Path, size: int = START) -> bytes:
    """Return the first bytes of a file, decompressed.

    Raises:
        AnnotationError: it is not compressed as its suffix says.
        FileNotFoundError: there is no such file.
    """
    with reading(path), open_bytes(path) as file:
        return file.read(size)


def start_of_text(path: str | Path, size: int = START) -> bytes:
    """Return the first bytes of a file as they are in UTF-8 without a mark, where it is text in another encoding.

    Args:
        path: the file.
        size: bytes of the file that are looked at.
    """
    start = first_bytes(path, size)
    encoding = next((encoding for mark, encoding in MARKS.items() if start.startswith(mark)), None)
    if encoding is None and b"\0" not in start:
        try:
            codecs.getincrementaldecoder("utf-8")().decode(start)  # of which the last character may be cut
        except UnicodeDecodeError:
            encoding = LATIN  # in which the names of fields are as in the older encoding that it is
    return start if encoding is None else start.decode(encoding, errors="ignore").encode()


@contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """Read a file in the block; what decompressors raise becomes an error that names the file."""
    try:
        yield
    except (OSError, EOFError, lzma.LZMAError) as error:
        suffix = Path(path).suffix
        is_of_disk = isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError)
        if is_of_disk or suffix.lower() not in COMPRESSED:
            raise
        raise AnnotationError(f"{path} is no {suffix} file that can be read: {error}") from None


def encoding_of(path: str | Path) -> str:
    """Return the encoding of a text file: as its mark says, UTF-8 where it is, else an older one.

    UTF-16 without a mark is known by its zero bytes. Of older encodings it is Windows-1252, or Latin-1 where bytes have
    no character there, unless the letters are surely of words in one of :data:`OTHERS`.

    Raises:
        AnnotationError: it holds zero bytes as text has none.
    """
    start = first_bytes(path)
    for mark, encoding in MARKS.items():
        if start.startswith(mark):
            return encoding
    if b"\0" in start:
        for at, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
            zeros = start[at::2].count(0) / max(len(start) // 2, 1)
            text = start.decode(encoding, errors="ignore")
            if zeros > 0.5 and all(character >= " " or character in "\t\r\n" for character in text):
                return encoding
        raise AnnotationError(f"{path} is no text file: it holds zero bytes")
    possible = {"utf-8": codecs.getincrementaldecoder("utf-8")(), WESTERN: codecs.getincrementaldecoder(WESTERN)()}
    with reading(path), open_bytes(path) as file:
        while chunk := file.read(CHUNK):
            for encoding, decoder in list(possible.items()):
                try:
                    decoder.decode(chunk)
                except UnicodeDecodeError:
                    del possible[encoding]
    if "utf-8" in possible:
        return "utf-8-sig"
    return _surely_of(first_bytes(path, CHUNK)) or (WESTERN if WESTERN in possible else LATIN)


def _surely_of(text: bytes) -> str | None:
    """Return the encoding in which the letters beyond ASCII are words of a language; None where none is sure."""
    from charset_normalizer import from_bytes

    lines = b"\n".join(line for line in text.splitlines() if not line.isascii())
    guess = from_bytes(lines[:START], cp_isolation=[WESTERN, *OTHERS]).best()
    return guess.encoding if guess is not None and guess.encoding in OTHERS and guess.coherence > SURE else None


def check_encoding(encoding: str) -> None:
    """Refuse the name of an encoding that Python does not know.

    Raises:
        AnnotationError: it does not.
    """
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise AnnotationError(f"encoding={encoding!r} is not known; 'utf-8', 'utf-16' and 'latin-1' are") from None


def open_text(path: str | Path, encoding: str | None = None) -> TextIO:
    """Open a text file with newlines as they are, after a line that only names the separator, as Excel knows it.

    Args:
        path: the file.
        encoding: of its text; None to find it out.
    """
    file = io.TextIOWrapper(open_bytes(path), encoding=encoding or encoding_of(path), newline="")
    if separator_line(path, encoding):
        file.readline()
    return file


def separator_line(path: str | Path, encoding: str | None = None) -> str | None:
    """Return the separator that a first line ``sep=;`` names; None where the file begins otherwise."""
    start = first_bytes(path, 64)
    if b"sep=" not in start.replace(b"\0", b""):  # those of UTF-16
        return None
    line = start.decode(encoding or encoding_of(path), errors="ignore").splitlines()[0].strip('"')
    return line[4:] if line.startswith("sep=") and len(line) == 5 else None


def separator_of(path: str | Path, encoding: str | None = None) -> str:
    """Return what separates the columns of a text file: what a first line ``sep=;`` names, a tab in .tsv files, else
    what most rows agree on.

    Of a comma, a semicolon, a tab and a bar it is the one that cuts the first rows into the same number of fields, more
    than one; a comma where none does.
    """
    try:
        if named := separator_line(path, encoding):
            return named
        if suffix_of(path) == ".tsv":
            return "\t"
        text = first_bytes(path).decode(encoding or encoding_of(path), errors="ignore")
    except (OSError, AnnotationError):
        return ","
    whole = text[: text.rfind("\n") + 1] or text

    def fit(separator: str) -> tuple[float, int]:
        sizes = [len(row) for row in csv.reader(io.StringIO(whole, newline=""), delimiter=separator) if row]
        if not sizes or sizes[0] < 2:
            return 0.0, 0
        return Counter(sizes)[sizes[0]] / len(sizes), sizes[0]

    try:
        fits = {separator: fit(separator) for separator in SEPARATORS}
    except csv.Error:
        return ","
    return max(fits, key=lambda separator: fits[separator]) if any(share for share, _ in fits.values()) else ","


def read_header(
    path: Path, separator: str | None = None, encoding: str | None = None, *, may_repeat: bool = False
) -> list[str]:
    """Return the names of a file's columns.

    Args:
        path: the file, with a header.
        separator: what separates the columns; None for what most rows agree on.
        encoding: of the text; None to find it out.
        may_repeat: whether a name may stand twice, of columns that are known by their places.

    Raises:
        AnnotationError: the separator is no single character; the file is empty or no text, or names a column twice.
        FileNotFoundError: there is no such file.
    """
    is_character = isinstance(separator, str) and len(separator) == 1
    if separator is not None and not (is_character and separator not in '\r\n"'):
        raise AnnotationError(
            f"separator={separator!r}: a single character is needed, such as ',', ';', '|' or '\\t' for a tab"
        )
    start = first_bytes(path, 4096)
    if not start.strip():
        raise AnnotationError(
            f"{path}: the file is empty; expected a header such as task,worker,label and rows below it"
        )
    if start.startswith(b"PAR1"):
        raise AnnotationError(f"{path} is a Parquet file, not CSV; read it with from_parquet")
    try:
        with reading(path), open_text(path, encoding) as file:
            between = separator or separator_of(path, encoding)
            skips = has_blanks(path, between, encoding)
            rows = csv.reader(file, delimiter=between, skipinitialspace=skips)
            header = next((fields for fields in rows if fields), [])
    except UnicodeDecodeError as error:
        raise not_text(path, error) from None
    except csv.Error as error:
        raise AnnotationError(f"{path} is no CSV file that can be read: {error}") from None
    # pandas would call the second one "label.1", and an annotation would be lost without a word.
    if not may_repeat and (twice := sorted({name for name in header if name and header.count(name) > 1})):
        raise AnnotationError(f"{path}: the header names {', '.join(map(repr, twice))} more than once; rename one")
    return header


def has_blanks(path: str | Path, separator: str, encoding: str | None = None) -> bool:
    """Tell whether a blank stands after each separator of a file's header, which is then no part of the cells."""
    with open_text(path, encoding) as file:
        header = next((fields for fields in csv.reader(file, delimiter=separator) if fields), [])
    return len(header) > 1 and all(name.startswith(" ") and name.strip() for name in header[1:])


def not_text(path: Path, error: UnicodeDecodeError) -> AnnotationError:
    """Make the error for a file that is no text in its encoding."""
    return AnnotationError(f"{path} is no text in {error.encoding}: {error.reason}; give encoding=, or convert it")


def check_columns(names: Mapping[str, str | None], columns: Iterable[Any], what: str) -> None:
    """Refuse a table that lacks a column.

    Args:
        names: by role (task, worker, label, count, seconds) the name of its column, or None where there is none.
        columns: the table's.
        what: what messages call the table.

    Raises:
        AnnotationError: a column is given for two roles, or is not there.
    """
    check_roles(names)
    known = list(columns)
    for role, name in names.items():
        for each in [] if name is None else columns_of_task(name, known) if role == "task" else [name]:
            if each not in known:
                raise missing_column(each, role, known, what)


def check_roles(columns: Mapping[str, str | None]) -> None:
    """Refuse a column that is given for two roles.

    Args:
        columns: by role (task, worker, ...) the name of a column, or None where there is none.

    Raises:
        AnnotationError: two roles have one column; the message names the roles and the column.
    """
    role_of: dict[str, str] = {}
    for role, name in columns.items():
        if name is not None and (first := role_of.setdefault(name, role)) != role:
            raise AnnotationError(f"column {name!r} is given for both {first}= and {role}=; name a column for each")
