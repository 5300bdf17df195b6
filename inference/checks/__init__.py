"""Posterior and prior predictive checks, and simulation-based calibration."""

from typing import TYPE_CHECKING

from ...data.lazy import lazy_names

if TYPE_CHECKING:  # imported when first used
    from .check_results import Checks
    from .discrepancies import DISCREPANCIES, Discrepancy
    from .discrepancy_result import DiscrepancyResult
    from .predictive import check, prior_check

__getattr__, __dir__ = lazy_names(__name__, __file__)

__all__ = ["DISCREPANCIES", "Checks", "Discrepancy", "DiscrepancyResult", "check", "prior_check"]
