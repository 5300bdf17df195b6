"""The page of all claims with their verdicts, of every experiment that has been run."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from ... import __version__
from ...data.atomic import write_whole
from .experiment import Experiment
from .kept_cells import cell_frame
from .written_results import cell_text, judged

if TYPE_CHECKING:
    import pandas as pd

INTRODUCTION = """# The papers, run again

Each section is an experiment of a paper whose story is here. It was run by the command that it names, which prints the
same tables and verdicts, keeps every run, goes on where it stopped, and draws the figures.

A claim that one method is better than another *holds* where the mean difference, seed by seed, is more than twice its
standard error above zero, and *fails* elsewhere. Figures are means ± standard deviations over the seeds.
"""


def write_page(path: Path, experiments: Iterable[Experiment], folder: Path, seeds: int) -> None:
    """Write the page as Markdown.

    Args:
        path: the file to write or to replace.
        experiments: those that have been run.
        folder: of the results, with a folder for each experiment.
        seeds: how many.

    Raises:
        StorageError: the file cannot be written.
    """
    parts = [INTRODUCTION, circumstances()]
    for experiment in experiments:
        frame = cell_frame(experiment, folder / experiment.name, seeds)
        parts += [f"## {experiment.name}", f"{experiment.title} {experiment.paper}"]
        parts.append(f"`crowdppl papers {experiment.name} --seeds {seeds}`")
        parts.append(markdown(judged(experiment, frame)))
        for title, table in experiment.tables(frame).items():
            parts += [f"**{title}**", markdown(table.reset_index())]
        parts += [experiment.notes] if experiment.notes else []
    write_whole(path, "\n\n".join(part.strip() for part in parts) + "\n")


def circumstances() -> str:
    """Return the day, the machine and the versions, in a line."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("jax", "numpyro", "flax", "numpy"))
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    return f"crowdppl {__version__} · {date.today()} · {machine} · {packages}"


def markdown(table: pd.DataFrame) -> str:
    """Return a frame as a table in Markdown."""
    rows = [[str(name) for name in table.columns], ["---"] * table.shape[1]]
    rows += [[cell_text(value).replace("|", "\\|") for value in row] for row in table.itertuples(index=False)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
