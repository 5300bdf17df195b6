"""The command ``crowdppl`` and its subcommands.

What needs JAX or pandas is imported by the commands that need it, after all that can be refused without.
"""

import os
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import __version__
from ..data.errors import AnnotationError, check_name
from . import options
from .agreement_command import agreement
from .arguments import check_input, parse_settings, read_annotations, read_probabilities
from .estimate_command import estimate
from .judge_command import judge
from .next_annotations_command import next_annotations, next_comparisons
from .next_gold_command import content_option, next_gold
from .output import (
    GROUPS,
    TOOLS,
    check_privacy,
    named_for_others,
    output_folder,
    shown_to_others,
    write_for_tool,
    write_results,
)
from .report_command import report
from .request import SAVED, CommandWithSettings, Request, takes_request
from .stream import saying_how_to_go_on, scan_of
from .terminal import doing, frame_table, plain_messages, show_result, starting, stdout
from .update_command import update

ELSEWHERE = {
    "check": "crowdppl report FILE checks a fit",
    "compare": "crowdppl report FILE --story dawid_skene --story one_coin compares stories",
    "plot": "crowdppl fit FILE --plot draws the workers, and crowdppl report FILE all pictures",
    "score": "crowdppl fit FILE --gold GOLD compares labels with gold labels",
    "workers": "crowdppl fit FILE writes workers.csv",
}
"""Names that are no commands, each with what does what it says."""


class _Commands(TyperGroup):
    """The commands; of a name that is none it says what does it."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        found = super().get_command(ctx, cmd_name)
        if found is None and (said := ELSEWHERE.get(cmd_name)) is not None:
            ctx.fail(f"No such command {cmd_name!r}: {said}")
        return found


app = typer.Typer(
    cls=_Commands,
    add_completion=True,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Infer true labels from the annotations of a crowd, and how reliable each worker is, with their uncertainty."""
    os.environ["MPLBACKEND"] = "Agg"  # pictures are written to files, also where there is no screen
    if version:
        typer.echo(f"crowdppl {__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("fit", cls=CommandWithSettings)
@takes_request
def fit(
    story: Annotated[
        str | None,
        options.option(
            "Story, that is a model of how workers annotate (see crowdppl stories); auto fits Dawid and Skene's with "
            "errors that workers share, or groups of workers where none is named, and averages its labels with the "
            "votes.",
            "NAME",
            default="dawid_skene, and auto of preferences and with --truth-classes",
            rich_help_panel=options.FIT,
        ),
    ] = None,
    method: str = "em",
    stream: bool | None = None,
    memory: str | None = None,
    work: Path | None = None,
    checkpoint: Path | None = None,
    every: str | None = None,
    resume: bool = False,
    *,
    out: Annotated[Path, options.out("New folder for the results.", "DIR")] = Path("crowdppl-fit"),
    request: Request,
    overwrite: bool = False,
    to: list[str] | None = None,
    workers: str = "keep",
    key: Path | None = None,
    min_group: int | None = None,
    plot: bool = False,
) -> None:
    """Fit a story to annotations; write labels, workers and the posterior to a folder."""
    began = time.perf_counter()
    with plain_messages(str(out)):
        named, story = story, story or request.default_story()
        with output_folder(out, overwrite=overwrite) as folder:
            check_input(request)
            check_privacy(workers, key, min_group, plot=plot)
            for tool in to or []:
                check_name("tool", tool, TOOLS)
                if tool == "inspect" and workers != "keep":
                    raise AnnotationError(
                        f"--to inspect copies logs with the workers' names; --workers {workers} hides them"
                    )
            with starting(request):
                from .. import fit as fit_story
                from ..data.harmless_csv import write_csv

                settings = parse_settings(request.settings or [], story, method)
            with doing(f"reading {request.file}", request):
                scan = scan_of(request, stream=stream, memory=memory, story=story, method=method)
                if plot and scan is not None:
                    raise AnnotationError("--plot draws all workers of a fit in memory; leave it out of a streamed fit")
                if work is not None and scan is None:
                    raise AnnotationError("--work keeps the state of a streamed fit: give --stream and Parquet files")
                if workers != "keep" and scan is not None:
                    raise AnnotationError(f"--workers {workers} takes a fit in memory; give --no-stream")
                annotations = named_for_others(read_annotations(request), workers, key) if scan is None else scan
                if plot and scan is None and not annotations.named:
                    raise AnnotationError(
                        "--plot draws the confusion matrix of each worker, and the annotations name none; leave it out"
                    )
            story = named or request.default_story(annotations)
            with doing(f"fitting {story} by {method.upper()}", request):
                models = read_probabilities(request, annotations)
                kept = {"checkpoint": checkpoint, "every": every, "resume": resume}
                kept |= {} if work is None else {"folder": work}
                given = {**request.shared_options, **models, **settings, **kept}
                with saying_how_to_go_on(work, streams=scan is not None and checkpoint is None):
                    result = fit_story(story, annotations, method=method, **given)
            with doing("working out intervals and writing the results", request):
                if min_group is not None:
                    write_csv(result.worker_groups(min_group), folder / GROUPS)
                result = shown_to_others(result, workers)
                files = write_results(result, folder, plot=plot)
                for tool in to or []:
                    files |= write_for_tool(result, folder, tool, request)
        if not request.quiet:
            written = {os.path.join(out, name): content for name, content in files.items()}
            content = content_option(request, result.annotations.workers) if scan is None else ""
            show_result(result, written, began, str(out) if SAVED in files else None, content)


app.command("update")(update)
app.command("report", cls=CommandWithSettings)(report)
app.command("estimate")(estimate)
app.command("agreement")(agreement)
app.command("judge", cls=CommandWithSettings)(judge)
app.command("next-gold")(next_gold)
app.command("next-annotations")(next_annotations)
app.command("next-comparisons")(next_comparisons)


@app.command("demo")
def demo(
    out: Annotated[Path, options.out("Folder for the files.", "DIR", None)] = Path("crowdppl-demo"),
) -> None:
    """Fit the annotations of Dawid and Skene's five anaesthetists by EM, SVI and NUTS and compare them, in a minute."""
    with plain_messages():
        from .demo import run_demo

        run_demo(out, stdout())


@app.command("datasets")
def datasets() -> None:
    """List the datasets that crowdppl fit and crowdppl report take by name."""
    from rich.text import Text

    with plain_messages():
        from .. import list_datasets

        frame = list_datasets().set_index("name").rename_axis("dataset").drop(columns="where")
        frame["workers"] = [f"{n:,}" if n else "not named" for n in frame["workers"]]
        console = stdout()
        console.print(frame_table(frame.rename(columns={"gold": "gold labels"})))
        root = os.environ.get("CROWDPPL_DATA")
        others = f"the others are in {root}" if root else "set CROWDPPL_DATA to a folder of datasets for more"
        console.print(Text(f"anesthesia and digits are in the package; {others}", style="dim"))


@app.command("stories")
def stories(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A story, to see its density, hyperparameters and options.")
    ] = None,
) -> None:
    """List the stories, which are models of how workers annotate, and the baselines without one, or show one."""
    with plain_messages():
        if name is not None:
            from .story_page import show_story

            show_story(name, stdout())
            return
        from .. import list_baselines, list_stories

        stdout().print(frame_table(list_stories().rename(columns={"says": "what it assumes"})))
        stdout().print(frame_table(list_baselines().rename(columns={"says": "what it does, without a likelihood"})))
        stdout().print("crowdppl stories NAME shows one story.", style="dim")
