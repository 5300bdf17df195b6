"""A notebook that somebody opens first: no warning, one line of progress a cell, and cards."""

import pytest

nbformat = pytest.importorskip("nbformat", reason="notebooks need nbformat")
nbclient = pytest.importorskip("nbclient", reason="notebooks need nbclient")
pytest.importorskip("ipykernel", reason="notebooks need a kernel")

CELLS = (
    "import warnings\nwarnings.simplefilter('error')\nimport crowdppl as cp",
    "patients = cp.load_dataset('anesthesia')\npatients",
    "fit = cp.fit('dawid_skene', patients)\nagain = cp.fit('one_coin', patients)\nfit",
    "cp.check(fit, draws=20, discrepancies=['annotations'])",
)


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    folder = {"metadata": {"path": str(tmp_path_factory.mktemp("fresh"))}}
    nbclient.NotebookClient(notebook, timeout=300, resources=folder).execute()
    return notebook.cells


def test_nothing_warns_at_import_or_at_a_fit(cells):
    """Warnings are errors there, with which the notebook would end; what libraries print would be here."""
    assert [output for cell in cells for output in cell.outputs if output.output_type in ("stream", "error")] == []


def test_the_fits_of_a_cell_share_one_line_of_progress_which_is_empty_in_the_end(cells):
    lines = [output for output in cells[2].outputs if output.output_type == "display_data"]
    assert len(lines) == 1
    assert set(lines[0]["data"].values()) == {""}


@pytest.mark.parametrize("cell", [1, 2, 3])
def test_what_a_cell_ends_with_is_shown_as_a_card(cells, cell):
    shown = cells[cell].outputs[-1]["data"]["text/html"]
    assert shown.startswith("<div")
