"""Files and folders that are written whole or not at all.

Until they are whole they lie beside their place, under a hidden name that says which process writes them. A process
that was killed leaves them there; whoever writes to the same place next removes what no running process owns.
"""

import errno
import hashlib
import os
import re
import secrets
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from .errors import StorageError, given_path

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of systems where there is no room: on the disk, for the user, or for a file of this size."""


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path beside `path`; the file written there takes the place of `path` when the block ends.

    Where the block or the replacing fails, `path` is as it was before and nothing else is left.

    Args:
        path: the file to write or to replace.

    Raises:
        StorageError: the file cannot be written.
    """
    path = given_path(path, StorageError).absolute()
    _remove_abandoned(path)
    part = _beside(path, "part")
    try:
        yield part
        _flush(part)
        part.replace(path)
        _flush_folder(path.parent)
    except OSError as error:
        raise _unwritable(path, error, part) from error
    finally:
        part.unlink(missing_ok=True)


def write_whole(path: str | os.PathLike[str], content: str) -> None:
    """Write text to a file in UTF-8 with newlines as they are, or leave the file as it was.

    Args:
        path: the file to write or to replace.
        content: the text; what UTF-8 does not know (lone surrogates) becomes a question mark.

    Raises:
        StorageError: the file cannot be written.
    """
    with whole_file(path) as part:
        part.write_text(content, encoding="utf-8", errors="replace", newline="\n")


@contextmanager
def whole_folder(path: str | os.PathLike[str], *, overwrite: bool = False) -> Iterator[Path]:
    """Yield a new folder beside `path`, which takes the place of `path` when the block ends.

    Where the block or the replacing fails, what was at `path` is as it was before and nothing else is left. Parent
    folders are made where there are none.

    Args:
        path: the folder to write or to replace.
        overwrite: replace a folder that has something in it.

    Raises:
        StorageError: `path` is a file, a folder with something in it, or in a place that cannot be written to, or the
            disk is full. What else the block itself raises passes through.
    """
    path = given_path(path, StorageError).absolute()
    _refuse_to_replace(path, overwrite)
    _remove_abandoned(path)
    made = [parent for parent in path.parents if not parent.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = _new_folder(path, "part")
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        with _told_of(part, path):
            yield part
        _refuse_to_replace(path, overwrite)  # the block may have taken hours
        try:
            _replace_folder(part, path)
        except OSError as error:
            raise _unwritable(path, error) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
        for parent in made:
            with suppress(OSError):
                parent.rmdir()  # only where nothing has come into it


@contextmanager
def _told_of(part: Path, path: Path) -> Iterator[None]:
    """Say of a disk that is full that `path` cannot be written, whoever found out, and not where it was to be made.

    Raises:
        StorageError: the disk is full, or whoever writes may write no more; or the block said so of something in it.
    """
    try:
        yield
    except StorageError as error:
        raise StorageError(str(error).replace(str(part), str(path))) from error
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise _unwritable(path, OSError(error.errno, os.strerror(error.errno))) from error


def _unwritable(path: Path, error: OSError, part: Path | None = None) -> StorageError:
    """The error of a path that cannot be written, with the folder above it that is at fault and what to do."""
    why = error.strerror or str(error).replace(str(part), str(path))  # libraries write texts of their own
    if error.filename is not None and Path(error.filename) in path.parents:
        why += f": {error.filename}"
    mend = "make room there, or name another place" if error.errno in FULL else "name a place where you may make files"
    return StorageError(f"{path} cannot be written: {why}; {mend}")


def check_new_file(
    path: str | os.PathLike[str] | None, suffixes: tuple[str, ...] = (), *, overwrite: bool = True
) -> None:
    """Refuse a path that no file can be written to, before anything is computed for it.

    Args:
        path: where a file shall be written. None where none shall be.
        suffixes: the suffixes that the file may have, such as `(".html", ".htm")`; any where none are given.
        overwrite: replace a file that has something in it.

    Raises:
        StorageError: the path has another suffix or is a folder, its folder does not exist or cannot be written to, or
            the file has something in it.
    """
    if path is None:
        return
    path = given_path(path, StorageError)
    if path.is_dir():
        example = path / f"report{suffixes[0] if suffixes else ''}"
        raise StorageError(f"{path} is a folder; name a file in it, such as {example}")
    if suffixes and path.suffix.lower() not in suffixes:
        raise StorageError(f"{path} must end in {' or '.join(suffixes)}, such as {path.with_suffix(suffixes[0])}")
    parent = path.absolute().parent
    if not parent.is_dir():
        raise StorageError(f"there is no folder {parent} to write {path.name} to; make it first")
    if not os.access(parent, os.W_OK):
        raise StorageError(f"{parent} cannot be written to")
    if not overwrite and path.is_file() and path.stat().st_size:
        raise StorageError(f"{path} has something in it; name a new file, or give overwrite=True")


def _refuse_to_replace(path: Path, overwrite: bool) -> None:
    if path.exists() and not path.is_dir():
        raise StorageError(f"{path} is a file; a folder is needed")
    if path.is_dir() and any(path.iterdir()) and not overwrite:
        raise StorageError(f"{path} has something in it; name a new folder, or give overwrite=True")


def _new_folder(path: Path, what: str) -> Path:
    folder = _beside(path, what)
    folder.mkdir(mode=0o700)
    return folder


def _beside(path: Path, what: str) -> Path:
    """A new name beside a path, with the process that owns it."""
    return path.with_name(f".{path.name[:50]}.{_machine()}-{os.getpid()}-{secrets.token_hex(4)}.{what}")


def _remove_abandoned(path: Path) -> None:
    """Remove what processes of this machine that run no more have left beside a path.

    An earlier folder that was put aside stays where nothing has taken its place: it is the only copy.
    """
    name = re.compile(rf"{re.escape(f'.{path.name[:50]}.{_machine()}')}-(\d+)-[0-9a-f]{{8}}\.(part|old)")
    with suppress(OSError):
        for found in list(path.parent.iterdir()):
            matched = name.fullmatch(found.name)
            if matched is None or _runs(int(matched[1])):
                continue
            if found.is_dir():
                if matched[2] == "part" or all((path.parent / kept.name).exists() for kept in found.iterdir()):
                    shutil.rmtree(found, ignore_errors=True)
            else:
                found.unlink(missing_ok=True)


@cache
def _machine() -> str:
    """A short name of what numbers this process: the machine, and on Linux the container."""
    numbering = Path("/proc/self/ns/pid")
    inside = numbering.stat().st_ino if numbering.exists() else 0
    return hashlib.sha256(f"{socket.gethostname()} {inside}".encode()).hexdigest()[:8]


def _runs(process: int) -> bool:
    """Return whether a process of this machine runs; True where the system cannot be asked without harm."""
    if os.name != "posix":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _replace_folder(part: Path, path: Path) -> None:
    for file in part.rglob("*"):
        if file.is_file():
            _flush(file)
    part.chmod(0o777 & ~_umask())
    if not path.exists():
        part.replace(path)
    else:
        old = _new_folder(path, "old")
        try:
            path.replace(old / path.name)
            try:
                part.replace(path)
            except OSError:
                (old / path.name).replace(path)
                raise
        finally:
            if path.exists():  # else the only copy of the earlier folder is in here
                shutil.rmtree(old, ignore_errors=True)
    _flush_folder(path.parent)


def _flush(file: Path) -> None:
    """Have the system write a file's content to the disk, so that a power cut cannot leave it empty."""
    with file.open("r+b") as opened:
        os.fsync(opened.fileno())


def _flush_folder(folder: Path) -> None:
    """Have the system write the names in a folder to the disk; some systems and network disks cannot."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
