"""A crowd for every story that the package has, and what a fit of it is asked for."""

from typing import Any

import numpy as np

import crowdppl as cp
from crowdppl.models import WITH_CLASSIFIER

BINARY = ("two_coin", "item_response")
"""Stories of two classes."""


def crowd(story: str, *, n_classes: int = 3, seed: int = 0, **sizes: Any) -> tuple[cp.Annotations, dict[str, Any]]:
    """Annotations that the story itself draws with its defaults, without gold labels, and options for its fit.

    A story that needs a classifier gets two features of each task that decide the truth, and a logistic classifier.

    Args:
        story: one of the package's.
        n_classes: K, but two for the stories of two classes.
        seed: of the simulation.
        **sizes: ``n_tasks``, ``n_workers`` and others of :func:`crowdppl.simulate`.
    """
    n_classes = 2 if story in BINARY else n_classes
    given, options = {}, {}
    if story in WITH_CLASSIFIER:
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(sizes["n_tasks"], 2)).astype(np.float32)
        odds = np.exp(x @ rng.normal(scale=2.0, size=(2, n_classes)))
        given, options = {"features": x, "truth_prior": odds / odds.sum(-1, keepdims=True)}, {"classifier": "logistic"}
    annotations, _ = cp.simulate(story, n_classes=n_classes, seed=seed, **sizes, **given)
    return annotations.without_gold(), options
