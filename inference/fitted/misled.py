r"""Tasks that mislead the whole crowd: what annotations can never tell of the labels.

A story takes what it finds for the truth: where all workers agree it is all but sure. On real crowds a few tasks look
to everybody like another class than they are of, and nothing in the annotations shows which, or how many. So beside the
class :math:`c_i` that a story infers of a task stands the true label :math:`z_i`, with a share :math:`\varepsilon` of
tasks at which they differ:

.. math::
    \varepsilon &\sim \text{Beta}(w m, \; w (1 - m)) \\
    P(z_i = k \mid c_i, \varepsilon) &= (1 - \varepsilon) \, [k = c_i] + \frac{\varepsilon}{K - 1} \, [k \ne c_i]

The likelihood of the annotations does not depend on :math:`\varepsilon`, so that without gold labels its posterior is
its prior. Gold labels that a fit was given tell of it by how often the label that the crowd gives these tasks without
them is right, and by nothing more: a restricted likelihood (Lewis, MacEachern & Lee 2021), since a story that is too
sure of its labels is also wrong about which mistakes it makes. The prior's mean m and weight w, in tasks, are
:data:`USUAL` and :data:`WEIGHT`, set with real crowds' gold labels in view; ``benchmarks/real_coverage.py`` shows what
others give on real crowds, and what each crowd gets from those that are best on the others. They are of crowds whose
workers err together on some tasks. Of one whose annotations are independent given the labels, as far as can be told
(:mod:`.dependence`), the mean is :data:`LEAST`. Where workers are hardly better than chance in the mean, all labels may
be turned around, and the prior's mean is greater by the probability of that (:mod:`.reversal`).

Where workers agree on a task no more than by chance the labels may say nothing. By the probability of that
(:mod:`.beyond_chance`) the true labels are drawn from the shares of the classes among the annotations, and all tasks
mislead as a guess does, of which 1 in K is right.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from ...data import Annotations
from ...data.errors import real_number
from .beyond_chance import by_chance
from .dependence import dependence
from .fitted import Fitted
from .reversal import reversal_doubt

USUAL = 0.05  # the share of misled tasks that is expected where annotations depend on each other given the labels
LEAST = 0.01  # and where they do not
WEIGHT = 4.0  # of the expectation, in gold labels
MOST = 0.95  # share at the most, so that gold labels can tell of another
POINTS = 400  # of the share's distribution, of equal mass in the prior


@dataclass(frozen=True)
class MisledShare:
    r"""Distribution of the share :math:`\varepsilon` of tasks that mislead the whole crowd, at points.

    Attributes:
        shares: the points, ``(G,)``.
        probabilities: of each.
        told: tasks whose true label the fit was given, which mislead nobody any more, ``(N,)``.
        nobody_looked: the probability that workers looked at no task.
        guess: probabilities of the true labels then, ``(N, K)`` or ``(1, K)``.
        own: which classes each task may have, ``(N, K)``; None where all may have all.
    """

    shares: np.ndarray
    probabilities: np.ndarray
    told: np.ndarray
    nobody_looked: float = 0.0
    guess: np.ndarray | float = 0.0
    own: np.ndarray | None = None

    @property
    def mean(self) -> float:
        """The share that is expected where workers look at the tasks."""
        return float(self.shares @ self.probabilities)

    def draws(self, n: int, seed: int) -> np.ndarray:
        """Draws of the share in random order, ``(n,)``: one from each of n parts of equal mass.

        With the probability that nobody looked it is that of a guess, :math:`1 - 1 / K`.
        """
        rng = np.random.default_rng(seed)
        mass = rng.permutation((np.arange(n) + rng.random(n)) / n)
        looked = 1 - self.nobody_looked
        found = self.shares[np.searchsorted(looked * self.probabilities.cumsum()[:-1], mass)]
        if looked == 1:
            return found
        n_classes = np.shape(self.guess)[-1] if self.own is None else self.own.sum(-1).mean()
        return np.where(mass < looked, found, 1 - 1 / n_classes)

    def beside(self, posterior: np.ndarray) -> np.ndarray:
        """Label probabilities ``(N, K)`` that allow for misled tasks; those of the tasks told stay as they are."""
        share = np.where(self.told, 0.0, self.mean)[:, None]
        if self.own is None:
            looked = misleading(posterior, share, posterior.shape[1])
        else:
            looked = np.where(self.own, misleading(posterior, share, self.own.sum(-1, keepdims=True)), 0.0)
        return (1 - self.nobody_looked) * looked + self.nobody_looked * self.guess


def misleading(probability: np.ndarray, share: np.ndarray | float, n_classes: int | np.ndarray) -> np.ndarray:
    """The probability of a true label where a share of the tasks mislead the whole crowd."""
    return (1 - share) * probability + share * (1 - probability) / np.maximum(n_classes - 1, 1)


def misled_share(fitted: Fitted, mean: float | None = None) -> MisledShare:
    """The distribution of the share of misled tasks, given the gold labels that a fit was told.

    Args:
        mean: the prior's mean, from 0 to below 1; by default from :data:`LEAST` to :data:`USUAL` by how probable it is
            that annotations depend on each other given the labels, and of the rest as much as the labels are doubted to
            be turned around, and that nobody looked is possible. With 0 no task misleads.

    Raises:
        ValueError: for another `mean`.
    """
    told = told_label(fitted.annotations)
    doubt = by_chance(fitted.annotations) if mean is None else 0.0
    guess, own = _shares(fitted.annotations) if doubt else 0.0, fitted.annotations.own
    mean = _usual(fitted) if mean is None else checked(mean)
    if mean == 0:
        return MisledShare(np.zeros(1), np.ones(1), told >= 0, own=own)
    shares = betaincinv(WEIGHT * mean, WEIGHT * (1 - mean), (np.arange(POINTS) + 0.5) / POINTS)
    log_prob = np.zeros(POINTS)
    if (told >= 0).any():
        alone = _not_told(fitted).posterior[told >= 0]
        is_right = (alone.argmax(1) == told[told >= 0])[:, None]
        n_classes = fitted.annotations.n_classes if own is None else own.sum(-1, keepdims=True)[told >= 0]
        expected = misleading(alone.max(1)[:, None], shares, n_classes)
        log_prob = np.log(np.maximum(np.where(is_right, expected, 1 - expected), 1e-12)).sum(0)
    weights = np.exp(log_prob - log_prob.max())
    return MisledShare(shares, weights / weights.sum(), told >= 0, doubt, guess, own)


def _usual(fitted: Fitted) -> float:
    usual = LEAST + (USUAL - LEAST) * dependence(fitted.annotations, fitted.posterior)
    return min(usual + (1 - usual) * reversal_doubt(fitted.annotations, fitted.posterior), MOST)


def _shares(annotations: Annotations) -> np.ndarray:
    """The shares of the classes among the annotations, of each question its own: ``(N, K)``, or ``(1, K)`` of one."""
    votes, question = annotations.votes(), annotations.question
    if question is None:
        return votes.sum(0, keepdims=True) / max(votes.sum(), 1)
    n = np.stack([votes[question == q].sum(0) for q in range(np.max(question) + 1)])
    return (n / n.sum(1, keepdims=True).clip(1))[question]


def checked(mean: float) -> float:
    """The expected share of misled tasks itself.

    Raises:
        ValueError: it is none.
    """
    return real_number("misled", mean, 0, below=1)


def _not_told(fitted: Fitted) -> Fitted:
    """Return the fit with its parameters kept, and without the evidence on tasks whose label was told."""
    evidence = np.asarray(fitted.annotations.evidence)
    untold = np.where((told_label(fitted.annotations) >= 0)[:, None], 0, evidence).astype(evidence.dtype)
    return fitted.with_data(fitted.annotations.replace(evidence=untold))


def told_label(annotations: Annotations) -> np.ndarray:
    """The label of each task that the fit was told, ``(N,)``, −1 for the others."""
    if annotations.evidence is None:
        return np.full(annotations.n_tasks, -1)
    possible = np.isfinite(np.asarray(annotations.evidence))
    return np.where(possible.sum(1) == 1, possible.argmax(1), -1)
