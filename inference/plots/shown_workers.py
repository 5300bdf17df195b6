"""Which workers a picture shows, and how it says so."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
import pandas as pd

from ...data import AnnotationError, Ids, UnknownNameError, unknown_name
from ...data.columns import type_hint
from ..fitted.labelled import Labelled
from ..fitted.workers import fitted_scores
from .style import counted


def scores_of(fit: Labelled, interval: float) -> pd.DataFrame:
    """The workers' scores that follow from their tables.

    Raises:
        AnnotationError: the annotations name no workers.
    """
    refuse_unnamed(fit)
    return fitted_scores(fit, interval)


def refuse_unnamed(fit: Labelled) -> None:
    """Raise an AnnotationError where the annotations name no workers."""
    if not fit.annotations.named:
        raise AnnotationError("the annotations name no workers, so there is nothing to draw of them")


def most_annotations(scores: pd.DataFrame, limit: int) -> list[int]:
    """Positions of the workers with the most annotations, ties in the order of the workers."""
    if limit < 1:
        raise ValueError(f"max_workers={limit}: at least one worker is needed")
    return np.argsort(-scores["annotations"].to_numpy(), kind="stable")[:limit].tolist()


def positions(ids: Ids, workers: Iterable[Hashable]) -> list[int]:
    """Positions of the workers named.

    Raises:
        UnknownNameError: one is none of the fit's.
        ValueError: nobody is named.
    """
    chosen = workers if isinstance(workers, str) else list(workers)
    found = ids.index_of(chosen).tolist()
    if not found:
        raise ValueError("workers=[] selects nobody; name at least one, or leave workers out")
    if -1 in found:
        raise unknown_worker(list(chosen)[found.index(-1)], ids)
    return found


def unknown_worker(worker: Hashable, ids: Ids) -> UnknownNameError:
    """The error for a worker who is none of the fit's."""
    return UnknownNameError(f"{unknown_name('worker', worker, ids)}{type_hint(worker, ids)}")


def whom(n_shown: int, n_workers: int, *, by_annotations: bool) -> str:
    """Who is shown, for a title."""
    if n_shown >= n_workers:
        return f"all {n_workers:,} workers" if n_workers > 1 else "the only worker"
    which = "those with the most annotations" if by_annotations else "as chosen"
    return f"{n_shown:,} of {counted(n_workers, 'worker')}, {which}"
