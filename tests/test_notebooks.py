"""The notebooks run from top to bottom, and what they keep of their outputs is whole, small and of no one machine."""

import os
import re
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="notebooks need nbformat")
nbclient = pytest.importorskip("nbclient", reason="notebooks need nbclient")

FOLDER = Path(__file__).parents[1] / "notebooks"
KEPT = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
RUN = [name for name in KEPT if not name.startswith("pyro_")]  # the extra pyro has its own test
LARGEST = 600_000  # bytes
HIDES = re.compile(r"simplefilter|filterwarnings|catch_warnings")
OWN_WARNING = re.compile(
    r"^(\S+\.py:\d+: )?((Convergence|Crowd)Warning: |UserWarning: Estimated shape parameter of Pareto)"
)
OF_A_MACHINE = re.compile(r"/(work|tmp|home|root|Users|usr|var|private)/|[A-Za-z]:\\\\")


def read(name: str):
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def code(notebook) -> list:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def outputs(notebook) -> list:
    return [output for cell in code(notebook) for output in cell.outputs]


def pictures(notebook) -> int:
    return sum("image/png" in output.get("data", {}) for output in outputs(notebook))


def texts(notebook) -> list[str]:
    """What the outputs say, pictures aside."""
    found = [output.get("text", "") for output in outputs(notebook)]
    for output in outputs(notebook):
        found += [value for kind, value in output.get("data", {}).items() if not kind.startswith("image/")]
    return found


def warned(notebook) -> dict[int, list[str]]:
    """By cell that writes to standard error, the lines of it that are no line of code quoted by a warning."""
    found = {
        number: [
            line
            for output in cell.get("outputs", [])
            if output.get("name") == "stderr"
            for line in output.text.splitlines()
            if line and line[0] != " "
        ]
        for number, cell in enumerate(notebook.cells)
    }
    return {number: lines for number, lines in found.items() if lines}


def small(notebook):
    """The notebook on small settings: in cells whose metadata say so, other lines stand in the place of some."""
    for cell in code(notebook):
        lines = cell.source.split("\n")
        instead = cell.metadata.get("small", {})
        assert set(instead) <= set(lines), f"no line of the cell: {set(instead) - set(lines)}"
        cell.source = "\n".join(instead.get(line, line) for line in lines)
    return notebook


def run(name: str, folder: Path, timeout: int, change=lambda notebook: notebook):
    """Execute a notebook where nothing else lies; an error in a cell is an error here, and so is a foreign warning."""
    before = read(name)
    after = change(read(name))
    nbclient.NotebookClient(after, timeout=timeout, resources={"metadata": {"path": str(folder)}}).execute()
    assert pictures(after) == pictures(before)  # as many as it keeps
    assert list(folder.iterdir()) == []  # nothing is left behind
    assert [line for lines in warned(after).values() for line in lines if not OWN_WARNING.match(line)] == []
    return after


@pytest.fixture(autouse=True)
def _pictures_inline(monkeypatch):
    """Let notebooks choose matplotlib's backend: one of the environment would keep their pictures from the outputs."""
    monkeypatch.delenv("MPLBACKEND", raising=False)


@pytest.mark.notebook
@pytest.mark.parametrize("name", RUN)
def test_every_cell_runs_on_small_settings_without_the_real_data(name, tmp_path, monkeypatch):
    monkeypatch.delenv("CROWDPPL_DATA", raising=False)
    run(name, tmp_path, timeout=600, change=small)


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("name", RUN)
def test_every_cell_runs_on_its_own_settings_and_data_and_warns_where_it_is_kept_to(name, tmp_path, monkeypatch):
    if "CROWDPPL_DATA" not in os.environ:
        pytest.skip("CROWDPPL_DATA is unset: it names the folder of the real datasets")
    after = run(name, tmp_path, timeout=1800)
    assert set(warned(after)) == set(warned(read(name)))  # what its text explains, and nothing else


@pytest.mark.parametrize("name", KEPT)
def test_the_outputs_are_kept_whole(name):
    notebook = read(name)
    counts = [cell.execution_count for cell in code(notebook)]
    assert counts == list(range(1, len(counts) + 1))  # executed once each, from top to bottom
    assert pictures(notebook) >= 2
    assert {output.output_type for output in outputs(notebook)} <= {"execute_result", "display_data", "stream"}


@pytest.mark.parametrize("name", KEPT)
def test_cells_have_no_settings_of_tests_and_small_ones_stand_for_lines_that_are_there(name):
    assert [cell.source for cell in code(read(name)) if re.search(r"environ|getenv|CROWDPPL_", cell.source)] == []
    small(read(name))


@pytest.mark.parametrize("name", KEPT)
def test_a_notebook_opens_with_a_question_and_ends_with_the_answer(name):
    first, *_, last = read(name).cells
    assert first.cell_type == last.cell_type == "markdown"
    assert "?" in first.source.splitlines()[0]
    assert re.search(r"^## (The answer|What it means|When to use it)", last.source, re.MULTILINE)


@pytest.mark.parametrize("name", KEPT)
def test_no_notebook_hides_warnings(name):
    assert [cell.source for cell in code(read(name)) if HIDES.search(cell.source)] == []


@pytest.mark.parametrize("name", KEPT)
def test_what_a_notebook_warns_of_is_said_once_and_explained_by_the_text_that_follows(name):
    notebook = read(name)
    said = [line for lines in warned(notebook).values() for line in lines]
    assert [line for line in said if not OWN_WARNING.match(line)] == []
    assert len(said) == len(set(said))
    prose = {number: cell.source for number, cell in enumerate(notebook.cells) if cell.cell_type == "markdown"}
    for number in warned(notebook):
        following = next(text for after, text in prose.items() if after > number)
        assert "warn" in following, following


@pytest.mark.parametrize("name", KEPT)
def test_a_kept_notebook_is_small(name):
    assert (FOLDER / f"{name}.ipynb").stat().st_size < LARGEST


@pytest.mark.parametrize("name", KEPT)
def test_no_output_names_a_folder_of_the_machine_it_ran_on(name):
    assert [text for text in texts(read(name)) if OF_A_MACHINE.search(text)] == []


@pytest.mark.parametrize("name", KEPT)
def test_links_to_other_notebooks_lead_somewhere(name):
    prose = "\n".join(cell.source for cell in read(name).cells if cell.cell_type == "markdown")
    assert [link for link in re.findall(r"\]\(([\w./-]+\.ipynb)\)", prose) if not (FOLDER / link).exists()] == []
