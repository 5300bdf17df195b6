"""Stories in PyTorch and Pyro: any story as a Pyro program, and torch modules as classifiers of the tasks.

It needs the extra ``pyro``. Densities are those of the story in JAX (:mod:`crowdppl.inference.densities`).
"""

from .module_classifier import GivenByTorch, TorchClassifier
from .program import in_pyro, marginal_in_pyro
from .torch_options import TorchOptions

__all__ = ["GivenByTorch", "TorchClassifier", "TorchOptions", "in_pyro", "marginal_in_pyro"]
