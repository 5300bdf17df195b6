"""K-fold cross-validation of a story: what it predicts of annotations, or of tasks, that it was not shown."""

import numpy as np
import pandas as pd

from ...data import Annotations
from ..engines.progress import progress_bar
from ..fitted.fitted import HoldsFitted, fitted_of
from .elpd import UNITS, Elpd
from .held_out import counts, predict_annotations, predict_tasks, rounds
from .refit import refit_without


def kfold(
    fit: HoldsFitted,
    *,
    by: str = "annotation",
    folds: int = 5,
    refit_by: str | None = None,
    seed: int = 0,
    progress: bool = True,
) -> Elpd:
    r"""Score a story by refitting it without a fold of the data, and predicting that fold: K times.

    Annotations to one task are spread over the folds; each is predicted from the task's annotations in the other folds and from
    what the other folds say of the workers. By task, whole tasks are held out, and all annotations to one are predicted
    together, :math:`\log p(y_i \mid y_{-F(i)})`, the truth summed out; as many folds as tasks are exact
    leave-one-task-out. Any engine will do; EM's tables are taken at their conditional mean.

    Args:
        fit: of the story; its engine, options and truth prior are used again.
        by: ``"annotation"`` or ``"task"``.
        folds: K, from 2 to the number of annotations (tasks).
        refit_by: the engine of the refits; the fit's own by default. ``"em"`` takes a fraction of the others' time.
        seed: of the folds.
        progress: show a progress bar.

    Raises:
        UnknownNameError: `refit_by` is no engine.
        ValueError: for another `by`, folds that cannot be, or a fit by Pyro.
    """
    if by not in UNITS:
        raise ValueError(f"by={by!r}: 'annotation' or 'task' is needed")
    fitted = fitted_of(fit)
    annotations = fitted.annotations
    rng = np.random.default_rng(seed)
    make = task_folds if by == "task" else annotation_folds
    plan = make(annotations, folds, rng)
    task, count = np.asarray(annotations.task), counts(annotations)
    total = np.zeros(annotations.n_tasks if by == "task" else annotations.n_rows)
    with progress_bar("K folds", folds, show=progress) as bar:
        for number, held in enumerate(plan):
            found = refit_without(fitted, held, refit_by)
            if by == "task":
                values = predict_tasks(found.with_data(found.annotations.replace(count=count)))
                out = np.bincount(task, held, annotations.n_tasks) > 0
                total += np.where(out, np.asarray(values), 0.0)
            else:
                order = rounds(task, held > 0)
                values = predict_annotations(found, order, _padded(int(order.max()) + 1))
                total += held * np.asarray(values)
            bar(number + 1, fitted.story)
    if by == "task":
        answered = np.unique(task)
        return Elpd(fitted.story, "kfold", by, annotations.tasks.to_index("task")[answered], total[answered])
    return Elpd(fitted.story, "kfold", by, annotation_index(annotations), total)


def annotation_folds(annotations: Annotations, folds: int, rng: np.random.Generator) -> np.ndarray:
    """How many of each row's annotations are in each fold, ``(folds, A)``: a task's annotations are spread over the folds.

    Raises:
        ValueError: for fewer than two folds, or more than annotations.
    """
    count = counts(annotations).astype(int)
    _check_folds(folds, int(count.sum()), "annotations")
    row = np.repeat(np.arange(len(count)), count)
    task = np.asarray(annotations.task)[row]
    shuffled = np.lexsort((rng.random(len(row)), task))
    within = np.arange(len(row)) - np.searchsorted(task, task)
    fold = (within + rng.integers(folds, size=annotations.n_tasks)[task]) % folds
    held = np.zeros((folds, len(count)), np.float32)
    np.add.at(held, (fold, row[shuffled]), 1)
    return held


def task_folds(annotations: Annotations, folds: int, rng: np.random.Generator) -> np.ndarray:
    """The same with whole tasks in the folds, all of one size but for one.

    Raises:
        ValueError: for fewer than two folds, or more than tasks that have annotations.
    """
    task = np.asarray(annotations.task)
    answered, position = np.unique(task, return_inverse=True)
    _check_folds(folds, len(answered), "tasks with annotations")
    fold = rng.permutation(len(answered)) % folds
    return np.where(fold[position] == np.arange(folds)[:, None], counts(annotations), 0).astype(np.float32)


def annotation_index(annotations: Annotations) -> pd.MultiIndex:
    """Task, worker (where workers are named) and label of each row."""
    frame = annotations.to_frame()
    return pd.MultiIndex.from_frame(frame[[name for name in ("task", "worker", "label") if name in frame]])


def _check_folds(folds: int, most: int, what: str) -> None:
    if not (isinstance(folds, int | np.integer) and 2 <= folds <= most):
        raise ValueError(f"folds={folds!r}: a whole number from 2 to the {most:,} {what} is needed")


def _padded(n_rounds: int) -> int:
    """The next power of two, so that folds of nearly the same depth share one compiled program."""
    return 1 << max(n_rounds - 1, 0).bit_length()
