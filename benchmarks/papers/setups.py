"""Simulators of two papers' experiments: annotations with features and gold labels, and held-out tasks."""

from __future__ import annotations

import numpy as np
import pandas as pd

from crowdppl.data.annotations import Annotations
from crowdppl.data.errors import whole_number

SENSITIVITY = np.array([0.8, 0.6, 0.6, 0.7, 0.6])
"""Sensitivities of the five experts of :func:`two_gaussians` on the easiest tasks, ``(5,)``."""

SPECIFICITY = np.array([0.6, 0.7, 0.6, 0.7, 0.7])
"""Specificities of the five experts of :func:`two_gaussians` on the easiest tasks, ``(5,)``."""

CENTRES = np.array([[-0.5, 0.0], [0.5, 0.0], [0.0, 0.5]])
"""Centres of the three classes of :func:`three_gaussians`, ``(3, 2)``."""

GROUPS = ("experts", "inexperts", "spammers")
"""The groups of workers of :func:`three_gaussians`."""

SHARES = np.array([0.25, 0.55, 0.20])
"""Shares of the groups among the workers of :func:`three_gaussians`, ``(3,)``."""

GROUP_CONFUSIONS = np.array(
    [
        [[0.80, 0.10, 0.10], [0.00, 0.90, 0.10], [0.40, 0.10, 0.50]],
        [[0.60, 0.00, 0.40], [0.10, 0.40, 0.50], [0.10, 0.00, 0.90]],
        [[0.90, 0.00, 0.10], [0.10, 0.00, 0.90], [0.75, 0.00, 0.25]],
    ]
)
r"""Confusion matrices of the groups, ``(3, 3, 3)``: the authors', :data:`AUTHORS`, within 0.025.

The mean over the crowd is right about the first and the third class, but says the second class with probability 0.445
and the third with 0.48 where the second is true, so that more annotations do not help a majority vote.
"""

AUTHORS = np.array(
    [
        [[0.80952, 0.09524, 0.09524], [0.00000, 0.89474, 0.10526], [0.40299, 0.12127, 0.47575]],
        [[0.60714, 0.00000, 0.39286], [0.09125, 0.42395, 0.48479], [0.10526, 0.00000, 0.89474]],
        [[0.89474, 0.00000, 0.10526], [0.08602, 0.00000, 0.91398], [0.74128, 0.00000, 0.25872]],
    ]
)
"""The groups' confusion matrices in the authors' repository ``fmenat/PyLearningCrowds``, ``(3, 3, 3)``.

They are of its file ``data/synthetic/matrix_simple_Td5.csv``, and ``SHARES`` of ``groups_datasim_normal.csv`` there.
"""

Setup = tuple[Annotations, np.ndarray, np.ndarray]
"""Annotations with features and gold labels; features ``x`` and classes ``y`` of held-out tasks."""


def two_gaussians(seed: int = 0, *, n_tasks: int = 1000, n_test: int = 1000) -> Setup:
    r"""Simulate two classes and five experts who err more often the nearer a task lies to the classes' boundary.

    .. math::
        x_i \mid z_i &\sim \text{Normal}(\pm (1, 1), I), \qquad
        d_i = \left(\sigma(x_{i1} + x_{i2}) - \tfrac12\right)^2 \\
        P(y_{ij} = 1 \mid z_i = 1) &= \sigma(\lambda^1_j d_i), \qquad
        \lambda^1_j = 4 \,\text{logit}(\text{sensitivity}_j) \\
        P(y_{ij} = 0 \mid z_i = 0) &= \sigma(\lambda^2_j d_i), \qquad
        \lambda^2_j = 4 \,\text{logit}(\text{specificity}_j)

    (Xu et al., "Data Difficulty Specified Crowdsourcing", equations 1 and 2 and its experiment on Gaussians.) The
    paper defines difficulty once as "the distance to the Bayes boundary :math:`x_1 + x_2 = 0`" and once as
    :math:`(p_i - \frac12)^2`. The line above agrees with both: it is 0 on the boundary and tends to a quarter far from
    it, where an expert has the sensitivity given in ``SENSITIVITY``. The majority vote then ranks the tasks with an
    area under the ROC curve of 0.70; it would be 0.78 with the Bayes rule's own probability
    :math:`\sigma(2 x_{i1} + 2 x_{i2})` for :math:`p_i`, and 0.99 with the distance itself for :math:`d_i`.

    Args:
        seed: the same seed gives the same data.
        n_tasks: tasks N that all five experts annotate, half of each class (the first class has the odd one).
        n_test: held-out tasks M, half of each class.

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
    labels = np.where(right, z[:, None], 1 - z[:, None])
    annotations = Annotations.from_matrix(labels, classes=[0, 1], gold=_by_task(z), features=x)
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
    confusions: np.ndarray = GROUP_CONFUSIONS,
) -> Setup:
    r"""Simulate three classes and a crowd of any size in three groups: experts, inexperts and spammers.

    .. math::
        x_i \mid z_i &\sim \text{Normal}(\text{CENTRES}_{z_i}, \sigma^2 I), \qquad
        g_j \sim \text{Categorical}(\text{SHARES}) \\
        P(y_{ij} = l \mid z_i = k) &= \text{GROUP\_CONFUSIONS}_{g_j}[k, l]

    (Mena & Ñanculef, the simulated setup 1 of the Crowd Mixture Model.) The paper prints :math:`\sigma = 0.4`, where
    the Bayes rule is right on 73.7 % of the tasks; the paper's classifier that is trained on the truth reaches 94.75 %,
    which is what :math:`\sigma = 0.2` gives. With the groups' confusion matrices a network of 32 hidden units is near
    what the paper reports for majority votes: about 67 % where it learns from the shares of the annotations, and 79 %
    where it learns from the most frequent annotation with ties broken for the first class.

    Time and memory grow with the number of annotations; of each worker only the group is drawn.

    Args:
        n_workers: workers T, of whom each task has ``annotations_per_task`` different ones, all equally likely.
        seed: the same seed gives the same data; ``named`` does not change them.
        sigma: standard deviation of a class along either axis.
        named: False for counts of the annotations by task, without workers.
        n_tasks: tasks N, a third of each class (the first classes have one more where N is no multiple of three).
        n_test: held-out tasks M, a third of each class.
        annotations_per_task: annotations of each task.
        confusions: matrices of the groups, ``(3, 3, 3)``.

    Returns:
        Annotations of the classes 0, 1 and 2, with features ``(N, 2)`` and the truth as gold, whose workers are the
        numbers (0 to T − 1, ascending) of those who annotated anything; ``x (M, 2)`` float32 and ``y (M,)`` int32.

    Raises:
        ValueError: ``annotations_per_task`` is no whole number from 1 to ``n_workers``.
    """
    n_workers = whole_number("n_workers", n_workers, least=1)
    annotations_per_task = whole_number("annotations_per_task", annotations_per_task, least=1, most=n_workers)
    rng = np.random.default_rng(seed)
    (x, z), (x_test, y_test) = (_points(rng, CENTRES, sigma, n) for n in (n_tasks, n_test))
    worker = _distinct(rng, n_workers, (n_tasks, annotations_per_task))
    cumulative = confusions[worker_groups(n_workers, seed)[worker], z[:, None]].cumsum(-1)
    labels = (rng.random((*worker.shape, 1)) * cumulative[..., -1:] >= cumulative).sum(-1)
    gold = _by_task(z)
    if named:
        task = np.repeat(np.arange(n_tasks), annotations_per_task)
        frame = pd.DataFrame({"task": task, "worker": worker.ravel(), "label": labels.ravel()})
        annotations = Annotations.from_frame(
            frame, tasks=range(n_tasks), workers=np.unique(worker), classes=range(3), gold=gold, features=x
        )
    else:
        counts = (labels[..., None] == np.arange(3)).sum(1)
        annotations = Annotations.from_counts(counts, gold=gold, features=x)
    return annotations, x_test.astype(np.float32), y_test


def worker_groups(n_workers: int, seed: int = 0) -> np.ndarray:
    """Return the group of each worker of :func:`three_gaussians`, as a position in ``GROUPS``: ``(T,)``."""
    return np.random.default_rng([seed, 1]).choice(len(GROUPS), n_workers, p=SHARES)


def _points(rng: np.random.Generator, centres: np.ndarray, sigma: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ``n`` points in random order, ``(n, 2)``, and their classes, ``(n,)``, which are equally frequent."""
    z = rng.permutation(np.arange(n) % len(centres)).astype(np.int32)
    return centres[z] + sigma * rng.normal(size=(n, 2)), z


def _distinct(rng: np.random.Generator, n: int, shape: tuple[int, int]) -> np.ndarray:
    """Return rows of different numbers below ``n``, all equally likely, of this shape."""
    if shape[1] ** 2 > 2 * n:  # most rows would have a repeat and be drawn again
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
