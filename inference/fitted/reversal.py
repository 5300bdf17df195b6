r"""The doubt that a crowd's labels are turned around: what follows where its workers are hardly better than chance.

Annotations tell which workers agree, and never which of two parties is right: that workers are better than chance on
the whole is an assumption. Where a story finds half of them below it, as in panels of language models on tasks that
mislead most, the labels may as well be turned around. With the workers' skill :math:`s_j = (a_j - 1/K) / (1 - 1/K)`,
of the share :math:`a_j` of annotations that are as the labels, the mean skill of other workers of this kind is
positive with a probability of

.. math::
    1 - d = \Phi\Big(\frac{\bar s}{\text{sd}(s) / \sqrt{J_\text{eff}}}\Big), \qquad
        J_\text{eff} = \frac{J}{1 + (J - 1) \, \overline{\rho^2}}

and d is the doubt. :math:`J_\text{eff}` is the number of workers who err each in a way of their own, by the mean
squared correlation of two workers' errors: a party of workers who err together counts like one, whether the others err
with it or against it. From each pair's squared correlation the 1 / n is subtracted that n tasks give by chance. Workers
count by their annotations, as J does: :math:`(\sum_j n_j)^2 / \sum_j n_j^2`. Of healthy crowds the mean skill is many
standard errors above 0, and there is no doubt.
"""

import numpy as np
from scipy import sparse
from scipy.special import ndtr

from ...data import Annotations
from .remembered import once_for_labels

MOST = 400  # workers whose errors are compared, those with the most annotations
PAIRS = 2e7  # of annotations of one task that are compared, about
LEAST = 10  # tasks in common of two of them
FEW = 10  # workers under which a mean skill tells nothing of other workers


@once_for_labels
def reversal_doubt(annotations: Annotations, posterior: np.ndarray) -> float:
    """The probability that workers of this kind are worse than chance in the mean, by these labels: from 0 to 1.

    It is 0 where no worker is named, and of fewer than ten workers.

    Args:
        posterior: label probabilities, ``(N, K)``.
    """
    annotations = annotations.of_classes()
    if not annotations.named:
        return 0.0
    n_classes, task, worker = annotations.n_classes, np.asarray(annotations.task), np.asarray(annotations.worker)
    right = np.ravel(posterior)[task * np.int64(n_classes) + np.asarray(annotations.label)].astype(float)
    weight = None if annotations.count is None else np.asarray(annotations.count, dtype=float)
    n = np.bincount(worker, weight, annotations.n_workers).astype(float)
    gave = n > 0
    if gave.sum() < FEW:
        return 0.0
    share = np.bincount(worker, right if weight is None else weight * right, annotations.n_workers)[gave] / n[gave]
    skill, n_gave = (share - 1 / n_classes) / (1 - 1 / n_classes), n[gave]
    mean = float(np.average(skill, weights=n_gave))
    variance = float(np.average((skill - mean) ** 2, weights=n_gave))
    n_workers = n_gave.sum() ** 2 / (n_gave**2).sum()
    apart = n_workers / (1 + (n_workers - 1) * _squared_correlation(annotations, right))
    return float(ndtr(-mean / np.sqrt(variance / apart + 1e-12)))


def _squared_correlation(annotations: Annotations, right: np.ndarray) -> float:
    """The mean squared correlation of two workers' errors, of those who annotated enough tasks in common; else 0.

    Args:
        annotations: the data, without abstentions.
        right: the probability that each annotation is right, ``(A,)``.
    """
    shape = (annotations.n_workers, annotations.n_tasks)
    worker, task = np.asarray(annotations.worker), np.asarray(annotations.task)
    if (compared := np.cumsum(np.bincount(task) ** 2.0).searchsorted(PAIRS)) < shape[1]:
        first = task < compared
        worker, task, right = worker[first], task[first], right[first]
    n = np.bincount(worker, minlength=shape[0])
    mean = np.bincount(worker, right, shape[0]) / np.maximum(n, 1)
    most = np.argsort(-n, kind="stable")[:MOST]
    given = sparse.csr_matrix((np.ones(len(task)), (worker, task)), shape)[most]
    errors = sparse.csr_matrix((right - mean[worker], (worker, task)), shape)[most]
    common = (given @ given.T).toarray()
    squares = errors.multiply(errors) @ given.T
    product, square = (errors @ errors.T).toarray(), squares.toarray()
    pairs = np.triu(common >= LEAST, 1) & (square > 0) & (square.T > 0)
    if not pairs.any():
        return 0.0
    squared = product[pairs] ** 2 / (square[pairs] * square.T[pairs]) - 1 / common[pairs]
    return float(np.clip(np.average(squared, weights=common[pairs]), 0.0, 1.0))
