"""Predictive checks: whether a story would have written answers like these."""

from .discrepancies import DISCREPANCIES, Discrepancy
from .found import Found
from .pictures import plot_check, plot_checks
from .predictive import check, prior_check
from .result import Checks

__all__ = ["DISCREPANCIES", "Checks", "Discrepancy", "Found", "check", "plot_check", "plot_checks", "prior_check"]
