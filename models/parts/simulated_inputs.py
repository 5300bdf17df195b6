"""Inputs of a simulation beside tasks and workers, declared on the story that needs them."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ...data import Annotations
from ...data.kinds import Ordered
from .truth_prior import Given

N_FEATURES = 2
LOGIT_SCALE = 4.0  # standard deviation of the classes' logits over tasks: clear tasks and doubtful ones

Hyperparameters = dict[str, Any]
Prepare = Callable[[Annotations, Hyperparameters, np.random.Generator], tuple[Annotations, Hyperparameters]]
"""From the design of a simulation and the user's hyperparameters to those with which the story runs."""

S = TypeVar("S", bound=Callable[..., None])


def simulated_with(prepare: Prepare, n_classes: int = 2) -> Callable[[S], S]:
    """Declare what a story's simulation needs, as ``prepare_simulation``, and its usual number of classes.

    ```python
    @simulated_with(features_decide)
    def my_story(annotations, *, truth_prior=None): ...
    ```
    """

    def declare(story: S) -> S:
        story.prepare_simulation = prepare  # type: ignore[attr-defined]
        story.simulated_classes = n_classes  # type: ignore[attr-defined]
        return story

    return declare


def prepared(
    story: Callable[..., None], design: Annotations, hyperparameters: Hyperparameters, rng: np.random.Generator
) -> tuple[Annotations, Hyperparameters]:
    """The design and the hyperparameters with what the story declares that its simulation needs."""
    return simulation_of(story)(design, hyperparameters, rng)


def simulation_of(story: Callable[..., None]) -> Prepare:
    """Return the inputs that the story declares for its simulation; none of a story without a declaration."""
    return getattr(story, "prepare_simulation", lambda design, hyperparameters, rng: (design, hyperparameters))


def simulated_classes(story: Callable[..., None]) -> int:
    """Return how many classes a simulation of the story has where nothing is said."""
    return getattr(story, "simulated_classes", 2)


def in_order(
    design: Annotations, hyperparameters: Hyperparameters, rng: np.random.Generator
) -> tuple[Annotations, Hyperparameters]:
    """Classes that are ordered, for stories that use the order."""
    return design.replace(kind=Ordered()), hyperparameters


def features_decide(
    design: Annotations, hyperparameters: Hyperparameters, rng: np.random.Generator
) -> tuple[Annotations, Hyperparameters]:
    r"""A truth that depends on features of the tasks: :math:`z_i \sim \text{Categorical}(\text{softmax}(W^\top x_i))`.

    Features are standard normal, two a task, where the design has none; W is normal, so that the logits of a class
    have a standard deviation of about 4 over the tasks.
    """
    if design.features is None:
        features = rng.normal(size=(design.n_tasks, N_FEATURES)).astype(np.float32)
        design = design.replace(features=features)
    x = np.asarray(design.features, dtype=float).reshape(design.n_tasks, -1)
    logits = x @ rng.normal(scale=LOGIT_SCALE / np.sqrt(x.shape[-1]), size=(x.shape[-1], design.n_classes))
    probs = np.exp(logits - logits.max(-1, keepdims=True))
    probs = (probs / probs.sum(-1, keepdims=True)).astype(np.float32)
    return design.replace(prior=probs), hyperparameters | {"truth_prior": Given()}
