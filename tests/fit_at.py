"""Fits without an engine: a story at draws of its parameters that a test chose."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from crowdppl import Annotations, Fit
from crowdppl.inference.densities.model import Model
from crowdppl.inference.densities.sites import parameter_dims
from crowdppl.inference.engines.outcome import Outcome
from crowdppl.inference.fitted.fitted import Fitted
from crowdppl.models import find_story


def fit_at(
    story: str, annotations: Annotations, draws: Mapping[str, np.ndarray], *, method: str = "em", **hyperparameters: Any
) -> Fit:
    """A fit whose draws are given, with the labels' posterior that follows from them.

    Args:
        story: its name.
        annotations: the annotations.
        draws: of each site, ``(draw, ...)``: one for ``method="em"``.
        method: the engine that they are said to come from.
        **hyperparameters: of the story.
    """
    model, data = Model(find_story(story), hyperparameters), annotations.replace(gold=None, seconds=None, when=None)
    by_chain = {name: np.asarray(value, np.float32)[None] for name, value in draws.items()}
    outcome = Outcome(by_chain, {}, np.zeros(1), {}, is_point=method == "em")
    settings = {"seed": 0, "backend": "numpyro"}
    return Fit.of(Fitted(model, annotations, outcome, method, settings, parameter_dims(model, data)))


def random_confusions(annotations: Annotations, n_draws: int = 1, seed: int = 0) -> dict[str, np.ndarray]:
    """Draws of Dawid & Skene's parameters: workers who are right more often than not, and their classes' shares."""
    rng, k = np.random.default_rng(seed), annotations.n_classes
    mode, spread = rng.dirichlet(np.ones(k), (annotations.n_workers, k)) + 1.5 * np.eye(k), 30
    mode /= mode.sum(-1, keepdims=True)
    tables = rng.standard_gamma(spread * mode, (n_draws, *mode.shape))
    prevalence = rng.dirichlet(np.full(k, 20), n_draws)
    return {"confusion": tables / tables.sum(-1, keepdims=True), "prevalence": prevalence}
