"""The notebooks on torch modules run from top to bottom."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="the extra pyro is not installed")
nbclient = pytest.importorskip("nbclient", reason="notebooks need nbclient")
nbformat = pytest.importorskip("nbformat", reason="notebooks need nbformat")

from test_notebooks import run, small

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "pyro_digits.ipynb"


@pytest.mark.slow
def test_the_notebook_runs_and_the_network_learns_from_the_crowd():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell("assert test_accuracy(crowd) > 0.9"))  # the vote is right of 0.77
    nbclient.NotebookClient(notebook, timeout=600).execute()
    assert (
        sum("image/png" in output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])) == 2
    )


@pytest.mark.notebook
def test_the_notebook_of_the_posterior_runs_on_small_settings(tmp_path, monkeypatch):
    monkeypatch.delenv("MPLBACKEND", raising=False)
    run("pyro_classifier_posterior", tmp_path, timeout=600, change=small)
