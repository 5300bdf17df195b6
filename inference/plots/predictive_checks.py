"""Plots of predictive checks: observed annotations beside those that the fitted story replicates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..checks.check_results import LEVEL, Checks, DiscrepancyResult
from ..fitted.intervals import INTERVAL
from . import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROWS = 12  # units up to which each has a row with its name
DOTS = 400  # units up to which each has a dot with its interval; more are drawn by density
SEPARATE = 100  # units up to which their intervals are drawn as wide lines
NAMED = 8  # flagged units that are named, at the most


def plot_checks(checks: Checks, *, interval: float = INTERVAL, axes: Any = None, ax: Any = None) -> np.ndarray:
    """Draw each discrepancy of a predictive check in a panel of its own: :func:`plot_check`.

    Args:
        checks: what :func:`crowdppl.check` or :func:`crowdppl.prior_check` returns.
        interval: share of the replicates that the intervals hold, between 0 and 1.
        axes: axes to draw in, one for each discrepancy; by default a new figure.
        ax: the same where one is drawn.

    Returns:
        The axes drawn in, shape (number of discrepancies,).

    Raises:
        TypeError: it is something else.
        ValueError: there are fewer axes than discrepancies, or `interval` is not between 0 and 1.
    """
    style.check_kind(checks, Checks, "cp.check(fit) or cp.prior_check(…)")
    names = list(checks.results)
    drawn = style.given_axes(axes, ax, len(names), f"{len(names)} discrepancies")
    if drawn is None:
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        drawn = style.new_grid(len(names), 2, (5.2, 4.0), (0, 0.4), ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1))
        style.figure_title(drawn[0].figure, checks.title)
    for panel, name in zip(drawn, names, strict=True):
        plot_check(checks, name, interval=interval, ax=panel)
    return drawn


def plot_check(checks: Checks, name: str, *, interval: float = INTERVAL, ax: Axes | None = None) -> Axes:
    """Draw one discrepancy: each unit's observed value over the interval of its replicates, flagged units in orange.

    A unit is flagged where its p-value, adjusted for the number of units, is below 0.05. Up to 12 units have a row
    each; of more, observed values are drawn over replicated ones, as a density where there are more than 400. A
    discrepancy without units is drawn as a histogram of the replicates with the observed value. Units whose size is
    known are drawn as shares of it.

    Args:
        checks: what :func:`crowdppl.check` or :func:`crowdppl.prior_check` returns.
        name: of the discrepancy.
        interval: share of the replicates that the intervals hold, between 0 and 1.
        ax: axes to draw in; by default a new figure.

    Raises:
        UnknownNameError: no discrepancy has that name.
        ValueError: `interval` is not between 0 and 1.
    """
    found = checks.result(name)
    if found.units is None:
        return _histogram(style.new_axes(ax, 5.6, 3.6), found)
    table = found.table(interval)
    ax = style.new_axes(ax, 5.6, 4.0)
    table["flagged"] = table["p_adjusted"] < LEVEL
    _head(ax, found, _flagged(found, int(table["flagged"].sum())))
    if found.size is not None:
        values = ["observed", "replicated", "low", "high"]
        table[values] = table[values].div(table["size"], axis=0)
    if len(table) <= ROWS:
        _rows(ax, found, table, interval)
    else:
        _against(ax, found, table, interval)
    return ax


def _head(ax: Axes, found: DiscrepancyResult, more: str) -> None:
    """Write what is checked, its p-value, and `more`."""
    p = found.p_value
    shown = "p < 0.01" if p < 0.005 else "p > 0.99" if p > 0.995 else f"p = {p:.2f}"
    style.title(ax, f"{style.short(found.title, 60)}\n{shown}, {more}", 10)


def _flagged(found: DiscrepancyResult, n_flagged: int) -> str:
    """Return the number of flagged units, and the number of units in the correction, in words."""
    assert found.units is not None
    return f"{n_flagged:,} flagged after correction for {len(found.units):,} {_plural(found)}"


def _plural(found: DiscrepancyResult) -> str:
    """Return the plural name of a discrepancy's units: workers, pairs, or "units" where the index has no name."""
    names = [] if found.units is None else [str(name) for name in found.units.names if name is not None]
    if len(names) == 2:
        return "pairs" if names[1] == "other" else f"{names[0]}–{names[1]} pairs"
    return f"{names[0]}{'es' if names[0].endswith('s') else 's'}" if names else "units"


def _histogram(ax: Axes, found: DiscrepancyResult) -> Axes:
    """Draw the replicates of one number, and the observed one."""
    replicated = found.replicated.ravel()
    ax.hist(replicated, bins="auto" if np.ptp(replicated) > 0 else 1, color=style.faint(), label="replicated")
    ax.axvline(found.observed[0], color=style.ACCENT, linewidth=2, label="observed")
    ax.set_xlabel(found.axis)
    ax.set_ylabel("replicates")
    style.whole_numbers(ax.yaxis)
    style.clean(ax)
    style.legend(ax)
    _head(ax, found, f"observed {found.observed[0]:,.4g}")
    return ax


def _rows(ax: Axes, found: DiscrepancyResult, table: pd.DataFrame, interval: float) -> None:
    """Draw a row for each unit, in the order of the units from below."""
    assert found.units is not None
    ordered = table.iloc[np.argsort(found.units.get_indexer_for(table.index), kind="stable")]
    at, flagged = np.arange(len(ordered)), ordered["flagged"].to_numpy()
    ax.hlines(at, ordered["low"], ordered["high"], color=style.faint(), linewidth=9, label=_interval_label(interval))
    for which, colour, marker, label in _kinds():
        shown = flagged == which
        if shown.any():
            dots = ax.scatter(ordered["observed"][shown], at[shown], s=22, color=colour, marker=marker, zorder=4)
            dots.set_label(label)
    style.name_rows(ax, ordered.index, 22, style.SMALL)
    ax.set_ylim(-0.7, len(ordered) - 0.3)
    ax.set_xlabel(found.axis)
    ax.set_ylabel(" · ".join(str(name) for name in found.units.names if name is not None))
    _as_shares(found, ax.xaxis)
    _key(ax)


def _against(ax: Axes, found: DiscrepancyResult, table: pd.DataFrame, interval: float) -> None:
    """Draw observed values over replicated ones, larger where a unit holds more, with the line where both are equal."""
    x, y, flagged = table["replicated"].to_numpy(), table["observed"].to_numpy(), table["flagged"].to_numpy()
    weight = np.ones(len(table)) if found.size is None else table["size"].to_numpy(dtype=float)
    drawn = flagged if len(x) > DOTS else np.ones(len(x), dtype=bool)
    ends = table.loc[drawn, ["low", "high"]].to_numpy().ravel()
    seen = np.concatenate([x, y, ends])  # both axes hold the intervals whole
    low, high = seen.min(), seen.max()
    room = 0.05 * (high - low or 1)
    if len(x) > DOTS:
        cells: dict[str, Any] = {"gridsize": 45, "cmap": style.density_colours(), "bins": "log", "linewidths": 0.1}
        ax.hexbin(x, y, weight, reduce_C_function=np.sum, **cells)
        what = _plural(found) if found.size is None else "annotations"
        ax.plot([], [], "h", color=style.strong(), label=f"observed; darker: more {what} {style.LOGARITHMIC}")
    ax.axline((low, low), slope=1, color="0.4", linewidth=0.8, zorder=2)
    width = 1.4 if drawn.sum() <= SEPARATE else 0.7
    ax.vlines(
        x[drawn], table["low"][drawn], table["high"][drawn], color=style.faint(), alpha=0.6, linewidth=width, zorder=2
    )
    if drawn.any():
        ax.plot([], [], color=style.faint(), linewidth=1.4, label=_interval_label(interval))
    for which, colour, marker, label in _kinds():
        shown = (flagged == which) & drawn
        if shown.any():
            size = (5 + 25 * weight / weight.max())[shown] + 8 * which
            ax.scatter(x[shown], y[shown], s=size, color=colour, marker=marker, linewidth=0, zorder=4, label=label)
    ax.set_xlim(low - room, high + room)
    ax.set_ylim(low - room, high + room)
    ax.set_xlabel(f"replicated: {found.axis}")
    ax.set_ylabel(f"observed: {found.axis}")
    _as_shares(found, ax.xaxis, ax.yaxis)
    style.clean(ax, grid="both")
    _key(ax)
    worst = np.flatnonzero(flagged)[:NAMED]
    style.name_points(ax, x[worst], y[worst], table.index[worst], np.column_stack([x[flagged], y[flagged]]))
    for text in ax.texts:
        text.set_bbox({"facecolor": style.paper(), "alpha": 0.75, "edgecolor": "none", "pad": 0.6})
        text.set_zorder(5)


def _kinds() -> tuple[tuple[bool, str, str, str], ...]:
    """Return the two kinds of units, not flagged and flagged, each with colour, marker and name."""
    return (False, style.strong(), "o", "observed"), (True, style.ACCENT, "D", "flagged")


def _interval_label(interval: float) -> str:
    return f"{interval:.0%} interval of the replicates"


def _key(ax: Axes) -> None:
    """Write the legend in a row below the axes."""
    style.legend(ax, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=3, fontsize=7.5, handlelength=1.3)


def _as_shares(found: DiscrepancyResult, *axes: Any) -> None:
    """Write shares as percentages."""
    if found.size is not None:
        from matplotlib.ticker import PercentFormatter

        for axis in axes:
            axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
