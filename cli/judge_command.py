"""The subcommand ``crowdppl judge``."""

from __future__ import annotations

import time
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.atomic import check_new_file
from ..data.errors import AnnotationError
from . import options
from .advice import for_the_shell
from .arguments import check_input, parse_settings, read_annotations, read_probabilities
from .request import Request, takes_request
from .terminal import doing, frame_table, plain_messages, show_files, starting, stdout, written_in

if TYPE_CHECKING:
    from .. import Panel

LEANING = ("bias", "position_bias", "sensitivity", "specificity")
SHOWN = ("annotations", "right", "gold_right", *LEANING, "kappa", "n_effective")

OF_A_FIT = ("file", "gold", "seed", "quiet", "system", "positive", "out", "json", "overwrite", "title")
"""The parameters that a saved fit takes."""


@partial(takes_request, more="Or a folder of logs of evaluations, or of a saved fit.")
def judge(
    context: typer.Context,
    story: str = "auto",
    system: Annotated[
        str | None,
        options.option(
            "Column of the systems that were judged, which are ranked.",
            "COL",
            default="of logs, the model that answered; of a table, a column such as model",
            rich_help_panel=options.ANNOTATIONS,
        ),
    ] = None,
    positive: Annotated[
        str | None,
        options.option(
            "Of classes without an order, the one whose share is a system's score.",
            "CLASS",
            default="found by its name, else the last",
            rich_help_panel=options.ANNOTATIONS,
        ),
    ] = None,
    *,
    request: Request,
    out: Annotated[Path | None, options.out("Write the page.", "FILE.html")] = None,
    json: Annotated[
        Path | None, options.option("Write all figures.", "FILE.json", rich_help_panel=options.OUTPUT)
    ] = None,
    overwrite: options.Overwrite = False,
    title: str | None = None,
) -> None:
    """Weigh a panel of judges: who is right, who copies whom, whom to drop, how many human labels would settle it."""
    began = time.perf_counter()
    folder = request.saved
    with plain_messages(folder):
        check_new_file(out, (".html", ".htm"), overwrite=overwrite)
        check_new_file(json, (".json",), overwrite=overwrite)
        check_input(request, context, OF_A_FIT)
        if request.use_gold:
            raise AnnotationError(
                "--use-gold: the judges are judged by the gold labels, which no fit is told; leave it out"
            )
        with starting(request):
            from .. import ConvergenceWarning, CrowdWarning, load_fit
            from .. import judge as weigh
            from ..inference.panel.systems import systems_of

            settings = parse_settings(request.settings or [], story, "em")
        with doing(f"reading {request.file}", request):
            source: Any = read_annotations(request) if folder is None else load_fit(folder)
            systems = systems_of(source if folder is None else source.annotations, system, request.file)
        with doing("weighing the judges", request):
            given: dict[str, Any] = {}
            if folder is None:
                given = {"story": story, "progress": request.shows_progress, "classifier": request.classifier}
                given |= read_probabilities(request, source) | settings
            gold = request.gold if folder else None  # of annotations that are read they have it
            with warnings.catch_warnings():
                for of_findings in (ConvergenceWarning, CrowdWarning):  # they are among the alerts
                    warnings.simplefilter("ignore", of_findings)
                panel = weigh(source, gold, system=systems, positive=positive, seed=request.seed, **given)
        if not request.quiet:
            _show(panel, folder)
        files = {}
        if out is not None:
            files[str(panel.report(out, title=title))] = "judges, copies, agreement, systems or ranking, labels"
        if json is not None:
            files[str(panel.write_json(json))] = "all figures"
        if not request.quiet:
            show_files(files, stdout(), written_in(began))


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
        console.print(frame_table(panel.systems, f"Systems{panel.by_column}, by {panel.system_score}"))
    if panel.ranking is not None:
        console.print(frame_table(panel.ranking, "Ranking"))
    console.print(Text(for_the_shell(str(panel.gold_needed), folder)))
