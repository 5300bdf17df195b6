"""Which story the data support: leave-one-out and K-fold scores, comparison, stacking."""

from .comparing import compare
from .cross_validation import kfold
from .elpd import Elpd
from .leave_one_out import loo

__all__ = ["Elpd", "compare", "kfold", "loo"]
