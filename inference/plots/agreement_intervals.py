"""The plot of coefficients of agreement, beside what a fit says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...data.description import count_text
from ..scores.worker_agreement import NAMES, Agreement
from .style import ACCENT, check_kind, clean, faint, legend, new_axes, paper, strong, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_agreement(agreement: Agreement, *, ax: Axes | None = None) -> Axes:
    """Draw the coefficients of agreement with their intervals.

    Where a fit was given, a diamond has the coefficient of the same workers if classes were even, and a band the
    interval of annotations that the fitted story writes again: kappa misleads where the diamond is far from it.

    Args:
        agreement: as :func:`crowdppl.agreement` returns it.
        ax: axes to draw in; by default a new figure.

    Raises:
        TypeError: something else is given.

    Examples:
        >>> import crowdppl as cp
        >>> ax = cp.plot_agreement(cp.agreement(cp.load_dataset("anesthesia")))
        >>> [text.get_text() for text in ax.get_yticklabels()][:2]
        ['observed agreement', "Krippendorff's alpha"]
    """
    check_kind(agreement, Agreement, "cp.agreement")
    table = agreement.table[agreement.table["estimate"].notna()]
    at = range(len(table))
    ax = new_axes(ax, 6.2, 1.4 + 0.36 * len(table))
    if "expected" in table:
        ax.use_sticky_edges = False  # else the axis ends where the first band begins
        ax.barh(
            at, table["expected_high"] - table["expected_low"], left=table["expected_low"], height=0.5, color=faint(),
            alpha=0.5, label="of annotations that the story writes again",
        )  # fmt: skip
    ax.hlines(at, table["low"], table["high"], color=strong(), linewidth=2, alpha=0.6)
    observed = f"observed, {agreement.interval:.0%} interval, {count_text(agreement.n_tasks, 'task')}"
    ax.scatter(table["estimate"], at, s=28, color=strong(), zorder=3, label=observed)
    if "even_classes" in table:
        ax.scatter(
            table["even_classes"], at, s=34, marker="D", facecolor=paper(), edgecolor=ACCENT, zorder=2,
            label="if classes were even",
        )  # fmt: skip
    ax.set_yticks(at, [NAMES[name] for name in table.index])
    ax.set_ylim(len(table) - 0.5, -0.5)
    ax.set_xlabel("1: all agree; 0 of a coefficient: as often as by chance")
    clean(ax, grid="x")
    title(ax, "Coefficients of agreement", pad=9 + 13 * len(ax.get_legend_handles_labels()[0]))
    legend(ax, loc="lower right", bbox_to_anchor=(1, 0.99), borderaxespad=0, fontsize=7.5)
    return ax
