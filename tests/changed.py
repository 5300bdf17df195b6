"""The tests of what has changed since a commit, as paths for pytest: ``python tests/changed.py [COMMIT]``.

Changed are the files that git shows between the commit, HEAD by default, and the working tree, and new ones. A module's
tests are those of its room, in the folder of tests that mirrors it, and any that import it; a file that everything
stands on, such as pyproject.toml, has all.
"""

import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("data", "models", "inference", "cli")
ELSEWHERE = {
    "README.md": ["tests/test_readme.py"],
    "CONTRIBUTING.md": ["tests/test_contributing.py"],
    "docs": ["tests/test_docs.py"],
    "benchmarks": ["tests/papers", "tests/inference/test_golden_fits.py"],
    "notebooks": ["tests/test_fresh_notebook.py"],
}
WITHOUT = (".md", ".txt", ".cff", ".svg", ".png")  # suffixes of files that no test reads, unless they are listed above


def selected(changed: Iterable[str]) -> list[str]:
    """Return the files and folders of tests, none of which lies in another; all of ``tests`` where anything may differ.

    Args:
        changed: paths from the root, with slashes.
    """
    found: set[str] = set()
    for name in changed:
        path = PurePosixPath(name)
        if path.parts[0] == "tests" and path.name.startswith("test_"):
            found.add(name)
        elif path.parts[0] == "tests" and path.suffix == ".py" and path.name != "conftest.py":
            found |= _matching(rf"(from|import) {path.stem}\b")
        elif path.parts[0] in ROOMS and path.suffix == ".py":
            found |= {_mirror(path), *_importing(path)}
        elif known := ELSEWHERE.get(name, ELSEWHERE.get(path.parts[0])):
            found |= set(known)
        elif path.suffix not in WITHOUT:
            return ["tests"]
    there = sorted(name for name in found if (ROOT / name).exists())
    return [
        name for name in there if not any(PurePosixPath(name).is_relative_to(other) for other in there if other != name)
    ]


def _mirror(path: PurePosixPath) -> str:
    """The module's own tests, where a file has its name; else the nearest folder that mirrors its room."""
    own = PurePosixPath("tests", path.parent, f"test_{path.name}")
    if (ROOT / own).exists():
        return str(own)
    return next(str(folder) for folder in own.parents if (ROOT / folder).is_dir())


def _importing(path: PurePosixPath) -> set[str]:
    """The files of tests that import the module."""
    package, name = re.escape(".".join(path.parent.parts)), re.escape(path.stem)
    return _matching(rf"crowdppl\.{package}\.{name}\b|from crowdppl\.{package} import [^\n]*\b{name}\b")


def _matching(pattern: str) -> set[str]:
    return {name for name, text in _tests().items() if re.search(pattern, text)}


@cache
def _tests() -> dict[str, str]:
    """The text of each file of tests by its path from the root."""
    files = (ROOT / "tests").rglob("test_*.py")
    return {file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8") for file in files}


def main() -> None:
    """Print the paths, one a line."""
    commit = sys.argv[1] if len(sys.argv) > 1 else "HEAD"
    ways = (["diff", "--name-only", commit], ["ls-files", "--others", "--exclude-standard"])
    done = [subprocess.run(["git", *way], cwd=ROOT, check=True, capture_output=True, text=True) for way in ways]
    sys.stdout.writelines(f"{path}\n" for path in selected(line for each in done for line in each.stdout.splitlines()))


if __name__ == "__main__":
    main()
