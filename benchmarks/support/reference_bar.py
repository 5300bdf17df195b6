r"""The bar of posteriordb that draws of a known posterior have to meet.

- 10,000 draws, of four chains or more, none of whose transitions diverged;
- :math:`\hat R < 1.01` (Vehtari et al. 2021) of every parameter;
- a correlation of each draw with the next one under 0.05 in absolute value, of every parameter;
- an energy whose fraction of missing information is over 0.2 in every chain (Betancourt 2016);
- effective sample sizes near the number of draws, in the bulk and in the tails.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from crowdppl.inference.checks.posterior_database import scalars
from crowdppl.inference.findings.convergence import convergence

N_DRAWS = 10_000
RHAT_LIMIT = 1.01
LAG_LIMIT = 0.05
EFMI_LIMIT = 0.2
LEAST_ESS = 0.8
"""Share of the draws that each effective size reaches. Of independent draws the estimate has its 0.1 % quantile at 0.84
of them, so that the least of a hundred parameters may well be near it."""
MEAN_ESS = (0.85, 1.15)
"""Bounds of the bulk's effective sizes in the mean over the parameters, as shares of the draws. Independent draws have
0.99, with a standard deviation of 0.03 for a single parameter."""


class Diagnostics(NamedTuple):
    """Diagnostics that the bar compares with its limits, by scalar parameter ``(P,)`` or by chain ``(C,)``."""

    names: list[str]
    rhat: np.ndarray
    bulk_ess: np.ndarray
    tail_ess: np.ndarray
    lag: np.ndarray  # correlation of a draw with the next one of its chain
    efmi: np.ndarray  # by chain
    divergent: np.ndarray  # by chain
    n_draws: int
    n_chains: int


def diagnose(draws: Mapping[str, np.ndarray], energy: np.ndarray, diverging: np.ndarray) -> Diagnostics:
    """Return the diagnostics of draws.

    Args:
        draws: by site, ``(chain, draw, ...)``.
        energy: of every draw of the sampler, kept or not, ``(chain, all draws)``.
        diverging: whether its transition diverged, in the same shape.
    """
    names = [name for site, values in draws.items() for name, _ in scalars(site, values.shape[2:])]
    flat = [np.asarray(values, float).reshape(*values.shape[:2], -1) for values in draws.values()]
    values = np.moveaxis(np.concatenate(flat, -1), -1, 0)  # (parameter, chain, draw)
    found = convergence(values)
    apart = values - values.mean((1, 2), keepdims=True)
    lag = (apart[..., 1:] * apart[..., :-1]).mean((1, 2)) / apart.var((1, 2))
    efmi = np.square(np.diff(energy, axis=1)).mean(1) / energy.var(1)
    n_chains, n_draws = values.shape[1:]
    return Diagnostics(names, *found, lag, efmi, diverging.sum(1), n_chains * n_draws, n_chains)


def shortcomings(found: Diagnostics) -> list[str]:
    """Return what keeps draws from being a reference, a sentence each; empty where they meet the bar."""
    said = []
    if found.n_draws < N_DRAWS or found.n_chains < 4:
        said.append(f"{found.n_draws:,} draws of {found.n_chains} chains; {N_DRAWS:,} of 4 are needed")
    if divergent := int(found.divergent.sum()):
        said.append(f"{divergent:,} transitions diverged")
    if not (found.rhat < RHAT_LIMIT).all():
        said.append(f"R̂ is {_worst(found, found.rhat)}; under {RHAT_LIMIT} is needed")
    if not (np.abs(found.lag) < LAG_LIMIT).all():
        said.append(
            f"the lag-1 autocorrelation is {_worst(found, found.lag, np.abs(found.lag))}; {LAG_LIMIT} is needed"
        )
    if not (found.efmi > EFMI_LIMIT).all():
        said.append(f"E-FMI is {found.efmi.min():.3f} in a chain; over {EFMI_LIMIT} is needed")
    for part, sizes in (("bulk", found.bulk_ess), ("tails", found.tail_ess)):
        if not (sizes >= LEAST_ESS * found.n_draws).all():
            worst = found.names[int(np.argmin(np.nan_to_num(sizes)))]
            said.append(f"the effective size of the {part} of {worst} is {np.nan_to_num(sizes).min():,.0f}")
    if not MEAN_ESS[0] <= (mean := found.bulk_ess.mean() / found.n_draws) <= MEAN_ESS[1]:
        said.append(f"the effective size of the bulk is {mean:.2f} of the draws in the mean over the parameters")
    return said


def _worst(found: Diagnostics, values: np.ndarray, by: np.ndarray | None = None) -> str:
    at = int(np.argmax(np.nan_to_num(values if by is None else by, nan=np.inf)))
    return f"{values[at]:.3f} of {found.names[at]}"
