"""Plots of compared stories, and of the elpd of each unit: where two differ, and where it cannot be estimated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ...data.description import count_text
from ...data.id_text import name_text
from ..comparison.elpd import Elpd, tasks_and_workers
from . import style
from .style import ACCENT, TITLE, axes_beside, check_kind, faint, ink, name_rows, new_axes, paper, short, signed, strong

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = ("elpd", "difference", "difference_se", "weight")
NAMED = 3  # units named at each end of the differences
WORST = 5  # units with a high k that are named


def plot_comparison(comparison: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Draw by how much each story predicts worse than the best one, with one and two standard errors.

    On the right are each story's expected log predictive density (elpd), its stacking weight as a bar and, where there
    are any, the number of units with a high Pareto k, whose elpd cannot be trusted. Where one story is so far off that
    the others lie on each other, leave it out: ``plot_comparison(comparison.head(3))``.

    Args:
        comparison: what :func:`crowdppl.compare` returns: a row for each story, the best first.
        ax: axes to draw in; by default a new figure.

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


def plot_differences(
    first: Elpd, second: Elpd, ax: Axes | None = None, *, names: tuple[str, str] | None = None
) -> Axes:
    """Draw each unit's difference in elpd, the first story's less the second's, the greatest first.

    Args:
        first: what :func:`crowdppl.loo` or :func:`crowdppl.kfold` returns.
        second: another of the same units (tasks, or annotations), in any order.
        ax: axes to draw in; by default a new figure.
        names: what the two are called; by default the names of their stories.

    Raises:
        ValueError: the units are not the same.
    """
    found = _differences(first, second).sort_values(ascending=False, kind="stable")
    values, ranks = found.to_numpy(), np.arange(1, len(found) + 1)
    ax = style.new_axes(ax, 7, 3.8)
    better = float((values > 0).mean())
    one, other = (style.short(name, 24) for name in (names or (first.story, second.story)))
    for side, colour, text in (
        (np.maximum(values, 0), style.strong(), f"{one} predicts better: {style.share(better)} of the {first.by}s"),
        (np.minimum(values, 0), style.ACCENT, f"{other} predicts better: {style.share(float((values < 0).mean()))}"),
    ):
        ax.fill_between(ranks, side, step="mid", color=colour, alpha=0.35, linewidth=0)
        ax.plot(
            ranks, np.where(side != 0, side, np.nan), color=colour, linewidth=1.6, label=text, drawstyle="steps-mid"
        )
    ax.axhline(0, color="0.45", linewidth=0.8)
    room = 0.03 * len(found)
    ax.set_xlim(0.5 - room, len(found) + 0.5 + room)
    ax.margins(y=0.12)
    ax.set_xlabel(f"rank of the {first.by}")
    style.whole_numbers(ax.xaxis)
    ax.set_ylabel("difference in elpd (nats)")
    style.clean(ax, grid="y")
    style.legend(ax, loc="upper right")
    total = float(values.sum())
    error = float(np.sqrt(len(values)) * np.std(values))
    lead = f"{style.signed(total)} ± {error:,.1f}"
    style.title(ax, f"elpd of {one} less that of {other}: {lead}\n{count_text(len(values), first.by)}")
    ends = np.unique(np.r_[: min(NAMED, len(found)), max(len(found) - NAMED, 0) : len(found)])
    ends = ends[np.argsort(-np.abs(values[ends]), kind="stable")]
    style.name_points(ax, ranks[ends], values[ends], _names(found.index[ends]), _steps(ranks, values))
    return ax


def plot_pareto_k(elpd: Elpd, ax: Axes | None = None) -> Axes:
    """Draw each unit's Pareto k, the highest first: above the threshold its elpd by importance sampling is unreliable.

    Pareto k is the shape of the importance weights' tail (Vehtari, Gelman & Gabry 2017). The highest five above the
    threshold are named.

    Args:
        elpd: what :func:`crowdppl.loo` returns for a fit with draws.
        ax: axes to draw in; by default a new figure.

    Raises:
        TypeError: it is something else.
        ValueError: the elpd was not estimated with importance weights, as with ``kfold``.
    """
    style.check_kind(elpd, Elpd, "cp.loo(fit)")
    if elpd.pareto_k is None:
        raise ValueError(
            f"method={elpd.method!r} uses no importance weights, so there is no Pareto k; look at elpd.table"
        )
    every = pd.Series(np.asarray(elpd.pareto_k, dtype=float), index=elpd.units)
    found = every[np.isfinite(every)].sort_values(ascending=False, kind="stable")
    values, ranks = found.to_numpy(), np.arange(1, len(found) + 1)
    high = values > elpd.good_k
    ax = style.new_axes(ax, 7, 3.6)
    size = 18 if len(found) <= 300 else 7
    ax.scatter(ranks[~high], values[~high], s=size, color=style.strong(), linewidth=0)
    ax.scatter(ranks[high], values[high], s=size + 10, color=style.ACCENT, marker="D", linewidth=0)
    if high.any():
        ax.scatter([], [], s=28, color=style.ACCENT, marker="D", linewidth=0, label="high k: elpd is unreliable")
    top = max(1.1 * float(values.max(initial=0)), elpd.good_k + 0.3)
    ax.axhspan(elpd.good_k, top, color=style.ACCENT, alpha=0.06, linewidth=0)
    ax.axhline(elpd.good_k, color="0.45", linewidth=1, linestyle="--", label=f"threshold: {elpd.good_k:.2f}")
    room = 0.02 * len(every)
    ax.set_xlim(0.5 - room, len(every) + 0.5 + room)
    ax.set_ylim(top=top)
    constant = len(every) - len(found)
    ax.set_xlabel(f"rank of the {elpd.by}" + (f"; {constant:,} have equal weights and no k" if constant else ""))
    style.whole_numbers(ax.xaxis)
    ax.set_ylabel("Pareto k")
    style.clean(ax, grid="y")
    style.legend(ax, loc="upper right")
    style.title(
        ax,
        f"{style.short(elpd.story, 24)}: {int(high.sum()):,} of {count_text(len(every), elpd.by)} have a high Pareto k",
    )
    worst = np.flatnonzero(high)[:WORST]
    style.name_points(
        ax, ranks[worst], values[worst], _names(found.index[worst]), np.column_stack([ranks, values]), radius=3
    )
    return ax


def _differences(first: Elpd, second: Elpd) -> pd.Series:
    """The first values less the second ones, by unit."""
    one, other = (pd.Series(np.asarray(e.values, dtype=float), index=e.units) for e in (first, second))
    if first.by != second.by:
        raise ValueError(f"by={first.by!r} and by={second.by!r}: the units must be the same")
    if one.index.equals(other.index):
        return one - other.to_numpy()
    unknown = one.index.symmetric_difference(other.index)
    if len(unknown) or len(one) != len(other) or not one.index.is_unique:
        named = f"; {unknown[0]!r} is among those of one only" if len(unknown) else ""
        raise ValueError(
            f"{first.story} has {len(one):,} units and {second.story} {len(other):,}, which are not the same{named}; "
            "compare fits of the same annotations"
        )
    return one - other.reindex(one.index).to_numpy()


def _steps(ranks: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Points of a line that steps midway between the ranks, along its vertical parts too: ``(n, 2)``."""
    flat = np.column_stack([(ranks[:, None] + np.array([-0.5, 0.0, 0.5])).ravel(), np.repeat(values, 3)])
    rises = np.flatnonzero(np.abs(np.diff(values)) > 0.02 * np.ptp(values))
    upright = [np.column_stack([np.full(20, ranks[i] + 0.5), np.linspace(values[i], values[i + 1], 20)]) for i in rises]
    return np.concatenate([flat, *upright])


def _names(units: pd.Index) -> list[str]:
    """Names of the units: a task, or a task and the worker that annotated it."""
    return [" by ".join(map(name_text, unit)) for unit in tasks_and_workers(units)]
