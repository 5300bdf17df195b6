"""The five stories as Pyro programs, for classifiers that are torch modules. It needs the extra ``pyro``.

A story keeps the contract of the NumPyro ones: the same sites, shapes and hyperparameters, ``truth`` in the plate
``task`` to be enumerated, ``annotation`` observed through :class:`.pyro.responses.Responses`. It takes annotations of
tensors (:func:`.tensors`). Derived quantities and starting points are those of its NumPyro twin.
"""

from collections.abc import Callable

from .annotator_groups import annotator_groups
from .classifier import GivenByTorch, TorchClassifier, running
from .common_individual import common_individual
from .dawid_skene import dawid_skene
from .difficulty import difficulty
from .emissions import Confusion, Correct, Emission, Gated, PerAnnotation, SharedConfusion, Switch, SwitchedKernels
from .responses import Responses
from .tensors import moved, soft_votes, tensor, tensors
from .truth import Truth, TruthPrior, class_log_probs, observe, tasks
from .two_coin import two_coin

STORIES: dict[str, Callable[..., None]] = {
    story.__name__: story for story in (dawid_skene, two_coin, difficulty, annotator_groups, common_individual)
}

__all__ = [
    "STORIES",
    "Confusion",
    "Correct",
    "Emission",
    "Gated",
    "GivenByTorch",
    "PerAnnotation",
    "Responses",
    "SharedConfusion",
    "Switch",
    "SwitchedKernels",
    "TorchClassifier",
    "Truth",
    "TruthPrior",
    "class_log_probs",
    "moved",
    "observe",
    "running",
    "soft_votes",
    "tasks",
    "tensor",
    "tensors",
]
