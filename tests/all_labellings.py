"""The label posterior of tiny data, by the sum over all labellings."""

from itertools import product

import numpy as np
from scipy.special import gammaln


def exact_labels(annotations, diagonal, off_diagonal):
    """Label probabilities of Dawid and Skene's story, parameters integrated out, by all labellings: ``(N, K)``."""
    n, k, j = annotations.n_tasks, annotations.n_classes, annotations.n_workers
    prior = np.full((k, k), off_diagonal) + np.eye(k) * (diagonal - off_diagonal)

    def log_marginal(alpha, counts):
        whole = gammaln(alpha.sum(-1)) - gammaln((alpha + counts).sum(-1))
        return (whole + (gammaln(alpha + counts) - gammaln(alpha)).sum(-1)).sum()

    labellings = np.array(list(product(range(k), repeat=n)))
    logs = []
    for labels in labellings:
        counts = np.zeros((j, k, k))
        np.add.at(counts, (annotations.worker, labels[annotations.task], annotations.label), 1)
        logs.append(log_marginal(prior, counts) + log_marginal(np.ones(k), np.bincount(labels, minlength=k)))
    weights = np.exp(logs - np.max(logs))
    return np.stack([weights @ (labellings == label) for label in range(k)], -1) / weights.sum()
