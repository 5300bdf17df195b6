"""Systems that were judged: the one behind each task, and all of them by their expected scores."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...data import AnnotationError, Annotations, Ids
from ...data.column_names import SYSTEMS, stem, tasks_of_rows
from ...data.exports.eval_logs import answered_by, is_log
from ...data.exports.opening import PARQUET, files_in, table_of
from ...data.frames import is_frame, read_parquet_table, read_text_table
from ...data.kinds import Kind
from ...data.questions import Units, tasks_of
from ...data.text_files import first_bytes
from ..fitted.intervals import checked_tail, known_quantiles
from ..fitted.posterior import Posterior

DRAWS = (200, 1000)  # of labels and of the tasks' weights, at the least and at the most
NUMBERS = 3e7  # labels in all of these draws, about
TASKS_EACH = 2  # on average, from which on a column that is named for systems is taken for them
RIGHT = ("c", "correct", "right", "yes", "pass", "passed", "true", "good", "1")
"""Names of the class that counts, in small letters, where one class alone has such a name."""


class Systems(dict[Any, Any]):
    """The system by task.

    Attributes:
        column: of the table, that names them; None where something else does.
    """

    def __init__(self, by_task: Any, column: str | None = None) -> None:
        super().__init__(by_task)
        self.column = column


def systems_of(annotations: Annotations, system: Any, source: Any) -> Systems | None:
    """Return the system by task, None where nothing says so.

    Args:
        annotations: of N tasks, or units of a task and a question.
        system: by task, a mapping or series; the name of the column of `source` that has it; None for the model that
            gave an answer, where `source` is a log of an evaluation, or a table with a column of that name.
        source: what the annotations were made of.

    Raises:
        AnnotationError: no task has a system, `source` has no such column, or a task has two systems.
        TypeError: `system` is something else.
    """
    tasks = tasks_of(annotations.tasks)
    if system is None:
        return _told_by(source, tasks)
    if isinstance(system, str):
        found = _of_column(source, system, tasks)
    elif isinstance(system, Mapping | pd.Series):
        found = Systems(system.items(), getattr(system, "column", None))
    else:
        raise TypeError(f"system= takes a column's name, or systems by task, not a {type(system).__name__}")
    if all(pd.isna(found.get(task)) for task in tasks):
        raise AnnotationError(f"system=: no task has a system; the tasks are such as {tasks[0]!r}")
    return found


def _told_by(source: Any, tasks: Ids) -> Systems | None:
    """Return the system of each task by what a log or a column such as "model" says; None where neither does."""
    if _is_of_logs(source):
        found = Systems((task, answered_by(task)) for task in tasks)
        return None if None in found.values() else found
    table = _table_of(source)
    if table is None:
        return None
    for column in map(str, table.columns):
        if SYSTEMS.fullmatch(stem(column)):
            of_text = _by_task(table, column, tasks)
            if of_text.index.is_unique and 1 < of_text.nunique() <= len(of_text) / TASKS_EACH:
                each = of_text.reindex([str(task) for task in tasks])
                if each.notna().all():
                    return Systems(zip(tasks, each, strict=True), column)
    return None


def _is_of_logs(source: Any) -> bool:
    if not isinstance(source, str | Path) or not Path(source).exists():
        return False
    path = Path(source)
    return any(map(is_log, files_in(path) if path.is_dir() else [path]))


def _table_of(source: Any) -> pd.DataFrame | None:
    """The table that annotations were made of; None where it is not here, or is none."""
    if is_frame(source):
        return table_of(source)
    if not isinstance(source, str | Path) or not Path(source).is_file():
        return None
    path = Path(source)
    is_parquet = first_bytes(path, len(PARQUET)) == PARQUET
    return read_parquet_table(path) if is_parquet else read_text_table(path)


def _of_column(source: Any, column: str, tasks: Ids) -> Systems:
    """Return systems by task, from a column of the table that the annotations were made of."""
    table = _table_of(source)
    if table is None:
        raise AnnotationError(
            f"system={column!r} names a column of a table, and the annotations were not read from one here; give the "
            "table or its path in their place, or system={task: system, …}"
        )
    if column not in table:
        raise AnnotationError(f"system={column!r}: there is no such column; there are {', '.join(map(repr, table))}")
    of_text = _by_task(table, column, tasks)
    if (twice := of_text.index.duplicated()).any():
        raise AnnotationError(
            f"system={column!r}: task {of_text.index[twice][0]!r} has two systems; a task is one answer of one system"
        )
    return Systems(((task, of_text.get(str(task))) for task in tasks), column)


def _by_task(table: pd.DataFrame, column: str, tasks: Ids) -> pd.Series:
    """Return the systems that a column names, by the task as text."""
    of_row, _ = tasks_of_rows(table, tasks)
    found = pd.DataFrame({"task": of_row, "system": table[column]}).dropna().drop_duplicates()
    return found.set_index(found["task"].map(str))["system"]


def scores_of_classes(kind: Kind, classes: list[Any], positive: Any = None) -> tuple[np.ndarray, str]:
    """Return what each class counts in a system's score, shape (K,), and what the score is, in words.

    Of ordered classes it is their value; of others 1 for the class `positive`, by default the only one whose name is of
    :data:`RIGHT`, else the last one. A class that is a number may be given as text, as the command line does.

    Raises:
        AnnotationError: `positive` is no class.
    """
    if positive is None:
        try:
            return kind.values(classes), "expected score"
        except AnnotationError:
            right = [name for name in classes if str(name).casefold() in RIGHT]
            positive = right[0] if len(right) == 1 else classes[-1]
    if positive not in classes:
        positive = next((name for name in classes if str(name) == positive), positive)
    if positive not in classes:
        raise AnnotationError(f"positive={positive!r} is none of the classes {', '.join(map(repr, classes))}")
    return np.array([1.0 * (name == positive) for name in classes]), f"share of {positive!r}"


def system_scores(
    source: Posterior, system: Mapping[Any, Any], values: np.ndarray, *, interval: float, seed: int = 0
) -> pd.DataFrame:
    """Return systems by their mean expected score, the best first.

    Intervals are quantiles of draws. Each draw has labels from the tasks' probabilities, and weights of the tasks from
    a Dirichlet distribution with 1 for each task (Rubin 1981): over what the labels may be, and over other tasks of the
    same kind. They hold as far as the label probabilities do.

    Args:
        source: the labels.
        system: by task; tasks that are not in it are left out.
        values: of the classes, shape (K,).
        interval: mass of the intervals.
        seed: of the draws.

    Returns:
        By system: tasks, score, score_low, score_high, rank (by the score), rank_low, rank_high, and best, the
        probability of having the highest score.
    """
    tail = checked_tail(interval)
    posterior = np.asarray(source.posterior, float)
    units = source.annotations.tasks
    of_unit = [system.get(task) for task in tasks_of(units)]
    at = units.task if isinstance(units, Units) else np.arange(len(units))
    code, names = pd.factorize(pd.Series(of_unit, dtype=object).iloc[at], use_na_sentinel=True)
    known = code >= 0
    posterior, code, n_systems = posterior[known], code[known], len(names)
    rng = np.random.default_rng(seed)
    n_draws = int(np.clip(NUMBERS / max(len(code), 1), *DRAWS))
    cumulative = posterior.cumsum(-1)
    drawn = np.empty((n_draws, n_systems))
    for one in drawn:
        label = np.minimum((rng.random((len(code), 1)) > cumulative).sum(-1), len(values) - 1)
        weight = rng.standard_exponential(len(code))
        one[:] = np.bincount(code, weight * values[label], n_systems) / np.bincount(code, weight, n_systems)
    n = np.bincount(code, minlength=n_systems)
    score = np.bincount(code, posterior @ values, n_systems) / n
    rank = 1 + (drawn[:, None, :] > drawn[:, :, None]).sum(-1)  # (draw, system)
    low, high = known_quantiles(drawn, [tail, 1 - tail])
    rank_low, rank_high = np.quantile(rank, [tail, 1 - tail], axis=0, method="nearest")
    own = 1 + (score[None, :] > score[:, None]).sum(-1)
    frame = pd.DataFrame(
        {
            "tasks": n,
            "score": score,
            "score_low": np.minimum(low, score),
            "score_high": np.maximum(high, score),
            "rank": own,
            "rank_low": np.minimum(rank_low, own),
            "rank_high": np.maximum(rank_high, own),
            "best": (rank == 1).mean(0),
        },
        index=pd.Index(names, name="system"),
    )
    return frame.sort_values("score", ascending=False, kind="stable")
