"""A crowd so small that its posteriors can be sampled to any accuracy: six workers, forty tasks of two classes.

It was drawn once and is written down here: classes equally frequent, features ``x | z ~ Normal(±(1, 1), I)`` to one
decimal, and workers with the sensitivities and specificities of :data:`SENSITIVITY` and :data:`SPECIFICITY`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

SENSITIVITY = (0.95, 0.9, 0.85, 0.8, 0.7, 0.75)
"""P(annotation "yes" | true label "yes") of each worker, by which the annotations were drawn."""

SPECIFICITY = (0.9, 0.95, 0.8, 0.85, 0.75, 0.6)
"""P(annotation "no" | true label "no") of each worker."""

WORKERS = ("w1", "w2", "w3", "w4", "w5", "w6")
CLASSES = ("no", "yes")

# Six digits for each of the tasks 1 to 40, one of each worker.
_BY_TASK = """
001000 111011 001000 000110 000000 111101 111011 111110 100001 000100
000110 111111 001001 111001 001000 101000 000000 000000 111101 000000
000100 001000 000000 111111 111111 101110 001000 111111 001001 111111
111111 000000 110111 111001 111001 111011 011101 111110 000000 111011
"""
_TRUTH = "0100011100010100001000011101011011111101"
_FEATURES = """
-2.0 0.3 -0.5 1.3 0.1 -0.8 -1.4 -1.8 -1.3 0.1 1.9 0.7 -0.2 1.7 -0.4 0.5 -1.7 -0.3 -0.8 -0.5
-0.7 -1.7 1.5 2.4 -1.0 -0.4 0.9 2.0 -0.3 -0.1 -0.7 0.6 -1.4 -1.3 -1.6 -0.4 0.4 0.4 -0.3 0.2
-0.4 -3.7 -2.0 -2.1 -2.2 -1.4 2.8 0.7 0.3 1.7 1.1 1.1 -1.7 -1.0 1.4 -0.9 -2.6 0.1 1.8 0.5
0.0 0.8 -2.2 -1.3 2.7 1.1 2.2 0.8 1.4 2.4 -0.3 0.7 0.8 1.3 2.6 1.7 -2.5 -1.3 0.1 0.1
"""

N_TASKS = len(_TRUTH)
FACTS = {
    "tasks": N_TASKS,
    "workers": len(WORKERS),
    "classes": len(CLASSES),
    "annotations": N_TASKS * len(WORKERS),
    "gold": N_TASKS,
    "features": "2",
}
"""The row of `list_datasets`."""


def toy() -> dict[str, Any]:
    """Return the arguments of `Annotations.from_frame`: 240 annotations, the true labels as gold, two features a task.

    Tasks are numbered 1 to 40, workers are called "w1" to "w6", and the classes "no" and "yes".
    """
    rows = [
        (task, worker, CLASSES[int(digit)])
        for task, digits in enumerate(_BY_TASK.split(), start=1)
        for worker, digit in zip(WORKERS, digits, strict=True)
    ]
    features = np.array(_FEATURES.split(), dtype=float).reshape(N_TASKS, 2)
    return {
        "frame": pd.DataFrame(rows, columns=["task", "worker", "label"]),
        "gold": {task: CLASSES[int(digit)] for task, digit in enumerate(_TRUTH, start=1)},
        "features": dict(enumerate(features, start=1)),
    }
