"""Probabilities of labels beside the gold labels that they are judged by."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ...data import AnnotationError, Ids
from ...data.gold import resolve_gold

TIE = 1e-6  # probabilities that differ by less are equal: they come in single precision


@dataclass(frozen=True, eq=False)
class Judged:
    """The n tasks whose true label is known and was not told to the fit.

    Args:
        probabilities: of the classes, ``(n, K)``.
        gold: the true classes as positions, ``(n,)``.
        tasks: the tasks, n of them.
        classes: the K classes.
        told: how many gold tasks were left out because the fit was told their labels.
    """

    probabilities: np.ndarray
    gold: np.ndarray
    tasks: pd.Index
    classes: pd.Index
    told: int

    @property
    def right(self) -> np.ndarray:
        """Whether the most probable class is the true one, ``(n,)``: a tie of m classes counts for 1/m."""
        best = self.probabilities >= self.probabilities.max(-1, keepdims=True) - TIE
        return best[np.arange(len(self.gold)), self.gold] / best.sum(-1)

    @property
    def of_truth(self) -> np.ndarray:
        """The true class's probability, ``(n,)``."""
        return self.probabilities[np.arange(len(self.gold)), self.gold]

    @property
    def chosen(self) -> np.ndarray:
        """The most probable class's probability, ``(n,)``."""
        return self.probabilities.max(-1)

    def position(self, positive: object = None) -> int:
        """Where the positive class stands: the one named, or the second of two.

        Raises:
            ValueError: `positive` is no class, or none is named and there are more than two.
        """
        listed = self.classes.tolist()
        if positive is None:
            if len(listed) != 2:
                raise ValueError(f"there are {len(listed)} classes, {listed}; say which is set against the others")
            return 1
        if positive not in listed:
            raise ValueError(f"positive={positive!r} is no class; the classes are {listed}")
        return listed.index(positive)


def judged(source: Any, gold: Any = None) -> Judged:
    """Put probabilities and gold labels side by side.

    Args:
        source: a fit, or anything with ``probabilities`` and ``annotations``; or a frame of probabilities, tasks ×
            classes.
        gold: label by task, as :meth:`.Annotations.with_gold` takes it; None for those that the annotations carry.

    Raises:
        AnnotationError: there are no gold labels, they do not fit the tasks or the classes, all of them were told to
            the fit, or a frame holds no probabilities.
        TypeError: `source` is something else.
    """
    if isinstance(source, pd.DataFrame):
        return _from_frame(source, gold)
    if not (hasattr(source, "probabilities") and hasattr(source, "annotations")):
        raise TypeError(f"expected a fit, or a frame of probabilities (tasks × classes), got a {type(source).__name__}")
    annotations = source.annotations if gold is None else source.annotations.with_gold(gold)
    if annotations.gold is None:
        raise AnnotationError("the annotations carry no gold labels; give gold={task: label, …}")
    told = _told(source)
    return _judged(source.probabilities, np.asarray(annotations.gold), told)


def _from_frame(frame: pd.DataFrame, gold: Any) -> Judged:
    if gold is None:
        raise AnnotationError("a frame of probabilities carries no gold labels; give gold={task: label, …}")
    values = frame.to_numpy(dtype=float)
    bad = ~(np.isfinite(values).all(-1) & (values >= 0).all(-1) & (np.abs(values.sum(-1) - 1) < 1e-3))
    if bad.any():
        row = int(np.argmax(bad))
        raise AnnotationError(
            f"task {frame.index[row]!r} has {values[row].tolist()}: no probabilities; numbers from 0 that sum to 1 "
            f"over the classes {frame.columns.tolist()} are needed"
        )
    tasks, classes = Ids(frame.index, what="tasks"), Ids(frame.columns, what="classes")
    return _judged(frame, resolve_gold(gold, tasks, classes), np.zeros(len(frame), bool))


def _judged(probabilities: pd.DataFrame, gold: np.ndarray, told: np.ndarray) -> Judged:
    known = gold >= 0
    use = known & ~told
    if not use.any():
        why = "the fit was told all of them" if known.any() else "they are all missing"
        raise AnnotationError(f"there is no gold label to judge by: {why}; give others by gold={{task: label, …}}")
    return Judged(
        probabilities.to_numpy(dtype=float)[use],
        gold[use],
        probabilities.index[use],
        probabilities.columns,
        int((known & told).sum()),
    )


def _told(source: Any) -> np.ndarray:
    """The tasks whose label was evidence in the fit, or in any of a stack's fits, ``(N,)``."""
    fits = getattr(source, "fits", None)
    parts = list(fits.values()) if isinstance(fits, Mapping) else [source]
    found = np.zeros(source.annotations.n_tasks, bool)
    for part in [source, *parts]:
        if part.annotations.evidence is not None:
            found |= np.isneginf(np.asarray(part.annotations.evidence)).any(-1)
    return found
