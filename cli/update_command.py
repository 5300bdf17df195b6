"""The subcommand ``crowdppl update``."""

import os
import time
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from ..data.errors import AnnotationError
from ..data.text_files import similar
from . import options
from .arguments import check_input, read_annotations, refuse_streamed
from .output import output_folder, write_results
from .request import Request, holds_saved, takes_request
from .terminal import doing, plain_messages, show_result, starting


@partial(takes_request, more="Of old and new tasks by old and new workers.", of=options.ANNOTATIONS)
def update(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of the fit so far, which stays as it is.", show_default=False)
    ],
    request: Request,
    gold: Annotated[
        Path | None,
        options.option(
            "Known true labels to use from now on, beside those that the fit has used: a file with the columns task "
            "and label.",
            "FILE",
            rich_help_panel=options.KNOWN,
        ),
    ] = None,
    features: Path | None = None,
    *,
    out: Annotated[Path, options.out("New folder for the results.", "DIR")] = Path("crowdppl-fit"),
    overwrite: bool = False,
    plot: bool = False,
    quiet: bool = False,
) -> None:
    """Fit the story of a saved fit to its annotations and more of them, starting from where it ended."""
    began = time.perf_counter()
    request = Request(**{**vars(request), "gold": gold, "features": features, "quiet": quiet})
    with plain_messages(str(out)):
        refuse_streamed(folder)
        if not holds_saved(folder):
            raise AnnotationError(f"{folder} is no folder of a fit, as crowdppl fit writes it{similar(folder)}")
        with output_folder(out, overwrite=overwrite) as written:
            check_input(request)
            with starting(request):
                from .. import load_fit
            with doing(f"reading {folder} and {request.file}", request):
                fit = load_fit(folder)
                more = read_annotations(request, fit.annotations)
            with doing(f"fitting {fit.story} anew", request):
                fit = fit.update(more, gold=gold, progress=request.shows_progress)
            with doing("working out intervals and writing the results", request):
                files = write_results(fit, written, plot=plot)
        if not quiet:
            show_result(fit, {os.path.join(out, name): about for name, about in files.items()}, began, str(out))
