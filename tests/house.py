"""The order of the rooms, and the check that no import breaks it: ``python tests/house.py``.

Every import counts, wherever it stands: at the top of a file, in a function, under ``TYPE_CHECKING``. Modules are named
by their path without suffix, such as ``inference/engines/em``; the file of a package itself is its ``__init__``.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

PACKAGE = "crowdppl"
ROOT = Path(__file__).resolve().parents[1]

FLOORS: tuple[tuple[str, ...], ...] = (
    ("data",),
    ("data/exports",),
    ("models/parts",),
    ("models",),
    ("models/pyro",),
    ("inference/densities",),
    ("inference/sources",),
    ("inference/engines",),
    ("inference/torch",),
    ("inference/fitted",),
    ("inference/findings",),
    ("inference/fit_story",),
    ("inference/baselines",),
    ("inference/scores", "inference/storage"),
    ("inference/comparison", "inference/checks"),
    ("inference/plots",),
    ("inference/report",),
    ("inference/result",),
    ("inference/training_on_labels",),
    ("inference/fit",),
    ("inference/interfaces",),
    ("inference/choose",),
    ("inference/panel",),
    ("inference/described",),
    ("inference/__init__",),
    ("__init__",),
    ("cli",),
    ("__main__",),
)
"""From the ground up. A room imports rooms of the floors below its own; rooms of one floor do not import each other."""

NOT_ROOMS = ("tests", "benchmarks", "notebooks", "docs", "build", "dist")
MAY_SHADOW = ("models", "models/pyro")
"""Packages whose modules may have the name of a function that the package exports: a story's own file."""

Imports = Mapping[str, Collection[str]]


def modules(root: Path) -> list[str]:
    """All modules of the package whose folder is `root`."""
    paths = (path.relative_to(root).with_suffix("") for path in root.rglob("*.py"))
    return sorted(path.as_posix() for path in paths if path.parts[0] not in NOT_ROOMS and path.parts[0][0] != ".")


def imports(root: Path) -> dict[str, set[str]]:
    """By module, the modules of the package that it imports anywhere in its text."""
    known = set(modules(root))
    return {module: set(_imported(module, _tree(root, module), known)) - {module} for module in known}


def floor(module: str) -> int | None:
    """The floor on which the module stands, counted from the ground; None where no room of it is known."""
    parts = module.split("/")
    for length in range(len(parts), 0, -1):
        for level, rooms in enumerate(FLOORS):
            if "/".join(parts[:length]) in rooms:
                return level
    return None


def homeless(found: Imports) -> list[str]:
    """A sentence for each module that stands on no floor."""
    return [f"{module}.py stands in no room of FLOORS" for module in sorted(found) if floor(module) is None]


def upward(found: Imports) -> list[str]:
    """A sentence for each import of a higher floor, or of another room on the same floor."""
    said = []
    for module, target in sorted((module, target) for module, targets in found.items() for target in targets):
        own, other = floor(module), floor(target)
        if own is None or other is None:
            continue
        if other > own:
            said.append(f"{module}.py imports {target}.py, which stands higher")
        elif other == own and _room(module, own) != _room(target, own):
            said.append(f"{module}.py imports {target}.py, which stands on the same floor")
    return said


def circles(found: Imports) -> list[str]:
    """A sentence for each circle of modules, and for each circle of the rooms and files within one folder."""
    folders = {
        "/".join(parts[:n]) for parts in (module.split("/")[:-1] for module in found) for n in range(len(parts) + 1)
    }
    said = [f"circle: {', '.join(names)}" for names in _strong_components(found)]
    for folder in sorted(folders):
        for names in _strong_components(_between_children(found, folder)):
            sentence = f"circle: {', '.join(names)}"
            said += [] if sentence in said else [sentence]
    return said


def same_names(found: Iterable[str]) -> list[str]:
    """A sentence for each name that two files have; a file for Pyro may have the name of the one that it mirrors."""
    files = defaultdict(list)
    for module in sorted(found):
        *folders, name = module.split("/")
        if not name.startswith("__"):
            files["pyro" in folders, name].append(f"{module}.py")
    return [f"one name twice: {', '.join(paths)}" for paths in files.values() if len(paths) > 1]


def shadowed(root: Path, found: Collection[str]) -> list[str]:
    """A sentence for each module that a package hides behind something else of the same name."""
    said = []
    for module in sorted(found):
        folder = module.rpartition("/")[0]
        if module.rpartition("/")[2] != "__init__" or folder in MAY_SHADOW:
            continue
        children = {name for name in (_child(other, folder) for other in found) if name}
        inner = {name.rpartition("/")[2] for name in children}
        for name in sorted(inner & set(_bound(_tree(root, module), inner))):
            said.append(f"{module}.py exports {name}, which hides the module of that name")
    return said


def violations(root: Path = ROOT) -> list[str]:
    """What stands in the package's folder and should not, a sentence each; empty where the house is in order."""
    found = imports(root)
    return [*homeless(found), *upward(found), *circles(found), *same_names(found), *shadowed(root, found)]


def _tree(root: Path, module: str) -> ast.Module:
    return ast.parse((root / f"{module}.py").read_text(encoding="utf-8"), module)


def _imported(module: str, tree: ast.Module, known: Collection[str]) -> Iterator[str]:
    """The modules of the package that one module's statements import."""
    folder = module.split("/")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                package, *names = alias.name.split(".")
                if package == PACKAGE:
                    yield _file("/".join(names), known)
        elif isinstance(node, ast.ImportFrom):
            names = node.module.split(".") if node.module else []
            if node.level:
                names = folder[: len(folder) + 1 - node.level] + names
            elif names[0] == PACKAGE:
                names = names[1:]
            else:
                continue
            for alias in node.names:
                inner = "/".join([*names, alias.name])
                yield inner if inner in known else _file(inner, known, default=_file("/".join(names), known))


def _file(name: str, known: Collection[str], default: str | None = None) -> str:
    """The module of that name, which is the ``__init__`` of a package."""
    for candidate in (name, f"{name}/__init__".lstrip("/")):
        if candidate in known:
            return candidate
    return name if default is None else default


def _room(module: str, level: int) -> str:
    """The room of that floor in which the module stands."""
    return max((room for room in FLOORS[level] if f"{module}/".startswith(f"{room}/")), key=len)


def _child(module: str, folder: str) -> str | None:
    """The file or folder, directly within `folder`, that holds the module; None for its own ``__init__`` and others."""
    prefix = f"{folder}/" if folder else ""
    name = module.removeprefix(prefix).split("/")[0]
    return f"{prefix}{name}" if module.startswith(prefix) and name != "__init__" else None


def _between_children(found: Imports, folder: str) -> dict[str, set[str]]:
    """By file or folder directly within `folder`, the others there that anything in it imports."""
    graph: dict[str, set[str]] = defaultdict(set)
    for module, targets in found.items():
        child = _child(module, folder)
        if child:
            graph[child] |= {other for other in (_child(target, folder) for target in targets) if other} - {child}
    return graph


def _strong_components(graph: Imports) -> list[list[str]]:
    """The groups of two or more names that all reach each other, each sorted."""
    reach = {name: _reached(graph, name) for name in graph}
    groups = {tuple(sorted(other for other in reach[name] if name in reach.get(other, ()))) for name in graph}
    return sorted([list(group) for group in groups if len(group) > 1])


def _reached(graph: Imports, start: str) -> set[str]:
    """All names to which a path of one step or more leads."""
    seen: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += graph.get(name, ())
    return seen


def _bound(tree: ast.Module, inner: Collection[str]) -> Iterator[str]:
    """Names that a package's own file gives to something other than its modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            of_itself = node.level == 1 and not node.module
            yield from (
                alias.asname or alias.name
                for alias in node.names
                if not (of_itself and alias.name in inner and alias.asname in {None, alias.name})
            )
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


if __name__ == "__main__":
    sys.exit("\n".join(violations()) or None)
