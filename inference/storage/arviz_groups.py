"""A fitted story's numbers as xarray datasets, by ArviZ's groups and with named tasks, workers and classes."""

import numpy as np
import xarray as xr

from ...data import Annotations
from ..fitted.fitted import Fitted
from ..fitted.named_draws import coords_of

FIT_GROUP = "fit"  # what is not ArviZ's: the posterior of the labels, the engine's history, parameters without draws


def to_groups(fitted: Fitted, *, log_likelihood: bool = True) -> dict[str, xr.Dataset]:
    """A fit's groups: those of ArviZ but posterior_predictive, and :data:`FIT_GROUP`.

    Args:
        log_likelihood: compute the group of that name, which is a number for each task and draw.
    """
    annotations, outcome = fitted.annotations, fitted.outcome
    groups = {"posterior": fitted.named_draws}
    if outcome.stats:
        groups["sample_stats"] = xr.Dataset({name: (("chain", "draw"), v) for name, v in outcome.stats.items()})
    if log_likelihood:
        annotated = np.unique(annotations.task)  # the others have nothing that could be left out
        values = (("chain", "draw", "task"), fitted.log_likelihood()[..., annotated])
        groups["log_likelihood"] = xr.Dataset({"annotation": values}, {"task": annotations.tasks.coords()[annotated]})
    groups["observed_data"] = xr.Dataset({"annotation": ("row", np.asarray(annotations.label))})
    groups["constant_data"] = _constants(annotations)
    groups[FIT_GROUP] = xr.Dataset(
        {"label_posterior": (("task", "truth"), fitted.posterior), "history": ("iteration", outcome.history)}
        | {name: (_unnamed(name, np.ndim(value)), np.asarray(value)) for name, value in outcome.fixed.items()},
        coords_of(annotations, ("task", "truth")),
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
    return xr.Dataset(variables, coords_of(annotations, ("task", "worker", "truth")))


def _unnamed(name: str, n_dims: int) -> tuple[str, ...]:
    return tuple(f"{name}_dim_{i}" for i in range(n_dims))
