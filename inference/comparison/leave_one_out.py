"""Leave-one-out by Pareto-smoothed importance sampling (Vehtari, Gelman & Gabry 2017), for any story."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ...data.arrays import counts
from ...data.errors import check_name
from ...data.id_text import name_quoted
from ..fitted.fitted import Fitted
from ..fitted.named_draws import NamedArrays
from ..fitted.pointwise import log_likelihood_by_annotation, rounds
from ..fitted.posterior import Posterior, fitted_of
from ..storage.arviz_groups import is_tree, make_idata
from .elpd import UNITS, Elpd, annotation_index, tasks_and_workers
from .held_out import predict_annotations, predict_tasks, reads_counts, refit_without

MAX_DRAWS = 2000  # more of them are thinned, since every unit takes a number a draw
ESS_UNITS = 200  # units at the most whose effective sample sizes are looked at
NAMED = 2  # units of high Pareto k that a message names of each story


def loo(fit: Posterior | Fitted, *, by: str = "task", reloo: bool = False) -> Elpd:
    r"""Score a story by leave-one-out cross-validation, from the draws of one fit and without refits (PSIS-LOO).

    By task, :math:`\log p(y_i \mid y_{-i})`, all annotations to a task predicted together with the truth summed out. By
    annotation, :math:`\log p(y_a \mid y_{-a})`, given the other annotations to the same task. Each is an average over
    the draws with importance weights :math:`1 / p(y_u \mid y_{-u}, \theta)`, whose tail is smoothed (Vehtari, Gelman &
    Gabry 2017, eq. 10; by ArviZ). Where the tail's shape k̂, Pareto k, is high, the value cannot be trusted: look at
    ``.high_k``.

    Example:
        >>> import crowdppl as cp
        >>> annotations = cp.load_dataset("anesthesia")
        >>> fit = cp.fit("dawid_skene", annotations, method="svi", max_iterations=200, draws=100, progress=False)
        >>> elpd = cp.loo(fit)
        >>> len(elpd.table), elpd.table.columns.tolist()
        (45, ['elpd', 'pareto_k'])

    Args:
        fit: with draws: by NUTS, or by SVI with a guide that is not a point.
        by: ``"task"`` or ``"annotation"``.
        reloo: whether to refit without each unit of high Pareto k, for its exact value: one refit a unit.

    Returns:
        the elpd in nats, and its parts by unit with their Pareto k.

    Raises:
        UnknownNameError: `by` is another unit.
        ValueError: the fit is a point (EM, or SVI with ``guide="delta"``), or its story reads the annotations elsewhere
            than in their likelihood, as the vote counts in difficulty with ``kind="fixed"``.
    """
    by = check_name("value of by", by, UNITS)
    fitted = fitted_of(fit)
    if (reason := why_not(fitted)) is not None:
        raise ValueError(reason)
    values, index, weight = _pointwise(fitted, by)
    found = _psis(values, _relative_efficiency(values) if fitted.method == "nuts" else 1.0)
    elpd, k = np.array(found["elpd_i"]), np.array(found["k"])
    varies = _varies(values)
    elpd, k = np.where(varies, elpd, values[0, 0]), np.where(varies, k, -np.inf)  # no weights where nothing varies
    if reloo:
        for unit in np.flatnonzero(~(k <= found["good_k"])):
            elpd[unit], k[unit] = _exact(fitted, by, int(unit)), -np.inf  # no weights in a refit
    mean = np.logaddexp.reduce(values.reshape(-1, values.shape[-1]), axis=0) - np.log(values[..., 0].size)
    p = float((weight * (mean - elpd)).sum())
    return Elpd(fitted.story, "loo", by, index, weight * elpd, k, float(found["good_k"]), p)


def why_not(fitted: Fitted) -> str | None:
    """Why a fit cannot be scored by leave-one-out, and what to do; None where it can."""
    if not fitted.has_draws:
        return (
            f"{fitted.story} was fitted to a point by method={fitted.method!r}, so there are no draws to weight; fit "
            "with method='nuts', or 'svi' and another guide than 'delta', or score it by cp.kfold(fit)"
        )
    if bool(reads_counts(fitted)):
        return (
            f"{fitted.story} takes a part of its truth prior or of its emission from the vote counts, so that draws of "
            "one fit do not say what it predicts without an annotation; score it by cp.kfold(fit)"
        )
    return None


def high_k_message(scores: Mapping[str, Elpd]) -> str | None:
    """Of which units of leave-one-out scores by story Pareto k is high, and what to do; None where none is."""
    high = {name: score.high_k["pareto_k"] for name, score in scores.items() if score.n_high_k}
    if not high:
        return None
    first = scores[next(iter(high))]
    said = "; ".join(
        f"{len(k):,} of {len(first.values):,} {first.by}s under {name}, as "
        + ", ".join(map("{} ({:.2f})".format, _names(k.index[:NAMED]), k))
        for name, k in high.items()
    )
    return (
        f"leave-one-out values cannot be trusted where Pareto k is high (above {first.good_k:.2f}): {said}. "
        f"cp.loo(fit, by={first.by!r}, reloo=True) refits without each of them, {sum(map(len, high.values())):,} times "
        "in all; method='kfold' refits all stories without a fold at a time"
    )


def _names(units: pd.Index) -> list[str]:
    """The tasks; or for annotations their tasks and, where workers are named, their workers."""
    named = [list(map(name_quoted, unit)) for unit in tasks_and_workers(units)]
    return [", worker ".join(("task " * isinstance(units, pd.MultiIndex) + unit[0], *unit[1:])) for unit in named]


def _pointwise(fitted: Fitted, by: str) -> tuple[np.ndarray, pd.Index, np.ndarray]:
    """Log-likelihood of each unit in each draw ``(chain, draw, U)``, the units, and how often each counts ``(U,)``."""
    annotations = fitted.annotations
    step = -(-int(np.prod(fitted.shape)) // MAX_DRAWS)
    some = fitted.with_draws({name: value[:, ::step] for name, value in fitted.draws.items()})
    if by == "task":
        annotated = np.unique(annotations.task)
        units = annotations.tasks.to_index("task")[annotated]
        return some.log_likelihood()[..., annotated], units, np.ones(len(annotated))
    return log_likelihood_by_annotation(some), annotation_index(annotations), counts(annotations)


def _psis(values: np.ndarray, reff: float) -> dict[str, Any]:
    """ArviZ's leave-one-out, of either of its lines: ``elpd_i`` and ``k`` of each unit, ``(U,)``, and ``good_k``."""
    elpd, k = np.zeros(values.shape[-1]), np.zeros(values.shape[-1])
    varies = _varies(values)
    if not varies.any():
        return {"elpd_i": elpd, "k": k, "good_k": 0.7}
    with warnings.catch_warnings(action="ignore"):  # of high Pareto k: our own warnings name the units
        import arviz as az

        data = NamedArrays({"annotation": (("chain", "draw", "unit"), values[..., varies].astype(float))})
        found = az.loo(make_idata({"posterior": data, "log_likelihood": data}), pointwise=True, reff=reff)
    elpd[varies] = np.asarray(found.elpd_i if is_tree() else found.loo_i)
    k[varies] = np.asarray(found.pareto_k)
    return {"elpd_i": elpd, "k": k, "good_k": float(found.good_k)}


def _varies(values: np.ndarray) -> np.ndarray:
    """Return whether each unit's log-likelihood differs between draws, ``(U,)`` bool."""
    return np.ptp(values, axis=(0, 1)) > 0


def _relative_efficiency(values: np.ndarray) -> float:
    """Effective sample size of the likelihoods as a share of the draws, averaged over a sample of the units."""
    with warnings.catch_warnings(action="ignore", category=FutureWarning):
        import arviz as az

    every = max(values.shape[-1] // ESS_UNITS, 1)
    some = np.exp(values[..., ::every] - values[..., ::every].max((0, 1)))
    ess = [float(az.ess(some[..., i], method="mean")) for i in range(some.shape[-1]) if np.ptp(some[..., i]) > 0]
    return float(np.clip(np.mean(ess) / (values.shape[0] * values.shape[1]), 1e-3, 1.0)) if ess else 1.0


def _exact(fitted: Fitted, by: str, unit: int) -> float:
    """The log-probability of one unit, predicted by a fit without it."""
    task, count = np.asarray(fitted.annotations.task), counts(fitted.annotations)
    if by == "task":
        position = np.unique(task)[unit]
        held = np.where(task == position, count, 0).astype(np.float32)
        return float(predict_tasks(refit_without(fitted, held), held)[position])
    held = np.zeros_like(count)
    held[unit] = 1
    return float(predict_annotations(refit_without(fitted, held), rounds(task, held > 0))[unit])
