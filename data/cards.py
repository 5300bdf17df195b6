"""How notebooks show what crowdppl makes: small cards of HTML, in the colours of the notebook, light or dark.

Text and lines take the colour of what is around them, so that nothing depends on a style sheet. Every text is escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from html import escape
from typing import TypeVar

import numpy as np

T = TypeVar("T")

BLUE, ORANGE = "#4c8bbf", "#d9822b"  # seen on white and on black
_LINE = "1px solid rgba(128,128,128,0.35)"
_CELL = "padding:2px 12px 2px 0;border:none;background:transparent;color:inherit;vertical-align:top"
_FAINT = "opacity:0.7"
LONGEST = 60  # letters of a name


class Markup(str):
    """HTML, which is written as it is; any other text is escaped."""

    __slots__ = ()


def never_raising(show: Callable[[T], str]) -> Callable[[T], str]:
    """``_repr_html_`` that shows the object's text where it cannot show its card: a notebook goes on."""

    @wraps(show)
    def shown(self: T) -> str:
        try:
            return show(self)
        except Exception:  # whatever is wrong with what is shown, showing it is not where to say so
            return f"<pre>{escape(repr(self))}</pre>"

    return shown


def card(
    title: str, subtitle: str, *parts: Markup | None, warnings: Iterable[str] = (), then: Sequence[str] = ()
) -> str:
    """A card: a title with what it is of, parts side by side, what to be warned of, and what to call next.

    Args:
        title: what it is.
        subtitle: its sizes.
        parts: from :func:`facts`, :func:`table` and :func:`histogram`; Nones are left out.
        warnings: sentences.
        then: calls that show more.
    """
    boxes = "".join(f'<div style="min-width:0">{part}</div>' for part in parts if part is not None)
    said = "".join(
        f'<div style="border-left:3px solid {ORANGE};padding:2px 8px;margin:6px 0">⚠ {escape(text)}</div>'
        for text in warnings
    )
    calls = " &nbsp; ".join(f"<code>{escape(call)}</code>" for call in then)
    foot = f'<div style="{_FAINT};margin-top:6px;font-size:90%">more: {calls}</div>' if then else ""
    return (
        '<div style="font-size:90%;line-height:1.4;color:inherit;max-width:60em">'
        f'<div style="border-bottom:{_LINE};padding-bottom:3px;margin-bottom:6px"><b>{escape(title)}</b>'
        f' &nbsp;<span style="{_FAINT}">{escape(subtitle)}</span></div>{said}'
        f'<div style="display:flex;flex-wrap:wrap;gap:6px 32px;align-items:flex-start">{boxes}</div>{foot}</div>'
    )


def facts(pairs: Mapping[str, object]) -> Markup:
    """Names with a value each."""
    rows = (_row([Markup(f'<span style="{_FAINT}">{escape(name)}</span>'), value]) for name, value in pairs.items())
    return _table("", rows)


def table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]], more: str = "") -> Markup:
    """Rows under their heads, with what is left out said below."""
    head = _row([Markup(f'<span style="{_FAINT}">{escape(name)}</span>') for name in heads])
    below = f'<div style="{_FAINT}">{escape(more)}</div>' if more else ""
    return Markup(_table(title, [head, *map(_row, rows)]) + below)


def bar(share: float, text: str | None = None, color: str = BLUE, width: int = 80) -> Markup:
    """A share from 0 to 1 as a bar with its number."""
    if not np.isfinite(share):
        return Markup("–")
    filled = width * min(max(float(share), 0.0), 1.0)
    drawn = f"display:inline-block;height:0.65em;border-radius:2px;width:{filled:.0f}px;background:{color}"
    rest = f"display:inline-block;width:{width - filled:.0f}px"
    shown = f"{share:.0%}" if text is None else text
    return Markup(f'<span style="{drawn}"></span><span style="{rest}"></span> {escape(shown)}')


def histogram(title: str, counts: Sequence[float] | np.ndarray, low: str, high: str, color: str = BLUE) -> Markup:
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
    columns = "".join(
        f'<rect x="{i * width}" y="{height - height * value / tallest:.1f}" width="{width - 1}" '
        f'height="{height * value / tallest:.1f}" fill="{color}"><title>{value:,.0f}</title></rect>'
        for i, value in enumerate(values)
    )
    span = width * len(values)
    axis = f'<path d="M0 {height}.5H{span}" stroke="currentColor" stroke-opacity="0.4"/>'
    ends = f'<div style="width:{span}px;display:flex;justify-content:space-between;{_FAINT}"><span>{escape(low)}</span>'
    return Markup(
        f'<div><div style="white-space:nowrap;margin-bottom:4px"><b>{escape(title)}</b></div>'
        f'<svg width="{span}" height="{height + 1}" role="img" aria-label="{escape(title)}">{columns}{axis}</svg>'
        f"{ends}<span>{escape(high)}</span></div></div>"
    )


def marked(values: np.ndarray, at: float) -> Markup:
    """The spread of values as a small histogram, with a line at one more."""
    ends = np.quantile(values, [0.005, 0.995]) if len(values) else np.zeros(2)
    low, high = min(float(ends[0]), at), max(float(ends[1]), at)
    if not np.isfinite([low, high]).all() or high <= low:
        return Markup("–")
    counts, _ = np.histogram(values, 24, (low, high))
    width, height = 5, 22
    columns = "".join(
        f'<rect x="{i * width}" y="{height * (1 - n / counts.max()):.1f}" width="{width - 1}" '
        f'height="{height * n / counts.max():.1f}" fill="{BLUE}" fill-opacity="0.6"/>'
        for i, n in enumerate(counts)
        if n
    )
    place = (at - low) / (high - low) * (24 * width - 2) + 1
    line = f'<path d="M{place:.1f} 0V{height}" stroke="{ORANGE}" stroke-width="2"/>'
    return Markup(f'<svg width="{24 * width}" height="{height}" role="img">{columns}{line}</svg>')


def short(name: object) -> str:
    """A name, cut where it is long."""
    text = str(name)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _table(title: str, rows: Iterable[str]) -> Markup:
    head = f"<div><b>{escape(title)}</b></div>" if title else ""
    style = "border-collapse:collapse;border:none;margin:0;background:transparent;color:inherit;font-size:inherit"
    return Markup(f'{head}<table style="{style}">{"".join(rows)}</table>')


def _row(cells: Sequence[object]) -> str:
    made = (cell if isinstance(cell, Markup) else escape(short(cell)) for cell in cells)
    shown = "".join(f'<td style="{_CELL};text-align:left">{cell}</td>' for cell in made)
    return f'<tr style="background:transparent">{shown}</tr>'
