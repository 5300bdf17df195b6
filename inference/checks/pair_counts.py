"""Agreements between workers, counted by sparse products, so that thousands of workers need no dense matrix."""

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array, triu

from ...data import Annotations
from ...data.arrays import cross_counts

CELLS = 5_000_000  # rows × classes, or pairs of rows, that are held in memory at a time


def pairs_of_workers(annotations: Annotations) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both workers of each pair who share tasks, and the number of pairs of annotations that they share: ``(P,)`` each.

    A repeated annotation is compared with each of the other worker's annotations to the task.
    """
    worker, task = np.asarray(annotations.worker), np.asarray(annotations.task, np.int64)
    one = np.ones(len(task), dtype=np.float32)
    annotated = csr_array((one, (worker, task)), shape=(annotations.n_workers, annotations.n_tasks))
    shared = triu(annotated @ annotated.T, k=1, format="coo")
    first, second = shared.coords
    order = np.lexsort((second, first))
    return first[order], second[order], shared.data[order].astype(np.int64)


def agreement_counter(
    annotations: Annotations, first: np.ndarray, second: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    r"""A function of annotations ``(A,)`` that counts in how many pairs of annotations two workers agree, ``(P,)``.

    With :math:`b_{jil} = 1` where worker j gave annotation l, a class, to task i, a pair agrees
    :math:`\sum_{il} b_{jil} b_{j'il}` times. Of as many pairs of annotations as fit into memory each is looked at; of
    more the sums are sparse products.

    Args:
        annotations: the design, whose rows are sorted by task.
        first: the worker of each pair who comes first, ``(P,)``.
        second: the other.
    """
    worker, task = np.asarray(annotations.worker, np.int64), np.asarray(annotations.task, np.int64)
    n_workers, n_tasks, n_classes = annotations.n_workers, annotations.n_tasks, annotations.n_classes
    by_task = np.bincount(task, minlength=n_tasks)
    if (by_task * (by_task - 1) // 2).sum() <= CELLS:
        apart = [np.flatnonzero(task[n:] == task[:-n]) for n in range(1, int(by_task.max(initial=0)))]
        one = np.concatenate([np.zeros(0, np.int64), *apart])
        other = np.concatenate([np.zeros(0, np.int64), *(rows + n for n, rows in enumerate(apart, 1))])
        own = np.minimum(worker[one], worker[other]) * n_workers + np.maximum(worker[one], worker[other])
        wanted = first.astype(np.int64) * n_workers + second
        order = np.argsort(wanted)
        at = np.minimum(np.searchsorted(wanted, own, sorter=order), len(wanted) - 1)
        kept = wanted[order[at]] == own
        one, other, pair = one[kept], other[kept], order[at[kept]]

        def look(label: np.ndarray) -> np.ndarray:
            agree = (label[one] == label[other]) & (label[one] < n_classes)  # two abstentions are no agreement
            return np.bincount(pair[agree], minlength=len(wanted)).astype(np.float32)

        return look
    ones = np.ones(len(task), dtype=np.float32)

    def multiply(label: np.ndarray) -> np.ndarray:
        given = label < n_classes
        cells = (worker[given], (task * n_classes + label)[given])
        gave = csr_array((ones[given], cells), shape=(n_workers, n_tasks * n_classes))
        agreed = gave @ gave.T
        agreed.sort_indices()
        return np.asarray(agreed[first, second]).ravel()

    return multiply


def majority_counter(annotations: Annotations) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """The sizes and the count of each worker's agreement with the majority of a task's other workers.

    A worker's repeated annotations to a task are not among the others'. An annotation that agrees with the majority
    counts 1, or 1/k where k classes tie; an abstention agrees with nobody, and nobody with abstentions.

    Returns:
        How many annotations each worker gave to tasks that others annotated too, ``(J,)``; and a function from
        annotations ``(A,)`` to the workers' agreements, ``(J,)``.
    """
    worker, task = np.asarray(annotations.worker, np.int64), np.asarray(annotations.task, np.int64)
    n_workers, n_tasks, n_classes = annotations.n_workers, annotations.n_tasks, annotations.n_classes
    _, visit, visits = np.unique(task * n_workers + worker, return_inverse=True, return_counts=True)
    alone = visits[visit] == np.bincount(task, minlength=n_tasks)[task]
    size = np.bincount(worker[~alone], minlength=n_workers)
    again = np.flatnonzero(visits[visit] > 1)
    one = np.ones(len(task), dtype=np.int32)

    def credit_once(label: np.ndarray, votes: np.ndarray) -> np.ndarray:
        """Of rows of who annotated the task once: without one's vote, the majority is of no more than one class less.

        Who gave a class that is the most frequent by more than one vote agrees; by one vote, it ties with the next.
        """
        most = votes.max(-1)
        next_to_it = np.where(votes == most[:, None], -1, votes).max(-1, initial=-1)
        n_next = (votes == next_to_it[:, None]).sum(-1)
        alone_first = (votes == most[:, None]).sum(-1) == 1
        credit = np.where(most - 1 > next_to_it, 1.0, 1 / (1 + n_next)) * (alone_first & (most > 1))
        agrees = votes[task, np.minimum(label, n_classes - 1)] == most[task]
        return credit[task] * (agrees & (label < n_classes))

    def take(label: np.ndarray) -> np.ndarray:
        given = label < n_classes
        votes = cross_counts((n_tasks, n_classes), task[given], label[given])
        credit = credit_once(label, votes)
        credit[again] = 0.0
        chosen = again[given[again]]
        if not len(chosen):
            return np.bincount(worker, credit, n_workers)
        own = csr_array((one[chosen], (visit[chosen], label[chosen])), shape=(len(visits), n_classes))
        for chunk in np.array_split(chosen, max(len(chosen) * n_classes // CELLS, 1)):
            others = votes[task[chunk]] - own[visit[chunk]].toarray()
            most = others.max(-1, keepdims=True)
            winning = (others == most) & (most > 0)
            credit[chunk] = winning[np.arange(len(chunk)), label[chunk]] / np.maximum(winning.sum(-1), 1)
        return np.bincount(worker, credit, n_workers)

    return size, take
