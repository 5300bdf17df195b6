"""Baselines on disk: a folder of the same files as fits have (:mod:`.fit_folder`). Nothing is pickled."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from ...data.atomic import whole_folder
from ...data.errors import StorageError
from ..fitted.by_rule import ByRule
from .arviz_groups import FIT_GROUP, constants_of, observed_of
from .checked_arrays import Arrays, read_groups, read_weights
from .checked_json import decode, encode_settings, read_json_object
from .fit_folder import FORMAT, findings_from, restored_prior, write_files
from .sealed_folder import ABOUT, POSTERIOR, SINCE, WEIGHTS, read_about
from .stored_annotations import GROUPS, annotations_from, checked_probabilities, ids_json


def save_baseline(baseline: ByRule, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
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
        "settings": encode_settings(dict(baseline.settings)),
        "findings": [finding.to_json() for finding in baseline.findings],
        "weights": list(baseline.weights),
        "by_worker": list(baseline.by_worker),
        **ids_json(annotations),
    }
    arrays = {"posterior": baseline.posterior, "history": baseline.history, **baseline.by_worker}
    found = xr.Dataset(
        {
            name: (tuple(f"{name}_dim_{i}" for i in range(np.ndim(value))), np.asarray(value))
            for name, value in arrays.items()
        }
    )
    groups = {FIT_GROUP: found, "observed_data": observed_of(annotations), "constant_data": constants_of(annotations)}
    with whole_folder(path, overwrite=overwrite) as folder:
        write_files(groups, about, baseline.weights, folder)


def holds_baseline(path: str | os.PathLike[str]) -> bool:
    """Return whether the folder holds a baseline rather than a fit."""
    try:
        return "baseline" in read_json_object(Path(path) / ABOUT)
    except StorageError:
        return False


def read_baseline(path: str | os.PathLike[str], *, classifier: Any = None) -> ByRule:
    """Read what :func:`save_baseline` wrote.

    Args:
        path: of the folder.
        classifier: the module or function, where the classifier is not one of crowdppl's own; its weights are read.

    Raises:
        StorageError: a file is not as it was written, it was written by a newer crowdppl, or the classifier's network
            is needed and not given.
    """
    folder = Path(path)
    about = read_about(folder, FORMAT, "baseline")
    groups = read_groups(folder / POSTERIOR, (FIT_GROUP, *GROUPS))
    annotations = annotations_from(about, groups, folder)
    found = groups.get(FIT_GROUP, {})
    sealed = about["format"] >= SINCE
    needed = ["posterior", "history", *about["by_worker"], *(() if sealed else about["weights"])]
    if missing := [name for name in needed if name not in found]:
        raise StorageError(f"{folder}: posterior.nc lacks {', '.join(map(repr, missing[:3]))}")
    weights: Arrays = {}
    if about["weights"] and sealed:
        weights = read_weights(folder / WEIGHTS, about["weights"])
    elif about["weights"]:
        weights = {name: found[name] for name in about["weights"]}
    posterior = checked_probabilities(found["posterior"], annotations, folder)  # before a network of K outputs is made
    by_worker = {name: found[name] for name in about["by_worker"]}
    if any(value.shape != (annotations.n_workers,) for value in by_worker.values()):
        raise StorageError(f"{folder}: the workers' numbers in posterior.nc are not of the workers in fit.json")
    return ByRule(
        about["baseline"],
        annotations,
        posterior,
        classifier=(
            None
            if about["classifier"] is None
            else restored_prior(about["classifier"], classifier, weights, annotations, folder)
        ),
        weights=weights,
        settings={name: decode(value) for name, value in about["settings"].items()},
        by_worker=by_worker,
        history=found["history"],
        findings=findings_from(about),
    )
