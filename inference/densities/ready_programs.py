"""Programs ready to run, kept on disk beside JAX's cache, so that a new process neither traces nor lowers them.

JAX's cache spares a new process XLA's work alone; to find a program there its text is needed, which takes most of the
time that is left. A program here is found by what its text follows from: the function, the story and its options, the
sizes and types of the arrays, this package's code, the versions of the libraries, JAX's options, and the processor.
Whatever cannot be described so that another process describes it alike, such as a story of a user's own, is not kept,
nor is anything on several devices or on an accelerator: it goes JAX's way.
"""

import dataclasses
import hashlib
import os
import pickle
import platform
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from types import FunctionType
from typing import Any

import jax
import numpy as np
from jax.experimental import serialize_executable

from ...data.ids import Ids, UnreadError
from .program_cache import KNOWN, READY, ROOM, folder_in_use, free_bytes

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
        function: a pure function of JAX arrays.
        static: its arguments that the program is compiled for, by name.
        names: of the arguments that are given by place.
        leaves: of all other arguments.
        structure: of these: those by place, and those by name.
        options: of the compiler.
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
