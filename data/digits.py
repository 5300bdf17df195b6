"""Handwritten digits with a simulated crowd: scikit-learn's 1,797 images of 8 × 8 pixels and 40 made-up workers.

The images are real (Alpaydin & Kaynak 1998, "Optical Recognition of Handwritten Digits", UCI Machine Learning
Repository); the annotations are drawn once and for all from the tables below with a fixed seed.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

SEED = 25
N_IMAGES, N_TEST = 1797, 500
N_WORKERS, N_CLASSES, ANSWERS = 40, 10, 3
MIX_UPS = ((1, 7), (3, 8))  # pairs of digits that some workers take for each other
MIX_UP = 0.6  # how often they do

FACTS = {
    "tasks": N_IMAGES - N_TEST,
    "workers": N_WORKERS,
    "classes": N_CLASSES,
    "annotations": (N_IMAGES - N_TEST) * ANSWERS,
    "gold": N_IMAGES - N_TEST,
    "features": "8 x 8",
}
"""What `list_datasets` says, known without loading the images."""


def digits() -> dict[str, Any]:
    """Return the arguments of `Annotations.from_frame`: 3 annotations to each of 1,297 images, all of known truth.

    Tasks are numbered as scikit-learn numbers the images, workers are called "w01" to "w40", and features are
    the images (8, 8) scaled to 0 to 1. Of the workers

    - 27 are right with a probability between 0.55 and 0.95 and err evenly over the other digits,
    - 8 do the same but take 1 for 7 and 7 for 1 (four of them) or 3 for 8 and 8 for 3 in 60 % of such images,
    - 3 annotation at random, and 2 always the same digit.

    Worker j of the 40 is asked with weight 1 / j, so that a few annotation most and the most little.
    """
    images, truth = _images()
    train, _ = _halves()
    rng = np.random.default_rng([SEED, 1])
    tables = worker_confusions()
    weights = -np.log(np.arange(1, N_WORKERS + 1))
    chosen = np.argsort(-(weights + rng.gumbel(size=(len(train), N_WORKERS))), axis=1)[:, :ANSWERS]
    worker, task = chosen.ravel(), np.repeat(train, ANSWERS)
    cumulative = tables[worker, truth[task]].cumsum(-1)
    answer = (rng.random((len(task), 1)) * cumulative[:, -1:] >= cumulative).sum(-1)
    names = np.array([f"w{j:02d}" for j in range(1, N_WORKERS + 1)])
    return {
        "frame": pd.DataFrame({"task": task, "worker": names[worker], "label": answer}),
        "workers": names.tolist(),
        "classes": range(N_CLASSES),
        "gold": dict(zip(train.tolist(), truth[train].tolist(), strict=True)),
        "features": dict(zip(train.tolist(), images[train], strict=True)),
    }


def digits_test() -> tuple[np.ndarray, np.ndarray]:
    """Return the 500 images that nobody was asked about, (500, 8, 8), and their digits (500,)."""
    images, truth = _images()
    _, test = _halves()
    return images[test], truth[test]


def worker_confusions() -> np.ndarray:
    """Return the confusion matrices that the annotations were drawn from, (40, 10, 10)."""
    rng = np.random.default_rng([SEED, 0])
    right = rng.permutation(np.linspace(0.55, 0.95, N_WORKERS))[:, None, None]
    tables = np.where(np.eye(N_CLASSES, dtype=bool), right, (1 - right) / (N_CLASSES - 1))
    odd = iter(rng.permutation(N_WORKERS))  # who among them is no ordinary worker
    for pair in MIX_UPS:
        for _ in range(4):
            j = next(odd)
            for this, other in (pair, pair[::-1]):
                tables[j, this] *= 1 - MIX_UP
                tables[j, this, other] += MIX_UP
    for _ in range(3):
        tables[next(odd)] = 1 / N_CLASSES
    for digit in (0, 6):
        tables[next(odd)] = np.eye(N_CLASSES)[digit]
    return tables


class _Images(NamedTuple):
    x: np.ndarray  # (1797, 8, 8) float32, 0 to 1
    truth: np.ndarray  # (1797,)


@cache
def _images() -> _Images:
    from sklearn.datasets import load_digits  # a second to import, which only these images are worth

    bunch = load_digits()
    return _Images((bunch.images / 16).astype(np.float32), bunch.target.astype(np.int32))


def _halves() -> tuple[np.ndarray, np.ndarray]:
    """The images that were annotated and those held out, each ascending: (1297,) and (500,)."""
    order = np.random.default_rng([SEED, 2]).permutation(N_IMAGES)
    return np.sort(order[N_TEST:]), np.sort(order[:N_TEST])
