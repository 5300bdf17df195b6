"""Datasets as frames that both packages take, and a million simulated annotations."""

import os
import sys
from dataclasses import MISSING, fields
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

import crowdppl as cp
from crowdppl.data.ids import Ids


def data_folder() -> Path:
    """The folder of datasets; without one, say so and leave."""
    folder = os.environ.get("CROWDPPL_DATA")
    if not folder:
        print("skipped: set CROWDPPL_DATA to the folder of datasets")
        sys.exit(0)
    return Path(folder)


def read_annotations(name: str) -> pd.DataFrame:
    """A dataset's annotations, columns task, worker, label; of a worker's annotations to one task the first."""
    frame = pd.read_csv(data_folder() / name / "annotations.csv")
    return frame.drop_duplicates(["task", "worker"], ignore_index=True)


def read_gold(name: str) -> pd.Series:
    """True labels by task."""
    return pd.read_csv(data_folder() / name / "truth.csv").set_index("task")["label"]


def simulate_annotations(n_tasks: int, n_workers: int, n_classes: int, per_task: int, seed: int = 0) -> pd.DataFrame:
    r"""Annotations drawn from a Dawid–Skene whose workers are right about seven times in ten.

    Rows of their confusion matrices are :math:`\text{Dirichlet}(1, \dots, 1)` with :math:`2 K` added on the diagonal.

    Args:
        n_tasks: N.
        n_workers: J.
        n_classes: K.
        per_task: annotations to each task, by different workers.
        seed: of NumPy's generator.
    """
    rng = np.random.default_rng(seed)
    tables = np.stack([rng.dirichlet(row, n_workers) for row in 1 + 2 * n_classes * np.eye(n_classes)], axis=1)
    truth = rng.integers(n_classes, size=n_tasks)
    ascending = np.sort(rng.integers(n_workers - per_task + 1, size=(n_tasks, per_task)))
    worker = (ascending + np.arange(per_task)).ravel()  # no worker twice
    task = np.repeat(np.arange(n_tasks), per_task)
    cumulative = tables[worker, truth[task]].cumsum(-1)
    label = (rng.random((len(task), 1)) > cumulative[:, :-1]).sum(-1)
    return pd.DataFrame({"task": task, "worker": worker, "label": label})


def simulate_many(
    n_tasks: int, n_workers: int, n_classes: int, per_task: int = 10, right: float = 0.7
) -> cp.Annotations:
    """Annotations of workers who all are right equally often, made without a frame: for as many as memory holds.

    Args:
        n_tasks: N.
        n_workers: J, each of whom may annotate a task more than once.
        n_classes: K.
        per_task: annotations to each task.
        right: probability of an annotation that is not drawn at random.
    """
    rng = np.random.default_rng(0)
    n_rows = n_tasks * per_task
    task = np.repeat(np.arange(n_tasks, dtype=np.int32), per_task)
    label = rng.integers(n_classes, size=n_tasks, dtype=np.int32)[task]
    at_random = rng.random(n_rows, dtype=np.float32) > right
    label[at_random] = rng.integers(n_classes, size=int(at_random.sum()), dtype=np.int32)
    worker = rng.integers(n_workers, size=n_rows, dtype=np.int32)
    columns = dict.fromkeys(field.name for field in fields(cp.Annotations) if field.default is MISSING)
    columns |= {"task": task, "worker": worker, "label": label}
    columns |= {"tasks": Ids.range(n_tasks), "workers": Ids.range(n_workers), "classes": Ids.range(n_classes)}
    return jax.tree.map(jnp.asarray, cp.Annotations(**columns))


def accuracy(probabilities: pd.DataFrame, gold: pd.Series) -> float:
    """Percent of gold tasks labelled right by the most probable class; a tie counts for its share.

    Args:
        probabilities: tasks × classes.
        gold: true labels by task; tasks without any annotation do not count.
    """
    gold = gold[gold.index.isin(probabilities.index)]
    found = probabilities.loc[gold.index]
    ties = found.ge(found.max(axis=1) - 1e-6, axis=0).to_numpy()
    is_truth = found.columns.to_numpy()[None] == gold.to_numpy()[:, None]
    return float(100 * ((ties & is_truth).sum(1) / ties.sum(1)).mean())
