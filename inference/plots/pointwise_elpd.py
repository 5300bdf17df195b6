"""Pictures of expected log predictive densities by unit: where two stories differ, and which cannot be estimated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from .style import (
    ACCENT,
    DARK,
    clean,
    counted,
    legend,
    name_points,
    new_axes,
    share,
    short,
    signed,
    title,
    whole_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ..comparison.elpd import Elpd

NAMED = 3  # units named at each end of the differences
WORST = 5  # units named whose k is too large


def plot_differences(
    first: Elpd, second: Elpd, ax: Axes | None = None, *, names: tuple[str, str] | None = None
) -> Axes:
    """Draw by how much the first story predicts each unit better than the second, from the greatest gain down.

    Args:
        first: of ``loo`` or ``kfold``.
        second: of the same units, in any order.
        ax: axes to draw in; by default a new figure.
        names: of the two; by default those of their stories.

    Returns:
        The axes.

    Raises:
        ValueError: the units are not the same.
    """
    found = _differences(first, second).sort_values(ascending=False, kind="stable")
    values, ranks = found.to_numpy(), np.arange(1, len(found) + 1)
    ax = new_axes(ax, 7, 3.8)
    better = float((values > 0).mean())
    one, other = (short(name, 24) for name in (names or (first.story, second.story)))
    for side, colour, text in (
        (np.maximum(values, 0), DARK, f"{one} is better: {share(better)} of the {first.by}s"),
        (np.minimum(values, 0), ACCENT, f"{other} is better: {share(float((values < 0).mean()))}"),
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
    whole_numbers(ax.xaxis)
    ax.set_ylabel("difference in log predictive density")
    clean(ax, grid="y")
    legend(ax, loc="upper right")
    total = float(values.sum())
    error = float(np.sqrt(len(values)) * np.std(values))
    title(ax, f"{one} against {other}: {signed(total)} ± {error:,.1f} over {counted(len(values), first.by)}")
    ends = np.unique(np.r_[: min(NAMED, len(found)), max(len(found) - NAMED, 0) : len(found)])
    ends = ends[np.argsort(-np.abs(values[ends]), kind="stable")]
    name_points(ax, ranks[ends], values[ends], _names(found.index[ends]), _steps(ranks, values))
    return ax


def plot_pareto_k(elpd: Elpd, ax: Axes | None = None) -> Axes:
    """Draw each unit's Pareto k from the largest down: over the threshold leaving the unit out cannot be estimated.

    The k is the shape of the importance weights' tail (Vehtari, Gelman & Gabry 2017). The largest that are over the
    threshold are named.

    Args:
        elpd: of ``loo`` of a fit with draws.
        ax: axes to draw in; by default a new figure.

    Returns:
        The axes.

    Raises:
        ValueError: nothing was estimated with importance weights, as with ``kfold``.
    """
    if elpd.pareto_k is None:
        raise ValueError(f"kind={elpd.kind!r} uses no importance weights, so there is no Pareto k; look at elpd.table")
    every = pd.Series(np.asarray(elpd.pareto_k, dtype=float), index=elpd.units)
    found = every[np.isfinite(every)].sort_values(ascending=False, kind="stable")
    values, ranks = found.to_numpy(), np.arange(1, len(found) + 1)
    n_high_k = values > elpd.good_k
    ax = new_axes(ax, 7, 3.6)
    size = 18 if len(found) <= 300 else 7
    ax.scatter(ranks[~n_high_k], values[~n_high_k], s=size, color=DARK, linewidth=0)
    ax.scatter(ranks[n_high_k], values[n_high_k], s=size + 10, color=ACCENT, marker="D", linewidth=0)
    top = max(1.1 * float(values.max(initial=0)), elpd.good_k + 0.3)
    ax.axhspan(elpd.good_k, top, color=ACCENT, alpha=0.06, linewidth=0)
    ax.axhline(elpd.good_k, color="0.45", linewidth=1, linestyle="--", label=f"threshold {elpd.good_k:.2f}")
    room = 0.02 * len(every)
    ax.set_xlim(0.5 - room, len(every) + 0.5 + room)
    ax.set_ylim(top=top)
    constant = len(every) - len(found)
    ax.set_xlabel(f"rank of the {elpd.by}" + (f"; {constant:,} need no weights and have no k" if constant else ""))
    whole_numbers(ax.xaxis)
    ax.set_ylabel("Pareto k")
    clean(ax, grid="y")
    legend(ax, loc="upper right")
    over = f"k is over {elpd.good_k:.2f} for {int(n_high_k.sum()):,} of {counted(len(every), elpd.by)}"
    title(ax, f"{short(elpd.story, 24)}: {over}")
    worst = np.flatnonzero(n_high_k)[:WORST]
    name_points(ax, ranks[worst], values[worst], _names(found.index[worst]), np.column_stack([ranks, values]))
    return ax


def _differences(first: Elpd, second: Elpd) -> pd.Series:
    """The first's values less the second's by unit."""
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
    """Points of a line that steps midway between the ranks, ``(3 n, 2)``."""
    x = (ranks[:, None] + np.array([-0.5, 0.0, 0.5])).ravel()
    return np.column_stack([x, np.repeat(values, 3)])


def _names(units: pd.Index) -> list[str]:
    """What the units are called: a task, or a worker's annotation to a task."""
    if not isinstance(units, pd.MultiIndex):
        return [str(unit) for unit in units]
    parts = [units.get_level_values(name) for name in ("task", "worker") if name in units.names]
    return [" by ".join(map(str, unit)) for unit in zip(*parts, strict=True)]
