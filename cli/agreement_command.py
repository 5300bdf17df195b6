"""The subcommand ``crowdppl agreement``."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ..data.atomic import check_new_file, whole_file
from . import options
from .advice import for_the_shell
from .arguments import check_input, holds_saved, read_annotations
from .request import Request, takes_request
from .terminal import frame_table, plain_messages, stdout


@partial(
    takes_request, more="Or the folder of a saved fit, which adds what it says of agreement.", of=options.ANNOTATIONS
)
def agreement(
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="nominal|ordinal|interval",
            help="How far apart two classes are.",
            show_default="as the kind of the labels says",
        ),
    ] = None,
    interval: Annotated[float, typer.Option(metavar="MASS", help="Mass of the intervals, between 0 and 1.")] = 0.9,
    seed: Annotated[int, typer.Option(metavar="SEED", help="Of the resamples.", min=0)] = 0,
    *,
    request: Request,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE.csv", help="Write all figures to a new file.")
    ] = None,
) -> None:
    """Measure the workers' agreement: alpha, kappa and AC with bootstrap intervals, by class, worker and pair."""
    with plain_messages():
        if out is not None:
            check_new_file(out, (".csv",))
        is_saved = holds_saved(Path(request.file))
        check_input(request, saved=is_saved)
        from rich.text import Text

        from .. import agreement as measured
        from .. import load_fit
        from ..data.harmless_csv import write_csv

        fit = load_fit(request.file) if is_saved else None
        annotations = read_annotations(request) if fit is None else fit.annotations
        found = measured(annotations, fit, metric=metric, interval=interval, seed=seed)
        console = stdout()
        console.print(Text(for_the_shell(str(found))))
        by_group = found.by_group["estimate"].unstack("coefficient") if len(found.by_group) else found.by_group
        by_question = by_group.rename_axis("question")
        tables = {"By question": by_question, "By class": found.by_class, "By worker": found.by_worker}
        for title, frame in tables.items():
            if len(frame):
                console.print(frame_table(frame, title, interval=interval))
        if out is not None:
            with whole_file(out) as path:
                write_csv(found.to_frame().set_index(["of", "name", "quantity"]), path)
