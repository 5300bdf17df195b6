"""Intervals: of draws, of proportions and of medians; ``interval`` is the mass of one, between 0 and 1."""

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from scipy import special

from ...data.errors import real_number

INTERVAL = 0.9  # the mass of every interval, unless another is asked for
FINEST = 2**40  # steps between 0 and 1 in which a share is looked for
MOST_COUNTED = 10_000  # units whose numbers are gone through one by one


def checked_tail(interval: float) -> float:
    """The mass on either side of an equal-tailed interval.

    Raises:
        ValueError: the interval's mass is not between 0 and 1.
    """
    return (1 - real_number("interval", interval, above=0, below=1)) / 2


def of_draws(draws: np.ndarray, interval: float, holding: np.ndarray | float | None = None) -> np.ndarray:
    """Equal-tailed quantiles over the first two dimensions, chain and draw: ``(2, ...)``.

    The quantile p is at p (n + 1) among n draws in order, between which the mass asked for lies on average, also of few
    draws (Weibull 1939; Hyndman & Fan 1996, definition 6). At p (n − 1) + 1 it would be .83 of 25 draws, not .9.

    Args:
        draws: ``(chain, draw, ...)``.
        holding: values that the intervals are widened to hold, ``(...)``; None for quantiles alone.
    """
    tail = checked_tail(interval)
    low, high = ends = np.quantile(draws, [tail, 1 - tail], axis=(0, 1), method="weibull")
    return ends if holding is None else np.stack([np.minimum(low, holding), np.maximum(high, holding)])


def known_quantiles(values: np.ndarray, shares: Sequence[float]) -> np.ndarray:
    """Quantiles of the numbers along the first dimension, at the places of :func:`of_draws`, of all columns at once.

    Args:
        values: ``(n, ...)``, some NaN.
        shares: which, ``(Q,)``, from 0 to 1.

    Returns:
        ``(Q, ...)``; NaN where there is no number.
    """
    ordered = np.sort(values, axis=0)  # NaN comes last
    last = np.maximum(len(values) - 1 - np.isnan(values).sum(0), 0)
    found = []
    for share in shares:
        place = np.clip(share * (last + 2) - 1, 0, last)
        below = np.floor(place).astype(int)
        low, high = (np.take_along_axis(ordered, at[None], 0)[0] for at in (below, np.minimum(below + 1, last)))
        found.append(low + (place - below) * (high - low))
    return np.stack(found)


def jeffreys(right: np.ndarray, total: np.ndarray, interval: float) -> tuple[np.ndarray, np.ndarray]:
    r"""Jeffreys' interval of a proportion: quantiles of :math:`\text{Beta}(r + \frac12, n - r + \frac12)`.

    Where all or none are right the interval reaches 1 or 0 (Brown, Cai & DasGupta 2001); where nothing was counted
    it is NaN.

    Args:
        right: how many were right.
        total: of how many.
    """
    right, total, tail = np.asarray(right, float), np.asarray(total, float), checked_tail(interval)
    low = np.where(right > 0, special.betaincinv(right + 0.5, total - right + 0.5, tail), 0.0)
    high = np.where(right < total, special.betaincinv(right + 0.5, total - right + 0.5, 1 - tail), 1.0)
    return np.where(total > 0, low, np.nan), np.where(total > 0, high, np.nan)


def wilson(share: float, n: float, interval: float) -> tuple[float, float]:
    r"""Wilson's score interval of a proportion of which a sample of n has the share :math:`\hat p`.

    .. math::
        \frac{\hat p + \frac{c^2}{2 n} \pm c \sqrt{\frac{\hat p (1 - \hat p)}{n} + \frac{c^2}{4 n^2}}}{1 +
        \frac{c^2}{n}}

    with :math:`c` the normal quantile (Wilson 1927).

    Args:
        share: from 0 to 1.
        n: above 0; a fraction where it is an effective size, infinity for one that leaves no doubt.
    """
    c = quantile(interval)
    centre, scale = share + c**2 / (2 * n), 1 + c**2 / n
    half = c * np.sqrt(share * (1 - share) / n + c**2 / (4 * n**2))
    return max(float((centre - half) / scale), 0.0), min(float((centre + half) / scale), 1.0)


def of_count(share: float, n: float, others: int, interval: float) -> tuple[float, float]:
    r"""An interval of the share of M further units that have a property, of which n drawn beside them have a share.

    With :math:`r = n \hat p` the exact one-sided bounds for finitely many units are quantiles of two distributions of
    the number among the M, which exist for fractions too (Thatcher 1964); the interval has the quantiles of their mean,
    as mid-P takes the mean of both tails (Lancaster 1961; Berry & Armitage 1995):

    .. math::
        \tfrac12 \text{BetaBinomial}(M; r, n - r + 1) + \tfrac12 \text{BetaBinomial}(M; r + 1, n - r)

    Of more than ten thousand units each is replaced by the Beta of the same mean and variance.

    Args:
        share: from 0 to 1.
        n: above 0; a fraction where it is an effective size.
        others: M, from 1.
    """
    tail, r = checked_tail(interval), n * share
    parts = [(r, n - r + 1), (r + 1, n - r)]
    if others <= MOST_COUNTED:
        below = np.mean([_beta_binomial(others, max(a, 0.0), max(b, 0.0)) for a, b in parts], axis=0)
        first, last = np.searchsorted(below, tail + 1e-12, "right"), np.searchsorted(below, 1 - tail - 1e-12)
        return int(first) / others, min(int(last), others) / others

    def below_share(number: int) -> float:
        x = number / FINEST
        return float(np.mean([_beta_of_many(x, others, max(a, 0.0), max(b, 0.0)) for a, b in parts]))

    low = bisect_left(range(FINEST), tail, key=below_share) / FINEST if r > 0 else 0.0
    return low, bisect_left(range(FINEST), 1 - tail, key=below_share) / FINEST if r < n else 1.0


def _beta_binomial(m: int, a: float, b: float) -> np.ndarray:
    """Distribution function of a BetaBinomial at 0 … m, ``(m + 1,)``; all at one end where `a` or `b` is 0."""
    if min(a, b) == 0:
        return np.where(np.arange(m + 1) >= (0 if a == 0 else m), 1.0, 0.0)
    u = np.arange(m + 1)
    ways = -np.log(m + 1) - special.betaln(u + 1, m - u + 1)
    found: np.ndarray = np.exp(ways + special.betaln(u + a, m - u + b) - special.betaln(a, b)).cumsum()
    return found


def _beta_of_many(x: float, m: int, a: float, b: float) -> float:
    """Distribution function at x of the Beta with the mean and variance of a BetaBinomial's share of m."""
    if min(a, b) == 0:
        return float(x >= (0 if a == 0 else 1))
    size = m * (a + b + 1) / (a + b + m) - 1
    return float(special.betainc(size * a / (a + b), size * b / (a + b), x))


def quantile(interval: float) -> float:
    """The standard normal quantile that leaves half of what an interval leaves out above it: 1.645 for 0.9."""
    return float(special.ndtri(1 - checked_tail(interval)))


def of_median(values: np.ndarray, interval: float) -> tuple[float, float]:
    r"""An interval of the median between two order statistics, whatever the distribution is.

    :math:`(x_{(r)}, x_{(n + 1 - r)})` with the largest :math:`r` such that
    :math:`P(\text{Binomial}(n, \frac12) < r)` is at most the tail (David & Nagaraja 2003, section 7.1); it holds the
    median with at least the mass asked for. Too few values, 4 or less at 90 %, have none: NaN.

    Args:
        values: ``(n,)``.
    """
    tail, n = checked_tail(interval), len(values)
    rank = int((special.bdtr(np.arange((n + 1) // 2), n, 0.5) <= tail).sum())
    if not rank:
        return np.nan, np.nan
    ordered = np.sort(values)
    return float(ordered[rank - 1]), float(ordered[n - rank])
