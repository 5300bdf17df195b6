"""Compiled programs on the disk, so that a new process need not trace, lower and compile what an earlier one has.

JAX's persistent compilation cache, in the user's cache folder, finds a program by its text, the version of XLA and the
processor, so that another version's programs are not taken, and results are those of a program compiled anew. The
environment variable :data:`VARIABLE` switches it off or names another folder.

It spares a new process XLA's work alone; the program's text takes most of the time that is left. A ready program is
found by what its text follows from: the function, the story and its options, the sizes and types of the arrays, this
package's code, the versions of the libraries, JAX's options, and the processor. Whatever cannot be described so that
another process describes it alike, such as a story of a user's own, is not kept, nor is anything on several devices or
on an accelerator: it goes JAX's way.
"""

import dataclasses
import hashlib
import os
import pickle
import platform
import shutil
import sys
import tempfile
import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from importlib.metadata import version
from operator import itemgetter
from pathlib import Path
from types import FunctionType
from typing import Any

import jax
import numpy as np
from filelock import FileLock, Timeout
from jax.experimental import serialize_executable
from platformdirs import user_cache_path

from ...data.errors import warn
from ...data.ids import Ids, UnreadError

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
    """Make the folder, and delete programs in it that were not written to their end."""
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


PACKAGE = __name__.split(".", maxsplit=1)[0]
ROOMS = ("data", "models", "inference")  # whose code programs follow from
LIBRARIES = ("jax", "jaxlib", "numpyro", "optax", "numpy")
MIN_SECONDS_OPTION = "jax_persistent_cache_min_compile_time_secs"
SILENT = (
    "cache",
    "log",
    "trace",
    "dump",
    "dir",
    "_secs",
)  # in the names of options of JAX's that no program depends on
LONGEST = 1_000  # identifiers that are described one by one
ANYWHERE = (PACKAGE, "jax", "jaxlib", "numpy", "optax", "builtins")  # where classes that are described may be from


class NotDescribed(Exception):
    """Something has no description that another process would give, too."""


def ready(
    function: Callable,
    static: Mapping[str, Any],
    names: Sequence[str],
    leaves: Sequence[Any],
    structure: Any,
    options: Mapping[str, Any],
) -> Callable[[Sequence[Any]], Any] | None:
    """The function as a program of its leaves, from the disk or compiled and kept there; None where it cannot be kept.

    Args:
        static: its arguments that the program is compiled for, by name.
        names: of the arguments that are given by place.
        leaves: of all other arguments.
        structure: of these: those by place, and those by name.
    """
    path = _place(READY, function, static, names, leaves, structure, options)
    if path is None:
        return None
    with suppress(Exception):  # not there, damaged or deleted meanwhile: it is compiled
        loaded = _loaded(path.read_bytes())
        with suppress(OSError):
            os.utime(path)
        return loaded

    shape: list[Any] = []

    def flat(*leaves: Any) -> tuple:
        by_place, named = jax.tree.unflatten(structure, leaves)
        found, of_found = jax.tree.flatten(function(**dict(zip(names, by_place, strict=True)), **named, **static))
        shape[:] = [of_found]
        return tuple(found)

    flat.__name__ = flat.__qualname__ = f"ready_{path.name[:16]}"
    lowered = jax.jit(flat, compiler_options=dict(options)).lower(*leaves)
    with _out_of_jax_cache():
        program = lowered.compile()
    with suppress(Exception):  # such as calls back to Python, which no other process has
        skeleton = jax.tree.unflatten(shape[0], list(range(shape[0].num_leaves)))
        _keep(path, (*serialize_executable.serialize(program), skeleton))
    return partial(_run, program, shape[0])


def known(function: Callable[..., Any], *given: Any) -> Any:
    """Return what a function finds of its arguments' structure, sizes and types: from the disk, or anew and kept there.

    Args:
        function: that looks at no value of an array, such as one that traces another.
        given: its arguments.
    """
    leaves, structure = jax.tree.flatten(given)
    path = _place(KNOWN, function, {}, (), leaves, structure, {})
    if path is None:
        return function(*given)
    with suppress(Exception):  # not there, damaged or deleted meanwhile: it is found anew
        found = pickle.loads(zlib.decompress(path.read_bytes()))
        with suppress(OSError):
            os.utime(path)
        return found
    found = function(*given)
    with suppress(Exception):  # a full disk
        _keep(path, found)
    return found


def _place(
    suffix: str,
    function: Callable,
    static: Mapping[str, Any],
    names: Sequence[str],
    leaves: Sequence[Any],
    structure: Any,
    options: Mapping[str, Any],
) -> Path | None:
    """The file of what follows from all this; None where nothing is kept, or some of it has no description."""
    folder = folder_in_use()
    if (
        folder is None
        or jax.default_backend() != "cpu"
        or jax.device_count() > 1
        or jax.config.values["jax_disable_jit"]
    ):
        return None
    try:
        parts = [described(function), described(dict(static)), described(tuple(names)), _of_structure(structure)]
        about = [*parts, described(tuple(map(_kind, leaves))), described(dict(options)), _surroundings()]
    except (NotDescribed, UnreadError):
        return None
    return folder / f"{hashlib.sha256(chr(10).join(about).encode()).hexdigest()}{suffix}"


def _keep(path: Path, found: Any) -> None:
    content = zlib.compress(pickle.dumps(found), 1)
    if free_bytes(path.parent) > ROOM:
        _write(path, content)


@contextmanager
def _out_of_jax_cache() -> Iterator[None]:
    """Have JAX's cache keep none of what is compiled: an executable that comes from there is not whole when it is kept.

    Names have the digest, so that there is none of another process either.
    """
    before = jax.config.values[MIN_SECONDS_OPTION]
    jax.config.update(MIN_SECONDS_OPTION, 1e9)
    try:
        yield
    finally:
        jax.config.update(MIN_SECONDS_OPTION, before)


def _loaded(content: bytes) -> Callable[[Sequence[Any]], Any]:
    *parts, skeleton = pickle.loads(zlib.decompress(content))
    places, structure = jax.tree.flatten(skeleton)
    if places != list(range(len(places))):
        raise ValueError("another order")
    return partial(_run, serialize_executable.deserialize_and_load(*parts), structure)


def _run(program: Callable, structure: Any, leaves: Sequence[Any]) -> Any:
    return jax.tree.unflatten(structure, program(*leaves))


def _write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all, whoever else writes it."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        try:
            file.write(content)
            file.close()
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def _kind(leaf: Any) -> tuple:
    shape = getattr(leaf, "shape", None)
    return (type(leaf),) if shape is None else (shape, str(leaf.dtype), getattr(leaf, "weak_type", False))


def _of_structure(structure: Any) -> str:
    """A pytree's structure in words."""
    about = structure.node_data()
    if about is None or about[0] is type(None):
        return "*" if about is None else "None"
    kind, data = about
    return f"{described(kind)}[{described(data)}]({','.join(map(_of_structure, structure.children()))})"


def described(value: Any) -> str:
    """Describe a value in words that any process finds for it.

    >>> described({"a": (1, 2.5), "b": None})
    "dict['a': tuple[1, 2.5], 'b': None]"

    Raises:
        NotDescribed: there are none.
    """
    if value is None or type(value) in (bool, int, float, complex, str, bytes):
        return repr(value)
    if isinstance(value, type | FunctionType):
        return _of_name(value)
    if isinstance(value, Ids):
        numbers = value == Ids.range(len(value))
        if not numbers and len(value) > LONGEST:
            raise NotDescribed
        return f"Ids.range({len(value)})" if numbers else f"Ids[{', '.join(map(described, value))}]"
    kind = _of_name(type(value))
    if isinstance(value, tuple | list):
        return f"{kind}[{', '.join(map(described, value))}]"
    if isinstance(value, frozenset | set):
        return f"{kind}[{', '.join(sorted(map(described, value)))}]"
    if isinstance(value, dict):
        return f"{kind}[{', '.join(f'{described(key)}: {described(each)}' for key, each in value.items())}]"
    if isinstance(value, np.ndarray) and value.dtype != object:
        return (
            f"{kind}[{value.shape}, {value.dtype}, {hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}]"
        )
    if dataclasses.is_dataclass(value) and vars(value).keys() >= {field.name for field in dataclasses.fields(value)}:
        given = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return f"{kind}[{described(given)}]"
    raise NotDescribed


def _of_name(value: Any) -> str:
    """A class or a function by its name, of which it is the only one; functions are this package's alone."""
    module, name = value.__module__, value.__qualname__
    places = ANYWHERE if isinstance(value, type) else (PACKAGE,)
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    found = getattr(found, "function", found) if isinstance(value, FunctionType) else found
    if found is not value or module.split(".")[0] not in places:
        raise NotDescribed
    return f"{module}.{name}"


def _surroundings() -> str:
    """Describe the surroundings on which programs depend beside their arguments."""
    options = {name: str(value) for name, value in jax.config.values.items() if not any(s in name for s in SILENT)}
    return f"{sorted(options.items())} {os.environ.get('XLA_FLAGS')} {_machine()}"


@cache
def _machine() -> str:
    """The code, the libraries and the processor."""
    root = Path(__file__).parents[2]
    files = sorted(path for room in ROOMS for path in (root / room).rglob("*.py"))
    code = [(str(path.relative_to(root)), (about := path.stat()).st_mtime_ns, about.st_size) for path in files]
    processor = [platform.machine(), platform.processor(), sys.version]
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
        processor += [line for line in lines if line.startswith(("model name", "flags", "Features"))]
    return f"{code} {[version(name) for name in LIBRARIES]} {processor} {os.cpu_count()}"
