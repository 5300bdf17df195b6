"""The small crowd that experiments of papers are tried on."""

import numpy as np
import pandas as pd

import crowdppl as cp


def small_crowd(seed=0):
    """40 tasks of two classes, three of five workers each."""
    rng = np.random.default_rng(seed)
    truth = np.arange(40) % 2
    x = rng.normal(np.where(truth, 1.5, -1.5)[:, None], 1.0, (40, 3))
    rows = [
        (i, j, truth[i] if rng.random() < 0.85 else 1 - truth[i])
        for i in range(40)
        for j in rng.choice(5, 3, replace=False)
    ]
    frame = pd.DataFrame(rows, columns=["task", "worker", "label"])
    return cp.Annotations.from_frame(frame, features=dict(enumerate(x)), gold=dict(enumerate(truth)))
