"""Which workers a plot shows, and what it calls them and their scores."""

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from ...data import AnnotationError, Ids, UnknownNameError, unknown_name
from ...data.columns import type_hint
from ...data.description import count_text
from ...data.errors import whole_number
from ...data.ids import one_or_several
from ...data.questions import of_each_question, workers_noun
from ..fitted.posterior import Posterior
from ..fitted.workers import fitted_scores
from .style import every, short

MEANINGS = {
    "accuracy": "probability of a right annotation, of a task whose class is as frequent as among the labels",
    "realised_accuracy": "share of the annotations given that are right",
    "error_correlation": "mean correlation of the worker’s errors with the others’ on the same tasks",
    "n_effective": "like how much of an independent worker the worker counts beside the others",
    "spammer_score": "0 for a worker whose annotations do not depend on the truth, 1 for a worker without errors; rare "
    "classes count like others",
    "sensitivity": "probability of a right annotation where the true class is the second one",
    "specificity": "probability of a right annotation where the true class is the first one",
    "trace": "probability of a right annotation where all classes are equally frequent",
    "informativeness": "mutual information of annotation and truth, in nats",
    "rank_one_distance": "distance of the confusion matrix from matrices of rank one; 0 for a spammer",
    "abstention_rate": "probability of an abstention, of a task whose class is as frequent as among the labels",
    "gold_accuracy": "share of the worker’s annotations of gold tasks that are right",
    "seconds": "median of the seconds that an annotation took",
}  # of the scores that ``fit.workers`` has
AXIS = MEANINGS | {"accuracy": "probability of a right annotation", "spammer_score": "0: spammer, 1: no errors"}


def meanings(classes: Ids) -> dict[str, str]:
    """Return the meaning of each score, with the names of the classes where there are two."""
    found = dict(MEANINGS)
    for name, k in {"sensitivity": 1, "specificity": 0}.items():
        if len(classes) == 2:
            found[name] = f"probability of a right annotation where the true class is {short(classes[k], 40)}"
    return found


def scores_of(fit: Posterior, interval: float) -> pd.DataFrame:
    """The workers' scores that follow from their confusion matrices, a row for each worker.

    Raises:
        AnnotationError: the annotations name no workers.
    """
    refuse_unnamed(fit)
    return fitted_scores(fit, interval)


def refuse_unnamed(fit: Posterior) -> None:
    """Refuse annotations that name no workers.

    Raises:
        OnDiskError: the annotations are on the disk.
        AnnotationError: they name none.
    """
    if not fit.annotations.named:
        raise AnnotationError("the annotations name no workers, so there are no workers to draw")


def most_annotations(scores: pd.DataFrame, limit: int) -> list[int]:
    """Positions of the workers with the most annotations; of equal numbers those that come first among the workers."""
    limit = whole_number("max_workers", limit, 1)
    return np.argsort(-scores["annotations"].to_numpy(), kind="stable")[:limit].tolist()


def positions(ids: Ids, workers: Any) -> list[int]:
    """Positions of the workers that are named, one or several; a worker's name is that of all pairs with questions.

    Raises:
        UnknownNameError: the annotations have no such worker.
        ValueError: no worker is named.
    """
    chosen = list(of_each_question(one_or_several(workers, ids), ids))
    found = ids.index_of(chosen).tolist()
    if not found:
        raise ValueError("workers=[] selects no worker; name at least one, or leave workers out")
    if -1 in found:
        raise unknown_worker(chosen[found.index(-1)], ids)
    return found


def unknown_worker(worker: Hashable, ids: Ids) -> UnknownNameError:
    """The error for a worker that the annotations do not have."""
    return UnknownNameError(f"{unknown_name('worker', worker, ids)}{type_hint(worker, ids)}")


def which_workers(n_shown: int, workers: Ids | pd.Index, *, by_annotations: bool) -> str:
    """Name the workers that are shown, for a title."""
    noun = workers_noun(workers)
    if n_shown >= len(workers):
        return every(len(workers), noun)
    which = "those with the most annotations" if by_annotations else "as selected"
    return f"{n_shown:,} of {count_text(len(workers), noun)}, {which}"
