"""The table of a fit by question, where several are asked about a task, which summary, terminal and report show."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ...data import AnnotationError, Annotations
from ...data.agreement import krippendorff_alpha
from ...data.questions import QUESTION, Units
from .by_batch import SURE
from .posterior import Posterior
from .rubric_totals import class_values, has_totals

SHOWN_CLASSES = 6  # that the table names
SMALLEST = 1e-300  # what shares are divided by at the least


def question_frame(fit: Posterior) -> pd.DataFrame:
    r"""By question how many tasks and annotations it has, how far workers agree, and how sure its labels are.

    Args:
        fit: of annotations with several questions a task.

    Returns:
        By question, in their order: tasks; annotations, without abstentions; alpha, Krippendorff's, by the classes and
        the kind of the question (NaN where nothing is to be compared); expected_accuracy, the mean probability of its
        labels, which is the share of them that is right where the probabilities are; doubtful, how many labels have a
        probability below .9, on a scale of seven levels or more of being at most a tenth of it off. Where tasks have
        totals also mean_score: what the question adds to a total in the mean over its tasks, NaN where it is not
        counted. Last come its classes, with ``<`` between those that are ordered.

    Raises:
        AnnotationError: one question is asked about each task.
        OnDiskError: the annotations are not in memory.
    """
    annotations, units = fit.annotations, fit.annotations.tasks
    if not isinstance(units, Units):
        raise AnnotationError(
            "one question is asked about each task; fit.questions is of several, of which annotations are made with "
            "question=, the column of questions or the columns of several"
        )
    posterior = np.asarray(fit.posterior, float)
    probability = fit.labels["probability"].to_numpy(float)
    doubtful = annotations.kind.certainty(posterior, units.question) < SURE
    values = class_values(annotations) if has_totals(fit) else None
    votes = annotations.votes()
    rows = []
    for place, question in enumerate(units.questions):
        asked = units.question == place
        chosen, kind = annotations.question_classes(question)
        row: dict[str, Any] = {
            "tasks": int(asked.sum()),
            "annotations": int(votes[asked].sum()),
            "alpha": krippendorff_alpha(votes[asked][:, chosen], kind),
            "expected_accuracy": float(probability[asked].mean()),
            "doubtful": int(doubtful[asked].sum()),
        }
        if values is not None:
            is_counted = np.isfinite(values[place]).any()
            mean = float((posterior[asked] @ np.nan_to_num(values[place])).mean())
            row["mean_score"] = mean if is_counted else np.nan
        rows.append(row | {"classes": classes_text(annotations, question)})
    return pd.DataFrame(rows, units.questions.to_index(QUESTION))


class ClassRows(NamedTuple):
    """Rows of a table by class, or by question and class where there are several questions: R rows.

    Args:
        names: of the rows.
        question: of each row, as an index, ``(R,)``.
        of_class: the class of each row, ``(R,)``.
        of_task: the question of each task, ``(N,)``.
    """

    names: pd.Index
    question: np.ndarray
    of_class: np.ndarray
    of_task: np.ndarray

    def shares(self, values: np.ndarray) -> np.ndarray:
        """The share of each row among those of its question, by weights of the tasks' classes, ``(N, K)``: ``(R,)``."""
        sums = np.zeros((self.question.max() + 1, values.shape[-1]))
        np.add.at(sums, self.of_task, np.asarray(values, float))
        return (sums / np.maximum(sums.sum(-1, keepdims=True), SMALLEST))[self.question, self.of_class]


def class_rows(annotations: Annotations) -> ClassRows:
    """Return the rows of a table by class: of several questions the classes of each, in their order."""
    asked = list(annotations.questions)
    if not asked:
        n = annotations.n_classes
        return ClassRows(
            annotations.classes.to_index("class"), np.zeros(n, int), np.arange(n), np.zeros(annotations.n_tasks, int)
        )
    own = [annotations.kind.classes_of(place, annotations.n_classes) for place in range(len(asked))]
    question, of_class = np.repeat(np.arange(len(asked)), list(map(len, own))), np.concatenate(own)
    parts = [annotations.questions.to_index()[question], annotations.classes.to_index()[of_class]]
    index = pd.MultiIndex.from_arrays(parts, names=[QUESTION, "class"])
    return ClassRows(index, question, of_class, np.asarray(annotations.question))


def classes_text(annotations: Annotations, question: object) -> str:
    """Return the classes of a question in their order, the first of many."""
    chosen, kind = annotations.question_classes(question)
    names = [str(annotations.classes[int(k)]) for k in chosen]
    if len(names) > SHOWN_CLASSES:
        names = [*names[: SHOWN_CLASSES - 2], "…", names[-1]]
    return (" < " if kind.in_order else ", ").join(names)
