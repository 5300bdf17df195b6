"""Distances between estimated and actual confusion matrices."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from ...data import AnnotationError, Annotations
from ...data.arrays import cross_counts
from ...data.columns import positions_of
from ...data.errors import real_number
from ...data.questions import QUESTION, Units
from ..fitted.confusions import mean_confusions
from ..fitted.fitted import Fitted
from ..fitted.posterior import Posterior, fitted_of


def confusion_divergences(
    source: Any, actual: Any = None, *, gold: Any = None, smoothing: float = 0.0, weights: Any = None
) -> pd.Series | pd.DataFrame:
    r"""Compare estimated confusion matrices with the actual ones, by worker and for the crowd as a whole.

    .. math::
        \text{I-JS} = \frac{1}{|R|} \sum_{(j, k) \in R} \text{JS}(\hat\beta_j[k], \beta_j[k]), \qquad
        \text{G-JS} = \frac{1}{K} \sum_k \text{JS}(\hat\beta[k], \beta[k]), \qquad
        \beta[k, l] = \frac{\sum_j n_j \beta_j[k, l]}{\sum_j n_j}

    (after Mena & Ñanculef's Crowd Mixture Model), with the rows :math:`R` of all workers that the actual matrices have,
    :math:`n_j` annotations of worker :math:`j`, and the Jensen–Shannon divergence to base 2, between 0 and 1:
    :math:`\text{JS}(p, q) = \frac12 \text{KL}(p \| m) + \frac12 \text{KL}(q \| m)`, :math:`m = \frac12 (p + q)`.
    The paper's I-JS takes a row of which a worker has no annotation as even, and its G-JS the plain mean of the
    workers' matrices where a method has no other of the crowd.

    Args:
        source: a fit, or estimated confusion matrices ``(J, K, L)``, in the order of the workers; or a mapping of names
            to these. For a fit whose workers are not named there is only G-JS.
        actual: the actual confusion matrices: an array ``(J, K, L)``, or a frame in the form of ``fit.confusions()``;
            None for :func:`.empirical_confusions`, by worker for I-JS and of all annotations for G-JS.
        gold: label by task, for the empirical confusion matrices; None for the gold labels of the annotations.
        smoothing: pseudo-annotations added to each row of the empirical confusion matrices, spread evenly over the
            classes. At 0 a row without an annotation is left out.
        weights: :math:`n_j`, ``(J,)``; by default a fit's numbers of annotations, else all equal.

    Returns:
        ``i_js`` and ``g_js``, between 0 (equal) and 1; ``workers`` and ``rows``, how many were compared. For a mapping
        a frame with a row for each name.

    Raises:
        AnnotationError: there are no gold labels where they are needed, or a frame has other workers than the fit.
        ValueError: confusion matrices of another shape, or with rows that are no probabilities; another `smoothing`.
    """
    if isinstance(source, Mapping):
        found = {name: _compare(one, actual, gold, smoothing, weights) for name, one in source.items()}
        return pd.DataFrame.from_dict(found, orient="index").astype({"workers": int, "rows": int}).rename_axis("story")
    return pd.Series(_compare(source, actual, gold, smoothing, weights), name="divergence")


def worker_divergences(source: Any, actual: Any = None, *, gold: Any = None, smoothing: float = 0.0) -> pd.Series:
    """Each worker's divergence: the mean over the rows of the worker's confusion matrix, as in I-JS.

    Args:
        source: as for :func:`confusion_divergences`, but no mapping.
        actual: as for :func:`confusion_divergences`.
        gold: as for :func:`confusion_divergences`.
        smoothing: as for :func:`confusion_divergences`.

    Returns:
        By worker, between 0 and 1; NaN for a worker without any actual row.

    Raises:
        AnnotationError: the workers are not named, or as for :func:`confusion_divergences`.
        ValueError: as for :func:`confusion_divergences`.
    """
    estimated, true, _, index = _estimated_and_actual(source, actual, gold, smoothing, None)
    if estimated is None or true is None:
        raise AnnotationError(
            "the annotations name no workers, so there are no confusion matrices of workers to compare"
        )
    known = ~np.isnan(true).any(-1)
    rows = np.where(known, jensen_shannon(estimated, true), 0.0)
    with np.errstate(invalid="ignore"):
        return pd.Series(rows.sum(-1) / known.sum(-1), index=index, name="divergence")


def empirical_confusions(
    annotations: Annotations, gold: Any = None, smoothing: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    r"""Empirical confusion matrices on the gold tasks: each worker's ``(J, K, L)``, and the whole crowd's ``(K, L)``.

    .. math:: \frac{n_{jkl} + s / L}{n_{jk} + s}

    Of levels (``truth_classes=``) they are of the classes that the levels lie in, as a fit's are.

    Args:
        gold: label by task; None for the gold labels of the annotations.
        smoothing: :math:`s`; at 0 a row without an annotation is NaN.

    Raises:
        AnnotationError: there are no gold labels.
        ValueError: `smoothing` is below 0 or not finite.
    """
    smoothing = real_number("smoothing", smoothing, 0)
    annotations = (annotations if gold is None else annotations.with_gold(gold)).verdicts()
    if annotations.gold is None:
        raise AnnotationError("the annotations carry no gold labels; give gold={task: label, …}, or actual=")
    shape = (annotations.n_classes, annotations.n_categories)
    truth = np.asarray(annotations.gold)[annotations.task]
    known = truth >= 0
    codes = truth[known], np.asarray(annotations.label)[known]
    weight = None if annotations.count is None else np.asarray(annotations.count)[known]
    whole = cross_counts(shape, *codes, weight=weight)
    of_workers: np.ndarray = np.zeros((0, *shape))
    if annotations.named:
        worker = np.asarray(annotations.worker)[known]
        of_workers = cross_counts((annotations.n_workers, *shape), worker, *codes, weight=weight)
    return _shares(of_workers, smoothing), _shares(whole, smoothing)


def jensen_shannon(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The Jensen–Shannon divergence to base 2 of distributions along the last axis; between 0 and 1."""
    from scipy.spatial.distance import jensenshannon

    return (
        np.nan_to_num(jensenshannon(p, q, base=2, axis=-1), nan=0.0) ** 2
    )  # NaN: rounding took the argument of a root below 0


def _compare(source: Any, actual: Any, gold: Any, smoothing: float, weights: Any) -> dict[str, float | int]:
    """The divergences of one source, by name: see :func:`confusion_divergences`."""
    estimated, true, (crowd, true_crowd), _ = _estimated_and_actual(source, actual, gold, smoothing, weights)
    of_crowd = ~np.isnan(true_crowd).any(-1)
    found: dict[str, float | int] = {
        "i_js": np.nan,
        "g_js": float(jensen_shannon(crowd[of_crowd], true_crowd[of_crowd]).mean()) if of_crowd.any() else np.nan,
        "workers": 0,
        "rows": 0,
    }
    if estimated is not None and true is not None:
        known = ~np.isnan(true).any(-1)
        if known.any():
            found["i_js"] = float(jensen_shannon(estimated[known], true[known]).mean())
        found |= {"workers": int(known.any(-1).sum()), "rows": int(known.sum())}
    return found


def _estimated_and_actual(
    source: Any, actual: Any, gold: Any, smoothing: float, weights: Any
) -> tuple[np.ndarray | None, np.ndarray | None, tuple[np.ndarray, np.ndarray], pd.Index]:
    """Confusion matrices by worker, estimated and actual (None without named workers); the crowd's two; the workers."""
    annotations: Annotations | None = source.annotations if isinstance(source, Posterior | Fitted) else None
    if annotations is None:
        estimated = _checked(source, None, "confusion matrices")
        index: pd.Index = pd.RangeIndex(len(estimated), name="worker")
        if actual is None:
            raise ValueError(
                "confusion matrices without annotations need the actual ones beside them; give actual=, (J, K, L)"
            )
    else:
        estimated = mean_confusions(fitted_of(source))
        index = annotations.workers.to_index("worker")
    if actual is None and annotations is not None:
        true, true_crowd = empirical_confusions(annotations, gold, smoothing)
        if not annotations.named:
            return None, None, (estimated[0], true_crowd), index
        share = _weights(annotations.n_by_worker() if weights is None else weights, len(estimated))
        return estimated, true, (np.einsum("j,jkl->kl", share, estimated), true_crowd), index
    true = _checked(_in_order(actual, annotations), estimated.shape, "actual")
    if weights is None:
        weights = annotations.n_by_worker() if annotations is not None else np.ones(len(estimated))
    share = _weights(weights, len(estimated))
    crowd, true_crowd = (np.einsum("j,jkl->kl", share, matrices) for matrices in (estimated, true))
    return estimated, true, (crowd, true_crowd), index


def _in_order(actual: Any, annotations: Annotations | None) -> Any:
    """Confusion matrices ``(J, K, L)`` of a frame like ``fit.confusions()``; anything but a frame as it is."""
    if not isinstance(actual, pd.DataFrame):
        return actual
    if annotations is None:
        raise ValueError(
            "actual= is a frame, but source= is an array, whose workers have no names; give an array (J, K, L)"
        )
    if missing := [name for name in ("worker", "truth", "annotation", "probability") if name not in actual]:
        raise AnnotationError(f"actual has no column {missing[0]!r}; it takes the form of fit.confusions()")
    annotations = annotations.verdicts()
    if isinstance(annotations.workers, Units) and QUESTION in actual:
        actual = actual.assign(worker=pd.Series([*zip(actual["worker"], actual[QUESTION], strict=True)], actual.index))
    matrices = np.full((annotations.n_workers, annotations.n_classes, annotations.n_categories), np.nan)
    known = {"worker": annotations.workers, "truth": annotations.classes, "annotation": annotations.categories}
    at = [positions_of(actual[name], ids, f"actual, column {name!r}:") for name, ids in known.items()]
    matrices[tuple(at)] = actual["probability"]
    return matrices


def _checked(matrices: Any, shape: tuple[int, ...] | None, what: str) -> np.ndarray:
    """Confusion matrices as an array ``(J, K, L)``, whose rows are probabilities, or NaN where they are not known."""
    values = np.asarray(matrices, dtype=float)
    if values.ndim != 3 or (shape is not None and values.shape != shape):
        raise ValueError(f"{what} of shape {values.shape}: (workers, K, K) = {shape or '(J, K, K)'} is needed")
    known = values[~np.isnan(values).any(-1)]
    if not ((known >= 0).all() and np.allclose(known.sum(-1), 1, atol=1e-3)):
        raise ValueError(f"{what}: a row holds no probabilities; numbers from 0 that sum to 1 are needed")
    return values


def _weights(weights: Any, n_workers: int) -> np.ndarray:
    """The workers' weights, ``(J,)``, scaled to sum 1."""
    values = np.asarray(weights, dtype=float)
    if values.shape != (n_workers,) or not (values >= 0).all() or not values.sum() > 0:
        raise ValueError(
            f"weights of shape {values.shape}: {n_workers} numbers from 0, one for each worker, are needed"
        )
    return values / values.sum()


def _shares(counts: np.ndarray, smoothing: float) -> np.ndarray:
    """Counts ``(..., L)`` with pseudo-annotations added, as shares; NaN where there are none."""
    with np.errstate(invalid="ignore"):
        return (counts + smoothing / counts.shape[-1]) / (counts.sum(-1, keepdims=True) + smoothing)
