"""Folders with a manifest: sizes and checksums of their files, checked before anything in them is read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ...data.errors import StorageError
from .checked_json import check_regular, check_schema, read_json_object

MANIFEST, ABOUT, POSTERIOR, WEIGHTS = "manifest.json", "fit.json", "posterior.nc", "weights.safetensors"
FILES = (ABOUT, POSTERIOR, WEIGHTS)
"""The files of a saved fit, beside its manifest; a manifest can name no others."""

SINCE = 4
"""The format of ``fit.json`` from which a fit has a manifest."""

MANIFEST_FORMAT = 1
_BLOCK = 2**20


def seal(folder: Path, names: Iterable[str] = FILES) -> None:
    """Write the manifest of a folder's files: bytes and SHA-256 of each."""
    files = {name: _facts(folder / name) for name in names if (folder / name).exists()}
    about = {"format": MANIFEST_FORMAT, "crowdppl": version("crowdppl"), "files": files}
    (folder / MANIFEST).write_text(json.dumps(about, indent=1), encoding="utf-8")


def read_about(folder: Path, known: int, schema: str) -> dict[str, Any]:
    """Return what ``fit.json`` says, after checking that every file is as it was written.

    Nothing but regular files of the names in :data:`FILES` is opened: no link is followed.

    Args:
        folder: of the fit.
        known: the newest format that is known.
        schema: the name of the schema of what ``fit.json`` says.

    Raises:
        StorageError: a file is missing, a link, of another size or checksum than the manifest has, or of a newer
            crowdppl; or ``fit.json`` is not what its schema describes.
    """
    for name in (ABOUT, POSTERIOR):
        check_regular(folder, name)
    sealed = _is_there(folder, MANIFEST)
    listed = checked_manifest(folder) if sealed else {}
    about = read_json_object(folder / ABOUT)
    form = about.get("format")
    if isinstance(form, bool) or not isinstance(form, int) or form < 1:
        raise StorageError(f"{folder / ABOUT}: 'format' is {form!r:.80}, and a number of at least 1 is needed")
    if form > known:
        raise StorageError(f"{folder} was written by a newer crowdppl (format {form}, known is {known})")
    if form >= SINCE and not sealed:
        raise StorageError(f"{folder} has no {MANIFEST}, by which its files are checked: the fit is not complete")
    if sealed and form < SINCE:
        raise StorageError(f"{folder / ABOUT} is of format {form}, which has no {MANIFEST}: the files are of two fits")
    check_schema(about, schema, folder / ABOUT)
    needed = (ABOUT, POSTERIOR, WEIGHTS) if about.get("weights") else (ABOUT, POSTERIOR)
    for name in needed if sealed else ():
        if name not in listed:
            raise StorageError(f"{folder / MANIFEST} does not name {name}, which the fit has: it was altered")
    return about


def checked_manifest(folder: Path) -> dict[str, Any]:
    """The files that the manifest names, each of which is as it was written.

    Raises:
        StorageError: the manifest or one of them is missing, a link, or not as it was written.
    """
    check_regular(folder, MANIFEST)
    manifest = read_json_object(folder / MANIFEST)
    form = manifest.get("format")
    if isinstance(form, int) and form > MANIFEST_FORMAT:
        raise StorageError(
            f"{folder} was written by a newer crowdppl ({MANIFEST} of format {form}, known is {MANIFEST_FORMAT})"
        )
    check_schema(manifest, "manifest", folder / MANIFEST)
    files: dict[str, Any] = manifest["files"]
    for name, facts in files.items():
        check_regular(folder, name)
        found = (folder / name).stat().st_size
        if found != facts["bytes"]:
            raise StorageError(
                f"{folder / name} has {found:,} bytes, and {facts['bytes']:,} were written: it is not the whole file, "
                "or another one"
            )
        if _facts(folder / name)["sha256"] != facts["sha256"]:
            raise StorageError(
                f"{folder / name} is not the file that was written: its SHA-256 differs from the one in {MANIFEST}; "
                "it was altered, damaged or exchanged"
            )
    return files


def _is_there(folder: Path, name: str) -> bool:
    return (folder / name).exists() or (folder / name).is_symlink()


def _facts(file: Path) -> dict[str, Any]:
    digest = hashlib.sha256()
    size = 0
    try:
        with file.open("rb") as opened:
            for block in _blocks(opened.read):
                digest.update(block)
                size += len(block)
    except OSError as error:
        raise StorageError(f"{file} cannot be read: {error.strerror or error}") from error
    return {"bytes": size, "sha256": digest.hexdigest()}


def _blocks(read: Callable[[int], bytes]) -> Iterable[bytes]:
    return iter(lambda: read(_BLOCK), b"")
