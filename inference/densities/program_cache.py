"""Compiled programs are kept on disk, so that a new process does not compile what an earlier one has compiled.

It is JAX's persistent compilation cache, in the user's cache folder. JAX finds a program by its text, the version of
XLA and the processor, so that another version's programs are not taken, and results are those of a program compiled
anew. The environment variable :data:`VARIABLE` switches it off or names another folder.
"""

from __future__ import annotations

import os
import shutil
import time
import warnings
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import jax
from filelock import FileLock, Timeout
from platformdirs import user_cache_path

from ...data.errors import warn

VARIABLE = "CROWDPPL_CACHE"
"""``off`` for no cache, or the path of the folder; unset for the user's cache folder."""

OFF = ("off", "no", "false", "0")
MAX_BYTES = 128 * 2**20  # beyond it, those not used for longest are deleted: JAX looks at all files for each new one
MIN_SECONDS = 0.1  # programs compiled faster are not kept: to read them takes as long
ROOM = 64 * 2**20  # bytes free on the disk, below which nothing is written
PATIENCE = 5.0  # seconds to wait for another process that looks at the folder
OVERLAP = (
    60.0  # seconds before the last look that are looked at again: whatever damaged programs may have done so slowly
)
PROGRAM, USED, LOCK, CHECKED = "-cache", "-atime", ".lockfile", ".checked"  # names of files; but for the last JAX's own
ZSTANDARD = b"\x28\xb5\x2f\xfd"


class CacheWarning(UserWarning):
    """Compiled programs cannot be kept, or kept ones were damaged; results are the same."""


@cache
def use_program_cache() -> None:
    """Turn JAX's persistent compilation cache on for this process; called before the first program is compiled.

    What a user has set of JAX's own (``JAX_COMPILATION_CACHE_DIR``, ``jax.config``) stays. A folder that cannot be
    used costs one `CacheWarning`.
    """
    place = os.environ.get(VARIABLE, "")
    set_by_user = _setting("jax_compilation_cache_dir") is not None or not _setting("jax_enable_compilation_cache")
    if set_by_user or place.lower() in OFF:
        return
    folder = Path(place).expanduser().absolute() if place else user_cache_path("crowdppl", appauthor=False) / "programs"
    try:
        _prepare(folder)
    except (OSError, NotImplementedError) as error:  # the latter where the disk knows no locks
        reason = getattr(error, "strerror", None) or error
        warn(
            f"compiled programs are not kept: {folder}: {reason}; set {VARIABLE} to another folder, or to off",
            CacheWarning,
        )
        return
    # Where the disk fills up later on, there is a warning for every program, and none helps.
    warnings.filterwarnings("ignore", "Error writing persistent compilation cache entry", UserWarning)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    if _setting("jax_compilation_cache_max_size") == -1:
        jax.config.update("jax_compilation_cache_max_size", MAX_BYTES)
    if _setting("jax_persistent_cache_min_compile_time_secs") == 1.0:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", MIN_SECONDS)


def _setting(name: str) -> Any:
    return getattr(jax.config, name)


def _prepare(folder: Path) -> None:
    """Make the folder, and delete programs in it that were not written to their end.

    Raises:
        OSError: it cannot be made or written, or its disk is full.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # whoever can write there can make us run their programs
    if shutil.disk_usage(folder).free < ROOM:
        raise OSError(f"less than {ROOM // 2**20} MiB are free")
    try:
        with FileLock(folder / LOCK, timeout=PATIENCE):
            damaged = [path for path in _unchecked(folder) if not _is_whole(path)]
            for path in damaged:
                path.unlink()
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
    """The programs that nobody has looked at since they were written; each gets the time of use that JAX asks for."""
    checked = folder / CHECKED
    since = checked.stat().st_mtime - OVERLAP if checked.exists() else 0.0
    for path in folder.glob(f"*{PROGRAM}"):
        if path.stat().st_mtime >= since:
            used = path.with_name(path.name.removesuffix(PROGRAM) + USED)
            if not used.exists() or used.stat().st_size != 8:
                used.write_bytes(time.time_ns().to_bytes(8, "little"))
            yield path


def _is_whole(path: Path) -> bool:
    """Whether a program's file decompresses; one by zstandard is left for JAX to find out."""
    content = path.read_bytes()
    if content.startswith(ZSTANDARD):
        return True
    try:
        zlib.decompress(content)
    except zlib.error:
        return False
    return True
