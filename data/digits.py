"""Handwritten digits with a simulated crowd: scikit-learn's 1,797 images of 8 × 8 pixels and 40 made-up workers.

The images are real (Alpaydin & Kaynak 1998, "Optical Recognition of Handwritten Digits", UCI Machine Learning
Repository); the annotations are drawn from the confusion matrices of `worker_confusions` with a fixed seed.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

SEED = 25
N_IMAGES, N_TEST = 1797, 500
N_WORKERS, N_CLASSES, PER_TASK = 40, 10, 3
MIX_UPS = ((1, 7), (3, 8))  # pairs of digits that some workers take for each other
MIX_UP = 0.6  # the probability that they do

FACTS = {
    "tasks": N_IMAGES - N_TEST,
    "workers": N_WORKERS,
    "classes": N_CLASSES,
    "annotations": (N_IMAGES - N_TEST) * PER_TASK,
    "gold": N_IMAGES - N_TEST,
    "features": "8 x 8",
}
"""The row of `list_datasets`, written down so that the images need not be loaded."""


def digits() -> dict[str, Any]:
    """Return the arguments of `Annotations.from_frame`: 3 annotations of each of 1,297 images, and their true digits.

    Tasks are numbered as scikit-learn numbers the images, workers are called "w01" to "w40", and features are
    the images (8, 8) scaled to 0 to 1. Of the workers

    - 27 are right with a probability between 0.55 and 0.95 and err evenly over the other digits,
    - 8 do the same but take 1 for 7 and 7 for 1 (four of them) or 3 for 8 and 8 for 3 in 60 % of such images,
    - 3 annotate at random, and 2 always give the same digit.

    Worker j of the 40 is chosen with weight 1 / j, so that a few workers annotate most images and most workers few.
    """
    images, truth = _images()
    train, _ = _halves()
    rng = np.random.default_rng([SEED, 1])
    confusions = worker_confusions()
    weights = -np.log(np.arange(1, N_WORKERS + 1))
    chosen = np.argsort(-(weights + rng.gumbel(size=(len(train), N_WORKERS))), axis=1)[:, :PER_TASK]
    worker, task = chosen.ravel(), np.repeat(train, PER_TASK)
    cumulative = confusions[worker, truth[task]].cumsum(-1)
    label = (rng.random((len(task), 1)) * cumulative[:, -1:] >= cumulative).sum(-1)
    names = np.array([f"w{j:02d}" for j in range(1, N_WORKERS + 1)])
    return {
        "frame": pd.DataFrame({"task": task, "worker": names[worker], "label": label}),
        "workers": names.tolist(),
        "classes": range(N_CLASSES),
        "gold": dict(zip(train.tolist(), truth[train].tolist(), strict=True)),
        "features": dict(zip(train.tolist(), images[train], strict=True)),
    }


def digits_test() -> tuple[np.ndarray, np.ndarray]:
    """Return the 500 images that nobody annotated, shape (500, 8, 8), and their digits, shape (500,)."""
    images, truth = _images()
    _, test = _halves()
    return images[test], truth[test]


def worker_confusions() -> np.ndarray:
    """Return the confusion matrices that the annotations were drawn from, (40, 10, 10)."""
    rng = np.random.default_rng([SEED, 0])
    right = rng.permutation(np.linspace(0.55, 0.95, N_WORKERS))[:, None, None]
    confusions = np.where(np.eye(N_CLASSES, dtype=bool), right, (1 - right) / (N_CLASSES - 1))
    others = iter(rng.permutation(N_WORKERS))  # the workers that do not err evenly
    for pair in MIX_UPS:
        for _ in range(4):
            j = next(others)
            for this, other in (pair, pair[::-1]):
                confusions[j, this] *= 1 - MIX_UP
                confusions[j, this, other] += MIX_UP
    for _ in range(3):
        confusions[next(others)] = 1 / N_CLASSES
    for digit in (0, 6):
        confusions[next(others)] = np.eye(N_CLASSES)[digit]
    return confusions


class _Images(NamedTuple):
    x: np.ndarray  # (1797, 8, 8) float32, 0 to 1
    truth: np.ndarray  # (1797,)


@cache
def _images() -> _Images:
    from sklearn.datasets import load_digits  # a second to import, which only these images are worth

    bunch = load_digits()
    return _Images((bunch.images / 16).astype(np.float32), bunch.target.astype(np.int32))


def _halves() -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of the annotated and of the held-out images, each ascending, shapes (1297,) and (500,)."""
    order = np.random.default_rng([SEED, 2]).permutation(N_IMAGES)
    return np.sort(order[N_TEST:]), np.sort(order[:N_TEST])
