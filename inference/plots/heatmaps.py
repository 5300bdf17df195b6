"""Confusion matrices as heat maps: a row for each true class, a column for each annotation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..fitted.intervals import of_draws
from .style import COLOURS, TITLE, colour_bar, columns, ink, new_grid, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_CELLS = 10  # classes up to which the cells hold numbers
MAX_NAMES = 24  # classes up to which all are named on an axis
NEAR = 1  # distance of the next class
PAD = 0.08  # inches above and below what stands in a figure
CELL = 0.48  # inches of a cell that holds a number, at the least


def draw_confusions(
    confusions: np.ndarray,
    titles: Sequence[str],
    classes: Sequence[object],
    *,
    categories: Sequence[object] | None = None,
    distance: np.ndarray,
    possible: np.ndarray | None = None,
    around: np.ndarray | None,
    interval: float,
    heading: str,
    axes: np.ndarray | None,
) -> np.ndarray:
    """Draw the mean of each confusion matrix over its draws, with the bounds of the intervals in the cells.

    Args:
        confusions: draws of n confusion matrices, ``(chain, draw, n, K, L)``.
        titles: above the n matrices.
        classes: names of the K classes, which are the rows.
        categories: names of the L categories of annotations, which are the columns; the classes by default.
        distance: between the classes, ``(K, K)``; a line parts the cells of the next classes from those further away.
        possible: which categories a task of each class may be given, ``(K, K)``; what is not so, of another question,
            stays blank. None where all may be.
        around: draws of them that say how uncertain they are; None to write no intervals.
        interval: mass of the equal-tailed credible intervals.
        heading: title of a new figure.
        axes: n axes to draw in, without heading and colour bar around them; None for a new figure.

    Returns:
        The n axes.
    """
    means = confusions.mean((0, 1))
    bounds = None if around is None else of_draws(around, interval, means)
    truths = [short(name, 18) for name in classes]
    names = truths if categories is None else [short(name, 18) for name in categories]
    n_columns = _n_columns(len(means), len(names))
    drawn = _new_grid(titles, n_columns, names) if axes is None else axes
    for i, ax in enumerate(drawn):
        blank = np.zeros(means[i].shape, bool)
        if possible is not None:
            blank[:, : possible.shape[1]] = ~possible
        image = ax.imshow(np.ma.masked_where(blank, means[i]), cmap=COLOURS, vmin=0, vmax=1)
        _part_the_far(ax, distance > NEAR)
        if len(names) <= MAX_CELLS:
            _write_cells(ax, means[i], None if bounds is None else bounds[:, i], blank)
        alone = axes is not None
        _name_classes(ax, names, truths, x=alone or i + n_columns >= len(means), y=alone or i % n_columns == 0)
        ax.set_title(titles[i], fontsize=8, linespacing=1.4, parse_math=False)
    if axes is None:
        figure = drawn[0].figure
        written = bounds is not None and len(names) <= MAX_CELLS
        note = f"\nsmall: bounds of the {interval:.0%} credible interval" if written else ""
        shrink = min(1.0, 3.0 / figure.get_figheight())
        colour_bar(image, list(drawn), f"P(annotation | true class){note}", shrink=shrink)
        figure.supxlabel("annotation", fontsize=10)
        figure.supylabel("true class", fontsize=10)
        figure.suptitle(heading, fontsize=TITLE, parse_math=False)
        if (layout := figure.get_layout_engine()) is not None:
            layout.set(h_pad=PAD)
    return drawn


def _n_columns(n_matrices: int, n_classes: int) -> int:
    """In how many columns the heat maps stand."""
    widest = 5 if n_classes <= 5 else 3 if n_classes <= MAX_CELLS else 4
    return n_matrices if n_matrices <= widest else min(widest, int(np.ceil(np.sqrt(n_matrices))) + 1)


def _new_grid(titles: Sequence[str], n_columns: int, names: Sequence[str]) -> np.ndarray:
    """Axes of a new figure, a panel for each matrix, large enough for its title and the numbers in its cells."""
    panel = max(1.9, CELL * len(names)) if len(names) <= MAX_CELLS else 3.2
    n_lines = 1 + max(title.count("\n") for title in titles)
    longest = 0.065 * max(map(columns, names))
    below = 0.1 if _fit_side_by_side(names) else 0.7 * longest
    size = (panel + 0.12, panel + 0.16 + 0.16 * n_lines)
    return new_grid(len(titles), n_columns, size, (1.5 + longest, 0.7 + below))


def _part_the_far(ax: Axes, is_far: np.ndarray) -> None:
    """Draw a line between the cells that are far from the diagonal, ``(K, K)`` bool, and those that are not."""
    right = np.argwhere(is_far[:, 1:] != is_far[:, :-1])
    below = np.argwhere(is_far[1:] != is_far[:-1])
    lines = [((x + 0.5, x + 0.5), (y - 0.5, y + 0.5)) for y, x in right]
    for x, y in lines + [((x - 0.5, x + 0.5), (y + 0.5, y + 0.5)) for y, x in below]:
        ax.plot(x, y, color=ink(0.45), linewidth=1.0, solid_capstyle="projecting", scalex=False, scaley=False)


def _write_cells(ax: Axes, means: np.ndarray, bounds: np.ndarray | None, blank: np.ndarray) -> None:
    """Write each probability into its cell, and the bounds of its interval below it; nothing where it is blank."""
    large, small = (9.0, 6.3) if len(means) <= 5 else (8.0, 5.8)
    for (k, given), p in np.ndenumerate(means):
        if blank[k, given]:
            continue
        lines = [(_decimals(p), large, 0.0)]
        if bounds is not None:
            low, high = (_decimals(float(bound)) for bound in bounds[:, k, given])
            lines = [(_decimals(p), large, 0.3 * large), (f"{low}–{high}", small, -0.75 * large)]
        for text, fontsize, rise in lines:
            ax.annotate(
                text,
                (given, k),
                (0, rise),
                textcoords="offset points",
                ha="center",
                va="center",
                fontsize=fontsize,
                color="white" if p > 0.55 else "#1a1a1a" if p >= 0.005 else "0.6",
                in_layout=False,
            )


def _decimals(value: float) -> str:
    """Two decimals without the zero before the point: .07, 1.00."""
    return f"{value:.2f}".removeprefix("0")


def _fit_side_by_side(names: Sequence[str]) -> bool:
    """Return whether the names are short enough to stand below a heat map without a turn."""
    return max(map(columns, names)) <= (5 if len(names) <= 5 else 2)


def _name_classes(ax: Axes, names: Sequence[str], truths: Sequence[str], *, x: bool, y: bool) -> None:
    ticks, shown = _ticks(names)
    rows, of_rows = _ticks(truths)
    font: dict[str, Any] = {"fontsize": 8 if len(names) <= MAX_CELLS else 6, "parse_math": False}
    turned: dict[str, Any] = (
        {} if _fit_side_by_side(shown) else {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    )
    ax.set_xticks(ticks, shown if x else [""] * len(shown), **font, **turned)
    ax.set_yticks(rows, of_rows if y else [""] * len(of_rows), **font)
    ax.tick_params(length=0)
    ax.spines[:].set(color="0.8", linewidth=0.6)


def _ticks(names: Sequence[str]) -> tuple[range, list[str]]:
    """The positions of the classes that are named along an axis, and their names."""
    ticks = range(0, len(names), -(-len(names) // MAX_NAMES))
    return ticks, [names[k] for k in ticks]
