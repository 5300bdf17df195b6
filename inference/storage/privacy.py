"""Exports without workers' names: fits with pseudonymous workers, and labels without workers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ...data.pseudonyms import Key, check_workers, pseudonyms, without_names
from ..baselines.baseline import Baseline
from ..densities.model import Model
from ..fitted.labelled import Labelled

if TYPE_CHECKING:
    import xarray as xr

OF_ROWS = ("row_worker", "row_seconds")
"""Variables of rows that say of a worker whose annotation a row is, or how long it took."""

NAMING = ("hyperparameters", "fits")
"""Attributes that may hold tables with workers' names."""

ALONE = "labels alone"
"""Name given to labels that are kept without workers."""


def shown(view: Any, workers: str, key: Key | None) -> Any:
    """Return the source for an output: with its workers' names, with pseudonyms, or as labels without workers.

    Args:
        view: the source of the labels.
        workers: one of :data:`crowdppl.data.pseudonyms.WORKERS`.
        key: of the pseudonyms, where ``workers="hash"``.

    Raises:
        UnknownNameError: `workers` is something else.
        AnnotationError: the key is missing or is none, or a key is given for something else.
    """
    check_workers(workers, key)
    if workers == "drop":
        return labels_alone(view)
    return view if workers == "keep" else pseudonymised(view, key)


def pseudonymised(view: Any, key: Key | None) -> Any:
    """Return a fit, average or baseline with pseudonyms wherever it names workers.

    Workers keep their order, so that anybody who knows the order of the names knows the order of the pseudonyms.

    Raises:
        AnnotationError: the key is missing or is none.
    """
    names = pseudonyms(view.annotations.workers, key)
    return _renamed(view, names)


def _renamed(view: Any, names: Mapping[Hashable, str]) -> Any:
    if isinstance(getattr(view, "fits", None), dict):  # an average of several
        fits = {name: _renamed(fitted, names) for name, fitted in view.fits.items()}
        return replace(view, fits=fits, left_out={n: without_names(text, names) for n, text in view.left_out.items()})
    annotations = view.annotations.with_worker_names(names)
    said = tuple(without_names(text, names) for text in view.warnings)
    if isinstance(view, Baseline):
        return replace(view, annotations=annotations, warnings=said)
    hyperparameters = {name: _with_names(value, names) for name, value in view.model.hyperparameters.items()}
    return view.replace(
        model=Model(view.model.story, hyperparameters),
        annotations=annotations,
        outcome=view.outcome._replace(warnings=said),
        stored_posterior=view.posterior,
    )


def _with_names(value: Any, names: Mapping[Hashable, str]) -> Any:
    """A hyperparameter with other names in its column of workers; of workers without annotations it has nothing."""
    if isinstance(value, pd.DataFrame) and "worker" in value.columns:
        known = value[[name in names for name in value["worker"].tolist()]]
        return known.assign(worker=pd.Series([names[n] for n in known["worker"].tolist()], known.index, dtype=object))
    return value


def labels_alone(view: Labelled) -> Baseline:
    """The labels with their probabilities, and of the annotations how many there are of each class and task.

    Nothing of it describes a worker: not which annotations are of one worker, nor anybody's accuracy, features or
    times. It is no fit any more that could be looked into, compared or updated.
    """
    name = f"{ALONE} ({getattr(view, 'story', 'average')})"
    return Baseline(name, view.annotations.without_workers(), np.asarray(view.posterior))


def groups_without_workers(groups: Mapping[str, xr.Dataset]) -> dict[str, xr.Dataset]:
    """ArviZ's groups without what describes a worker: variables by worker, and whose annotation a row is."""
    found = {}
    for name, dataset in groups.items():
        personal = [key for key, value in dataset.variables.items() if "worker" in value.dims or key in OF_ROWS]
        kept = dataset.drop_vars(personal)
        found[name] = kept.assign_attrs({key: "" for key in NAMING if key in kept.attrs})
    return found
