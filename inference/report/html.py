"""Elements of the report's page, made of :mod:`crowdppl.data.markup`, which escapes all text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...data.markup import Html, tag, together


def paragraph(*children: object, **attributes: object) -> Html:
    """A paragraph."""
    return tag("p", *children, **attributes)


def facts(pairs: Iterable[tuple[object, object]], *, wide: bool = False) -> Html:
    """A list of names with a value for each.

    Args:
        pairs: names and values.
        wide: whether each value has a line of its own.
    """
    rows = (tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs)
    return tag("dl", *rows, class_="facts wide" if wide else "facts")


def warning(*children: object) -> Html:
    """A paragraph that is marked as a warning."""
    return tag("p", tag("span", "⚠", aria_hidden="true"), " ", *children, class_="warning", role="note")


def individuals(what: str) -> Html:
    """A paragraph that marks what describes single workers, and says how a page is made that does not."""
    return tag(
        "p",
        f"{what} describes individual workers. Before you pass the page on: ",
        tag("code", "fit.report(path, workers='hash', key=…)"),
        " names them by pseudonyms, and ",
        tag("code", "workers='drop'"),
        " leaves them out.",
        class_="note individuals",
    )


@dataclass(frozen=True)
class Section:
    """A section of the page, which the table of contents links by its anchor."""

    anchor: str
    title: str
    content: Html

    @property
    def html(self) -> Html:
        """The section with its heading."""
        named = f"{self.anchor}-title"
        return tag("section", tag("h2", self.title, id=named), self.content, id=self.anchor, aria_labelledby=named)


def section(anchor: str, title: str, *children: object) -> Section:
    """A section of these children; Nones are left out."""
    return Section(anchor, title, together(child for child in children if child is not None))
