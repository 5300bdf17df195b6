"""Interface shared by sources of labels: a fitted story, or an average of several."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ...data import Annotations
from .confusion_scores import entropy
from .decisions import decide
from .intervals import of_draws


class Labelled:
    """Probabilities of the true labels, and the workers' confusion matrices, whoever has them.

    A view that needs no more than the four attributes below takes a fitted story and a stack of them alike.

    Attributes:
        annotations: the data, gold labels among it.
        posterior: ``P(truth | annotations)``, ``(N, K)``.
        confusion_draws: each worker's confusion matrix in each draw, ``(chain, draw, J, K, L)``.
        has_draws: whether the draws say how uncertain the parameters are; one point does not.
        with_uncertainty: the same with draws that do.
        shares_errors: whether the story, or one of them, lets workers err together.
    """

    if TYPE_CHECKING:

        @property
        def annotations(self) -> Annotations:
            """The data."""

        @property
        def posterior(self) -> np.ndarray:
            """``(N, K)``."""

        @property
        def confusion_draws(self) -> np.ndarray:
            """``(chain, draw, J, K, L)``."""

        @property
        def has_draws(self) -> bool:
            """True where there is more than one point."""

        @property
        def shares_errors(self) -> bool:
            """True where a story lets workers err together."""

        @property
        def with_uncertainty(self) -> Labelled:
            """Itself where it has draws; else with draws around its point."""

    @property
    def posterior_of_workers(self) -> np.ndarray:
        """The label probabilities by which workers are judged, ``(N, K)``."""
        return self.posterior

    @property
    def probabilities(self) -> pd.DataFrame:
        """``P(truth = class | annotations)``, tasks × classes."""
        classes = self.annotations.classes.to_index("class")
        return pd.DataFrame(self.posterior, index=self.annotations.tasks.to_index("task"), columns=classes)

    @property
    def labels(self) -> pd.DataFrame:
        """By task: the label (the most probable class; ties: the first), its probability, and the entropy in nats.

        Of ordered classes the label is the median one.
        """
        frame = decide(self.probabilities, kind=self.annotations.kind)[["label", "probability"]]
        return frame.assign(entropy=entropy(np.asarray(self.posterior, dtype=float)))

    @property
    def entropies(self) -> pd.DataFrame:
        """By task the entropy of the label, and vote_entropy, that of the votes' shares (naive soft labels), in nats.

        The votes' is high where workers disagree, the label's where the disagreement is not resolved by who they are. A
        task without annotations has no vote entropy: NaN.
        """
        votes = self.annotations.votes().astype(float)
        total = votes.sum(-1)
        of_votes = entropy(votes / np.where(total > 0, total, 1.0)[:, None])
        return self.labels[["entropy"]].assign(vote_entropy=np.where(total > 0, of_votes, np.nan))


def interval_around(source: Labelled, estimate: np.ndarray | float, draws: np.ndarray, interval: float) -> np.ndarray:
    """The interval of an estimate: equal-tailed quantiles of draws of the ``with_uncertainty`` of `source`.

    Where `source` is a point, the interval is widened to hold the estimate. A quantity that is no linear function of
    the parameters differs at the point from its mean over the draws around it: the spammer score of confusion matrices
    that scatter around one is greater than that of the one.

    Args:
        source: a fit or an average, with draws or at a point.
        estimate: the quantity, ``(...)``: at the point, or its mean over the draws.
        draws: the quantity in the draws, ``(chain, draw, ...)``.
        interval: mass, between 0 and 1.

    Returns:
        Both ends, ``(2, ...)``.
    """
    low, high = of_draws(draws, interval)
    if source.has_draws:
        return np.stack([low, high])
    return np.stack([np.minimum(low, estimate), np.maximum(high, estimate)])
