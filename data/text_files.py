"""Text files whatever their encoding, separator and compression: quick, without pandas."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
from collections import Counter
from pathlib import Path
from typing import Any, BinaryIO, TextIO, cast

from .errors import AnnotationError

COMPRESSED = (".gz", ".zst", ".bz2", ".xz")
PACKED = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst", b"BZh": ".bz2", b"\xfd7zXZ\x00": ".xz"}
"""How compressed files begin, which is looked at where the suffix says nothing."""

SEPARATORS = ",;\t|"
MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16's, which it begins with
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
WESTERN, LATIN = "cp1252", "latin-1"
START = 2**16  # bytes from which the separator is found out
CHUNK = 2**20


def suffix_of(path: str | Path) -> str:
    """Return the suffix of a file in lower case, without one that says how it is compressed."""
    path = Path(path)
    return Path(path.stem).suffix.lower() if path.suffix.lower() in COMPRESSED else path.suffix.lower()


def open_bytes(path: str | Path) -> BinaryIO:
    """Open a file to read its bytes, decompressed where its suffix is .gz, .zst, .bz2 or .xz.

    Raises:
        FileNotFoundError: there is no such file.
    """
    path = Path(path)
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


def first_bytes(path: str | Path, size: int = START) -> bytes:
    """Return the first bytes of a file, decompressed.

    Raises:
        AnnotationError: it is not compressed as its suffix says.
        FileNotFoundError: there is no such file.
    """
    with reading(path), open_bytes(path) as file:
        return file.read(size)


class reading:
    """A block that reads a file; what decompressors raise becomes an error that names the file."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        is_compressed = self.path.suffix.lower() in COMPRESSED
        if is_compressed and isinstance(error, OSError | EOFError | lzma.LZMAError) and not _is_of_disk(error):
            raise AnnotationError(f"{self.path} is no {self.path.suffix} file that can be read: {error}") from None


def _is_of_disk(error: BaseException) -> bool:
    return isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError)


def encoding_of(path: str | Path) -> str:
    """Return the encoding of a text file: as its mark says, UTF-8 where it is, else Windows-1252 or Latin-1.

    UTF-16 without a mark is known by its zero bytes.

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
            if zeros > 0.5 and _is_text(start.decode(encoding, errors="ignore")):
                return encoding
        raise AnnotationError(f"{path} is no text file: it holds zero bytes")
    utf8, western = codecs.getincrementaldecoder("utf-8")(), True
    with reading(path), open_bytes(path) as file:
        while chunk := file.read(CHUNK):
            if utf8 is not None:
                try:
                    utf8.decode(chunk)
                except UnicodeDecodeError:
                    utf8 = None  # type: ignore[assignment]
            if western:
                western = not any(byte in chunk for byte in (b"\x81", b"\x8d", b"\x8f", b"\x90", b"\x9d"))
    if utf8 is not None:
        return "utf-8-sig"
    return WESTERN if western else LATIN


def _is_text(characters: str) -> bool:
    return all(character >= " " or character in "\t\r\n" for character in characters)


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
        return max(SEPARATORS, key=fit) if any(fit(separator)[0] for separator in SEPARATORS) else ","
    except csv.Error:
        return ","
