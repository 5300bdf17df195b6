"""Crowds so small that their posteriors can be sampled to any accuracy: six or eight workers, some forty tasks.

Each was drawn once and is written down here: two classes, features ``x | z ~ Normal(±center, I)`` to one decimal, and
workers with known sensitivities and specificities. In the first, all workers annotate all tasks; in the second,
``toy_sparse``, five of eight annotate each.
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

CLASSES = ("no", "yes")


class Toy(NamedTuple):
    """A crowd that was drawn, and what it was drawn with."""

    sensitivity: tuple[float, ...]  # P(annotation "yes" | true label "yes") of each worker
    specificity: tuple[float, ...]  # P(annotation "no" | true label "no") of each worker
    center: tuple[float, float]  # of the features of a task whose true label is "yes"; the negative of "no"
    prevalence: float  # of "yes"
    by_task: str  # for each task a sign of each worker: 0 for "no", 1 for "yes", a hyphen for none
    truth: str  # for each task 0 or 1
    features: str  # two numbers for each task

    @property
    def facts(self) -> dict[str, Any]:
        """The row of `list_datasets`."""
        return {
            "tasks": len(self.truth),
            "workers": len(self.sensitivity),
            "classes": len(CLASSES),
            "annotations": sum(map(self.by_task.count, "01")),
            "gold": len(self.truth),
            "features": "2",
        }

    def arguments(self) -> dict[str, Any]:
        """Return those of `Annotations.from_frame`: the true labels are gold, and each task has two features.

        Tasks are numbered from 1, workers are called "w1", "w2" and so on, and the classes "no" and "yes".
        """
        rows = [
            (task, f"w{j}", CLASSES[int(sign)])
            for task, signs in enumerate(self.by_task.split(), start=1)
            for j, sign in enumerate(signs, start=1)
            if sign != "-"
        ]
        features = np.array(self.features.split(), dtype=float).reshape(len(self.truth), 2)
        return {
            "frame": pd.DataFrame(rows, columns=["task", "worker", "label"]),
            "gold": {task: CLASSES[int(sign)] for task, sign in enumerate(self.truth, start=1)},
            "features": dict(enumerate(features, start=1)),
        }


TOY = Toy(
    sensitivity=(0.95, 0.9, 0.85, 0.8, 0.7, 0.75),
    specificity=(0.9, 0.95, 0.8, 0.85, 0.75, 0.6),
    center=(1.0, 1.0),
    prevalence=0.5,
    by_task="""
001000 111011 001000 000110 000000 111101 111011 111110 100001 000100
000110 111111 001001 111001 001000 101000 000000 000000 111101 000000
000100 001000 000000 111111 111111 101110 001000 111111 001001 111111
111111 000000 110111 111001 111001 111011 011101 111110 000000 111011
""",
    truth="0100011100010100001000011101011011111101",
    features="""
-2.0 0.3 -0.5 1.3 0.1 -0.8 -1.4 -1.8 -1.3 0.1 1.9 0.7 -0.2 1.7 -0.4 0.5 -1.7 -0.3 -0.8 -0.5
-0.7 -1.7 1.5 2.4 -1.0 -0.4 0.9 2.0 -0.3 -0.1 -0.7 0.6 -1.4 -1.3 -1.6 -0.4 0.4 0.4 -0.3 0.2
-0.4 -3.7 -2.0 -2.1 -2.2 -1.4 2.8 0.7 0.3 1.7 1.1 1.1 -1.7 -1.0 1.4 -0.9 -2.6 0.1 1.8 0.5
0.0 0.8 -2.2 -1.3 2.7 1.1 2.2 0.8 1.4 2.4 -0.3 0.7 0.8 1.3 2.6 1.7 -2.5 -1.3 0.1 0.1
""",
)

TOY_SPARSE = Toy(
    sensitivity=(0.95, 0.9, 0.9, 0.8, 0.8, 0.7, 0.65, 0.55),
    specificity=(0.9, 0.95, 0.8, 0.9, 0.7, 0.8, 0.7, 0.6),
    center=(1.0, 0.5),
    prevalence=0.4,
    by_task="""
-1-0110- 11-10-0- 11--1-11 --00000- 000-00-- -00-011- -0-0100- -11-10-1
00--1-11 111-0-1- 0-000-0- -00--101 0-00--11 0--11-00 -0--0001 -000--00
1-00-00- -1-11-11 -0--1000 -1-111-1 -11011-- 000--1-0 --000-00 0000-0--
-0000--0 1-111-1- 0-0011-- 0-10--00 -1--1100 1-111--0 00-0--00 1-1-11-0
1-1111-- 000-1-1- 000-10-- 00--00-0 1-11--11 -0-1111- 001---01 0-11--01
0---0010 0-01--10 -010-01- 1-10--00 0-00-0-0 011-1-1- 11-10--0 1-11-1-1
""",
    truth="111000010100000001011000010011011000110000000111",
    features="""
2.6 0.7 0.9 2.0 0.4 -0.4 -1.8 -1.2 -2.4 -1.1 -0.2 -2.0 -0.8 -1.0 0.7 1.5 -0.3 0.7 2.6 -1.4 -2.1 1.9 -1.0 1.8
-0.9 0.4 -1.6 -0.4 -0.8 0.0 -0.2 1.3 -1.0 -2.2 0.7 0.6 -2.3 1.2 0.8 1.0 0.5 1.6 0.0 -0.6 -0.6 -1.7 -1.4 -1.7
-1.1 -0.1 1.0 1.2 1.7 -1.7 0.0 -0.6 2.8 0.7 2.0 1.3 1.2 -2.5 0.9 1.7 0.6 1.3 -0.4 -0.9 -0.6 -0.1 -0.2 -1.2
0.8 1.8 0.6 -0.9 -0.6 -2.8 -0.8 1.1 -0.8 -1.6 -1.2 0.5 0.9 0.3 -2.8 0.9 -2.0 -1.0 0.7 1.3 0.3 0.8 1.9 1.5
""",
)
