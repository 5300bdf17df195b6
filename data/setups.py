"""Simulators of the papers' setups: annotations with features and gold labels, and tasks that nobody annotated."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .annotations import Annotations

SENSITIVITY = np.array([0.8, 0.6, 0.6, 0.7, 0.6])
"""Of the five experts of :func:`two_gaussians` where a task is easiest."""

SPECIFICITY = np.array([0.6, 0.7, 0.6, 0.7, 0.7])
"""Of the same."""

CENTRES = np.array([[-0.5, 0.0], [0.5, 0.0], [0.0, 0.5]])
"""Of the three classes of :func:`three_gaussians`."""

GROUPS = ("experts", "inexperts", "spammers")

SHARES = np.array([0.25, 0.55, 0.20])
"""Of the groups among the annotators of :func:`three_gaussians`."""

GROUP_TABLES = np.array(
    [
        [[0.80, 0.10, 0.10], [0.00, 0.90, 0.10], [0.40, 0.10, 0.50]],
        [[0.60, 0.00, 0.40], [0.10, 0.40, 0.50], [0.10, 0.00, 0.90]],
        [[0.90, 0.00, 0.10], [0.10, 0.00, 0.90], [0.75, 0.00, 0.25]],
    ]
)
r"""Confusion matrices of the groups, ``(3, 3, 3)``. All annotations together are right about the first and the third class,
but about the second they are 0.445 right and 0.48 for the third, so that more annotations do not help a majority."""

Setup = tuple[Annotations, np.ndarray, np.ndarray]
"""Annotations with features and gold labels; features ``x`` and classes ``y`` of held-out tasks."""


def two_gaussians(seed: int = 0, *, n_tasks: int = 1000, n_test: int = 1000) -> Setup:
    r"""Two classes, five experts, and annotations that are the worse the nearer a task lies to the boundary.

    .. math::
        x_i \mid z_i &\sim \text{Normal}(\pm (1, 1), I), \qquad
        d_i = \left(\sigma(x_{i1} + x_{i2}) - \tfrac12\right)^2 \\
        P(y_{ij} = 1 \mid z_i = 1) &= \sigma(\lambda^1_j d_i), \qquad
        \lambda^1_j = 4 \,\text{logit}(\text{sensitivity}_j) \\
        P(y_{ij} = 0 \mid z_i = 0) &= \sigma(\lambda^2_j d_i), \qquad
        \lambda^2_j = 4 \,\text{logit}(\text{specificity}_j)

    (Xu et al., "Data Difficulty Specified Crowdsourcing", equations 1 and 2 and its experiment on Gaussians.) The
    paper takes "the distance to the Bayes boundary :math:`x_1 + x_2 = 0`" for the difficulty and its model
    :math:`(p_i - \frac12)^2`; read together they are the line above, which is 0 on the boundary and, far from it, a
    quarter, where an expert has the sensitivity of the table. A majority vote then ranks the tasks with an area
    under the curve of 0.70; it would be 0.78 with the Bayes rule's own probability
    :math:`\sigma(2 x_{i1} + 2 x_{i2})` and 0.99 with the distance itself.

    Args:
        seed: the same seed gives the same data.
        n_tasks: tasks N that all five experts annotation, half of either class (the first has the odd one).
        n_test: held-out tasks M, likewise.

    Returns:
        Annotations of the classes 0 and 1, with features ``(N, 2)`` and the truth as gold; ``x (M, 2)`` float32 and
        ``y (M,)`` int32.
    """
    rng = np.random.default_rng(seed)
    centres = np.array([[-1.0, -1.0], [1.0, 1.0]])
    (x, z), (x_test, y_test) = (_points(rng, centres, 1.0, n) for n in (n_tasks, n_test))
    difficulty = (_sigmoid(x.sum(1)) - 0.5) ** 2
    coin = np.where(z[:, None] == 1, SENSITIVITY, SPECIFICITY)
    right = rng.random(coin.shape) < _sigmoid(4 * _logit(coin) * difficulty[:, None])
    answers = np.where(right, z[:, None], 1 - z[:, None])
    annotations = Annotations.from_matrix(answers, classes=[0, 1], gold=_by_task(z), features=x)
    return annotations, x_test.astype(np.float32), y_test


def three_gaussians(
    n_workers: int,
    seed: int = 0,
    *,
    sigma: float = 0.2,
    named: bool = True,
    n_tasks: int = 3000,
    n_test: int = 3000,
    annotations_per_task: int = 5,
) -> Setup:
    r"""Three classes and a crowd of any size in three groups: experts, inexperts and spammers.

    .. math::
        x_i \mid z_i &\sim \text{Normal}(\text{CENTRES}_{z_i}, \sigma^2 I), \qquad
        g_j \sim \text{Categorical}(\text{SHARES}) \\
        P(y_{ij} = l \mid z_i = k) &= \text{GROUP\_TABLES}_{g_j}[k, l]

    (Mena & Ñanculef, the simulated setup 1 of the Crowd Mixture Model.) The paper prints :math:`\sigma = 0.4`, where
    the Bayes rule reaches 73.7 %; its classifier that knows the truth has the 94.75 % of :math:`\sigma = 0.2`. The
    groups' tables are chosen so that a network of 32 hidden units reaches what the paper reports for majority votes:
    about 67 % where it learns from the shares of the annotations, and 79 % from the most frequent annotation with ties for
    the first class.

    Time and memory follow the annotations; of the number of annotators only a draw of their groups is left.

    Args:
        n_workers: annotators T, of whom each task has ``annotations_per_task`` different ones, all equally likely.
        seed: the same seed gives the same data; ``named`` does not change them.
        sigma: standard deviation of a class along either axis.
        named: False for counts of the annotations by task, without workers.
        n_tasks: tasks N, a third of each class (the first have one more where N is no multiple of three).
        n_test: held-out tasks M, likewise.
        annotations_per_task: annotations to each task.

    Returns:
        Annotations of the classes 0, 1 and 2, with features ``(N, 2)`` and the truth as gold, whose workers are the
        numbers (0 to T − 1, ascending) of those who annotated anything; ``x (M, 2)`` float32 and ``y (M,)`` int32.

    Raises:
        ValueError: there are fewer annotators than annotations to a task.
    """
    if not 1 <= annotations_per_task <= n_workers:
        raise ValueError(
            f"annotations_per_task={annotations_per_task!r}: 1 to {n_workers} different annotators can annotate a task"
        )
    rng = np.random.default_rng(seed)
    (x, z), (x_test, y_test) = (_points(rng, CENTRES, sigma, n) for n in (n_tasks, n_test))
    worker = _distinct(rng, n_workers, (n_tasks, annotations_per_task))
    cumulative = GROUP_TABLES[worker_groups(n_workers, seed)[worker], z[:, None]].cumsum(-1)
    answers = (rng.random((*worker.shape, 1)) * cumulative[..., -1:] >= cumulative).sum(-1)
    gold = _by_task(z)
    if named:
        task = np.repeat(np.arange(n_tasks), annotations_per_task)
        frame = pd.DataFrame({"task": task, "worker": worker.ravel(), "label": answers.ravel()})
        annotations = Annotations.from_frame(
            frame, tasks=range(n_tasks), workers=np.unique(worker), classes=range(3), gold=gold, features=x
        )
    else:
        counts = (answers[..., None] == np.arange(3)).sum(1)
        annotations = Annotations.from_counts(counts, gold=gold, features=x)
    return annotations, x_test.astype(np.float32), y_test


def worker_groups(n_workers: int, seed: int = 0) -> np.ndarray:
    """Return the group of each annotator of :func:`three_gaussians`, as a position in ``GROUPS``: ``(T,)``."""
    return np.random.default_rng([seed, 1]).choice(len(GROUPS), n_workers, p=SHARES)


def _points(rng: np.random.Generator, centres: np.ndarray, sigma: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """``n`` points in random order and their classes, which are as equally frequent as can be: (n, 2), (n,)."""
    z = rng.permutation(np.arange(n) % len(centres)).astype(np.int32)
    return centres[z] + sigma * rng.normal(size=(n, 2)), z


def _distinct(rng: np.random.Generator, n: int, shape: tuple[int, int]) -> np.ndarray:
    """Rows of different numbers below ``n``, each set of them equally likely: a row with a repeat is drawn again."""
    if shape[1] ** 2 > 2 * n:  # where most rows would have a repeat
        return rng.random((shape[0], n)).argsort(axis=1)[:, : shape[1]]
    rows = rng.integers(0, n, shape)
    while (again := (np.diff(np.sort(rows, axis=1), axis=1) == 0).any(1)).any():
        rows[again] = rng.integers(0, n, (int(again.sum()), shape[1]))
    return rows


def _by_task(z: np.ndarray) -> dict[int, int]:
    return dict(enumerate(z.tolist()))


def _sigmoid(a: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-a))


def _logit(p: np.ndarray) -> np.ndarray:
    return np.log(p / (1 - p))
