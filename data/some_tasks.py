"""Some of the tasks of annotations, and which tasks differ between annotations and more of them."""

from __future__ import annotations

import numpy as np

from .annotations import Annotations
from .arrays import BY_ROW, BY_TASK, changed, counts
from .ids import Ids


def some_tasks(annotations: Annotations, chosen: np.ndarray) -> Annotations:
    """The chosen tasks with all their annotations; workers and classes are those of all.

    Args:
        annotations: the data.
        chosen: whether each task is, ``(N,)`` of bool.

    Returns:
        annotations in the same order, whose tasks have numbers as identifiers.
    """
    task = np.asarray(annotations.task)
    rows = chosen[task]
    place = np.cumsum(chosen, dtype=np.int32) - 1

    return annotations.replace(
        task=place[task[rows]],
        tasks=Ids.range(int(chosen.sum())),
        **changed(annotations, BY_ROW, lambda values: np.asarray(values)[rows]),
        **changed(annotations, BY_TASK, lambda values: np.asarray(values)[chosen]),
    )


def changed_tasks(before: Annotations, after: Annotations) -> np.ndarray:
    """A mask of the tasks of ``after`` that are new, or have more annotations or other evidence: ``(N,)`` of bool.

    Args:
        before: annotations.
        after: the same with more of them: :meth:`.Annotations.joined`.
    """
    given = [np.bincount(data.task, counts(data), after.n_tasks) for data in (before, after)]
    differs = given[0] != given[1]
    differs[before.n_tasks :] = True
    if after.evidence is not None:
        known = 0.0 if before.evidence is None else before.evidence
        differs[: before.n_tasks] |= (np.asarray(after.evidence)[: before.n_tasks] != known).any(-1)
    if after.model_scores is not None:
        scores = np.asarray(after.model_scores)[: before.n_tasks]
        same = before.model_scores is not None and np.shape(before.model_scores) == scores.shape
        old = np.asarray(before.model_scores) if same else np.full_like(scores, np.nan)
        differs[: before.n_tasks] |= ~((scores == old) | (np.isnan(scores) & np.isnan(old))).all((1, 2))
    return differs
