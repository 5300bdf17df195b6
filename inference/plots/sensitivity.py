r"""The plot of workers' sensitivity and specificity, with credible regions of both together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from ..fitted.confusion_scores import given_a_class
from ..fitted.intervals import INTERVAL, checked_tail, of_draws
from ..fitted.posterior import Posterior
from . import style
from .shown_workers import positions, refuse_unnamed, unknown_worker, which_workers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_REGIONS = 40  # workers up to which each has a region
OUTERMOST = 8  # workers that are named where there are more: those furthest from the diagonal
MAX_DOTS = 300  # workers up to which each has a dot; beyond it their density is drawn
CERTAIN = 1e-6  # probabilities are kept that far from 0 and 1, where logits are not finite


def plot_sensitivity_specificity(
    fit: Posterior,
    *,
    workers: Any = None,
    actual: pd.DataFrame | None = None,
    interval: float = INTERVAL,
    ax: Axes | None = None,
) -> Axes:
    r"""Draw workers' sensitivity over one minus their specificity: the further above the diagonal, the better.

    On the diagonal, :math:`\text{sensitivity} + \text{specificity} = 1`, are spammers: their annotations do not depend
    on the truth (Raykar & Yu 2011). Up to 40 workers have a credible region of the mass `interval`: the ellipse
    :math:`(x - \mu)^\top \Sigma^{-1} (x - \mu) = \chi^2_2(\text{interval})` of the mean :math:`\mu` and the covariance
    :math:`\Sigma` of the logits of both, transformed back to probabilities. Where the fit is a point, the draws are
    those around it, and a region that would not hold the point is widened until it does. Up to 300 workers are dots;
    of more the density is drawn, its colours on a logarithmic scale. Where there are more than 40, those 40 with the
    most annotations have a cross: the equal-tailed intervals of both.

    Args:
        fit: a fit, or a stack of fits, of annotations of two classes that name their workers; the second class is
            the positive one.
        workers: ids of the workers to show, one or several; by default all.
        actual: known values: a frame with workers as index and the columns ``sensitivity`` and ``specificity``. Each
            is drawn as a cross, joined to the worker's estimate.
        interval: mass of the credible regions and intervals, between 0 and 1.
        ax: axes to draw in; by default a new figure.

    Raises:
        UnknownNameError: `workers` or `actual` names a worker that the annotations do not have.
        AnnotationError: the annotations name no workers.
        ValueError: there are not two classes, no worker is selected, `interval` is not between 0 and 1, or `actual`
            lacks a column or has a value that is no probability.
    """
    refuse_unnamed(fit)
    names = fit.annotations.classes
    if len(names) != 2:
        raise ValueError(
            f"sensitivity and specificity are of two classes, and there are {len(names)}; draw the workers' confusion "
            "matrices with plot_confusions(fit), or their accuracy with plot_workers(fit)"
        )
    checked_tail(interval)
    ids = fit.annotations.workers
    shown = list(range(len(ids))) if workers is None else positions(ids, workers)
    known = None if actual is None else _known(actual, fit).iloc[shown]
    rates = _rates(fit.confusion_draws[:, :, shown])
    x, y = rates.mean(0).T
    density, positive = len(shown) > MAX_DOTS, style.short(names[1], 14)

    ax = style.new_axes(ax, 6.0 if density else 5.4, 5.2)
    ax.plot([0, 1], [0, 1], color="0.45", linewidth=1, linestyle="--", zorder=2)
    ax.text(
        0.99, 0.96, "spammers", ha="right", va="top", rotation=45, rotation_mode="anchor", fontsize=8,
        color=style.ink(0.65), bbox={"facecolor": ax.get_facecolor(), "alpha": 0.75, "edgecolor": "none", "pad": 0.5},
        zorder=4,
    )  # fmt: skip
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
    ax.set_xlabel(f"1 − specificity: P(annotation {positive} | truth {style.short(names[0], 14)})", parse_math=False)
    ax.set_ylabel(f"sensitivity: P(annotation {positive} | truth {positive})", parse_math=False)
    style.clean(ax)
    regions = len(shown) <= MAX_REGIONS
    if density:
        _draw_density(ax, x, y)
    most = np.sort(np.argsort(-fit.annotations.n_by_worker()[shown], kind="stable")[:MAX_REGIONS])
    around = _rates(fit.with_uncertainty.confusion_draws[:, :, [shown[j] for j in most]])
    dots: dict[str, Any] = {
        "s": 30 if regions else 20,
        "color": style.strong(),
        "edgecolor": style.paper(),
        "linewidth": 0.6,
    }
    if regions:
        _draw_regions(ax, around, interval, None if fit.has_draws else rates[0][most])
    else:
        _draw_crosses(ax, around, rates.mean(0)[most], interval)
    estimate = "posterior mean of a worker" if fit.has_draws else "estimate of a worker"
    if density:
        ax.scatter(x[most], y[most], zorder=3, **(dots | {"s": 9, "color": style.ink(0.9), "linewidth": 0}))
    else:
        ax.scatter(x, y, zorder=3, label=estimate, **dots)
    if known is not None:
        _draw_known(ax, x, y, known, joined=not density)
    # Where many are drawn, those better than spammers leave no corner free.
    where: dict[str, Any] = {} if regions else {"bbox_to_anchor": (0.5, -0.13)}
    style.legend(ax, markerscale=1, loc="lower right" if regions else "upper center", **where)
    style.title(ax, f"Sensitivity and specificity of {which_workers(len(shown), ids, by_annotations=False)}")
    if not density:
        outermost = np.argsort(-np.abs(y - x), kind="stable")[: None if regions else OUTERMOST]
        style.name_points(ax, x[outermost], y[outermost], [ids[shown[i]] for i in outermost], np.column_stack([x, y]))
    return ax


def _draw_density(ax: Axes, x: np.ndarray, y: np.ndarray) -> None:
    """Draw how many workers stand in each cell of the unit square, in colours on a logarithmic scale."""
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import LogLocator, NullLocator

    cells = ax.hexbin(x, y, gridsize=32, extent=(0, 1, 0, 1), mincnt=1, cmap=style.density_colours(), linewidths=0.2)
    cells.set_norm(LogNorm(1, max(float(np.max(cells.get_array())), 2.0)))  # type: ignore[arg-type]
    style.colour_bar(
        cells, ax, f"workers in a cell {style.LOGARITHMIC}", shrink=0.8, format=lambda value, _: f"{value:,.0f}"
    )
    bar = cells.colorbar.ax.yaxis  # type: ignore[union-attr]
    bar.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
    bar.set_minor_locator(NullLocator())


def _draw_crosses(ax: Axes, rates: np.ndarray, points: np.ndarray, interval: float) -> None:
    """Draw the equal-tailed intervals of both rates through each point.

    Args:
        rates: draws, ``(S, n, 2)``.
        points: which the intervals hold, ``(n, 2)``.
    """
    low, high = of_draws(rates[None], interval, points)
    from matplotlib.patheffects import withStroke

    seen = [withStroke(linewidth=1.5, foreground=style.paper(), alpha=0.5)]  # on cells of every count
    marks: dict[str, Any] = {"color": style.ink(0.9), "linewidth": 0.7, "zorder": 2.5, "path_effects": seen}
    label = f"{interval:.0%} credible intervals of the {len(points):,} workers with the most annotations"
    ax.hlines(points[:, 1], low[:, 0], high[:, 0], label=label, **marks)
    ax.vlines(points[:, 0], low[:, 1], high[:, 1], **marks)


def _rates(confusions: np.ndarray) -> np.ndarray:
    """Draws of one minus specificity and of sensitivity, ``(S, J, 2)``.

    Args:
        confusions: ``(chain, draw, J, 2, L)``.
    """
    return given_a_class(confusions)[..., 1].reshape(-1, *confusions.shape[2:4]).astype(float)


def region(draws: np.ndarray, mass: float, points: int = 100, *, holds: np.ndarray | None = None) -> np.ndarray:
    """The outline of a region that holds the share `mass` of draws of two probabilities, by a normal
    approximation of their logits.

    Args:
        draws: ``(S, 2)``.
        mass: between 0 and 1.
        points: of the outline.
        holds: two probabilities up to which the region is widened where it would leave them out, ``(2,)``.

    Returns:
        ``(points, 2)``, probabilities.
    """
    from scipy.stats import chi2

    logits = _logits(draws)
    values, vectors = np.linalg.eigh(np.cov(logits.T))
    axes, radius = vectors * np.sqrt(np.maximum(values, 0)), np.sqrt(chi2.ppf(mass, 2))
    if holds is not None:
        radius = max(radius, np.linalg.norm(np.linalg.pinv(axes) @ (_logits(holds) - logits.mean(0))))
    angle = np.linspace(0, 2 * np.pi, points)
    return expit(logits.mean(0) + (axes @ (radius * np.stack([np.cos(angle), np.sin(angle)]))).T)


def _logits(probabilities: np.ndarray) -> np.ndarray:
    return logit(np.clip(probabilities, CERTAIN, 1 - CERTAIN))


def _draw_regions(ax: Axes, rates: np.ndarray, interval: float, points: np.ndarray | None) -> None:
    from matplotlib.collections import PolyCollection

    outlines = [
        region(rates[:, j], interval, holds=None if points is None else points[j]) for j in range(rates.shape[1])
    ]
    marks: dict[str, Any] = {"facecolor": style.faint(), "edgecolor": style.strong(), "alpha": 0.3, "linewidth": 0.8}
    ax.add_collection(PolyCollection(outlines, **marks))
    ax.fill([], [], label=f"{interval:.0%} credible region", **marks)


def _draw_known(ax: Axes, x: np.ndarray, y: np.ndarray, known: pd.DataFrame, *, joined: bool) -> None:
    there = known.notna().all(axis=1).to_numpy()
    right, up = 1 - known["specificity"].to_numpy(), known["sensitivity"].to_numpy()
    if joined:
        for j in np.flatnonzero(there):
            ax.plot([x[j], right[j]], [y[j], up[j]], color=style.ACCENT, linewidth=0.7, alpha=0.6, zorder=2)
    marks: dict[str, Any] = (
        {"s": 36, "marker": "x", "linewidth": 1.2} if joined else {"s": 9, "marker": "o", "linewidth": 0, "zorder": 2.8}
    )
    ax.scatter(right[there], up[there], color=style.ACCENT, alpha=1.0 if joined else 0.5, label="known value", **marks)


def _known(actual: pd.DataFrame, fit: Posterior) -> pd.DataFrame:
    """Known sensitivity and specificity of each worker of the fit, NaN where unknown: ``(J, 2)``."""
    columns = ["sensitivity", "specificity"]
    missing = [name for name in columns if name not in actual]
    if missing:
        raise ValueError(f"actual has the columns {list(actual.columns)}; {missing[0]!r} is needed, by worker")
    ids = fit.annotations.workers
    at = ids.index_of(list(actual.index))
    if (at < 0).any():
        raise unknown_worker(list(actual.index)[int(np.argmax(at < 0))], ids)
    values = actual[columns].to_numpy(dtype=float)
    wrong = ~(np.isnan(values) | ((values >= 0) & (values <= 1)))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(
            f"actual, worker {list(actual.index)[row]!r}: {columns[column]} is {values[row, column]}; "
            "a probability from 0 to 1 is needed"
        )
    found = pd.DataFrame(np.nan, index=range(len(ids)), columns=columns)
    found.iloc[at] = values
    return found
