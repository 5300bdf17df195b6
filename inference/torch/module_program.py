"""A torch module as the truth's prior within a Pyro program, with weights to train or weights that are sites."""

from collections.abc import Callable
from numbers import Real
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyro
import torch
from pyro.distributions import Normal
from torch import Tensor, nn

from ...data import Annotations
from ...models import StoryError
from .dlpack import home
from .module_classifier import NAME, TorchClassifier
from .problem import FEW, TaskInputs


def prior_of_module(
    module: nn.Module | None, weight_prior: float | None
) -> Callable[[Annotations, Tensor | None], Tensor | None]:
    """A function of annotations, and log-probabilities that the caller gives, to the log-probabilities to take.

    Args:
        module: from features to logits, trained where it is; None where there is none.
        weight_prior: standard deviation of its weights' normal priors; None for weights that are trained.

    Raises:
        StoryError: it is no module, or the deviation is not above 0 or of no module.
    """
    if weight_prior is not None and (module is None or not _is_deviation(weight_prior)):
        raise StoryError(
            f"weight_prior={weight_prior!r}: the standard deviation, above 0, of the weights of classifier=module is "
            "needed; leave it out for weights that are trained"
        )
    if module is None:
        return lambda annotations, log_prior: log_prior
    classifier = TorchClassifier(module)
    if weight_prior is None:
        classifier.module = module  # the user's own, to be trained
    tried: Any = WeakKeyDictionary()

    def log_probs(annotations: Annotations, log_prior: Tensor | None) -> Tensor:
        if log_prior is not None:
            raise StoryError(
                "classifier=module gives the program its log-probabilities of the classes, and others are given to it "
                "too; leave one out"
            )
        if annotations not in tried:
            tried[annotations] = _checked(classifier, annotations)
        weights = None
        if weight_prior is None:
            pyro.module(NAME, module)
        else:
            classifier.module.eval()
            learn = {name: value for name, value in classifier.module.named_parameters() if value.requires_grad}
            weights = {name: _weight(name, value, weight_prior) for name, value in learn.items()}
        logits = classifier.logits(tried[annotations], annotations.n_tasks, annotations.n_classes, weights)
        return torch.log_softmax(logits, -1).to(home())

    return log_probs


def _checked(classifier: TorchClassifier, annotations: Annotations) -> Tensor:
    """The features as a tensor, of which the module has been tried on a few."""
    features: Tensor = TaskInputs(annotations, None, None).features
    was_training = classifier.module.training
    classifier.check(features[:FEW], len(features[:FEW]), annotations.n_classes)
    classifier.module.train(was_training)
    return features


def _weight(name: str, value: Tensor, deviation: float) -> Tensor:
    prior = Normal(torch.zeros_like(value), deviation).to_event(value.ndim)
    drawn: Tensor = pyro.sample(f"{NAME}.{name}", prior)
    if drawn.numel() != value.numel():
        raise StoryError(
            f"the weights {name!r} are drawn several times at once, {tuple(drawn.shape)} instead of "
            f"{tuple(value.shape)}; let particles and samples come one after the other, without vectorize_particles "
            "and parallel"
        )
    return drawn.reshape(value.shape)  # without the dimensions of plates that Predictive puts before them


def _is_deviation(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < np.inf
