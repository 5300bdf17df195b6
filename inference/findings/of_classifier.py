r"""Findings on a story's classifier that has learnt the tasks by heart instead of the classes.

The yardstick is a linear rule with the same features, which should not do better than the classifier.

The classifier names the most probable class of each task that it learnt from; the rule names the most probable class
of each task that it has not seen. Both are compared with the annotations: the share of annotations with the named
class, less the share expected by chance. No true labels are needed. The comparison favours the classifier, so a
classifier that loses has learnt something else than the classes, or next to nothing, whatever the features tell. It
loses where the mean difference between the tasks' shares is many standard errors: two equally good classifiers differ
by chance.

A logistic regression with many features separates the tasks that it learnt from, whatever their labels. It is then
sure of all these tasks, and the labels follow it. The same rule shows the certainty that the features justify for
other tasks: learnt from all other tasks, it names the fit's label of a task as often as the features allow.

A network learns few tasks by heart, too. Where it names what was annotated of the tasks that it has seen, and neither a
linear nor a smooth rule of the same features does of tasks that it has not, the features may tell nothing.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..fitted.fitted import Fitted
from ..fitted.new_tasks import predict_proba
from .register import Said, check, once

SURE = 0.95  # mean probability of the classes that the classifier names, from which on it is looked at
BEYOND = 0.1  # how much surer it is than a linear rule is right
FEWEST = 50  # annotated tasks at the least; of fewer nothing is said
MOST_TASKS = 2000  # that the rule is fitted on, evenly spread over the data
MOST_NUMBERS = 20_000_000  # of features in all of these
PENALTIES = np.logspace(-3, 3, 13)  # of the rule, in units of the mean squared length of a task's features
UNUSUAL = 10.0  # root mean square of the features, or one over it, from which on their scale is told
UNEQUAL = 20.0  # the largest feature's root mean square over the median one's, from which on it is told
PERHAPS = 2.0  # standard errors above chance from which on the rule may tell something
CENTRES = 300  # tasks by the distance to which the smooth rule goes
CLEARLY = 3.0  # standard errors by which the rule has to be better than chance and than the classifier


class Lesson(NamedTuple):
    """Tasks that the classifier learnt from, some of many, and how well it and a linear rule do on them."""

    x: np.ndarray  # features, (N, ...)
    votes: np.ndarray  # annotations of each class, (N, K)
    named: np.ndarray  # the classifier's probabilities, (N, K)
    posterior: np.ndarray  # of the labels, (N, K)
    by_classifier: np.ndarray  # agreement with the annotations above chance, (N,)
    by_rule: np.ndarray  # of the linear rule's classes of tasks that it has not seen, (N,)
    by_labels: np.ndarray
    is_linear: bool  # whether the classifier is a logistic regression

    @property
    def is_lost(self) -> bool:
        """True where the rule is clearly better than chance and than the classifier."""
        return _is_clear(self.by_rule) and _is_clear(self.by_rule - self.by_classifier)


@once
def lesson(of: Fitted) -> Lesson | None:
    """Return the tasks that the fit's classifier learnt from; None without one that learns, and of few tasks."""
    annotations = of.annotations
    classifier, is_torch = of.model.classifier, of.model.truth_prior.kind == "torch"
    learns = is_torch or (classifier is not None and (classifier.is_network or classifier.is_linear))
    if annotations.features is None or not learns:
        return None
    votes = np.asarray(annotations.votes(), dtype=float)
    annotated = np.flatnonzero(votes.sum(-1))
    size = int(np.prod(np.shape(annotations.features)[1:]))
    most = min(MOST_TASKS, MOST_NUMBERS // max(size, 1))
    chosen = annotated[np.linspace(0, len(annotated) - 1, min(most, len(annotated))).astype(int)]
    if len(chosen) < FEWEST:
        return None
    x, votes = np.asarray(annotations.features)[chosen], votes[chosen]
    named = np.asarray(annotations.prior)[chosen] if is_torch else np.asarray(predict_proba(of, x))
    posterior = np.asarray(of.posterior, float)[chosen]
    return Lesson(
        x,
        votes,
        named,
        posterior,
        above_chance(named, votes),
        _of_unseen(x, votes),
        above_chance(posterior, votes),
        is_linear=not is_torch and classifier is not None and classifier.is_linear,
    )


@check("not_learnt", "classifier", needs={"story", "memory"})
def not_learnt(of: Fitted) -> Iterator[Said]:
    """A linear rule of the same features does better than the fit's classifier."""
    tasks = lesson(of)
    if tasks is None or not tasks.is_lost:
        return
    own, rule, labels = (100 * part.mean() for part in (tasks.by_classifier, tasks.by_rule, tasks.by_labels))
    yield Said(
        "the classifier did not learn the classes: of the tasks that it learnt from, its classes agree with the "
        f"annotations {own:.0f} points above chance, those of a linear rule of the features that has not seen a task "
        f"{rule:.0f} points, and the labels {labels:.0f}",
        f"{_scale_told(tasks.x)}Raise epochs, network_rate or warmup, take another story, or train "
        "it on labels: cp.label_then_train('majority_vote', …)",
        {"classifier": own, "rule": rule, "labels": labels},
    )


@check("too_sure", "classifier", needs={"story", "memory"})
def too_sure(of: Fitted) -> Iterator[Said]:
    """A logistic regression whose probabilities are far above the share of labels that other tasks tell."""
    tasks = lesson(of)
    if tasks is None or not tasks.is_linear or tasks.is_lost:
        return
    sure = tasks.named.max(-1)
    if sure.mean() < SURE:
        return
    is_right = linear_rule(tasks.x, tasks.posterior).argmax(-1) == tasks.posterior.argmax(-1)
    if not _is_clear(sure - is_right - BEYOND):
        return
    yield Said(
        f"the classifier is surer than its features allow for: the mean probability of the classes that it names is "
        f"{sure.mean():.2f}, and a linear rule of the features that has not seen a task names its label in "
        f"{is_right.mean():.0%}. It has learnt tasks by heart, so that labels and predictions are too sure, and often "
        "wrong of new tasks",
        "Give its weights a prior, classifier=cp.Classifier('logistic', prior=1.0), or a smaller one where they have "
        "it",
        {"probability": sure.mean(), "right": is_right.mean()},
    )


@check("untold", "classifier", needs={"story", "memory"})
def untold(of: Fitted) -> Iterator[Said]:
    """A classifier that names what was annotated of the tasks that it has seen, and features that do not tell it."""
    tasks = lesson(of)
    if tasks is None or not _is_clear(tasks.by_classifier - tasks.by_rule) or _is_clear(tasks.by_rule, PERHAPS):
        return
    smooth = _of_unseen(_nearness(tasks.x), tasks.votes)
    if _is_clear(smooth, PERHAPS):
        return
    own, rule = (100 * part.mean() for part in (tasks.by_classifier, np.maximum(tasks.by_rule.mean(), smooth.mean())))
    yield Said(
        f"the classes that the classifier names agree with the annotations {own:.0f} points above chance, and those of "
        f"a linear and of a smooth rule of the same features, of tasks that these have not seen, {rule:.0f} points at "
        "most, which is no more than chance: it may have learnt its tasks by heart, and moves their labels",
        "Leave it out, or hold annotations out, held_out=0.1, or give weights a prior, cp.Classifier(…, prior=0.3)",
        {"classifier": own, "rule": rule},
    )


@check("small_features", "classifier", needs={"story", "memory"})
def small_features(of: Fitted) -> Iterator[Said]:
    """Features so small that the prior of a logistic regression's weights keeps its probabilities near to even."""
    classifier, features = of.model.classifier, of.annotations.features
    if features is None or classifier is None or not classifier.is_linear or classifier.prior is None:
        return
    prior = classifier.prior
    scale = float(np.sqrt(np.mean(np.square(np.asarray(features), dtype=float))))
    if not 0 < scale * prior < 1 / UNUSUAL:
        return
    yield Said(
        f"the features' root mean square is {scale:.3g}, and the prior of the weights, of standard deviation "
        f"{prior:g}, lets each move the log-odds by about {scale * prior:.2g}: the classifier may "
        "learn less than the features tell",
        "bring each feature to a mean of 0 and a deviation of 1, or give cp.Classifier('logistic', "
        f"prior={1 / scale:.2g})",
        {"scale": scale, "prior": prior},
    )


def _of_unseen(x: np.ndarray, votes: np.ndarray) -> np.ndarray:
    """Agreement above chance with the annotations of a linear rule's classes, of tasks that it has not seen: (N,)."""
    return above_chance(linear_rule(x, votes / votes.sum(-1, keepdims=True)), votes)


def _nearness(x: np.ndarray) -> np.ndarray:
    """The nearness of each task to some, evenly spread, (N, at most CENTRES): a linear rule of these is smooth."""
    x = np.asarray(x, dtype=np.float64).reshape(len(x), -1)
    x = (x - x.mean(0)) / np.where(x.std(0) > 0, x.std(0), 1.0)
    centres = x[np.linspace(0, len(x) - 1, min(CENTRES, len(x))).astype(int)]
    squares = (x**2).sum(1)[:, None] + (centres**2).sum(1) - 2 * x @ centres.T
    return np.exp(-np.maximum(squares, 0.0) / max(2 * float(np.median(squares)), np.finfo(float).tiny))


def _scale_told(x: np.ndarray) -> str:
    """Advice to scale features that are large or small, or far larger than others, where first steps go astray."""
    size = np.sqrt(np.mean(np.square(x.reshape(len(x), -1), dtype=float), axis=0))
    scale, unequal = float(np.sqrt(np.mean(size**2))), size.max() > UNEQUAL * np.median(size)
    if 1 / UNUSUAL <= scale <= UNUSUAL and not unequal:
        return ""
    told = f"is {np.median(size):.2g} in the middle and {size.max():.3g} at most" if unequal else f"is {scale:.3g}"
    return f"The features' root mean square {told}: bring each to a mean of 0 and a deviation of 1 first. "


def above_chance(probabilities: np.ndarray, votes: np.ndarray) -> np.ndarray:
    r"""Return what each task adds to the share of annotations of the most probable classes above chance: ``(N,)``.

    The mean over the tasks is

    .. math:: \frac{\sum_i n_{i k_i}}{\sum_{ik} n_{ik}} - \sum_k \bar q_k \frac{\sum_i n_{ik}}{\sum_{il} n_{il}}

    with :math:`k_i` the most probable class of task i and :math:`\bar q` how often each class is.

    Args:
        probabilities: of the classes, or scores of them, ``(N, K)``.
        votes: annotations of each class, ``(N, K)``.
    """
    n_tasks, n_classes = votes.shape
    named = np.eye(n_classes)[probabilities.argmax(-1)]
    return (votes * (named - named.mean(0))).sum(-1) / (votes.sum() / n_tasks)


def linear_rule(x: np.ndarray, shares: np.ndarray) -> np.ndarray:
    r"""Return the classes' scores of each task by ridge regression of the vote shares on all other tasks: ``(N, K)``.

    With H the projection that gives the fitted values, a task's score without itself is
    :math:`(\hat s_i - H_{ii} s_i) / (1 - H_{ii})`; the penalty is the one with the smallest squared error of these.

    Args:
        x: features ``(N, ...)``.
        shares: of the annotations of each task, ``(N, K)``.
    """
    x = np.asarray(x, dtype=np.float64).reshape(len(x), -1)
    spread = x.std(0)
    x = (x - x.mean(0)) / np.where(spread > 0, spread, 1.0) / np.sqrt(x.shape[1])
    mean = shares.mean(0)
    u, squares = _principal(x)
    rotated = u.T @ (shares - mean)
    best, best_error = shares, np.inf
    for penalty in PENALTIES:
        kept = squares / (squares + penalty)
        own = ((u**2) @ kept + 1 / len(x))[:, None]
        found = (u @ (kept[:, None] * rotated) + mean - own * shares) / (1 - own)
        error = float(((found - shares) ** 2).mean())
        if error < best_error:
            best, best_error = found, error
    return best


def _is_clear(differences: np.ndarray, errors: float = CLEARLY) -> bool:
    """Return whether the mean is above 0 by many of its standard errors."""
    return bool(differences.mean() > errors * differences.std() / np.sqrt(len(differences)))


def _principal(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Left singular vectors of ``x (N, D)``, and the squares of its singular values, by the smaller of two products."""
    if len(x) <= x.shape[1]:
        squares, u = np.linalg.eigh(x @ x.T)
        return u, np.maximum(squares, 0.0)
    squares, v = np.linalg.eigh(x.T @ x)
    kept = squares > squares[-1] * np.finfo(float).eps * len(x)
    return x @ (v[:, kept] / np.sqrt(squares[kept])), squares[kept]
