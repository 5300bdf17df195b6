"""Where a page may be written, and how: whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from ..storage.fit_folder import StorageError

SUFFIXES = (".html", ".htm")


def check_place(path: Path) -> None:
    """Refuse a path that no page can be written to, before anything is computed.

    Raises:
        StorageError: the path does not end in ``.html`` or ``.htm``, it is a folder, or its folder does not exist or
            cannot be written to.
    """
    if path.is_dir():
        raise StorageError(f"{path} is a folder; name a file in it, such as {path / 'report.html'}")
    if path.suffix.lower() not in SUFFIXES:
        example = path.with_suffix(SUFFIXES[0]) if path.name else "report.html"
        raise StorageError(f"{path} must end in {' or '.join(SUFFIXES)}, such as {example}")
    if not path.absolute().parent.is_dir():
        raise StorageError(f"there is no folder {path.absolute().parent} to write {path.name} to; make it first")
    if not os.access(path.absolute().parent, os.W_OK):
        raise StorageError(f"{path.absolute().parent} cannot be written to")


def write_whole(path: Path, content: str) -> None:
    """Write a file, or leave the one that is there as it was.

    Raises:
        StorageError: the file cannot be written.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("x", encoding="utf-8", errors="replace", newline="\n") as file:
            file.write(content)
        part.replace(path)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
