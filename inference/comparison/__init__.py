"""Comparison of stories: leave-one-out and K-fold cross-validation, stacking, the default set of stories."""

from ...data.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, __file__)
