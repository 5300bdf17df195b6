"""Comparison of stories: leave-one-out and K-fold cross-validation, stacking, the default set of stories."""

from .comparing import compare
from .cross_validation import kfold
from .elpd import Elpd
from .leave_one_out import loo

__all__ = ["Elpd", "compare", "kfold", "loo"]
