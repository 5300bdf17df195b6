r"""Workers who give one class whatever the task, told from those whose tasks happen to be of one class.

A worker is looked at of whose annotations :data:`NEARLY` or more are one class k. Whoever looks at the tasks gives
another class than k more often where the other workers, without those who are looked at, by majority say another class.
Of a worker with :math:`n` such tasks, on :math:`x` of which the annotation is k all the same, the tail is

.. math:: P(X \ge x), \qquad X \sim \text{Binomial}\Bigl(n, \tfrac1n \sum_i P(k \mid l_i)\Bigr)

with :math:`P(k \mid l)` the share of k among the others' annotations where the majority of the rest of them is l. By
Hoeffding (1956) it is no less than that of the sum of annotations of different probabilities. The workers with few
annotations are looked at together: where those who give k alone go against the majority as one more often than whoever
looks at the tasks does, all of them count as such whose own tail does not speak against it.

Where there are several questions about each task, each is looked at alone, too: who answers one by the same class for
all tasks may look at the others.

Nobody is constant who chooses: a labelling function gives its class where its rule applies and abstains, or says
nothing, elsewhere. So nobody is whose tasks are of their class by the others more often than other tasks are; of
workers who abstain in much of their annotations it has to be known that they are not, by so many tasks that a
difference of a seventh would show. Nor is one who is only cautious, or whose tasks are nearly all of one class: the few
annotations of other classes agree with the majority, or with those of any other workers, more often than by chance.
"""

from collections.abc import Iterable
from typing import NamedTuple, Self

import numpy as np
from scipy.special import bdtrc  # scipy.stats has it too, and takes a third of a second to import

from ...data import Annotations
from ...data.arrays import cross_counts
from ...data.errors import check_name, warn
from ...data.id_text import listing, name_quoted, places_of
from ...data.questions import Units
from ...data.repeats import FirstAnnotations, first_annotations
from ..engines.finding import Finding
from .register import once

NEARLY = 0.95  # share of a worker's annotations that are one class
FEWEST = 5  # annotations of a worker who is looked at
TAIL = 1e-4  # of the binomial distribution, at which a worker is constant, divided by how many are looked at
TAIL_TOGETHER = 1e-6  # the same of all who give one class
ALONE = 0.2  # tail of a worker's own from which nothing speaks for constancy
CHOOSES = 3.0  # standard deviations by which more of a worker's tasks are of the own class than of all tasks
SHOWS = 0.15  # of their tasks, by which as many standard deviations are less where it is known of abstainers
CAUTIOUS = 0.05  # tail of the agreement of the few annotations of other classes
MUCH = 0.15  # share of the annotations of all questions, or of one, from which constant workers are left out of a fit
RULES = ("leave_out", "keep")
ABSTAINS = 0.1  # share of abstentions among a worker's annotations from which the worker chooses


class ConstantWorkers(NamedTuple):
    """Workers who give one class whatever the task, on all questions or on one of several.

    Args:
        workers: their positions, ``(C,)``; who is constant on several questions one by one is there for each.
        classes: the position of the class that each gives, ``(C,)``.
        questions: the position of the question on which, −1 for all, ``(C,)``.
        share: their share of the annotations that are classes.
        most: the same of the annotations of the question that they have the most of.
    """

    workers: np.ndarray
    classes: np.ndarray
    questions: np.ndarray
    share: float
    most: float

    @classmethod
    def of(cls, annotations: Annotations, found: Iterable[tuple[int, ...]]) -> Self:
        """Return those who were found: the worker, the class and the question of each."""
        workers, classes, questions = np.array(list(found), int).reshape(-1, 3).T
        named = cls(workers, classes, questions, 0.0, 0.0)
        if not len(workers):
            return named
        given = np.asarray(annotations.label) < annotations.n_classes
        theirs, asked = ~named.others(annotations) & given, _asked(annotations)
        parts = np.bincount(asked[theirs], minlength=1), np.bincount(asked[given], minlength=1)
        most = max((n / parts[1][place] for place, n in enumerate(parts[0]) if n), default=0.0)
        return named._replace(share=float(theirs.sum() / max(given.sum(), 1)), most=float(most))

    def others(self, annotations: Annotations) -> np.ndarray:
        """Return which rows other workers gave, or these on other questions, ``(A,)``."""
        worker, asked = np.asarray(annotations.worker), _asked(annotations)
        theirs = np.isin(worker, self.workers[self.questions < 0])
        size = annotations.n_workers
        pairs = self.questions * size + self.workers
        return ~(theirs | np.isin(asked.astype(np.int64) * size + worker, pairs[self.questions >= 0]))


def _asked(annotations: Annotations) -> np.ndarray:
    """Return the question of each row, 0 where there is one: ``(A,)``."""
    if annotations.question is None:
        return np.zeros(annotations.n_rows, int)
    return np.asarray(annotations.question)[np.asarray(annotations.task)]


@once
def constant_workers(annotations: Annotations) -> ConstantWorkers:
    """Return the workers who give one class whatever the task, and those who do so on one question of several.

    On a question the other workers' annotations of it alone say what is usual there, and the tails are divided by the
    number of questions.
    """
    asked = range(len(annotations.questions))
    everywhere = [] if isinstance(annotations.workers, Units) else _constant(annotations)
    known = {worker for worker, _ in everywhere}
    found = [(worker, given, -1) for worker, given in everywhere]
    for place in asked:
        name = annotations.questions[place]
        own, chosen = annotations.of_question(name), annotations.question_classes(name)[0]
        of_pairs = isinstance(annotations.workers, Units)
        more = [(j, int(chosen[k])) for j, k in _constant(own, len(asked)) if j not in known]
        found += [(worker, given, -1 if of_pairs else place) for worker, given in more]
    return ConstantWorkers.of(annotations, found)


def _constant(annotations: Annotations, n_questions: int = 1) -> list[tuple[int, int]]:
    """Return the constant workers among annotations, each with the class that they give.

    Args:
        annotations: of all questions, or of one.
        n_questions: how many questions are looked at one by one.
    """
    given, n_classes, n_workers = first_annotations(annotations), annotations.n_classes, annotations.n_workers
    counts = cross_counts((n_workers, n_classes), given.worker, given.label)
    n, own = counts.sum(1), counts.argmax(1)
    suspect = (n >= FEWEST) & (counts.max(1) >= NEARLY * n)
    if not suspect.any() or suspect.all():
        return []
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
    more = n_same - n_known * base[own]
    suspect &= more <= CHOOSES * spread
    suspect &= ~_abstains(annotations) | (more + CHOOSES * spread < SHOWS * n_known)
    other = known & (label != mine)
    n_other, agrees = np.bincount(worker[other], minlength=n_workers), other & (label == said)
    by_chance = np.bincount(worker[other], base[label[other]], n_workers)
    suspect &= _tail(np.bincount(worker[agrees], minlength=n_workers), n_other, by_chance) > CAUTIOUS
    suspect &= _together(given, counts, label != mine, of_suspect) > CAUTIOUS

    against = known & (said != mine) & suspect[worker]
    n_against = np.bincount(worker[against], minlength=n_workers)
    kept_to = np.bincount(worker[against & (label == mine)], minlength=n_workers)
    expected = np.bincount(worker[against], likely[said, mine][against], n_workers)
    tail = _tail(kept_to, n_against, expected)
    found = suspect & (tail < TAIL / n_questions / max(suspect.sum(), 1))
    for k in range(n_classes):
        of_class = suspect & (own == k)
        if _tail(*(x[of_class].sum() for x in (kept_to, n_against, expected))) < TAIL_TOGETHER / n_questions:
            found |= of_class & (tail < ALONE)
    return [(j, int(own[j])) for j in np.flatnonzero(found).tolist()]


def without_constant_workers(annotations: Annotations, rule: str) -> tuple[Annotations, ConstantWorkers | None]:
    """Return the annotations without those of constant workers who give :data:`MUCH`, and who these are; else None.

    With them the posterior has its mass where their class is nearly every task's, under every story and engine: their
    honesty has a prior, and one class for all is how they are honest. Few of them are told apart by the story.

    Args:
        rule: ``"leave_out"``, or ``"keep"`` for the annotations as they are.

    Raises:
        UnknownNameError: `rule` is none of these.
    """
    if check_name("constant_workers", rule, RULES) == "keep" or not annotations.named:
        return annotations, None
    found = constant_workers(annotations)
    if found.most < MUCH:
        return annotations, None
    return annotations.rows(found.others(annotations)), found


def left_out_before(findings: Iterable[Finding], annotations: Annotations) -> ConstantWorkers | None:
    """Return the constant workers who were left out of a fit with these findings; None where nobody was.

    Who was left out and gives other classes in the annotations that are new is not constant, and is left out no more;
    a warning says that the annotations of before are gone.

    Args:
        findings: of the fit.
        annotations: those of the fit, and new ones.
    """
    for finding in findings:
        if finding.code == "constant_workers" and finding.values.get("left_out"):
            workers = places_of(finding.values["workers"], annotations.workers)
            classes = places_of(finding.values["classes"], annotations.classes)
            on = finding.values.get("questions") or [None] * len(workers)
            asked = [-1 if name is None else places_of([name], annotations.questions)[0] for name in on]
            found = list(zip(workers, classes, asked, strict=True))
            back = [one for one, gives in zip(found, _give_others(annotations, found), strict=True) if gives]
            if back:
                names = list(dict.fromkeys(annotations.workers[worker] for worker, *_ in back))
                warn(
                    "left out of the fit for one class whatever the task, and giving other classes now: "
                    f"{listing(names, 5, name_quoted)}. Their new annotations count, and those that were left out "
                    "are gone; fit everything anew by cp.fit"
                )
                found = [one for one in found if one not in back]
            return ConstantWorkers.of(annotations, found) if found else None
    return None


def _give_others(annotations: Annotations, found: list[tuple[int, int, int]]) -> list[bool]:
    """Return of each worker, class and question whether many annotations there are of other classes."""
    given, size = np.asarray(annotations.label) < annotations.n_classes, annotations.n_workers
    asked, worker = _asked(annotations)[given].astype(np.int64), np.asarray(annotations.worker)[given]
    shape = (max(len(annotations.questions), 1) * size, annotations.n_classes)
    label = np.asarray(annotations.label)[given]
    counts = cross_counts(shape, asked * size + worker, label).reshape(-1, size, annotations.n_classes)
    theirs = [(counts.sum(0) if place < 0 else counts[place])[j] for j, _, place in found]
    return [n.sum() >= FEWEST and n[k] < NEARLY * n.sum() for n, (_, k, _) in zip(theirs, found, strict=True)]


def _abstains(annotations: Annotations) -> np.ndarray:
    """Return which workers abstain in much of their annotations where that may say something, ``(J,)``."""
    if not (annotations.abstains and annotations.informative):
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


def _together(given: FirstAnnotations, counts: np.ndarray, is_other: np.ndarray, of_suspect: np.ndarray) -> np.ndarray:
    """Return the tail of how often a worker's annotations of other classes are given to the same tasks by others, too.

    Where a class is rare all who look at the tasks give the other one nearly always.

    Args:
        given: annotations.
        counts: of them, by worker and class, ``(J, K)``.
        is_other: which of the annotations that are looked at are of another class than their worker gives else.
        of_suspect: which annotations are looked at.
    """
    shape, cell = (given.task.max(initial=-1) + 1, counts.shape[1]), given.task * counts.shape[1] + given.label
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    task, worker, label = (rows[of_suspect][is_other] for rows in given)
    given_too = np.bincount(cell, minlength=shape[0] * shape[1]).reshape(shape)[task, label] - 1
    beside = np.bincount(given.task, minlength=shape[0])[task] - 1
    usual = np.empty(len(task))
    for k in range(shape[1]):
        of_class = label == k
        usual[of_class] = np.bincount(given.task, shares[given.worker, k])[task[of_class]]
    usual -= shares[worker, label]
    return _tail(*(np.bincount(worker, each, len(counts)) for each in (given_too, beside, usual)))


def _tail(n_same: np.ndarray, n: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return the probability of so many or more; 1 of none."""
    return np.where(n > 0, bdtrc(n_same - 1, n.astype(np.int64), expected / np.maximum(n, 1)), 1.0)
