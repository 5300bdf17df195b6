"""The look that all plots have in common: one hue, few lines, and names that fit."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal
from unicodedata import east_asian_width

import numpy as np

from ...data.description import count_text
from ...data.id_text import name_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.colors import Colormap

COLOURS = "Blues"  # one hue: it is read by lightness alone
STRONG = {"light": "#08519c", "dark": "#8cc4f2"}  # of the data, by the page
FAINT = {"light": "#9ecae1", "dark": "#2a5f8f"}  # of intervals and of what is less important
ACCENT = "#d55e00"  # what a reader should see first; told from the blues by colour-blind readers too
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#e69f00", "#56b4e9")  # Okabe & Ito 2008
LOGARITHMIC = "(log scale)"  # beside the name of an axis or of colours
LINES = ("-", "--", "-.", ":")
TITLE = 11  # points
ROOM = 0.92  # of its panel's width, that a title takes at the most
GAP = 3  # points between names beside points, at the least
SMALL = 8


def new_axes(ax: Axes | None, width: float, height: float) -> Axes:
    """The axes that were given, or those of a new figure of this width and height in inches."""
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(width, height), layout="constrained")[1]


def new_grid(
    n: int, columns: int, size: tuple[float, float], around: tuple[float, float], layout: Any = "constrained"
) -> np.ndarray:
    """Axes of a new figure, in rows of as many columns.

    Args:
        columns: at the most.
        size: width and height of each, in inches.
        around: further width and height of the figure.
        layout: of the figure.
    """
    import matplotlib.pyplot as plt

    columns = min(columns, n)
    rows = -(-n // columns)
    figsize = (size[0] * columns + around[0], size[1] * rows + around[1])
    grid = plt.subplots(rows, columns, figsize=figsize, layout=layout, squeeze=False)[1].ravel()
    for spare in grid[n:]:
        spare.remove()
    return grid[:n]


def check_kind(value: Any, kind: type, source: str) -> None:
    """Refuse to draw what is of another kind.

    Args:
        value: what a plot was given.
        kind: of what it draws.
        source: the call that returns it, for the message.

    Raises:
        TypeError: it is of another kind.
    """
    if not isinstance(value, kind):
        raise TypeError(f"what {source} returns is needed, got a {type(value).__name__}")


def given_axes(axes: Any, ax: Any, needed: int | None, what: str) -> np.ndarray | None:
    """The axes that were given to a plot of several panels, in a row and as many as are needed; None where none were.

    Args:
        axes: several.
        ax: one, in the place of several where one panel is drawn.
        needed: the number of panels; None for as many as there are axes.
        what: is drawn, for messages.

    Raises:
        ValueError: there are too few; the message says for ``what``. Or both are given.
    """
    if axes is not None and ax is not None:
        raise ValueError("axes=…, ax=…: give one of them")
    if axes is None and ax is None:
        return None
    flat = np.ravel(np.asarray(ax if axes is None else axes, dtype=object))
    if needed is None:
        return flat
    if len(flat) < needed:
        more = f"; give axes=, a list of {needed}" if axes is None else ""
        raise ValueError(f"{'ax' if axes is None else 'axes'}={len(flat)} axes: the {what} need one each{more}")
    return flat[:needed]


def axes_beside(ax: Axes, *, side: Literal["right", "below"], gap: float, size: float, **options: Any) -> Axes:
    """Axes on a side of others, as long as that side and so many inches deep, whatever the layout makes of these.

    Args:
        ax: the others.
        side: of them.
        gap: between the two, in inches.
        size: depth in inches.
        options: of ``Axes.inset_axes``, such as ``sharex``.
    """
    from matplotlib.transforms import Bbox

    def locate(inset: Any, renderer: Any) -> Bbox:
        box, dpi = ax.bbox, ax.figure.dpi
        if side == "right":
            found = Bbox.from_bounds(box.x1 + gap * dpi, box.y0, size * dpi, box.height)
        else:
            found = Bbox.from_bounds(box.x0, box.y0 - (gap + size) * dpi, box.width, size * dpi)
        return found.transformed(ax.figure.transSubfigure.inverted())

    # A size in inches and not in shares of the axes, since these shrink as room is made for what is beside them.
    inset = ax.inset_axes((0, 0, 1, 1), **options)
    inset.set_axes_locator(locate)
    return inset


def ink(share: float) -> tuple[float, float, float, float]:
    """The colour of text in the style that is set, so faint that this share of it is left: seen on dark pages, too."""
    from matplotlib import rcParams
    from matplotlib.colors import to_rgba

    return to_rgba(rcParams["text.color"], share)


def page() -> Literal["light", "dark"]:
    """Return "light" where the current style has a light page under dark text, else "dark"."""
    return "dark" if np.mean(ink(1.0)[:3]) > 0.5 else "light"


def strong() -> str:
    """The colour of data in the style that is set."""
    return STRONG[page()]


def faint() -> str:
    """The colour of intervals, and of what is less important, in the style that is set."""
    return FAINT[page()]


def paper() -> Any:
    """The colour behind the data in the style that is set, by which marks are kept apart."""
    from matplotlib import rcParams

    return rcParams["axes.facecolor"]


def palette() -> tuple[Any, ...]:
    """Colours that are told apart in the style that is set: black is that of its text."""
    return tuple(ink(1.0) if colour == "#000000" else colour for colour in PALETTE)


def clean(ax: Axes, *, grid: Literal["x", "y", "both"] | None = None, hidden: Sequence[str] = ("top", "right")) -> None:
    """Take away lines that say nothing, and lay a faint grid across ``grid``, x, y or both, behind the data."""
    ax.spines[list(hidden)].set_visible(False)
    if grid is not None:
        ax.grid(axis=grid, color=ink(0.1), linewidth=0.8)
        ax.set_axisbelow(True)


def name_rows(ax: Axes, names: Iterable[object], width: int, size: float) -> None:
    """Write a name beside each row, cut to a width in letters, in points; the rows are numbered from 0."""
    shown = [short(name, width) for name in names]
    ax.set_yticks(range(len(shown)), shown, fontsize=size, parse_math=False)
    ax.tick_params(axis="y", length=0)
    clean(ax, grid="x", hidden=("top", "right", "left"))


def whole_numbers(axis: Axis) -> None:
    """Ticks at whole numbers alone."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True))


def title(ax: Axes, text: str, size: float = TITLE, **options: Any) -> None:
    """A title that is written as it is, dollars and all, in several lines where it is wider than its panel."""
    place = ax.get_subplotspec()
    panels = 1 if place is None else place.get_gridspec().ncols
    _in_lines(ax.set_title(text, fontsize=size, parse_math=False, **options), panels)


def figure_title(figure: Any, text: str) -> None:
    """A title of all panels, written as that of one is."""
    _in_lines(figure.suptitle(text, fontsize=TITLE, parse_math=False), 1)


def _in_lines(title: Any, panels: int) -> None:
    """Break the lines of a title that is wider than its share of a figure with so many panels side by side."""
    lines = title.get_text().splitlines()
    room, width = ROOM * title.figure.bbox.width / panels, title.get_window_extent().width
    if width > room:
        letters = max(int(room / width * max(map(len, lines))), 1)
        title.set_text("\n".join(fill(line, letters) for line in lines))


def legend(ax: Axes, **options: Any) -> None:
    """A legend without a frame, whose names are written as they are."""
    made = ax.legend(frameon=False, **({"fontsize": SMALL, "title_fontsize": SMALL} | options))
    for text in made.get_texts():
        text.set_parse_math(False)


def colour_bar(image: Any, axes: Any, label: str, **options: Any) -> None:
    """A bar beside the axes that says what the colours stand for."""
    first = np.ravel(np.asarray(axes, dtype=object))[0]
    bar = first.figure.colorbar(image, ax=axes, aspect=20, fraction=0.03, pad=0.02, **options)
    bar.set_label(label, fontsize=9)
    bar.outline.set_visible(False)


def density_colours() -> Colormap:
    """The hue of all plots, further from that of the page for more units; a single unit is seen on it."""
    import matplotlib
    from matplotlib.colors import LinearSegmentedColormap

    ends = (0.33, 1.0) if page() == "light" else (0.95, 0.45)
    shades = matplotlib.colormaps[COLOURS](np.linspace(*ends, 128))
    return LinearSegmentedColormap.from_list("counts", list(shades))


def short(name: object, width: int) -> str:
    """A name on one line, its middle left out where it is long: ids often differ only at the end."""
    text = " ".join(name_text(name).split())
    if columns(text) <= width:
        return text
    return f"{_start(text, width - width // 3 - 1)}…{_start(text[::-1], width // 3)[::-1]}"


def columns(text: str) -> int:
    """Return a text's width in letters; Chinese, Japanese and Korean letters count as two."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def _start(text: str, width: int) -> str:
    """The beginning of a text, as wide as this at the most."""
    wide = np.cumsum([columns(letter) for letter in text])
    return text[: int((wide <= width).sum())]


def every(n: int, noun: str) -> str:
    """All n of a kind: the only task, all 2,000 tasks."""
    return f"the only {noun}" if n == 1 else f"all {count_text(n, noun)}"


def share(value: float) -> str:
    """A share in per cent that is not rounded to none or all: 0.4 %, 99.7 %."""
    if value in (0, 1) or 0.01 <= value <= 0.99:
        return f"{value:.0%}"
    return "<0.1%" if value < 0.001 else ">99.9%" if value > 0.999 else f"{value:.1%}"


def signed(value: float, *, plus: bool = True, decimals: int = 1) -> str:
    """A number with some decimals, with the minus that axes have."""
    return f"{value:{'+' if plus else ''},.{decimals}f}".replace("-", "−")


def name_points(
    ax: Axes,
    x: Iterable[float],
    y: Iterable[float],
    names: Iterable[Hashable],
    avoid: np.ndarray | None = None,
    *,
    radius: float = 0.0,
) -> None:
    """Write names beside points, the first ones first, and leave out those that would lie on another or outside.

    Args:
        ax: axes whose limits are final.
        x: of the points, in data's units.
        y: as ``x``.
        avoid: other points that no name may lie on, ``(n, 2)``.
        radius: of the marks of all these points, from which names keep off, in points.
    """
    points = np.column_stack([np.asarray(x, dtype=float), np.asarray(y, dtype=float)])
    if not len(points):
        return
    ax.figure.canvas.figure.draw_without_rendering()  # lays the figure out
    room, taken = ax.get_window_extent(), [text.get_window_extent() for text in ax.texts]
    dots = ax.transData.transform(points if avoid is None else np.concatenate([points, avoid]))
    for point, name in zip(points, names, strict=True):
        for right, above, ha, va in _BESIDE:
            text = ax.annotate(
                short(name, 22),
                point,
                (right, above),
                textcoords="offset points",
                ha=ha,
                va=va,
                fontsize=7,
                color=ink(0.85),
                in_layout=False,
                parse_math=False,
            )
            box = text.get_window_extent()
            inside = room.x0 <= box.x0 and box.x1 <= room.x1 and room.y0 <= box.y0 and box.y1 <= room.y1
            roomy = box.padded(GAP * ax.figure.dpi / 72)
            if (
                inside
                and not any(roomy.overlaps(other) for other in taken)
                and not box.padded(radius * ax.figure.dpi / 72).count_contains(dots)
            ):
                taken.append(box)
                break
            text.remove()


_BESIDE = (
    (6, 0, "left", "center"),
    (-6, 0, "right", "center"),
    (0, 6, "center", "bottom"),
    (0, -6, "center", "top"),
    (5, 5, "left", "bottom"),
    (-5, 5, "right", "bottom"),
    (5, -5, "left", "top"),
    (-5, -5, "right", "top"),
)
