"""Dawid & Skene's likelihood by summing over every labelling of all tasks at once, in plain loops."""

from itertools import product

import numpy as np


def enumerate_labellings(annotations, prevalence, confusion, evidence=None):
    """Return log p(y), the label posterior (N, K), and log p(y_i) of each task (N,)."""
    n, k = annotations.n_tasks, annotations.n_classes
    evidence = np.zeros((n, k)) if evidence is None else evidence
    count = np.ones(annotations.n_rows) if annotations.count is None else annotations.count
    total, mass = 0.0, np.zeros((n, k))
    for labelling in product(range(k), repeat=n):
        p = np.prod([prevalence[z] * np.exp(evidence[i, z]) for i, z in enumerate(labelling)])
        for task, worker, label, times in zip(
            annotations.task, annotations.worker, annotations.label, count, strict=True
        ):
            p *= confusion[worker, labelling[task], label] ** times
        total += p
        for i, z in enumerate(labelling):
            mass[i, z] += p
    by_task = [
        np.log(
            sum(
                prevalence[z]
                * np.exp(evidence[i, z])
                * np.prod(
                    [
                        confusion[w, z, y] ** c
                        for t, w, y, c in zip(
                            annotations.task, annotations.worker, annotations.label, count, strict=True
                        )
                        if t == i
                    ]
                )
                for z in range(k)
            )
        )
        for i in range(n)
    ]
    return np.log(total), mass / total, np.array(by_task)
