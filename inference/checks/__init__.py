"""Posterior and prior predictive checks, and simulation-based calibration."""

from .check_results import Checks
from .discrepancies import DISCREPANCIES, Discrepancy
from .discrepancy_result import DiscrepancyResult
from .predictive import check, prior_check

__all__ = ["DISCREPANCIES", "Checks", "Discrepancy", "DiscrepancyResult", "check", "prior_check"]
