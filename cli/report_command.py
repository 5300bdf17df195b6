"""The subcommand ``crowdppl report``."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ..data.atomic import check_new_file
from . import options
from .arguments import saved_or_new_fit
from .output import check_privacy, shown_to_others
from .request import Request, takes_request
from .terminal import doing, plain_messages, show_result

OF_A_PAGE = ("file", "gold", "seed", "quiet", "out", "overwrite", "title", "workers", "key", "checks")
"""The parameters that a page of a saved fit takes."""


@partial(takes_request, more=options.SAVED)
def report(
    context: typer.Context,
    story: Annotated[
        list[str] | None,
        options.option(
            "Story, that is a model of how workers annotate (see crowdppl stories). Where several are given, they are "
            "compared on held-out annotations and their labels averaged; auto is as for crowdppl fit.",
            "NAME",
            default="dawid_skene, and auto of preferences and with --truth-classes",
            rich_help_panel=options.FIT,
        ),
    ] = None,
    method: str = "em",
    *,
    out: Annotated[Path, options.out("The page to write.", "FILE.html")],
    request: Request,
    overwrite: options.Overwrite = False,
    title: str | None = None,
    workers: str = "keep",
    key: Path | None = None,
    checks: bool = True,
) -> None:
    """Fit one story or several, or read a saved fit, and write its page (HTML): labels, workers, checks, pictures."""
    began = time.perf_counter()
    folder = request.saved
    with plain_messages(folder):
        if story and len(story) > 1 and "auto" in story:
            raise ValueError("--story auto takes a default set of stories; give it alone, or give stories by name")
        check_new_file(out, (".html", ".htm"), overwrite=overwrite)
        check_privacy(workers, key, None)
        result = saved_or_new_fit(context, request, story, method, OF_A_PAGE, workers=workers, key=key)
        with doing("writing the page", request):
            result = shown_to_others(result, workers)
            gold = None if folder is None else request.gold  # a new fit's annotations have it
            result.report(out, title=title, checks=checks, gold=gold, seed=request.seed, folder=folder)
        if not request.quiet:
            show_result(result, {str(out): "labels, workers, checks and pictures"}, began, folder)
