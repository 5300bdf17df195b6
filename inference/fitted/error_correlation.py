r"""How much workers err together, and like how many independent workers a panel of them counts.

With :math:`e_{ij}` whether the annotation of task i by worker j is wrong, :math:`\bar e_j` the worker's share of wrong
annotations, and :math:`r_{ij} = (e_{ij} - \bar e_j) / \sqrt{\bar e_j (1 - \bar e_j)}`, the mean correlation of two
workers' errors is that of :math:`r_{ij} r_{ij'}` over all pairs of annotations of one task. A mean of J errors that
correlate by :math:`\bar\rho` has the variance of :math:`J / (1 + (J - 1) \bar\rho)` independent ones, the effective
sample size of a cluster (Kish 1965, section 5.4).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ...data import AnnotationError, Annotations
from .fitted import refuse_streamed
from .intervals import INTERVAL, of_draws
from .labelled import Labelled

DRAWS = 100  # of the true labels


@dataclass(frozen=True)
class ErrorCorrelation:
    """How much workers err together.

    Attributes:
        correlation: the mean correlation of two workers' errors on one task, :math:`\\bar\\rho`.
        n_workers: how many workers there are, J.
        n_effective: the number of independent workers who err as one panel does, :math:`J / (1 + (J - 1) \\bar\\rho)`,
            from 1 to J.
        interval: of the latter, low and high; both the value itself where the true labels are known.
        workers: by worker the mean correlation with the other workers' errors, NaN for a worker who is always right,
            always wrong, or alone on every task.
    """

    correlation: float
    n_workers: int
    n_effective: float
    interval: tuple[float, float]
    workers: pd.Series

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"errors of two workers on one task correlate by {self.correlation:.3f}: {self.n_workers} workers count "
            f"like {self.n_effective:.1f} independent ones ({low:.1f}–{high:.1f})"
        )

    __repr__ = __str__


def error_correlation(source: Any, gold: Any = None, *, interval: float = INTERVAL, seed: int = 0) -> ErrorCorrelation:
    """Say how much workers err together, and like how many independent ones they count.

    Args:
        source: a fit or a stack, whose label posterior the true labels are drawn from; or :class:`.Annotations`, whose
            true labels are known.
        gold: label by task, as :meth:`.Annotations.with_gold` takes it, which take the place of the posterior. By
            default those of the annotations, where `source` is annotations, and none where it is a fit.
        interval: mass of the interval, equal-tailed, over the draws of the true labels.
        seed: of these draws.

    Raises:
        TypeError: `source` is none of these.
        AnnotationError: no worker is named, no true label is known, or no task has annotations of two workers.
        ValueError: `interval` is not between 0 and 1.
    """
    if not isinstance(source, Annotations | Labelled):
        refuse_streamed(source)
        raise TypeError(f"a fit by cp.fit, a stack, or annotations are needed, got a {type(source).__name__}")
    annotations = source if isinstance(source, Annotations) else source.annotations
    if not annotations.named:
        raise AnnotationError("the annotations name no workers, so that nobody's errors can be told apart")
    if isinstance(source, Annotations) or gold is not None:
        known = annotations if gold is None else annotations.with_gold(gold)
        if known.gold is None:
            raise AnnotationError("the annotations carry no gold labels; give gold={task: label, …}, or a fit")
        truths = np.asarray(known.gold)[None]
    else:
        truths = _drawn(np.asarray(source.posterior, dtype=float), seed)
    annotations = annotations.of_classes()
    found = [_correlations(annotations, truth) for truth in truths]
    mean = np.array([correlation for correlation, _ in found])
    if np.isnan(mean).all():
        raise AnnotationError("no task with a known label has annotations of two workers who are sometimes wrong")
    n = annotations.n_workers
    effective = n / (1 + (n - 1) * np.clip(mean, 0.0, 1.0))
    low, high = of_draws(effective[None, :, None], interval)
    by_worker = np.array([of_worker for _, of_worker in found])
    counted = (~np.isnan(by_worker)).sum(0)
    means = np.where(counted > 0, np.nansum(by_worker, axis=0) / np.maximum(counted, 1), np.nan)
    index = annotations.workers.to_index("worker")
    return ErrorCorrelation(
        float(np.nanmean(mean)),
        n,
        float(np.nanmean(effective)),
        (float(np.ravel(low)[0]), float(np.ravel(high)[0])),
        pd.Series(means, index=index, name="error_correlation"),
    )


def _drawn(posterior: np.ndarray, seed: int) -> np.ndarray:
    """True labels drawn from their probabilities, ``(draw, N)``."""
    u = np.random.default_rng(seed).random((DRAWS, len(posterior), 1))
    return np.minimum((u > posterior.cumsum(-1)).sum(-1), posterior.shape[-1] - 1)


def _correlations(annotations: Annotations, truth: np.ndarray) -> tuple[float, np.ndarray]:
    """The mean correlation of two workers' errors, and each worker's with the others' ``(J,)``, given true labels.

    Repeated annotations of a worker for a task count as one, with their mean error. Tasks without a label, −1, are
    left out.
    """
    task, worker = np.asarray(annotations.task, np.int64), np.asarray(annotations.worker)
    is_known = truth[task] >= 0
    weight = np.ones(annotations.n_rows) if annotations.count is None else np.asarray(annotations.count, float)
    pair, place = np.unique((task * annotations.n_workers + worker)[is_known], return_inverse=True)
    task, worker = pair // annotations.n_workers, pair % annotations.n_workers
    wrong = (np.asarray(annotations.label) != truth[annotations.task])[is_known].astype(float)
    error = np.bincount(place, wrong * weight[is_known]) / np.maximum(np.bincount(place, weight[is_known]), 1e-9)
    n = np.maximum(np.bincount(worker, minlength=annotations.n_workers), 1)
    share = np.bincount(worker, error, annotations.n_workers) / n
    spread = np.sqrt(np.maximum(np.bincount(worker, error**2, annotations.n_workers) / n - share**2, 0.0))
    differs = spread[worker] > 1e-9
    task, worker = task[differs], worker[differs]
    residual = (error[differs] - share[worker]) / spread[worker]
    total = np.bincount(task, residual, annotations.n_tasks)[task] - residual
    others = np.bincount(task, minlength=annotations.n_tasks)[task] - 1.0
    products = np.bincount(worker, residual * total, annotations.n_workers)
    pairs = np.bincount(worker, others, annotations.n_workers)
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(products.sum() / pairs.sum()) if pairs.sum() else np.nan, products / np.where(pairs, pairs, np.nan)
