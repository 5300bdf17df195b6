"""The subcommand ``crowdppl next-gold``."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..data.atomic import check_new_file, whole_file
from ..data.errors import AnnotationError
from ..data.text_files import read_header, suffix_of
from . import options
from .arguments import TEXT, check_file, read_table, saved_or_new_fit, separator
from .request import Request, takes_request
from .terminal import frame_table, plain_messages, show_files, stdout, written_in

if TYPE_CHECKING:
    import pandas as pd

OF_A_FIT = ("file", "seed", "quiet", "n", "out", "overwrite", "page", "content", "task")
"""The parameters that a saved fit takes; the column of tasks is that of the content."""


@partial(takes_request, more="Or the folder of a saved fit.")
def next_gold(
    context: typer.Context,
    story: str = "auto",
    method: str = "em",
    *,
    request: Request,
    n: Annotated[int, options.option("How many tasks to name.", "N", "--n", "-n", min=1)] = 20,
    out: Annotated[
        Path | None,
        options.out(
            "Write the tasks to a new file, with an empty column label to fill in: GOLD of crowdppl estimate, and "
            "--gold of crowdppl fit.",
            "FILE.csv",
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    page: Annotated[
        Path | None,
        options.option(
            "Write a page to label the tasks on, by mouse or keyboard, which saves gold.csv; without network.",
            "FILE.html",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
    content: Annotated[
        Path | None,
        options.option(
            "What the tasks are, for the page: a .csv, .tsv or .parquet file with a column of tasks, and text, or "
            "paths of pictures beside the file, in others.",
            "FILE",
            default="other columns of the annotations' file",
            rich_help_panel=options.OUTPUT,
        ),
    ] = None,
) -> None:
    """Name the tasks whose true labels are worth knowing: half at random, half where the fit's stories disagree."""
    began = time.perf_counter()
    with plain_messages(request.saved):
        check_new_file(out, (".csv",), overwrite=overwrite)
        check_new_file(page, (".html", ".htm"), overwrite=overwrite)
        if content is not None and page is None:
            raise AnnotationError("--content is shown on the page; give --page FILE.html too")
        check_file(content, "--content: ")
        fit = saved_or_new_fit(context, request, [story], method, OF_A_FIT)
        from .. import gold_page
        from .. import next_gold as tasks_to_check

        found = tasks_to_check(fit, n, seed=request.seed)
        console = stdout(quiet=request.quiet)
        console.print(frame_table(found.set_index("task")))
        files = {}
        if page is not None:
            about = content or _own_table(request)
            table = None if about is None else _content(about, request)
            gold_page(fit, page, found, content=table, folder=about.parent if about else ".")
            files[str(page)] = "the tasks to label, which saves gold.csv"
        if out is not None:
            write_to_fill_in(found, ["task", "label"], out)
            files[str(out)] = "the tasks to label"
        show_files(files, console, written_in(began))


def _own_table(request: Request) -> Path | None:
    """The file of the annotations, where it is a table with a header."""
    path = Path(request.file)
    return path if path.is_file() and suffix_of(path) in (*TEXT, ".parquet") else None


def content_option(request: Request, workers: Iterable[object]) -> str:
    """Return the options that show on a page what the tasks are, where the file of a fit has columns of it; or nothing.

    Args:
        request: of the fit.
        workers: the names of the workers, which may be columns.
    """
    path = _own_table(request)
    if path is None or suffix_of(path) not in TEXT:
        return ""
    from ..data.column_names import is_of_annotations, named_for

    columns = read_header(path, separator(request), request.encoding)
    own = request.task or ("task" if "task" in columns else None)
    tasks = named_for("task", columns) if own is None else [own]
    asked = [] if request.question is None else request.question.split(",")
    known = {*tasks, *asked, request.tags, *request.named_columns.values(), *map(str, workers)}
    if len(tasks) != 1 or all(name in known or is_of_annotations(name) for name in columns):
        return ""
    return f" {shlex.join(['--content', str(path), *([] if request.task is None else ['--task', request.task])])}"


def _content(file: Path, request: Request) -> pd.DataFrame:
    """The table of a file, whose column of tasks is called so, without those that were named as something else."""
    table = read_table("--content", file, request.task)
    others = [name for role, name in request.named_columns.items() if role != "task"]
    table = table.drop(columns=others, errors="ignore")
    return table.rename(columns={request.task: "task"}) if request.task in table else table


def write_to_fill_in(found: pd.DataFrame, columns: list[str], out: Path) -> None:
    """Write a table with these columns first, empty where it has none of the name."""
    from ..data.harmless_csv import write_csv

    asked = found.reindex(columns=[*columns, *(name for name in found if name not in columns)], fill_value="")
    with whole_file(out) as path:
        write_csv(asked.set_index(columns[0]), path)
