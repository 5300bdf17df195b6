"""Execute notebooks at their own settings and keep their outputs: ``python notebooks/keep_outputs.py quickstart``.

All notebooks are executed where none is named. They run in an empty folder, on the data that ``CROWDPPL_DATA`` names.
A cell's metadata ``small`` has, by line of the cell, the line in its place where
``make notebooks`` looks whether all runs.
What is of one run only is not kept: when a cell ran, the place that a warning names, and lines of progress, which are
empty in the end. A warning that a loop gives again in the same words is kept once.
"""

import os
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbclient
import nbformat

FOLDER = Path(__file__).parent
WARNING = re.compile(r"^\w*Warning: .*\n(?:  .*\n)?", re.MULTILINE)  # and the line of code that it quotes
PLACE = re.compile(r"^\S+\.py:\d+: (?=\w*Warning: )", re.MULTILINE)
TIMEOUT = 1800  # seconds a cell


def keep_outputs(path: Path) -> None:
    """Execute a notebook, and write it with its outputs; a cell that fails raises, and nothing is written."""
    notebook = nbformat.read(path, as_version=4)
    with TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        nbclient.NotebookClient(notebook, timeout=TIMEOUT, record_timing=False, resources=resources).execute()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = kept(cell.outputs)
    nbformat.write(notebook, path)


def kept(outputs: list) -> list:
    """The outputs of a cell as they are kept: what was written in pieces is in one."""
    found: list = []
    for output in outputs:
        if output.output_type == "stream":
            if output.name == "stderr":
                output.text = PLACE.sub("", output.text)
            if found and found[-1].get("name") == output.name:
                found[-1].text += output.text
                continue
        elif not any(output.data.values()):
            continue
        found.append(output)
    for output in found:
        if output.get("name") == "stderr":
            told: set[str] = set()
            output.text = WARNING.sub(lambda one, told=told: _once(one[0], told), output.text)
    return found


def _once(text: str, told: set[str]) -> str:
    """The text where it has not been told, which it has then."""
    found = "" if text in told else text
    told.add(text)
    return found


if __name__ == "__main__":
    os.environ.pop("MPLBACKEND", None)  # pictures go into the outputs
    for name in sys.argv[1:] or sorted(path.stem for path in FOLDER.glob("*.ipynb")):
        keep_outputs(FOLDER / f"{name}.ipynb")
