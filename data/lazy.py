"""Packages that import what they export when it is first asked for (PEP 562), without warnings nobody can act on."""

import ast
import gc
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any


def lazy_names(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the functions ``__getattr__`` and ``__dir__`` of a package that imports its names when they are used.

    What it exports stands in its file once, as imports under ``TYPE_CHECKING``, which editors and type checkers read
    as well:

        if TYPE_CHECKING:
            from .stories import tell

        __getattr__, __dir__ = lazy_names(__name__, __file__)

    The package's own modules are attributes too, imported or not. Each name is looked up once and then stays in the
    package.

    Args:
        package: its ``__name__``.
        file: its ``__file__``.
    """
    homes = dict(_exported(file))

    def find(name: str) -> Any:
        if name in homes:
            with uncollected():
                value = getattr(import_module(homes[name], package), name)
        elif not name.startswith("_") and find_spec(f"{package}.{name}"):
            with uncollected():
                value = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        own = vars(sys.modules[package]).items()
        kept = (name for name, value in own if name.startswith("__") or isinstance(value, ModuleType))
        return sorted({*homes, *kept})

    return find, names


@contextmanager
def uncollected() -> Iterator[None]:
    """Look for no garbage meanwhile.

    Imports, and files with many records, make many objects, which stay, and each look would go through them all.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _exported(file: str) -> Iterator[tuple[str, str]]:
    """Each name that the package's file imports under ``TYPE_CHECKING``, with the module that has it."""
    for statement in ast.parse(Path(file).read_bytes(), file).body:
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
            for node in statement.body:
                if isinstance(node, ast.ImportFrom):
                    yield from ((alias.name, f"{'.' * node.level}{node.module}") for alias in node.names)


def import_tqdm() -> None:
    """Import tqdm, which NumPyro needs, without its advice to install ipywidgets: crowdppl's bars do without."""
    if "IPython" not in sys.modules or "tqdm.auto" in sys.modules:
        return
    with warnings.catch_warnings(action="ignore"):
        import_module("tqdm.auto")
