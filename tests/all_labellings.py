"""The label posterior of tiny data, by the sum over all labellings."""

from itertools import product

import numpy as np
from scipy.special import gammaln


def exact_labels(annotations, diagonal, off_diagonal):
    """Label probabilities of Dawid and Skene's story, parameters integrated out, by all labellings: ``(N, K)``."""
    labellings = np.array(list(product(range(annotations.n_classes), repeat=annotations.n_tasks)))
    logs = [log_joint(annotations, labels, diagonal, off_diagonal) for labels in labellings]
    weights = np.exp(logs - np.max(logs))
    return np.stack([weights @ (labellings == k) for k in range(annotations.n_classes)], -1) / weights.sum()


def log_joint(annotations, labels, diagonal, off_diagonal):
    """How probable annotations and labels ``(N,)`` are by Dawid and Skene's story, parameters integrated out."""
    k, j = annotations.n_classes, annotations.n_workers
    prior = np.full((k, k), off_diagonal) + np.eye(k) * (diagonal - off_diagonal)
    counts = np.zeros((j, k, k))
    np.add.at(counts, (annotations.worker, labels[annotations.task], annotations.label), 1)
    return dirichlet_multinomial(prior, counts) + dirichlet_multinomial(np.ones(k), np.bincount(labels, minlength=k))


def dirichlet_multinomial(alpha, counts):
    """The logarithm of how probable draws with these counts are, in their order, summed over rows."""
    whole = gammaln(alpha.sum(-1)) - gammaln((alpha + counts).sum(-1))
    return (whole + (gammaln(alpha + counts) - gammaln(alpha)).sum(-1)).sum()
