"""Digests of the sources that an experiment's runs depend on, and which kept runs are of other sources than today's."""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import crowdppl

if TYPE_CHECKING:
    from .experiment import Experiment

ROOT = Path(crowdppl.__file__).parent
ROOMS = ("data", "models", "inference")
ONLY_SHOW = ("data/exports", "inference/described", "inference/plots", "inference/report")
"""Rooms that write and draw what was computed, and compute nothing that a run measures."""

EXPERIMENT = "experiment"
LENGTH = 8  # hexadecimal digits of a digest


def digests(experiment: Experiment) -> dict[str, str]:
    """Return a digest of each room's sources, and one of what the experiment's `run` reaches of its own modules.

    Comments, docstrings and layout do not count, nor does what the modules have for tables, figures and claims.
    """
    return {**_of_rooms(), EXPERIMENT: _digest(reached(experiment.run))}


def whole(parts: Mapping[str, str]) -> str:
    """Return one digest of those of all parts."""
    return hashlib.sha256(repr(sorted(parts.items())).encode()).hexdigest()[:LENGTH]


def changed(run: Mapping[str, Any], today: Mapping[str, str]) -> list[str] | None:
    """Return the parts whose sources are others today than those of a run; None where the run has no digests."""
    if "sources" not in run:
        return None
    return [part for part, digest in today.items() if run["sources"].get(part) != digest]


def how_many_changed(runs: list[dict[str, Any]], today: Mapping[str, str]) -> str:
    """Return a sentence that says how many runs are of other sources than today's, and which parts changed."""
    each = [changed(run, today) for run in runs]
    n_unknown, n_changed = each.count(None), sum(bool(parts) for parts in each)
    where = [f"{part} ({number})" for part in today if (number := sum(part in parts for parts in each if parts))]
    said = f"{n_changed} of {len(runs)} runs are of other sources than today's"
    said += f": {', '.join(where)}" if where else ""
    return f"{said}; of {n_unknown} no digests were kept" if n_unknown else said


@cache
def _of_rooms() -> dict[str, str]:
    return {room: _digest(_statements(room)) for room in ROOMS}


def _statements(room: str) -> Iterator[ast.AST]:
    for path in sorted((ROOT / room).rglob("*.py")):
        if not path.relative_to(ROOT).as_posix().startswith(tuple(f"{shows}/" for shows in ONLY_SHOW)):
            yield _parsed(path)


def reached(run: Any) -> list[ast.stmt]:
    """Return the statements of a function's module, and of those beside it, that the function reaches by their names.

    Args:
        run: a function of a module, or a partial one.
    """
    while isinstance(run, partial):
        run = run.func
    waiting = [(Path(inspect.getfile(run)), run.__qualname__.partition(".")[0])]
    seen: set[tuple[Path, str]] = set()
    found: dict[tuple[str, int], ast.stmt] = {}
    while waiting:
        path, name = place = waiting.pop()
        if place in seen:
            continue
        seen.add(place)
        for statement in _parsed(path).body:
            if name not in _bound(statement):
                continue
            if isinstance(statement, ast.ImportFrom):
                waiting += _beside(statement, path, name)
                continue
            found[path.name, statement.lineno] = statement
            waiting += [(path, node.id) for node in ast.walk(statement) if isinstance(node, ast.Name)]
            for node in ast.walk(statement):
                waiting += _beside(node, path)
    return [found[place] for place in sorted(found)]


def _bound(statement: ast.stmt) -> set[str]:
    """Return the names that a statement of a module binds."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {statement.name}
    if isinstance(statement, ast.ImportFrom):
        return {name.asname or name.name for name in statement.names}
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", statement)]
    nodes = [node for target in targets for node in ast.walk(target)]
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _beside(node: ast.AST, path: Path, bound: str | None = None) -> list[tuple[Path, str]]:
    """Return what is imported of modules in the folder, of all or of what is bound to a name."""
    if not isinstance(node, ast.ImportFrom) or node.level != 1 or node.module is None:
        return []
    names = [name.name for name in node.names if bound in (None, name.asname or name.name)]
    return [(path.parent / f"{node.module}.py", name) for name in names]


@cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes(), filename=str(path))


def _digest(statements: Iterable[ast.AST]) -> str:
    total = hashlib.sha256()
    for statement in statements:
        total.update(repr(_plain(statement)).encode())
    return total.hexdigest()[:LENGTH]


def _plain(node: Any) -> Any:
    """Return a syntax tree without places, strings that stand alone, and what is empty, which versions differ in."""
    if isinstance(node, list):
        return [_plain(each) for each in node if not _is_text(each)]
    if not isinstance(node, ast.AST):
        return node
    fields = [(name, _plain(value)) for name, value in ast.iter_fields(node) if value is not None and value != []]
    return type(node).__name__, fields


def _is_text(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
