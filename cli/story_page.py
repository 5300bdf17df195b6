"""One story on the terminal: its density, its hyperparameters with defaults, and the options of the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from ..inference.described.describe_story import describe_story
from .terminal import make_table

if TYPE_CHECKING:
    from rich.console import Console

PYTHON_ONLY = ("truth_prior", "quantities")  # what no text can say


def show_story(name: str, console: Console) -> None:
    """Print what a story or a baseline assumes and what may be set.

    Raises:
        UnknownNameError: there is no such story or baseline.
    """
    story = describe_story(name)
    also = f" (also {', '.join(story.aliases)})" if story.aliases else ""
    console.print(Text.assemble((story.name, "bold"), (also, "dim")))
    console.print(story.says)
    if story.density:
        console.print(Padding(Text("\n".join(story.density)), (1, 0, 1, 4)))
    if story.note:
        console.print(Text(story.note + "\n"))
    for title, settings in story.titled:
        table = make_table(f"{title}, as --set NAME=VALUE", "name", "default", "what it is")
        for each in settings:
            if each.name not in PYTHON_ONLY:
                table.add_row(Text(each.name, style="cyan"), Text(each.default), Text(each.about))
        console.print(table)
