"""Comparison of stories: leave-one-out and K-fold cross-validation, stacking, the default set of stories."""

from typing import TYPE_CHECKING

from ...data.lazy import lazy_names

if TYPE_CHECKING:  # imported when first used
    from .comparing import compare
    from .cross_validation import kfold
    from .elpd import Elpd
    from .leave_one_out import loo

__getattr__, __dir__ = lazy_names(__name__, __file__)

__all__ = ["Elpd", "compare", "kfold", "loo"]
