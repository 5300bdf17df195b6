r"""Warnings of questions that the crowd's annotations alone leave open, whatever the story.

A likelihood that is summed over the true labels stays equal with two classes exchanged. A story's prevalence and
workers' errors rest on workers who share tasks. Where only the prior decides, a few true labels help more than another
story. The warnings use counts with the label posterior :math:`P(z_i = k \mid y)`, from one pass over the annotations.
"""

from collections.abc import Hashable, Mapping

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ...data import Annotations
from ...data.description import count_text
from ..engines.outcome import ConvergenceWarning
from .copies import agreeing_groups
from .misled import told_label
from .repeated import agreeing_repeats

SAID = "the annotations alone do not tell"
"""First words of each of these warnings."""

CONTRADICTED = "The gold label counts as known; look whether it is right"
"""Last words of the warning of gold labels that contradict the crowd."""

HELP = "Gold labels of some tasks tell: cp.estimate(fit, gold) measures with them, cp.fit(…, gold=gold) uses them"

COPIES = "copies that count as one"
"""Name that the warning of workers who agree too much gives to these workers."""

BELOW_CHANCE = -3.0  # standard errors from chance at which a worker counts as worse
MUCH = 0.15  # share of the annotations that such workers give at the least
NEARLY_EQUAL = 3.0  # nats by which one naming of two classes leads the other
FEWEST = 5  # tasks that a class should have before its name is looked at
ONE_SIDED = 0.5  # share of the annotations by workers of whom each gives one class alone
FEW = 3  # workers on a task from which prevalence and errors are told apart
TASKS = 20  # that are annotated at the least; of fewer nothing is said
APART = 0.1  # share of the annotations outside of the largest group of workers who meet
SHOWN = 4  # names of a group


class CrowdWarning(UserWarning):
    """The annotations by themselves cannot tell what was asked of them; the message says what would."""


def crowd_warnings(
    annotations: Annotations, posterior: np.ndarray, families: Mapping[Hashable, Hashable] | None = None
) -> tuple[str, ...]:
    """Return what the annotations alone do not tell, a sentence each; empty where nothing was found.

    Args:
        annotations: the data. Where the fit used gold labels, the names of the classes are known from these.
        posterior: label probabilities, ``(N, K)``.
        families: of workers that the story lets err together, by worker; None where it has none.
    """
    used_gold = annotations.evidence is not None and np.isneginf(np.asarray(annotations.evidence)).any()
    everything, annotations = annotations, annotations.of_classes()
    if not annotations.named or len(np.unique(annotations.task)) < TASKS:
        return ()
    if annotations.n_workers < 2:
        alone = () if used_gold else ("how often the one worker errs, which nobody else's annotations show",)
        return tuple(f"{SAID} {text}. {HELP}" for text in alone)
    tables = _tables(annotations, np.asarray(posterior, float))
    found = _worse_than_chance(tables) + _copies(annotations, families or {}) + _repeats(annotations)
    found += _one_sided(everything)
    if not used_gold:
        found += _two_namings(tables, np.asarray(posterior, float).sum(0), list(annotations.classes))
        found += _not_identified(everything if everything.informative else annotations)
    return tuple(f"{SAID} {text}. {HELP}" for text in found)


def contradicted_gold(annotations: Annotations) -> tuple[str, ...]:
    """Return, where gold labels that a fit used contradict a crowd that agrees, a sentence that names one of them.

    Args:
        annotations: the data, with the gold labels that were used as evidence.
    """
    told = told_label(annotations)
    votes = np.asarray(annotations.of_classes().votes(), float)
    n = votes.sum(1)
    against = (told >= 0) & (n >= FEW) & (votes.max(1) == n) & (votes.argmax(1) != told)
    if not against.any():
        return ()
    first = int(np.argmax(against))
    tasks, classes = list(annotations.tasks), list(annotations.classes)
    others = count_text(int(against.sum()) - 1, "other task")
    return (
        f"the gold label of the task {tasks[first]!r} is {classes[told[first]]!r}, and all {n[first]:g} annotations of "
        f"it are {classes[int(votes[first].argmax())]!r}"
        + (f"; so it is with {others}" if against.sum() > 1 else "")
        + f". {CONTRADICTED}",
    )


def is_of_crowd(text: str) -> bool:
    """Return whether a fit's warning is one of :func:`crowd_warnings`."""
    return SAID in text


def category_of(text: str) -> type[UserWarning]:
    """The category in which a fit's warning is given."""
    return CrowdWarning if is_of_crowd(text) or CONTRADICTED in text else ConvergenceWarning


def _tables(annotations: Annotations, posterior: np.ndarray) -> np.ndarray:
    """The expected number of annotations by worker, true class and class given: ``(J, K, K)``."""
    n_classes = annotations.n_classes
    weight = np.ones(annotations.n_rows) if annotations.count is None else np.asarray(annotations.count, float)
    cell = np.asarray(annotations.worker, np.int64) * n_classes + np.asarray(annotations.label)
    by_class = [
        np.bincount(cell, weight * posterior[annotations.task, k], annotations.n_workers * n_classes)
        for k in range(n_classes)
    ]
    return np.stack(by_class).reshape(n_classes, annotations.n_workers, n_classes).transpose(1, 0, 2)


def _worse_than_chance(tables: np.ndarray) -> list[str]:
    """Workers who are right less often than annotations in the same proportions would be by chance."""
    n = np.maximum(tables.sum((1, 2)), 1e-9)
    right = np.trace(tables, axis1=1, axis2=2)
    by_chance = (tables.sum(1) * tables.sum(2)).sum(-1) / n**2
    z = (right - n * by_chance) / np.sqrt(np.maximum(n * by_chance * (1 - by_chance), 1e-9))
    worse = (z < BELOW_CHANCE) & (by_chance < 1)
    share = n[worse].sum() / n.sum()
    if share < MUCH:
        return []
    return [
        f"who is right: {count_text(int(worse.sum()), 'worker')} of {len(worse):,}, with {share:.0%} of the "
        "annotations, would be right less often than by chance, so that their annotations count for other classes than "
        "they name"
    ]


def _copies(annotations: Annotations, families: Mapping[Hashable, Hashable]) -> list[str]:
    """Workers who agree with each other more than independent workers can: :mod:`.copies`.

    Where the story knows them as one family already, what is left is to fit without them.
    """
    groups = agreeing_groups(annotations)
    if not groups:
        return []
    first, workers = groups[0], list(annotations.workers)
    names = [repr(workers[j]) for j in first.workers[:SHOWN]]
    n_left = len(first.workers) - len(names)
    *before, last = names if n_left == 0 else [*names, f"{n_left:,} more"]
    others = f"; so it is with {count_text(len(groups) - 1, 'other group')}" if len(groups) > 1 else ""
    known = {families.get(workers[j]) for j in first.workers}
    remedy = (
        "the labels are still too sure, although the story knows them as one family: keep one of them and compare the "
        "labels"
        if len(known) == 1 and None not in known
        else "the labels are far too sure: keep one of them, or fit with shared_error=True, worker_families={worker: "
        "family, …}"
    )
    return [
        f"whether {', '.join(before)} and {last} are much better than the rest, or {COPIES}: they give "
        f"the same label in {first.within:.0%} of their annotations of one task, and the label of others in "
        f"{first.outside:.0%}, more than workers who err independently of each other would{others}. If they are copies "
        f"{remedy}; cp.error_correlation(fit, gold) says like how many they count"
    ]


def _one_sided(annotations: Annotations) -> list[str]:
    """Workers of whom each gives one class alone, where abstentions do not count: any labels go with what they give."""
    if annotations.abstains and annotations.informative:
        return []
    one, share = of_one_class_each(annotations)
    if share <= ONE_SIDED:
        return []
    remedy = (
        "fit without abstentions='uninformative'"
        if annotations.abstains
        else "give the abstentions too, such as the -1 of a matrix, and name them by abstain=[...]"
    )
    return [
        f"the true classes: {count_text(int(one.sum()), 'worker')} of {len(one):,}, with {share:.0%} of the "
        "annotations, give one class each whatever the task, as labelling functions do, so that only when they abstain "
        f"says how good they are: {remedy}; or take the majority vote"
    ]


def of_one_class_each(annotations: Annotations) -> tuple[np.ndarray, float]:
    """Which workers give one class alone, ``(J,)``, and their share of the annotations that are classes.

    The share is 0 where they all give the same class: they are spammers, and no labelling functions.
    """
    given = annotations.of_classes()
    weight = np.ones(given.n_rows) if given.count is None else np.asarray(given.count, float)
    cell = np.asarray(given.worker, np.int64) * given.n_classes + np.asarray(given.label)
    n = np.bincount(cell, weight, given.n_workers * given.n_classes).reshape(given.n_workers, -1)
    one = (n > 0).sum(1) == 1
    classes = int((n[one].sum(0) > 0).sum())
    return one, float(n[one].sum() / max(n.sum(), 1e-9)) if classes > 1 else 0.0


def _repeats(annotations: Annotations) -> list[str]:
    """Workers whose repeated annotations of a task agree more than independent ones would: :mod:`.repeated`."""
    groups = agreeing_repeats(annotations)
    if not groups:
        return []
    said = [
        f"{annotations.workers[one.worker]!r} annotated {count_text(one.n_tasks, 'task')} more than once, and two such "
        f"annotations of a task agree in {one.agreement:.0%}; independent ones would in about "
        f"{one.expected:.0%}, by how others agree"
        for one in groups[:SHOWN]
    ]
    others = f"; so it is with {count_text(len(groups) - SHOWN, 'other worker')}" if len(groups) > SHOWN else ""
    return [
        f"how much repeats say that the first annotation does not: {'; '.join(said)}{others}. Each counts in full, as "
        "if another worker gave it, so that the labels are too sure: repeats='first' keeps one of each; or make every "
        "run a worker, such as 'judge run 2', and fit with shared_error=True, worker_families={worker: family, …}"
    ]


def _two_namings(tables: np.ndarray, n_tasks: np.ndarray, classes: list[object]) -> list[str]:
    r"""Pairs of classes that could as well be exchanged.

    With the classes k and l exchanged the likelihood is the same. Where a worker's rows have the density of
    Dirichlet distributions with one pseudo-annotation more on the diagonal, the logarithms of both posteriors differ by
    :math:`\sum_j \log \frac{\beta_{jkk} \beta_{jll}}{\beta_{jkl} \beta_{jlk}}`.
    """
    rows = tables + 1.0
    rows /= rows.sum(-1, keepdims=True)
    logs = np.log(rows)
    own = np.einsum("jkk->jk", logs)
    lead = (own[:, :, None] + own[:, None, :] - logs - logs.swapaxes(1, 2)).sum(0)
    k, m = np.triu_indices(len(classes), 1)
    enough = (n_tasks[k] >= FEWEST) & (n_tasks[m] >= FEWEST)
    near = enough & (lead[k, m] < NEARLY_EQUAL)
    if not near.any():
        return []
    pair = int(np.argmin(np.where(near, lead[k, m], np.inf)))
    a, b, nats = classes[k[pair]], classes[m[pair]], lead[k[pair], m[pair]]
    ahead = f"leads by {nats:.1f} nats" if nats >= 0 else f"is {-nats:.1f} nats behind"
    return [
        f"{a!r} from {b!r}: with the two exchanged the annotations are explained as well, by about as many able "
        f"workers (the naming that was found {ahead})"
    ]


def _not_identified(annotations: Annotations) -> list[str]:
    """Annotations that leave prevalence and errors open: nobody disagrees, too few meet, or in groups of their own."""
    task, worker = np.asarray(annotations.task, np.int64), np.asarray(annotations.worker, np.int64)
    pairs = pd.unique(task * annotations.n_workers + worker)
    per_task = np.bincount(pairs // annotations.n_workers, minlength=annotations.n_tasks)
    n_annotated, n_met = int((per_task > 0).sum()), int((per_task >= 2).sum())
    votes = annotations.counts_by_kind()
    found = []
    if n_met == 0:
        return ["how often workers err: no task has annotations of two workers"]
    if not ((votes > 0).sum(1) > 1).any():
        found.append(f"how often workers err: all workers agree on each of the {n_met:,} tasks that several annotated")
    few = int(((per_task > 0) & (per_task < FEW)).sum())
    if 2 * few > n_annotated:
        found.append(
            f"prevalence from errors: {few:,} of {n_annotated:,} tasks have annotations of fewer than {FEW} workers, "
            "so that the prior decides much of both"
        )
    shape = (annotations.n_tasks, annotations.n_workers)
    edges = sparse.coo_matrix((np.ones(len(pairs)), (pairs // shape[1], pairs % shape[1])), shape)
    graph = sparse.bmat([[None, edges], [edges.T, None]], format="csr")
    _, group = connected_components(graph, directed=False)
    sizes = np.bincount(group[: annotations.n_tasks], per_task)
    if (sizes > 0).sum() > 1 and 1 - sizes.max() / sizes.sum() > APART:
        found.append(
            f"workers of different groups from each other: the crowd falls into {(sizes > 0).sum():,} groups that "
            f"share no task, the largest with {sizes.max() / sizes.sum():.0%} of the annotations, and within a group "
            "only agreement is seen"
        )
    return found
