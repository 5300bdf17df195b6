"""Cells of an experiment: run once, kept as lines of a file, and not run again."""

from __future__ import annotations

import json
import os
import platform
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crowdppl import __version__
from crowdppl.data.atomic import write_whole
from crowdppl.data.errors import StorageError, warn
from crowdppl.inference.engines.interruptions import Terminated, terminable
from crowdppl.inference.engines.progress import progress_bar

from .experiment import Cell, Experiment
from .sources import changed, digests

if TYPE_CHECKING:
    import pandas as pd

VERSIONS = ("jax", "numpyro", "flax", "numpy")
"""Packages whose versions a record has beside ours."""


def store_of(experiment: Experiment, out: Path) -> Path:
    """Return the file of an experiment's runs in the folder of all results."""
    return out / f"{experiment.name}.jsonl"


def run_cells(experiment: Experiment, store: Path, seeds: int, *, show: bool = True, stale: bool = False) -> int:
    """Run the cells that the file does not hold yet as this version runs them, and keep each as soon as it is done.

    Args:
        experiment: the experiment.
        store: the file of its runs; made where there is none.
        seeds: how many.
        show: a progress bar on standard error.
        stale: run again also those whose sources have changed since, or are not known (:mod:`.sources`).

    Returns:
        how many were run.

    Raises:
        StorageError: the file cannot be written, or a line of it cannot be read.
        KeyboardInterrupt: by Ctrl-C, with a sentence that says how to go on.
        SystemExit: by SIGTERM, with that sentence as a warning.
    """
    sources = digests(experiment)
    done = {
        key
        for key, record in stored(store).items()
        if record.get("version") == __version__ and not (stale and changed(record, sources) != [])
    }
    wanted = experiment.cells(seeds)
    missing = [cell for cell in wanted if cell_key(cell) not in done]
    try:
        store.parent.mkdir(parents=True, exist_ok=True)
        with (
            _saying_how_to_go_on(store),
            progress_bar(experiment.name, len(wanted), show=show) as step,
            open(store, "a", encoding="utf-8") as file,
        ):
            for number, cell in enumerate(missing, start=len(wanted) - len(missing)):
                step(number, cell_name(cell))
                file.write(json.dumps({**_run(experiment, cell), "sources": sources}, ensure_ascii=False) + "\n")
                file.flush()
                os.fsync(file.fileno())
    except OSError as error:
        raise StorageError(
            f"{store} cannot be written: {error.strerror or error}; the same command goes on from the runs that it has"
        ) from error
    return len(missing)


@contextmanager
def _saying_how_to_go_on(store: Path) -> Iterator[None]:
    try:
        with terminable():
            yield
    except (KeyboardInterrupt, Terminated) as stop:
        said = f"stopped; the same command goes on from the runs that {store} has"
        if isinstance(stop, Terminated):
            warn(said)
            raise
        raise KeyboardInterrupt(said) from None


def stored(store: Path) -> dict[str, dict[str, Any]]:
    """Return the records of the cells that the file holds, by their settings; of a cell that was run twice the later.

    A record has the settings as ``cell``, the ``rows`` that were measured, the ``warnings`` that were given, None where
    they were not kept, and the digests of the ``sources``, of runs since these are kept.

    A last line that was cut off, as by a process that was killed, counts as not run.

    Raises:
        StorageError: another line cannot be read.
    """
    if not store.exists():
        return {}
    found = {}
    text = store.read_text(encoding="utf-8")
    if text and not text.endswith("\n"):
        text = text[: text.rfind("\n") + 1]
        write_whole(store, text)
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            record = json.loads(line)
            found[cell_key(record["cell"])] = record | {"rows": list(record["rows"])}
        except (ValueError, KeyError, TypeError) as error:
            raise StorageError(
                f"{store}: line {number} is no cell of an experiment; remove the line, and its cell will be run again"
            ) from error
    return found


def records(experiment: Experiment, store: Path, seeds: int) -> list[dict[str, Any]]:
    """Return the records of the cells of these seeds, as far as the file holds them."""
    done = stored(store)
    return [done[key] for key in map(cell_key, experiment.cells(seeds)) if key in done]


def cell_frame(experiment: Experiment, store: Path, seeds: int) -> pd.DataFrame:
    """Return a row for each measured row of the cells of these seeds: settings, measures, and ``warnings``."""
    import pandas as pd

    return pd.DataFrame(
        [
            {**record["cell"], **row, "warnings": "; ".join(record["warnings"] or ())}
            for record in records(experiment, store, seeds)
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
    findings = (getattr(warning.message, "finding", None) for warning in caught)
    if any(finding is not None and finding.code == "interrupted" for finding in findings):
        raise KeyboardInterrupt  # whose draws so far are no run of this experiment
    return {
        "cell": cell,
        "rows": _rounded(rows),
        "warnings": said,
        "seconds": round(time.perf_counter() - began, 2),
        "ran": str(date.today()),
        "version": __version__,
        "versions": {name: version(name) for name in VERSIONS},
        "python": platform.python_version(),
    }


def _rounded(value: Any) -> Any:
    """Rows with their floats to six significant digits, which is more than a table or a figure shows."""
    if isinstance(value, Mapping):
        return {str(name): _rounded(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def cell_key(cell: Cell) -> str:
    """Return by what a cell is known in the file: its settings."""
    return json.dumps(cell, sort_keys=True, ensure_ascii=False)


def cell_name(cell: Cell) -> str:
    """Return a cell's settings as a reader sees them."""
    return ", ".join(f"{name} {value}" for name, value in cell.items())
