"""A fit's numbers as xarray datasets, by ArviZ's groups and with named tasks, workers and classes."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from ...data import Annotations

if TYPE_CHECKING:
    from ..results import Fit

FIT_GROUP = "fit"  # what is not ArviZ's: the posterior of the labels, the engine's history, parameters without draws
RENAMED = {"class": "truth"}  # a plate may not bear the name of the site ``truth``


def parameter_dataset(
    draws: Mapping[str, np.ndarray], dims: Mapping[str, tuple[str, ...]], annotations: Annotations
) -> xr.Dataset:
    """Draws ``(chain, draw, ...)`` as a dataset with dimensions named by plates and events."""
    names = {site: ("chain", "draw", *(RENAMED.get(dim, dim) for dim in dims[site])) for site in draws}
    variables = {site: (names[site], value) for site, value in draws.items()}
    coords = _coords_of(annotations, {dim for site_dims in names.values() for dim in site_dims})
    shape = next((values.shape[:2] for values in draws.values()), (0, 0))
    return xr.Dataset(variables, coords | {"chain": np.arange(shape[0]), "draw": np.arange(shape[1])})


def to_groups(fit: "Fit", *, log_likelihood: bool = True) -> dict[str, xr.Dataset]:
    """A fit's groups: those of ArviZ but posterior_predictive, and :data:`FIT_GROUP`.

    Args:
        log_likelihood: compute the group of that name, which is a number for each task and draw.
    """
    annotations, outcome = fit.annotations, fit.outcome
    groups = {"posterior": parameter_dataset(outcome.draws, fit.dims, annotations)}
    if outcome.stats:
        groups["sample_stats"] = xr.Dataset({name: (("chain", "draw"), v) for name, v in outcome.stats.items()})
    if log_likelihood:
        answered = np.unique(annotations.task)  # the others have nothing that could be left out
        values = (("chain", "draw", "task"), fit.log_likelihood()[..., answered])
        groups["log_likelihood"] = xr.Dataset({"annotation": values}, {"task": annotations.tasks.coords()[answered]})
    groups["observed_data"] = xr.Dataset({"annotation": ("row", np.asarray(annotations.label))})
    groups["constant_data"] = _constants(annotations)
    groups[FIT_GROUP] = xr.Dataset(
        {"label_posterior": (("task", "truth"), fit.posterior), "history": ("iteration", outcome.history)}
        | {name: (_unnamed(name, np.ndim(value)), np.asarray(value)) for name, value in outcome.fixed.items()},
        _coords_of(annotations, ("task", "truth")),
    )
    return groups


def _constants(annotations: Annotations) -> xr.Dataset:
    """Which task and worker each row is of, and what else is known; the names of all of them."""
    n_feature_dims = 0 if annotations.features is None else np.ndim(annotations.features) - 1
    by_dims = {
        "row_task": (("row",), annotations.task),
        "row_worker": (("row",), annotations.worker),
        "row_count": (("row",), annotations.count),
        "row_seconds": (("row",), annotations.seconds),
        "gold": (("task",), annotations.gold),
        "evidence": (("task", "truth"), annotations.evidence),
        "prior": (("task", "truth"), annotations.prior),
        "features": (("task", *_unnamed("features", n_feature_dims)), annotations.features),
        "worker_features": (("worker", "worker_feature"), annotations.worker_features),
    }
    variables = {name: (dims, np.asarray(value)) for name, (dims, value) in by_dims.items() if value is not None}
    return xr.Dataset(variables, _coords_of(annotations, ("task", "worker", "truth")))


def _unnamed(name: str, n_dims: int) -> tuple[str, ...]:
    return tuple(f"{name}_dim_{i}" for i in range(n_dims))


def _coords_of(annotations: Annotations, dims: Iterable[str]) -> dict[str, np.ndarray]:
    return {dim: values for dim, values in _coords(annotations).items() if dim in dims and len(values)}


def _coords(annotations: Annotations) -> dict[str, np.ndarray]:
    classes = annotations.classes.coords()
    return {
        "task": annotations.tasks.coords(),
        "worker": annotations.workers.coords(),
        "truth": classes,
        "annotation": classes,
    }
