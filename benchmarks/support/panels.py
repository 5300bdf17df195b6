"""Panels of judges of whom three agree: two who copy the first, or able ones, or such as the tasks mislead."""

import numpy as np
import pandas as pd

import crowdppl as cp
from crowdppl.inference.findings.copies import AgreeingGroup

N_TASKS = 300


def panel_of(
    seed: int,
    *,
    copied: float,
    ours: float,
    others: float,
    n_gold: int = 50,
    n_others: int = 4,
    misleading: float = 0,
    n_classes: int = 2,
) -> cp.Annotations:
    """Three judges and others who label 300 tasks, and gold labels of tasks at random.

    Args:
        seed: of everything.
        copied: the share of tasks in which the second and the third copy the first.
        ours: how often each of the three is right by themselves.
        others: how often each of the others is.
        n_gold: gold labels.
        n_others: how many others there are.
        misleading: the share of tasks on which any judge is wrong with a probability of 0.6, all alike.
        n_classes: no and yes, or more of them.
    """
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, N_TASKS)
    ability = np.r_[np.full(3, ours), np.full(n_others, others)]
    misled = (rng.random((N_TASKS, 1)) < misleading) & (rng.random((N_TASKS, len(ability))) < 0.6)
    is_right = (rng.random((N_TASKS, len(ability))) < ability) & ~misled
    by = 1 if n_classes == 2 else np.where(misled, 1, rng.integers(1, n_classes, is_right.shape))
    given = np.where(is_right, truth[:, None], (truth[:, None] + by) % n_classes)
    given[:, 1:3] = np.where(rng.random((N_TASKS, 2)) < copied, given[:, :1], given[:, 1:3])
    names = np.array(["no", "yes", *(f"class {k}" for k in range(2, n_classes))])
    matrix = pd.DataFrame(names[given], columns=[f"judge {i}" for i in range(len(ability))])
    gold = {int(i): names[truth[i]] for i in rng.choice(N_TASKS, n_gold, replace=False)}
    return cp.Annotations.from_matrix(matrix, gold=gold)


def first_three(annotations: cp.Annotations) -> AgreeingGroup:
    """The group of the first three judges, with how often two of them give the same."""
    given = np.asarray(annotations.label).reshape(N_TASKS, -1)
    pairs = [(given[:, i] == given[:, j]).mean() for i, j in ((0, 1), (0, 2), (1, 2))]
    return AgreeingGroup(np.arange(3), float(np.mean(pairs)), 0.0, N_TASKS)
