"""Rendering of the report's templates, with filters for numbers: ``n|count_text("task")``, ``n|every("task")``."""

from ...data.description import count_text
from ...data.html_templates import templates_of
from ..plots.style import every

render = templates_of(__package__, counted=count_text, every=every)
"""A template of this room, by its name, with values by the names that it has for them."""
