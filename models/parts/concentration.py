"""Dirichlet priors: concentrations of confusion matrices, pseudo-counts from workers' histories, shares of groups."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
from jax import Array

from ...data import Annotations, Ids
from ...data.columns import positions_of
from ...data.errors import real_number, whole_number
from .contract import StoryError

COLUMNS = ["worker", "truth", "label", "count"]


def positive(name: str, value: float) -> float:
    """The number ``value`` itself; in compiled functions a number without a value yet, which is not checked.

    Raises:
        StoryError: it is not a positive, finite number.
    """
    return value if isinstance(value, jax.core.Tracer) else real_number(name, value, above=0, error=StoryError)


def finite(name: str, value: float) -> float:
    """The number ``value`` itself; in compiled functions a number without a value yet, which is not checked.

    Raises:
        StoryError: it is not a finite number.
    """
    return value if isinstance(value, jax.core.Tracer) else real_number(name, value, error=StoryError)


def whole(name: str, value: int) -> int:
    """The number ``value`` of things itself.

    Raises:
        StoryError: it is not a whole number from 1.
    """
    return whole_number(name, value, 1, error=StoryError)


def diagonal_concentration(
    n_classes: int, diagonal: float, off_diagonal: float | None = None, wrong_classes: np.ndarray | None = None
) -> np.ndarray | Array:
    """Concentration ``(K, K)`` with one value for right annotations and one for each wrong annotation.

    Args:
        n_classes: K.
        diagonal: of right annotations.
        off_diagonal: of each wrong annotation; by default a row's wrong annotations count as one together.
        wrong_classes: the share of each wrong annotation in its row, ``(K, K)`` (:func:`.wrong_classes`), where
            questions have classes of their own. What cannot be annotated to a class has the mean of its row.

    Raises:
        StoryError: either is not positive and finite.
    """
    is_right = np.eye(n_classes, dtype=bool)
    share = (1 - is_right) / max(n_classes - 1, 1) if wrong_classes is None else wrong_classes
    right = positive("diagonal", diagonal)
    wrong = np.where(share > 0, share, 0) if off_diagonal is None else positive("off_diagonal", off_diagonal)
    where = jnp.where if isinstance(right, Array) or isinstance(wrong, Array) else np.where
    rows = where(is_right, right, where(share > 0, wrong, 0.0))
    n_beside = (share > 0).sum(-1, keepdims=True) + 1
    return where(is_right | (share > 0), rows, rows.sum(-1, keepdims=True) / n_beside).astype(np.float32)


def sample_shares(name: str, n: int, concentration: float, dim: str, *, plate: tuple[str, int] | None = None) -> Array:
    r"""Sample the site ``name``, shares :math:`\sim \text{Dirichlet}(\eta, \dots, \eta)` of ``n`` groups.

    The share of a single group is 1: then there is no site, since a parameter without freedom has no density.

    Args:
        n: number of groups.
        concentration: :math:`\eta`.
        dim: name of their dimension, such as ``"group"``.
        plate: name and size of a plate with shares of its own for each member.

    Returns:
        ``(n,)``, or ``(size, n)`` in a plate.

    Raises:
        StoryError: the concentration is not positive.
    """
    prior = dist.Dirichlet(jnp.full(n, positive("share", concentration)))
    if n == 1:
        return jnp.ones((1,) if plate is None else (plate[1], 1))
    infer = {"event_dims": [dim]}
    if plate is None:
        return numpyro.sample(name, prior, infer=infer)
    with numpyro.plate(*plate, dim=-1):
        return numpyro.sample(name, prior, infer=infer)


def pseudo_counts(history: pd.DataFrame | np.ndarray | None, annotations: Annotations) -> np.ndarray:
    """Counts ``(J, K, K)`` to add to the concentration of the workers' tables; zeros without a history.

    Args:
        history: a frame with the columns worker, truth, label, count (rows of the same cell add up; ``count`` may be
            missing: one a row), or an array ``(J, K, K)`` in the order of ``annotations.workers`` and ``.classes``.

    Raises:
        StoryError: it is no table, or for a missing column, a worker or class that the annotations do not know, a
            count that is negative or not finite, or an array of another shape.
    """
    shape = (annotations.n_workers, annotations.n_classes, annotations.n_classes)
    if history is None:
        return np.zeros(shape, dtype=np.float32)
    if not isinstance(history, pd.DataFrame):
        try:
            counts = np.asarray(history, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise StoryError(
                f"history is a {type(history).__name__}; a frame with the columns {COLUMNS} is needed, such as "
                "history=pd.read_csv(file), or counts as an array (workers, classes, classes)"
            ) from error
        if counts.shape != shape:
            raise StoryError(f"history has shape {counts.shape}; (workers, classes, classes) = {shape} is needed")
        _check_counts(counts.ravel(), None)
        return counts
    missing = [column for column in COLUMNS[:3] if column not in history.columns]
    if missing:
        raise StoryError(
            f"history lacks the column {missing[0]!r}; it has {list(history.columns)}, needed are {COLUMNS}"
        )
    cells = (
        _known(history, "worker", annotations.workers),
        _known(history, "truth", annotations.classes),
        _known(history, "label", annotations.classes),
    )
    amounts = np.asarray(history["count"] if "count" in history.columns else np.ones(len(history)), dtype=np.float32)
    _check_counts(amounts, history)
    counts = np.zeros(shape, dtype=np.float32)
    np.add.at(counts, cells, amounts)
    return counts


def _known(history: pd.DataFrame, column: str, ids: Ids) -> np.ndarray:
    return positions_of(history[column], ids, lambda row: f"history, column {column!r}, row {row}:", error=StoryError)


def _check_counts(amounts: np.ndarray, history: pd.DataFrame | None) -> None:
    bad = ~np.isfinite(amounts) | (amounts < 0)
    if bad.any():
        row = int(np.argmax(bad))
        where = f"column 'count', row {row}" if history is not None else f"cell {row} of the array"
        raise StoryError(f"history, {where}: {amounts[row]} is not a count; zero or more is needed")
