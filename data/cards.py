"""How notebooks show what crowdppl makes: small cards of HTML, in the colours of the notebook, light or dark.

Text and lines take the colour of what is around them, so that nothing depends on a style sheet. Where the page is
narrow, parts stand below each other, and a table that is wider still scrolls in its own part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from itertools import chain, repeat
from typing import TypeVar

import numpy as np

from .markup import Html, scrolling, tag, together

T = TypeVar("T")

BLUE, ORANGE = "#4c8bbf", "#d9822b"  # seen on white and on black
_LINE = "1px solid rgba(128,128,128,0.35)"
_CELL = "padding:2px 12px 2px 0;border:none;background:transparent;color:inherit;vertical-align:top"
_NAME = f"{_CELL};overflow-wrap:anywhere;min-width:4em"  # of any length: what stands beside it stays on the page
_FAINT = "opacity:0.7"
LONGEST = 60  # letters of a name


def never_raising(show: Callable[[T], str]) -> Callable[[T], str]:
    """``_repr_html_`` that shows the object's text where it cannot show its card: a notebook goes on."""

    @wraps(show)
    def shown(self: T) -> str:
        try:
            return show(self)
        except Exception:  # whatever is wrong with what is shown, showing it is not where to say so
            return tag("pre", repr(self))

    return shown


def card(title: str, subtitle: str, *parts: Html | None, warnings: Iterable[str] = (), then: Sequence[str] = ()) -> str:
    """A card: a title with what it is of, parts side by side, what to be warned of, and what to call next.

    Args:
        title: what it is.
        subtitle: its sizes.
        parts: from :func:`facts`, :func:`table` and :func:`histogram`; Nones are left out.
        warnings: sentences.
        then: calls that show more.
    """
    boxes = (scrolling(part) for part in parts if part is not None)
    calls = (part for call in then for part in (" ", tag("code", call, style="margin-right:0.6em")))
    below = tag("div", "more:", *calls, style=f"{_FAINT};margin-top:6px;font-size:90%") if then else None
    head = tag("b", title), " \u00a0", tag("span", subtitle, style=_FAINT)
    return tag(
        "div",
        tag("div", *head, style=f"border-bottom:{_LINE};padding-bottom:3px;margin-bottom:6px"),
        *map(warning, warnings),
        tag("div", *boxes, style="display:flex;flex-wrap:wrap;gap:6px 32px;align-items:flex-start"),
        below,
        style="font-size:90%;line-height:1.4;color:inherit;max-width:60em",
    )


def warning(text: str) -> Html:
    """A sentence to be warned by, in the colour of the text around it, which is seen on any page."""
    return tag("div", f"⚠ {text}", style=f"border-left:3px solid {ORANGE};padding:2px 8px;margin:6px 0")


def facts(pairs: Mapping[str, object]) -> Html:
    """Names with a value each."""
    rows = ([tag("span", name, style=_FAINT), tag("span", value)] for name, value in pairs.items())
    return _table(None, (_row(row, _CELL, _NAME) for row in rows))


def table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]], more: str = "") -> Html:
    """Rows under their heads, with what is left out said below."""
    head = _row([tag("span", name, style=_FAINT) for name in heads], _CELL)
    below = tag("div", more, style=_FAINT) if more else None
    return together([_table(title, [head, *(_row(row, _NAME) for row in rows)]), below])


def bar(share: float, text: str | None = None, color: str = BLUE, width: int = 80) -> Html:
    """A share from 0 to 1 as a bar with its number."""
    if not np.isfinite(share):
        return Html("–")
    filled = width * min(max(float(share), 0.0), 1.0)
    drawn = f"display:inline-block;height:0.65em;border-radius:2px;width:{filled:.0f}px;background:{color}"
    rest = f"display:inline-block;width:{width - filled:.0f}px"
    shown = f"{share:.0%}" if text is None else text
    return tag("span", tag("span", style=drawn), tag("span", style=rest), f" {shown}", style="white-space:nowrap")


def histogram(title: str, counts: Sequence[float] | np.ndarray, low: str, high: str, color: str = BLUE) -> Html:
    """Counts as columns, with what stands at both ends of the axis.

    Args:
        title: what is counted.
        counts: of each column, from the left.
        low: at the left end.
        high: at the right end.
        color: of the columns.
    """
    values = np.asarray(counts, dtype=float)
    tallest, width, height = max(float(values.max(initial=0.0)), 1.0), max(10, 60 // max(len(values), 1)), 44
    columns = (
        tag(
            "rect",
            tag("title", f"{value:,.0f}"),
            **_column(i * width, height, width - 1, value / tallest),
            fill=color,
        )
        for i, value in enumerate(values)
    )
    span = width * len(values)
    axis = tag("path", d=f"M0 {height}.5H{span}", stroke="currentColor", stroke_opacity=0.4)
    ends = f"width:{span}px;display:flex;justify-content:space-between;{_FAINT}"
    return tag(
        "div",
        tag("div", tag("b", title), style="white-space:nowrap;margin-bottom:4px"),
        tag("svg", *columns, axis, width=span, height=height + 1, role="img", aria_label=title),
        tag("div", tag("span", low), tag("span", high), style=ends),
    )


def marked(values: np.ndarray, at: float) -> Html:
    """The spread of values as a small histogram, with a line at one more."""
    ends = np.quantile(values, [0.005, 0.995]) if len(values) else np.zeros(2)
    low, high = min(float(ends[0]), at), max(float(ends[1]), at)
    if not np.isfinite([low, high]).all() or high <= low:
        return Html("–")
    counts, _ = np.histogram(values, 24, (low, high))
    width, height = 5, 22
    columns = (
        tag("rect", **_column(i * width, height, width - 1, n / counts.max()), fill=BLUE, fill_opacity=0.6)
        for i, n in enumerate(counts)
        if n
    )
    place = (at - low) / (high - low) * (24 * width - 2) + 1
    line = tag("path", d=f"M{place:.1f} 0V{height}", stroke=ORANGE, stroke_width=2)
    return tag("svg", *columns, line, width=24 * width, height=height, role="img")


def _column(x: int, height: int, width: int, share: float) -> dict[str, object]:
    """A column that fills a share of the height, from below."""
    return {"x": x, "y": f"{height - height * share:.1f}", "width": width, "height": f"{height * share:.1f}"}


def short(name: object) -> str:
    """A name, its middle left out where it is long: ids often differ only at the end."""
    text = str(name)
    end = LONGEST // 3
    return text if len(text) <= LONGEST else f"{text[: LONGEST - end - 1]}…{text[-end:]}"


def _table(title: str | None, rows: Iterable[Html]) -> Html:
    head = tag("div", tag("b", title)) if title else None
    style = "border-collapse:collapse;border:none;margin:0;background:transparent;color:inherit;font-size:inherit"
    return together([head, tag("table", *rows, style=style)])


def _row(cells: Sequence[object], *styles: str) -> Html:
    """Cells in these styles, the first ones as given and all others plain."""
    made = (cell if isinstance(cell, Html) else short(cell) for cell in cells)
    of_each = chain(styles, repeat(_CELL))
    styled = (tag("td", cell, style=f"{style};text-align:left") for cell, style in zip(made, of_each, strict=False))
    return tag("tr", *styled, style="background:transparent")
