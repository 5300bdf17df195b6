"""The command ``python -m benchmarks.papers``, from the root of a clone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crowdppl.cli.stream import saying_how_to_go_on
from crowdppl.cli.terminal import frame_table, make_table, plain_messages, show_files, stdout
from crowdppl.data.errors import AnnotationError

from .experiments import EXPERIMENTS, experiment

if TYPE_CHECKING:
    from .experiment import Experiment

app = typer.Typer(
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

ALL = "all"
STYLES = {"holds": "green", "reproduced": "green", "fails": "red"}


@app.command()
def papers(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Experiments to run, or all. Without a name they are listed."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Runs of each cell, with another seed each.")] = 5,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for runs and results; goes on where it stopped.")
    ] = Path("paper-results"),
    stored: Annotated[bool, typer.Option("--stored", help="Show what the folder holds, and run nothing.")] = False,
    stale: Annotated[
        bool,
        typer.Option(
            "--stale",
            help="Run those again whose sources have changed since; with --stored, say how many these are and no more.",
        ),
    ] = False,
    page: Annotated[
        Path | None,
        typer.Option("--page", metavar="FILE.md", help="Write a page of all claims, with verdicts and tables."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but warnings and errors.")] = False,
) -> None:
    """Run experiments of the papers again: their tables beside ours, their figures, and a verdict on every claim."""
    os.environ["MPLBACKEND"] = "Agg"  # figures are written to files, also where there is no screen
    with plain_messages():
        if not names and (page is not None or stored or stale):
            raise AnnotationError("--page, --stored and --stale are of experiments; name them, or give all")
        if not names:
            _list()
            return
        chosen = [experiment(name) for name in (EXPERIMENTS if ALL in names else dict.fromkeys(names))]
        ready = []
        for each in chosen:
            lacking = _unstored(each, out) if stored else _lacking(each)
            if lacking and ALL not in names:
                raise AnnotationError(lacking)
            if lacking:
                typer.echo(f"{each.name} is left out: {lacking}", err=True)
            else:
                ready.append(each)
        if not ready:
            raise AnnotationError(
                f"--stored: {out} holds no runs of any experiment" if stored else "no experiment has its data"
            )
        for each in ready:
            if stored and stale:
                stdout().print(f"{each.name}: {_changed(each, out, seeds)}", highlight=False, soft_wrap=True)
                continue
            with saying_how_to_go_on(None, streams=False):
                _one(each, out, seeds, stored=stored, stale=stale, quiet=quiet)
        if page is not None:
            from .claims_page import write_page

            write_page(page, ready, out, seeds)
            if not quiet:
                stdout().print(f"\nThe page of all claims: {page}")


def _changed(each: Experiment, out: Path, seeds: int) -> str:
    """Return how many of an experiment's runs are of other sources than today's, in a sentence."""
    from .kept_cells import records, store_of
    from .sources import digests, how_many_changed

    return how_many_changed(records(each, store_of(each, out), seeds), digests(each))


def _one(each: Experiment, out: Path, seeds: int, *, stored: bool, stale: bool, quiet: bool) -> None:
    from .kept_cells import run_cells, store_of
    from .written_results import write_results

    store = store_of(each, out)
    if not stored:
        run_cells(each, store, seeds, show=not quiet, stale=stale)
    files = write_results(each, store, out / each.name, seeds)
    if not quiet:
        _show(each, out, seeds, files)


def _show(each: Experiment, out: Path, seeds: int, files: dict[str, str]) -> None:
    """Print the tables, the claims with their verdicts and rules, and the files that were written."""
    from rich.text import Text

    from .claims_page import circumstances
    from .experiment import TWICE
    from .kept_cells import cell_frame, records, store_of
    from .written_results import cell_text, judged

    console = stdout()
    store = store_of(each, out)
    frame = cell_frame(each, store, seeds)
    console.print(Text(f"\n{each.title}", style="bold"))
    console.print(Text(each.paper, style="dim"))
    console.print(Text(circumstances(records(each, store, seeds), len(each.cells(seeds))), style="dim"))
    console.print(Text(_changed(each, out, seeds), style="dim"))
    for title, table in each.tables(frame).items():
        flat = table.reset_index().map(cell_text)
        console.print(frame_table(flat.set_index(flat.columns[0]), f"\n{title}"))
    console.print(Text("Claims", style="bold"))
    console.print(Text(f"Rule where no other is given: {TWICE}", style="dim"))
    for claim, where, paper, ours, verdict, rule in judged(each, frame).itertuples(index=False):
        style = STYLES.get(verdict, "yellow")
        console.print(Text.assemble((f"• {claim} ", ""), (f"({where})", "dim")))
        figures = "; ".join(filter(None, [f"paper {paper}" if paper else "", f"here {ours}" if ours else ""]))
        console.print(Text.assemble("  ", (f"{verdict}. ", style), figures))
        if rule != TWICE:
            console.print(Text(f"  Rule: {rule}", style="dim"))
    if each.notes:
        console.print(Text(f"\n{each.notes}", style="dim"))
    show_files({str(out / each.name / name): what for name, what in files.items()}, console, "Files:")


def _unstored(each: Experiment, out: Path) -> str | None:
    """That the folder holds no runs of an experiment; None where it does."""
    from .kept_cells import store_of, stored

    store = store_of(each, out)
    return None if stored(store) else f"--stored: {store} holds no runs; leave out --stored to run {each.name}"


def _lacking(each: Experiment) -> str | None:
    """Which datasets an experiment needs that are not there; None where all are."""
    root = os.environ.get("CROWDPPL_DATA")
    missing = [name for name in each.needs if root is None or not (Path(root) / name).is_dir()]
    if not missing:
        return None
    where = "CROWDPPL_DATA is unset" if root is None else f"{root} has no such folder"
    return f"{each.name} needs the dataset {', '.join(missing)}: {where}; set CROWDPPL_DATA to the folder of datasets"


def _list() -> None:
    from rich.text import Text

    table = make_table()
    for heading in ("experiment", "what is done", "data"):
        table.add_column(heading, overflow="fold")
    for name in EXPERIMENTS:
        each = experiment(name)
        table.add_row(name, Text.assemble(each.title, ("\n" + each.paper, "dim")), ", ".join(each.needs) or "simulated")
    stdout().print(table)
    command = "python -m benchmarks.papers"
    stdout().print(Text(f"{command} NAME --seeds 5 runs one; {command} all runs all.", style="dim"))


if __name__ == "__main__":
    app()
