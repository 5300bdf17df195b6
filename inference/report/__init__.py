"""The report: one HTML page that says everything of a fit, and opens anywhere."""

from .write import report

__all__ = ["report"]
