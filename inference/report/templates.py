"""Rendering of the report's templates, with filters for numbers: ``n|counted("task")``, ``n|every("task")``."""

from ...data.html_templates import templates_of
from ..plots.style import counted, every

render = templates_of(__package__, counted=counted, every=every)
"""A template of this room, by its name, with values by the names that it has for them."""
