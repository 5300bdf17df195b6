"""HTML as text: all text is escaped, here and nowhere else; only what is an :class:`Html` is written as markup."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

EMPTY = {"img", "meta", "br", "wbr"}  # elements without an end


class Html(str):
    """Markup, which is written as it is; any other string is escaped."""

    __slots__ = ()


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element.

    Args:
        name: of the element.
        children: its content in order; Nones are left out.
        attributes: by name, `_` for `-`, and with one at the end where Python keeps the name for itself (``class_``);
            True stands alone, None and False are left out.
    """
    given = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in EMPTY:
        return Html(f"<{name}{given}>")
    return Html(f"<{name}{given}>{together(children)}</{name}>")


def together(parts: Iterable[object]) -> Html:
    """Parts one after the other; those that are no :class:`Html` are escaped, Nones are left out."""
    return Html("".join(part if isinstance(part, Html) else escape(str(part)) for part in parts if part is not None))


def scrolling(part: Html) -> Html:
    """A part that scrolls sideways by itself where it is wider than the page."""
    return tag("div", part, style="min-width:0;max-width:100%;overflow-x:auto")
