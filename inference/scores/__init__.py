"""Scores of labels and of confusion matrices where the truth is known."""

from ...data.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
