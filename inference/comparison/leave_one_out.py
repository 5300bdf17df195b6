"""Leave-one-out by Pareto-smoothed importance sampling (Vehtari, Gelman & Gabry 2017), for any story."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..fitted.fitted import Fitted, HoldsFitted, fitted_of
from ..fitted.pointwise import log_likelihood_by_annotation
from ..storage.arviz_data import is_tree, make_idata
from .cross_validation import annotation_index
from .elpd import UNITS, Elpd
from .held_out import counts, predict_annotations, predict_tasks, rounds
from .refit import refit_without

MAX_DRAWS = 2000  # more of them are thinned, since every unit takes a number a draw
ESS_UNITS = 200  # units at the most whose effective sample sizes are looked at
NAMED = 10  # n_high_k units that a message names


def loo(fit: HoldsFitted, *, by: str = "task", reloo: bool = False) -> Elpd:
    r"""Score a story by what it would predict of each task, or annotation, without having seen it; nothing is refitted.

    By task, :math:`\log p(y_i \mid y_{-i})` with the truth summed out. By annotation,
    :math:`\log p(y_a \mid y_{-a})`: given the other annotations to its task too. Each from the draws of one fit, weighted
    by how they would look without the unit (ArviZ's PSIS-LOO).

    Args:
        fit: with draws, by NUTS or SVI.
        by: ``"task"`` or ``"annotation"``.
        reloo: fit again without each unit whose Pareto k̂ is too high, for the exact value; a refit each.

    Raises:
        ValueError: for a fit without draws, or another `by`.
    """
    if by not in UNITS:
        raise ValueError(f"by={by!r}: 'task' or 'annotation' is needed")
    fitted = fitted_of(fit)
    if not fitted.has_draws:
        raise ValueError(
            f"{fitted.story} was fitted to a point by method={fitted.method!r}, so there are no draws to weight; fit with "
            "method='nuts' or 'svi' (and a guide that is no delta), or score it by cp.kfold(fit)"
        )
    values, index, weight = _pointwise(fitted, by)
    found = _psis(values, _relative_efficiency(values) if fitted.method == "nuts" else 1.0)
    elpd, k = np.array(found["elpd_i"]), np.array(found["k"])
    spread = _spread(values)
    elpd, k = np.where(spread, elpd, values[0, 0]), np.where(spread, k, -np.inf)  # the same in every draw
    if reloo:
        for unit in np.flatnonzero(~(k <= found["good_k"])):
            elpd[unit], k[unit] = _exact(fitted, by, int(unit)), -np.inf  # no weights to distrust
    p = float((weight * (_log_mean_exp(values) - elpd)).sum())
    return Elpd(fitted.story, "loo", by, index, weight * elpd, k, float(found["good_k"]), p)


def high_k_message(found: Elpd) -> str | None:
    """What is wrong with a leave-one-out score and what to do, or None where nothing is."""
    n_high_k = found.high_k
    if n_high_k.empty:
        return None
    names = ", ".join(f"{_name(unit)} ({k:.2f})" for unit, k in n_high_k["pareto_k"].head(NAMED).items())
    more = f" and {len(n_high_k) - NAMED:,} more" if len(n_high_k) > NAMED else ""
    return (
        f"{found.story}: leave-one-out cannot be trusted for {len(n_high_k):,} of {len(found.values):,} {found.by}s, "
        f"whose Pareto k̂ is over {found.good_k:.2f}: {names}{more}; refit without them by cp.loo(fit, by={found.by!r}, "
        "reloo=True), or score all fits by method='kfold'"
    )


def _name(unit: Any) -> str:
    if not isinstance(unit, tuple):
        return repr(unit)
    return " of ".join(repr(part) for part in reversed(unit[:2])) if len(unit) == 3 else repr(unit[0])


def _pointwise(fitted: Fitted, by: str) -> tuple[np.ndarray, Any, np.ndarray]:
    """Log-likelihood of each unit in each draw ``(chain, draw, units)``, the units, and how often each counts."""
    annotations = fitted.annotations
    step = -(-int(np.prod(fitted.shape)) // MAX_DRAWS)
    some = fitted.with_draws({name: value[:, ::step] for name, value in fitted.draws.items()})
    task = np.asarray(annotations.task)
    if by == "task":
        annotated = np.unique(task)
        return (
            some.log_likelihood()[..., annotated],
            annotations.tasks.to_index("task")[annotated],
            np.ones(len(annotated)),
        )
    return log_likelihood_by_annotation(some), annotation_index(annotations), counts(annotations)


def _psis(values: np.ndarray, reff: float) -> dict[str, Any]:
    """ArviZ's leave-one-out of each unit, in the names of neither of its lines."""
    import xarray as xr

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of high k̂, which is told with names elsewhere
        import arviz as az

        moving = values[..., _spread(values)]
        if not moving.shape[-1]:
            nothing = np.zeros(values.shape[-1])
            return {"elpd_i": nothing, "k": nothing, "good_k": 0.7}
        data = xr.Dataset({"annotation": (("chain", "draw", "unit"), moving.astype(float))})
        found = az.loo(make_idata({"posterior": data, "log_likelihood": data}), pointwise=True, reff=reff)
    elpd, k = np.zeros(values.shape[-1]), np.zeros(values.shape[-1])
    elpd[_spread(values)] = np.asarray(found.elpd_i if is_tree() else found.loo_i)
    k[_spread(values)] = np.asarray(found.pareto_k)
    return {"elpd_i": elpd, "k": k, "good_k": float(found.good_k)}


def _spread(values: np.ndarray) -> np.ndarray:
    """Which units have another log-likelihood in another draw."""
    return np.ptp(values, axis=(0, 1)) > 0


def _relative_efficiency(values: np.ndarray) -> float:
    """Effective sample size of the likelihoods as a share of the draws, over a sample of the units."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        import arviz as az

    every = max(values.shape[-1] // ESS_UNITS, 1)
    some = np.exp(values[..., ::every] - values[..., ::every].max((0, 1)))
    ess = [float(az.ess(some[..., i], method="mean")) for i in range(some.shape[-1]) if np.ptp(some[..., i]) > 0]
    return float(np.clip(np.mean(ess) / (values.shape[0] * values.shape[1]), 1e-3, 1.0)) if ess else 1.0


def _log_mean_exp(values: np.ndarray) -> np.ndarray:
    return np.logaddexp.reduce(values.reshape(-1, values.shape[-1]), axis=0) - np.log(values[..., 0].size)


def _exact(fitted: Fitted, by: str, unit: int) -> float:
    """Of one unit, by a fit without it."""
    task, count = np.asarray(fitted.annotations.task), counts(fitted.annotations)
    if by == "task":
        position = np.unique(task)[unit]
        found = refit_without(fitted, np.where(task == position, count, 0))
        return float(predict_tasks(found.with_data(found.annotations.replace(count=count)))[position])
    held = np.zeros_like(count)
    held[unit] = 1
    return float(predict_annotations(refit_without(fitted, held), rounds(task, held > 0), 1)[unit])
