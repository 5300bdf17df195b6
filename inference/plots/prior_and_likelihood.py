"""The plot of how much prior and likelihood each move what is inferred."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..checks.power_scaling import CONFLICT, NOTHING, THRESHOLD
from .style import ACCENT, clean, faint, legend, name_points, new_axes, strong, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = ("o", "s", "^", "D")
NAMED = 20  # points with a diagnosis that are named, as far as there is room: those that the prior moves most


def plot_prior_sensitivity(sensitivity: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw each quantity's sensitivity to the prior against that to the likelihood, coloured by the diagnosis.

    Those with a diagnosis are named: the worker or the class.

    Args:
        sensitivity: as :func:`crowdppl.prior_sensitivity` returns it.
        ax: axes to draw in; by default a new figure.

    Raises:
        TypeError: `sensitivity` is no such frame.

    Examples:
        >>> import crowdppl as cp
        >>> annotations = cp.load_dataset("anesthesia")
        >>> fit = cp.fit("dawid_skene", annotations, method="svi", draws=400, progress=False)
        >>> ax = cp.plot_prior_sensitivity(cp.prior_sensitivity(fit))
        >>> ax.get_xlabel()
        'sensitivity to the prior'
    """
    if not isinstance(sensitivity, pd.DataFrame) or not {"prior", "likelihood", "diagnosis"} <= set(sensitivity):
        raise TypeError("the frame of cp.prior_sensitivity(fit) is needed")
    ax = new_axes(ax, 5.5, 4.5)
    colours = sensitivity["diagnosis"].map({NOTHING: faint(), CONFLICT: ACCENT}).fillna(strong())
    for marker, (quantity, rows) in zip(MARKERS, sensitivity.groupby(level="quantity", sort=False), strict=False):
        shown = colours.loc[rows.index].to_list()
        label = str(quantity).replace("_", " ")
        ax.scatter(rows["prior"], rows["likelihood"], s=36, marker=marker, color=shown, edgecolor="0.35", linewidth=0.5)
        ax.scatter([], [], s=26, marker=marker, color="0.5", label=label)
    for diagnosis in [name for name in sensitivity["diagnosis"].unique() if name != NOTHING]:
        colour = ACCENT if diagnosis == CONFLICT else strong()
        ax.scatter([], [], s=26, marker="o", color=colour, label=diagnosis)
    ax.axvline(THRESHOLD, color="0.6", linewidth=0.8, linestyle="--", label=f"threshold: {THRESHOLD:g}")
    ax.axhline(THRESHOLD, color="0.6", linewidth=0.8, linestyle="--")
    ax.set_xlabel("sensitivity to the prior")
    ax.set_ylabel("sensitivity to the likelihood")
    ax.locator_params(nbins=6)
    clean(ax, grid="both")
    counted = np.count_nonzero(sensitivity["diagnosis"] == CONFLICT)
    title(ax, f"Prior-data conflict in {counted:,} of {len(sensitivity):,} quantities")
    legend(ax, fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
    diagnosed = sensitivity[sensitivity["diagnosis"] != NOTHING].sort_values("prior", ascending=False).head(NAMED)
    names = diagnosed.index.get_level_values("of")
    points = sensitivity[["prior", "likelihood"]].to_numpy()
    name_points(ax, diagnosed["prior"], diagnosed["likelihood"], names, points, radius=3)
    return ax
