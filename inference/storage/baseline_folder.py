"""Baselines on disk: a folder with ``posterior.nc`` and ``fit.json``, as fits are. Nothing is pickled."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from ...data.atomic import whole_folder
from ...data.errors import StorageError
from ...models import StoryError
from ...models.parts.truth_prior import truth_prior_from_json
from ..baselines.baseline import Baseline
from .arviz_data import read_groups, write_groups
from .arviz_groups import FIT_GROUP, constants_of, observed_of
from .fit_folder import annotations_from, ids_json
from .provenance import is_plain

FORMAT = 3
"""The format of a baseline's folder, above those of fits, so that an older crowdppl refuses it."""


def save_baseline(baseline: Baseline, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a baseline to the folder ``path``, whole or not at all.

    Args:
        baseline: what to write.
        path: of the folder.
        overwrite: replace a folder that has something in it.

    Raises:
        StorageError: where the folder cannot be written.
        AnnotationError: for ids of a type that JSON cannot bring back.
    """
    import xarray as xr

    annotations = baseline.annotations
    about: dict[str, Any] = {
        "format": FORMAT,
        "baseline": baseline.name,
        "classifier": None if baseline.classifier is None else baseline.classifier.to_json(),
        "settings": {name: value if is_plain(value) else repr(value) for name, value in baseline.settings.items()},
        "warnings": baseline.warnings,
        "weights": list(baseline.weights),
        "by_worker": list(baseline.by_worker),
        **ids_json(annotations),
    }
    arrays = {"posterior": baseline.posterior, "history": baseline.history, **baseline.weights, **baseline.by_worker}
    found = xr.Dataset(
        {
            name: (tuple(f"{name}_dim_{i}" for i in range(np.ndim(value))), np.asarray(value))
            for name, value in arrays.items()
        }
    )
    groups = {FIT_GROUP: found, "observed_data": observed_of(annotations), "constant_data": constants_of(annotations)}
    with whole_folder(path, overwrite=overwrite) as folder:
        write_groups(groups, folder / "posterior.nc")
        (folder / "fit.json").write_text(json.dumps(about, indent=1, ensure_ascii=False), encoding="utf-8")


def holds_baseline(path: str | os.PathLike[str]) -> bool:
    """Whether the folder holds a baseline rather than a fit."""
    try:
        return "baseline" in json.loads((Path(path) / "fit.json").read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError):
        return False


def read_baseline(path: str | os.PathLike[str], *, classifier: Any = None) -> Baseline:
    """Read what :func:`save_baseline` wrote.

    Args:
        path: of the folder.
        classifier: the module or function, where the classifier is not one of crowdppl's own; its weights are read.

    Raises:
        StorageError: it was written by a newer crowdppl, or the classifier's network is needed and not given.
    """
    folder = Path(path)
    about = json.loads((folder / "fit.json").read_text(encoding="utf-8"))
    if about["format"] > FORMAT:
        raise StorageError(f"{folder} was written by a newer crowdppl (format {about['format']}, known is {FORMAT})")
    groups = read_groups(folder / "posterior.nc")
    found = groups[FIT_GROUP]
    annotations = annotations_from(about, groups)
    weights = {name: found[name].to_numpy() for name in about["weights"]}
    network = None
    if about["classifier"] is not None:
        try:
            network = truth_prior_from_json(about["classifier"], classifier).restored(weights, annotations)
        except StoryError as error:
            raise StorageError(f"{folder}: {error}; load_fit(path, classifier=…) takes the network") from error
    return Baseline(
        about["baseline"],
        annotations,
        found["posterior"].to_numpy(),
        classifier=network,  # type: ignore[arg-type]  # what was saved was a classifier
        weights=weights,
        settings=about["settings"],
        by_worker={name: found[name].to_numpy() for name in about["by_worker"]},
        history=found["history"].to_numpy(),
        warnings=tuple(about["warnings"]),
    )
