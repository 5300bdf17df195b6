"""Tables that come after comparisons: more of them, and gold labels by the two items, as the first ones name tasks."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import pandas as pd

from .column_names import missing_column, named_for
from .comparison_columns import needed_comparison_columns, two_sides, with_drawn_sides
from .comparisons import (
    OF_DRAWN_SIDES,
    TASK,
    ComparisonColumns,
    columns_of_tasks,
    comparison_fields,
    gold_of_pairs,
    prompts_of,
)
from .errors import AnnotationError
from .frames import as_frame, take_column
from .gold import table_of_gold
from .id_text import listing
from .ids import Ids
from .kinds import SIDES
from .questions import QUESTION


def more_comparisons(first: Any, table: pd.DataFrame) -> dict[str, Any]:
    """Return the fields of annotations of a table of comparisons, whose tasks are named as those of the first ones are.

    Raises:
        AnnotationError: it is none, or lacks a column of what these tasks are named by.
    """
    drawn = with_drawn_sides(table)
    is_drawn, table = drawn is not table, drawn
    columns = _columns_of(first, table, "the table", {} if first.named else {"worker": None})
    if first.named and columns.worker is None:
        raise missing_column("worker", None, table.columns, "the table")
    silent, alone = list(first.abstentions) or None, first.preferences
    fields = comparison_fields(table, columns, abstain=silent, preferences=alone, tell=False)
    return fields | (OF_DRAWN_SIDES if is_drawn else {})


def refuse_questions(first: Any, table: Any, known: Mapping[str, Any]) -> None:
    """Refuse a table with several questions, by the column of which these, that answer one, were made.

    Raises:
        AnnotationError: there are several.
    """
    name = known.get(QUESTION)
    if len(first.questions) or not isinstance(name, str):
        return
    values = take_column(as_frame(table), name, "question").dropna().unique().tolist()
    if len(values) > 1:
        raise AnnotationError(
            f"column {name!r} has several questions, {listing(values, 3)}, and these annotations answer one; give "
            f"the rows of one, such as table[table[{name!r}] == {values[0]!r}]"
        )


def _columns_of(first: Any, table: pd.DataFrame, what: str, also: Mapping[str, Any]) -> ComparisonColumns:
    """Return the columns of a table of comparisons that names tasks as these are named.

    Args:
        table: the table.
        what: it, for messages.
        also: columns that are known beside those of the table of which these were made, by role.

    Raises:
        AnnotationError: it is none, or lacks a column of what these tasks are named by.
    """
    has_questions = len(first.questions) > 0
    known = first.known_columns(table.columns)
    refuse_questions(first, table, known)
    sides = {known.pop(side, side): side for side in SIDES[:2]}
    given: dict[str, Any] = {role: name for role, name in known.items() if has_questions or role != QUESTION}
    given = ({"task": given.pop("prompt")} if "prompt" in given else {}) | given | dict(also)
    given |= {"question": QUESTION} if has_questions and QUESTION in table and "question" not in given else {}
    about: dict[str, Any] = {"given": given, "abstain": first.abstentions, "looks": has_questions}
    found = needed_comparison_columns(table.rename(columns=sides), what, **about)
    own = {side: name for name, side in sides.items() if getattr(found, side) == side}
    n_asked, asked = columns_of_tasks(first), found.task or found.prompt
    if n_asked != 0 and asked is None and not first.preferences:
        role = "prompts" if n_asked else "tasks"
        raise AnnotationError(
            f"{what} has no column of {role}, and these comparisons are by {role}: "
            f"{first.tasks[0]!r} is one; add it, or give cp.Annotations.from_comparisons(table)"
        )
    question = (found.question or QUESTION) if has_questions else None
    task, prompt = asked if n_asked is None else None, asked if n_asked else None
    return dataclasses.replace(found, **own, task=task, prompt=prompt, question=question)


def gold_by_task(first: Any, gold: Any) -> Any:
    """Return gold labels in a table with the items of comparisons by task; all others as they are."""
    table = None if first.sides is None or first.preferences else table_of_gold(gold, {})
    if table is None or two_sides([*map(str, table.columns), *first.known_columns(table.columns)]) is None:
        return gold
    has_tasks = TASK in table or TASK in first.known_columns(table.columns)
    if (columns_of_tasks(first) is not None) == has_tasks:  # names tell all that the items do, or are lacking
        return gold
    label = next(iter(named_for("gold", table.columns)), None)
    also = {"worker": None, "label": label} if label is not None else {"worker": None}
    columns = _columns_of(first, table, "gold", also)
    known = {columns.left: first.items, columns.right: first.items}
    if columns.prompt is not None:
        known[columns.prompt] = Ids(dict.fromkeys(prompts_of(first)), what="prompts")
    if isinstance(columns.question, str):
        known[columns.question] = first.questions
    found = table_of_gold(gold, known)
    return gold if found is None else gold_of_pairs(found, columns, None)
