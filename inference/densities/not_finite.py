"""The first term of a story's density that is no finite number, with its place: for the errors of engines."""

from collections.abc import Iterator, Mapping, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import validation_enabled

from ...data import Annotations
from ...models.parts.truth import CorrelatedTruth
from .enumerated import Parameters, Site, density, is_latent, run_enumerated, scores_of_tasks, site_dims, site_values
from .model import Model
from .sites import parameter_spec

FEW = 4  # parameters that are shown of a worker or task, at the most
TO_WRITE = (
    "what goes into a logarithm, a root, a divisor or a scale is to be positive at all values of the parameters: give "
    "it a positive prior, such as dist.HalfNormal(1.0) or dist.LogNormal(0.0, 1.0), or write jax.nn.softplus(x) for it"
)
SLOPE_TO_WRITE = (
    "jnp.where takes the slopes of both its branches, also of the one that it leaves out: write "
    "jnp.sqrt(jnp.where(x > 0, x, 1.0)) for a root or a logarithm of x inside it"
)


@validation_enabled(False)  # of distributions, whose refusals have no place
def not_finite(model: Model, annotations: Annotations, parameters: Parameters) -> str | None:
    """Return what of the density is not finite at ``parameters``, where, and what to write; None where all is.

    Args:
        parameters: by site, where the fit starts.
    """
    annotations = jax.tree.map(jnp.asarray, annotations)
    sites, by_task = run_enumerated(model, annotations, site_values(parameters))
    names = {"worker": annotations.workers, "task": annotations.tasks, "class": annotations.classes}
    values = {name: (np.asarray(site["value"]), site_dims(site)) for name, site in sites.items() if is_latent(site)}
    for name, what, found, dims in _terms(sites):
        if (index := _first(~np.isfinite(found))) is not None:
            at = dict(zip(dims, index, strict=False))
            return f"the {what} of the site {name!r} is {found[index]}{_place(at, names, values)}; {TO_WRITE}"
    scores = np.asarray(scores_of_tasks(model, annotations, sites, by_task))
    off = np.isnan(scores) | np.isposinf(scores) | np.isneginf(scores).all(-1, keepdims=True)
    if (index := _first(off)) is not None:
        task, k = index
        own = {
            name: np.broadcast_to(site["fn"].log_prob(site["value"]), scores.T.shape)[k, task]
            for name, site in by_task.items()
            if not isinstance(site["fn"], CorrelatedTruth)
        }
        name = next((name for name, value in own.items() if not np.isfinite(value)), "annotation")
        at = {"task": task, "class": k}
        if name == "annotation" and (worker := _worker_at(by_task[name], annotations, task, k)) is not None:
            at = {"worker": worker, **at}
        where = _place(at, names, values, under="true class")
        return f"the log-probability of the site {name!r} is {own[name]}{where}; {TO_WRITE}"
    spec = parameter_spec(model, annotations)

    def log_posterior(reals: Parameters) -> jax.Array:
        return density(model, parameters | spec.from_reals(reals), annotations).log_posterior_in_log_odds

    for name, slope in jax.grad(log_posterior)(spec.to_reals(parameters)).items():
        slope = np.asarray(slope)
        if (index := _first(~np.isfinite(slope))) is not None:
            at = dict(zip(values[name][1], index, strict=False))
            return (
                f"the log-posterior is finite, but its slope along the site {name!r} is {slope[index]}"
                f"{_place(at, names, values)}; {SLOPE_TO_WRITE}"
            )
    return None


def _terms(sites: Mapping[str, Site]) -> Iterator[tuple[str, str, np.ndarray, tuple[str, ...]]]:
    """Values of the parameters, and log-densities of all sites but the tasks', with their dimensions."""
    for name, site in sites.items():
        if is_latent(site):
            yield name, "value", np.asarray(site["value"]), site_dims(site)
        if site["type"] == "sample":
            found = np.asarray(site["fn"].log_prob(site["value"]))
            yield name, "log-density", found, site_dims(site)[: found.ndim]


def _worker_at(site: Site, annotations: Annotations, task: int, k: int) -> int | None:
    """The worker of the first annotation to the task whose own log-probability is at fault, where there is one."""
    if annotations.worker is None or not site["fn"].emission.independent:
        return None
    rows = site["fn"].emission.log_prob(annotations.worker, annotations.task, annotations.label)
    off = (np.asarray(annotations.task) == task) & ~np.isfinite(np.asarray(rows)[:, k])
    return int(np.asarray(annotations.worker)[off.argmax()]) if off.any() else None


def _first(off: np.ndarray) -> tuple[int, ...] | None:
    return tuple(map(int, np.argwhere(off)[0])) if off.any() else None


def _place(
    at: Mapping[str, int],
    names: Mapping[str, Sequence],
    values: Mapping[str, tuple[np.ndarray, tuple[str, ...]]],
    under: str = "class",
) -> str:
    """Write names of what stands at the indices, and the parameters there that are single numbers."""
    said = [
        f"{under if dim == 'class' else dim} {names[dim][index]!r}" if dim in names else f"{dim} {index}"
        for dim, index in at.items()
    ]
    there = [
        f"{name} is {value[tuple(at[dim] for dim in dims)]:.3g}"
        for name, (value, dims) in values.items()
        if set(dims) <= at.keys()
    ]
    place = f" at {', '.join(said)}" if said else ""
    return place + (f", where {', '.join(there[:FEW])}" if there else "")
