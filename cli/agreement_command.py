"""The subcommand ``crowdppl agreement``."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ..data.atomic import check_new_file, whole_file
from . import options
from .advice import for_the_shell
from .arguments import check_input, class_names, read_annotations
from .request import Request, takes_request
from .terminal import frame_tables, plain_messages, stdout

OF_A_FIT = ("file", "metric", "workers", "interval", "seed", "out", "overwrite")
"""The parameters that a saved fit takes."""


@partial(
    takes_request, more="Or the folder of a saved fit, which adds what it says of agreement.", of=options.ANNOTATIONS
)
def agreement(
    context: typer.Context,
    metric: Annotated[
        str | None,
        options.option(
            "How far apart two classes are.", "nominal|ordinal|interval", default="as the kind of the labels says"
        ),
    ] = None,
    workers: Annotated[
        str | None,
        options.option("Look at the annotations of these workers alone, two or more.", "A,B,C", default="all"),
    ] = None,
    interval: Annotated[float, options.option("Mass of the intervals, between 0 and 1.", "MASS")] = 0.9,
    seed: Annotated[int, options.option("Of the resamples.", "SEED", min=0)] = 0,
    *,
    request: Request,
    out: Annotated[Path | None, options.out("Write all figures to a new file.", "FILE.csv", None)] = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Measure the workers' agreement: alpha, kappa and AC with bootstrap intervals, by class, worker and pair."""
    with plain_messages():
        check_new_file(out, (".csv",), overwrite=overwrite)
        check_input(request, context, OF_A_FIT)
        from rich.text import Text

        from .. import agreement as measured
        from .. import load_fit
        from ..data.harmless_csv import write_csv

        fit = None if request.saved is None else load_fit(request.saved)
        annotations = read_annotations(request) if fit is None else fit.given
        found = measured(
            annotations,
            fit,
            metric=metric,
            workers=None if workers is None else class_names(workers),
            interval=interval,
            seed=seed,
        )
        console = stdout()
        console.print(Text(for_the_shell(str(found))))
        by_group = found.by_group["estimate"].unstack("coefficient") if len(found.by_group) else found.by_group
        by_question = by_group.rename_axis("question")
        tables = {"By question": by_question, "By class": found.by_class, "By worker": found.by_worker}
        for title, frame in tables.items():
            if len(frame):
                console.print(*frame_tables(frame, title, interval=interval), sep="\n")
        if out is not None:
            with whole_file(out) as path:
                write_csv(found.to_frame().set_index(["of", "name", "quantity"]), path)
