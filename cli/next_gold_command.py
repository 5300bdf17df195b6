"""The subcommand ``crowdppl next-gold``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..data.atomic import check_new_file, whole_file
from .terminal import frame_table, plain_messages, stdout


def next_gold(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder that crowdppl fit wrote.", show_default=False)],
    n: Annotated[int, typer.Option("--n", "-n", metavar="N", help="How many tasks to name.", min=1)] = 20,
    seed: Annotated[int, typer.Option(metavar="SEED", help="Of the draw.", min=0)] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE.csv",
            help="Write the tasks to a new file, with an empty column label to fill in: GOLD of crowdppl estimate, and "
            "--gold of crowdppl fit.",
        ),
    ] = None,
) -> None:
    """Name the tasks whose true labels are worth knowing: half at random, half where the fit's stories disagree."""
    with plain_messages():
        if out is not None:
            check_new_file(out, (".csv",))
        from .. import load_fit
        from .. import next_gold as tasks_to_check
        from ..data.harmless_csv import write_csv

        found = tasks_to_check(load_fit(folder), n, seed=seed).set_index("task")
        stdout().print(frame_table(found))
        if out is not None:
            found.insert(0, "label", "")
            with whole_file(out) as path:
                write_csv(found, path)
