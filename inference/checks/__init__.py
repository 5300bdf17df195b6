"""Predictive checks: whether a story would have written annotations like these."""

from .check_results import Checks
from .discrepancies import DISCREPANCIES, Discrepancy
from .discrepancy_result import Found
from .predictive import check, prior_check

__all__ = ["DISCREPANCIES", "Checks", "Discrepancy", "Found", "check", "prior_check"]
