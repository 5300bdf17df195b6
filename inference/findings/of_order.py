r"""The order of tasks: stretches of them on which workers hardly agree, and classes that a part of them has.

*Stretches of tasks on which workers hardly agree*, while they do on the others. So it is where the labels of a batch
were shifted by a row, or joined to other tasks, for all workers: nothing shows it in who gave them, and the labels of
these tasks are worth nothing. Or the tasks are much harder, and their labels are less sure than a story takes them for
that has each worker as good all along. Agreement is the excess over each worker's own shares of the classes, as in
:mod:`.beyond_chance`.

*Classes that nobody gives before some task, or after it.* Of tasks of which most give another class, whatever these
are, workers give it by error; where nobody ever does on one side, it was not there to be given, and tasks of it have
the labels of others. With errors of worker j, on tasks to which most give class m, on :math:`n_1` annotations of the
one side and :math:`n_2` of the other, that all t of them lie on the other has the probability
:math:`(n_2 / (n_1 + n_2))^t` where nothing changed, and the tail is the product over j and m. Annotations of a class
that a task has several of count as one together.

Tasks are in the order in which the data have them, in which classes are looked for by the times where these are known.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...data import Annotations
from ...data.arrays import cross_counts
from ...data.description import count_text
from ...data.id_text import name_quoted
from ...data.kinds import Kind, Ordered
from ...data.questions import Units
from ...data.some_tasks import some_tasks
from .of_crowd import crowd_of
from .of_time import changed_agreement
from .register import Labels, Said, check, once

BLOCKS = 40  # of tasks, of which stretches are made
FEWEST = 40  # tasks of a stretch, and outside of it
CLEARLY = 5.0  # standard errors by which a stretch agrees less than the rest: many are looked at
LITTLE = 0.3  # part of the others' agreement beyond chance, which a stretch has at the most
CLEAR = 0.15  # of that agreement, where there is enough to miss
MOST = 0.8  # of the tasks that a stretch has
LOOKED_AT, NUMBERS = 200_000, 2e7  # annotations, and these times classes; of more a random sample of the tasks
PART = 0.05  # of the tasks, that each side of a class has at the least
RARE = 10  # annotations of a class at the least, for it to be missed
TAIL = 1e-4  # probability, for all classes, that one is missing by chance


class Stretch(NamedTuple):
    """Tasks that follow each other: the first, the last, and how many; the share of all annotations that are theirs.

    Args:
        excess: agreement of two annotations of a task beyond chance, there and on the other tasks.
    """

    first: object
    last: object
    n_tasks: int
    share: float
    excess: tuple[float, float]


class Looked(NamedTuple):
    """Annotations of tasks that are looked at, and the positions of these among all, ``(N,)``."""

    given: Annotations
    places: np.ndarray


@once
def looked_at(given: Annotations) -> Looked:
    """Return the annotations, of a random sample of the tasks where they are many."""
    most = min(LOOKED_AT, NUMBERS / given.n_classes)
    chosen = np.random.default_rng(0).random(given.n_tasks) * given.n_rows < most
    return Looked(given if chosen.all() else some_tasks(given, chosen), np.flatnonzero(chosen))


@once
def stretch_of_little(given: Annotations) -> Stretch | None:
    """Return the stretch of tasks whose agreement is farthest below that of the others, None where none has little.

    Args:
        given: annotations of named workers, without abstentions.
    """
    names, (given, chosen) = given.tasks, looked_at(given)
    task, worker, label = (np.asarray(getattr(given, name)) for name in ("task", "worker", "label"))
    count, k = given.row_counts, given.n_classes
    shares = cross_counts((given.n_workers, k), worker, label, weight=count)
    shares = shares / np.maximum(shares.sum(1, keepdims=True), 1)
    beyond = np.eye(k)[label] - shares[worker]
    sums = np.stack([np.bincount(task, count * one, given.n_tasks) for one in beyond.T], 1)
    n = np.bincount(task, count, given.n_tasks)
    agree = (sums**2).sum(1) - np.bincount(task, count * (beyond**2).sum(1), given.n_tasks)
    several = np.flatnonzero(n > 1)
    if len(several) < 2 * FEWEST:
        return None
    agree, pairs = agree[several] / n[several], n[several] - 1  # each annotation counts once beside the others
    ends = np.unique(np.linspace(0, len(several), BLOCKS + 1).astype(int))
    upto = [
        np.concatenate([[0], np.cumsum(values)])[ends] for values in (agree, pairs, agree**2, agree * pairs, pairs**2)
    ]
    first, last = np.triu_indices(len(ends), 1)
    inside = np.array([sums[last] - sums[first] for sums in upto])
    outside = np.array([sums[-1] for sums in upto])[:, None] - inside
    (here, its_error), (there, their_error) = _mean(inside), _mean(outside)
    sizes = ends[last] - ends[first]
    is_one = (
        (sizes <= MOST * len(several))
        & (sizes >= FEWEST)
        & (len(several) - sizes >= FEWEST)
        & (here < LITTLE * there)
        & (there > CLEAR)
    )
    z = np.where(is_one, (there - here) / np.maximum(np.hypot(its_error, their_error), 1e-9), 0.0)
    at = int(z.argmax())
    if z[at] < CLEARLY:
        return None
    places = chosen[several]
    begin, end = (int(places[place]) for place in (ends[first[at]], ends[last[at]] - 1))
    share = float(inside[1, at] / upto[1][-1])
    return Stretch(names[begin], names[end], end - begin + 1, share, (float(here[at]), float(there[at])))


def _mean(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ratio of the sums of two numbers, and its standard error (linearized).

    Args:
        sums: of both, of the first's squares, of their products, and of the second's squares.
    """
    total = np.maximum(sums[1], 1e-9)
    mean = sums[0] / total
    return mean, np.sqrt(np.maximum(sums[2] - 2 * mean * sums[3] + mean**2 * sums[4], 0.0)) / total


@check("stretch_apart", "crowd", needs={"workers", "memory"})
def stretch_apart(of: Labels) -> Iterator[Said]:
    """A stretch of tasks on which workers hardly agree (:func:`stretch_of_little`).

    Nothing is said where it is known since when tasks are harder or easier, and said (:mod:`.of_time`).
    """
    if (crowd := crowd_of(of)) is None or (found := stretch_of_little(crowd.given)) is None or changed_agreement(of):
        return
    yield Said(
        f"from {found.first!r} to {found.last!r}, {found.n_tasks:,} tasks that follow each other in the data, workers "
        f"agree hardly more than by chance ({found.excess[0]:.2f} beyond it, and {found.excess[1]:.2f} on the other "
        "tasks): their labels belong to other tasks, as where rows are shifted by one, or these tasks are much harder, "
        "and the probabilities of their labels are too high",
        "Look there in the file; if the labels are of other tasks, leave these out until that is mended",
        found._asdict(),
    )


class OfAPart(NamedTuple):
    """A class that nobody gives to the tasks on one side of a task.

    Args:
        k: the class.
        task: the first that it is given to, or the last.
        since: whether it is the first, else the last.
        n_tasks: on the side where nobody gives it.
        share: of the tasks that they are.
        tail: probability that it is missing by chance, for all classes.
    """

    k: int
    task: object
    since: bool
    n_tasks: int
    share: float
    tail: float


def classes_of_a_part(given: Annotations) -> list[OfAPart]:
    """Return the classes that nobody gives before some task, or after one, in the order of the classes.

    Args:
        given: annotations of named workers, without abstentions.
    """
    names, (given, places) = given.tasks, looked_at(given)
    place, n_tasks = _in_order(given, names, places), given.n_tasks
    task, worker, label = (np.asarray(getattr(given, name)) for name in ("task", "worker", "label"))
    n = np.bincount(label, given.row_counts, given.n_classes)
    found: list[OfAPart] = []
    of_first = label[np.flatnonzero(np.diff(task, prepend=-1))]
    if given.when is None and (np.diff(of_first) != 0).sum() < given.n_classes:  # rows are sorted by label
        return found
    for since in (True, False):
        begins = np.full(given.n_classes, n_tasks)
        at = place if since else n_tasks - 1 - place
        np.minimum.at(begins, label, at[task])
        for k in np.flatnonzero((n >= RARE) & (begins >= PART * n_tasks) & (begins <= (1 - PART) * n_tasks)).tolist():
            votes = cross_counts((n_tasks, given.n_classes), task, label, weight=given.row_counts)
            tail = np.exp(_log_tail(votes, task, worker, label, k, at[task] - begins[k], given.kind))
            if (tail := float(tail * 2 * given.n_classes)) < TAIL:
                named = names[int(places[np.flatnonzero(at == begins[k])[0]])]
                missing = round(begins[k] / n_tasks * len(names))
                found.append(OfAPart(k, named, since, missing, float(begins[k] / n_tasks), tail))
    return sorted(found)


def _in_order(given: Annotations, names: object, places: np.ndarray) -> np.ndarray:
    """Return the rank of each task, by the mean time where each is known; among those of its question, ``(N,)``."""
    n_tasks, task = given.n_tasks, np.asarray(given.task)
    rank = np.arange(n_tasks)
    if given.when is not None and np.isfinite(given.when).all():
        when = np.bincount(task, given.when, n_tasks) / np.maximum(np.bincount(task, minlength=n_tasks), 1)
        rank = when.argsort(kind="stable").argsort()
    if not isinstance(names, Units):
        return rank
    question = names.question[places]
    of_question = np.zeros(n_tasks)
    for q in range(len(names.questions)):
        mine = question == q
        of_question[mine] = rank[mine].argsort().argsort() / max(mine.sum(), 1)
    return of_question.argsort(kind="stable").argsort()


def _log_tail(
    votes: np.ndarray, task: np.ndarray, worker: np.ndarray, label: np.ndarray, k: int, side: np.ndarray, kind: Kind
) -> float:
    """Return the logarithm of the probability that a class is missing by chance on one side.

    It is that of all tasks of the other side, or of those up to the median error, which a class that comes by and by
    does not reach so far.

    Args:
        votes: annotations by task and class, ``(N, K)``.
        task: of each annotation, ``(A,)``.
        worker: of each.
        label: its class.
        k: the class.
        side: below 0 on the side without it; 0 on the task where it begins, which does not count.
        kind: of the classes: of ordered ones an error to the one side says nothing of the other.
    """
    others = np.where(np.arange(votes.shape[1]) == k, -1.0, votes)
    most = others.argmax(1)[task]
    errs = (side != 0) & (votes[:, k] < others.max(1))[task] & (label != most)
    if isinstance(kind, Ordered):
        errs &= np.sign(label - most) == np.sign(k - most)
    _, group = np.unique(worker * votes.shape[1] + most, return_inverse=True)
    without, of_it = np.bincount(group, errs & (side < 0)), errs & (label == k)
    ends = np.unique(side[of_it])
    tails = []
    for end in (np.inf, *ends[(len(ends) - 1) // 2 :][:1]):
        beyond = np.bincount(group, errs & (side > 0) & (side <= end))
        n = np.bincount(group, (of_it & (side <= end)) / np.maximum(votes[task, k], 1))  # those of a task count as one
        tails.append(n @ np.log(np.maximum(beyond, 1) / np.maximum(without + beyond, 1)))
    return float(max(tails))


@check("class_of_a_part", "crowd", needs={"workers", "memory"})
def class_of_a_part(of: Labels) -> Iterator[Said]:
    """A class that nobody gives before some task, or after it (:func:`classes_of_a_part`)."""
    if (crowd := crowd_of(of)) is None:
        return
    for found in classes_of_a_part(crowd.given):
        name, side = name_quoted(of.annotations.classes[found.k]), "before" if found.since else "after"
        yield Said(
            f"nobody gives {name} {side} task {name_quoted(found.task)}, on {count_text(found.n_tasks, 'task')} "
            f"({found.share:.0%}), where by the errors of workers on the others some would have: either it was not "
            "there to be given, and tasks of it have the labels of other classes, with probabilities that are too "
            "high, or these tasks are of another source, without any that is like it",
            f"If it was not there, have the tasks {side} it annotated again; gold labels of some of them tell",
            {"class": of.annotations.classes[found.k], **found._asdict()},
        )
