"""The page of all claims with their verdicts, of every experiment that has been run."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from ... import __version__
from ...data.atomic import write_whole
from .experiment import FAILS, HOLDS, HOLDS_IF, NOT_TESTED, Experiment
from .kept_cells import cell_frame, cell_key, stored
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
    found = [each for each in experiments if stored(folder / each.name)]
    frames = {each: cell_frame(each, folder / each.name, seeds) for each in found}
    claims = {each: judged(each, frame) for each, frame in frames.items()}
    parts = [INTRODUCTION, circumstances(), markdown(overview(claims))]
    for experiment, frame in frames.items():
        parts += [f"## {experiment.name}", f"{experiment.title.rstrip('.')}. {experiment.paper}"]
        parts.append(f"`crowdppl papers {experiment.name} --seeds {seeds}`{_of_all(experiment, folder, seeds)}")
        parts.append(markdown(claims[experiment]))
        for title, table in experiment.tables(frame).items():
            parts += [f"**{title}**", markdown(table.reset_index())]
        parts += [experiment.notes] if experiment.notes else []
    write_whole(path, "\n\n".join(part.strip() for part in parts) + "\n")


def overview(claims: Mapping[Experiment, pd.DataFrame]) -> pd.DataFrame:
    """Return by experiment how many claims there are, and how many have each kind of verdict."""
    import pandas as pd

    rows = []
    for experiment, judgements in claims.items():
        kinds = [kind_of(verdict) for verdict in judgements["verdict"]]
        counts = {kind: kinds.count(kind) for kind in (HOLDS, HOLDS_IF, FAILS, NOT_TESTED)}
        rows.append({"experiment": experiment.name, "claims": len(kinds), **counts})
    return pd.DataFrame(rows)


def kind_of(verdict: str) -> str:
    """Return which of the four verdicts one is, without its reason."""
    return next((kind for kind in (HOLDS_IF, NOT_TESTED) if verdict.startswith(kind)), verdict)


def _of_all(experiment: Experiment, folder: Path, seeds: int) -> str:
    """How many of the runs there are, where some are missing."""
    done, wanted = stored(folder / experiment.name), [cell_key(cell) for cell in experiment.cells(seeds)]
    n = sum(key in done for key in wanted)
    return "" if n == len(wanted) else f" ({n} of {len(wanted)} runs are there, of the first seeds)"


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
