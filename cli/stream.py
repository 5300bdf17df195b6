"""`crowdppl fit` of Parquet files that are larger than memory: when it streams, and how it goes on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data.errors import AnnotationError
from .advice import for_the_shell
from .arguments import stated_classes
from .request import Request

if TYPE_CHECKING:
    from ..data.scan import Scan

STREAMED = (
    *("task", "worker", "no_worker", "label", "count", "classes", "ordered", "missing"),  # of :func:`.scan`
    *("seed", "settings", "quiet"),
)
"""The parameters that a streamed fit takes."""


def scan_of(request: Request, *, stream: bool | None, memory: str | None, story: str, method: str) -> Scan | None:
    """Return the scan of Parquet files that are to be streamed; None where the annotations go into memory.

    Args:
        request: what was asked for.
        stream: True for streaming, False for not; None to stream folders, and files too large for memory.
        memory: the limit of memory.
        story: the story's name.
        method: the engine's name.

    Raises:
        AnnotationError: streaming was asked for, or is needed, and the file is no Parquet file, or an option is given
            that a streamed fit does not have.
        ValueError: the limit is no size.
    """
    several = request.is_several
    is_parquet = several or Path(request.file).suffix.lower() == ".parquet"
    if not is_parquet or (stream is False and not several):
        if stream:
            raise AnnotationError(
                f"--stream: {request.file} is no Parquet file, nor a folder of them; convert it first"
            )
        if memory is not None:
            raise AnnotationError("--memory is the limit of a streamed fit: give --stream and Parquet files")
        return None
    if stream is False:
        raise AnnotationError(
            f"--no-stream: {request.file} stands for several files, which are streamed; name one file"
        )
    wanted = stream or several or memory is not None
    options = _not_streamed(request, story, method)
    if not wanted and (options or not Path(request.file).is_file()):
        return None
    from ..data.scan import BYTES_IN_MEMORY, scan

    roles = {role: name for role, name in request.named_columns.items() if role in ("task", "worker", "label", "count")}
    columns: dict[str, Any] = roles | ({"worker": None} if request.no_worker else {})
    columns |= stated_classes(request)
    try:
        found = scan(request.file, **columns, memory=memory, missing=request.missing or "refuse")
    except AnnotationError:
        if wanted:
            raise
        return None  # what cannot be scanned may be read into memory, which says what is wrong otherwise
    if not wanted and found.n_rows * BYTES_IN_MEMORY <= found.memory:
        return None
    if options:
        raise AnnotationError(
            f"{options[0]} needs the annotations in memory, and folders, and files with --stream, are read in chunks"
        )
    return found


@contextmanager
def saying_how_to_go_on(work: Path | None, *, streams: bool) -> Iterator[None]:
    """Say, where a fit is interrupted, how the same command goes on from there.

    Args:
        work: the folder of a streamed fit's state; None where there is none.
        streams: whether the fit is streamed, without a checkpoint.
    """
    try:
        yield
    except KeyboardInterrupt as stop:
        said = str(stop)[:1].upper() + str(stop)[1:]
        if streams and work is None:
            said = "Stopped; with --work DIR the same command would go on from the last pass over the data"
        elif streams and not said:
            said = f"Stopped; the same command goes on from what {work} has"
        if said:
            from .terminal import stderr

            stderr().print(for_the_shell(said), markup=False)
        raise


def _not_streamed(request: Request, story: str, method: str) -> list[str]:
    """The options that were given and that a streamed fit does not have."""
    given = {
        "--story auto": story == "auto",
        f"--method {method}": method not in ("em", "svi"),
        "--classes QUESTION=…": any(isinstance(given, dict) for given in stated_classes(request).values()),
    }
    others = [f"--{name.replace('_', '-')}" for name in request.given if name not in STREAMED]
    return [name for name, is_given in given.items() if is_given] + others
