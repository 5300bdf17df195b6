"""Several questions about a task: the table of a fit by question, and totals of tasks over them, as of a rubric."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jax import Array

from ...data import AnnotationError, Annotations
from ...data.agreement import krippendorff_alpha
from ...data.questions import QUESTION, Units
from ..densities.programs import compiled, keys_of
from .by_batch import SURE
from .error_correlation import drawn_labels
from .fitted import Fitted
from .intervals import INTERVAL, checked_tail
from .posterior import Posterior

SHOWN_CLASSES = 6  # that the table names
SMALLEST = 1e-300  # what shares are divided by at the least
TRUTHS = 500  # drawn of all tasks together
DECIMALS = 9  # of a total; what differs by less is one
MOST_TOTALS = 100_000  # of which one is looked up; of more any number between the least and the greatest is one


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
    votes = fit.given.votes()
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


def totals(fit: Posterior, interval: float = INTERVAL, seed: int = 0) -> pd.DataFrame:
    r"""The sum of each task's true scores over its questions, :math:`\sum_q x_{z_{iq}}`, with its interval.

    Ordered classes have the values that their means are taken of; of two classes the second counts 1 and the first 0,
    so that the total is the number of questions, or tags, that are answered by the second. Where questions have classes
    of their own, a question with more than two classes without an order is not counted. The interval is of draws of
    all truths of a task together, at draws of the parameters: where questions depend on each other
    (:class:`.CorrelatedQuestions`) it is wider than their own intervals say. Its ends are totals that the task may
    have; where the mean is not between them, the next one is taken.

    Args:
        fit: of annotations with several questions a task.
        interval: mass, between 0 and 1.
        seed: of the draws of truths.

    Returns:
        By task: total, total_low, total_high, and questions, how many were asked and counted.

    Raises:
        AnnotationError: one question is asked about each task, or all have more than two classes without an order.
    """
    annotations, units = fit.annotations, fit.annotations.tasks
    if not isinstance(units, Units):
        raise AnnotationError("totals are over several questions about each task: make the annotations with question=")
    values = class_values(annotations)[units.question]
    is_counted, n_tasks = np.isfinite(values).any(-1), len(units.tasks)
    values, task, rows = np.nan_to_num(values[is_counted]), units.task[is_counted], np.arange(is_counted.sum())
    expected = np.bincount(task, (np.asarray(fit.posterior, float)[is_counted] * values).sum(-1), n_tasks)
    truths = drawn_truths(fit, seed)[:, is_counted]
    drawn = np.stack([np.bincount(task, values[rows, truth], n_tasks) for truth in truths])
    tail = checked_tail(interval)
    low, high = np.quantile(drawn, [tail, 1 - tail], axis=0, method="inverted_cdf")
    known: dict[tuple[int, ...], np.ndarray] = {}
    by_question = class_values(annotations)
    for i in np.flatnonzero((expected < low) | (expected > high)):
        questions = tuple(sorted(units.question[is_counted & (units.task == i)].tolist()))
        if questions not in known:
            known[questions] = _possible([by_question[question] for question in questions])
        possible = known[questions]
        expected[i] = np.clip(expected[i], possible[0], possible[-1])  # beyond them only by rounding
        low[i] = min(low[i], possible[np.searchsorted(possible, expected[i], "right") - 1])
        high[i] = max(high[i], possible[np.searchsorted(possible, expected[i])])
    asked = np.bincount(task, minlength=n_tasks)
    return pd.DataFrame(
        {"total": expected, "total_low": low, "total_high": high, "questions": asked}, units.tasks.to_index("task")
    )


def _possible(values: list[np.ndarray]) -> np.ndarray:
    """The totals of questions whose classes have these numbers, NaN for none, in ascending order."""
    found = np.zeros(1)
    for of_question in values:
        own = of_question[np.isfinite(of_question)]
        if len(found) * len(own) > MOST_TOTALS:
            least, greatest = (sum(end(each) for each in values) for end in (np.nanmin, np.nanmax))
            return np.linspace(least, greatest, MOST_TOTALS)
        found = np.unique((found[:, None] + own).round(DECIMALS))
    return found


def has_totals(fit: Posterior) -> bool:
    """Return whether tasks have several questions, whose classes can be summed."""
    if fit.on_disk or not isinstance(fit.annotations.tasks, Units):
        return False
    kind, k = fit.annotations.kind, fit.annotations.n_classes
    asked = range(len(fit.annotations.questions))
    return any(len(kind.classes_of(q, k)) == 2 or kind.of_question(q).in_order for q in asked)


def class_values(annotations: Annotations) -> np.ndarray:
    """The number that each class of each question adds to a total, ``(Q, K)``.

    NaN of classes that a question does not have, and of all those of a question that is not counted.

    Raises:
        AnnotationError: no question has two classes, or classes in an order.
    """
    values = np.full((len(annotations.questions), annotations.n_classes), np.nan)
    for question, row in enumerate(values):
        chosen = annotations.kind.classes_of(question, annotations.n_classes)
        own = annotations.kind.of_question(question)
        if len(chosen) == 2 or own.in_order:
            names = [annotations.classes[int(k)] for k in chosen]
            row[chosen] = np.arange(2.0) if len(chosen) == 2 else own.values(names)
    if np.isnan(values).all():
        annotations.kind.values(list(annotations.classes))
    return values


def drawn_truths(fit: Posterior, seed: int = 0) -> np.ndarray:
    """Classes of all tasks, about :data:`TRUTHS` times, drawn from the posterior: ``(S, N)``."""
    if fit.rule is not None:
        return drawn_labels(np.asarray(fit.posterior, float), np.random.default_rng(seed), TRUTHS)
    parts = []
    for fitted, weight in fit.with_uncertainty.weighty:
        n = max(1, round(TRUTHS * weight))
        seen = fitted.thinned(n).at_size
        keys = keys_of(seed, (1, n))
        parts.append(np.asarray(_truths(seen, keys))[0, :, : fit.annotations.n_tasks])
    return np.concatenate(parts)


@compiled(once=True)
def _truths(fitted: Fitted, keys: Array) -> Array:
    return fitted.over_draws(lambda draw, key: fitted.at(draw).drawn(key), keys)
