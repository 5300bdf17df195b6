"""The pages of docs/: the Python of each page runs from top to bottom, and notebooks become pages whole."""

import re
import sys
from pathlib import Path

import matplotlib
import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ["index", "howto", "explanation"]
MADE = {"architecture", "contracts"}  # from Markdown, when the documentation is built
WITH_CODE = sorted(
    path
    for part in PAGES
    for path in ([DOCS / f"{part}.rst"] if (DOCS / f"{part}.rst").exists() else (DOCS / part).glob("*.rst"))
    if path.stem not in MADE and ".. code-block:: python" in path.read_text(encoding="utf-8")
)
SLOW = {"choose_a_story", "judges", "plan_annotations", "large_data", "calibration", "scores"}  # more than five seconds
CASES = [pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * (path.stem in SLOW)) for path in WITH_CODE]


def blocks(path):
    """The Python of a page, each block without its indentation."""
    found = re.findall(r"\.\. code-block:: python\n\n((?:   .*\n|\n)+)", path.read_text(encoding="utf-8"))
    return [re.sub(r"^   ", "", block, flags=re.MULTILINE) for block in found]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", CASES)
def test_every_python_block_of_a_page_runs_after_those_above_it(path, tmp_path, monkeypatch, capsys):
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in blocks(path):
        exec(compile(block, path.name, "exec"), names)
    assert capsys.readouterr().out  # a recipe shows something


def test_every_guide_has_code_that_runs():
    assert {path.stem for path in (DOCS / "howto").glob("*.rst")} - {"index"} <= {path.stem for path in WITH_CODE}


@pytest.fixture
def pages(monkeypatch):
    for module in ("docutils", "markdown_it", "nbformat"):
        pytest.importorskip(module, reason="the extra docs is needed")
    monkeypatch.syspath_prepend(DOCS)
    import notebook_pages

    yield notebook_pages
    for module in ("notebook_pages", "mathml"):
        sys.modules.pop(module, None)


def test_a_notebooks_headings_formulas_links_and_outputs_reach_its_page(pages, tmp_path):
    import nbformat.v4 as v4

    cell = v4.new_code_cell("print(1)\n\n2")
    cell.outputs = [
        v4.new_output("stream", text="1\n"),
        v4.new_output("execute_result", data={"text/html": "<table><td>2</td></table>", "text/plain": "2"}),
        v4.new_output("display_data", data={"image/png": "aGVsbG8=", "text/plain": "Figure"}),
    ]
    prose = "# Title\n\n## Part\n\nCosts `$HOME` and $\\rho_k$; see [that](other.ipynb).\n\n$$\na &= b \\\\\nc &= d\n$$"
    notebook = v4.new_notebook(cells=[v4.new_markdown_cell(prose), cell])
    (tmp_path / "in").mkdir()
    import nbformat

    nbformat.write(notebook, tmp_path / "in" / "one.ipynb")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "gone.rst").write_text("a notebook that is no more")
    pages.write_notebook_pages(tmp_path / "in", tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["index.rst", "one-1-2.png", "one.rst"]
    assert (tmp_path / "out" / "one-1-2.png").read_bytes() == b"hello"
    text = (tmp_path / "out" / "one.rst").read_text(encoding="utf-8")
    assert "Title\n=====\n\nPart\n----\n" in text
    assert "<code>$HOME</code>" in text
    assert text.count("<math") == 2
    assert "ρ" in text
    assert 'href="other.html"' in text
    assert ".. code-block:: python\n\n   print(1)\n\n   2\n" in text
    assert ".. code-block:: none\n\n   1\n" in text
    assert '<div class="output"><table><td>2</td></table></div>' in text
    assert ".. image:: one-1-2.png" in text


def test_every_kept_notebook_has_a_page_with_one_title(pages, tmp_path):
    pages.write_notebook_pages(DOCS.parent / "notebooks", tmp_path / "pages")
    listed = (tmp_path / "pages" / "index.rst").read_text(encoding="utf-8").split()
    for path in sorted((DOCS.parent / "notebooks").glob("*.ipynb")):
        assert path.stem in listed
        text = (tmp_path / "pages" / f"{path.stem}.rst").read_text(encoding="utf-8")
        assert len(re.findall(r"^=+$", text, flags=re.MULTILINE)) == 1
        assert "FORMULA" not in text


def test_a_formula_that_cannot_be_shown_is_an_error(pages):
    import mathml
    from docutils.utils.math import MathError

    assert mathml.mathml(r"x_1, \dots, x_K", as_block=False).startswith("<math")
    with pytest.raises(MathError, match="nonsense"):
        mathml.mathml(r"\nonsense{x}", as_block=False)
