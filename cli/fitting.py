"""The fit that a command is of: one that is saved, or a new one of annotations."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .arguments import check_input, parse_settings, read_annotations, read_probabilities
from .output import named_for_others
from .request import Request
from .terminal import doing, starting

if TYPE_CHECKING:
    import typer

    from .. import Fit


def saved_or_new_fit(
    context: typer.Context,
    request: Request,
    stories: Sequence[str],
    method: str,
    of_a_fit: Collection[str],
    *,
    workers: str = "keep",
    key: Path | None = None,
) -> Fit:
    """Return the fit of a folder, or one of a story, or an average of several, to annotations.

    Args:
        context: of the command.
        request: of which the file is either.
        stories: of a new fit.
        method: likewise.
        of_a_fit: the parameters that a saved fit takes.
        workers: how workers are named: ``"keep"``, ``"hash"`` for pseudonyms, ``"drop"`` for numbers in a new fit.
        key: of the pseudonyms.

    Raises:
        AnnotationError: as of :func:`.check_input` and :func:`.read_annotations`.
    """
    check_input(request, context, of_a_fit)
    with starting(request):
        from .. import fit, load_fit
        from ..data.pseudonyms import read_key

        settings = parse_settings(request.settings or [], stories[0], method)
    with doing(f"reading {request.file}", request):
        if request.saved is not None:
            result = load_fit(request.saved)
            return result.pseudonymised(read_key(key)) if workers == "hash" else result
        annotations = named_for_others(read_annotations(request), workers, key)
    models = read_probabilities(request, annotations)
    shared = {"method": method, **request.shared_options, **models, **settings}
    with doing(f"fitting {', '.join(stories)} by {method.upper()}", request):
        if len(stories) > 1:
            return fit("auto", annotations, stories=stories, weights="stacking", **shared)
        return fit(stories[0], annotations, **shared)
