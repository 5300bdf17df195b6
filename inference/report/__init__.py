"""The report: one HTML page with labels, workers, checks and plots of a fit, which needs no network."""

from typing import TYPE_CHECKING

from ...data.lazy import lazy_names

if TYPE_CHECKING:  # imported when first used
    from .write import report

__getattr__, __dir__ = lazy_names(__name__, __file__)

__all__ = ["report"]
