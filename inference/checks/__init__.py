"""Predictive checks: whether a story would have written annotations like these."""

from ..plots.predictive_checks import plot_check, plot_checks
from .check_results import Checks
from .discrepancies import DISCREPANCIES, Discrepancy
from .discrepancy_result import Found
from .predictive import check, prior_check

__all__ = ["DISCREPANCIES", "Checks", "Discrepancy", "Found", "check", "plot_check", "plot_checks", "prior_check"]
