"""The plot of a comparison of stories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .style import ACCENT, TITLE, axes_beside, check_kind, faint, ink, name_rows, new_axes, paper, short, signed, strong

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = ("elpd", "difference", "difference_se", "weight")


def plot_comparison(comparison: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw by how much each story predicts worse than the best one, with one and two standard errors.

    On the right are each story's expected log predictive density (elpd), its stacking weight as a bar and, where there
    are any, the number of units with a high Pareto k, whose elpd cannot be trusted. Where one story is so far off that
    the others lie on each other, leave it out: ``plot_comparison(comparison.head(3))``.

    Args:
        comparison: what :func:`crowdppl.compare` returns: a row for each story, the best first.
        ax: axes to draw in; by default a new figure.

    Returns:
        The axes.

    Raises:
        TypeError: it is something else.
        ValueError: there is no story, or a column is missing.
    """
    check_kind(comparison, pd.DataFrame, "cp.compare(fits)")
    missing = [name for name in COLUMNS if name not in comparison]
    if missing:
        raise ValueError(f"comparison lacks the column {missing[0]!r}; give the frame that cp.compare(fits) returns")
    if comparison.empty:
        raise ValueError("the comparison has no story; give cp.compare at least one fit")
    n = len(comparison)
    ax = new_axes(ax, 8.4, 1.5 + 0.36 * max(n, 3))
    rows = np.arange(n)
    difference, error = (comparison[name].to_numpy(dtype=float) for name in ("difference", "difference_se"))
    ax.axvline(0, color="0.45", linewidth=1, linestyle="--")
    ax.hlines(rows, difference - 2 * error, difference + 2 * error, color=faint(), linewidth=2)
    ax.hlines(rows, difference - error, difference + error, color=strong(), linewidth=2.6)
    ax.scatter(difference, rows, s=46, color=strong(), edgecolor=paper(), zorder=3)
    ax.set_ylim(max(n, 3) - 0.4, -0.6)
    name_rows(ax, comparison.index, 28, 9)
    if not (difference.any() or error.any()):
        ax.set_xlim(-1, 1)
    ax.set_xlabel("difference in elpd (nats) from the best story, with 1 and 2 standard errors")
    _write_columns(ax, comparison)
    ax.set_title(_lead(comparison), fontsize=TITLE, loc="left", pad=22, parse_math=False)
    return ax


def _lead(comparison: pd.DataFrame) -> str:
    """By how much the best story is ahead of the next, or that two standard errors do not tell them apart."""
    names = [short(name, 28) for name in comparison.index[:2]]
    if len(names) == 1:
        return names[0]
    by, error = abs(float(comparison["difference"].iloc[1])), float(comparison["difference_se"].iloc[1])
    if by < 2 * error or by == 0:
        return f"{names[0]} and {names[1]} cannot be told apart: {by:,.1f} ± {error:,.1f}"
    return f"{names[0]} predicts best, ahead of {names[1]} by {by:,.1f} ± {error:,.1f}"


def _write_columns(ax: Axes, comparison: pd.DataFrame) -> None:
    """Write elpd, weight and number of high k beside the rows, in axes of their own."""
    n_high_k = "n_high_k" in comparison and bool((comparison["n_high_k"] > 0).fillna(False).any())
    beside = axes_beside(ax, side="right", gap=0.1, size=2.5 if n_high_k else 1.9, sharey=ax)
    beside.set_xlim(0, 1.3 if n_high_k else 1)
    beside.patch.set_visible(False)
    beside.spines[:].set_visible(False)
    beside.tick_params(length=0, labelleft=False, labelbottom=False)
    write: dict[str, Any] = {"fontsize": 8, "va": "center"}
    for row, (_, story) in enumerate(comparison.iterrows()):
        beside.text(0.42, row, signed(story["elpd"], plus=False), ha="right", **write)
        weight = float(story["weight"])
        beside.barh(row, 0.3 * weight, 0.42, left=0.56, color=faint())
        beside.text(0.58 + 0.3 * weight, row, f"{weight:.2f}", ha="left", **write)
        if n_high_k:
            count = 0 if pd.isna(story["n_high_k"]) else int(story["n_high_k"])
            beside.text(1.28, row, f"{count:,}", ha="right", color=ACCENT if count else "0.6", **write)
    heads = [(0.42, "elpd", "right"), (0.56, "weight", "left")] + ([(1.28, "high k", "right")] if n_high_k else [])
    for x, text, ha in heads:
        beside.annotate(
            text, (x, 1.0), (0, 2), xycoords=("data", "axes fraction"), textcoords="offset points", ha=ha, fontsize=8,
            color=ink(0.65),
        )  # fmt: skip
