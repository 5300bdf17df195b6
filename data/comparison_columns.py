"""Tables of comparisons: which columns have the two items, what was said of them, by whom, and of which prompt."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from .column_names import CONTENT, HARDLY_REPEATED, is_name_of, named_for, plain, stem
from .comparisons import ASKED, COMPARED, ComparisonColumns, Words, label_text
from .errors import AnnotationError, warn
from .kinds import SIDES
from .questions import MOST_QUESTIONS, QUESTION, names_questions, question_column

ENDS = (("left", "right"), ("a", "b"), ("1", "2"), ("first", "second"))
"""Ends of the names of two items' columns, beside the word for what is compared."""

WINNER, LOSER = "winner", "loser"
ON_OR_OFF = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}

SAID = ("winner", "preference", "preferred", "better", "chosen", "choice", "label", "verdict", "result", "outcome")
"""Names of the column of what was said, beside those of labels."""

WINNERS = ("winner", "preference", "preferred", "better")
"""Of these the ones that a column beside two of items has only where it says which of both is better."""

TASKS = ("task", "pair", "comparison", "battle", "match", "trial")
"""Names, without "id" at the end, of a column that names each pair; of any other name for tasks it is the prompt."""


FEW_QUESTIONS = 5
"""Values of a column "question" up to which they may be what items are compared by; more are prompts."""

NAMED = 3  # of these values, that an error lists


def find_comparison_columns(
    table: pd.DataFrame,
    *,
    given: dict[str, Any] | None = None,
    abstain: Iterable[Any] = (),
    meaning: Mapping[Any, str] | None = None,
    sure: bool = False,
    looks: bool = True,
) -> ComparisonColumns | None:
    """Return the columns of a table of comparisons, or None where it is none.

    It is taken for one where two columns have the names of two sides (left and right, model_a and model_b, item1 and
    item2), and one of labels has nothing but words for the sides, or the names of the items. It is also one where a
    column is named for the better of both (winner), or has a word for a side or an item among other labels, or 0 and 1
    alone: what is wrong in it is then an error with its row, and no class.

    Args:
        table: the table.
        given: columns that were named, by role; None for a role that is not there.
        abstain: labels that are no class.
        meaning: by label the side that it stands for, beside the words that are known.
        sure: whether it is known to be one, so that a column is taken by its name, whatever is in it.
        looks: whether a column of questions that was not named is looked for: one that is called criterion, aspect or
            dimension and has several, or question and has several for a task.

    Raises:
        AnnotationError: a column "question" may have the prompts, or what the items are compared by.
    """
    given, names = given or {}, [str(name) for name in table.columns]
    sides = two_sides(names) or _sides_of_letters(table, names, sure=sure)
    if sides is None:
        return None
    free = [name for name in names if name not in sides]
    words, silent = Words(sides, meaning), {str(value) for value in abstain}
    question = given.get("question")
    answers = () if isinstance(question, str | None) else tuple(question)
    if answers and not sure and any(_label(table, [name], words, silent) is None for name in answers):
        return None
    named = list(answers[:1]) or ([given["label"]] if "label" in given else _named_labels(free))
    label = _label(table, named, words, silent) or (next(iter(named), None) if sure else None)
    if label not in free:
        if "label" not in given:
            _refuse_several(table, free, sides, words, silent, sure=sure)
        return None
    free = [name for name in free if name != label]
    worker = given["worker"] if "worker" in given else next((n for n in free if is_name_of(n, "worker")), None)
    free = [name for name in free if name != worker]
    free = [name for name in free if name != question and name not in answers]
    tasks = [name for name in free if _word(name) in TASKS] or named_for("task", free)
    tasks = sorted(tasks, key=names_questions)
    if len(tasks) == 1 and plain(tasks[0]) == "id" and table[tasks[0]].is_unique:  # the row's, beside what was asked
        tasks = [name for name in free if plain(name) in CONTENT and not table[name].is_unique] or tasks
    asked = given["task"] if "task" in given else next(iter(tasks), None)
    if looks and question is None:
        free = [name for name in free if name != asked]
        question = _question(table, free, asked, is_given="task" in given)
    names_pairs = asked is not None and _word(asked) in TASKS and not _has_several_pairs(table, asked, sides)
    task, prompt = (asked, None) if names_pairs else (None, asked)
    return ComparisonColumns(*sides, label, worker, task, prompt, answers or question)


def with_one_winner(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return a table in which a column "winner" has what a column for each outcome says, and these columns.

    They are called winner_model_a, winner_model_b and winner_tie, the last where there are ties, and each row has a 1
    in one of them. Any other table is returned as it is, and no columns.

    Args:
        table: of comparisons, or another.
    """
    names = [str(name) for name in table.columns]
    words = Words(two_sides(names) or ("", ""))
    found = {name: side for name in names if (side := words.side(plain(name).removeprefix(WINNER))) is not None}
    found = {name: side for name, side in found.items() if plain(name).startswith(WINNER)}
    if WINNER in names or sorted(found.values()) not in ([0, 1], [0, 1, 2]):
        return table, []
    given = table[list(found)].astype(str).apply(lambda column: column.str.casefold().map(ON_OR_OFF))
    if not (given.sum(axis=1, skipna=False) == 1).all():
        return table, []
    side = given.set_axis([SIDES[side] for side in found.values()], axis=1).idxmax(axis=1)
    return table.drop(columns=list(found)).assign(**{WINNER: side}), list(found)


def with_drawn_sides(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table of winners and losers with sides, which are drawn with a fixed seed; any other as it is.

    The sides of the columns left and right are random, since a winner that always stood left would make every worker
    one who always says so. The column of winners then has them.

    Args:
        table: of comparisons without sides, or another.
    """
    by_name = {plain(str(name)): name for name in table.columns}
    if not {WINNER, LOSER} <= by_name.keys() or two_sides([str(name) for name in table.columns]) is not None:
        return table
    winner, loser = by_name[WINNER], by_name[LOSER]
    warn(
        f"columns {winner!r} and {loser!r} do not say which item was shown left: sides are drawn at random with a "
        "fixed seed, so that no position bias can be told"
    )
    first = np.random.default_rng(0).random(len(table)) < 0.5
    sides = {"left": table[winner].where(first, table[loser]), "right": table[loser].where(first, table[winner])}
    return table.drop(columns=loser).assign(**sides, **{winner: np.where(first, *SIDES[:2])})


def _refuse_several(
    table: pd.DataFrame, free: Sequence[str], sides: tuple[str, str], words: Words, abstain: set[str], *, sure: bool
) -> None:
    """Refuse several columns that each say which of two items is better, such as winner_helpful and winner_safe.

    Of a table that is known to be one of comparisons they have any name, such as helpful and safe.

    Raises:
        AnnotationError: there are.
    """
    others = [name for name in free if not is_name_of(name, "worker") and not is_name_of(name, "task")]
    named = others if sure else [name for name in free if any(word in plain(name) for word in WINNERS)]
    found = [name for name in named if _label(table, [name], words, abstain) is not None]
    if len(found) > 1:
        raise AnnotationError(
            f"columns {' and '.join(map(repr, found))} each say which of {sides[0]!r} and {sides[1]!r} is better: say "
            f"label={found[0]!r} to read one, or question={found} to read all, each a question of its own"
        )


def _question(table: pd.DataFrame, free: Sequence[str], asked: str | None, *, is_given: bool) -> str | None:
    """The column of what items are compared by, where this is several questions.

    Raises:
        AnnotationError: the column of the prompts may have them.
    """
    if asked is not None and (found := question_column(table, asked)) is not None:
        return found
    named = [name for name in free if names_questions(name) and stem(name) != QUESTION]
    several = [name for name in named if 1 < table[name].nunique() <= MOST_QUESTIONS]
    if several:
        return several[0]
    if asked is not None and not is_given and plain(asked) == QUESTION and 1 < table[asked].nunique() <= FEW_QUESTIONS:
        values = ", ".join(map(repr, table[asked].dropna().unique()[:NAMED]))
        raise AnnotationError(
            f"column {asked!r} has {table[asked].nunique()} values, {values}: say question={asked!r} where they are "
            f"what the items are compared by, or task={asked!r} where they are prompts that the items answer"
        )
    return None


def column_of_criteria(table: pd.DataFrame, used: Iterable[str | None]) -> str | None:
    """Return the column, beside those that are used, of what rows compare the items by; None where there is none."""
    taken = set(used)
    return _question(table, [str(name) for name in table.columns if name not in taken], None, is_given=True)


def needed_comparison_columns(table: pd.DataFrame, what: str, **options: Any) -> ComparisonColumns:
    """Return the columns of a table that is one of comparisons.

    Raises:
        AnnotationError: it is none; the message says what would be one.
    """
    found = find_comparison_columns(table, **options, sure=True)
    if found is None:
        names = [str(name) for name in table.columns]
        sides = two_sides(names)
        lacks = "no two columns of items, such as left and right, or model_a and model_b"
        if sides is not None:
            lacks = (
                f"the items in {sides[0]!r} and {sides[1]!r}, and no column, such as label or winner, with sides "
                "(left, right, tie; a, b; 1, 2) or the items' names"
            )
        raise AnnotationError(
            f"{what} is no table of comparisons: of its columns {', '.join(map(repr, names))} there are {lacks}. "
            "cp.Annotations.from_comparisons(table, left=…, right=…, label=…) takes columns of any name"
        )
    return found


def two_sides(names: Sequence[str]) -> tuple[str, str] | None:
    """Return the columns of two items, None without any: of those with names of sides the ones whose word is first."""
    by_name = {plain(name): name for name in names}
    for word in COMPARED:
        for one, two in ENDS:
            forms = [(one, two)] if not word else [(word + one, word + two), (one + word, two + word)]
            for left, right in forms:
                if left in by_name and right in by_name and not (not word and len(one) == 1):
                    return by_name[left], by_name[right]
    return None


def _sides_of_letters(table: pd.DataFrame, names: Sequence[str], *, sure: bool) -> tuple[str, str] | None:
    """The columns A and B, or 1 and 2, which may be two workers: of items the better one is a side or one of both.

    Nearly each row has different items, and in a column such as winner a side or one of the two. A table that is known
    to be one of comparisons needs none.
    """
    by_name = {plain(name): name for name in names}
    for one, two in ENDS:
        if len(one) > 1 or not {one, two} <= by_name.keys():
            continue
        sides = by_name[one], by_name[two]
        left, right = (table[name].astype(str) for name in sides)
        words = Words(sides)
        for name in names:
            if plain(name) in WINNERS and name not in sides:
                said = table[name].astype(str)
                is_said = (said == left) | (said == right) | said.map(words.side).notna()
                if len(table) and (is_said & (left != right)).mean() >= HARDLY_REPEATED:
                    return sides
        if sure:
            return sides
    return None


def _named_labels(free: Sequence[str]) -> list[str]:
    """The columns that may have what was said, by their names; those named for the better of both come first."""
    named = [name for name in free if plain(name) in SAID or is_name_of(name, "label")]
    return sorted(named, key=lambda name: SAID.index(plain(name)) if plain(name) in SAID else len(SAID))


def _label(table: pd.DataFrame, named: Sequence[str], words: Words, abstain: set[str]) -> str | None:
    """The column of what was said: of those that may be it the first with nothing but sides or items, or with some."""
    items = {str(item) for side in words.columns for item in table[side].dropna().unique()}
    values = {
        name: {label_text(value) for value in table[name].dropna().unique()} - abstain
        for name in named
        if name in table
    }
    for name, said in values.items():
        sides = {value: words.side(value) for value in said}
        if said and (
            all(side is not None for side in sides.values()) or all(v in items or sides[v] == 2 for v in said)
        ):
            return name
    return next((name for name, said in values.items() if _means_sides(name, said, items, words)), None)


def _means_sides(name: str, said: set[str], items: set[str], words: Words) -> bool:
    """Return whether labels are meant to be sides or items, although some are not; numbers among others do not tell."""
    asked = {value for value in said if value.casefold() in (*ASKED, "1")}
    told = {value for value in said - asked if not value.isdigit() and (value in items or words.side(value) in (0, 1))}
    return bool(said) and (plain(name) in WINNERS or said == asked or bool(told))


def _has_several_pairs(table: pd.DataFrame, task: str, sides: tuple[str, str]) -> bool:
    pairs = table[list(sides)].astype(str).apply(lambda row: tuple(sorted(row)), axis=1)
    return bool(pairs.groupby(table[task]).nunique().max() > 1)


def _word(name: str) -> str:
    return re.sub(r"(?<=.)ids?$", "", plain(name))
