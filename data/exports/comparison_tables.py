"""Tables of comparisons in files: two columns of items, and one of which of both is better."""

from typing import Any

import numpy as np
import pandas as pd

from ..abstentions import abstentions_of
from ..annotations import Annotations
from ..comparison_columns import ComparisonColumns, find_comparison_columns, needed_comparison_columns, two_sides
from ..description import count_text
from ..errors import AnnotationError
from ..text import convert_text
from .asked import INFER, Asked
from .known_columns import left_out
from .llm_judge import turn_name

ROLES = ("task", "worker", "label", "question")
TURN = "turn"  # of a conversation, as in the human judgments of MT-bench
OTHERS = ("columns", "outer")
"""Options that say that a table is something else."""


def comparison_roles(table: pd.DataFrame, what: str, asked: Asked) -> ComparisonColumns | None:
    """Return the columns of a table of comparisons; None where it is none, or was said to be something else.

    Raises:
        AnnotationError: it was said to be one, and is none.
    """
    roles = asked.roles | {"question": INFER if asked.question is None else asked.question}
    named = {role: name for role, name in roles.items() if role in ROLES and name != INFER}
    if named.get("question", INFER) not in (INFER, *table.columns):
        return None
    about: dict[str, Any] = {"given": named, "abstain": abstentions_of(asked.options.get("abstain"))}
    about["looks"] = asked.looks
    about["meaning"] = asked.meaning
    if asked.comparisons or asked.meaning or asked.preferences:
        return needed_comparison_columns(table, what, **about)
    if any(getattr(asked, name) is not None for name in OTHERS) or asked.options.get("ordered") is not None:
        return None
    return find_comparison_columns(table, **about)


def compared_annotations(
    table: pd.DataFrame, found: ComparisonColumns, what: str, asked: Asked
) -> tuple[Annotations, str]:
    """Return the annotations of a table of comparisons, and what was taken for what.

    Raises:
        AnnotationError: as :meth:`.Annotations.from_comparisons`, with the table.
    """
    names = [found.left, found.right, found.label, found.worker, found.task, found.prompt, found.question]
    columns = {name: table[name] for name in names if name is not None}
    turns = _turns(table, found, what) if "task" not in asked.named else None
    if turns is not None and found.prompt is not None:
        columns[found.prompt] = turns
    others = (asked.count, asked.seconds, asked.options.get("when"))
    columns |= {name: table[name] for name in others if name is not None and name in table}
    of_numbers: list[list[str | None]] = [[found.left, found.right], [found.worker], [found.task], [found.prompt]]
    of_numbers.append([found.question])
    for same in of_numbers:
        texts = [columns[name] for name in same if name is not None]
        if texts and all(isinstance(value, str) for column in texts for value in column.dropna()):
            columns |= dict(zip([name for name in same if name is not None], convert_text(*texts), strict=True))
    items = {str(item): item for side in (found.left, found.right) for item in columns[side].dropna().unique()}
    columns[found.label] = columns[found.label].map(lambda value: items.get(value, value), na_action="ignore")
    try:
        annotations = Annotations.from_comparisons(
            pd.DataFrame(columns),
            left=found.left,
            right=found.right,
            worker=found.worker,
            label=found.label,
            task=found.task,
            prompt=found.prompt,
            count=asked.count,
            seconds=None if asked.seconds == INFER else asked.seconds,
            meaning=asked.meaning,
            preferences=asked.preferences,
            question=found.question,
            item_features=asked.item_features,
            gold=asked.truth,
            **asked.options,
        )
    except AnnotationError as error:
        other = "" if asked.comparisons else f"; where {found.label!r} has classes like any other: comparisons=False"
        raise AnnotationError(f"{what}: {error}{other}") from None
    pairs = np.unique(np.sort(np.asarray(annotations.sides), axis=1), axis=0)
    sizes = f"{count_text(annotations.n_annotations, 'comparison')} of {count_text(len(annotations.items), 'item')}, "
    sizes += f"{count_text(len(pairs), 'pair')}, "
    sizes += count_text(annotations.n_workers, "worker") if annotations.named else "workers not named"
    sizes += f", {count_text(len(annotations.questions), 'question')}" if len(annotations.questions) else ""
    of_turns = "" if turns is None else f", each {TURN!r} of which is a prompt of its own"
    rest = left_out(table.columns, [*columns, *([] if turns is None else [TURN])], takes_gold=False)
    return annotations, f"{what}: comparisons ({found.said()}{of_turns}): {sizes}{rest}"


def _turns(table: pd.DataFrame, found: ComparisonColumns, what: str) -> pd.Series | None:
    """The prompts with their turns, where a prompt has several; None where turns are no part of the prompts.

    Raises:
        AnnotationError: a row is without its turn.
    """
    if found.prompt is None or TURN not in table or table.groupby(found.prompt)[TURN].nunique().max() < 2:
        return None
    if (empty := np.flatnonzero(table[TURN].isna())).size:
        raise AnnotationError(
            f"{what}: column {TURN!r}, row {empty[0]}: there is no turn, and prompts have several; add it, or take all "
            f"turns for one prompt by task={found.prompt!r}"
        )
    return pd.Series(list(map(turn_name, table[found.prompt], table[TURN])), table.index, dtype=object)


def not_compared(table: pd.DataFrame, asked: Asked) -> str:
    """Return that two columns named like items are not compared, and what says that they are; nothing without such."""
    sides = two_sides([str(name) for name in table.columns]) if asked.comparisons is None else None
    return f"; {sides[0]!r} and {sides[1]!r} are not compared (comparisons=True says that they are)" if sides else ""
