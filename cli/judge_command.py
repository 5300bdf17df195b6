"""The subcommand ``crowdppl judge``."""

from __future__ import annotations

import time
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.atomic import check_new_file
from . import options
from .advice import for_the_shell
from .arguments import check_input, holds_saved, parse_settings, read_annotations, refuse_options_of_a_fit
from .request import Request, takes_request
from .terminal import doing, frame_table, plain_messages, show_files, starting, stdout

if TYPE_CHECKING:
    from .. import Panel

LEANING = ("bias", "position_bias", "sensitivity", "specificity")
SHOWN = ("annotations", "right", "gold_right", *LEANING, "kappa", "n_effective")

OF_A_FIT = ("file", "gold", "seed", "quiet", "system", "positive", "out", "json", "title")
"""The parameters that a saved fit takes."""


@partial(takes_request, more="Or a folder of logs of evaluations, or of a saved fit.")
def judge(
    context: typer.Context,
    story: Annotated[
        str,
        typer.Option(metavar="NAME", help="As for crowdppl fit.", rich_help_panel=options.FIT),
    ] = "auto",
    system: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Column of the systems that were judged, which are ranked.",
            show_default="of logs, the model that answered",
            rich_help_panel=options.ANNOTATIONS,
        ),
    ] = None,
    positive: Annotated[
        str | None,
        typer.Option(
            metavar="CLASS",
            help="Of classes without an order, the one whose share is a system's score.",
            show_default="found by its name, else the last",
            rich_help_panel=options.ANNOTATIONS,
        ),
    ] = None,
    *,
    request: Request,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE.html", help="Write the page.", rich_help_panel=options.OUTPUT),
    ] = None,
    json: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE.json", help="Write all figures.", rich_help_panel=options.OUTPUT),
    ] = None,
    title: str | None = None,
) -> None:
    """Weigh a panel of judges: who is right, who copies whom, whom to drop, how many human labels would settle it."""
    began = time.perf_counter()
    saved = holds_saved(Path(request.file))
    folder = request.file if saved else None
    with plain_messages(folder):
        for file, suffixes in ((out, (".html", ".htm")), (json, (".json",))):
            if file is not None:
                check_new_file(file, suffixes)
        if saved:
            refuse_options_of_a_fit(context, request.file, OF_A_FIT)
        check_input(request, saved=saved)
        with starting(request):
            from .. import CrowdWarning, load_fit
            from .. import judge as weigh
            from ..inference.panel.systems import systems_of

            settings = parse_settings(request.settings or [], story, "em")
        with doing(f"reading {request.file}", request):
            source: Any = load_fit(request.file) if saved else read_annotations(request)
            systems = systems_of(source.annotations if saved else source, system, request.file)
        with doing("weighing the judges", request):
            given = {} if saved else {"story": story, "progress": request.shows_progress, **settings}
            gold = request.gold if saved else None  # of annotations that are read they have it
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CrowdWarning)  # they are among the alerts
                panel = weigh(source, gold, system=systems, positive=positive, seed=request.seed, **given)
        if not request.quiet:
            _show(panel, folder)
        files = {}
        if out is not None:
            files[str(panel.report(out, title=title))] = "judges, copies, agreement, systems, labels"
        if json is not None:
            files[str(panel.write_json(json))] = "all figures"
        if files and not request.quiet:
            stdout().print(f"\nWritten in {time.perf_counter() - began:.1f} s:", style="bold")
            show_files(files, stdout())


def _show(panel: Panel, folder: str | None) -> None:
    """Print what a panel says, its findings to act on, its judges and the systems."""
    from rich.text import Text

    console = stdout()
    for sentence in panel.sentences:
        console.print(Text(for_the_shell(sentence, folder)))
    for alert, texts, _ in panel.alerts:
        console.print(Text(f"\n{alert}", style="bold yellow"))
        for text in texts:
            console.print(Text(for_the_shell(text, folder)))
    names = [f"{name}{end}" for name in SHOWN for end in ("", "_low", "_high")]
    console.print()
    console.print(frame_table(panel.judges[[name for name in names if name in panel.judges]], "Judges"))
    if panel.systems is not None:
        console.print(frame_table(panel.systems, f"Systems by {panel.system_score}"))
    console.print(Text(for_the_shell(str(panel.gold_needed), folder)))
