r"""Workers who give one class whatever the task, told from those whose tasks happen to be of one class.

A worker is looked at of whose annotations :data:`NEARLY` or more are one class k. Whoever looks at the tasks gives
another class than k more often where the other workers, without those who are looked at, by majority say another class.
Of a worker with :math:`n` such tasks, on :math:`x` of which the annotation is k all the same, the tail is

.. math:: P(X \ge x), \qquad X \sim \text{Binomial}\Bigl(n, \tfrac1n \sum_i P(k \mid l_i)\Bigr)

with :math:`P(k \mid l)` the share of k among the others' annotations where the majority of the rest of them is l. By
Hoeffding (1956) it is no less than that of the sum of annotations of different probabilities. The workers with few
annotations are looked at together: where those who give k alone go against the majority as one more often than whoever
looks at the tasks does, all of them count as such whose own tail does not speak against it.

Nobody is constant who chooses: a labelling function gives its class where its rule applies and abstains, or says
nothing, elsewhere. So workers are left out who abstain in much of their annotations, and those whose tasks are of their
class by the others more often than other tasks are. Nor is one who is only cautious: the few annotations of other
classes agree with the majority more often than by chance.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy.special import bdtrc  # scipy.stats has it too, and takes a third of a second to import

from ...data import Annotations
from ...data.arrays import cross_counts
from ...data.errors import check_name
from ..engines.finding import Finding
from ..fitted.beyond_chance import first_annotations
from .register import Labels, once

NEARLY = 0.95  # share of a worker's annotations that are one class
FEWEST = 5  # annotations of a worker who is looked at
TAIL = 1e-4  # of the binomial distribution, at which a worker is constant, divided by how many are looked at
TAIL_TOGETHER = 1e-6  # the same of all who give one class
ALONE = 0.2  # tail of a worker's own from which nothing speaks for constancy
CHOOSES = 3.0  # standard deviations by which more of a worker's tasks are of the own class than of all tasks
CAUTIOUS = 0.05  # tail of the agreement of the few annotations of other classes
MUCH = 0.15  # share of the annotations from which constant workers are left out of a fit
RULES = ("leave_out", "keep")
ABSTAINS = 0.1  # share of abstentions among a worker's annotations from which the worker chooses


class ConstantWorkers(NamedTuple):
    """Workers who give one class whatever the task.

    Args:
        workers: their positions, ``(C,)``.
        classes: the position of the class that each gives, ``(C,)``.
        share: their share of the annotations that are classes.
    """

    workers: np.ndarray
    classes: np.ndarray
    share: float

    def others(self, annotations: Annotations) -> np.ndarray:
        """Return which rows other workers gave, ``(A,)``."""
        return ~np.isin(np.asarray(annotations.worker), self.workers)


def constant_workers(annotations: Annotations) -> ConstantWorkers:
    """Return the workers who give one class whatever the task.

    Args:
        annotations: of named workers.
    """
    nobody = ConstantWorkers(np.zeros(0, int), np.zeros(0, int), 0.0)
    given, n_classes, n_workers = first_annotations(annotations), annotations.n_classes, annotations.n_workers
    counts = cross_counts((n_workers, n_classes), given.worker, given.label)
    n, own = counts.sum(1), counts.argmax(1)
    suspect = (n >= FEWEST) & (counts.max(1) >= NEARLY * n) & ~_abstains(annotations)
    if not suspect.any() or suspect.all():
        return nobody
    of_suspect = suspect[given.worker]
    # What the workers who are not looked at give, in all and without one of them.
    votes = cross_counts((annotations.n_tasks, n_classes), given.task[~of_suspect], given.label[~of_suspect])
    likely = _likely(votes, given.task[~of_suspect], given.label[~of_suspect])
    majority = _majority(votes)

    task, worker, label = (rows[of_suspect] for rows in given)
    said, mine = majority[task], own[worker]
    known = said >= 0
    base = np.bincount(majority[majority >= 0], minlength=n_classes) / max((majority >= 0).sum(), 1)
    n_known = np.bincount(worker[known], minlength=n_workers)
    n_same = np.bincount(worker[known & (said == mine)], minlength=n_workers)
    spread = np.sqrt(n_known * base[own] * (1 - base[own]))
    suspect &= n_same - n_known * base[own] <= CHOOSES * spread
    other = known & (label != mine)
    n_other, agrees = np.bincount(worker[other], minlength=n_workers), other & (label == said)
    by_chance = np.bincount(worker[other], base[label[other]], n_workers)
    suspect &= _tail(np.bincount(worker[agrees], minlength=n_workers), n_other, by_chance) > CAUTIOUS

    against = known & (said != mine) & suspect[worker]
    n_against = np.bincount(worker[against], minlength=n_workers)
    kept_to = np.bincount(worker[against & (label == mine)], minlength=n_workers)
    expected = np.bincount(worker[against], likely[said, mine][against], n_workers)
    tail = _tail(kept_to, n_against, expected)
    found = suspect & (tail < TAIL / max(suspect.sum(), 1))
    for k in range(n_classes):
        of_class = suspect & (own == k)
        if _tail(*(x[of_class].sum() for x in (kept_to, n_against, expected))) < TAIL_TOGETHER:
            found |= of_class & (tail < ALONE)
    workers = np.flatnonzero(found)
    return ConstantWorkers(workers, own[workers], float(n[workers].sum() / max(n.sum(), 1)))


def without_constant_workers(annotations: Annotations, rule: str) -> tuple[Annotations, ConstantWorkers | None]:
    """Return the annotations without those of constant workers who give :data:`MUCH`, and who these are; else None.

    With them the posterior has its mass where their class is nearly every task's, under every story and engine: their
    honesty has a prior, and one class for all is how they are honest. Few of them are told apart by the story.

    Args:
        annotations: the data.
        rule: ``"leave_out"``, or ``"keep"`` for the annotations as they are.

    Raises:
        UnknownNameError: `rule` is none of these.
    """
    if check_name("constant_workers", rule, RULES) == "keep" or not annotations.named:
        return annotations, None
    found = constant_workers(annotations)
    if found.share < MUCH:
        return annotations, None
    return annotations.rows(found.others(annotations)), found


def left_out_before(findings: Iterable[Finding], annotations: Annotations) -> ConstantWorkers | None:
    """Return the constant workers who were left out of a fit with these findings; None where nobody was.

    Args:
        findings: on the fit.
        annotations: of the same workers, and perhaps more.
    """
    for finding in findings:
        if finding.code == "constant_workers" and finding.values.get("left_out"):
            position, of_class = (
                {str(name): i for i, name in enumerate(names)} for names in (annotations.workers, annotations.classes)
            )
            workers, classes = finding.values["workers"], finding.values["classes"]
            return ConstantWorkers(
                np.array([position[str(name)] for name in workers]),
                np.array([of_class[str(name)] for name in classes]),
                finding.values["share"],
            )
    return None


@once
def constant_workers_of(of: Labels) -> ConstantWorkers:
    """Return the constant workers among a result's annotations."""
    return constant_workers(of.annotations)


def _abstains(annotations: Annotations) -> np.ndarray:
    """Return which workers abstain in much of their annotations, ``(J,)``."""
    if not annotations.abstains:
        return np.zeros(annotations.n_workers, bool)
    worker, abstained = np.asarray(annotations.worker), np.asarray(annotations.label) >= annotations.n_classes
    n = np.bincount(worker, minlength=annotations.n_workers)
    return np.bincount(worker[abstained], minlength=annotations.n_workers) > ABSTAINS * n


def _majority(votes: np.ndarray) -> np.ndarray:
    """Return the class that more annotations give than any other, −1 where there is none: ``(N,)`` of ``(N, K)``."""
    most = votes == votes.max(1, keepdims=True)
    return np.where((most.sum(1) == 1) & (votes.sum(1) > 0), votes.argmax(1), -1)


def _likely(votes: np.ndarray, task: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Return the probability of each class given by the majority of the others who are not looked at, ``(K, K)``."""
    n_classes = votes.shape[1]
    others = votes[task]
    others[np.arange(len(task)), label] -= 1
    said = _majority(others)
    known = said >= 0
    table = cross_counts((n_classes, n_classes), said[known], label[known]) + 1.0
    return table / table.sum(1, keepdims=True)


def _tail(n_same: np.ndarray, n: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return the probability of so many or more; 1 of none."""
    return np.where(n > 0, bdtrc(n_same - 1, n.astype(np.int64), expected / np.maximum(n, 1)), 1.0)
