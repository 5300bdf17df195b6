"""Predictive checks: whether a story would have written annotations like these."""

from typing import TYPE_CHECKING

from ...data.lazy import lazy_names

if TYPE_CHECKING:  # imported when first used
    from .check_results import Checks
    from .discrepancies import DISCREPANCIES, Discrepancy
    from .discrepancy_result import Found
    from .predictive import check, prior_check

__getattr__, __dir__ = lazy_names(__name__, __file__)

__all__ = ["DISCREPANCIES", "Checks", "Discrepancy", "Found", "check", "prior_check"]
