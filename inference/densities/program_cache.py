"""Compiled programs are kept on disk, so that a new process does not compile what an earlier one has compiled.

It is JAX's persistent compilation cache, in the user's cache folder. JAX finds a program by its text, the version of
XLA and the processor, so that another version's programs are not taken, and results are those of a program compiled
anew. The environment variable :data:`VARIABLE` switches it off or names another folder.
"""

import os
import shutil
import time
import warnings
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

import jax
from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from ...data.errors import warn

VARIABLE = "CROWDPPL_CACHE"
"""``off`` for no cache, or the path of the folder; unset for the user's cache folder."""

OFF = ("off", "no", "false", "0")
MAX_BYTES = 128 * 2**20  # beyond it, programs not used for longest are deleted
KEPT = 3 / 4  # share of it that is then left
MIN_SECONDS = 0.1  # programs compiled faster are not kept: to read them takes as long
ROOM = 64 * 2**20  # bytes free on the disk, below which nothing is written
EVERY = 600.0  # seconds between two looks at the folder of a process that fits on
OVERLAP = (
    60.0  # seconds before the last look that are looked at again: whatever damaged programs may have done so slowly
)
PROGRAM, READY, KNOWN = "-cache", "-ready", "-known"  # names of files; the first is JAX's own
LOCK, CHECKED = ".lockfile", ".checked"
ZSTANDARD = b"\x28\xb5\x2f\xfd"

HARMLESS = (
    "Error writing persistent compilation cache entry",  # a disk that is full by now: there is one for every program
    "Error reading persistent compilation cache entry .*FileNotFoundError",  # another process has just deleted it
    "Error reading persistent compilation cache entry .*(truncated|ZstdError)",  # one is just writing it
)
"""JAX's warnings that tell nothing: the program is compiled."""


class CacheWarning(UserWarning):
    """Compiled programs cannot be kept, or kept ones were damaged; results are the same."""


def use_program_cache() -> None:
    """Turn JAX's persistent compilation cache on for this process; called before a fit compiles programs.

    What a user has set of JAX's own (``JAX_COMPILATION_CACHE_DIR``, ``jax.config``) stays. A folder that cannot be
    used costs one `CacheWarning`. The folder is bounded here: with a bound of its own JAX would lock it, and look at
    all files, for every program that a process reads or writes, so that processes wait for each other.
    """
    folder = _turned_on()
    if folder is not None and time.monotonic() - _looked.get(folder, -EVERY) >= EVERY:
        _looked[folder] = time.monotonic()
        bound(folder)


def folder_in_use() -> Path | None:
    """The folder, where this process uses it."""
    return next(iter(_looked), None)


def free_bytes(folder: Path) -> int:
    """Bytes that are free on the folder's disk."""
    return shutil.disk_usage(folder).free


_looked: dict[Path, float] = {}  # when this process looked at the size of a folder


@cache
def _turned_on() -> Path | None:
    """Turn the cache on, once for a process, and return its folder; None where it is off or not ours."""
    place = os.environ.get(VARIABLE, "")
    set_by_user = _setting("jax_compilation_cache_dir") is not None or not _setting("jax_enable_compilation_cache")
    if set_by_user or place.lower() in OFF:
        return None
    folder = Path(place).expanduser().absolute() if place else user_cache_path("crowdppl", appauthor=False) / "programs"
    try:
        _prepare(folder)
    except (OSError, NotImplementedError) as error:  # the latter where the disk knows no locks
        reason = getattr(error, "strerror", None) or error
        warn(
            f"compiled programs are not kept: {folder}: {reason}; set {VARIABLE} to another folder, or to off",
            CacheWarning,
        )
        return None
    for message in HARMLESS:
        warnings.filterwarnings("ignore", message, UserWarning)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    if _setting("jax_persistent_cache_min_compile_time_secs") == 1.0:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", MIN_SECONDS)
    return folder


def bound(folder: Path, most: int = MAX_BYTES) -> None:
    """Delete the programs not used for longest, as far as the disk notes uses, where all are more than ``most`` bytes.

    Other processes may read, write and delete programs meanwhile.
    """
    found = []
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                about = entry.stat()
                found.append((max(about.st_atime, about.st_mtime), about.st_size, entry))
    size = sum(n_bytes for _, n_bytes, _ in found)
    if size <= most:
        return
    for _, n_bytes, entry in sorted(found, key=itemgetter(0)):
        if size <= KEPT * most:
            return
        if entry.name.endswith((PROGRAM, READY, KNOWN)):
            with suppress(OSError):
                os.unlink(entry)
            size -= n_bytes


def _setting(name: str) -> Any:
    return getattr(jax.config, name)


def _prepare(folder: Path) -> None:
    """Make the folder, and delete programs in it that were not written to their end.

    Raises:
        OSError: it cannot be made or written, or its disk is full.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # whoever can write there can make us run their programs
    if free_bytes(folder) < ROOM:
        raise OSError(f"less than {ROOM // 2**20} MiB are free")
    try:
        with FileLock(folder / LOCK, blocking=False):
            damaged = [path for path in _unchecked(folder) if not _is_whole(path)]
            for path in damaged:
                path.unlink(missing_ok=True)
            (folder / CHECKED).touch()
    except Timeout:
        return  # another process is at it
    if damaged:
        warn(
            f"{folder}: {len(damaged)} of the compiled programs had not been written to the end; they are deleted and "
            "compiled again",
            CacheWarning,
        )


def _unchecked(folder: Path) -> Iterator[Path]:
    """The programs that nobody has looked at since they were written."""
    checked = folder / CHECKED
    since = checked.stat().st_mtime - OVERLAP if checked.exists() else 0.0
    for path in folder.glob(f"*{PROGRAM}"):
        with suppress(FileNotFoundError):
            if path.stat().st_mtime >= since:
                yield path


def _is_whole(path: Path) -> bool:
    """Return whether a program's file decompresses; one by zstandard is left for JAX to find out."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:  # deleted meanwhile
        return True
    if content.startswith(ZSTANDARD):
        return True
    try:
        zlib.decompress(content)
    except zlib.error:
        return False
    return True
