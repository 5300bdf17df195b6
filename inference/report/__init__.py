"""The report: one HTML page with labels, workers, checks and plots of a fit, which needs no network."""

from ...data.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
