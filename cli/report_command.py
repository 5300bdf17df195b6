"""The subcommand ``crowdppl report``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from ..data.atomic import check_new_file
from . import options
from .arguments import check_input, parse_settings, read_annotations, read_probabilities
from .output import check_privacy, named_for_others, shown_to_others
from .request import Request, takes_request
from .terminal import doing, plain_messages, show_result


@takes_request
def report(
    story: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Story, that is a model of how workers annotate (see crowdppl stories). Where several are given, they "
            "are compared on held-out annotations and their labels averaged; auto is as for crowdppl fit.",
            show_default="dawid_skene",
            rich_help_panel=options.FIT,
        ),
    ] = None,
    method: options.Method = "svi",
    *,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE.html", help="The page to write.", rich_help_panel=options.OUTPUT),
    ],
    request: Request,
    title: Annotated[str | None, typer.Option(help="Heading of the page.", rich_help_panel=options.OUTPUT)] = None,
    workers: options.Workers = "keep",
    key: options.Key = None,
    checks: Annotated[
        bool,
        typer.Option(
            "--checks/--no-checks",
            help="Make posterior predictive checks: whether annotations simulated from the fit look like the data.",
            rich_help_panel=options.OUTPUT,
        ),
    ] = True,
) -> None:
    """Fit one story or several, and write a page (HTML, one file) with labels, workers, checks and pictures."""
    began = time.perf_counter()
    with plain_messages():
        stories = story or ["dawid_skene"]
        if len(stories) > 1 and "auto" in stories:
            raise ValueError("--story auto takes a default set of stories; give it alone, or give stories by name")
        check_new_file(out, (".html", ".htm"))
        check_input(request)
        check_privacy(workers, key, None)
        with doing("starting", request):
            from .. import fit as fit_story

            settings = parse_settings(request.settings or [], stories[0], method)
        with doing(f"reading {request.file}", request):
            annotations = named_for_others(read_annotations(request), workers, key)
        models = read_probabilities(request, annotations)
        shared = {"method": method, **request.shared_options, **models, **settings}
        with doing(f"fitting {', '.join(stories)} by {method.upper()}", request):
            if len(stories) > 1:
                result = fit_story("auto", annotations, stories=stories, weights="stacking", **shared)
            else:
                result = fit_story(stories[0], annotations, **shared)
        with doing("writing the page", request):
            result = shown_to_others(result, workers)
            result.report(out, title=title, checks=checks, seed=request.seed)
        if not request.quiet:
            show_result(result, {str(out): "labels, workers, checks and pictures"}, began)
