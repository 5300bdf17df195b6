"""Agreements between workers, counted by sparse products, so that thousands of workers need no dense matrix."""

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_array, triu

from ...data import Annotations
from ...data.arrays import cross_counts

CELLS = 5_000_000  # rows × classes that are held in memory at a time


def pair_counter(
    annotations: Annotations,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]]:
    r"""All pairs of different workers who share tasks, and a function that counts their agreements.

    With :math:`b_{jil} = 1` where worker j gave annotation l, a class, to task i, a pair agrees
    :math:`\sum_{il} b_{jil} b_{j'il}` times of :math:`\sum_{i} (\sum_l b_{jil}) (\sum_l b_{j'il})`. A repeated
    annotation is compared with each of the other worker's annotations to the task.

    Returns:
        Both workers of each pair and the number of pairs of annotations that they share, ``(P,)`` each; and a function
        of annotations ``(A,)`` and of both workers of some pairs, which counts the pairs of annotations that agree.
    """
    worker, task = np.asarray(annotations.worker), np.asarray(annotations.task, np.int64)
    n_workers, n_tasks, n_classes = annotations.n_workers, annotations.n_tasks, annotations.n_classes
    one = np.ones(len(task), dtype=np.float32)
    annotated = csr_array((one, (worker, task)), shape=(n_workers, n_tasks))
    shared = triu(annotated @ annotated.T, k=1, format="coo")

    def take(label: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        given = label < n_classes  # two abstentions are no agreement
        cells = (worker[given], (task * n_classes + label)[given])
        gave = csr_array((one[given], cells), shape=(n_workers, n_tasks * n_classes))
        agreed = gave @ gave.T
        agreed.sort_indices()
        return np.asarray(agreed[first, second]).ravel()

    first, second = shared.coords
    order = np.lexsort((second, first))
    return first[order], second[order], shared.data[order].astype(np.int64), take


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
    rows = np.flatnonzero(~alone)
    one = np.ones(len(task), dtype=np.int32)

    def take_once(label: np.ndarray) -> np.ndarray:
        """Where nobody annotated a task twice: without one's own vote, the majority is of no more than one class less.

        Who gave a class that is the most frequent by more than one vote agrees; by one vote, it ties with the next.
        """
        given = label < n_classes
        votes = cross_counts((n_tasks, n_classes), task[given], label[given])
        most = votes.max(-1)
        next_to_it = np.where(votes == most[:, None], -1, votes).max(-1, initial=-1)
        n_next = (votes == next_to_it[:, None]).sum(-1)
        alone_first = (votes == most[:, None]).sum(-1) == 1
        credit = np.where(most - 1 > next_to_it, 1.0, 1 / (1 + n_next)) * (alone_first & (most > 1))
        agrees = votes[task, np.minimum(label, n_classes - 1)] == most[task]
        return np.bincount(worker, credit[task] * (agrees & given), n_workers)

    def take(label: np.ndarray) -> np.ndarray:
        if len(visits) == len(task):
            return take_once(label)
        given = label < n_classes
        votes = cross_counts((n_tasks, n_classes), task[given], label[given])
        own = csr_array((one[given], (visit[given], label[given])), shape=(len(visits), n_classes))
        credit = np.zeros(len(task))
        chosen = rows[given[rows]]
        for chunk in np.array_split(chosen, max(len(chosen) * n_classes // CELLS, 1)):
            others = votes[task[chunk]] - own[visit[chunk]].toarray()
            most = others.max(-1, keepdims=True)
            winning = (others == most) & (most > 0)
            credit[chunk] = winning[np.arange(len(chunk)), label[chunk]] / np.maximum(winning.sum(-1), 1)
        return np.bincount(worker, credit, n_workers)

    return size, take
