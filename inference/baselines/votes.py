r"""Rules that make labels of votes: majority vote, weighted majority vote, vote shares.

With :math:`n_{ik}` annotations of class k for task i, abstentions left out.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ...data import AnnotationError, Annotations
from ...data.arrays import cross_counts
from ...data.question_classes import within


class Rule(NamedTuple):
    """A rule over votes: what it gives, and one line that says what it does."""

    probabilities: Callable[[Annotations], np.ndarray]
    says: str


def majority_vote(annotations: Annotations) -> np.ndarray:
    r"""Return the majority vote of each task as probabilities: ``(N, K)``.

    .. math:: p_{ik} = [k \in B_i] / |B_i|, \quad B_i = \arg\max_k n_{ik}

    A task without annotations is a tie of all classes.
    """
    return _possible(annotations, annotations.kind.majority(annotations.votes()))


def naive_soft(annotations: Annotations) -> np.ndarray:
    r"""Return each class's share of the votes of each task: ``(N, K)``.

    .. math:: p_{ik} = n_{ik} / \sum_l n_{il}

    Equal shares for a task without annotations.
    """
    return _possible(annotations, annotations.kind.votes(annotations.votes().astype(float)))


def smoothed_votes(annotations: Annotations) -> np.ndarray:
    r"""Return each class's share of the votes of each task and one more, which has all votes' shares: ``(N, K)``.

    .. math:: p_{ik} = \frac{n_{ik} + s_k}{\sum_l n_{il} + 1}, \quad s_k = \frac{\sum_i n_{ik}}{\sum_{il} n_{il}}

    So that one vote for a class is not sure of it.
    """
    votes = annotations.votes().astype(float)
    total = votes.sum()
    return _possible(annotations, annotations.kind.votes(votes + votes.sum(0) / total if total else votes))


def wawa(annotations: Annotations) -> np.ndarray:
    r"""Return the shares of votes that weigh as much as their worker agrees with the majority: ``(N, K)``.

    .. math:: p_{ik} \propto \sum_{a \in i} w_{j_a} [y_a = k]

    with the weights of :func:`agreement` ("worker agreement with aggregate", as in crowd-kit). Where all workers of a
    task have weight 0 it has the shares of its votes.

    Raises:
        AnnotationError: no worker is named.
    """
    weight = agreement(annotations)
    given = annotations.of_classes()
    of_row = given.row_counts * weight[np.asarray(given.worker)]
    weighted = cross_counts((given.n_tasks, given.n_classes), given.task, given.label, weight=of_row)
    silent = weighted.sum(-1, keepdims=True) == 0
    return _possible(annotations, annotations.kind.votes(np.where(silent, annotations.votes(), weighted)))


def _possible(annotations: Annotations, shares: np.ndarray) -> np.ndarray:
    """Return shares of the classes with nothing of those that a task's question does not have: ``(N, K)``."""
    return within(shares, annotations.kind, annotations.question)


def agreement(annotations: Annotations) -> np.ndarray:
    r"""Return the share of each worker's annotations that are the majority vote: ``(J,)``, 0 for a worker without any.

    .. math:: w_j = \frac{1}{n_j} \sum_{a \in j} \frac{[y_a \in B_{i_a}]}{|B_{i_a}|}

    Raises:
        AnnotationError: no worker is named.
    """
    if not annotations.named:
        raise AnnotationError(
            "wawa weighs votes by their workers, and the annotations name none; take majority_vote or naive_soft"
        )
    given = annotations.of_classes()
    count = given.row_counts
    right = majority_vote(annotations)[np.asarray(given.task), np.asarray(given.label)]
    worker = np.asarray(given.worker)
    total = np.bincount(worker, count, given.n_workers)
    return np.bincount(worker, count * right, given.n_workers) / np.maximum(total, 1)


RULES: dict[str, Rule] = {
    "majority_vote": Rule(majority_vote, "The class with the most annotations; ties are shared."),
    "wawa": Rule(wawa, "Majority vote weighted by how often each worker agrees with the majority."),
    "naive_soft": Rule(naive_soft, "Each class's share of a task's annotations, as soft labels."),
    "smoothed_votes": Rule(smoothed_votes, "The same with one vote more for each task, which has all votes' shares."),
}
"""The rules by name."""
