"""Plots of annotations, fits, checks and comparisons.

Each function returns the Matplotlib axes that it has drawn in: those that it is given, or those of a new figure.
"""

from ...data.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
