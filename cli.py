"""The command ``crowdppl``."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path
from typing import Annotated

import matplotlib
import typer
from rich.text import Text

from . import AnnotationError, __version__, list_datasets, list_stories
from . import fit as fit_story
from .arguments import parse_settings, read_annotations
from .demo import run_demo
from .inference.export import FILES, export, results_folder
from .terminal import frame_table, show_files, show_summary, speaking_plainly, stdout

app = typer.Typer(
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and leave.")] = False,
) -> None:
    """True labels, workers and their uncertainty from crowd labels."""
    matplotlib.use("Agg")
    if version:
        typer.echo(f"crowdppl {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("fit")
def fit(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="Annotations: a .csv, .tsv, .parquet or .json file; or the name of a dataset.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="New folder for the results.")],
    story: Annotated[str, typer.Option(help="How workers come to answer: see crowdppl stories.")] = "dawid_skene",
    method: Annotated[
        str, typer.Option(help="em: the mode, in a moment; svi: an approximate posterior; nuts: the posterior.")
    ] = "em",
    task: Annotated[str | None, typer.Option(metavar="COL", help="Column of the tasks.", show_default="task")] = None,
    worker: Annotated[
        str | None, typer.Option(metavar="COL", help="Column of the workers.", show_default="worker")
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="COL", help="Column of the answers.", show_default="label")
    ] = None,
    count: Annotated[
        str | None, typer.Option(metavar="COL", help="Column with how many equal answers a row stands for.")
    ] = None,
    separator: Annotated[str | None, typer.Option(metavar="CHAR", help="What separates the columns of a CSV.")] = None,
    classes: Annotated[
        str | None,
        typer.Option(metavar="A,B,C", help="All classes in their order.", show_default="the answers, sorted"),
    ] = None,
    repeats: Annotated[
        str, typer.Option(help="Several answers of a worker to a task: keep all, take the first, or error.")
    ] = "keep",
    gold: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="True labels to measure the result by, with the same columns but worker."),
    ] = None,
    use_gold: Annotated[bool, typer.Option("--use-gold", help="Tell the fit the gold labels.")] = False,
    features: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Features of the tasks: a column of tasks, numbers in the others."),
    ] = None,
    classifier: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Prior of the labels by the tasks' features: logistic, mlp or cnn."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="The same seed gives the same result.")] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Hyperparameter of the story or option of the engine, such as diagonal=4 or draws=1000; repeatable.",
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the results of an earlier fit.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Only warnings and errors.")] = False,
) -> None:
    """Fit a story to annotations; write labels, workers, posterior and a picture to a folder."""
    began = time.perf_counter()
    with speaking_plainly():
        options = parse_settings(settings or [], story, method)
        columns = {"task": task, "worker": worker, "label": label, "count": count, "separator": separator}
        with results_folder(out, overwrite=overwrite) as folder:
            annotations = read_annotations(
                file, columns, classes=classes, gold=gold, features=features, repeats=repeats
            )
            if use_gold and annotations.gold is None:
                raise AnnotationError(f"--use-gold: {file} comes without gold labels; give them with --gold FILE")
            progress = not quiet and sys.stderr.isatty()
            result = fit_story(
                story,
                annotations,
                method=method,
                classifier=classifier,
                gold=use_gold,
                seed=seed,
                progress=progress,
                **options,
            )
            export(result, folder)
    if not quiet:
        console = stdout()
        show_summary(result.summary(), console)
        console.print(Text(f"\nWritten in {time.perf_counter() - began:.1f} s:", style="bold"))
        show_files(out, FILES, console)


@app.command("demo")
def demo(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the files.")] = Path(
        "crowdppl-demo"
    ),
) -> None:
    """Dawid and Skene's anaesthetists by all three engines, side by side, in a minute."""
    with speaking_plainly():
        run_demo(out, stdout())


@app.command("datasets")
def datasets() -> None:
    """List the datasets that crowdppl fit takes by name."""
    with speaking_plainly():
        frame = list_datasets().set_index("name").rename_axis("dataset").drop(columns="where")
        frame["workers"] = [f"{n:,}" if n else "not named" for n in frame["workers"]]
        console = stdout()
        console.print(frame_table(frame))
        root = os.environ.get("CROWDPPL_DATA")
        others = f"the others are in {root}" if root else "set CROWDPPL_DATA to a folder of datasets for more"
        console.print(Text(f"anesthesia and digits are in the package; {others}", style="dim"))


@app.command("stories")
def stories() -> None:
    """List the stories of how workers come to answer."""
    frame = list_stories()
    frame["says"] = [re.sub(r"(:\w+:)?`+([^`]*)`+", r"\2", line) for line in frame["says"]]
    stdout().print(frame_table(frame))
