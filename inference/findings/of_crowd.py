r"""Questions that the crowd's annotations alone leave open, whatever the story.

A likelihood that is summed over the true labels stays equal with two classes exchanged. A story's prevalence and
workers' errors rest on workers who share tasks. Where only the prior decides, a few true labels help more than another
story. The checks use counts with the label posterior :math:`P(z_i = k \mid y)`, from one pass over the annotations.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...data import Annotations
from ...data.arrays import connected_parts, cross_counts, expected_counts
from ...data.description import count_text
from ...data.questions import Units
from ...data.repeats import later_rows
from .constant_workers import FEWEST as OF_A_HABIT
from .constant_workers import constant_workers
from .register import Labels, Said, check, once

SAID = "the annotations alone do not tell"
"""First words of each of these findings."""

HELP = "Gold labels of some tasks tell: cp.estimate(fit, gold) measures with them, cp.fit(…, gold=gold) uses them"

BELOW_CHANCE = -3.0  # standard errors from chance at which a worker counts as worse
MUCH = 0.15  # share of the annotations that such workers give at the least
NEARLY_EQUAL = 3.0  # nats by which one naming of two classes leads the other
FEWEST = 5  # tasks that a class should have before its name is looked at
ONE_SIDED = 0.5  # share of the annotations by workers of whom each gives one class alone
FEW = 3  # workers on a task from which prevalence and errors are told apart
TASKS = 20  # that are annotated at the least; of fewer nothing is said of two workers or more
MOST = 0.5  # of the annotations that one worker gave, and of the tasks that hardly anybody else annotated
APART = 0.1  # share of the annotations outside of the largest group of workers who meet


class Crowd(NamedTuple):
    """A crowd of two workers or more, of tasks enough to say something of it."""

    given: Annotations  # those that are classes
    posterior: np.ndarray  # label probabilities, (N, K)
    knows_names: bool  # the names of the classes are known from gold labels, which the fit used


@once
def crowd_of(of: Labels) -> Crowd | None:
    """Return the crowd; None where it has fewer than two workers, or they annotated fewer than :data:`TASKS` tasks."""
    given = of.annotations.of_classes()
    if of.annotations.n_workers < 2 or (np.bincount(given.task) > 0).sum() < TASKS:
        return None
    return Crowd(given, np.asarray(of.posterior, float), _knows_names(of.annotations))


def _knows_names(annotations: Annotations) -> bool:
    evidence = annotations.evidence
    return evidence is not None and bool(np.isneginf(np.asarray(evidence)).any())


def by_auto(of: Labels, what: str) -> str:
    """Return words on what ``"auto"`` does; nothing of labels that are its."""
    return "" if getattr(of, "is_average", False) else f"cp.fit('auto', …) {what}"


def open_question(text: str, remedy: str = "", **values: object) -> Said:
    """Return what a check says of a question that the annotations leave open, with what helps beside the remedy."""
    return Said(f"{SAID} {text}", f"{remedy}. {HELP}" if remedy else HELP, values)


@check("one_worker", "crowd", needs={"workers"})
def one_worker(of: Labels) -> Iterator[Said]:
    """A single worker, whom nobody else's annotations show to err, of however few tasks."""
    if of.annotations.n_workers < 2 and not of.annotations.preferences and not _knows_names(of.annotations):
        yield open_question("how often the one worker errs, which nobody else's annotations show")


@once
def tables_of(of: Labels) -> np.ndarray | None:
    """Return the expected number of annotations by worker, true class and class given: ``(J, K, K)``."""
    crowd = crowd_of(of)
    if crowd is None:
        return None
    annotations, posterior = crowd.given, crowd.posterior
    return expected_counts(annotations, annotations.label, posterior)


@check("below_chance", "crowd", needs={"workers"})
def below_chance(of: Labels) -> Iterator[Said]:
    """Workers who are right less often than annotations in the same proportions would be by chance."""
    tables = tables_of(of)
    if tables is None:
        return
    n, worse = np.maximum(tables.sum((1, 2)), 1e-9), worse_than_chance(tables)
    share = n[worse].sum() / n.sum()
    if share >= MUCH:
        yield open_question(
            f"who is right: {count_text(int(worse.sum()), 'worker')} of {len(worse):,}, with {share:.0%} of the "
            "annotations, would be right less often than by chance, so that their annotations count for other classes "
            "than they name",
            workers=[of.annotations.workers[j] for j in np.flatnonzero(worse).tolist()],
            share=share,
        )


def worse_than_chance(tables: np.ndarray) -> np.ndarray:
    """A mask of the workers who are right less often than by chance, by three standard errors, ``(J,)``.

    Args:
        tables: expected numbers of annotations, as of :func:`tables_of`.
    """
    n = np.maximum(tables.sum((1, 2)), 1e-9)
    by_chance = (tables.sum(1) * tables.sum(2)).sum(-1) / n**2
    right = np.trace(tables, axis1=1, axis2=2)
    z = (right - n * by_chance) / np.sqrt(np.maximum(n * by_chance * (1 - by_chance), 1e-9))
    worse: np.ndarray = (z < BELOW_CHANCE) & (by_chance < 1)
    return worse


@check("one_class_each", "crowd", needs={"workers"})
def one_class_each(of: Labels) -> Iterator[Said]:
    """Workers of whom each gives one class alone, where abstentions do not count: any labels go with what they give."""
    annotations = of.annotations
    if crowd_of(of) is None or not untold_of_one_class(annotations).any():
        return
    one, share = of_one_class_each(annotations)
    remedy = (
        "fit without abstentions='uninformative'"
        if annotations.abstains
        else "give the abstentions too, such as the -1 of a matrix, and name them by abstain=[...]"
    )
    yield open_question(
        f"the true classes: {count_text(int(one.sum()), 'worker')} of {len(one):,}, with {share:.0%} of the "
        "annotations, give one class each whatever the task, as labelling functions do, so that only when they abstain "
        "says how good they are",
        f"{remedy}; or take the majority vote",
        workers=[annotations.workers[j] for j in np.flatnonzero(one).tolist()],
        share=share,
    )


@once
def is_one_sided(annotations: Annotations) -> bool:
    """True where most annotations are by workers of one class each, as labelling functions, and no spammers, are."""
    return of_one_class_each(annotations)[1] > ONE_SIDED and not len(constant_workers(annotations).workers)


def untold_of_one_class(annotations: Annotations) -> np.ndarray:
    """A mask of the workers of whom nothing tells how good they are, ``(J,)``: one class each, and no abstentions."""
    if (annotations.abstains and annotations.informative) or not is_one_sided(annotations):
        return np.zeros(annotations.n_workers, bool)
    return of_one_class_each(annotations)[0]


def of_one_class_each(annotations: Annotations) -> tuple[np.ndarray, float]:
    """A mask of the workers who give one class alone, ``(J,)``, and their share of the annotations that are classes.

    One class is no habit of who gave fewer than :data:`.constant_workers.FEWEST` annotations. The share is 0 where they
    all give the same class: they are spammers, and no labelling functions.
    """
    given = annotations.of_classes()
    n = cross_counts((given.n_workers, given.n_classes), given.worker, given.label, weight=given.count)
    one = ((n > 0).sum(1) == 1) & (n.sum(1) >= OF_A_HABIT)
    classes = int((n[one].sum(0) > 0).sum())
    return one, float(n[one].sum() / max(n.sum(), 1e-9)) if classes > 1 else 0.0


@check("two_namings", "crowd", needs={"workers"})
def two_namings(of: Labels) -> Iterator[Said]:
    r"""The other names that the classes could most easily have, where they could.

    Other names are those of the kind of the labels (:meth:`.Kind.renamings`): two classes exchanged, or an order turned
    round. With class k named :math:`\pi_k` the likelihood is the same. Where a worker's rows have the density of
    Dirichlet distributions with one pseudo-annotation more on the diagonal, the logarithms of both posteriors differ by
    :math:`\sum_j \sum_k \log \frac{\beta_{jkk}}{\beta_{jk\pi_k}}`.
    """
    crowd, tables = crowd_of(of), tables_of(of)
    if crowd is None or tables is None or crowd.knows_names or of.annotations.scored:  # the levels' order names them
        return
    classes, renamed = list(crowd.given.classes), crowd.given.kind.renamings(tables.shape[-1])
    own = np.arange(len(classes))
    rows = tables + 1.0
    rows /= rows.sum(-1, keepdims=True)
    logs = np.log(rows).sum(0)
    lead = (np.diag(logs) - logs[own, renamed]).sum(-1)
    moved = renamed != own
    near = (lead < NEARLY_EQUAL) & ((crowd.posterior.sum(0) >= FEWEST) | ~moved).all(-1)
    if not near.any():
        return
    nearest = int(np.argmin(np.where(near, lead, np.inf)))
    names, nats = [classes[k] for k in np.flatnonzero(moved[nearest])], lead[nearest]
    ahead = f"leads by {nats:.1f} nats" if nats >= 0 else f"is {-nats:.1f} nats behind"
    one, other = (repr(names[0]), repr(names[1])) if len(names) == 2 else ("the order of the classes", "its reverse")
    yield open_question(
        f"{one} from {other}: with the two exchanged the annotations are explained as well, by about as many able "
        f"workers (the naming that was found {ahead})",
        classes=names,
        nats=nats,
    )


class Meetings(NamedTuple):
    """Who annotated what, of all kinds of annotation that say something."""

    annotations: Annotations
    per_task: np.ndarray  # workers, (N,)


@once
def _meetings(of: Labels) -> Meetings | None:
    """Return who annotated what; None of no crowd, and where gold labels are known."""
    crowd = crowd_of(of)
    if crowd is None or crowd.knows_names:
        return None
    annotations = of.annotations if of.annotations.informative else crowd.given
    task, worker = np.asarray(annotations.task), np.asarray(annotations.worker)
    later = later_rows(task, worker, annotations.annotated_again)
    n_rows, n_later = (np.bincount(rows, minlength=annotations.n_tasks) for rows in (task, task[later]))
    return Meetings(annotations, n_rows - n_later)


@check("nobody_meets", "crowd", needs={"workers"})
def nobody_meets(of: Labels) -> Iterator[Said]:
    """Tasks of one worker each, unless they are preferences, which are no errors; or of nobody, where all abstained."""
    if of.annotations.abstains and not of.annotations.votes().any():
        yield open_question("what the labels are: all annotations are abstentions")
        return
    meetings = None if of.annotations.preferences else _meetings(of)
    if meetings is not None and not (meetings.per_task >= 2).any():
        yield open_question("how often workers err: no task has annotations of two workers")


@check("nobody_disagrees", "crowd", needs={"workers"})
def nobody_disagrees(of: Labels) -> Iterator[Said]:
    """Workers who agree on every task that several annotated."""
    meetings = _meetings(of)
    if meetings is None or not (n_met := int((meetings.per_task >= 2).sum())):
        return
    if not ((meetings.annotations.counts_by_kind() > 0).sum(1) > 1).any():
        yield open_question(
            f"how often workers err: all workers agree on each of the {n_met:,} tasks that several annotated",
            tasks=n_met,
        )


@check("two_workers", "crowd", needs={"workers"})
def two_workers(of: Labels) -> Iterator[Said]:
    """Two workers alone, of whom nothing tells who is right where they differ."""
    if not _are_two(of):
        return
    votes = of.annotations.votes()
    differ = int(((votes > 0).sum(1) > 1).sum())
    yield open_question(
        f"who is right: where the two workers differ, on {count_text(differ, 'task')}, nothing does, and where they "
        "agree both may err",
        tasks=differ,
    )


def _are_two(of: Labels) -> bool:
    """Return whether two workers annotated :data:`TASKS` or more, some both, and no gold label or model says more."""
    annotations = of.annotations
    if annotations.evidence is not None or len(annotations.models) or annotations.preferences:
        return False
    annotations = annotations.of_classes()
    if np.count_nonzero(np.bincount(_people(annotations), annotations.row_counts)) != 2:
        return False
    task, _ = _annotated(annotations)
    return bool(TASKS <= np.count_nonzero(np.bincount(task)) < len(task))


def _people(annotations: Annotations) -> np.ndarray:
    """Return the worker of each row, ``(A,)``; a worker of several questions is one."""
    worker = np.asarray(annotations.worker)
    return annotations.workers.task[worker] if isinstance(annotations.workers, Units) else worker


def _annotated(annotations: Annotations) -> tuple[np.ndarray, np.ndarray]:
    """Return tasks and workers who annotated them, each pair once; a worker of several questions is one."""
    worker, given = _people(annotations), annotations.row_counts > 0
    n_workers = int(worker.max(initial=0)) + 1
    pairs = np.sort(np.asarray(annotations.task, np.int64)[given] * n_workers + worker[given])  # np.unique takes longer
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    return pairs // n_workers, pairs % n_workers


@check("hangs_on_one", "crowd", needs={"workers"})
def hangs_on_one(of: Labels) -> Iterator[Said]:
    """One worker who gave most of the annotations, while at most one other annotated most of the tasks.

    Labels, probabilities and the scores of all then follow this worker, however good the others are.
    It is said of each of 20 crowds of which one of 31 workers gave 61 %, and of none of 180 healthy ones, 20 of each
    shape (``benchmarks/one_finding.py``), nor of 25 open ones that name workers.
    """
    if (meetings := _meetings(of)) is None or of.annotations.preferences or _are_two(of):
        return
    annotations = meetings.annotations
    task, worker = _annotated(annotations)
    n_by_worker, n_by_task = np.bincount(worker), np.bincount(task, minlength=annotations.n_tasks)
    most = int(n_by_worker.argmax())
    share = n_by_worker[most] / len(worker)
    hanging = int((n_by_task[task[worker == most]] < FEW).sum())
    n_annotated = int((n_by_task > 0).sum())
    if share <= MOST or hanging <= MOST * n_annotated or not (n_by_task > 1).any():
        return
    workers = annotations.workers
    name = (workers.tasks if isinstance(workers, Units) else workers)[most]
    yield Said(
        f"{name!r} gave {share:.0%} of the annotations, and {hanging:,} of {n_annotated:,} labels hang on this worker: "
        "at most one other annotated the task, so that label probabilities and all workers' scores are as good as this "
        "worker is",
        f"have tasks of {name!r} annotated by others, too. {HELP}",
        {"worker": name, "share": float(share), "tasks": hanging, "annotated": n_annotated},
    )


@check("few_workers_a_task", "crowd", needs={"workers"})
def few_workers_a_task(of: Labels) -> Iterator[Said]:
    """Tasks of which most have annotations of too few workers to tell prevalence from errors."""
    meetings = _meetings(of)
    if meetings is None or not (meetings.per_task >= 2).any() or _are_two(of):
        return
    n_annotated = int((meetings.per_task > 0).sum())
    few = int(((meetings.per_task > 0) & (meetings.per_task < FEW)).sum())
    if 2 * few > n_annotated:
        yield open_question(
            f"prevalence from errors: {few:,} of {n_annotated:,} tasks have annotations of fewer than {FEW} workers, "
            "so that the prior decides much of both",
            few=few,
            annotated=n_annotated,
        )


@check("three_workers", "crowd", needs={"workers"})
def three_workers(of: Labels) -> Iterator[Said]:
    """Three workers and two classes, whose shared errors their agreement hardly shows, as a note.

    The joint shares of their annotations are seven free numbers, as many as prevalence and confusion matrices have, so
    that independent errors explain nearly whatever the workers agree on (Walter & Irwig 1988).
    """
    crowd, annotations = crowd_of(of), of.annotations
    if crowd is None or crowd.knows_names or annotations.sides is not None or len(annotations.questions):
        return
    n_workers = len(np.unique(np.asarray(crowd.given.worker)))
    if n_workers == 3 and annotations.n_classes == 2 and not annotations.abstains:
        yield open_question(
            "whether workers share errors: of two classes, three workers who err independently explain nearly any "
            "agreement, so that tasks which mislead two of them go unseen",
        )._replace(severity="note")


@check("groups_apart", "crowd", needs={"workers"})
def groups_apart(of: Labels) -> Iterator[Said]:
    """Groups of workers who share no task."""
    meetings = _meetings(of)
    if meetings is None or not (meetings.per_task >= 2).any():
        return
    annotations, per_task = meetings
    n_tasks, n_workers = annotations.n_tasks, annotations.n_workers
    group = connected_parts(np.asarray(annotations.task), n_tasks + np.asarray(annotations.worker), n_tasks + n_workers)
    sizes = np.bincount(_joined_questions(annotations, group[:n_tasks], per_task), per_task)
    n_groups, largest = int((sizes > 0).sum()), sizes.max() / sizes.sum()
    if n_groups > 1 and 1 - largest > APART:
        yield open_question(
            f"workers of different groups from each other: the crowd falls into {n_groups:,} groups that "
            f"share no task, the largest with {largest:.0%} of the annotations, and within a group "
            "only agreement is seen",
            groups=n_groups,
            largest=largest,
        )


def _joined_questions(annotations: Annotations, group: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The groups of tasks, ``(N,)``; where each worker is of one question, the largest group of each are one group."""
    if not isinstance(annotations.workers, Units):
        return group
    joined = group.copy()
    for q in range(len(annotations.questions)):
        asked = np.asarray(annotations.question) == q
        joined[asked & (group == np.bincount(group[asked], weight[asked]).argmax())] = group.max() + 1
    return joined
