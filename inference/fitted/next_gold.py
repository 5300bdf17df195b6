"""The tasks whose true labels are worth knowing: a random sample of all, denser where stories disagree."""

from typing import Any

import numpy as np
import pandas as pd

from ...data import AnnotationError
from ...data.columns import positions_of
from ...data.description import count_text
from ...data.errors import warn, whole_number
from ...data.gold import INCLUSION
from ...data.ids import one_or_several
from .confusion_scores import entropy
from .fitted import Fitted
from .gold_mix import shares_of_votes
from .misled import told_label
from .next_annotations import information
from .posterior import Posterior, posterior_of

AT_RANDOM, DISAGREEMENT, DOUBT = "at random", "stories disagree", "label in doubt"
EVENLY = 0.5  # the part of the sample that is spread evenly over the tasks
LEAST = 0.02  # probability of a class in a story: what is less tells no more
SPREAD = 1e-4  # nats that every task has, so that tasks on which all agree are drawn alike


def next_gold(fit: Posterior | Fitted, n: int, *, seed: int = 0, among: Any = None) -> pd.DataFrame:
    r"""The tasks to have checked by somebody who knows: a random sample, half of it where the stories disagree.

    One half of the sample is spread evenly over the tasks; the other follows the mutual information of story s and
    label,

    .. math:: I(s; z_i) = H\Big(\frac1S \sum_s P_s(z_i)\Big) - \frac1S \sum_s H(P_s(z_i)),

    since a label tells the stories apart where they differ on it. The votes are one of the stories of an average that
    gives them a share. Of a fit of one story it is the entropy of the label. Tasks whose true label is known are left
    out: those that the fit was told, and those that its annotations carry.

    Example:
        >>> import crowdppl as cp
        >>> annotations, _ = cp.simulate("glad", n_tasks=200, n_workers=10, annotations_per_task=3, seed=1)
        >>> fit = cp.fit("auto", annotations.without_gold(), progress=False)
        >>> asked = cp.next_gold(fit, 20)
        >>> asked["label"] = [annotations.gold[task] for task in asked["task"]]  # by somebody who knows
        >>> better = cp.fit("auto", annotations.without_gold(), gold=asked, progress=False)
        >>> found = cp.estimate(fit, asked)

    Args:
        fit: a fit of any story, an average, or labels by a rule.
        n: how many tasks to name.
        seed: of the draw.
        among: the tasks that can be checked, one or several; all by default. Shares that :func:`crowdppl.estimate`
            gives are then those of these tasks, as far as the others are like them.

    Returns:
        In the order of the tasks: task, inclusion_probability, and why: "at random", or "stories disagree", of one
        story "label in doubt", where this adds more than half to the probability. The sample is systematic, of tasks
        in random order, so that it has exactly n tasks, and each was drawn with its inclusion probability (Madow 1949;
        Särndal, Swensson & Wretman 1992, section 3.6). :func:`crowdppl.estimate` and :func:`crowdppl.fit` take the
        frame with a further column label.

    Warns:
        AnnotationWarning: fewer tasks than `n` have no known label; all of them are named.

    Raises:
        AnnotationError: every task has a known label, or a task of `among` is unknown.
        ValueError: `n` is no whole number from 1.
    """
    source, n = posterior_of(fit), whole_number("n", n, least=1)
    annotations = source.annotations
    known = told_label(annotations) >= 0
    for fitted in source.members.values():
        known |= told_label(fitted.annotations) >= 0
    if annotations.gold is not None:
        known |= np.asarray(annotations.gold) >= 0
    open_ = np.flatnonzero(~known & _among(annotations.tasks, among))
    if not len(open_):
        raise AnnotationError(
            "the true label of every task is known already, so that none is worth checking; "
            "fit annotations.without_gold() to leave out the gold labels that the annotations carry"
        )
    if len(open_) < n:
        warn(
            f"next_gold: {count_text(len(open_), 'task')} of {annotations.n_tasks:,} can be checked and "
            f"{'has' if len(open_) == 1 else 'have'} no known label, fewer than the {n:,} asked for; all are named"
        )
    worth = disagreement(source)[open_] + SPREAD
    n = min(n, len(open_))
    share = EVENLY / len(open_) + (1 - EVENLY) * worth / worth.sum()
    chance = inclusion_probabilities(share, n)
    drawn = systematic(chance, np.random.default_rng(seed))
    evenly = share[drawn] * len(open_) < 2 * EVENLY
    return pd.DataFrame(
        annotations.tasks.to_columns("task", open_[drawn])
        | {
            INCLUSION: chance[drawn],
            "why": np.where(evenly, AT_RANDOM, DISAGREEMENT if len(_by_story(source)) > 1 else DOUBT),
        }
    )


def disagreement(source: Posterior) -> np.ndarray:
    """Mutual information of story and label in nats, ``(N,)``; of one story the entropy of the label."""
    each = _by_story(source)
    if len(each) == 1:
        return entropy(np.asarray(source.posterior, dtype=float))
    stories = np.maximum(np.stack(each, axis=-1, dtype=float), LEAST)
    return np.maximum(information(stories / stories.sum((1, 2), keepdims=True)), 0.0)


def _by_story(source: Posterior) -> list[np.ndarray]:
    """Label probabilities ``(N, K)`` of each story that has weight, and of the votes where they have a share."""
    each = [fitted.posterior for fitted, _ in source.weighty] if source.members else [source.posterior]
    return [*each, shares_of_votes(source.annotations)] if source.votes else each


def _among(tasks: Any, among: Any) -> np.ndarray:
    """A mask of the tasks among those named, ``(N,)`` bool; all where none is named."""
    if among is None:
        return np.ones(len(tasks), bool)
    found = np.zeros(len(tasks), bool)
    found[positions_of(one_or_several(among, tasks), tasks, "among:")] = True
    return found


def inclusion_probabilities(share: np.ndarray, n: int) -> np.ndarray:
    """Probabilities ``(N,)`` in proportion to positive shares, at most 1 each, that sum to n, at most N."""
    chance = np.zeros(len(share))
    free = np.ones(len(share), bool)
    while True:
        chance[free] = (n - (~free).sum()) * share[free] / share[free].sum() if free.any() else 0.0
        over = free & (chance >= 1)
        if not over.any():
            return chance
        chance[over], free = 1.0, free & ~over


def systematic(chance: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Positions of a sample of fixed size in which each unit is with its probability, in ascending order.

    Args:
        chance: inclusion probabilities, ``(N,)``, which sum to a whole number.
        rng: for the order of the units, and the start.
    """
    order = rng.permutation(len(chance))
    n = round(chance.sum())
    ends = chance[order].cumsum() * (n / chance.sum())  # against rounding
    hits = np.searchsorted(ends, np.arange(n) + rng.random(), side="right")
    return np.sort(order[np.minimum(hits, len(chance) - 1)])
