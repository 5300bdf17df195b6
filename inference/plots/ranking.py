"""Numbers with intervals, the greatest first: each in a row with its name where they are few, else by rank."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from .style import clean, faint, name_points, name_rows, new_axes, paper, strong, whole_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMED = 40  # rows up to which each has a line with its name
MARKED = 200  # ranks up to which each has a marker; beyond it markers would be one line
SEPARATE = 400  # ranks up to which each has its own interval, beyond it they make up a band


def draw_named(ax: Axes | None, table: pd.DataFrame, sizes: np.ndarray | float = 36.0) -> Axes:
    """Draw a row with a name for each number, the greatest at the top.

    Args:
        ax: axes to draw in; None for a new figure as high as the rows need.
        table: ``value`` in ascending order with the names as index; ``low`` and ``high`` where there are intervals.
        sizes: areas of the dots.
    """
    ax = new_axes(ax, 6.5, 1.3 + 0.2 * max(len(table), 5))
    rows = np.arange(len(table))
    if "low" in table:
        ax.hlines(rows, table["low"], table["high"], color=strong(), alpha=0.45, linewidth=1.6)
    ax.scatter(table["value"], rows, s=sizes, color=strong(), edgecolor=paper(), zorder=3)
    name_rows(ax, table.index, 24, 7)
    ax.set_ylim(-0.8, len(table) - 0.2)
    return ax


def draw_ranks(ax: Axes | None, table: pd.DataFrame) -> Axes:
    """Draw numbers by rank, from the greatest on the left, over their intervals; the first and the last are named.

    Args:
        ax: axes to draw in; None for a new figure.
        table: as for :func:`draw_named`.
    """
    ax = new_axes(ax, 7, 3.8)
    table = table.iloc[::-1]
    ranks = np.arange(1, len(table) + 1)
    if "low" in table and len(table) <= SEPARATE:
        ax.vlines(ranks, table["low"], table["high"], color=faint(), linewidth=min(3.0, max(0.6, 240 / len(table))))
    elif "low" in table:
        ax.fill_between(ranks, table["low"], table["high"], color=faint(), linewidth=0, step="mid")
    few = len(table) <= MARKED
    ax.plot(ranks, table["value"], color=strong(), linewidth=1.0 if few else 1.8, solid_capstyle="round")
    if few:
        ax.scatter(
            ranks,
            table["value"],
            s=float(np.clip(1800 / len(table), 9, 26)),
            color=strong(),
            edgecolor=paper(),
            linewidth=0.5,
            zorder=3,
        )
    margin = 0.02 * len(table)
    ax.set_xlim(1 - margin, len(table) + margin)
    clean(ax, grid="y")
    whole_numbers(ax.xaxis)
    ends = table["value"].iloc[[0, -1]]
    ax.scatter(ranks[[0, -1]], ends, s=22, color=strong(), edgecolor=paper(), zorder=3)
    return ax


def name_ends(ax: Axes, table: pd.DataFrame) -> None:
    """Name the first and the last of :func:`draw_ranks`, once the limits of ``ax`` are final."""
    ends = table["value"].iloc[[-1, 0]]
    line = np.column_stack([np.arange(1, len(table) + 1), table["value"].iloc[::-1]])
    name_points(ax, [1, len(table)], ends, ends.index, avoid=line)
