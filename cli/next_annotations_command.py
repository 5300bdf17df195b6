"""The subcommands ``crowdppl next-annotations`` and ``crowdppl next-comparisons``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..data.atomic import check_new_file
from ..data.errors import AnnotationError, look_up
from . import options
from .arguments import saved_or_new_fit
from .next_gold_command import write_to_fill_in
from .request import Request, takes_request
from .terminal import frame_table, plain_messages, show_files, stdout, written_in

if TYPE_CHECKING:
    import pandas as pd

    from .. import Fit

OF_A_FIT = ("file", "seed", "quiet", "n", "ask", "ask_all", "per_task", "most_per_worker", "out", "overwrite")
"""The parameters that a saved fit takes."""
WHO = "Who may be asked"
PAIR = ("left", "right")
MORE = "Or the folder of a saved fit."
Ask = Annotated[
    list[str] | None,
    options.option(
        "A worker who may be asked; may be given several times.",
        "WORKER",
        default="a typical worker, who is not named",
        rich_help_panel=WHO,
    ),
]
AskAll = Annotated[
    bool, options.option("Any worker of the annotations may be asked.", None, "--ask-all", rich_help_panel=WHO)
]
Out = Annotated[
    Path | None,
    options.out(
        "Write them to a new file, with an empty column label to fill in, whose rows can be added to the annotations.",
        "FILE.csv",
    ),
]


@partial(takes_request, more=MORE)
def next_annotations(
    context: typer.Context,
    story: str = "auto",
    method: str = "em",
    *,
    request: Request,
    n: Annotated[int, options.option("How many annotations to ask for.", "N", "--n", "-n", min=1)] = 20,
    ask: Ask = None,
    ask_all: AskAll = False,
    per_task: Annotated[int, options.option("How often one task may be asked for, at the most.", "N", min=1)] = 1,
    most_per_worker: Annotated[
        int | None, options.option("How often a worker may be asked, at the most.", "N", min=1, rich_help_panel=WHO)
    ] = None,
    out: Out = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Name the tasks to have annotated again, and by whom: where labels are expected to become surest."""
    if most_per_worker is not None and not (ask or ask_all):
        with plain_messages():
            raise AnnotationError(
                "--most-per-worker limits the workers who may be asked; give --ask WORKER or --ask-all"
            )
    with _asking(context, request, story, method, ask, ask_all=ask_all, out=out, overwrite=overwrite) as (
        fit,
        workers,
        show,
    ):
        from .. import next_annotations as asked
        from ..inference.fitted.item_ranking import parts_of

        found = asked(fit, n, workers=workers, repeats=per_task, most_per_worker=most_per_worker)
        keys = [name for name in ("task", "question", *PAIR) if name in found]
        show(found, [*keys, "worker"])
        if fit.annotations.sides is not None and parts_of(fit.annotations).any():
            stdout(quiet=request.quiet).print(
                "Items of different parts are not compared with each other by any of these: crowdppl next-comparisons "
                "names pairs that join the parts."
            )


@partial(takes_request, more=MORE)
def next_comparisons(
    context: typer.Context,
    story: str = "dawid_skene",
    method: str = "em",
    *,
    request: Request,
    n: Annotated[int, options.option("How many comparisons to ask for.", "N", "--n", "-n", min=1)] = 20,
    ask: Ask = None,
    ask_all: AskAll = False,
    out: Out = None,
    overwrite: options.Overwrite = False,
) -> None:
    """Name the items to have compared next, and by whom: where most is learned of the items' scores."""
    with _asking(context, request, story, method, ask, ask_all=ask_all, out=out, overwrite=overwrite) as (
        fit,
        workers,
        show,
    ):
        from .. import next_comparisons as asked

        found = asked(fit, n, workers=workers, seed=request.seed)
        show(found, [*PAIR, "worker"])
        if "joins_parts" in found:
            stdout(quiet=request.quiet).print(
                "Nothing that was compared tells items of different parts apart: the comparisons that join two parts "
                "come first, and their gain is by the prior of the scores."
            )


@contextmanager
def _asking(
    context: typer.Context,
    request: Request,
    story: str,
    method: str,
    ask: list[str] | None,
    *,
    ask_all: bool,
    out: Path | None,
    overwrite: bool,
) -> Iterator[tuple[Fit, list[Any] | None, Any]]:
    """The fit, those of its workers who may be asked, and what shows a table and writes it to be filled in."""
    began = time.perf_counter()
    with plain_messages(request.saved):
        if ask and ask_all:
            raise AnnotationError("--ask-all asks any worker; leave it out, or --ask")
        check_new_file(out, (".csv",), overwrite=overwrite)
        fit = saved_or_new_fit(context, request, [story], method, OF_A_FIT)

        def show(found: pd.DataFrame, keys: list[str]) -> None:
            front = [name for name in keys if name in found]
            ordered = found[[*front, *(name for name in found if name not in front)]]
            if "joins_parts" in found:
                ordered = ordered.assign(
                    joins_parts=[("no", "yes")[joins] for joins in found["joins_parts"]],
                    p_left=[f"{p:.3f}" if p == p else "not known" for p in found["p_left"]],
                )
            console = stdout(quiet=request.quiet)
            if len(found):
                console.print(frame_table(ordered.set_index(front[0])))
            else:
                console.print("There is nothing to ask: each of those who may be asked has annotated every task.")
            if out is not None:
                write_to_fill_in(found, [*keys, "label"], out)
                show_files({str(out): "what to ask for, with a column label to fill in"}, console, written_in(began))

        yield fit, _workers(fit, ask, ask_all=ask_all), show


def _workers(fit: Fit, ask: list[str] | None, *, ask_all: bool) -> list[Any] | None:
    """The workers who may be asked, as the annotations have them; None for a typical one.

    Raises:
        AnnotationError: the annotations name no workers.
        UnknownNameError: they have no such worker.
    """
    if not ask and not ask_all:
        return None
    if not fit.annotations.named:
        raise AnnotationError("the annotations name no workers, so none can be asked by name; leave --ask out")
    known = {str(worker): worker for worker in fit.annotations.workers}
    return [look_up("worker of --ask", name, known) for name in ask] if ask else list(known.values())
