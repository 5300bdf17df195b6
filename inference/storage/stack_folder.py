"""Averages of fits on disk: a folder of each fit (:mod:`.fit_folder`), and ``stack.json``, which says how they average.

``manifest.json`` has the checksums of ``stack.json`` and of each fit's own manifest, so that no fit can be exchanged.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ...data.atomic import whole_folder
from ...data.errors import StorageError
from ..fitted.fitted import Fitted
from .checked_json import DECODING, check_schema, decode, encode, read_json_object
from .fit_folder import read, save
from .sealed_folder import MANIFEST, checked_manifest, seal

STACK, FITS = "stack.json", "stacked_fits"
FORMAT = 1


class Stacked(NamedTuple):
    """Fits of the same annotations, and how they are averaged."""

    fits: dict[str, Fitted]
    weights: pd.Series
    comparison: pd.DataFrame | None
    left_out: dict[str, str]
    votes: float
    misled: float | None


def save_stack(stacked: Stacked, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write fits and how they are averaged to the folder ``path``, whole or not at all.

    Args:
        stacked: what to write.
        path: of the folder.
        overwrite: replace a folder that has something in it.

    Raises:
        StorageError: as :func:`.fit_folder.save`.
        AnnotationError: likewise.
    """
    about = {
        "format": FORMAT,
        "fits": list(stacked.fits),
        "weights": [float(stacked.weights[name]) for name in stacked.fits],
        "comparison": None if stacked.comparison is None else _encoded(stacked.comparison),
        "left_out": stacked.left_out,
        "votes": stacked.votes,
        "misled": stacked.misled,
    }
    with whole_folder(path, overwrite=overwrite) as folder:
        (folder / FITS).mkdir()
        for name, fitted in zip(_folders(len(stacked.fits)), stacked.fits.values(), strict=True):
            save(fitted, folder / name)
        text = json.dumps(about, indent=1, ensure_ascii=False, allow_nan=False)
        (folder / STACK).write_text(text, encoding="utf-8")
        seal(folder, _sealed(len(stacked.fits)))


def holds_stack(path: str | os.PathLike[str]) -> bool:
    """Return whether the folder holds an average of fits."""
    return os.path.lexists(Path(path) / STACK)


def read_stack(
    path: str | os.PathLike[str], *, story: Mapping[str, Any] | None = None, classifier: Any = None
) -> Stacked:
    """Read what :func:`save_stack` wrote.

    Args:
        path: of the folder.
        story: by name of a fit its story's function, where that is not one of crowdppl's own.
        classifier: as of :func:`.fit_folder.read`, for every fit.

    Raises:
        StorageError: a file is not as it was written, it was written by a newer crowdppl, or as
            :func:`.fit_folder.read`.
    """
    folder = Path(path)
    listed = checked_manifest(folder)
    about = read_json_object(folder / STACK)
    form = about.get("format")
    if isinstance(form, int) and form > FORMAT:
        raise StorageError(f"{folder} was written by a newer crowdppl (format {form} of {STACK}, known is {FORMAT})")
    check_schema(about, "stack", folder / STACK)
    names = about["fits"]
    own = _own_stories(story, names, folder)
    weights = np.array(about["weights"], float)
    if len(weights) != len(names) or not np.isclose(weights.sum(), 1):
        raise StorageError(f"{folder / STACK}: {len(names)} fits need as many weights, which sum to 1; it was altered")
    if set(listed) != set(_sealed(len(names))):
        raise StorageError(f"{folder / MANIFEST} does not name the files of {len(names)} fits: it was altered")
    fits = {}
    for name, part in zip(names, _folders(len(names)), strict=True):
        for place in (folder / FITS, folder / part):
            if place.is_symlink():
                raise StorageError(f"{place} is a symbolic link, which is not followed; copy the files (cp -rL)")
        fits[name] = read(folder / part, story=own.get(name), classifier=classifier)
    index = pd.Index(names, name="story")
    return Stacked(
        fits,
        pd.Series(weights, index, name="weight"),
        None if about["comparison"] is None else _decoded(about["comparison"], folder),
        about["left_out"],
        about["votes"],
        about["misled"],
    )


def _own_stories(given: Any, names: list[str], folder: Path) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not set(given) <= set(names):
        shown = ", ".join(map(repr, names[:5]))
        raise StorageError(f"{folder} holds several fits: give story={{name: function}} with names among {shown}")
    return given


def _folders(n: int) -> list[str]:
    return [f"{FITS}/{number}" for number in range(n)]


def _sealed(n: int) -> list[str]:
    return [STACK, *(f"{part}/{MANIFEST}" for part in _folders(n))]


def _encoded(comparison: pd.DataFrame) -> dict[str, Any]:
    columns = {}
    for name, column in comparison.items():
        values = [None if value is pd.NA else encode(str(name), value) for value in column.tolist()]
        columns[str(name)] = {"dtype": str(column.dtype), "values": values}
    return {"index": list(map(str, comparison.index)), "columns": columns, "how": comparison.attrs.get("how")}


def _decoded(saved: Mapping[str, Any], folder: Path) -> pd.DataFrame:
    index, columns = pd.Index(saved["index"], name="story"), saved["columns"]
    try:
        found = pd.DataFrame(
            {
                name: pd.Series([decode(value) for value in column["values"]], index, dtype=column["dtype"])
                for name, column in columns.items()
            }
        )
    except (*DECODING, pd.errors.IntCastingNaNError) as error:
        raise StorageError(f"{folder / STACK}: the comparison cannot be read: {error}") from None
    if saved["how"] is not None:
        found.attrs["how"] = saved["how"]
    return found
