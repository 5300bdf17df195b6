"""The command ``crowdppl report``."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from .. import Fit
from .. import fit as fit_story
from ..inference.report.place import check_place
from ..inference.results import Stack
from . import options
from .arguments import check_gold_told, parse_settings, read_annotations
from .terminal import show_summary, speaking_plainly, stdout


def report(
    file: options.File,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE.html", help="The page to write.")],
    story: Annotated[
        list[str] | None,
        typer.Option(
            help="How workers come to annotate: see crowdppl stories. Given several times, the stories are compared and "
            "their labels averaged; auto takes a shelf of them.",
            show_default="dawid_skene",
        ),
    ] = None,
    method: Annotated[
        str, typer.Option(help="em: the mode, in a moment; svi: an approximate posterior; nuts: the posterior.")
    ] = "svi",
    title: Annotated[str | None, typer.Option(help="Heading of the page.")] = None,
    checks: Annotated[
        bool, typer.Option("--checks/--no-checks", help="Check whether the story could have written the annotations.")
    ] = True,
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
    quiet: options.Quiet = False,
) -> None:
    """Fit one story or several, and write a page (HTML, one file) of all that was found."""
    began = time.perf_counter()
    with speaking_plainly():
        stories = story or ["dawid_skene"]
        several = len(stories) > 1
        if several and "auto" in stories:
            raise ValueError("--story auto takes a shelf of stories by itself; give it alone, or the stories by name")
        check_place(out)
        given = parse_settings(settings or [], stories[0], method)
        columns = {"task": task, "worker": worker, "label": label, "count": count, "seconds": seconds}
        columns["separator"] = separator
        annotations = read_annotations(file, columns, classes=classes, gold=gold, features=features, repeats=repeats)
        check_gold_told(annotations, file, use_gold)
        shared = {
            "method": method,
            "classifier": classifier,
            "gold": use_gold,
            "seed": seed,
            "progress": not quiet and sys.stderr.isatty(),
            **given,
        }
        if several:
            result: Fit | Stack = fit_story("auto", annotations, stories=stories, **shared)
        else:
            result = fit_story(stories[0], annotations, **shared)
        result.report(out, title=title, checks=checks, seed=seed)
    if not quiet:
        console = stdout()
        show_summary(result.summary(), console)
        console.print(Text(f"\nWritten in {time.perf_counter() - began:.1f} s:", style="bold"))
        console.print(Text(str(out), style="cyan"))
