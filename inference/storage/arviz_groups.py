"""A fitted story's numbers by ArviZ's groups, with named tasks, workers and classes, as the installed ArviZ wants them.

ArviZ 0.23 keeps its groups (``posterior``, ``sample_stats``, ``log_likelihood``, ...) in ``InferenceData``, ArviZ 1 and
later in ``xarray.DataTree``; no other module knows which of the two it is. The file is the same for both: a netCDF
group each, as ArviZ's own.

Of replicated annotations ArviZ looks at one number a unit of the log-likelihood. Of an annotation that is its class; of
a task, whose annotations are its unit, it is their :data:`MAJORITY_SHARE`.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import numpy as np

from ...data import Annotations
from ...data.arrays import counts
from ...data.atomic import whole_file
from ...data.errors import check_name
from ...data.fingerprint import fingerprint
from ...models import StoryError
from ..engines.outcome import Modes
from ..fitted.fitted import Fitted, label_draws
from ..fitted.named_draws import NamedArrays, Variable, coords_of
from ..fitted.pointwise import log_likelihood_by_annotation
from ..fitted.replicated_annotations import Unit, independent, log_prior, predicted
from ..fitted.replicated_annotations import prior as from_prior
from .checked_json import is_plain
from .stored_annotations import given_rows_of

if TYPE_CHECKING:
    import arviz as az
    import xarray as xr

    IData: TypeAlias = az.InferenceData | xr.DataTree

FIT_GROUP = "fit"  # what is not ArviZ's: the posterior of the labels, the engine's history, parameters without draws
MODES = "mode_"  # before the names of what is known of them
TRUTH_PROBABILITY = "truth_probability"  # P(truth | θ, annotations) in each draw, among the parameters
AROUND_POINT = "around a point, by a few steps of data augmentation"
AFFORDABLE = 5_000_000  # numbers in a group that nobody asked for: 20 MB of float32
PRIOR_DRAWS = 1000
LIKELIHOODS = ("task", "annotation")
MAJORITY_SHARE = "majority_share"
SAID = "share of the task's annotations that are of the most frequent kind among them"
BY_ROW = np.int16  # of the classes' positions, which are many


def make_idata(groups: Mapping[str, NamedArrays | xr.Dataset]) -> IData:
    """Put groups together: an ``InferenceData`` with ArviZ 0.23, a ``DataTree`` with ArviZ 1 and later.

    Args:
        groups: arrays by group name, such as ``posterior`` with dimensions chain, draw, ...
    """
    import xarray as xr

    datasets = {name: of.dataset() if isinstance(of, NamedArrays) else of for name, of in groups.items()}
    return xr.DataTree.from_dict(datasets) if is_tree() else _inference_data(datasets)


def group(idata: IData, name: str) -> xr.Dataset:
    """One group as a dataset.

    Raises:
        KeyError: there is no such group; the message names those there are.
    """
    import xarray as xr

    if name not in groups(idata):
        raise KeyError(f"no group {name!r}; there are {', '.join(groups(idata)) or 'none'}")
    node: Any = idata[name]
    return cast(xr.Dataset, node.to_dataset() if isinstance(node, xr.DataTree) else node)


def groups(idata: IData) -> list[str]:
    """The names of the groups, such as ``["posterior", "log_likelihood"]``."""
    import xarray as xr

    return list(idata.children) if isinstance(idata, xr.DataTree) else list(idata.groups())


def save_netcdf(idata: IData, path: str | os.PathLike[str]) -> Path:
    """Write every group to one netCDF file: see :func:`write_groups`."""
    return write_groups({name: _arrays_of(group(idata, name)) for name in groups(idata)}, path)


def write_groups(groups: Mapping[str, NamedArrays], path: str | os.PathLike[str]) -> Path:
    """Write groups to one netCDF file, which either line of ArviZ opens with ``az.from_netcdf``.

    It has what ``xarray.Dataset.to_netcdf`` writes of the same arrays. An existing file is replaced once the new one is
    complete. Coordinates keep their types: text, numbers and truth values as netCDF has them, others (UUIDs, dates,
    tuples, a mixture) as text with JSON beside it.

    Raises:
        AnnotationError: an id is of a type that cannot be saved.
        StorageError: the file cannot be written.
    """
    import h5netcdf

    path = Path(path)
    with whole_file(path) as part, h5netcdf.File(part, "w") as file:
        for name, arrays in groups.items():
            _write_group(file.create_group(name), arrays)
    return path


def _write_group(group: Any, arrays: NamedArrays) -> None:
    """Write arrays to a group of a file of h5netcdf's, encoded as xarray does: NaN for what is missing, text, bools."""
    import h5py

    variables = {**arrays.variables, **{dim: ((dim,), values) for dim, values in arrays.coords.items()}}
    for dims, values, *_ in variables.values():
        for dim, length in zip(dims, np.shape(values), strict=True):
            if dim not in group.dimensions:
                group.dimensions[dim] = length
    for name, (dims, values, *said) in variables.items():
        values, attrs = np.asarray(values), dict(said[0] if said else {})
        missing, kind = None, values.dtype
        if kind.kind == "b":
            values, attrs = values.astype(np.int8), attrs | {"dtype": "bool"}
        elif kind.kind == "f":
            missing = kind.type(np.nan)
        elif kind.kind in "UO":
            values = values.astype(object)
        kind = h5py.string_dtype() if values.dtype == object else values.dtype
        written = group.create_variable(name, dims, kind, fillvalue=missing)
        written.attrs.update(attrs)
        if values.size:
            written[...] = values
    group.attrs.update(arrays.attrs)


def _arrays_of(dataset: xr.Dataset) -> NamedArrays:
    return NamedArrays(
        {str(name): (tuple(map(str, of.dims)), of.to_numpy(), of.attrs) for name, of in dataset.data_vars.items()},
        {str(name): of.to_numpy() for name, of in dataset.coords.items()},
        dataset.attrs,
    )


def is_tree() -> bool:
    """Return whether the installed ArviZ is version 1 or later, which keeps ``xarray.DataTree``."""
    # Not hasattr(arviz, "InferenceData"): ArviZ 1 still annotations to that name.
    return int(version("arviz").partition(".")[0]) >= 1


def _inference_data(groups: Mapping[str, xr.Dataset]) -> IData:
    with warnings.catch_warnings(action="ignore", category=FutureWarning):
        import arviz as az  # 0.23 announces ArviZ 1 to whoever imports it
    return az.InferenceData(**cast(Any, groups))


def to_groups(
    fitted: Fitted,
    *,
    log_likelihood: str | None = "task",
    derived: bool | None = False,
    truth_probability: bool | None = None,
    posterior_predictive: bool | None = None,
    prior: int | None = None,
    uncertainty: bool = False,
    seed: int = 0,
) -> dict[str, NamedArrays]:
    """A fit's groups, ArviZ's and :data:`FIT_GROUP`; options and errors are those of :meth:`crowdppl.Fit.to_idata`."""
    has_draws, fitted = fitted.has_draws, fitted.with_uncertainty if uncertainty else fitted
    annotations, outcome = fitted.annotations, fitted.outcome
    if log_likelihood is not None:
        check_name("log_likelihood", log_likelihood, LIKELIHOODS)
    unit: Unit = "annotation" if log_likelihood == "annotation" else "task"
    draws = int(np.prod(fitted.shape))
    rows, n_labels = annotations.n_annotations, annotations.n_tasks * annotations.n_classes
    if truth_probability is None:
        truth_probability = draws * n_labels <= AFFORDABLE
    if posterior_predictive is None:
        posterior_predictive = has_draws and draws * rows <= AFFORDABLE and can_be_predicted(fitted, unit)

    posterior = fitted.named_arrays
    if derived is None:
        derived = draws * fitted.n_derived <= AFFORDABLE
    if derived and fitted.n_derived:
        quantities = fitted.derived_arrays()
        posterior = posterior.with_more(quantities.variables, quantities.coords)
    if truth_probability:
        labels: Variable = (("chain", "draw", "task", "truth"), label_draws(fitted))
        posterior = posterior.with_more({TRUTH_PROBABILITY: labels}, coords_of(annotations, ("task", "truth")))
    said = {"draws": AROUND_POINT} if fitted.has_draws and not has_draws else {}
    groups = {"posterior": posterior.with_more(attrs=provenance(fitted) | said)}
    if posterior_predictive:
        groups["posterior_predictive"] = predictive(fitted, unit, seed)
    if not said:  # draws around a point are not the posterior's: neither LOO nor a sensitivity follows from them
        if log_likelihood is not None:
            groups["log_likelihood"] = _log_likelihood(fitted, unit)
        groups["log_prior"] = log_prior(fitted)
    if outcome.stats:
        coords = {"chain": np.arange(fitted.shape[0]), "draw": np.arange(fitted.shape[1])}
        stats: dict[str, Variable] = {name: (("chain", "draw"), value) for name, value in outcome.stats.items()}
        groups["sample_stats"] = NamedArrays(stats, coords)
    if prior or (prior is None and has_draws and PRIOR_DRAWS * rows <= AFFORDABLE):
        with suppress(*(() if prior else (StoryError,))):  # a story that takes something from the annotations has none
            groups |= prior_groups(fitted, prior or PRIOR_DRAWS, unit, seed)
    groups["observed_data"] = observed_of(annotations)
    if unit == "task":
        groups["observed_data"] = with_majority_share(groups["observed_data"], annotations)
    groups["constant_data"] = constants_of(annotations)
    groups[FIT_GROUP] = NamedArrays(
        {"label_probability": (("task", "truth"), fitted.posterior), "history": (("iteration",), outcome.history)}
        | {name: (_unnamed(name, np.ndim(value)), np.asarray(value)) for name, value in outcome.fixed.items()}
        | ({} if outcome.modes is None else modes_of(outcome.modes))
        | given_rows_of(None if fitted.given_rows is None else fitted.given),
        coords_of(annotations, ("task", "truth")),
    )
    return groups


def modes_of(modes: Modes) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    """The modes in which starts of EM or chains ended, as variables of :data:`FIT_GROUP`."""
    dims = {
        "log_posterior": ("mode",),
        "log_mass": ("mode",),
        "labels": ("mode", "task"),
        "of_end": ("end",),
        "kept": (),
    }
    return {MODES + name: (dims[name], np.asarray(value)) for name, value in modes._asdict().items()}


def modes_from(found: Mapping[str, np.ndarray], n_tasks: int, n_classes: int) -> Modes | None:
    """The modes of :func:`modes_of`; None where a file has none.

    Raises:
        ValueError: they are of other sizes than each other and the labels, or hold what cannot be.
    """
    if MODES + "labels" not in found:
        return None
    log_posterior, log_mass, labels, of_end, kept = (np.asarray(found[MODES + name]) for name in Modes._fields)
    n, n_ends = len(labels), of_end.size
    fits = (
        labels.shape == (n, n_tasks)
        and log_posterior.shape == log_mass.shape == (n,)
        and (of_end.ndim, kept.ndim) == (1, 0)
        and all(value.dtype.kind in "iu" for value in (labels, of_end, kept))
        and _within(labels, 0, n_classes)
        and _within(kept, -1, n_ends)
        and set(of_end.tolist()) == set(range(n))
        and (n == 1 or bool(np.isfinite(log_posterior).all() and not np.isinf(log_mass).any()))  # NaN: unknown
    )
    if not fits:
        raise ValueError("they are not of one size, or hold what cannot be")
    return Modes(log_posterior, log_mass, labels, of_end, int(kept))


def _within(values: np.ndarray, low: int, end: int) -> bool:
    return bool(((values >= low) & (values < end)).all())


def _log_likelihood(fitted: Fitted, unit: Unit) -> NamedArrays:
    coords = {"chain": np.arange(fitted.shape[0]), "draw": np.arange(fitted.shape[1])}
    if unit == "annotation":
        return NamedArrays({"annotation": (("chain", "draw", "row"), log_likelihood_by_annotation(fitted))}, coords)
    annotated = annotated_tasks(fitted.annotations)  # the others have nothing that could be left out
    said = {"description": "log-probability of all annotations of the task, the truth summed out"}
    by_task: Variable = (("chain", "draw", "task"), fitted.log_likelihood()[..., annotated], said)
    return NamedArrays({MAJORITY_SHARE: by_task}, coords | {"task": fitted.annotations.tasks.coords()[annotated]})


def observed_of(annotations: Annotations) -> NamedArrays:
    """The annotations, row by row."""
    named = coords_of(annotations, ("kind",)) if annotations.abstains else {}
    return NamedArrays({"annotation": (("row",), np.asarray(annotations.label))}, named)


def constants_of(annotations: Annotations) -> NamedArrays:
    """Task and worker of each row, and what else is known; the names of all of them."""
    n_feature_dims = 0 if annotations.features is None else np.ndim(annotations.features) - 1
    by_dims = {
        "row_task": (("row",), annotations.task),
        "row_worker": (("row",), annotations.worker),
        "row_count": (("row",), annotations.count),
        "row_seconds": (("row",), annotations.seconds),
        "row_when": (("row",), annotations.when),
        "row_mirrored": (("row",), None if annotations.mirrored is None else annotations.mirrored.astype(np.int8)),
        "gold": (("task",), annotations.gold),
        "evidence": (("task", "truth"), annotations.evidence),
        "prior": (("task", "truth"), annotations.prior),
        "sides": (("task", "side"), annotations.sides),
        "model_scores": (("task", "model", "truth"), annotations.model_scores),
        "model_reference": (("model", "reference", "truth"), annotations.model_reference),
        "features": (("task", *_unnamed("features", n_feature_dims)), annotations.features),
        "worker_features": (("worker", "worker_feature"), annotations.worker_features),
        "item_features": (("item", "item_feature"), annotations.item_features),
    }
    variables = {name: (dims, np.asarray(value)) for name, (dims, value) in by_dims.items() if value is not None}
    return NamedArrays(variables, coords_of(annotations, ("task", "worker", "truth", "model")))


def _unnamed(name: str, n_dims: int) -> tuple[str, ...]:
    return tuple(f"{name}_dim_{i}" for i in range(n_dims))


def provenance(fitted: Fitted) -> dict[str, str]:
    """The library, the story and its hyperparameters, the engine, its settings and seed, the data, time and versions.

    ``created_at`` and ``versions`` are of the fit, not of the file; a fit from files that do not know them has none.
    """
    annotations = fitted.annotations
    settings = {name: value if is_plain(value) else repr(value) for name, value in fitted.settings.items()}
    return {
        "inference_library": "crowdppl",
        "inference_library_version": version("crowdppl"),
        "story": fitted.story,
        "hyperparameters": json.dumps({name: repr(value) for name, value in fitted.model.hyperparameters.items()}),
        "method": fitted.method,
        "settings": json.dumps(settings),
        "seed": str(fitted.settings.get("seed", "")),
        "data": f"{annotations.n_tasks} tasks, {annotations.n_workers} workers, {annotations.n_classes} classes, "
        f"{annotations.n_annotations} annotations"
        + (f", abstentions {list(annotations.abstentions)}" if annotations.abstains else ""),
        "data_fingerprint": fingerprint(annotations),
        **fitted.origin,
    }


def predictive(fitted: Fitted, unit: Unit, seed: int) -> NamedArrays:
    """Annotations as :func:`.predicted` draws them, ``annotation (chain, draw, row)``; by task also the majority share.

    Raises:
        AnnotationError: as :func:`.predicted`.
    """
    if unit == "annotation":
        return _group(fitted.annotations, predicted(fitted, unit, seed=seed))
    design = each_annotation(fitted.annotations)
    new = predicted(fitted.with_data(design), unit, seed=seed)
    return _group(fitted.annotations, new, design)


def prior_groups(fitted: Fitted, n: int, unit: Unit, seed: int) -> dict[str, NamedArrays]:
    """The groups ``prior`` and ``prior_predictive``: ``n`` draws of the parameters and of annotations."""
    design = each_annotation(fitted.annotations)
    parameters, annotation = from_prior(fitted.with_data(design), n, seed=seed)
    if unit == "task":
        return {"prior": parameters, "prior_predictive": _group(fitted.annotations, annotation, design)}
    of_rows = annotation[..., _rows(fitted.annotations, design)]
    return {"prior": parameters, "prior_predictive": _group(fitted.annotations, of_rows)}


def can_be_predicted(fitted: Fitted, unit: Unit) -> bool:
    """Return whether :func:`.predicted` has draws by this unit."""
    return unit == "task" or independent(fitted) or bool((counts(fitted.annotations) == 1).all())


def with_majority_share(observed: NamedArrays, annotations: Annotations) -> NamedArrays:
    """The observed annotations beside the majority share of each annotated task."""
    design = each_annotation(annotations)
    return _with_majority_share(observed, design, np.asarray(design.label))


def annotated_tasks(annotations: Annotations) -> np.ndarray:
    """The tasks that have annotations, ascending."""
    return np.unique(np.asarray(annotations.task))


def each_annotation(annotations: Annotations) -> Annotations:
    """The annotations with a row for each, where that can be: counts that are weights stay."""
    count = counts(annotations)
    return annotations.expanded() if (count == np.round(count)).all() and (count > 0).all() else annotations


def majority_share_of(annotations: Annotations, label: np.ndarray) -> np.ndarray:
    """The share of each annotated task's annotations that are of their most frequent kind: ``(..., annotated tasks)``.

    Args:
        annotations: the design.
        label: of its rows, ``(..., A)``.
    """
    count = counts(annotations)
    first = np.unique(np.asarray(annotations.task), return_index=True)[1]  # rows are sorted by task
    largest = np.zeros((*label.shape[:-1], len(first)), np.float32)
    for kind in range(annotations.n_categories):
        np.maximum(largest, np.add.reduceat((label == kind) * count, first, axis=-1), out=largest)
    return largest / np.add.reduceat(count, first)


def _with_majority_share(group: NamedArrays, design: Annotations, label: np.ndarray) -> NamedArrays:
    dims = (*("chain", "draw")[: label.ndim - 1], "task")
    share: Variable = (dims, majority_share_of(design, label), {"description": SAID})
    return group.with_more({MAJORITY_SHARE: share}, {"task": design.tasks.coords()[annotated_tasks(design)]})


def _group(annotations: Annotations, new: np.ndarray, design: Annotations | None = None) -> NamedArrays:
    """Replicates ``(chain, draw, A)`` of the rows or, with the majority shares of tasks, of a longer design."""
    of_rows = new if design is None else new[..., _rows(annotations, design)]
    coords = {"chain": np.arange(new.shape[0]), "draw": np.arange(new.shape[1])}
    found = NamedArrays({"annotation": (("chain", "draw", "row"), of_rows.astype(BY_ROW))}, coords)
    return found if design is None else _with_majority_share(found, design, new)


def _rows(annotations: Annotations, design: Annotations) -> np.ndarray | slice:
    """The position of each row in a design that has a row for each annotation: the first of those that it became."""
    if design.n_rows == annotations.n_rows:
        return slice(None)
    times = counts(annotations).astype(np.int64)
    return np.cumsum(times) - times
