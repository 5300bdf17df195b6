"""Some of the tasks of annotations, and which tasks differ between annotations and more of them."""

from __future__ import annotations

import numpy as np

from .annotations import Annotations, Array
from .arrays import counts
from .ids import Ids

BY_ROW = ("worker", "label", "count", "seconds")
BY_TASK = ("gold", "features", "evidence", "prior", "model_scores")


def some_tasks(annotations: Annotations, chosen: np.ndarray) -> Annotations:
    """The chosen tasks with all their annotations; workers and classes are those of all.

    Args:
        annotations: the data.
        chosen: whether each task is, ``(N,)`` of bool.

    Returns:
        annotations in the same order, whose tasks have numbers as identifiers.
    """
    rows = chosen[annotations.task]
    place = np.cumsum(chosen, dtype=np.int32) - 1

    def part(names: tuple[str, ...], which: np.ndarray) -> dict[str, Array]:
        fields = {name: getattr(annotations, name) for name in names}
        return {name: np.asarray(value)[which] for name, value in fields.items() if value is not None}

    return annotations.replace(
        task=place[annotations.task[rows]],
        tasks=Ids.range(int(chosen.sum())),
        **part(BY_ROW, rows),
        **part(BY_TASK, chosen),
    )


def changed_tasks(before: Annotations, after: Annotations) -> np.ndarray:
    """Which tasks of ``after`` are new, or have more annotations or other evidence: ``(N,)`` of bool.

    Args:
        before: annotations.
        after: the same with more of them: :meth:`.Annotations.joined`.
    """
    given = [np.bincount(data.task, counts(data), after.n_tasks) for data in (before, after)]
    changed = given[0] != given[1]
    changed[before.n_tasks :] = True
    if after.evidence is not None:
        known = 0.0 if before.evidence is None else before.evidence
        changed[: before.n_tasks] |= (np.asarray(after.evidence)[: before.n_tasks] != known).any(-1)
    if after.model_scores is not None:
        scores = np.asarray(after.model_scores)[: before.n_tasks]
        same = before.model_scores is not None and np.shape(before.model_scores) == scores.shape
        old = np.asarray(before.model_scores) if same else np.full_like(scores, np.nan)
        changed[: before.n_tasks] |= ~((scores == old) | (np.isnan(scores) & np.isnan(old))).all((1, 2))
    return changed
