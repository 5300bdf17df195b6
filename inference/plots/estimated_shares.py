"""The plot of accuracy and prevalence as gold labels estimate them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ...data.description import count_text
from ..scores.estimates import Estimate
from .style import PALETTE, clean, legend, new_axes, palette, paper, short, strong, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMED = 30  # classes at the most, those of the greatest estimate


def plot_estimate(estimates: Estimate | Mapping[str, Estimate], *, ax: Axes | None = None) -> Axes:
    """Draw the estimated accuracy and prevalences with their intervals, beside what the label probabilities say.

    Args:
        estimates: as :func:`crowdppl.estimate` returns it, or several by name, such as one for each method; of the same
            classes.
        ax: axes to draw in; by default a new figure.

    Raises:
        TypeError: something else is given.
        ValueError: none is given, more than seven are, or they are of different classes.

    Examples:
        >>> import pandas as pd
        >>> import crowdppl as cp
        >>> probabilities = pd.DataFrame({"cat": [0.9, 0.8, 0.3] * 20, "dog": [0.1, 0.2, 0.7] * 20})
        >>> gold = {task: "dog" if task % 3 else "cat" for task in range(30)}
        >>> ax = cp.plot_estimate(cp.estimate(probabilities, gold))
        >>> [text.get_text() for text in ax.get_yticklabels()]
        ['accuracy', 'cat', 'dog']
    """
    named = dict(estimates) if isinstance(estimates, Mapping) else {"estimate": estimates}
    for name, one in named.items():
        if not isinstance(one, Estimate):
            raise TypeError(
                f"{name!r} is a {type(one).__name__}; what cp.estimate returns is needed, or several by name"
            )
    if not 1 <= len(named) <= len(PALETTE):
        raise ValueError(f"{len(named)} estimates: 1 to {len(PALETTE)} can be told apart; give {{name: estimate, …}}")
    first = next(iter(named.values()))
    for name, one in named.items():
        if not one.table.index.equals(first.table.index):
            raise ValueError(
                f"the estimate {name!r} is of other classes than the first; estimates of one fit are needed"
            )
    kept = first.prevalence["estimate"].nlargest(NAMED).index
    classes = [name for name in first.prevalence.index if name in kept]
    keys = [("accuracy", "labels"), *(("prevalence", name) for name in classes)]
    ax = new_axes(ax, 6.2, 1.4 + 0.36 * len(keys))
    for i, (name, one) in enumerate(named.items()):
        table = one.table.loc[keys]
        at = [row + (i - (len(named) - 1) / 2) * 0.6 / len(named) for row in range(len(keys))]
        colour = strong() if len(named) == 1 else palette()[i]
        text = f"{short(name, 24)}, {one.interval:.0%} interval, {count_text(one.n_gold, 'gold label')}"
        ax.hlines(at, table["low"], table["high"], color=colour, linewidth=2, alpha=0.6)
        ax.scatter(table["estimate"], at, s=28, color=colour, zorder=3, label=text)
    said = first.table.loc[keys]["without_gold"]
    ax.scatter(
        said, range(len(keys)), s=34, marker="D", facecolor=paper(), edgecolor="0.4", zorder=2, label="without gold"
    )
    ax.set_yticks(range(len(keys)), ["accuracy", *(short(name, 24) for name in classes)])
    for label in ax.get_yticklabels():
        label.set_parse_math(False)
    ax.set_ylim(len(keys) - 0.5, -0.5)
    ax.set_xlabel("share of the labels that are right, and of tasks of each class")
    clean(ax, grid="x")
    lines = -(-(len(named) + 1) // 2)
    n_classes = len(first.prevalence)
    of = "the classes" if len(classes) == n_classes else f"the {len(classes)} most frequent of {n_classes:,} classes"
    title(ax, f"Accuracy of the labels and prevalence of {of}", pad=9 + 13 * lines)
    legend(ax, loc="lower center", bbox_to_anchor=(0.5, 0.99), borderaxespad=0, fontsize=7.5, ncols=2)
    return ax
