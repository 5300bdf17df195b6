"""The request to :func:`crowdppl.read`, and which column is which by the names that people and tools give."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..annotations import Annotations
from ..column_names import (
    BOTH,
    CODED,
    CONTENT,
    COUNTS,
    CRITERIA,
    INFER,
    JUDGED,
    NAMES,
    SYSTEMS,
    are_criteria,
    columns_of_task,
    is_identifier,
    is_name_of,
    likely_columns,
    missing_column,
    named_for,
    names_of_both,
    one_column,
    plain,
    stem,
)
from ..comparison_columns import two_sides
from ..description import count_text
from ..errors import AnnotationError
from ..id_text import listing
from ..input_warnings import several_tags
from ..nested import are_lists
from ..questions import MOST_QUESTIONS, QUESTION, names_questions
from ..text import convert_labels, convert_text, without_point
from ..text_files import suffix_of
from ..wide import TOTALS, is_text, says_more, task_column_of_rows

ROLES = tuple(NAMES)
NEEDED = ("task", "worker", "label")
LONG = 20  # letters of a text, in the mean, that is rather an answer that is judged than a label
FEW_ANSWERS = 20  # values at the most of a column that may answer a question
REPEATED = 2  # rows for each worker and question, from which on the question alone is hardly the task
ASKED_ABOUT = ("article", "conversation", "dialogue", "email", "essay", "passage", "student", "transcript", "video")
"""Names, beside identifiers, of what questions are asked about."""

IDENTIFIERS = ("id", "uid", "uuid", "guid")
LISTED = 12  # columns that were left out
STAMPS = (
    "timestamp", "createdat", "submittedat", "annotatedat", "labeledat", "labelledat", "judgedat", "ratedat",
    "zeitstempel", "horodateur", "marcatemporal",
)  # fmt: skip
"""Names, as :func:`.stem` has them, of columns that say when an annotation was given."""

NEARLY = 0.9  # of the rows differ in task, question and worker


@dataclass(frozen=True)
class Roles:
    """The columns of a table by role; None where there is none."""

    task: str
    worker: str | None
    label: str
    seconds: str | None
    gold: str | None
    guessed: tuple[str, ...]  # roles whose column has another name than the role

    def said(self) -> str:
        """Return which column was taken for which role, where a column has another name than its role; else nothing."""
        return ", ".join(f"{role} {getattr(self, role)!r}" for role in self.guessed)


def find_roles(
    columns: Sequence[Any],
    given: Mapping[str, Any],
    what: str,
    table: pd.DataFrame | None = None,
    places: Sequence[str] = (),
    shown: Iterable[Any] | None = None,
) -> Roles:
    """Return the columns by role: as given, of the role's own name, or the one whose name is known for it.

    Args:
        columns: the table's.
        given: by role a column, None for none, or `INFER`.
        what: the table, for messages.
        table: it, for messages that ask for a column by what is in it.
        places: what may be named as a column, and is none yet.
        shown: the columns that messages name; None for `columns`.

    Raises:
        AnnotationError: a column that was given is not there, two may be meant, or none.
    """
    names = [str(column) for column in columns]
    listed = list(dict.fromkeys([*(names if shown is None else map(str, shown)), *places]))
    found: dict[str, str | None] = {}
    for role in ROLES:
        asked = given.get(role, INFER)
        if asked == INFER:
            continue
        if isinstance(asked, list | tuple):
            one = " + ' ' + ".join(f"table[{name!r}].astype(str)" for name in asked)
            raise AnnotationError(
                f"{role}={asked!r}: one column is needed; make it of several, such as table[{role!r}] = {one}"
            )
        if asked is not None and asked not in names:
            raise missing_column(asked, role, listed, what)
        found[role] = asked
    guessed = []
    if table is not None and (judged := judged_column(table[names], found)) is not None:
        found["task"] = judged
        guessed = ["task"]
    free = [name for name in names if name not in found.values()]
    unknown = [role for role in NEEDED if role not in found and role not in names and not named_for(role, free)]
    taken = [found.get(role) or (role if role in names else next(iter(named_for(role, free)), None)) for role in ROLES]
    if table is not None and unknown == ["worker"] and given.get("count") is None:
        counts = [name for name in names if COUNTS.fullmatch(plain(name)) and name not in taken]
        if counts:
            raise AnnotationError(
                f"{what} has no column of workers, and {counts[0]!r} seems to say how many annotations a row stands "
                f"for: say worker=None and count={counts[0]!r}, or which column names the workers by worker='COL'"
            )
    if table is not None and len(unknown) == len(NEEDED):
        _refuse_without_header(table[names], what)
    likely = {} if table is None or not unknown else likely_columns(table[names], unknown, taken)
    others = [name for name in names if name not in taken]
    if table is not None and "label" in unknown and len(tagged := list(filter(partial(_are_tags, table), others))) == 1:
        roles_left = [role for role in unknown if role != "label"]
        likely = likely_columns(table[names], roles_left, [*taken, *tagged]) if roles_left else {}
        likely["tags"] = tagged[0]
    others = [name for name in others if name not in (two_sides(names) or ())]
    wide = (
        ""
        if table is None or "label" not in unknown
        else _told_questions(table[others], label_alone=unknown == ["label"])
    )
    taken += [name for name in listed if name not in (*names, *places)]
    if likely or len(unknown) > 1:
        lacking = missing_column(unknown[0], unknown[0], listed, what, others=unknown[1:], likely=likely, taken=taken)
        raise AnnotationError(f"{lacking}{wide}")
    if wide:
        raise AnnotationError(f"{missing_column('label', 'label', listed, what, taken=listed)}{wide}")
    empty = set() if table is None else {name for name in names if table[name].isna().all()}
    for role in ROLES:
        if role in found:
            continue
        if role in found.values():
            other = next(other for other, name in found.items() if name == role)
            raise AnnotationError(f"column {role!r} is given for both {role}= and {other}=; name a column for each")
        left = [name for name in names if name not in found.values() and (name == role or name not in empty)]
        if role == "label" and table is not None:
            left = _without_texts(left, table)
        found[role] = _inferred(role, left, listed, what, found)
        guessed += [role] if found[role] not in (None, role) else []
    roles = Roles(**found, guessed=tuple(guessed))  # type: ignore[arg-type]
    if table is not None and "label" in guessed and _is_what_is_judged(table, roles):
        lacking = missing_column("label", "label", listed, what, taken=[roles.task, roles.worker, roles.label])
        raise AnnotationError(f"{lacking} Where the labels are in {roles.label!r}: label={roles.label!r}.")
    return roles


def judged_column(table: pd.DataFrame, found: Mapping[str, str | None]) -> str | None:
    """Return the column of answers that workers judge, where no other names tasks; None without one.

    It is named as labels may be, beside another that is, or beside columns that are called as criteria are. Most of
    its values have several workers, and each worker has one row for a value, question and system. Where there are
    questions, they are fewer than the values, most of which have most of them.
    """
    free = [str(name) for name in table.columns if name not in found.values()]
    workers = [found["worker"]] if found.get("worker") else named_for("worker", free)
    questions = [name for name in free if names_questions(name)]
    others = [name for name in named_for("task", free) if name not in questions]
    labels = [*named_for("label", free), *filter(None, [found.get("label")])]
    beside = [name for name in free if name not in (*labels, *workers)]
    if "task" in found or others or len(workers) != 1 or (len(labels) < 2 and not are_criteria(beside)):
        return None
    systems = [name for name in free if name not in workers and SYSTEMS.fullmatch(stem(name))]
    for name in labels:
        if stem(name) in JUDGED and name in free:
            known = table[[name, *workers, *questions, *systems]].dropna().astype(str)
            each, sizes = known.groupby(name)[[*workers, *questions]].nunique(), known.nunique()
            most = [each[workers[0]] > 1, *(each[one] > sizes[one] / 2 for one in questions)]
            is_asked = all(1 < sizes[one] < sizes[name] for one in questions)
            if is_asked and not known.duplicated().any() and all(np.mean(of_most) > 0.5 for of_most in most):
                return name
    return None


def _are_marks(table: pd.DataFrame) -> bool:
    """Return whether one column is 1 in each row, and the others 0."""
    numbers = table.apply(pd.to_numeric, errors="coerce")
    return bool(numbers.isin([0, 1]).all(axis=None) and (numbers.sum(axis=1) == 1).all())


def _is_what_is_judged(table: pd.DataFrame, roles: Roles) -> bool:
    """Return whether the labels are identifiers of what is judged, of which a worker has several for a task.

    Or all workers have the same one for a task.
    """
    if roles.worker is None or not is_identifier(roles.label) or stem(roles.label) in CODED:
        return False
    known = table[[roles.task, roles.worker, roles.label]].dropna().astype(str).drop_duplicates()
    by_task = known.groupby(roles.task)
    several = by_task[roles.worker].nunique() > 1
    alike = several.any() and (by_task[roles.label].nunique()[several] == 1).all()
    return bool(alike or known.duplicated([roles.task, roles.worker]).any())


def with_task_of_questions(roles: Roles, table: pd.DataFrame, what: str, taken: Sequence[str | None] = ()) -> Roles:
    """Return the roles with the task that questions were asked about, where a column of questions was taken for it.

    A column of identifiers, or of :data:`ASKED_ABOUT`, is that task where workers answer a question again and again,
    and each once for each identifier, while an identifier stands in several rows. It is taken where most have several
    workers, and one question or fewer questions than there are identifiers; otherwise it may as well be the number of
    a session.

    Args:
        roles: as :func:`find_roles` returns them.
        table: with a row for each annotation.
        what: it, for messages.
        taken: columns that are something else.

    Raises:
        AnnotationError: it may be either, or there are several such columns.
    """
    question, worker = roles.task, [] if roles.worker is None else [roles.worker]
    if "task" not in roles.guessed or not names_questions(question):
        return roles
    others = {roles.worker, roles.label, roles.seconds, roles.gold, question, *taken}
    found = [str(name) for name in table.columns if name not in others]
    found = [name for name in found if is_identifier(name) or stem(name) in ASKED_ABOUT]
    found = [name for name in found if not SYSTEMS.fullmatch(stem(name))]
    known = table[[*found, question, *worker, roles.label]].astype(str).drop_duplicates()
    if len(known) < REPEATED * len(known[[question, *worker]].drop_duplicates()):
        return roles
    found = [name for name in found if _may_be_asked_about(known, name, question, worker)]
    sure = [name for name in found if worker and _are_asked_about(known, name, question, worker[0])]
    if not found:
        return roles
    if len(sure) == 1:
        return replace(roles, task=sure[0])
    asked = " or ".join(f"task={name!r}" for name in sure or found)
    raise AnnotationError(
        f"{what}: {question!r} may be the task, or a question that is asked about each of another column: say "
        f"task={question!r}, or {asked} with question={question!r}"
    )


def with_repeated_content(roles: Roles, table: pd.DataFrame) -> Roles:
    """Return the roles with a column of contents as task, where a column "id" was taken that has another in each row.

    It is one such as "question" or "text", each of whose values several workers annotated, and each once.
    """
    if roles.worker is None or plain(roles.task) != "id" or table[roles.task].duplicated().any():
        return roles
    for name in table.columns:
        if plain(str(name)) in CONTENT and name not in (roles.label, roles.worker, roles.gold):
            known = table[[name, roles.worker]].dropna().astype(str)
            if len(known) >= REPEATED * known[name].nunique() and not known.duplicated().any():
                return replace(roles, task=str(name), guessed=tuple(dict.fromkeys(["task", *roles.guessed])))
    return roles


def with_identifiers_of_content(roles: Roles, table: pd.DataFrame) -> Roles:
    """Return the roles with identifiers as task, where workers annotated the contents that were taken more than once.

    As of the answers to an instruction: each worker annotated an identifier once, most have several workers, and each
    is of one content.
    """
    if roles.worker is None or "task" not in roles.guessed or plain(roles.task) not in CONTENT:
        return roles
    if not table.duplicated([roles.task, roles.worker]).any():
        return roles
    found = []
    for name in map(str, table.columns):
        if name in (roles.label, roles.worker, roles.gold) or not (is_identifier(name) or plain(name) in IDENTIFIERS):
            continue
        known = table[[name, roles.worker, roles.task]].dropna().astype(str)
        each = known.groupby(name)[[roles.worker, roles.task]].nunique()
        is_once = not known.duplicated([name, roles.worker]).any()
        if is_once and (each[roles.task] == 1).all() and (each[roles.worker] > 1).mean() > 0.5:
            found.append(name)
    return replace(roles, task=found[0]) if len(found) == 1 else roles


def with_questions_of_content(roles: Roles, table: pd.DataFrame) -> tuple[Roles, pd.DataFrame, list[str]]:
    """Return the roles and the table with a task for each pair of a content and a question, and the two columns.

    Where more questions are asked about the tasks than would be asked about each, as about pictures, they are not the
    same question asked of all. Without such the roles and the table are as they were, and no columns are returned.
    """
    worker = [] if roles.worker is None else [roles.worker]
    for name in table.columns:
        if stem(str(name)) != QUESTION or name in (roles.task, roles.label, roles.worker, roles.gold):
            continue
        known = table[[roles.task, name, *worker]].dropna().astype(str)
        pairs, cells = known[[roles.task, name]].drop_duplicates(), known.drop_duplicates()
        is_of_tasks = pairs[name].nunique() > MOST_QUESTIONS and pairs[roles.task].duplicated().any()
        if is_of_tasks and len(cells) >= NEARLY * len(known):
            return _of_both(roles, table, str(name))
    return roles, table, []


def with_answers_of_systems(
    roles: Roles, table: pd.DataFrame, question: str | None = None
) -> tuple[Roles, pd.DataFrame, list[str]]:
    """Return the roles and the table with a task for each answer of a system, and the two columns.

    There is then a column such as "model", by which a worker's rows of a task, and of a question, differ. Without it
    the roles and the table are as they were, and no columns are returned.
    """
    if roles.worker is None:
        return roles, table, []
    keys = [roles.worker, question] if question else [roles.worker]
    name = system_column(table, roles.task, keys, (roles.label, roles.gold))
    return (roles, table, []) if name is None else _of_both(roles, table, name)


def system_column(
    table: pd.DataFrame, task: str, keys: Sequence[str] = (), taken: Collection[str | None] = ()
) -> str | None:
    """Return the column of the systems whose answers to a task are judged; None where no such column tells rows apart.

    Args:
        table: of answers, or of what workers say of them.
        task: the column of what is answered.
        keys: columns beside it that name a row: the worker, a question.
        taken: columns that are something else.
    """
    for name in map(str, table.columns):
        if name in (task, *keys, *taken) or not SYSTEMS.fullmatch(stem(name)):
            continue
        known = table[[task, *keys, name]].dropna().astype(str)
        several = known.drop_duplicates().groupby([task, *keys]).size() > 1
        if several.mean() > 0.5 or (several.any() and not known.duplicated().any()):
            return name
    return None


def with_rows_of_answers(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of a row for each system's answer to a task with one column that names it; any other as it is.

    It is one where no column is named as labels or, but for the systems, as workers are.
    """
    task = task_column_of_rows(table)
    name = None if task is None else system_column(table, task)
    if task is None or name is None:
        return table
    others = table.drop(columns=[task, name])
    if any(is_name_of(str(column), role) for column in others for role in ("worker", "label")):
        return table
    others.insert(0, f"{task}{BOTH}{name}", names_of_both(table, task, name))
    return others


def with_named_parts(table: pd.DataFrame, asked: "Asked", what: str) -> tuple[pd.DataFrame, "Asked"]:
    """Return the table with one column of tasks in the place of the two that were named for them, and the request.

    They are named as "a | b", or "a,b" where no column is called so; any other table and request is as it was.

    Raises:
        AnnotationError: one of the two is not there.
    """
    parts = columns_of_task(asked.task, table.columns)
    if len(parts) != 2:
        return table, asked
    if lacking := [name for name in parts if name not in table.columns]:
        raise missing_column(lacking[0], "task", table.columns, what)
    one, other = parts
    others = table.drop(columns=[name for name in parts if name not in asked.used])
    others.insert(0, f"{one}{BOTH}{other}", names_of_both(table, one, other))
    return others, replace(asked, task=f"{one}{BOTH}{other}")


def name_of_parts(task: Any) -> str:
    """Return the name of the column of tasks, also of a list of two columns that name them together.

    Raises:
        AnnotationError: the list is not of two columns.
    """
    if not isinstance(task, list | tuple):
        return task
    if len(task) != 2 or not all(isinstance(name, str) for name in task) or task[0] == task[1]:
        raise AnnotationError(f"task={task!r}: a column is needed, or a list of two that name the tasks together")
    return BOTH.join(task)


def _of_both(roles: Roles, table: pd.DataFrame, name: str) -> tuple[Roles, pd.DataFrame, list[str]]:
    """Return the roles and the table with a task for each pair of a task and a value of a column; and the columns."""
    both = f"{roles.task}{BOTH}{name}"
    table = table.assign(**{both: names_of_both(table, roles.task, name)})
    guessed = tuple(dict.fromkeys(["task", *roles.guessed]))
    return replace(roles, task=both, guessed=guessed), table, [roles.task, name]


def count_column(roles: Roles, table: pd.DataFrame) -> str | None:
    """Return the column that says how many annotations a row stands for, where no worker is named; None without one."""
    if roles.worker is not None or table[[roles.task, roles.label]].duplicated().any():
        return None
    free = [str(name) for name in table.columns if COUNTS.fullmatch(plain(str(name))) and name != roles.label]
    whole = [name for name in free if pd.to_numeric(table[name], errors="coerce").mod(1).eq(0).all()]
    return whole[0] if len(whole) == 1 else None


def _may_be_asked_about(known: pd.DataFrame, name: str, question: str, worker: list[str]) -> bool:
    """Return whether identifiers stand in several rows each, with few of the same worker and question."""
    cells = len(known[[name, question, *worker]].drop_duplicates())
    return 1 < known[name].nunique() < len(known) and (cells >= NEARLY * len(known) or not worker)


def _are_asked_about(known: pd.DataFrame, name: str, question: str, worker: str) -> bool:
    """Return whether most identifiers have several workers, and one question or fewer questions than that."""
    each = known.groupby(name)[[question, worker]].nunique()
    return bool((each[worker] > 1).mean() > 0.5) and (
        bool((each[question] == 1).all()) or known[question].nunique() < len(each)
    )


def _inferred(
    role: str, free: Sequence[str], names: Sequence[str], what: str, found: Mapping[str, str | None]
) -> str | None:
    """The column of a role among those that have none yet."""
    if role in free:
        return role
    candidates = named_for(role, free)
    if role not in NEEDED:
        return candidates[0] if candidates else None
    if role == "worker" and not candidates and len(free) > 2:
        lacking = missing_column(role, role, names, what, taken=found.values())
        raise AnnotationError(f"{lacking} Where each worker has a column of labels, pass columns='workers'.")
    return one_column(role, candidates, names, what, list(found.values()))


def _without_texts(free: Sequence[str], table: pd.DataFrame) -> list[str]:
    """The columns without those of long texts that are named as labels, where another has few values: a response."""
    named = [name for name in free if is_name_of(name, "label")]
    values = {name: table[name].dropna().astype(str) for name in named}
    few = [name for name, given in values.items() if 1 < given.nunique() <= FEW_ANSWERS]
    texts = [name for name in named if name not in few and values[name].str.len().mean() > LONG]
    return [name for name in free if name not in texts or not few]


def _refuse_without_header(table: pd.DataFrame, what: str) -> None:
    """Refuse a table of which most columns have a name that is one of their own values, too.

    Raises:
        AnnotationError: it has such columns; the first row seems to be one of annotations.
    """
    names = [str(name) for name in table.columns]
    again = [name for name in names if (table[name].map(str) == name).any()]
    if 2 * len(again) > len(names) > 1:
        given = [*NEEDED, *(f"column {number}" for number in range(len(NEEDED) + 1, len(names) + 1))][: len(names)]
        call = f", or read it with names: cp.read(pd.read_csv({what!r}, header=None, names={given}))"
        call *= suffix_of(what) == ".csv"
        raise AnnotationError(
            f"{what} seems to have no header: its first row, {', '.join(map(repr, names))}, is like those below it, "
            f"as {again[0]!r} is there again. Write a row such as {','.join(NEEDED)} above it{call}"
        )


def _told_questions(table: pd.DataFrame, *, label_alone: bool) -> str:
    """Say, after a space, which columns may answer a question each, and how they are read; nothing where none do.

    Args:
        table: the columns that are nothing else.
        label_alone: whether all but the labels was found, so that any columns of few values may be those.
    """
    others, asked = list(map(str, table)), _alike(table)
    if label_alone and len(asked) < 2:
        few = min(FEW_ANSWERS, len(table) // REPEATED)
        asked = others if all(1 < table[name].map(str).nunique() <= few for name in others) else asked
    if len(asked) < 2:
        return ""
    rest = [name for name in others if name not in asked]
    without = f" (which leaves out {listing(rest, LISTED)})" if rest else ""
    wide = f" Where each of the columns answers a question about the task: question={asked}{without}."
    if not _are_marks(table[asked]):
        return wide
    return f" Where the one column that is 1 is the label: table['label'] = table[{asked}].idxmax(axis=1).{wide}"


def _alike(table: pd.DataFrame) -> list[str]:
    """The columns of few values which others have too, as answers to several questions have, or are called so."""
    free = [str(name) for name in table.columns if plain(str(name)) not in TOTALS and not says_more(str(name))]
    values = {name: set(table[name].dropna().map(str).map(without_point)) for name in free}
    few = {name: found for name, found in values.items() if 1 < len(found) <= FEW_ANSWERS}
    alike = [name for name, found in few.items() if any(found & few[other] for other in few if other != name)]
    return [name for name in few if name in alike or plain(name) in CRITERIA] if alike else []


def _are_tags(table: pd.DataFrame, name: str) -> bool:
    """Return whether the cells of a column are lists, or texts of several others."""
    return are_lists(table[name]) or bool(several_tags(table[name].map(str).unique()))


def left_out(
    columns: Iterable[Any],
    used: Collection[Any] = (),
    *,
    takes_gold: bool = True,
    table: pd.DataFrame | None = None,
    ranked: Collection[str] = (),
    takes_when: bool = False,
) -> str:
    """Return that columns were left out, and what takes one named like true labels or times; nothing where none were.

    Args:
        columns: of a table.
        used: those of them that were read.
        takes_gold: whether ``gold=`` may name a column of the table.
        table: it, where a column may be left out because it is empty, which is said.
        ranked: those of :func:`ranked_columns`, by which :func:`crowdppl.judge` ranks what was judged.
        takes_when: whether ``when=`` may name a column of the table that is not named yet.
    """
    others = [str(name) for name in columns if name not in used]
    empty = [] if table is None else [name for name in others if table[name].isna().all()]
    ranked = [name for name in others if name in ranked and name not in empty]
    others = [name for name in others if name not in (*empty, *ranked)]
    said_empty = f"; left out, as empty: {listing(empty, LISTED)}" if empty else ""
    if ranked:
        said_empty += f"; {listing(ranked, LISTED)} is no part of a fit: judge ranks what was judged by it"
    if not others:
        return said_empty
    true = next(iter(named_for("gold", others)), None) if takes_gold else None
    time = next((name for name in others if stem(name) in STAMPS), None) if takes_when else None
    taken = [f"true labels are taken by gold={true!r}"] * (true is not None)
    taken += [f"when={time!r} tells how workers change over time"] * (time is not None)
    return f"; left out: {listing(others, LISTED)}" + f" ({'; '.join(taken)})" * bool(taken) + said_empty


def ranked_columns(table: pd.DataFrame, task: str) -> list[str]:
    """Return the columns that name one system for each task, of several: whose answers were judged.

    Args:
        table: with a row for each annotation or task.
        task: its column of the tasks.
    """
    named = [name for name in table.columns if name != task and SYSTEMS.fullmatch(stem(str(name)))]
    each = {name: table[[task, name]].dropna().drop_duplicates() for name in named}
    return [str(name) for name, of in each.items() if not of[task].duplicated().any() and of[name].nunique() > 1]


def gold_column(table: pd.DataFrame, gold: Any) -> str | None:
    """Return the column of the table that was named for gold labels; None where a file or something else was given."""
    return gold if isinstance(gold, str) and gold in table.columns and not Path(gold).is_file() else None


def gold_in(
    table: pd.DataFrame, roles: Roles, gold: Any, question: str | None = None, abstentions: Iterable[object] = ()
) -> tuple[Any, str]:
    """Return the gold labels that were given, or those of a column of the table, and what is said of them.

    Those of a column are by task, or by task and question where there is a column of questions.

    Raises:
        AnnotationError: the column has two for one task.
    """
    if column := gold_column(table, gold):
        roles, gold = replace(roles, gold=column), INFER
    if not (isinstance(gold, str) and gold == INFER):
        return gold, ""
    if roles.gold is None:
        return None, ""
    keys = [roles.task] if question is None else [roles.task, question]
    given = [column for column in (*keys, roles.worker, roles.label) if column is not None]
    known = table.dropna(subset=given)[[*keys, roles.gold]].dropna()
    distinct = known.drop_duplicates()
    twice = distinct[keys].duplicated()
    if twice.any():
        first = distinct[keys][twice].iloc[0]
        name = first[roles.task]
        values = ", ".join(map(repr, distinct[(distinct[keys] == first).all(axis=1)][roles.gold]))
        raise AnnotationError(
            f"column {roles.gold!r}: task {name!r} has the gold labels {values}; keep one, or give gold=None to leave "
            "the column out"
        )
    if all(map(is_text, [table[roles.label], *(distinct[name] for name in distinct)])):
        distinct = distinct.assign(
            **{
                **{key: _like(distinct[key], table[key]) for key in keys},
                roles.gold: convert_labels(distinct[roles.gold], table[roles.label], abstentions=abstentions)[0],
            }
        )
    columns = [distinct[key].tolist() for key in keys]
    named = columns[0] if question is None else list(zip(*columns, strict=True))
    truth = dict(zip(named, distinct[roles.gold].tolist(), strict=True))
    return truth, f", {count_text(len(truth), 'gold label')} in {roles.gold!r}"


def _like(values: pd.Series, *columns: pd.Series) -> pd.Series:
    """Text as whole numbers where that of other columns becomes whole numbers."""
    converted = convert_text(*columns)
    return values if converted[0] is columns[0] else pd.Series([int(value) for value in values], index=values.index)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The arguments of :func:`crowdppl.read` beside the source."""

    question: Any
    looks: bool  # whether a column of questions is looked for, as none was named
    task: str
    worker: str | None
    label: str
    count: str | None
    seconds: str | None
    separator: str | None
    encoding: str | None
    sheet: str | None
    columns: str | None
    outer: str | None
    several: str
    comparisons: bool | None
    meaning: Mapping[Any, str] | None
    preferences: bool | None
    item_features: Any
    tags: str | None
    tag_separator: str | None
    empty: str | None
    gold: Any
    options: Mapping[str, Any]  # of `Annotations.from_frame`
    first: Annotations | None = None  # to which these are added, whose columns they may have

    def with_known(self, names: Iterable[object]) -> "Asked":
        """Return what is asked of a table with these columns: those of the first annotations, where none was named."""
        known = {} if self.first is None else self.first.known_columns(names)
        found = {role: name for role, name in known.items() if self.roles.get(role) == INFER}
        if self.looks and "question" in known and self.first is not None and len(self.first.questions):
            found |= {"question": known["question"], "looks": False}
        if "tags" in known and self.tags is None and "label" not in self.named:
            found["tags"] = known["tags"]
        if "task" not in found and self.task == INFER and "prompt" in known:
            found["task"] = known["prompt"]
        return replace(self, **found)

    @property
    def roles(self) -> dict[str, str | None]:
        """By role the column that was named, None for none, or :data:`INFER`."""
        return {role: getattr(self, role) for role in ("task", "worker", "label", "count", "seconds")}

    @property
    def used(self) -> set[Any]:
        """Names of columns that were given for something else than tasks."""
        several = self.question if isinstance(self.question, list | tuple) else [self.question]
        others = [self.worker, self.label, self.count, self.seconds, self.tags, self.options.get("when"), *several]
        return {name for name in others if isinstance(name, str)}

    @property
    def named(self) -> list[str]:
        """The roles whose column was named."""
        return [role for role, name in self.roles.items() if name not in (INFER, None)]

    @property
    def infers_gold(self) -> bool:
        """True where gold labels are those that the source itself has."""
        return isinstance(self.gold, str) and self.gold == INFER

    @property
    def truth(self) -> Any:
        """The gold labels that were given; None without, or where they are those of the source."""
        return None if self.infers_gold else self.gold
