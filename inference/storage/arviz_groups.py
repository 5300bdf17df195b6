"""A fitted story's numbers as xarray datasets, by ArviZ's groups and with named tasks, workers and classes."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np

from ...data import Annotations
from ...data.errors import check_name
from ..fitted.fitted import Fitted
from ..fitted.named_draws import coords_of
from ..fitted.pointwise import log_likelihood_by_annotation
from ..fitted.replicated_annotations import log_prior

if TYPE_CHECKING:
    import xarray as xr

FIT_GROUP = "fit"  # what is not ArviZ's: the posterior of the labels, the engine's history, parameters without draws


LIKELIHOODS = ("annotation", "task")


def to_groups(fitted: Fitted, *, log_likelihood: str | None = "annotation") -> dict[str, xr.Dataset]:
    """A fit's groups: those of ArviZ but posterior_predictive and prior, and :data:`FIT_GROUP`.

    Args:
        fitted: the story at its draws.
        log_likelihood: ``"annotation"`` for each row given the other annotations of its task, of one length with the
            observed data; ``"task"`` for all annotations of a task, the truth summed out; None for no such group.

    Raises:
        UnknownNameError: `log_likelihood` is none of these.
    """
    import xarray as xr

    annotations, outcome = fitted.annotations, fitted.outcome
    groups = {"posterior": fitted.named_draws.assign_attrs(provenance(fitted))}
    if outcome.stats:
        groups["sample_stats"] = xr.Dataset({name: (("chain", "draw"), v) for name, v in outcome.stats.items()})
    if log_likelihood is not None:
        groups["log_likelihood"] = _log_likelihood(fitted, check_name("log_likelihood", log_likelihood, LIKELIHOODS))
    groups["log_prior"] = log_prior(fitted)
    groups["observed_data"] = observed_of(annotations)
    groups["constant_data"] = constants_of(annotations)
    groups[FIT_GROUP] = xr.Dataset(
        {"label_probability": (("task", "truth"), fitted.posterior), "history": ("iteration", outcome.history)}
        | {name: (_unnamed(name, np.ndim(value)), np.asarray(value)) for name, value in outcome.fixed.items()},
        coords_of(annotations, ("task", "truth")),
    )
    return groups


def provenance(fitted: Fitted) -> dict[str, str]:
    """Where the draws come from, as text: library, story, hyperparameters, engine, settings, size of the data."""
    annotations = fitted.annotations
    return {
        "inference_library": "crowdppl",
        "inference_library_version": version("crowdppl"),
        "story": fitted.story,
        "hyperparameters": json.dumps({name: repr(value) for name, value in fitted.model.hyperparameters.items()}),
        "method": fitted.method,
        "settings": json.dumps(
            {name: value if is_plain(value) else repr(value) for name, value in fitted.settings.items()}
        ),
        "data": f"{annotations.n_tasks} tasks, {annotations.n_workers} workers, {annotations.n_classes} classes, "
        f"{annotations.n_annotations} annotations"
        + (f", abstentions {list(annotations.abstentions)}" if annotations.abstains else ""),
    }


def is_plain(value: object) -> bool:
    """Whether JSON holds the value as it is."""
    return value is None or isinstance(value, bool | int | float | str)


def _log_likelihood(fitted: Fitted, by: str) -> xr.Dataset:
    import xarray as xr

    if by == "annotation":
        return xr.Dataset({"annotation": (("chain", "draw", "row"), log_likelihood_by_annotation(fitted))})
    annotated = np.unique(fitted.annotations.task)  # the others have nothing that could be left out
    values = (("chain", "draw", "task"), fitted.log_likelihood()[..., annotated])
    return xr.Dataset({"annotation": values}, {"task": fitted.annotations.tasks.coords()[annotated]})


def observed_of(annotations: Annotations) -> xr.Dataset:
    """The annotations, row by row."""
    import xarray as xr

    named = coords_of(annotations, ("kind",)) if annotations.abstains else None
    return xr.Dataset({"annotation": ("row", np.asarray(annotations.label))}, named)


def constants_of(annotations: Annotations) -> xr.Dataset:
    """Which task and worker each row is of, and what else is known; the names of all of them."""
    import xarray as xr

    n_feature_dims = 0 if annotations.features is None else np.ndim(annotations.features) - 1
    by_dims = {
        "row_task": (("row",), annotations.task),
        "row_worker": (("row",), annotations.worker),
        "row_count": (("row",), annotations.count),
        "row_seconds": (("row",), annotations.seconds),
        "gold": (("task",), annotations.gold),
        "evidence": (("task", "truth"), annotations.evidence),
        "prior": (("task", "truth"), annotations.prior),
        "model_scores": (("task", "model", "truth"), annotations.model_scores),
        "model_reference": (("model", "reference", "truth"), annotations.model_reference),
        "features": (("task", *_unnamed("features", n_feature_dims)), annotations.features),
        "worker_features": (("worker", "worker_feature"), annotations.worker_features),
    }
    variables = {name: (dims, np.asarray(value)) for name, (dims, value) in by_dims.items() if value is not None}
    return xr.Dataset(variables, coords_of(annotations, ("task", "worker", "truth", "model")))


def _unnamed(name: str, n_dims: int) -> tuple[str, ...]:
    return tuple(f"{name}_dim_{i}" for i in range(n_dims))
