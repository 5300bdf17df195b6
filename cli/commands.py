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

from .. import __version__, list_datasets, list_stories
from .. import fit as fit_story
from . import options
from .arguments import check_gold_told, parse_settings, read_annotations
from .demo import run_demo
from .export import export, results_folder
from .report_command import report
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
    file: options.File,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="New folder for the results.")],
    story: Annotated[
        str,
        typer.Option(
            help="How workers come to annotate: see crowdppl stories; auto compares a shelf of them, and averages."
        ),
    ] = "dawid_skene",
    method: Annotated[
        str, typer.Option(help="em: the mode, in a moment; svi: an approximate posterior; nuts: the posterior.")
    ] = "em",
    task: options.Task = None,
    worker: options.Worker = None,
    label: options.Label = None,
    count: options.Count = None,
    seconds: options.Seconds = None,
    separator: options.Separator = None,
    classes: options.Classes = None,
    repeats: options.Repeats = "keep",
    gold: options.Gold = None,
    use_gold: options.UseGold = False,
    features: options.Features = None,
    classifier: options.Classifier = None,
    seed: options.Seed = 0,
    settings: options.Settings = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the results of an earlier fit.")] = False,
    quiet: options.Quiet = False,
) -> None:
    """Fit a story to annotations; write labels, workers, posterior and a picture to a folder."""
    began = time.perf_counter()
    with speaking_plainly():
        given = parse_settings(settings or [], story, method)
        columns = {"task": task, "worker": worker, "label": label, "count": count, "seconds": seconds}
        columns["separator"] = separator
        with results_folder(out, overwrite=overwrite) as folder:
            annotations = read_annotations(
                file, columns, classes=classes, gold=gold, features=features, repeats=repeats
            )
            check_gold_told(annotations, file, use_gold)
            progress = not quiet and sys.stderr.isatty()
            result = fit_story(
                story,
                annotations,
                method=method,
                classifier=classifier,
                gold=use_gold,
                seed=seed,
                progress=progress,
                **given,
            )
            files = export(result, folder)
    if not quiet:
        console = stdout()
        show_summary(result.summary(), console)
        console.print(Text(f"\nWritten in {time.perf_counter() - began:.1f} s:", style="bold"))
        show_files(out, files, console)


app.command("report")(report)


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
    """List the stories of how workers come to annotate."""
    frame = list_stories()
    frame["says"] = [re.sub(r"(:\w+:)?`+([^`]*)`+", r"\2", line) for line in frame["says"]]
    stdout().print(frame_table(frame))
