r"""Rank-normalised split :math:`\hat R` and effective sample sizes (Vehtari et al. 2021).

The numbers are those of ArviZ's ``rhat(method="rank")``, ``ess(method="bulk")`` and ``ess(method="tail")``. ArviZ takes
one entry of a parameter after the other, some milliseconds each; these functions take all entries at once. Draws are
``(entry, chain, draw)`` throughout.

Vehtari, Gelman, Simpson, Carpenter & Bürkner: Rank-normalization, folding, and localization: an improved
:math:`\hat R` for assessing convergence of MCMC. Bayesian Analysis 16(2), 2021.
"""

from typing import NamedTuple

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri

FEWEST = 4  # draws of a chain with which there is anything to compute
TAILS = (0.05, 0.95)  # quantiles whose effective sample size is that of the tails


class Convergence(NamedTuple):
    """Measures of trust in draws, by entry ``(entry,)``."""

    rhat: np.ndarray
    bulk_ess: np.ndarray
    tail_ess: np.ndarray


def convergence(draws: np.ndarray) -> Convergence:
    r"""Return :math:`\hat R` and the effective sample sizes of draws ``(entry, chain, draw)``.

    :math:`\hat R` is the larger one of the location's and the spread's; a single chain's halves are compared. It is
    infinite where each half of a chain stays at a point of its own, and NaN where all draws are equal. The effective
    sample sizes are the numbers of independent draws that would estimate the location, and both the 5 % and the 95 %
    quantile, as well. With fewer than four draws a chain all is NaN.
    """
    if draws.shape[-1] < FEWEST:
        return Convergence(*(np.full(len(draws), np.nan) for _ in Convergence._fields))
    split = _split(draws)
    scores = _normal_scores(split)
    folded = np.abs(split - np.median(split, axis=(1, 2), keepdims=True))
    rhat = np.fmax(_rhat(scores), _rhat(_normal_scores(folded)))
    return Convergence(rhat, _ess(scores), _tail_ess(draws))


def _tail_ess(draws: np.ndarray) -> np.ndarray:
    """Return the smaller one of the effective sample sizes of the 5 % and the 95 % quantile."""
    quantiles = np.quantile(draws, TAILS, axis=(1, 2), keepdims=True)
    low, high = (_ess(_split((draws <= quantile).astype(float))) for quantile in quantiles)
    return np.minimum(low, high)


def _split(draws: np.ndarray) -> np.ndarray:
    """Return each chain's halves as chains."""
    half = draws.shape[-1] // 2
    return np.concatenate([draws[..., :half], draws[..., -half:]], 1)


def _normal_scores(draws: np.ndarray) -> np.ndarray:
    """Return the standard normal quantiles of the draws' ranks among all of their entry (Blom 1958)."""
    flat = draws.reshape(len(draws), -1)
    size = flat.shape[-1]
    quantiles = ndtri((np.arange(2, 2 * size + 1) / 2 - 3 / 8) / (size + 1 / 4))  # of ranks 1, 1.5, 2, ..., size
    order = np.argsort(flat, axis=-1)
    ordered = np.take_along_axis(flat, order, -1)
    twice = np.broadcast_to(np.arange(0, 2 * size, 2), flat.shape)  # twice the rank, less 2
    differs = ordered[:, 1:] != ordered[:, :-1]
    if not differs.all():
        twice = _tied(differs)
    scores = np.empty_like(flat)
    np.put_along_axis(scores, order, quantiles[twice], -1)
    return scores.reshape(draws.shape)


def _tied(differs: np.ndarray) -> np.ndarray:
    """Return the sum of the first and the last position among the equal values of each position, ``(entry, size)``.

    Args:
        differs: whether each ordered value differs from the one before it, ``(entry, size - 1)``.
    """
    n_entries, size = len(differs), differs.shape[-1] + 1
    position, ends = np.arange(size), np.ones((n_entries, 1), bool)
    first = np.where(np.concatenate([ends, differs], 1), position, 0)
    last = np.where(np.concatenate([differs, ends], 1), position, size)
    return np.maximum.accumulate(first, -1) + np.minimum.accumulate(last[:, ::-1], -1)[:, ::-1]


def _rhat(draws: np.ndarray) -> np.ndarray:
    r"""Return :math:`\sqrt{(B / W + n - 1) / n}`, of the variances between and within chains (Gelman & Rubin 1992)."""
    n = draws.shape[-1]
    between = n * draws.mean(-1).var(-1, ddof=1)
    within = draws.var(-1, ddof=1).mean(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt((between / within + n - 1) / n)


def _ess(draws: np.ndarray) -> np.ndarray:
    """Return the number of draws over their autocorrelation time, cut by Geyer's (1992) initial monotone sequence."""
    n_entries, n_chains, n = draws.shape
    covariance = _autocovariance(draws)
    mean_variance = covariance[:, :1] * n / (n - 1)
    variance = covariance[:, :1] + (draws.mean(-1).var(-1, ddof=1)[:, None] if n_chains > 1 else 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = 1 - (mean_variance - covariance) / variance
    correlation[:, 0] = 1.0
    pairs = correlation[:, : n // 2 * 2].reshape(n_entries, -1, 2).sum(-1)[:, : max((n - 3) // 2 + 1, 1)]
    goes_on = np.logical_and.accumulate(pairs > 0, axis=-1)  # the pair, and all before it, are positive
    n_pairs = np.minimum(goes_on.sum(-1), pairs.shape[-1] - 1)  # those that count whole
    counted = np.arange(pairs.shape[-1]) < n_pairs[:, None]
    total = np.where(counted, np.minimum.accumulate(pairs, axis=-1), 0.0).sum(-1)
    at = np.arange(n_entries)
    even, last = correlation[at, 2 * n_pairs], pairs[at, n_pairs]
    time = -1 + 2 * total + np.where((even > 0) | (last >= 0), even, 0.0)
    size = n_chains * n
    ess = size / np.maximum(time, 1 / np.log10(size))
    return np.where(np.ptp(draws, axis=(1, 2)) < np.finfo(float).resolution, size, ess)


def _autocovariance(draws: np.ndarray) -> np.ndarray:
    """Return the autocovariances, averaged over the chains, ``(entry, lag)``."""
    n = draws.shape[-1]
    spectrum = rfft(draws - draws.mean(-1, keepdims=True), next_fast_len(2 * n, real=True), axis=-1)
    power = (spectrum.real**2 + spectrum.imag**2).mean(1)
    return irfft(power, next_fast_len(2 * n, real=True), axis=-1)[:, :n] / n
