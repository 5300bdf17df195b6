"""A sample of tasks with gold labels, what the fit was told of others, and gold labels that all workers contradict."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ...data import AnnotationError, Annotations
from ...data.errors import warn
from ...data.id_text import listing, name_quoted
from ...data.questions import QUESTION
from .against_gold import with_gold
from .gold_shares import GoldDraw, drawn_alike

FEW = 20  # gold labels below which they are said to be few
NAMED = 5  # tasks that a warning names


@dataclass(frozen=True, eq=False)
class GoldSample:
    """The N tasks whose label the fit was not told, n of them with gold labels; and the tasks that it was told of.

    Args:
        probabilities: of the labels of the former, ``(N, K)``.
        at: positions of the gold tasks among them, ``(n,)``.
        gold: their gold labels as positions of classes, ``(n,)``.
        inclusion: the probabilities with which the gold tasks were drawn, ``(n,)``; None where all were alike.
        told: the labels that the fit was told, as positions of classes, ``(U,)``.
        gold_used: how many gold labels were given that the fit had been told.
        contradicted: gold tasks whose annotations are all of one other class: :func:`contradicted_by_all`.
        tasks: all tasks.
        classes: the K classes.
        question: of the N tasks, as positions of `questions`, ``(N,)``; None where there is one.
        questions: their names.
        of_sides: whether the classes are the sides of comparisons, whose shares say only how items were placed.
    """

    probabilities: np.ndarray
    at: np.ndarray
    gold: np.ndarray
    inclusion: np.ndarray | None
    told: np.ndarray
    gold_used: int
    contradicted: pd.DataFrame
    tasks: pd.Index
    classes: pd.Index
    question: np.ndarray | None = None
    questions: tuple[Any, ...] = ()
    of_sides: bool = False

    @property
    def label(self) -> np.ndarray:
        """The most probable class of each of the N tasks as in ``fit.labels``: of a tie the first, ``(N,)``."""
        return self.probabilities.argmax(-1)

    @property
    def draw(self) -> GoldDraw:
        """The gold tasks as a draw from the N tasks."""
        if self.inclusion is None:
            return drawn_alike(len(self.probabilities), self.at)
        return GoldDraw(len(self.probabilities), self.at, 1 / self.inclusion - 1)

    @property
    def right(self) -> np.ndarray:
        """True for each gold task whose label is the gold label, ``(n,)``."""
        return self.label[self.at] == self.gold

    def properties(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the K + 1 properties to estimate: the task has class k, for each of K classes, and its label is right.

        Returns:
            Which gold tasks have each property, ``(n, K + 1)``, and predictions of it for all tasks, ``(N, K + 1)``.
        """
        k = len(self.classes)
        y = np.column_stack([np.eye(k)[self.gold], self.right])
        return y, np.column_stack([self.probabilities, self.probabilities.max(-1)])

    def of_questions(self) -> dict[Any, "GoldSample"]:
        """Return the sample of each question that has tasks here; empty where there is one question."""
        parts: dict[Any, GoldSample] = {}
        if self.question is None:
            return parts
        for place, name in enumerate(self.questions):
            rows = np.asarray(self.question == place)
            if rows.any():
                kept, new = rows[self.at], np.cumsum(rows) - 1
                inclusion = None if self.inclusion is None else self.inclusion[kept]
                own = {"probabilities": self.probabilities[rows], "at": new[self.at[kept]], "gold": self.gold[kept]}
                parts[name] = replace(self, **own, inclusion=inclusion, question=None, questions=())
        return parts

    def figures(self, columns: Mapping[str, ArrayLike]) -> pd.DataFrame:
        """Numbers of these properties, ``(K + 1,)`` by column, as a frame with those of the accuracy first."""
        frame = pd.DataFrame({name: np.roll(values, 1) for name, values in columns.items()})
        quantity = ["accuracy", *["prevalence"] * len(self.classes)]
        of = pd.Index(["labels", *self.classes], dtype=object)
        return frame.set_axis(pd.MultiIndex.from_arrays([quantity, of], names=["quantity", "of"]))


def gold_sample(source: Any, gold: Any = None, *, needed: bool = True) -> GoldSample:
    """The gold tasks of a fit as a sample of its tasks; warns where gold labels contradict all annotations of a task.

    Args:
        source: a fit, a stack, or a frame of probabilities, tasks × classes.
        gold: label by task, or annotations that carry gold labels; None for the gold labels of the fit's annotations.
        needed: whether a sample without a gold label is refused; where `gold` is given it is refused anyway.

    Raises:
        AnnotationError: as for :func:`.against_gold`.
        TypeError: `source` is something else.
    """
    found = with_gold(source, gold, needed=needed)
    known = found.gold >= 0
    use = known & ~found.gold_used
    if not use.any() and (needed or gold is not None):
        why = "the fit was told all of them" if known.any() else "they are all missing"
        raise AnnotationError(
            f"there is no gold label to estimate from: {why}; give those of tasks that were drawn at random and kept "
            "from the fit, by gold={task: label, …}"
        )
    values = found.probabilities.to_numpy(dtype=float)
    told = found.gold_used & (values.max(-1) > 1 - 1e-6)
    rest = np.flatnonzero(~told)
    contradicted = contradicted_by_all(found.annotations, np.where(use, found.gold, -1))
    if len(contradicted):
        warn(_contradiction_text(contradicted))
    question, questions = _questions_of(found.probabilities.index)
    return GoldSample(
        values[rest],
        np.flatnonzero(use[rest]),
        found.gold[rest][use[rest]],
        None if found.inclusion is None else found.inclusion[rest][use[rest]],
        values[told].argmax(-1),
        int((known & found.gold_used).sum()),
        contradicted,
        found.probabilities.index,
        found.probabilities.columns,
        None if question is None else question[rest],
        questions,
        found.annotations is not None and found.annotations.sides is not None,
    )


def _questions_of(tasks: pd.Index) -> tuple[np.ndarray | None, tuple[Any, ...]]:
    """Return the question of each task, and the questions' names; None and nothing where there is one question."""
    if QUESTION not in tasks.names:
        return None, ()
    question, names = pd.factorize(tasks.get_level_values(QUESTION))
    return question, tuple(names)


def contradicted_by_all(annotations: Annotations | None, gold: np.ndarray) -> pd.DataFrame:
    """Gold tasks with two annotations or more, all of one class, which is not the gold label.

    Args:
        annotations: the annotations; None where only probabilities are known.
        gold: gold labels as positions of classes, ``(N,)``; −1 where none is known.

    Returns:
        By task: gold, annotation (the class that all gave), annotations (how many).
    """
    empty = pd.DataFrame({"gold": [], "annotation": [], "annotations": []}, index=pd.Index([], name="task"))
    if annotations is None:
        return empty
    votes = annotations.votes()
    given, all_give = votes.sum(-1), votes.argmax(-1)
    odd = np.flatnonzero((gold >= 0) & (given >= 2) & (votes.max(-1) == given) & (all_give != gold))
    if not len(odd):
        return empty
    classes = annotations.classes.to_index()
    return pd.DataFrame(
        {"gold": classes[gold[odd]], "annotation": classes[all_give[odd]], "annotations": given[odd]},
        index=annotations.tasks.to_index("task")[odd],
    )


def _contradiction_text(contradicted: pd.DataFrame) -> str:
    rows = [
        f"{name_quoted(task)} (gold {row.gold!r}, all {row.annotations} annotations {row.annotation!r})"
        for task, row in zip(contradicted.index, contradicted.itertuples(index=False), strict=True)
    ]
    tasks = "task" if len(contradicted) == 1 else "tasks"
    return (
        f"the gold label contradicts all annotations of {len(contradicted):,} {tasks}: {listing(rows, NAMED, str)}; "
        "look whether the gold label is wrong, or the task misleads the workers"
    )
