"""Pictures of predictive checks: what was observed, over what the story would have written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..checks.check_results import Checks
from ..checks.discrepancy_result import Found
from ..fitted.intervals import INTERVAL
from .style import (
    ACCENT,
    COLOURS,
    DARK,
    LIGHT,
    SMALL,
    clean,
    counted,
    given_axes,
    legend,
    name_points,
    new_axes,
    short,
    title,
    whole_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROWS = 12  # units up to which each has a row with its name
DOTS = 400  # units up to which each has a dot with its interval; more are drawn by density
NAMED = 8  # units that stand out and are named, at the most


def plot_checks(checks: Checks, *, interval: float = INTERVAL, axes: Any = None) -> np.ndarray:
    """Draw each discrepancy in a panel of its own: :func:`plot_check`.

    Args:
        checks: of :func:`crowdppl.check` or :func:`crowdppl.prior_check`.
        interval: the share of the replicates that the intervals hold, between 0 and 1.
        axes: axes to draw in, one a discrepancy; by default a new figure.

    Returns:
        The axes drawn in, shape (number of discrepancies,).

    Raises:
        ValueError: there are too few axes, or `interval` is no share.
    """
    names = list(checks.found)
    drawn = given_axes(axes, len(names), f"{len(names)} discrepancies")
    if drawn is None:
        import matplotlib.pyplot as plt
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        columns = min(2, len(names))
        rows = -(-len(names) // columns)
        size, layout = (5.2 * columns, 4.0 * rows + 0.4), ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1)
        figure, grid = plt.subplots(rows, columns, figsize=size, layout=layout, squeeze=False)
        for spare in grid.ravel()[len(names) :]:
            spare.remove()
        figure.suptitle(checks.title, fontsize=11, parse_math=False)
        drawn = grid.ravel()[: len(names)]
    for ax, name in zip(drawn, names, strict=True):
        plot_check(checks, name, interval=interval, ax=ax)
    return drawn


def plot_check(checks: Checks, name: str, *, interval: float = INTERVAL, ax: Axes | None = None) -> Axes:
    """Draw one discrepancy: observed units over intervals of replicates, in colour those that stand out.

    Up to 12 units have a row each; of more, observed are drawn against replicated, by density where there are very
    many. A discrepancy without units is drawn as a histogram of the replicates, and the observed value. Units whose
    size is known are drawn as shares of it.

    Args:
        checks: of :func:`crowdppl.check` or :func:`crowdppl.prior_check`.
        name: of the discrepancy.
        interval: the share of the replicates that the intervals hold, between 0 and 1.
        ax: axes to draw in; by default a new figure.

    Returns:
        The axes.

    Raises:
        UnknownNameError: nothing of that name was checked.
        ValueError: `interval` is no share.
    """
    found = checks.of(name)
    if found.units is None:
        return _histogram(new_axes(ax, 5.6, 3.6), found)
    table = found.table(interval)
    ax = new_axes(ax, 5.6, 4.0)
    _head(ax, found, _how_many(int(table["stands_out"].sum()), len(table)))
    if found.size is not None:
        values = ["observed", "replicated", "low", "high"]
        table[values] = table[values].div(table["size"], axis=0)
    if len(table) <= ROWS:
        _rows(ax, found, table, interval)
    else:
        _against(ax, found, table, interval)
    return ax


def _head(ax: Axes, found: Found, more: str) -> None:
    p = found.p_value
    shown = "p < 0.01" if p < 0.005 else "p > 0.99" if p > 0.995 else f"p = {p:.2f}"
    title(ax, f"{short(found.title, 60)}\n{shown}, {more}", 10)


def _how_many(odd: int, units: int) -> str:
    return f"{odd or 'none':{',' if odd else ''}} of {counted(units, 'unit')} stand{'s' if odd <= 1 else ''} out"


def _histogram(ax: Axes, found: Found) -> Axes:
    replicated = found.replicated.ravel()
    ax.hist(replicated, bins="auto" if np.ptp(replicated) > 0 else 1, color=LIGHT, label="replicated")
    ax.axvline(found.observed[0], color=ACCENT, linewidth=2, label="observed")
    ax.set_xlabel(found.axis)
    ax.set_ylabel("replicates")
    whole_numbers(ax.yaxis)
    clean(ax)
    legend(ax)
    _head(ax, found, f"observed {found.observed[0]:,.4g}")
    return ax


def _rows(ax: Axes, found: Found, table: pd.DataFrame, interval: float) -> None:
    """A row for each unit, in the units' own order from below."""
    assert found.units is not None
    ordered = table.iloc[np.argsort(found.units.get_indexer_for(table.index), kind="stable")]
    at, odd = np.arange(len(ordered)), ordered["stands_out"].to_numpy()
    ax.hlines(at, ordered["low"], ordered["high"], color=LIGHT, linewidth=9, label=_interval_label(interval))
    for which, colour, marker, label in _KINDS:
        shown = odd == which
        if shown.any():
            dots = ax.scatter(ordered["observed"][shown], at[shown], s=22, color=colour, marker=marker, zorder=4)
            dots.set_label(label)
    ax.set_yticks(at, [short(unit, 22) for unit in ordered.index], fontsize=SMALL, parse_math=False)
    ax.set_ylim(-0.7, len(ordered) - 0.3)
    ax.set_xlabel(found.axis)
    ax.set_ylabel(" · ".join(str(name) for name in found.units.names if name is not None))
    _as_shares(ax, found, ax.xaxis)
    clean(ax, grid="x", hidden=("top", "right", "left"))
    ax.tick_params(axis="y", length=0)
    _key(ax)


def _against(ax: Axes, found: Found, table: pd.DataFrame, interval: float) -> None:
    """Observed against replicated, larger where a unit holds more, with the line where both are the same."""
    x, y, odd = table["replicated"].to_numpy(), table["observed"].to_numpy(), table["stands_out"].to_numpy()
    weight = np.ones(len(table)) if found.size is None else table["size"].to_numpy(dtype=float)
    low, high = min(x.min(), y.min()), max(x.max(), y.max())
    room = 0.05 * (high - low or 1)
    drawn = np.ones(len(x), dtype=bool)
    if len(x) > DOTS:
        drawn = odd
        ax.hexbin(x, y, weight, reduce_C_function=np.sum, gridsize=45, cmap=COLOURS, bins="log", linewidths=0.1)
        what = "units" if found.size is None else "annotations"
        ax.plot([], [], "h", color=DARK, label=f"observed, dark where many {what}")
    ax.axline((low, low), slope=1, color="0.4", linewidth=0.8, zorder=2)
    ax.vlines(x[drawn], table["low"][drawn], table["high"][drawn], color=LIGHT, alpha=0.6, linewidth=1.4, zorder=2)
    if drawn.any():
        ax.plot([], [], color=LIGHT, linewidth=1.4, label=_interval_label(interval))
    for which, colour, marker, label in _KINDS:
        shown = (odd == which) & drawn
        if shown.any():
            size = (5 + 25 * weight / weight.max())[shown] + 8 * which
            ax.scatter(x[shown], y[shown], s=size, color=colour, marker=marker, linewidth=0, zorder=4, label=label)
    ax.set_xlim(low - room, high + room)
    ax.set_ylim(low - room, high + room)
    ax.set_xlabel(f"replicated: {found.axis}")
    ax.set_ylabel("observed")
    _as_shares(ax, found, ax.xaxis, ax.yaxis)
    clean(ax, grid="both")
    _key(ax)
    worst = np.flatnonzero(odd)[:NAMED]
    name_points(ax, x[worst], y[worst], table.index[worst], np.column_stack([x[odd], y[odd]]))
    for text in ax.texts:
        text.set_bbox({"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.6})
        text.set_zorder(5)


_KINDS = ((False, DARK, "o", "observed"), (True, ACCENT, "D", "stands out"))


def _interval_label(interval: float) -> str:
    return f"{interval:.0%} of the replicates"


def _key(ax: Axes) -> None:
    """The legend in a row, under the axes where nothing is drawn."""
    legend(ax, loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=3, fontsize=7.5, handlelength=1.3)


def _as_shares(ax: Axes, found: Found, *axes: Any) -> None:
    if found.size is not None:
        from matplotlib.ticker import PercentFormatter

        for axis in axes:
            axis.set_major_formatter(PercentFormatter(1.0, decimals=0))
