"""Which story the data support: leave-one-out and K-fold scores, comparison, stacking."""

from .compare import compare
from .elpd import Elpd
from .kfold import kfold
from .loo import loo
from .stack import Stack, stack

__all__ = ["Elpd", "Stack", "compare", "kfold", "loo", "stack"]
