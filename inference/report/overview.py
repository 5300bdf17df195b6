"""Findings on a fit that a reader should know first."""

from dataclasses import dataclass

import numpy as np

from ...data import AnnotationError
from ...data.majority import majority_accuracy
from ..checks.check_results import LEVEL, Checks
from ..findings.render import Findings
from ..findings.verdict import Verdict, verdict
from ..fitted.fitted import Fitted
from ..fitted.intervals import INTERVAL, jeffreys
from ..scores.against_gold import against_gold
from .subject import Subject

NOTHING = Findings()
MUCH = 0.02  # by how much more the probabilities promise than is right where that is worth an alert


@dataclass(frozen=True)
class GoldShare:
    """Share of right labels on gold tasks that the fit did not use.

    Args:
        tasks: the number of these tasks.
        right: the share of the labels that are right.
        low: lower bound of its interval.
        high: upper bound of its interval.
        promised: the mean probability of these labels.
        majority: the share of the majority votes that are right.
        chance: the share that guesses would have right, 1/K.
    """

    tasks: int
    right: float
    low: float
    high: float
    promised: float
    majority: float
    chance: float

    @property
    def interval(self) -> str:
        """The interval of the share that is right, in words."""
        return f"{INTERVAL:.0%} interval {self.low:.1%} to {self.high:.1%}"

    @property
    def contradicts(self) -> bool:
        """True where fewer labels are right than by guessing, at the upper bound of the interval."""
        return self.high < self.chance

    @property
    def overconfident(self) -> bool:
        """True where the promised share of right labels is above the interval, and far above the found share."""
        return self.promised > self.high and self.promised - self.right >= MUCH


@dataclass(frozen=True)
class Overview:
    """Facts on a fit that the page says first, from which its alerts are made.

    Args:
        verdict: on the fit.
        failed: titles of the predictive checks that failed with their p-values, the smallest first.
        n_checks: the number of checks made; None where there are none.
        gold: the share of right labels; None without gold labels.
        warnings: of the fits.
        sampled: whether an engine fitted a likelihood, so that there is something to warn of and to check.
    """

    verdict: Verdict
    failed: tuple[tuple[str, float], ...] = ()
    n_checks: int | None = None
    gold: GoldShare | None = None
    warnings: Findings = NOTHING
    sampled: bool = True


def overview(subject: Subject, checks: Checks | None) -> Overview:
    """Return the facts that the page says first.

    Args:
        subject: of the page.
        checks: predictive checks of the fit that leads; None where there are none.
    """
    found = {} if checks is None else {r.title: r.p_value for r in checks.results.values() if r.p_value < LEVEL}
    return Overview(
        verdict=verdict(subject.source),
        failed=tuple(sorted(found.items(), key=lambda item: item[1])),
        n_checks=None if checks is None else len(checks.results),
        gold=_gold(subject),
        warnings=subject.findings.warnings,
        sampled=isinstance(subject.lead[1], Fitted),
    )


def _gold(subject: Subject) -> GoldShare | None:
    """Return the shares of right labels and majority votes; None where no gold label is left to score by."""
    if subject.annotations.gold is None:
        return None
    try:
        found = against_gold(subject.source)
    except AnnotationError:
        return None
    n, right = len(found.gold), float(found.right.sum())
    low, high = jeffreys(np.array(right), np.array(n), INTERVAL)
    votes = subject.annotations.votes()[subject.annotations.tasks.index_of(list(found.tasks))]
    promised = float(found.label_probability.mean())
    votes_right = majority_accuracy(votes, found.gold, subject.annotations.kind)
    return GoldShare(n, right / n, float(low), float(high), promised, votes_right, 1 / subject.annotations.n_classes)
