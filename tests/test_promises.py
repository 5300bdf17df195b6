"""Whatever the documentation and SECURITY.md promise names a test that there is."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROMISES = "docs/explanation/promises.md"
NAMED = re.compile(r"`(?:tests/)?([\w/]+\.py)::(test_\w+)`")


def promises(text):
    """The rows of the table of promises, without the heading."""
    return [line for line in text.splitlines() if line.startswith("| ")][1:]


def _functions(file):
    """Names of the test functions of a file."""
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    return {
        node.name: node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


@pytest.mark.parametrize("document", [PROMISES, "SECURITY.md"])
def test_every_test_that_a_promise_names_exists_and_is_of_the_default_suite(document):
    named = NAMED.findall((ROOT / document).read_text(encoding="utf-8"))
    assert len(named) > 9
    for file, name in named:
        assert (ROOT / "tests" / file).is_file(), f"{document} names {file}, which there is not"
        found = _functions(file)
        assert name in found, f"{document} names {file}::{name}, which there is not"
        assert "pytest.mark.slow" not in map(ast.unparse, found[name].decorator_list), f"{name} is slow"


def test_every_promise_has_a_test_beside_it():
    rows = promises((ROOT / PROMISES).read_text(encoding="utf-8"))
    assert len(rows) > 9
    assert all(NAMED.search(row) for row in rows)


def test_every_line_of_what_is_guarded_against_has_a_test_beside_it():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    section = text.split("## What crowdppl guards against\n", 1)[1].split("\n## ", 1)[0]
    items = section.split("\n- ")[1:]
    assert len(items) > 4
    assert all(NAMED.search(item) for item in items)
