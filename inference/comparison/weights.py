"""Weights of several stories, by ArviZ."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np

from ..storage.arviz_data import is_tree

BLOCKS = 20_000  # units at the most for the Bayesian bootstrap; of more, neighbours are summed


def stacking(values: np.ndarray) -> np.ndarray:
    r"""Weights whose mixture of the stories predicts best.

    .. math:: \arg\max_w \sum_u \log \sum_m w_m \exp(\text{elpd}_{um})

    (Yao, Vehtari, Simpson & Gelman 2018, eq. 5.)

    Args:
        values: of each unit by each story, in nats ``(U, M)``.

    Returns:
        ``(M,)``, with sum 1.
    """
    return _by_arviz(values - values.max(1, keepdims=True), "stacking")  # a task of 600 annotations is e⁻⁶⁰⁰ otherwise


def pseudo_bma(values: np.ndarray) -> np.ndarray:
    """Akaike-like weights with the Bayesian bootstrap over units (Yao et al. 2018, section 3.4).

    Args:
        values: of each unit by each story, in nats ``(U, M)``.

    Returns:
        ``(M,)``, with sum 1.
    """
    if len(values) > BLOCKS:
        values = np.add.reduceat(values, np.linspace(0, len(values), BLOCKS, endpoint=False).astype(int))
    return _by_arviz(values - values.mean(1, keepdims=True), "BB-pseudo-BMA")


def _by_arviz(values: np.ndarray, method: Literal["stacking", "BB-pseudo-BMA"]) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its own scale of what is a small difference
        import arviz as az

        fits = {str(m): _elpd_data(values[:, m]) for m in range(values.shape[1])}
        options: dict[str, Any] = {"round_to": "none"} if is_tree() else {"seed": 0}
        weights = az.compare(fits, method=method, **options)["weight"]
    found = np.array([float(weights[str(m)]) for m in range(values.shape[1])])
    found = np.clip(found, 0.0, None)  # the optimiser ends within rounding of 0
    return found / found.sum()


def _elpd_data(values: np.ndarray) -> Any:
    """What either line of ArviZ compares."""
    import xarray as xr

    pointwise = xr.DataArray(values, dims="unit")
    se = float(np.sqrt(len(values) * values.var()))
    if is_tree():
        from arviz_stats.utils import ELPDData

        return ELPDData(
            elpd=float(values.sum()),
            se=se,
            p=0.0,
            n_samples=1,
            n_data_points=len(values),
            scale="log",
            warning=False,
            good_k=0.7,
            elpd_i=pointwise,
            pareto_k=None,
        )
    from arviz.stats.stats_utils import ELPDData

    index = ["elpd_loo", "se", "p_loo", "n_samples", "n_data_points", "warning", "loo_i", "scale", "good_k"]
    return ELPDData([float(values.sum()), se, 0.0, 1, len(values), False, pointwise, "log", 0.7], index)
