"""The subcommand ``crowdppl report``."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..data.atomic import check_new_file
from . import options
from .arguments import (
    check_input,
    holds_saved,
    parse_settings,
    read_annotations,
    read_probabilities,
    refuse_options_of_a_fit,
)
from .output import check_privacy, named_for_others, shown_to_others
from .request import Request, takes_request
from .terminal import doing, plain_messages, show_result, starting

if TYPE_CHECKING:
    from .. import Fit

OF_A_PAGE = ("file", "gold", "seed", "quiet", "out", "title", "workers", "key", "checks")
"""The parameters that a page of a saved fit takes."""


@partial(takes_request, more=options.SAVED)
def report(
    context: typer.Context,
    story: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Story, that is a model of how workers annotate (see crowdppl stories). Where several are given, they "
            "are compared on held-out annotations and their labels averaged; auto is as for crowdppl fit.",
            show_default="dawid_skene, and auto with --preferences",
            rich_help_panel=options.FIT,
        ),
    ] = None,
    method: str = "em",
    *,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FILE.html", help="The page to write.", rich_help_panel=options.OUTPUT),
    ],
    request: Request,
    title: str | None = None,
    workers: str = "keep",
    key: Path | None = None,
    checks: bool = True,
) -> None:
    """Fit one story or several, or read a saved fit, and write its page (HTML): labels, workers, checks, pictures."""
    began = time.perf_counter()
    saved = holds_saved(Path(request.file))
    folder = request.file if saved else None
    with plain_messages(folder):
        stories = story or [request.default_story]
        if len(stories) > 1 and "auto" in stories:
            raise ValueError("--story auto takes a default set of stories; give it alone, or give stories by name")
        check_new_file(out, (".html", ".htm"))
        if saved:
            refuse_options_of_a_fit(context, request.file, OF_A_PAGE)
        check_input(request, saved=saved)
        check_privacy(workers, key, None)
        if saved:
            with doing(f"reading {request.file}", request):
                result = _saved_fit(request.file, workers, key)
        else:
            result = _new_fit(request, stories, method, workers, key)
        with doing("writing the page", request):
            result = shown_to_others(result, workers)
            gold = request.gold if saved else None  # a new fit's annotations have it
            result.report(out, title=title, checks=checks, gold=gold, seed=request.seed, folder=folder)
        if not request.quiet:
            show_result(result, {str(out): "labels, workers, checks and pictures"}, began, folder)


def _new_fit(request: Request, stories: list[str], method: str, workers: str, key: Path | None) -> Fit:
    """Fit what was asked for to the annotations."""
    with starting(request):
        from .. import fit as fit_story

        settings = parse_settings(request.settings or [], stories[0], method)
    with doing(f"reading {request.file}", request):
        annotations = named_for_others(read_annotations(request), workers, key)
    models = read_probabilities(request, annotations)
    shared = {"method": method, **request.shared_options, **models, **settings}
    with doing(f"fitting {', '.join(stories)} by {method.upper()}", request):
        if len(stories) > 1:
            return fit_story("auto", annotations, stories=stories, weights="stacking", **shared)
        return fit_story(stories[0], annotations, **shared)


def _saved_fit(folder: str, workers: str, key: Path | None) -> Fit:
    """Read a fit, an average of stories or a baseline, with pseudonyms where they are asked for."""
    from .. import load_fit
    from ..data.pseudonyms import read_key

    result = load_fit(folder)
    return result.pseudonymised(read_key(key)) if workers == "hash" else result
