"""Posterior and prior predictive checks, and simulation-based calibration."""

from ...data.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
