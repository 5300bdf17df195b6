r"""Another reading of a crowd: Dawid and Skene's story, started where the labels leave something to explain.

Given the labels, workers' annotations of a task are independent. Where a class has swallowed another, as the wrong one
of a majority that takes one for the other, those who tell the two apart agree on the other class more than by their
shares among the tasks of the label: with :math:`p_{jl}` the share of class l among the annotations of worker j to tasks
of the label k, the excess of agreement on l over the pairs of these tasks (:mod:`.beyond_chance`) is some standard
deviations above 0. The tasks on which l is given more often than expected are then labelled l, and EM goes on from
there; its log-posterior beside that from the given labels says whether the other reading is as good. A low bar for the
excess costs time alone: on crowds without such a reading EM comes back to the labels that were given.

Labels by the votes are no end of EM, which leaves them wherever able workers are in the minority. It is a sign of a
majority that takes a class for another where it moves many tasks from one to the other, and of the annotations of all
tasks that are of the other then, the class that was left has nearly as many: two workers of whom one is right tell as
much, but of a class that most of the workers take for another. The bounds were chosen on the shapes of crowds of
``benchmarks/findings.py``, whose true labels are known.
"""

from typing import Any, NamedTuple

import numpy as np

from ...data import Annotations
from ...data.arrays import cross_counts
from ...data.repeats import FirstAnnotations, first_annotations
from ...models import Prevalence, find_story
from ..densities.model import Model
from ..densities.portable import start_of
from ..densities.programs import key_of
from ..densities.sites import parameter_dims
from ..engines.registry import ENGINES, run_at_size
from ..engines.settings import EMSettings
from ..fitted.by_rule import ByRule
from ..fitted.fitted import Fitted, label_posteriors

AGREES = 1.5  # standard deviations by which workers agree on another class than the label, to look for a reading
AS_GOOD = 5.0  # nats by which the log-posterior of the other reading may be behind
SAME = 0.05  # nats within which both ends are one
SURE = 0.7  # probability in both readings of a task that counts as another
MANY = 0.05  # share of the tasks that have the other label
FEWEST = 3  # such tasks, of however few
BEHIND = 4.0  # standard errors by which a class may lead the votes of its own tasks where it is taken for another
DISPUTED = 0.25  # share of a task's votes from which a class that is not its label disputes it
TIMES_CLEAR = 3.0  # as many tasks are disputed as are clear of a class that most may take for another
ITERATIONS = 40
LOOKED_AT = 30_000  # annotations; of more nothing is said
CELLS = 2e7  # tasks times pairs of classes, likewise


class OtherReading(NamedTuple):
    """Another reading of the crowd.

    Args:
        label: position of the class whose tasks are read otherwise.
        other: position of the class that many of them have there.
        z: standard deviations by which workers agree on the other class beyond what the labels explain.
        tasks: how many of them have it, for sure in both readings.
        nats: by which the log-posterior of the other reading leads.
    """

    label: int
    other: int
    z: float
    tasks: int
    nats: float

    @property
    def same_end(self) -> bool:
        """True where EM ends in the other reading from the given labels, too."""
        return abs(self.nats) < SAME


def other_reading(annotations: Annotations, posterior: np.ndarray) -> OtherReading | None:
    """Return another reading that is as good, None where there is none.

    Args:
        posterior: probabilities of the labels, ``(N, K)``.
    """
    annotations = annotations.verdicts()
    given = first_annotations(annotations)
    n_tasks, n_workers, n_classes = annotations.n_tasks, annotations.n_workers, annotations.n_classes
    if not 0 < len(given.task) <= LOOKED_AT or n_tasks * n_classes**2 > CELLS:
        return None
    labels = posterior.argmax(1)
    z, label, other, more = _unexplained(given, labels, n_tasks, n_workers, n_classes)
    if z <= AGREES:
        return None
    start = posterior.copy()
    start[more] = 0.1 / (n_classes - 1)
    start[more, other] = 0.9
    _, here = _dawid_skene(annotations, posterior)
    there, log_posterior = _dawid_skene(annotations, start)
    differs = (labels == label) & (there[:, other] > SURE) & (posterior.max(1) > SURE)
    nats = log_posterior - here
    if nats < -AS_GOOD or differs.sum() < max(MANY * n_tasks, FEWEST):
        return None
    return OtherReading(label, other, z, int(differs.sum()), nats)


class TakenForAnother(NamedTuple):
    """A class whose tasks the votes give to another one.

    Args:
        label: position of the class that the votes give.
        other: position of the class that many of these tasks have by Dawid and Skene's story.
        tasks: how many of them have it, for sure.
        share: of the annotations of all tasks of the other class, the share that is the label's.
        share_other: the share that is the other class's.
    """

    label: int
    other: int
    tasks: int
    share: float
    share_other: float


def taken_for_another(annotations: Annotations, posterior: np.ndarray) -> TakenForAnother | None:
    """Return a class that most workers take for another; None where there is none, or the labels are not the votes'.

    Args:
        posterior: probabilities of the labels, ``(N, K)``.
    """
    if (there := beyond_contested_votes(annotations, posterior)) is None:
        return None
    votes, labels = annotations.votes(), posterior.argmax(1)
    n_tasks, n_classes = votes.shape
    leads: dict[float, TakenForAnother] = {}
    for other in range(n_classes):
        has_it = there[:, other] > SURE
        for label, moved in enumerate(np.bincount(labels[has_it], minlength=n_classes).tolist()):
            if label == other or moved < max(MANY * n_tasks, 2):
                continue
            given = votes[has_it]
            lead = given[:, label] - given[:, other]
            of_all = given.sum(0) / given.sum()
            found = TakenForAnother(label, other, moved, float(of_all[label]), float(of_all[other]))
            leads[lead.mean() / max(lead.std(ddof=1) / np.sqrt(len(lead)), 1e-9)] = found
    return leads[most] if leads and (most := max(leads)) > -BEHIND else None


def beyond_contested_votes(annotations: Annotations, posterior: np.ndarray) -> np.ndarray | None:
    """Return the labels of Dawid and Skene's story from contested votes, ``(N, K)``; None where labels are no such.

    Args:
        posterior: probabilities of the labels, ``(N, K)``.
    """
    n_tasks, n_classes = posterior.shape
    if not 0 < annotations.n_rows <= LOOKED_AT or n_tasks * n_classes**2 > CELLS:
        return None
    votes, labels = annotations.votes(), posterior.argmax(1)
    if not (votes[np.arange(n_tasks), labels] == votes.max(1)).all():
        return None
    shares = votes / np.maximum(votes.sum(1, keepdims=True), 1)
    return _dawid_skene(annotations, shares)[0] if _is_contested(shares, labels) else None


def _is_contested(shares: np.ndarray, labels: np.ndarray) -> bool:
    """Return whether a class has far fewer tasks that are clear than tasks that it disputes with another class.

    Where most workers take it for another nearly none of its tasks is clear: what is asked before EM, which takes time.

    Args:
        shares: of each task's votes, ``(N, K)``.
        labels: ``(N,)``.
    """
    n_tasks, n_classes = shares.shape
    clear = (shares >= 1 - DISPUTED).sum(0)
    has_label = labels[:, None] == np.arange(n_classes)
    disputed = has_label.T.astype(float) @ (shares >= DISPUTED)  # by label and class given
    np.fill_diagonal(disputed, 0.0)
    looked_at = disputed >= MANY * n_tasks
    return bool((looked_at & (disputed + disputed.T > TIMES_CLEAR * np.maximum(clear, 1))).any())


def _unexplained(
    given: FirstAnnotations, labels: np.ndarray, n_tasks: int, n_workers: int, n_classes: int
) -> tuple[float, int, int, np.ndarray]:
    """Return the largest z, its label and class given, and the tasks that have more of it than expected, ``(N,)``."""
    label = labels[given.task]
    counts = cross_counts((n_workers, n_classes, n_classes), given.worker, label, given.label)
    shares = (counts + 0.5 * (1 + np.eye(n_classes))) / (counts.sum(-1, keepdims=True) + 0.5 * (n_classes + 1))
    most, best = 0.0, (0, 0)
    excess: np.ndarray = np.zeros(n_tasks)
    for k in range(n_classes):
        of_label = label == k
        task, worker = given.task[of_label], given.worker[of_label]
        for m in range(n_classes):
            share = shares[worker, k, m]
            beyond, variance = (given.label[of_label] == m) - share, share * (1 - share)
            sums: np.ndarray = np.bincount(task, beyond, n_tasks)
            of_pairs = ((sums**2).sum() - (beyond**2).sum()) / 2
            of_chance = ((np.bincount(task, variance, n_tasks) ** 2).sum() - (variance**2).sum()) / 2
            z = of_pairs / np.sqrt(of_chance) if of_chance > 1e-9 else 0.0
            if m != k and z > most:
                best, most, excess = (k, m), float(z), sums
    return most, *best, (labels == best[0]) & (excess > 0)


def gain_of_shared_errors(annotations: Annotations, posterior: np.ndarray) -> tuple[float, float]:
    """Return by how much shared errors raise the log-posterior of Dawid and Skene's story, and how sure labels are.

    Args:
        annotations: of named workers; of more than :data:`LOOKED_AT`, the gain is −∞.
        posterior: probabilities of the labels, ``(N, K)``, from which EM starts with shared errors and without.

    Returns:
        The gain in nats, and the mean probability of the labels with shared errors.
    """
    if annotations.n_rows > LOOKED_AT or len(posterior) * posterior.shape[1] ** 2 > CELLS:
        return -np.inf, np.nan
    _, without = _dawid_skene(annotations, posterior)
    labels, with_them = _dawid_skene(annotations, posterior, shared_error=True)
    return with_them - without, float(labels.max(1).mean())


def _dawid_skene(annotations: Annotations, posterior: np.ndarray, **parts: bool) -> tuple[np.ndarray, float]:
    """Return the labels of Dawid and Skene's story by EM from others, ``(N, K)``, and its log-posterior there."""
    # By default a story has such a prior where there are no questions, and shares a fit's program.
    prior: dict[str, Any] = {"truth_prior": Prevalence(by_question=False)} if annotations.question is not None else {}
    model = Model(find_story("dawid_skene"), prior | parts)
    data = annotations.replace(gold=None, seconds=None, when=None, prior=None, mirrored=None)
    prevalence = posterior.sum(0) + 1
    dims, settings = parameter_dims(model, data), EMSettings(max_iterations=ITERATIONS)
    start: dict[str, Any] = start_of(model, data, dims, key_of(0)) | {
        "confusion": np.asarray(ByRule("labels", data, posterior).confusion_draws[0, 0], float),
        "prevalence": np.asarray(prevalence / prevalence.sum(), float),
    }
    outcome = run_at_size(ENGINES["em"], model, data, dims, key_of(0), settings, progress=False, start=start)
    return label_posteriors(Fitted(model, data, outcome, dims=dims))[0], float(outcome.history[-1])
