"""Annotations as JSON and arrays of a saved fit, checked when they come back."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...data import Annotations, Ids
from ...data.arrays import rows_of
from ...data.comparisons import preference_names
from ...data.errors import AnnotationError, StorageError
from ...data.kinds import NOMINAL
from ...data.long import other_names
from ...data.question_classes import kind_from_json
from ...data.questions import Units, fields_of, ids_from_json
from .checked_arrays import Arrays
from .checked_json import DECODING

GROUPS = ("observed_data", "constant_data")
"""The groups of ``posterior.nc`` that have annotations."""

FEATURES = ("feature_names", "worker_feature_names", "item_feature_names")
IDS = ("tasks", "workers", "classes")  # of all annotations
MORE_IDS = ("abstentions", "models", "items", *FEATURES)  # of those that have some

CLOSE = 1e-3  # to one, of a sum of probabilities


def ids_json(annotations: Annotations) -> dict[str, Any]:
    """Return the part of annotations that JSON keeps: the ids, and the settings of abstentions, repeats and kind."""
    ids = {kind: getattr(annotations, kind) for kind in (*IDS, *MORE_IDS)}
    about: dict[str, Any] = {"ids": {kind: names.to_json() for kind, names in ids.items() if kind in IDS or len(names)}}
    if annotations.scored:
        about["scored"] = True
    if annotations.preferences:
        about["preferences"] = True
    if annotations.abstains:
        about["informative"] = annotations.informative
    if annotations.repeats != "keep":
        about["repeats"] = annotations.repeats
    if annotations.columns:
        about["columns"] = {role: name if isinstance(name, str) else list(name) for role, name in annotations.columns}
    if annotations.kind != NOMINAL:
        about["kind"] = annotations.kind.to_json()
    return about


def annotations_from(about: Mapping[str, Any], groups: Mapping[str, Arrays], folder: Path) -> Annotations:
    """The annotations of :func:`ids_json` and of the :data:`GROUPS`.

    Raises:
        StorageError: ids and arrays do not belong together.
    """
    if lacking := [name for name in GROUPS if name not in groups]:
        raise StorageError(f"{folder}: posterior.nc has no group {lacking[0]}")
    constant = groups["constant_data"]
    ids: dict[str, Any] = {kind: _ids(about["ids"], kind, folder) for kind in (*IDS, *MORE_IDS)}
    held = sum(values.nbytes for arrays in groups.values() for values in arrays.values())
    if claimed := [kind for kind, names in ids.items() if len(names) > max(held, 1)]:
        raise StorageError(
            f"{folder}: manifest.json claims {len(ids[claimed[0]]):,} {claimed[0]}, more than the arrays hold"
        )
    n, j, k, m = (len(ids[kind]) for kind in ("tasks", "workers", "classes", "models"))
    n_categories = k + len(ids["abstentions"])
    wanted = [("task", "row_task", constant), ("label", "annotation", groups["observed_data"])]
    task, label = (_needed(arrays, name, folder) for _, name, arrays in wanted)
    if task.ndim != 1:
        raise StorageError(f"{folder}: row_task has shape {task.shape}, and one number a row is needed")
    rows = len(task)
    read = constant.get
    try:
        kind = kind_from_json(about.get("kind", NOMINAL.name))
    except (ValueError, TypeError) as error:
        raise StorageError(f"{folder}: manifest.json says {error}") from None
    if isinstance(ids["tasks"], Units) and kind.own is not None and kind.own.shape != (len(ids["tasks"].questions), k):
        raise StorageError(f"{folder}: manifest.json has other questions or classes than its kind of labels")
    mirrored = _codes(read("row_mirrored"), "row_mirrored", 2, (rows,), folder)
    found = Annotations(
        task=_codes(task, "row_task", n, (rows,), folder),
        worker=_codes(read("row_worker"), "row_worker", j, (rows,), folder),
        label=_codes(label, "annotation", n_categories, (rows,), folder),
        count=_numbers(read("row_count"), "row_count", (rows,), folder, low=0),
        gold=_codes(read("gold"), "gold", k, (n,), folder, low=-1),
        features=_numbers(read("features"), "features", (n, ...), folder),
        worker_features=_numbers(read("worker_features"), "worker_features", (j, ...), folder),
        evidence=_numbers(read("evidence"), "evidence", (n, k), folder, missing=-np.inf),
        prior=_numbers(read("prior"), "prior", (n, k), folder, low=0),
        model_scores=_numbers(read("model_scores"), "model_scores", (n, m, k), folder, missing=np.nan),
        model_reference=_numbers(read("model_reference"), "model_reference", (m, ..., k), folder, missing=np.nan),
        seconds=_numbers(read("row_seconds"), "row_seconds", (rows,), folder, missing=np.nan),
        when=_numbers(read("row_when"), "row_when", (rows,), folder, missing=np.nan),
        mirrored=None if mirrored is None else mirrored.astype(bool),
        sides=_codes(read("sides"), "sides", len(ids["items"]), (n, 2), folder),
        item_features=_numbers(read("item_features"), "item_features", (len(ids["items"]), ...), folder),
        **ids,
        **fields_of(ids["tasks"]),
        informative=about.get("informative", True),
        repeats=about.get("repeats", "keep"),
        columns=other_names(about.get("columns", {})),
        kind=kind,
        scored=about.get("scored", False),
        preferences=about.get("preferences", list(ids["tasks"]) == preference_names(n)),  # older folders have the names
    )
    if (np.diff(task) < 0).any():
        raise StorageError(f"{folder}: the rows of posterior.nc are not sorted by task; it was altered")
    for names_of in FEATURES:
        array, names = getattr(found, names_of.removesuffix("_names") + "s"), ids[names_of]
        if len(names) and (array is None or array.shape[1:] != (len(names),)):
            raise StorageError(f"{folder}: manifest.json has {len(names)} names of features, and posterior.nc others")
    if k < 1 or (found.worker is None and j) or (found.model_scores is None) != (m == 0):
        raise StorageError(f"{folder}: the ids of manifest.json and the arrays of posterior.nc are not of one fit")
    return found


def given_rows_of(given: Annotations | None) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """Return the rows of annotations as they were given, as variables of a file; none where each counts in the fit."""
    if given is None:
        return {}
    rows = {name: np.asarray(values) for name, values in rows_of(given).items() if values is not None}
    return {
        f"given_{name}": (("given_row",), values.astype(np.int8) if values.dtype == bool else values)
        for name, values in rows.items()
    }


def given_rows_from(arrays: Arrays, counted: Annotations, folder: Path) -> dict[str, np.ndarray | None] | None:
    """Return the rows of :func:`given_rows_of`; None where there are none.

    Args:
        counted: the annotations that the fit counted.

    Raises:
        StorageError: they do not belong to these.
    """
    if "given_task" not in arrays:
        return None
    found = {name: arrays.get(f"given_{name}") for name in rows_of(counted)}
    of, shape = (lambda name: (found[name], f"given_{name}")), (arrays["given_task"].size,)
    label = _codes(_needed(arrays, "given_label", folder), "given_label", counted.n_categories, shape, folder)
    mirrored = _codes(*of("mirrored"), 2, shape, folder)
    task = _codes(_needed(arrays, "given_task", folder), "given_task", counted.n_tasks, shape, folder)
    if task is None or (np.diff(task) < 0).any():
        raise StorageError(f"{folder}: the rows of posterior.nc are not sorted by task; it was altered")
    return {
        "task": task,
        "worker": _codes(_needed(arrays, "given_worker", folder), "given_worker", counted.n_workers, shape, folder),
        "label": label,
        "count": _numbers(*of("count"), shape, folder, low=0),
        "seconds": _numbers(*of("seconds"), shape, folder, missing=np.nan),
        "when": _numbers(*of("when"), shape, folder, missing=np.nan),
        "mirrored": None if mirrored is None else mirrored.astype(bool),
    }


def checked_probabilities(values: np.ndarray, annotations: Annotations, folder: Path) -> np.ndarray:
    """Probabilities of the labels, ``(N, K)``, if they are some.

    Raises:
        StorageError: they have another shape, are not finite, or do not sum to 1.
    """
    shape = (annotations.n_tasks, annotations.n_classes)
    found = _numbers(values, "the label probabilities", shape, folder, low=0)
    if found is None or (np.abs(found.sum(-1, dtype=float) - 1) > CLOSE).any():
        raise StorageError(f"{folder}: the label probabilities of a task do not sum to 1; posterior.nc was altered")
    return found


def _ids(saved: Mapping[str, Any], kind: str, folder: Path) -> Ids:
    try:
        return ids_from_json(saved[kind]) if kind in saved else Ids()
    except (AnnotationError, IndexError, *DECODING) as error:
        raise StorageError(f"{folder}: the ids of {kind} in manifest.json cannot be read: {error}") from None


def _needed(arrays: Arrays, name: str, folder: Path) -> np.ndarray:
    if name not in arrays:
        raise StorageError(f"{folder}: posterior.nc has no variable {name!r}; it is of another program, or damaged")
    return arrays[name]


def _codes(values: np.ndarray | None, name: str, n: int, shape: tuple, folder: Path, low: int = 0) -> np.ndarray | None:
    """Positions from `low` to below `n`, of a shape."""
    if values is None:
        return None
    if values.dtype.kind not in "iu" or values.shape != shape:
        raise StorageError(f"{folder}: {name} is {values.dtype}{values.shape}, and whole numbers {shape} are needed")
    if values.size and (values.min() < low or values.max() >= n):
        raise StorageError(
            f"{folder}: {name} holds {values.min()} to {values.max()}, and manifest.json has {n} ids; the files are of "
            "two fits, or were altered"
        )
    return values


def _numbers(
    values: np.ndarray | None,
    name: str,
    shape: tuple,
    folder: Path,
    low: float | None = None,
    missing: float | None = None,
) -> np.ndarray | None:
    """Finite numbers, or `missing` ones, of a shape in which ``...`` stands for any lengths."""
    if values is None:
        return None
    at = shape.index(...) if ... in shape else len(shape)
    ends = shape[at + 1 :]
    fits = values.shape == shape or (
        at < len(shape)
        and values.ndim >= len(shape) - 1
        and values.shape[:at] == shape[:at]
        and (not ends or values.shape[-len(ends) :] == ends)
    )
    if values.dtype.kind not in "biuf" or not fits:
        said = str(shape).replace("Ellipsis", "…")
        raise StorageError(f"{folder}: {name} is {values.dtype}{values.shape}, and numbers {said} are needed")
    good = np.isfinite(values)
    if missing is not None:
        good |= np.isnan(values) if np.isnan(missing) else values == missing
    if low is not None:
        good &= values >= low
    if not good.all():
        raise StorageError(f"{folder}: {name} holds {values[~good].flat[0]}, which is no number that it can hold")
    return values
