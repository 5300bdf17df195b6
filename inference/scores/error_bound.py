"""Number of annotations that a task needs, by Chernoff's bound on the share of wrong labels."""

from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from ...data.errors import AnnotationError, real_number, whole_number
from ..fitted.posterior import Posterior

SMALLEST = 1e-300  # of a probability in a logarithm
MOST = 10_000_000  # annotations a task beyond which the workers are taken to tell two classes not apart


def label_error_bound(source: Any, n_annotations: int, *, shares: Any = None) -> float:
    r"""Bound the share of wrong labels of tasks with so many annotations each.

    .. math::
        P(\text{wrong}) \leq \sum_{g < h} \min_{0 \leq t \leq 1} \rho_g^{1 - t} \rho_h^t
        \exp \left( m \sum_j w_j \log \sum_l \beta_j[g, l]^{1 - t} \beta_j[h, l]^t \right)

    of labels that are the most probable ones under the workers' confusion matrices β and the classes' shares ρ, where
    workers give their shares w of the m annotations (Chernoff 1952, summed over pairs of classes). With many
    annotations no way of labelling has an error of a smaller exponent: it is m times the least Chernoff information
    of two classes (Gao, Lu & Zhou 2016).

    The bound is of independent errors and known confusion matrices. Workers who share errors, and matrices learnt from
    few annotations, need more.

    Args:
        source: a fit, an average of stories, or a baseline with named workers, whose confusion matrices are taken at
            their posterior means and whose workers by how much they annotated; or confusion matrices ``(J, K, L)`` of
            workers who annotate equally much, rows of true classes.
        n_annotations: m, of each task; a whole number from 1.
        shares: of the classes, ``(K,)``; by default those of the fit's labels, and even ones beside an array.

    Returns:
        at most the share of wrong labels; never above that of always naming the most frequent class.

    Raises:
        AnnotationError: no worker is named.
        TypeError: `source` is neither a fit nor numbers.
        ValueError: `n_annotations` is no whole number from 1; an array is no stack of confusion matrices; `shares`
            are not K probabilities.

    Example:
        >>> import numpy as np
        >>> import crowdppl as cp
        >>> coin = np.array([[[0.8, 0.2], [0.2, 0.8]]])
        >>> round(cp.label_error_bound(coin, 9), 3)
        0.067
    """
    confusions, weights, of_classes = _crowd(source, shares)
    return _bound(confusions, weights, of_classes, whole_number("n_annotations", n_annotations, least=1))


def annotations_needed(source: Any, error: float = 0.05, *, shares: Any = None) -> int:
    """Say how many annotations of each task are enough for a share of wrong labels: see :func:`label_error_bound`.

    Args:
        source: as there.
        error: the share of wrong labels that is allowed, between 0 and 1.
        shares: as there.

    Returns:
        the least number whose bound is no more than `error`.

    Raises:
        AnnotationError: no worker is named, or two classes get the same annotations from every worker.
        ValueError: `error` is not between 0 and 1, or as there.

    Example:
        >>> import numpy as np
        >>> import crowdppl as cp
        >>> coin = np.array([[[0.8, 0.2], [0.2, 0.8]]])
        >>> cp.annotations_needed(coin, error=0.01)
        18
    """
    error = real_number("error", error, above=0, below=1)
    confusions, weights, of_classes = _crowd(source, shares)

    def enough(n: int) -> bool:
        return _bound(confusions, weights, of_classes, n) <= error

    low, high = 0, 1
    while not enough(high):
        low, high = high, 2 * high
        if high > MOST:
            raise AnnotationError(
                f"even {MOST:,} annotations a task leave more than {error:g} of the labels wrong: every worker "
                "annotates two of the classes alike"
            )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _crowd(source: Any, shares: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Confusion matrices ``(J, K, L)``; shares of the annotations by worker ``(J,)``, and of the classes ``(K,)``."""
    if isinstance(source, Posterior):
        confusions = np.asarray(source.confusion_draws, dtype=float).mean((0, 1))
        given = np.asarray(source.annotations.n_by_worker(), dtype=float)
        of_classes = np.asarray(source.probabilities, dtype=float).mean(0)
    else:
        try:
            confusions = np.asarray(source, dtype=float)
        except (TypeError, ValueError):
            raise TypeError(f"a fit or an array of confusion matrices is needed, got {type(source).__name__}") from None
        if confusions.ndim != 3 or not _are_probabilities(confusions):
            raise ValueError(
                f"confusion matrices of shape {confusions.shape}: (workers, classes, annotations) is needed, in which "
                "each row is of probabilities that sum to 1"
            )
        given, of_classes = np.ones(len(confusions)), np.full(confusions.shape[1], 1 / confusions.shape[1])
    if shares is not None:
        of_classes = np.asarray(shares, dtype=float)
        if of_classes.shape != confusions.shape[1:2] or not _are_probabilities(of_classes):
            raise ValueError(f"shares={shares!r}: {confusions.shape[1]} probabilities that sum to 1 are needed")
    return confusions[given > 0], given[given > 0] / given.sum(), of_classes


def _are_probabilities(rows: np.ndarray) -> bool:
    return bool((rows >= 0).all() and np.allclose(rows.sum(-1), 1, atol=1e-4))


def _bound(confusions: np.ndarray, weights: np.ndarray, shares: np.ndarray, n: int) -> float:
    log_confusions, log_shares = np.log(confusions + SMALLEST), np.log(shares + SMALLEST)

    def of_pair(g: int, h: int) -> float:
        def log_bound(t: float) -> float:
            by_worker = np.exp((1 - t) * log_confusions[:, g] + t * log_confusions[:, h]).sum(-1)
            return float((1 - t) * log_shares[g] + t * log_shares[h] + n * weights @ np.log(by_worker + SMALLEST))

        inside = minimize_scalar(log_bound, bounds=(0, 1), method="bounded").fun
        return float(np.exp(min(inside, log_shares[g], log_shares[h])))

    pairs = combinations(range(len(shares)), 2)
    return min(sum(of_pair(g, h) for g, h in pairs), 1 - float(shares.max()))
