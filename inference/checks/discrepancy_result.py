"""One discrepancy of observed and of replicated annotations: how far each unit is off, and how far replicates are."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from ..fitted.intervals import INTERVAL

LEVEL = 0.05  # of a unit that stands out, adjusted for the number of units


class _Compared(NamedTuple):
    """How the observed annotations compare with the replicates from the same parameters, over all draws of these."""

    totals: np.ndarray  # (D,) of the observed annotations
    replicated_totals: np.ndarray  # (D, M)
    p_units: np.ndarray  # (U,) of each unit alone
    p_adjusted: np.ndarray  # (U,) of each unit among all
    deviations: np.ndarray  # (U,) of the observed annotations, mean over draws


@dataclass(frozen=True, eq=False)
class Found:
    r"""One discrepancy: its units' values :math:`n_u(y)` of the observed annotations, and of M replicates of D draws each.

    Annotations are compared with those that the same parameters give (a realised discrepancy: Gelman, Meng & Stern 1996),

    .. math::
        d_u(y, \theta) = \frac{n_u(y) - m_u(\theta)}{\sqrt{v_u + g}}, \qquad T(y, \theta) = \frac{1}{U} \sum_u d_u^2

    where :math:`m_u(\theta)` is the mean over the draw's replicates and the observed annotations, :math:`v_u` the variance
    within draws, and g the discrepancy's grain. Where the story is right and :math:`\theta` of its posterior, the
    observed annotations are one more replicate of each draw. p-values are averages over the draws, and so conservative: at
    most twice, and as a rule less than, their level (Meng 1994).

    Args:
        title: what is counted.
        axis: what the units' values are, as shares of their size where there is one.
        observed: the units' values, ``(U,)``.
        replicated: the same of each replicate, ``(D, M, U)``.
        units: their names; None for a discrepancy that is one number, large where the annotations are odd: its own total.
        size: the most that each unit can count, ``(U,)``, or None.
        grain: g.
    """

    title: str
    axis: str
    observed: np.ndarray
    replicated: np.ndarray
    units: pd.Index | None = None
    size: np.ndarray | None = None
    grain: float = 0.0

    @property
    def totals(self) -> tuple[np.ndarray, np.ndarray]:
        """T of the observed annotations in each draw, ``(D,)``, and of the replicates, ``(D, M)``."""
        if self.units is None:
            return np.repeat(self.observed, len(self.replicated)), self.replicated[:, :, 0]
        return self._compared.totals, self._compared.replicated_totals

    @property
    def p_value(self) -> float:
        r""":math:`P(T(\tilde y, \theta) \ge T(y, \theta))`: near 0 where the annotations are odder than the story's."""
        observed, replicated = self.totals
        return float(_share(_at_least(replicated, observed[:, None]).sum(), replicated.size))

    @property
    def p_adjusted(self) -> np.ndarray:
        r""":math:`P(\max_{u'} |d_{u'}(\tilde y, \theta)| \ge |d_u(y, \theta)|)` of each unit, ``(U,)``.

        The largest of all units is what each must exceed, however many they are and however they hang together
        (Westfall & Young 1993, max-T).
        """
        return self._compared.p_adjusted

    @property
    def n_flagged(self) -> np.ndarray:
        """Which units do, ``(U,)``."""
        return self.p_adjusted < LEVEL

    def table(self, interval: float = INTERVAL) -> pd.DataFrame:
        """The units, those that stand out the most first: :meth:`.Checks.units`.

        Raises:
            ValueError: there are no units, or `interval` is no share.
        """
        if self.units is None:
            raise ValueError(f"{self.title!r} is one number and has no units; checks.table has it")
        low, high = central(self.replicated, interval)
        columns = {} if self.size is None else {"size": self.size}
        columns |= {"observed": self.observed.astype(float), "replicated": self.replicated.mean((0, 1), dtype=float)}
        columns |= {"low": low, "high": high, "p_value": self._compared.p_units}
        columns |= {"p_adjusted": self.p_adjusted, "stands_out": self.n_flagged}
        order = np.lexsort((-np.abs(self._compared.deviations), self.p_adjusted))
        return pd.DataFrame(columns, index=self.units).iloc[order]

    @cached_property
    def _compared(self) -> _Compared:
        n_draws, n_replicates, n_units = self.replicated.shape
        within = np.stack([draw.var(0, ddof=1, dtype=float) for draw in self.replicated])
        of_all = within.sum(0)
        totals, replicated_totals = np.zeros(n_draws), np.zeros((n_draws, n_replicates))
        as_odd, odder, deviations = np.zeros(n_units), np.zeros(n_units), np.zeros(n_units)
        for d, replicated in enumerate(self.replicated):
            values = np.concatenate([self.observed[None], replicated]).astype(float)
            # The observed annotations are in the draw's own share of the variance as a replicate is, so that neither is
            # favoured.
            variance = (of_all - within[d] + values.var(0, ddof=1)) / n_draws + self.grain
            scaled = (values - values.mean(0)) / np.sqrt(np.where(variance > 0, variance, 1.0))
            off = np.abs(scaled)
            totals[d], *replicated_totals[d] = (scaled**2).mean(-1)
            as_odd += _at_least(off[1:], off[0]).sum(0)
            largest = np.sort(off[1:].max(-1))
            odder += n_replicates - np.searchsorted(largest, off[0] * (1 - 1e-9))
            deviations += scaled[0] / n_draws
        n = n_draws * n_replicates
        return _Compared(totals, replicated_totals, _share(as_odd, n), (odder + 1) / (n + 1), deviations)


def central(replicated: np.ndarray, interval: float) -> np.ndarray:
    """Between which values the share ``interval`` of the replicates ``(D, M, ...)`` lies: ``(2, ...)``.

    Raises:
        ValueError: `interval` is not between 0 and 1.
    """
    if not 0 < interval < 1:
        raise ValueError(f"interval={interval}: a share of the replicates lies between 0 and 1, such as 0.9")
    return np.quantile(replicated, [(1 - interval) / 2, (1 + interval) / 2], axis=(0, 1))


def _at_least(replicated: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """1 where a replicate is larger, 1/2 where it is the same (mid-p)."""
    same = np.isclose(replicated, observed, rtol=1e-9, atol=1e-12)
    return np.where(same, 0.5, replicated > observed)


def _share(count: np.ndarray, n: int) -> np.ndarray:
    """A share of n replicates and of the observed annotations, which are as odd as themselves."""
    return (count + 0.5) / (n + 1)
