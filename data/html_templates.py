"""HTML by templates of Jinja, in which all text is escaped: only what is :class:`Markup` is written as it is."""

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

from markupsafe import Markup


def templates_of(package: str, **filters: Callable[..., object]) -> Callable[..., Markup]:
    """The function that renders a template of a package: ``render(name, **values)``.

    Args:
        package: whose folder ``templates`` has them, as ``name.html.j2``.
        filters: of the templates, beside ``n|thousands`` and ``text|sentence``.
    """

    @cache
    def environment() -> Any:
        from jinja2 import Environment, FunctionLoader, StrictUndefined  # when there is HTML to write

        folder = files(package).joinpath("templates")
        made = Environment(
            loader=FunctionLoader(lambda name: folder.joinpath(f"{name}.html.j2").read_text(encoding="utf-8")),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        made.filters |= {"thousands": "{:,}".format, "sentence": _capital, **filters}
        return made

    def render(name: str, /, **values: object) -> Markup:
        return Markup(environment().get_template(name).render(values))

    return render


def _capital(text: str) -> str:
    """A text that begins with a capital letter; all others stay as they are."""
    return text[:1].upper() + text[1:]
