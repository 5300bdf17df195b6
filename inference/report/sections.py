"""Sections of the page: a heading over a template, which the table of contents links by its anchor."""

from dataclasses import dataclass

from markupsafe import Markup

from .downloads import download
from .pictures import picture
from .tables import table
from .templates import render


@dataclass(frozen=True)
class Section:
    """A section of the page.

    Args:
        anchor: by which it is linked.
        title: its heading.
        content: what stands below the heading.
    """

    anchor: str
    title: str
    content: Markup

    @property
    def html(self) -> Markup:
        """The section with its heading."""
        return render("section", section=self)


def section(anchor: str, title: str, **values: object) -> Section:
    """A section by the template of its anchor's name, which may call ``table``, ``picture`` and ``download``."""
    return Section(anchor, title, render(anchor, table=table, picture=picture, download=download, **values))
