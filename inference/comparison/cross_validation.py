"""K-fold cross-validation of a story: how well it predicts held-out annotations, or held-out tasks."""

import numpy as np

from ...data import Annotations
from ...data.arrays import counts
from ...data.errors import check_name, whole_number
from ...data.questions import Units
from ..engines.progress import progress_bar
from ..fitted.fitted import Fitted
from ..fitted.pointwise import rounds
from ..fitted.posterior import Posterior, fitted_of
from .elpd import UNITS, Elpd, annotation_index
from .held_out import predict_annotations, predict_tasks, refit_without


def kfold(
    fit: Posterior | Fitted,
    *,
    by: str = "annotation",
    folds: int = 5,
    refit_by: str | None = None,
    seed: int = 0,
    progress: bool = True,
) -> Elpd:
    r"""Score a story by K-fold cross-validation: refit it without one fold of the data, and predict that fold, K times.

    By annotation, the annotations to each task are spread over the folds. A held-out annotation is predicted given the
    annotations in the other folds, :math:`\log p(y_a \mid y_{-F(a)})`: those to the same task, and all others by the
    workers. By task, whole tasks are held out, and all annotations to one are predicted together,
    :math:`\log p(y_i \mid y_{-F(i)})`, the truth summed out; with as many folds as tasks this is exact
    leave-one-task-out. Any engine will do. Probability tables of EM's refits are taken at the mean of their
    conditional posterior, since at the mode an annotation that a worker has not given yet is impossible.

    Example:
        >>> import crowdppl as cp
        >>> fit = cp.fit("dawid_skene", cp.load_dataset("anesthesia"), progress=False)
        >>> cp.kfold(fit, folds=3, progress=False).table.shape
        (315, 1)

    Args:
        fit: of the story; its options and truth prior are used again.
        by: ``"annotation"`` or ``"task"``.
        folds: K, from 2 to the number of annotations, or of tasks that have annotations.
        refit_by: the engine of the refits, ``"em"``, ``"svi"`` or ``"nuts"``; the fit's own by default. ``"em"`` takes
            a fraction of the others' time.
        seed: of the division into folds.
        progress: whether to show a progress bar.

    Returns:
        the elpd in nats, and its parts by unit.

    Raises:
        UnknownNameError: `by` is another unit, or `refit_by` is no engine.
        ValueError: `folds` is no whole number in its range, or the fit is one of Pyro's.
    """
    by = check_name("value of by", by, UNITS)
    fitted = fitted_of(fit)
    annotations = fitted.annotations
    make = task_folds if by == "task" else annotation_folds
    plan = make(annotations, folds, np.random.default_rng(seed))
    task = np.asarray(annotations.task)
    total = np.zeros(annotations.n_tasks if by == "task" else annotations.n_rows)
    with progress_bar("K folds", len(plan), show=progress) as bar:
        for number, held in enumerate(plan):
            without = refit_without(fitted, held, refit_by)
            if by == "task":
                in_fold = np.bincount(task, held, annotations.n_tasks) > 0
                total += np.where(in_fold, np.asarray(predict_tasks(without, held)), 0.0)
            else:
                total += held * np.asarray(predict_annotations(without, rounds(task, held > 0)))
            bar(number + 1, fitted.story)
    if by == "task":
        annotated = np.unique(task)
        return Elpd(fitted.story, "kfold", by, annotations.tasks.to_index("task")[annotated], total[annotated])
    return Elpd(fitted.story, "kfold", by, annotation_index(annotations), total)


def annotation_folds(annotations: Annotations, folds: int, rng: np.random.Generator) -> np.ndarray:
    """Return each row's number of annotations in each fold, ``(folds, A)``; a task's annotations spread over the folds.

    Raises:
        ValueError: `folds` is no whole number from 2 to the number of annotations.
    """
    count = counts(annotations).astype(int)
    folds = whole_number("folds", folds, 2, int(count.sum()))
    row = np.repeat(np.arange(len(count)), count)
    task = np.asarray(annotations.task)[row]
    shuffled = np.lexsort((rng.random(len(row)), task))
    within = np.arange(len(row)) - np.searchsorted(task, task)
    fold = (within + rng.integers(folds, size=annotations.n_tasks)[task]) % folds
    held = np.zeros((folds, len(count)), np.float32)
    np.add.at(held, (fold, row[shuffled]), 1)
    return held


def task_folds(annotations: Annotations, folds: int, rng: np.random.Generator) -> np.ndarray:
    """Return each row's number of annotations in each fold, ``(folds, A)``, with whole tasks in the folds.

    The folds have equally many tasks, up to a difference of one. All questions of a task are in one fold.

    Raises:
        ValueError: `folds` is no whole number from 2 to the number of tasks that have annotations.
    """
    units, task = annotations.tasks, np.asarray(annotations.task)
    of_row = units.task[task] if isinstance(units, Units) else task
    annotated, position = np.unique(of_row, return_inverse=True)
    folds = whole_number("folds", folds, 2, len(annotated))
    fold = rng.permutation(len(annotated)) % folds
    return np.where(fold[position] == np.arange(folds)[:, None], counts(annotations), 0).astype(np.float32)
