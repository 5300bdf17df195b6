"""What is done with a story: engines, and what they leave."""

from .fit import ENGINES, fit
from .outcome import ConvergenceWarning
from .results import Fit
from .simulate import simulate
from .storage import StorageError, load_fit

__all__ = ["ENGINES", "ConvergenceWarning", "Fit", "StorageError", "fit", "load_fit", "simulate"]
