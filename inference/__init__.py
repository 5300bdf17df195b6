"""What is done with a story: engines, and what they leave."""

from .densities.simulation import simulate
from .engines.outcome import ConvergenceWarning
from .engines.registry import ENGINES
from .fit import fit
from .results import Fit
from .storage.fit_folder import StorageError, load_fit

__all__ = ["ENGINES", "ConvergenceWarning", "Fit", "StorageError", "fit", "load_fit", "simulate"]
