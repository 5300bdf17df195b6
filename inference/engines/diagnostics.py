"""Whether draws can be trusted: split R̂, effective sample sizes, divergences, chains that name classes differently."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import xarray as xr
from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
from scipy.optimize import linear_sum_assignment

RHAT_LIMIT = 1.01
ESS_LIMIT = 400


def worst_rhat(parameters: xr.Dataset) -> tuple[float, str]:
    """The largest split R̂ over all parameters, and where it is (Gelman & Rubin 1992)."""
    return _extreme(split_gelman_rubin, parameters, np.nanargmax)


def smallest_ess(parameters: xr.Dataset) -> tuple[float, str]:
    """The smallest effective sample size over all parameters, and where it is (Geyer 1992)."""
    return _extreme(effective_sample_size, parameters, np.nanargmin)


def sampling_warnings(parameters: xr.Dataset, stats: Mapping[str, np.ndarray], max_tree_depth: int) -> tuple[str, ...]:
    """What a user should act on after sampling, a sentence each.

    Args:
        parameters: draws, with the dimensions chain, draw and named others.
        stats: the sampler's statistics by ArviZ's names, ``(chain, draw)``.
        max_tree_depth: the depth at which the sampler was stopped.
    """
    found = []
    if divergent := int(stats["diverging"].sum()):
        found.append(
            f"{divergent} of {stats['diverging'].size} draws diverged: the posterior is biased where they did; "
            "raise target_accept (0.95, 0.99), or give stronger priors"
        )
    rhat, where = worst_rhat(parameters)
    if rhat > RHAT_LIMIT:
        found.append(f"R̂ = {rhat:.3f} for {where}: the chains do not agree; raise warmup and draws")
    ess, where = smallest_ess(parameters)
    if ess < ESS_LIMIT:
        found.append(f"the effective sample size of {where} is {ess:.0f}, under {ESS_LIMIT}; raise draws or chains")
    if deep := int((stats["tree_depth"] >= max_tree_depth).sum()):
        found.append(f"{deep} draws reached the tree depth {max_tree_depth}; raise max_tree_depth for better mixing")
    return tuple(found)


def permuted_chains(posteriors: np.ndarray, classes: Sequence[object]) -> tuple[str, ...]:
    """Chains that call a class by another chain's name, a sentence each.

    Args:
        posteriors: each chain's mean posterior of the labels, ``(chain, N, K)``; compared with the first chain's.
        classes: their names.
    """
    found = []
    for chain in range(1, len(posteriors)):
        overlap = posteriors[0].T @ posteriors[chain]
        _, match = linear_sum_assignment(-overlap)
        moved = [k for k in range(len(match)) if match[k] != k]
        if moved:
            names = ", ".join(f"{classes[k]!r} is {classes[match[k]]!r} there" for k in moved)
            found.append(
                f"chain {chain + 1} is in another permutation of the classes than chain 1 ({names}): do not average "
                "them; give a heavier diagonal, gold labels, or fewer chains"
            )
    return tuple(found)


def _extreme(
    score: Callable[[np.ndarray], np.ndarray], parameters: xr.Dataset, pick: Callable[[np.ndarray], int]
) -> tuple[float, str]:
    """The extreme score over all entries of all parameters, and the entry's name."""
    found = []
    for name, values in parameters.items():
        draws = values.transpose("chain", "draw", ...).to_numpy().astype(float)
        scores = np.atleast_1d(score(draws.reshape(*draws.shape[:2], -1)))
        if np.isfinite(scores).any():
            at = int(pick(scores))
            found.append((float(scores[at]), _entry(str(name), values, np.unravel_index(at, draws.shape[2:]))))
    return found[int(pick(np.array([score for score, _ in found])))] if found else (np.nan, "no parameter")


def _entry(name: str, values: xr.DataArray, index: tuple[np.intp, ...]) -> str:
    dims = values.transpose("chain", "draw", ...).dims[2:]
    names = [f"{dim} {values[dim].to_numpy()[i]}" for dim, i in zip(dims, index, strict=True)]
    return f"{name}[{', '.join(names)}]" if names else name
