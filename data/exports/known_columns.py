"""Which column of a table is which, by the names that people and tools give them."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from ..csv_header import missing_column
from ..errors import AnnotationError
from ..text import convert_text
from .gathered import MOST_CLASSES, count_of

INFER = "infer"
"""Find the column out by its name."""

NAMES: dict[str, tuple[str, ...]] = {
    "task": (
        "task", "item", "example", "unit", "question", "sample", "instance", "object", "document", "doc", "image",
        "sentence", "text", "hit", "query", "record", "id",
    ),
    "worker": (
        "worker", "annotator", "rater", "judge", "labeler", "labeller", "coder", "performer", "participant", "user",
        "model", "lf", "reviewer", "expert", "source",
    ),
    "label": (
        "label", "annotation", "response", "answer", "rating", "vote", "judgment", "judgement", "class", "category",
        "choice", "value", "score", "verdict", "output",
    ),
    "seconds": ("seconds", "worktimeinseconds", "leadtime", "durationseconds", "elapsedseconds"),
    "gold": ("gold", "goldlabel", "truth", "truelabel", "groundtruth", "golden"),
}  # fmt: skip
"""By role the names that a column may have, in small letters, without blanks, dashes, and "id" or "name" at the end."""

CONTENT = ("text", "sentence", "image", "document", "question")
"""Names of tasks that may as well be their content, where another column names them."""

ROLES = tuple(NAMES)
NEEDED = ("task", "worker", "label")


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
        """What was taken for what, where a column has another name than its role; else nothing."""
        return ", ".join(f"{role} {getattr(self, role)!r}" for role in self.guessed)


def find_roles(columns: Sequence[Any], given: Mapping[str, Any], what: str) -> Roles:
    """Return the columns by role: as given, of the role's own name, or the one whose name is known for it.

    Args:
        columns: the table's.
        given: by role a column, None for none, or `INFER`.
        what: the table, for messages.

    Raises:
        AnnotationError: a column that was given is not there, two may be meant, or none.
    """
    names = [str(column) for column in columns]
    found: dict[str, str | None] = {}
    for role in ROLES:
        asked = given.get(role, INFER)
        if asked == INFER:
            continue
        if asked is not None and asked not in names:
            raise missing_column(asked, role, names, what)
        found[role] = asked
    guessed = []
    for role in ROLES:
        if role in found:
            continue
        if role in found.values():
            other = next(other for other, name in found.items() if name == role)
            raise AnnotationError(f"column {role!r} is given for both {role}= and {other}=; name a column for each")
        found[role] = _inferred(role, [name for name in names if name not in found.values()], names, what)
        guessed += [role] if found[role] not in (None, role) else []
    return Roles(**found, guessed=tuple(guessed))  # type: ignore[arg-type]


def _inferred(role: str, free: Sequence[str], names: Sequence[str], what: str) -> str | None:
    """The column of a role among those that have none yet."""
    if role in free:
        return role
    candidates = [name for name in free if _known(name) in NAMES[role]]
    if role == "task":  # "id" beside "item" is the row's, "text" the task's content
        candidates = [name for name in candidates if _plain(name) not in ("id", *CONTENT)] or candidates
        candidates = [name for name in candidates if _plain(name) not in CONTENT] or candidates
    if role not in NEEDED:
        return candidates[0] if candidates else None
    if len(candidates) > 1:
        listing = " and ".join(map(repr, candidates))
        raise AnnotationError(f"{what}: {listing} may all name the {role}s; say {role}={candidates[0]!r}")
    if not candidates:
        raise missing_column(role, role, names, what)
    return candidates[0]


AGGREGATES = ("majority", "majorityvote", "mv", "consensus", "aggregated", "adjudicated", "final", "finallabel")
"""What columns of labels are called that no worker gave."""


@dataclass(frozen=True)
class Wide:
    """A table with a column for each worker."""

    task: str
    workers: tuple[str, ...]
    gold: str | None
    others: tuple[str, ...]  # columns that are none of these


def wide_roles(table: pd.DataFrame, gold: str | None = None) -> Wide | None:
    """Return the columns of a table with a column for each worker, or None where it is none.

    The column of gold labels is the one given, or known by its name. No column is named as workers or labels are.
    Those of workers have few values, which they share with the others.
    """
    names = [str(name) for name in table.columns]
    known = {_known(name) for name in names}
    tasks = _task_column(table)
    if known & {*NAMES["worker"], *NAMES["label"]} or len(names) < 3 or tasks is None:
        return None
    gold = gold or next((name for name in names if _known(name) in NAMES["gold"]), None)
    most = min(MOST_CLASSES, max(3, len(table) // 2))
    values: dict[str, set[Hashable]] = {}
    for name in names:
        if name in (tasks, gold) or _plain(name) in AGGREGATES:
            continue
        found = set(map(_hashed, table[name].dropna()))
        if len(found) <= most:
            values[name] = found
    workers = [name for name, found in values.items() if _shares(found, name, values)]
    workers += [name for name, found in values.items() if not found]  # a worker without an annotation
    if sum(bool(values[name]) for name in workers) < 2:
        return None
    workers = [name for name in names if name in workers]
    others = tuple(name for name in names if name not in (tasks, gold, *workers))
    return Wide(tasks, tuple(workers), gold, others)


def _shares(found: set[Hashable], name: str, values: Mapping[str, set[Hashable]]) -> bool:
    """Whether at least half of a column's values are those of another one, too."""
    if not found:
        return False
    others: set[Hashable] = set().union(*(each for other, each in values.items() if other != name))
    return len(found & others) >= len(found) / 2


def _hashed(value: Any) -> Hashable:
    return value if isinstance(value, Hashable) else str(value)


def _task_column(table: pd.DataFrame) -> str | None:
    """The column of a wide table that names its tasks: by its name, or the first where its values differ."""
    named = [str(name) for name in table.columns if _known(str(name)) in NAMES["task"]]
    if named:
        return next((name for name in named if _plain(name) not in CONTENT), named[0])
    first = str(table.columns[0])
    return first if table[first].map(_hashed).is_unique and table[first].notna().all() else None


def is_name_of(name: str, role: str) -> bool:
    """Return whether a column of this name may have this role."""
    return _known(name) in NAMES[role]


def gold_column(table: pd.DataFrame, gold: Any) -> str | None:
    """Return the column of the table that was named for gold labels; None where a file or something else was given."""
    return gold if isinstance(gold, str) and gold in table.columns and not Path(gold).is_file() else None


def gold_in(table: pd.DataFrame, roles: Roles, gold: Any) -> tuple[Any, str]:
    """Return the gold labels that were given, or those of a column of the table, and what is said of them.

    Raises:
        AnnotationError: the column has two for one task.
    """
    if column := gold_column(table, gold):
        roles, gold = replace(roles, gold=column), INFER
    if not (isinstance(gold, str) and gold == INFER):
        return gold, ""
    if roles.gold is None:
        return None, ""
    known = table[[roles.task, roles.gold]].dropna()
    distinct = known.drop_duplicates()
    twice = distinct[roles.task].duplicated()
    if twice.any():
        name = distinct[roles.task][twice].iloc[0]
        values = ", ".join(map(repr, distinct[distinct[roles.task] == name][roles.gold]))
        raise AnnotationError(
            f"column {roles.gold!r}: task {name!r} has the gold labels {values}; keep one, or give gold=None to leave "
            "the column out"
        )
    is_text = distinct.map(lambda value: isinstance(value, str)).all().all()
    if is_text:
        distinct = distinct.assign(
            **{
                roles.task: _like(distinct[roles.task], table[roles.task]),
                roles.gold: _like(distinct[roles.gold], table[roles.label], distinct[roles.gold]),
            }
        )
    truth = dict(zip(distinct[roles.task].tolist(), distinct[roles.gold].tolist(), strict=True))
    return truth, f", {count_of(len(truth), 'gold label')} in {roles.gold!r}"


def _like(values: pd.Series, *columns: pd.Series) -> pd.Series:
    """Text as whole numbers where that of other columns becomes whole numbers."""
    converted = convert_text(*columns)
    return values if converted[0] is columns[0] else pd.Series([int(value) for value in values], index=values.index)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def _known(name: str) -> str:
    plain = _plain(name)
    return re.sub(r"(?<=.)(ids?|names?)$", "", plain) or plain
