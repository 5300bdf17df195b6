"""Several questions about each task: the tasks of annotations are then pairs of a task and a question, `Units`."""

from collections.abc import Hashable, Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from .arrays import read_only
from .column_names import CRITERION_NAMES, plain, stem
from .columns import Column, encode
from .description import count_text
from .errors import AnnotationError, warn
from .ids import NO_IDS, Ids

QUESTION = "question"
"""The column of questions in tables that are made of annotations, and the level of their index."""

NAMES = (QUESTION, "aspect", "dimension", "criterion", "criteria", "metric", "attribute")
"""Names that a column of questions may have."""

SHARED = "all questions"
"""In the place of a question what a worker's parameters on all questions are drawn towards, where they are pooled."""

MOST_QUESTIONS = 100
"""A column with more distinct values holds no questions that are asked about every task."""


class Units(Ids):
    """The units of annotations with several questions: distinct pairs (task, question), in order.

    Tables by unit have the index levels, or the columns, task and question.

    Args:
        values: the pairs.
        what: what they are, for messages.

    Raises:
        AnnotationError: a value is no pair, or as `Ids`.
    """

    __slots__ = ("_question", "_questions", "_task", "_tasks")

    def __init__(self, values: Iterable[Any] = (), *, what: str = "tasks") -> None:
        super().__init__(values, what=what)
        pairs: list[Any] = list(self)
        if wrong := [pair for pair in pairs if not (isinstance(pair, tuple) and len(pair) == 2)]:
            raise AnnotationError(f"{what}: {wrong[0]!r} is no pair (task, question), of which the others are")
        task = encode(pd.Series([pair[0] for pair in pairs], dtype=object), what)
        question = encode(pd.Series([pair[1] for pair in pairs], dtype=object), f"questions of {what}")
        self._task, self._tasks = task.codes, task.ids
        self._question, self._questions = question.codes, question.ids

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Units) and super().__eq__(other))

    def __hash__(self) -> int:
        return super().__hash__()

    @property
    def questions(self) -> Ids:
        """The questions, in order of first appearance."""
        return self._questions

    @property
    def question(self) -> np.ndarray:
        """The question of each unit, as an index into `questions`, shape (N,) int32."""
        return self._question

    @property
    def tasks(self) -> Ids:
        """The tasks that the questions are asked about, in order of first appearance."""
        return self._tasks

    @property
    def task(self) -> np.ndarray:
        """The task of each unit, as an index into `tasks`, shape (N,) int32."""
        return self._task

    def to_index(self, name: str | None = None) -> pd.Index:
        """Return a pandas index with the levels task (or `name`) and question."""
        parts = [self.tasks.to_index()[self.task], self.questions.to_index()[self.question]]
        return pd.MultiIndex.from_arrays(parts, names=[name or "task", QUESTION])

    def to_columns(self, name: str, at: np.ndarray) -> dict[str, pd.Series]:
        """Return the columns of a table whose rows are these units: the tasks, called `name`, and the questions."""
        return self.tasks.to_columns(name, self.task[at]) | self.questions.to_columns(QUESTION, self.question[at])

    def to_json(self) -> Any:
        """Return a JSON value from which `ids_from_json` makes the same units."""
        of = {"tasks": self.tasks.to_json(), "questions": self.questions.to_json()}
        return {"units": of | {"task": self.task.tolist(), "question": self.question.tolist()}}


def ids_from_json(data: Any) -> Ids:
    """Return the identifiers, or units, that `to_json` turned into `data`."""
    if not (isinstance(data, dict) and "units" in data):
        return Ids.from_json(data)
    saved = data["units"]
    tasks, questions = list(Ids.from_json(saved["tasks"])), list(Ids.from_json(saved["questions"]))
    return Units((tasks[i], questions[q]) for i, q in zip(saved["task"], saved["question"], strict=True))


def ids_of_index(index: pd.Index) -> Ids:
    """Return the identifiers of tasks, or units, of which `to_index` made an index."""
    return (Units if index.nlevels == 2 and index.names[1] == QUESTION else Ids)(index, what="tasks")


def paired(task: Column, question: Column) -> Column:
    """Return the column of pairs (task, question), whose ids are `Units`: task by task, each in the questions' order.

    A question that the column's type lists (a pandas Categorical) and that no row has is warned of.
    """
    unused = [name for name in question.categories or () if name not in question.ids]
    if unused:
        names = ", ".join(map(repr, unused))
        warn(f"{question.title}: no row answers {names}, so that nothing can be said of it; it is left out")
    cell, codes = np.unique(task.codes.astype(np.int64) * len(question.ids) + question.codes, return_inverse=True)
    of_task, of_question = np.divmod(cell, len(question.ids))
    units = Units((task.ids[int(i)], question.ids[int(q)]) for i, q in zip(of_task, of_question, strict=True))
    return Column(f"{task.title} and {question.title}", codes.astype(np.int32), units, task.where)


def in_order(column: Column, tasks: Iterable[Any]) -> Column:
    """Return a column of pairs with the units of all `tasks`, in this order: every question of each, or those listed.

    Args:
        column: the pairs of the rows.
        tasks: tasks, or pairs of a task and a question.

    Raises:
        AnnotationError: a row's pair is not among them.
    """
    units, given = column.ids, Ids(tasks, what="tasks")
    assert isinstance(units, Units)
    pairs = [each for each in given if isinstance(each, tuple) and len(each) == 2 and each[1] in units.questions]
    if len(pairs) < len(given):
        pairs = [(task, question) for task in given for question in units.questions]
    return column.aligned(Units(pairs), "tasks")


def names_questions(name: str) -> bool:
    """Return whether a column of this name may have questions: ``question``, ``Criterion``, ``annotation_name``."""
    return stem(name) in NAMES or plain(name) in CRITERION_NAMES


def question_column(table: pd.DataFrame, task: str, taken: Iterable[str | None] = ()) -> str | None:
    """Return the column that names a question by its name and has several for some task; None where there is none.

    Args:
        table: with a row for each annotation.
        task: its column of tasks.
        taken: columns that are something else.
    """
    for name in table.columns:
        if names_questions(str(name)) and name != task and name not in set(taken):
            known = table[[task, name]].dropna().astype(str).drop_duplicates()
            if known[task].duplicated().any() and known[name].nunique() <= MOST_QUESTIONS:
                return str(name)
    return None


def tell_lone_workers(units: Ids, task: np.ndarray, worker: Column) -> None:
    """Warn of questions that one worker alone answered, while there are others.

    Args:
        units: the tasks, which have questions or none.
        task: the unit of each row, shape (A,).
        worker: the workers of the rows.
    """
    if not isinstance(units, Units) or len(worker.ids) < 2:
        return
    pairs = pd.DataFrame({QUESTION: units.question[task], "worker": worker.codes}).drop_duplicates()
    answering = np.bincount(pairs[QUESTION], minlength=len(units.questions))
    for question, who in pairs.to_numpy():
        if answering[question] == 1:
            warn(
                f"question {units.questions[int(question)]!r} was answered by one worker alone, "
                f"{worker.ids[int(who)]!r}, so that nothing tells errors from the truth there; have another "
                "worker answer it, or leave the question out"
            )


def by_question(tasks: Ids, task: np.ndarray, workers: Ids, worker: np.ndarray) -> tuple[Units, np.ndarray]:
    """Return the pairs of a worker and a question that have an annotation, worker by worker, and the pair of each row.

    Args:
        tasks: the tasks, which have questions.
        task: the unit of each row, shape (A,).
        workers: the workers.
        worker: of each row, shape (A,).
    """
    assert isinstance(tasks, Units)
    n_questions = len(tasks.questions)
    cell, codes = np.unique(worker.astype(np.int64) * n_questions + tasks.question[task], return_inverse=True)
    of_worker, of_question = np.divmod(cell, n_questions)
    pairs = ((workers[int(j)], tasks.questions[int(q)]) for j, q in zip(of_worker, of_question, strict=True))
    return Units(pairs, what="workers"), codes.astype(np.int32)


def pairs_in(table: pd.DataFrame, units: Units, task: str, label: str, question: str, what: str) -> pd.DataFrame:
    """Return a table with a row for each unit: its pair in the column `task`, and the others as they were.

    Args:
        table: with a column of questions, or with a column for each question, whose cells are labels.
        units: the tasks and questions.
        task: the column of tasks.
        label: the name of the column of labels.
        question: that of questions.
        what: the table, for messages.

    Raises:
        AnnotationError: it has neither.
    """
    if question not in table.columns:
        wide = [name for name in table.columns if name in units.questions]
        if not wide:
            raise AnnotationError(
                f"{what} has no column {question!r}, and the annotations have the questions "
                f"{', '.join(map(repr, units.questions[:5]))}: columns of tasks, questions and labels are needed, or a "
                "column for each question"
            )
        table = table.melt([name for name in table.columns if name not in wide], wide, question, label)
    pairs = pd.Series(list(zip(table[task].tolist(), table[question].tolist(), strict=True)), dtype=object)
    return table.reset_index(drop=True).assign(**{task: pairs})


def unknown_question(pair: Hashable, units: Ids) -> str:
    """Say, after a colon, that a task is a pair with a question, or which questions there are where one's is none."""
    if isinstance(units, Units) and len(units) and not isinstance(pair, tuple):
        return f": tasks are pairs of a task and a question, such as {units[0]!r}"
    if not isinstance(units, Units) or not isinstance(pair, tuple) or pair[-1] in units.questions:
        return ""
    return f": question {pair[-1]!r} is none of {', '.join(map(repr, units.questions))}"


def workers_noun(workers: Ids | pd.Index) -> str:
    """Return what frames by worker have a row for: a worker, or a pair of one and a question."""
    pairs = isinstance(workers, Units) or (isinstance(workers, pd.Index) and workers.nlevels > 1)
    return "pair of a worker and a question" if pairs else "worker"


def of_each_question(names: Iterable[Any], workers: Ids) -> Iterator[Any]:
    """Yield workers, and of one that is named alone, where workers are pairs with a question, each of its pairs."""
    pairs: dict[Any, list[Any]] = {}
    if isinstance(workers, Units):
        for pair, worker in zip(workers, workers.task, strict=True):
            pairs.setdefault(workers.tasks[int(worker)], []).append(pair)
    for name in names:
        yield from [name] if name in workers else pairs.get(name, [name])


def tasks_text(tasks: Ids) -> str:
    """Return the number of tasks in words, and of questions where there are several."""
    asked = f" with {count_text(len(tasks.questions), 'question')}" if isinstance(tasks, Units) else ""
    return f"{count_text(len(tasks_of(tasks)), 'task')}{asked}"


def fields_of(tasks: Ids) -> dict[str, Any]:
    """Return the fields of annotations that say which question each task is of: `question`, (N,), and `questions`."""
    if not isinstance(tasks, Units):
        return {"question": None, "questions": NO_IDS}
    return {"question": read_only(tasks.question.astype(np.int32)), "questions": tasks.questions}


def questions_of(ids: Ids) -> Ids:
    """Return the questions of units, none of identifiers without questions."""
    return ids.questions if isinstance(ids, Units) else NO_IDS


def tasks_of(ids: Ids) -> Ids:
    """Return the tasks, or the workers, of units; identifiers without questions as they are."""
    return ids.tasks if isinstance(ids, Units) else ids
