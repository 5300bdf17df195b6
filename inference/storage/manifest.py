"""The manifest of a saved fit: what it is besides its arrays, and sizes and checksums of the files that have these."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ...data.errors import StorageError
from .checked_json import check_regular, check_schema, read_json_object

MANIFEST = "manifest.json"
FORMAT = 1
"""The format that is written, and the newest that is known."""


def posterior_file(part: int) -> str:
    """The name of the netCDF file of a part, from 0."""
    return f"posterior_{part}.nc" if part else "posterior.nc"


def weights_file(part: int) -> str:
    """The name of the safetensors file of a part, from 0."""
    return f"weights_{part}.safetensors" if part else "weights.safetensors"


def write_manifest(folder: Path, about: Mapping[str, Any]) -> None:
    """Write the manifest of a folder whose other files are written.

    Args:
        about: what the fit is, by the keys of ``manifest.schema.json``: its parts, and how they are averaged.
    """
    files = {name: _facts(folder / name) for name in _files(about["parts"])}
    manifest: dict[str, Any] = {"format": FORMAT, "crowdppl": version("crowdppl"), "files": files, **about}
    text = json.dumps({"sha256": _digest(manifest), **manifest}, indent=1, ensure_ascii=False, allow_nan=False)
    (folder / MANIFEST).write_text(text, encoding="utf-8")


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest's content, after a check that it and every file that it names are as they were written.

    Nothing but regular files of the names that parts have is opened: no link is followed.

    Raises:
        StorageError: a file is missing, a link, or of another size or checksum than the manifest has; the manifest is
            of a newer crowdppl, not what its schema describes, or not as it was written.
    """
    manifest = read_json_object(folder / MANIFEST)
    form = manifest.get("format")
    if isinstance(form, int) and form > FORMAT:
        raise StorageError(f"{folder} was written by a newer crowdppl (format {form}, known is {FORMAT})")
    check_schema(manifest, folder / MANIFEST)
    if _digest({key: value for key, value in manifest.items() if key != "sha256"}) != manifest["sha256"]:
        raise StorageError(
            f"{folder / MANIFEST} is not the file that was written: its SHA-256 differs from the one in it; it was "
            "altered, damaged or exchanged"
        )
    files: dict[str, Any] = manifest["files"]
    if set(files) != set(_files(manifest["parts"])):
        raise StorageError(f"{folder / MANIFEST} does not name the files of its parts: it was altered")
    for name, facts in files.items():
        check_regular(folder, name)
        size = (folder / name).stat().st_size
        if size != facts["bytes"]:
            raise StorageError(
                f"{folder / name} has {size:,} bytes, and {facts['bytes']:,} were written: it is not the whole file, "
                "or another one"
            )
        if _facts(folder / name)["sha256"] != facts["sha256"]:
            raise StorageError(
                f"{folder / name} is not the file that was written: its SHA-256 differs from the one in {MANIFEST}; it "
                "was altered, damaged or exchanged"
            )
    return manifest


def _files(parts: Iterable[Mapping[str, Any]]) -> list[str]:
    """The files of parts: one of netCDF each, and one of safetensors where a part has weights."""
    names = []
    for number, part in enumerate(parts):
        names += [posterior_file(number), *([weights_file(number)] if part["weights"] else [])]
    return names


def _digest(manifest: Mapping[str, Any]) -> str:
    text = json.dumps(manifest, sort_keys=True, ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _facts(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256")
            return {"bytes": opened.tell(), "sha256": digest.hexdigest()}
    except OSError as error:
        raise StorageError(f"{file} cannot be read: {error.strerror or error}") from error
