"""The engines of ``backend="pyro"`` by name, and how a fit is made by one of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import pyro
import torch

from ...data import Annotations
from ...models import Classifier, TruthPrior
from ...models.parts.truth_prior import is_torch_module
from ..engines import registry
from ..engines.checkpoints import NO_CHECKPOINTS, Checkpoints
from ..engines.outcome import Outcome
from ..engines.registry import Engine
from ..engines.settings import EMSettings, NUTSSettings, SVISettings
from . import chains, guides, module_training
from .module_classifier import GivenByTorch, TorchClassifier
from .problem import Problem, make
from .torch_options import TorchOptions

ENGINES = {
    engine.name: engine
    for engine in (
        Engine("em", module_training.run, EMSettings),
        Engine("svi", guides.run, SVISettings, guides.REFUSED),
        Engine("nuts", chains.run, NUTSSettings),
    )
}


def engine_of(method: str, classifier: Any) -> Engine:
    """The engine of that name; EM without a torch module is that of JAX, which knows nothing of torch."""
    return registry.ENGINES["em"] if method == "em" and not is_torch_module(classifier) else ENGINES[method]


def prior_of(classifier: Any) -> TruthPrior:
    """The truth prior that a torch module is; a classifier of JAX's is a part of the story, whose sites Pyro samples.

    Raises:
        StoryError: it is neither.
    """
    if is_torch_module(classifier):
        return GivenByTorch.from_json({}, classifier)
    return classifier if isinstance(classifier, Classifier) else Classifier(classifier)


def run(
    engine: Engine, problem: Problem, settings: tuple, seed: int, *, progress: bool, keep: Checkpoints = NO_CHECKPOINTS
) -> tuple[Outcome, Annotations]:
    """Run an engine, and leave torch's own random numbers as they were.

    Returns:
        The outcome, and the data with the trained classifier's probabilities as prior of the truth.
    """
    with _seeded(seed, problem.device), pyro.validation_enabled(False):
        outcome = engine.run(problem, jax.random.key(seed), settings, progress=progress, keep=keep)
        return outcome, problem.with_probabilities()


@contextmanager
def _seeded(seed: int, device: torch.device) -> Iterator[None]:
    kind = "cuda" if device.type == "cpu" else device.type  # what fork_rng takes where there is no device to fork
    with torch.random.fork_rng(devices=[] if device.type == "cpu" else [device], device_type=kind):
        torch.manual_seed(seed)
        yield


__all__ = ["ENGINES", "GivenByTorch", "TorchClassifier", "TorchOptions", "engine_of", "make", "prior_of", "run"]
