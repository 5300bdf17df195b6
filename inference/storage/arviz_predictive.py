"""Replicated annotations as ArviZ's groups, on the units of the log-likelihood.

ArviZ looks at one number a unit. Of an annotation that is its class; of a task, whose annotations are its unit, it is
their :data:`MAJORITY_SHARE`.
"""

import numpy as np

from ...data import Annotations
from ...data.arrays import counts
from ..fitted.fitted import Fitted
from ..fitted.named_draws import NamedArrays, Variable
from ..fitted.replicated_annotations import Unit, independent, predicted
from ..fitted.replicated_annotations import prior as from_prior

MAJORITY_SHARE = "majority_share"
SAID = "share of the task's annotations that are of the most frequent kind among them"
BY_ROW = np.int16  # of the classes' positions, which are many


def predictive(fitted: Fitted, unit: Unit, seed: int) -> NamedArrays:
    """Annotations as :func:`.predicted` draws them, ``annotation (chain, draw, row)``; by task also the majority share.

    Raises:
        AnnotationError: as :func:`.predicted`.
    """
    if unit == "annotation":
        return _group(fitted.annotations, predicted(fitted, unit, seed=seed))
    design = each_annotation(fitted.annotations)
    new = predicted(fitted.with_data(design), unit, seed=seed)
    return _group(fitted.annotations, new, design)


def prior_groups(fitted: Fitted, n: int, unit: Unit, seed: int) -> dict[str, NamedArrays]:
    """The groups ``prior`` and ``prior_predictive``: ``n`` draws of the parameters and of annotations."""
    design = each_annotation(fitted.annotations)
    parameters, annotation = from_prior(fitted.with_data(design), n, seed=seed)
    if unit == "task":
        return {"prior": parameters, "prior_predictive": _group(fitted.annotations, annotation, design)}
    of_rows = annotation[..., _rows(fitted.annotations, design)]
    return {"prior": parameters, "prior_predictive": _group(fitted.annotations, of_rows)}


def can_be_predicted(fitted: Fitted, unit: Unit) -> bool:
    """Return whether :func:`.predicted` has draws by this unit."""
    return unit == "task" or independent(fitted) or bool((counts(fitted.annotations) == 1).all())


def with_majority_share(observed: NamedArrays, annotations: Annotations) -> NamedArrays:
    """The observed annotations beside the majority share of each annotated task."""
    design = each_annotation(annotations)
    return _with_majority_share(observed, design, np.asarray(design.label))


def annotated_tasks(annotations: Annotations) -> np.ndarray:
    """The tasks that have annotations, ascending."""
    return np.unique(np.asarray(annotations.task))


def each_annotation(annotations: Annotations) -> Annotations:
    """The annotations with a row for each, where that can be: counts that are weights stay."""
    count = counts(annotations)
    return annotations.expanded() if (count == np.round(count)).all() and (count > 0).all() else annotations


def majority_share_of(annotations: Annotations, label: np.ndarray) -> np.ndarray:
    """The share of each annotated task's annotations that are of their most frequent kind: ``(..., annotated tasks)``.

    Args:
        annotations: the design.
        label: of its rows, ``(..., A)``.
    """
    count = counts(annotations)
    first = np.unique(np.asarray(annotations.task), return_index=True)[1]  # rows are sorted by task
    largest = np.zeros((*label.shape[:-1], len(first)), np.float32)
    for kind in range(annotations.n_categories):
        np.maximum(largest, np.add.reduceat((label == kind) * count, first, axis=-1), out=largest)
    return largest / np.add.reduceat(count, first)


def _with_majority_share(group: NamedArrays, design: Annotations, label: np.ndarray) -> NamedArrays:
    dims = (*("chain", "draw")[: label.ndim - 1], "task")
    share: Variable = (dims, majority_share_of(design, label), {"description": SAID})
    return group.with_more({MAJORITY_SHARE: share}, {"task": design.tasks.coords()[annotated_tasks(design)]})


def _group(annotations: Annotations, new: np.ndarray, design: Annotations | None = None) -> NamedArrays:
    """Replicates ``(chain, draw, A)`` of the rows or, with the majority shares of tasks, of a longer design."""
    of_rows = new if design is None else new[..., _rows(annotations, design)]
    coords = {"chain": np.arange(new.shape[0]), "draw": np.arange(new.shape[1])}
    found = NamedArrays({"annotation": (("chain", "draw", "row"), of_rows.astype(BY_ROW))}, coords)
    return found if design is None else _with_majority_share(found, design, new)


def _rows(annotations: Annotations, design: Annotations) -> np.ndarray | slice:
    """The position of each row in a design that has a row for each annotation: the first of those that it became."""
    if design.n_rows == annotations.n_rows:
        return slice(None)
    times = counts(annotations).astype(np.int64)
    return np.cumsum(times) - times
