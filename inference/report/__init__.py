"""The report: one HTML page with labels, workers, checks and plots of a fit, which needs no network."""

from .write import report

__all__ = ["report"]
