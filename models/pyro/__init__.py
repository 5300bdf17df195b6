"""The stories as Pyro programs, for classifiers that are torch modules. It needs the extra ``pyro``.

A story keeps the contract of the NumPyro ones: the same sites, shapes and hyperparameters, ``truth`` in the plate
``task`` to be enumerated, ``annotation`` observed through :class:`.pyro.responses.Responses`. It takes annotations, of
arrays or of tensors (:func:`.tensors`). Starting points are those of its NumPyro twin; a story of one's own is declared
to be one by :func:`.twin_of`.
"""

from collections.abc import Callable

from .. import KNOWN_STORIES
from ..parts.promises import promised
from .anno_reg import anno_reg
from .annotator_groups import annotator_groups
from .classifier import GivenByTorch, TorchClassifier, running
from .common_individual import common_individual
from .confusion_from_features import confusion_from_features
from .confusion_logits import AddedLogits, NetworkLogits
from .crowd_layer import crowd_layer
from .dawid_skene import dawid_skene
from .derived import derived
from .difficulty import difficulty
from .emissions import (
    Confusion,
    Correct,
    CrowdLayer,
    Emission,
    Gated,
    PerAnnotation,
    SharedConfusion,
    Subtypes,
    Switch,
    SwitchedKernels,
)
from .glad import glad
from .hierarchical_dawid_skene import hierarchical_dawid_skene
from .independent_confusion_subtypes import ebcc, independent_confusion_subtypes
from .item_response import item_response
from .mace import mace
from .one_coin import one_coin
from .responses import Responses
from .tensors import moved, soft_votes, tensor, tensors
from .truth import Truth, TruthPrior, class_log_probs, observe, tasks
from .twins import program_of, takes_arrays, twin_of
from .two_coin import two_coin
from .worker_clusters import worker_clusters

STORIES: dict[str, Callable[..., None]] = {
    story.__name__: promised(twin_of(KNOWN_STORIES[story.__name__])(story))
    for story in (
        dawid_skene,
        one_coin,
        two_coin,
        difficulty,
        annotator_groups,
        common_individual,
        mace,
        glad,
        item_response,
        hierarchical_dawid_skene,
        worker_clusters,
        independent_confusion_subtypes,
        confusion_from_features,
        crowd_layer,
        anno_reg,
        ebcc,
    )
}

__all__ = [
    "STORIES",
    "AddedLogits",
    "Confusion",
    "Correct",
    "CrowdLayer",
    "Emission",
    "Gated",
    "GivenByTorch",
    "NetworkLogits",
    "PerAnnotation",
    "Responses",
    "SharedConfusion",
    "Subtypes",
    "Switch",
    "SwitchedKernels",
    "TorchClassifier",
    "Truth",
    "TruthPrior",
    "class_log_probs",
    "derived",
    "moved",
    "observe",
    "program_of",
    "running",
    "soft_votes",
    "takes_arrays",
    "tasks",
    "tensor",
    "tensors",
    "twin_of",
]
