"""The subcommand ``crowdppl agreement``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..data.atomic import check_new_file, whole_file
from .arguments import check_input, holds_saved, read_annotations
from .options import OPTIONS
from .request import Request
from .terminal import frame_table, plain_messages, stdout


def agreement(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Annotations: a file, or the name of a dataset, as crowdppl fit takes it. Or the folder of a saved "
            "fit, which adds what the fit says of its workers' agreement.",
            show_default=False,
        ),
    ],
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="nominal|ordinal|interval",
            help="How far apart two classes are.",
            show_default="as the kind of the labels says",
        ),
    ] = None,
    task: Annotated[str | None, OPTIONS["task"]] = None,
    worker: Annotated[str | None, OPTIONS["worker"]] = None,
    label: Annotated[str | None, OPTIONS["label"]] = None,
    question: Annotated[str | None, OPTIONS["question"]] = None,
    classes: Annotated[str | None, OPTIONS["classes"]] = None,
    log_tasks: Annotated[str | None, OPTIONS["log_tasks"]] = None,
    log_workers: Annotated[str | None, OPTIONS["log_workers"]] = None,
    ordered: Annotated[bool | None, OPTIONS["ordered"]] = None,
    abstain: Annotated[
        list[str] | None, typer.Option(metavar="VALUE", help="A label that is no class; may be given several times.")
    ] = None,
    interval: Annotated[float, typer.Option(metavar="MASS", help="Mass of the intervals, between 0 and 1.")] = 0.9,
    seed: Annotated[int, typer.Option(metavar="SEED", help="Of the resamples.", min=0)] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE.csv", help="Write all figures to a new file.")
    ] = None,
) -> None:
    """Measure the workers' agreement: alpha, kappa and AC with bootstrap intervals, by class, worker and pair."""
    with plain_messages():
        if out is not None:
            check_new_file(out, (".csv",))
        is_saved = holds_saved(Path(file))
        request = Request(
            file=file,
            task=task,
            worker=worker,
            label=label,
            question=question,
            log_tasks=log_tasks,
            log_workers=log_workers,
            classes=classes,
            ordered=ordered,
            abstain=abstain,
        )
        check_input(request, saved=is_saved)
        from rich.text import Text

        from .. import agreement as measured
        from .. import load_fit
        from ..data.harmless_csv import write_csv

        fit = load_fit(file) if is_saved else None
        annotations = read_annotations(request) if fit is None else fit.annotations
        found = measured(annotations, fit, metric=metric, interval=interval, seed=seed)
        console = stdout()
        console.print(Text(str(found)))
        for title, frame in (("By class", found.by_class), ("By worker", found.by_worker)):
            if len(frame):
                console.print(frame_table(frame, title, interval=interval))
        if out is not None:
            with whole_file(out) as path:
                write_csv(found.to_frame().set_index(["of", "name", "quantity"]), path)
