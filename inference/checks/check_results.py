"""What predictive checks found: each discrepancy beside those of replicated annotations, and the units that stand out."""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

import pandas as pd

from ...data import unknown_name
from ..fitted.intervals import INTERVAL
from .discrepancy_result import Found, central

COLUMNS = {"observed": float, "replicated": float, "low": float, "high": float, "p_value": float}


@dataclass(frozen=True, eq=False, repr=False)
class Checks:
    """A story's predictive checks, made by :func:`crowdppl.check` and :func:`crowdppl.prior_check`.

    Args:
        title: which story is checked, and by which replicates.
        found: by discrepancy.
        notes: what a reader should know, a sentence each.
    """

    title: str
    found: Mapping[str, Found]
    notes: tuple[str, ...] = ()

    @property
    def table(self) -> pd.DataFrame:
        """By discrepancy: observed, replicated (mean), low, high (90 % of the replicates), p_value; units, stand_out.

        Where a discrepancy has units, the value is the mean square of their deviations, which is about 1 in replicates,
        or less where units hold few annotations; else the value itself. ``p_value`` is the share of replicates with a
        larger value: near 0 is misfit. ``stand_out`` is how many of the ``units`` do (:meth:`units`).
        """
        rows = {}
        for name, found in self.found.items():
            observed, replicated = found.totals
            low, high = central(replicated, INTERVAL)
            rows[name] = {
                "observed": observed.mean(),
                "replicated": replicated.mean(),
                "low": low,
                "high": high,
                "p_value": found.p_value,
                "units": 0 if found.units is None else len(found.units),
                "stand_out": 0 if found.units is None else int(found.n_flagged.sum()),
            }
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("discrepancy").astype(COLUMNS)

    def units(self, name: str, interval: float = INTERVAL) -> pd.DataFrame:
        """A discrepancy's units, those that stand out the most first.

        Args:
            name: of the discrepancy.
            interval: the share of the replicates that lie from ``low`` to ``high``, between 0 and 1.

        Returns:
            by unit: ``size`` (the most that it can count, where there is such a number), ``observed``, ``replicated``
            (mean), ``low``, ``high``, ``p_value`` (two-sided, of the unit alone), ``p_adjusted`` (for all units that
            are looked at), ``stands_out`` (where that is below 0.05).

        Raises:
            UnknownNameError: nothing of that name was checked.
            ValueError: the discrepancy is one number, or `interval` is no share.
        """
        return self.of(name).table(interval)

    @property
    def worst(self) -> pd.DataFrame:
        """All units that stand out, by discrepancy: ``discrepancy``, ``unit`` and the columns of :meth:`units`."""
        frames = []
        for name, found in self.found.items():
            if found.units is not None:
                table = found.table()
                table = table[table["stands_out"]].drop(columns="stands_out")
                named = pd.Series(list(table.index), dtype=object)
                frames.append(table.reset_index(drop=True).assign(discrepancy=name, unit=named))
        if not frames:
            return pd.DataFrame(columns=["discrepancy", "unit", *COLUMNS, "p_adjusted"])
        frame = pd.concat(frames, ignore_index=True)
        return frame[["discrepancy", "unit", *(c for c in frame if c not in ("discrepancy", "unit"))]]

    def of(self, name: str) -> Found:
        """What was found by one discrepancy.

        Raises:
            UnknownNameError: nothing of that name was checked.
        """
        if name not in self.found:
            raise unknown_name("discrepancy", name, self.found)
        return self.found[name]

    def __str__(self) -> str:
        table = self.table.to_string(float_format="{:.3f}".format)
        return "\n".join([self.title, "", table, *(f"\n{note}" for note in self.notes)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        table = self.table.to_html(float_format="{:.3f}".format)
        return f"<div><p><b>{escape(self.title)}</b></p>{table}{notes}</div>"
