"""The results of predictive checks: each discrepancy compared with that of replicated annotations."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd

from ...data.cards import BLUE, ORANGE, bar, card, marked, never_raising, table
from ...data.errors import check_name
from ..fitted.intervals import INTERVAL
from .discrepancy_result import LEVEL, DiscrepancyResult, central

COLUMNS = {"observed": float, "replicated": float, "low": float, "high": float, "p_value": float}
CONFLICT, MISFIT, PASSED = "prior-data conflict", "misfit", "-"


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
