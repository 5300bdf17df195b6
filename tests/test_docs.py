"""The pages of docs/: the Python of each page runs from top to bottom, and finds what it says."""

import re
from pathlib import Path

import matplotlib
import numpy as np
import pytest

import crowdppl as cp

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [DOCS / "index.rst", DOCS / "stories.md", *(DOCS / "howto").glob("*.*"), *(DOCS / "explanation").glob("*.*")]
IN_RST = re.compile(r"\.\. code-block:: python\n\n((?:   .*\n|\n)+)")
IN_MARKDOWN = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(path):
    """The Python of a page, each block without its indentation."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return IN_MARKDOWN.findall(text)
    return [re.sub(r"^   ", "", block, flags=re.MULTILINE) for block in IN_RST.findall(text)]


WITH_CODE = sorted(path for path in PAGES if blocks(path))
ON_THE_COMMAND_LINE = {"command_line", "papers"}
SLOW = {"choose_a_story", "judges", "plan_annotations", "large_data", "calibration", "scores"}  # more than five seconds
CASES = [pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * (path.stem in SLOW)) for path in WITH_CODE]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", CASES)
def test_every_python_block_of_a_page_runs_after_those_above_it(path, tmp_path, monkeypatch, capsys):
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in blocks(path):
        exec(compile(block, path.name, "exec"), names)
    assert capsys.readouterr().out  # a recipe shows something
    FINDS.get(path.stem, lambda names: None)(names)


def own_story(names):
    assert (names["mine"].labels["label"] == labels_by_two(names)).mean() > 0.9


def classifier(names):
    right = names["learnt"].predict_proba(names["x_test"]).argmax(1) == names["y_test"]
    assert right.mean() > 0.8  # the crowd's plurality is right of three quarters of the training images


def numpyro_tools(names):
    matched = np.asarray(names["draws"]["confusion"]).mean((0, 1))  # each class has been given its own name
    assert (matched.diagonal() > 0.6).all()
    drawn = np.asarray(names["truth"]).mean(0) > 0.5  # by NumPyro's own NUTS and enumeration
    labels = np.array(["no", "yes"])[drawn.astype(int)]
    assert max((labels == labels_by_two(names)).mean(), (labels != labels_by_two(names)).mean()) > 0.9


def labels_by_two(names):
    return cp.fit("one_coin", names["annotations"], progress=False).labels["label"].to_numpy()


FINDS = {"own_story": own_story, "classifier": classifier, "numpyro_tools": numpyro_tools}


def test_every_guide_has_code_that_runs():
    guides = {path.stem for path in (DOCS / "howto").glob("*.*")}
    assert guides - {"index"} - ON_THE_COMMAND_LINE <= {path.stem for path in WITH_CODE}


def test_every_guide_and_notebook_is_listed():
    """Sphinx says so too, but with the documentation's extra alone."""
    listed = (DOCS / "howto" / "index.rst").read_text(encoding="utf-8").split()
    assert {path.stem for path in (DOCS / "howto").glob("*.*")} - {"index"} <= set(listed)
    cards = (DOCS / "tutorials.rst").read_text(encoding="utf-8")
    for path in (DOCS.parent / "notebooks").glob("*.ipynb"):
        assert f":link: notebooks/{path.stem}\n" in cards


def test_a_formula_that_cannot_be_shown_is_an_error(monkeypatch):
    pytest.importorskip("docutils", reason="the extra docs is needed")
    monkeypatch.syspath_prepend(DOCS)
    import mathml
    from docutils.utils.math import MathError

    assert mathml.mathml(r"x_1, \dots, x_K", as_block=False).startswith("<math")
    with pytest.raises(MathError, match="nonsense"):
        mathml.mathml(r"\nonsense{x}", as_block=False)
