"""The subcommand ``crowdppl estimate``."""

from pathlib import Path
from typing import Annotated

import typer

from ..data.atomic import check_new_file, whole_file
from ..data.errors import check_name
from . import options
from .advice import for_the_shell
from .arguments import check_file
from .terminal import frame_table, plain_messages, stdout

METHODS = ("ppi", "rogan_gladen", "classical")


def estimate(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="Folder that crowdppl fit wrote, without --use-gold.", show_default=False),
    ],
    gold: Annotated[
        Path,
        typer.Argument(
            metavar="GOLD",
            help="True labels of tasks that were drawn at random: a .csv, .tsv, .xlsx or .parquet file with the "
            "columns task and label.",
            show_default=False,
        ),
    ],
    method: Annotated[
        str,
        options.option(
            "Prediction-powered inference; Rogan and Gladen's estimate, for gold labels drawn within each class; or "
            "the gold labels alone.",
            "|".join(METHODS),
        ),
    ] = "ppi",
    of: Annotated[
        str,
        options.option(
            "Whose accuracy and shares: those of these tasks, or of the population they were drawn from.",
            "tasks|population",
        ),
    ] = "tasks",
    width: Annotated[
        float | None,
        options.option("Say how many gold labels it takes until intervals are at most this wide, such as 0.1.", "W"),
    ] = None,
    out: Annotated[Path | None, options.out("Write the table to a new file.", "FILE.csv", None)] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Estimate the accuracy of a fit's labels and the prevalence of the classes from a few gold labels."""
    with plain_messages(str(folder)):
        check_name("value of --method", method, METHODS)
        check_new_file(out, (".csv",), overwrite=overwrite)
        check_file(gold)
        from rich.text import Text

        from .. import estimate as estimated
        from .. import gold_needed, load_fit
        from ..data.harmless_csv import write_csv

        fit = load_fit(folder)
        found = estimated(fit, gold, method=method, of=of)
        console = stdout()
        console.print(Text(for_the_shell(str(found), str(folder))))
        table = found.table.reset_index("quantity").rename_axis("of")
        console.print(frame_table(table))
        if width is not None:
            console.print(Text(for_the_shell(str(gold_needed(fit, width, gold=gold)), str(folder))))
        if out is not None:
            with whole_file(out) as path:
                write_csv(found.table, path)
