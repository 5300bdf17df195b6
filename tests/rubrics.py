"""A rubric whose questions have classes of their own: yes or no, a scale, topics."""

import numpy as np
import pandas as pd

CLASSES = {"safe": ["no", "yes"], "helpful": [1, 2, 3, 4, 5], "topic": ["other", "politics", "sports"]}


def rubric(n_tasks: int = 20, n_workers: int = 4, wrong: float = 0.25, seed: int = 0) -> tuple[pd.DataFrame, dict]:
    """A table with a row for each answer, and the true labels by task and question."""
    rng = np.random.default_rng(seed)
    rows, truth = [], {}
    for i in range(n_tasks):
        for question, classes in CLASSES.items():
            z = rng.integers(len(classes))
            truth[f"t{i}", question] = classes[z]
            for j in range(n_workers):
                others = [k for k in range(len(classes)) if k != z]
                y = rng.choice(others) if rng.random() < wrong else z
                rows.append((f"t{i}", f"w{j}", question, classes[y]))
    return pd.DataFrame(rows, columns=["task", "worker", "question", "label"]), truth
