"""The results of predictive checks: each discrepancy compared with that of replicated annotations."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from ...data.cards import BLUE, ORANGE, bar, card, marked, never_raising, table
from ...data.errors import check_name
from ..fitted.intervals import INTERVAL, checked_tail

LEVEL = 0.05  # adjusted p-value below which a unit is flagged
COLUMNS = {"observed": float, "replicated": float, "low": float, "high": float, "p_value": float}
CONFLICT, MISFIT, PASSED = "prior-data conflict", "misfit", "-"


class _Comparison(NamedTuple):
    """The observed annotations compared with replicates from the same parameters, over all draws of these."""

    totals: np.ndarray  # (D,) of the observed annotations
    replicated_totals: np.ndarray  # (D, M)
    p_units: np.ndarray  # (U,) of each unit by itself
    p_adjusted: np.ndarray  # (U,) corrected for the number of units
    deviations: np.ndarray  # (U,) of the observed annotations, mean over draws


@dataclass(frozen=True, eq=False)
class DiscrepancyResult:
    r"""A discrepancy's values :math:`n_u(y)` by unit: of the observed annotations, and of M replicates of D draws each.

    The units are what the discrepancy counts by, such as workers or pairs of workers. The observed annotations are
    compared with replicates from the same parameters (a realised discrepancy: Gelman, Meng & Stern 1996),

    .. math::
        d_u(y, \theta) = \frac{n_u(y) - m_u(\theta)}{\sqrt{v_u + g}}, \qquad T(y, \theta) = \frac{1}{U} \sum_u d_u^2

    where :math:`m_u(\theta)` is the mean over the draw's replicates and the observed annotations, :math:`v_u` the
    variance within draws, and g the discrepancy's added variance. Where the story is right and :math:`\theta` is drawn
    from its posterior, the observed annotations are one more replicate of each draw. p-values are averages over the
    draws, and so conservative: a right story is rejected at most twice as often as the level says, and as a rule less
    often than it says (Meng 1994).

    Args:
        title: what is counted, as plots say it.
        axis: what the units' values are, as shares of their size where there is one.
        observed: the units' values, ``(U,)``.
        replicated: the units' values of each replicate, ``(D, M, U)``.
        units: names of the units; None for a discrepancy that is one number, large where the annotations are unusual,
            which is then T itself.
        size: the largest possible count of each unit, ``(U,)``, or None.
        added_variance: g.
    """

    title: str
    axis: str
    observed: np.ndarray
    replicated: np.ndarray
    units: pd.Index | None = None
    size: np.ndarray | None = None
    added_variance: float = 0.0

    @property
    def totals(self) -> tuple[np.ndarray, np.ndarray]:
        """T of the observed annotations in each draw, ``(D,)``, and of the replicates, ``(D, M)``."""
        if self.units is None:
            return np.repeat(self.observed, len(self.replicated)), self.replicated[:, :, 0]
        return self._comparison.totals, self._comparison.replicated_totals

    @property
    def p_value(self) -> float:
        r""":math:`P(T(\tilde y, \theta) \ge T(y, \theta))`: near 0 where observed values deviate more."""
        observed, replicated = self.totals
        return float(_share(_at_least(replicated, observed[:, None]).sum(), replicated.size))

    @property
    def p_adjusted(self) -> np.ndarray:
        r""":math:`P(\max_{u'} |d_{u'}(\tilde y, \theta)| \ge |d_u(y, \theta)|)` of each unit, ``(U,)``.

        Each unit is compared with the largest deviation of all units in a replicate, so that the probability of
        flagging any unit of a right story is at most the level, whatever their number and correlation (max-T of
        Westfall & Young 1993).
        """
        return self._comparison.p_adjusted

    @property
    def flagged(self) -> np.ndarray:
        """A mask of flagged units: their p-value is below 0.05 after correction for the number of units, ``(U,)``."""
        return self.p_adjusted < LEVEL

    @property
    def n_flagged(self) -> int:
        """Number of flagged units; 0 where the discrepancy is one number."""
        return 0 if self.units is None else int(self.flagged.sum())

    def table(self, interval: float = INTERVAL) -> pd.DataFrame:
        """The units, those that deviate most first, in the columns of :meth:`.Checks.units`.

        Raises:
            ValueError: there are no units, or `interval` is not between 0 and 1.
        """
        if self.units is None:
            raise ValueError(f"{self.title!r} is one number and has no units; checks.table has it")
        low, high = central(self.replicated, interval)
        columns = {} if self.size is None else {"size": self.size}
        columns |= {"observed": self.observed.astype(float), "replicated": self.replicated.mean((0, 1), dtype=float)}
        columns |= {"low": low, "high": high, "p_value": self._comparison.p_units}
        columns |= {"p_adjusted": self.p_adjusted, "flagged": self.flagged}
        order = np.lexsort((-np.abs(self._comparison.deviations), self.p_adjusted))
        return pd.DataFrame(columns, index=self.units).iloc[order]

    @cached_property
    def _comparison(self) -> _Comparison:
        """Totals, p-values and mean deviations, in one pass over the draws."""
        n_draws, n_replicates, n_units = self.replicated.shape
        within = np.stack([draw.var(0, ddof=1, dtype=float) for draw in self.replicated])
        of_all = within.sum(0)
        totals, replicated_totals = np.zeros(n_draws), np.zeros((n_draws, n_replicates))
        as_far, farther, deviations = np.zeros(n_units), np.zeros(n_units), np.zeros(n_units)
        for d, replicated in enumerate(self.replicated):
            values = np.concatenate([self.observed[None], replicated]).astype(float)
            # The observed annotations enter the draw's variance as a replicate does, so that they are exchangeable.
            variance = (of_all - within[d] + values.var(0, ddof=1)) / n_draws + self.added_variance
            scaled = (values - values.mean(0)) / np.sqrt(np.where(variance > 0, variance, 1.0))
            off = np.abs(scaled)
            totals[d], *replicated_totals[d] = (scaled**2).mean(-1)
            as_far += _at_least(off[1:], off[0]).sum(0)
            largest = np.sort(off[1:].max(-1))
            farther += n_replicates - np.searchsorted(largest, off[0] * (1 - 1e-9))
            deviations += scaled[0] / n_draws
        n = n_draws * n_replicates
        return _Comparison(totals, replicated_totals, _share(as_far, n), (farther + 1) / (n + 1), deviations)


def central(replicated: np.ndarray, interval: float) -> np.ndarray:
    """The two values between which the share ``interval`` of the replicates ``(D, M, ...)`` lies: ``(2, ...)``.

    Raises:
        ValueError: `interval` is not between 0 and 1.
    """
    tail = checked_tail(interval)
    return np.quantile(replicated, [tail, 1 - tail], axis=(0, 1))


def _at_least(replicated: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """1 where a replicate is larger, 1/2 where it is equal (mid-p), else 0."""
    same = np.isclose(replicated, observed, rtol=1e-9, atol=1e-12)
    return np.where(same, 0.5, replicated > observed)


def _share(count: np.ndarray, n: int) -> np.ndarray:
    """The share among n replicates and the observed annotations, which count by half as a tie with themselves."""
    return (count + 0.5) / (n + 1)


@dataclass(frozen=True, eq=False, repr=False)
class Checks:
    """A story's predictive checks, made by :func:`crowdppl.check` and :func:`crowdppl.prior_check`.

    Args:
        title: which story is checked, and with how many replicates.
        results: by name of the discrepancy.
        notes: what a reader should know, a sentence each.
        p_weaker: by name the p-value of the story with a weaker prior, where it was asked for.
    """

    title: str
    results: Mapping[str, DiscrepancyResult]
    notes: tuple[str, ...] = ()
    p_weaker: Mapping[str, float] = field(default_factory=dict)

    @property
    def table(self) -> pd.DataFrame:
        """By discrepancy: observed, replicated (mean), low, high (90 % of the replicates), p_value, units, n_flagged.

        Where a discrepancy has units (such as workers, or pairs of workers), the values are the mean square of the
        units' standardised deviations: about 1 in replicates, or less where units hold few annotations. Else they are
        the discrepancy itself. ``p_value`` is the share of the replicates with a larger value: near 0 is misfit.
        ``n_flagged`` is how many of the ``units`` are flagged, after correction for their number (:meth:`units`).
        Where a weaker prior was asked for, ``p_weaker`` is the p-value under it, and ``cause`` says of a p-value below
        0.05 "prior-data conflict" where the weaker prior passes, and "misfit" where it fails too; else "-".
        """
        rows = {}
        for name, result in self.results.items():
            observed, replicated = result.totals
            low, high = central(replicated, INTERVAL)
            rows[name] = {
                "observed": observed.mean(),
                "replicated": replicated.mean(),
                "low": low,
                "high": high,
                "p_value": result.p_value,
                "units": 0 if result.units is None else len(result.units),
                "n_flagged": result.n_flagged,
            }
        frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("discrepancy").astype(COLUMNS)
        if not self.p_weaker:
            return frame
        return frame.assign(p_weaker=pd.Series(self.p_weaker), cause=pd.Series(self.causes))

    @property
    def causes(self) -> dict[str, str]:
        """Why each check fails that was repeated under a weaker prior; "-" for one that passes."""
        return {name: self._cause(name) for name in self.p_weaker}

    def _cause(self, name: str) -> str:
        if self.results[name].p_value >= LEVEL:
            return PASSED
        return CONFLICT if self.p_weaker[name] >= LEVEL else MISFIT

    def units(self, name: str, interval: float = INTERVAL) -> pd.DataFrame:
        """The units of one discrepancy, such as the workers or the pairs of workers; those that deviate most first.

        Args:
            name: of the discrepancy.
            interval: the share of the replicates that lie from ``low`` to ``high``, between 0 and 1.

        Returns:
            By unit: ``size`` (the largest possible count, where there is one), ``observed``, ``replicated`` (mean),
            ``low``, ``high``, ``p_value`` (two-sided, of the unit by itself), ``p_adjusted`` (corrected for the number
            of units), ``flagged`` (whether ``p_adjusted`` is below 0.05).

        Raises:
            UnknownNameError: no discrepancy of that name was checked.
            ValueError: the discrepancy is one number, or `interval` is not between 0 and 1.
        """
        return self.result(name).table(interval)

    @property
    def flagged(self) -> pd.DataFrame:
        """All flagged units of all discrepancies: ``discrepancy``, ``unit`` and the columns of :meth:`units`."""
        frames = []
        for name, result in self.results.items():
            if result.units is not None:
                table = result.table()
                table = table[table["flagged"]].drop(columns="flagged")
                units = pd.Series(list(table.index), dtype=object)
                frames.append(table.reset_index(drop=True).assign(discrepancy=name, unit=units))
        if not frames:
            return pd.DataFrame(columns=["discrepancy", "unit", *COLUMNS, "p_adjusted"])
        frame = pd.concat(frames, ignore_index=True)
        return frame[["discrepancy", "unit", *(c for c in frame if c not in ("discrepancy", "unit"))]]

    def result(self, name: str) -> DiscrepancyResult:
        """One discrepancy of the observed annotations and of all replicates.

        Raises:
            UnknownNameError: no discrepancy of that name was checked.
        """
        return self.results[check_name("discrepancy", name, self.results)]

    def __str__(self) -> str:
        table = self.table.to_string(float_format="{:.3f}".format)
        return "\n".join([self.title, "", table, *(f"\n{note}" for note in self.notes)])

    __repr__ = __str__

    @never_raising
    def _repr_html_(self) -> str:
        failed = [name for name, result in self.results.items() if result.p_value < LEVEL]
        said = f"{len(failed)} of {len(self.results)} fail (p < {LEVEL})" if failed else "all pass"
        heads = ["discrepancy", "p-value", "flagged after correction", "observed, within replicates"]
        rows = ([name, *_cells(result)] for name, result in self.results.items())
        then = ("checks.table", "checks.units(name)", "cp.plot_check(checks, name)")
        return card(self.title, said, table("", heads, rows), warnings=self.notes, then=then)


def _cells(result: DiscrepancyResult) -> list[object]:
    """The p-value, the flagged units, and where the observed value lies in the replicates."""
    p = result.p_value
    flagged = f"{result.n_flagged:,} of {len(result.units):,}" if result.units is not None else "–"
    observed, replicated = result.totals
    return [
        bar(p, f"{p:.3f}", ORANGE if p < LEVEL else BLUE, width=48),
        flagged,
        marked(replicated.ravel(), observed.mean()),
    ]
