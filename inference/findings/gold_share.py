"""The share of labels that are right on gold tasks that a fit did not use, beside what its probabilities promise."""

from dataclasses import dataclass

import numpy as np

from ...data import Annotations
from ...data.description import count_text
from ...data.gold import TIE, right_shares
from ..fitted.fitted import Fitted
from ..fitted.intervals import INTERVAL, jeffreys
from ..fitted.posterior import Posterior

FEWEST_GOLD = 10  # gold tasks from which they speak for or against labels and workers
MUCH = 0.02  # by how much more the probabilities promise than is right where that is worth a word


@dataclass(frozen=True)
class GoldShare:
    """Share of right labels on gold tasks that the fit did not use.

    Args:
        tasks: the number of these tasks.
        right: the share of the labels that are right.
        low: lower bound of its interval by Jeffreys' prior.
        high: upper bound of its interval.
        promised: the mean probability of these labels.
        chance: the share that guesses would have right, 1/K.
    """

    tasks: int
    right: float
    low: float
    high: float
    promised: float
    chance: float

    @property
    def contradicts(self) -> bool:
        """True where fewer labels are right than by guessing, at the upper bound of the interval."""
        return self.high < self.chance

    @property
    def overconfident(self) -> bool:
        """True where the promised share of right labels is above the interval, and far above the found share."""
        return self.promised > self.high and self.promised - self.right >= MUCH


def unused_gold(annotations: Annotations) -> np.ndarray:
    """Return which tasks have a gold label that a fit of the annotations does not use, ``(N,)``."""
    if annotations.gold is None:
        return np.zeros(annotations.n_tasks, bool)
    known = np.asarray(annotations.gold) >= 0
    return known if annotations.evidence is None else known & ~np.isneginf(annotations.evidence).any(-1)


def gold_share(of: Posterior | Fitted) -> GoldShare | None:
    """Return the share of right labels; None where no gold label is left to score by."""
    scored = unused_gold(of.annotations)
    return _share(of, scored) if scored.any() else None


def _share(of: Posterior | Fitted, scored: np.ndarray) -> GoldShare:
    posterior, gold = np.asarray(of.posterior, float)[scored], np.asarray(of.annotations.gold)[scored]
    right = right_shares(posterior, gold)
    low, high = jeffreys(np.array(right.sum()), np.array(right.size), INTERVAL)
    promised, chance = float(posterior.max(-1).mean()), 1 / of.annotations.n_classes
    return GoldShare(right.size, float(right.mean()), float(low), float(high), promised, chance)


def gold_accuracy(of: Posterior | Fitted) -> str:
    """Accuracy on the gold tasks whose labels the fit did not use with Jeffreys' interval, beside the majority vote's.

    Where it used all of them, accuracy is that on all, without an interval, as it measures nothing. Labels that are the
    majority vote have one accuracy.
    """
    annotations = of.annotations
    known = np.asarray(annotations.gold) >= 0
    if not known.any():
        return "no gold label is known"
    unused = unused_gold(annotations)
    n_used = int((known & ~unused).sum())
    scored = unused if unused.any() else known
    found = _share(of, scored)
    which = "whose labels the fit did not use" if unused.any() else "whose labels the fit used"
    if n_used and unused.any():
        which += f" ({n_used:,} others it used)"
    votes = annotations.kind.majority(of.given.votes())[scored]
    n_ties = int(((votes > 0).sum(-1) > 1).sum())
    beside = f" ({count_text(n_ties, 'tie')} of m classes, each counted as 1/m)" if n_ties else ""
    if not np.allclose(np.asarray(of.posterior)[scored], votes, atol=TIE):
        beside = f"; majority vote {right_shares(votes, np.asarray(annotations.gold)[scored]).mean():.4f}{beside}"
    interval = f" ({INTERVAL:.0%} interval {found.low:.4f}–{found.high:.4f})" if unused.any() else ""
    return f"accuracy {found.right:.4f}{interval} on {count_text(found.tasks, 'gold task')} {which}{beside}"
