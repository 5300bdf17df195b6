"""Cells of an experiment: run once, kept as lines of a file, and not run again."""

from __future__ import annotations

import json
import os
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ... import __version__
from ...data.atomic import write_whole
from ...data.errors import StorageError, warn
from ...inference.engines.interruptions import INTERRUPTED, Terminated, terminable
from ...inference.engines.progress import progress_bar
from .experiment import Cell, Experiment

if TYPE_CHECKING:
    import pandas as pd

STORE = "cells.jsonl"


def run_cells(experiment: Experiment, folder: Path, seeds: int, *, show: bool = True) -> int:
    """Run the cells that the folder does not hold yet, and keep each as soon as it is done.

    Args:
        experiment: the experiment.
        folder: of the experiment's results; made where there is none.
        seeds: how many.
        show: a progress bar on standard error.

    Returns:
        how many were run.

    Raises:
        StorageError: the folder cannot be written, or a line of it cannot be read.
        KeyboardInterrupt: by Ctrl-C, with a sentence that says how to go on.
        SystemExit: by SIGTERM, with that sentence as a warning.
    """
    done = stored(folder)
    wanted = experiment.cells(seeds)
    missing = [cell for cell in wanted if cell_key(cell) not in done]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with (
            _saying_how_to_go_on(folder),
            progress_bar(experiment.name, len(wanted), show=show) as step,
            open(folder / STORE, "a", encoding="utf-8") as file,
        ):
            for number, cell in enumerate(missing, start=len(wanted) - len(missing)):
                step(number, ", ".join(f"{name} {value}" for name, value in cell.items()))
                file.write(json.dumps(_run(experiment, cell), ensure_ascii=False) + "\n")
                file.flush()
                os.fsync(file.fileno())
    except OSError as error:
        raise StorageError(
            f"{folder} cannot be written: {error.strerror or error}; the same command goes on from the runs that it has"
        ) from error
    return len(missing)


@contextmanager
def _saying_how_to_go_on(folder: Path) -> Iterator[None]:
    try:
        with terminable():
            yield
    except (KeyboardInterrupt, Terminated) as stop:
        said = f"stopped; the same command goes on from the runs that {folder / STORE} has"
        if isinstance(stop, Terminated):
            warn(said)
            raise
        raise KeyboardInterrupt(said) from None


def stored(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what the folder holds of cells that this version ran, by their settings.

    A last line that was cut off, as by a process that was killed, counts as not run.

    Raises:
        StorageError: another line cannot be read.
    """
    path = folder / STORE
    if not path.exists():
        return {}
    found = {}
    text = path.read_text(encoding="utf-8")
    if text and not text.endswith("\n"):
        text = text[: text.rfind("\n") + 1]
        write_whole(path, text)
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            record = json.loads(line)
            key, version = cell_key(record["cell"]), record["version"]
        except (ValueError, KeyError, TypeError) as error:
            raise StorageError(
                f"{path}: line {number} is no cell of an experiment; remove the line, and its cell will be run again"
            ) from error
        if version == __version__:
            found[key] = record
    return found


def cell_frame(experiment: Experiment, folder: Path, seeds: int) -> pd.DataFrame:
    """Return a row for each measured row of the cells of these seeds: settings, measures, and ``warnings``."""
    import pandas as pd

    done = stored(folder)
    records = [done[key] for key in map(cell_key, experiment.cells(seeds)) if key in done]
    return pd.DataFrame(
        [
            {**record["cell"], **row, "warnings": "; ".join(record["warnings"])}
            for record in records
            for row in record["rows"]
        ]
    )


def _run(experiment: Experiment, cell: Cell) -> dict[str, Any]:
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.filterwarnings("always", category=UserWarning, module=r"crowdppl|.*papers")
        found = experiment.run(**cell)
    rows = [dict(found)] if isinstance(found, Mapping) else [dict(row) for row in found]
    said = list(dict.fromkeys(str(warning.message) for warning in caught))
    if any(text.startswith(INTERRUPTED) for text in said):
        raise KeyboardInterrupt  # whose draws so far are no run of this experiment
    seconds = time.perf_counter() - began
    return {"cell": cell, "rows": rows, "warnings": said, "seconds": round(seconds, 2), "version": __version__}


def cell_key(cell: Cell) -> str:
    """Return by what a cell is known in the file: its settings."""
    return json.dumps(cell, sort_keys=True, ensure_ascii=False)
