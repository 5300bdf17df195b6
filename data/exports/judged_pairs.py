"""Judgments of pairs of answers as comparisons: of FastChat's llm_judge, AlpacaEval and Arena-Hard."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..columns import Where
from ..comparisons import Words
from ..description import count_text
from ..errors import AnnotationError
from ..kinds import SIDES as CLASSES
from .llm_judge import TOOL, is_judge, turn_name

FASTCHAT = ("question_id", "model_1", "model_2", "judge", "g1_winner", "g2_winner")
SCORES_OF_PAIR = ("m1_score", "m2_score")  # of pairs whose winner has the higher score of two single judgments
ARENA = ("model", "judge", "games")
ALPACA = ("instruction", "output_1", "output_2", "generator_1", "generator_2", "annotator", "preference")

ERROR = "error"
"""The winner of a pair where llm_judge found none in the judgment."""

UNREADABLE = "unreadable"
"""The abstention of a judge of whom no preference could be read."""

SIDES = {"model_1": "left", "model_2": "right", "tie": "tie", ERROR: ERROR}
EXCHANGED = {"left": "right", "right": "left"}

FIRST, SECOND, TIES = 1, 2, (1.5, 0)  # preferences of AlpacaEval, whose older versions write a tie as 0
ALONE = "comparison of an item with itself"
SURE = 0.05  # how far a preference may be from 1 or 2 without doubt


VERDICTS = Words(("a", "b"))  # A>>B, A>B, A=B and the like
BASELINE = "baseline"


@dataclass(frozen=True)
class JudgedPairs:
    """Judgments of pairs as a table of comparisons.

    Args:
        frame: a row for each comparison, with its sides as they were shown; winner has left, right, tie or `abstain`.
        said: what was taken for what, beyond the columns.
        abstain: the winner where none could be read.
        drawn: whether nobody knows what was shown on the left, and sides were drawn.
    """

    frame: pd.DataFrame
    said: str
    abstain: str
    drawn: bool = False


def are_judged_pairs(names: Iterable[Any]) -> bool:
    """Return whether a table or records with these columns have judgments of pairs by a tool that is known."""
    given = set(names)
    return any(given.issuperset(columns) for columns, _ in READERS)


def pairs_judged(table: pd.DataFrame, what: str, where: Where) -> JudgedPairs | None:
    """Return the comparisons in a table of a known tool; None of any other.

    Raises:
        AnnotationError: the tool is known, and a winner is none of its own; the message has the row and the value.
    """
    readers = (reader for columns, reader in READERS if set(columns) <= set(table.columns))
    return next((pairs for reader in readers if (pairs := reader(table, what, where)) is not None), None)


def _fastchat(table: pd.DataFrame, what: str, where: Where) -> JudgedPairs:
    """A row for each order in which a pair was judged; one of pairs that have the winner of two scores."""
    rows = []
    of_scores = set(SCORES_OF_PAIR) <= set(table.columns)
    for place, record in enumerate(table.to_dict("records")):
        prompt = turn_name(record["question_id"], record.get("turn"))
        judge = str(record["judge"][0] if is_judge(record["judge"]) else record["judge"])
        one, two = str(record["model_1"]), str(record["model_2"])
        said = []
        for name in ("g1_winner", "g2_winner"):
            if record[name] not in SIDES:
                raise AnnotationError(
                    f"{what}, {where(place)}: {name} is {record[name]!r}; expected {', '.join(map(repr, SIDES))}"
                )
            said.append(SIDES[record[name]])
        rows.append((prompt, one, two, judge, said[0]))
        if not (of_scores and all(record[name] == record[name] for name in SCORES_OF_PAIR)):
            rows.append((prompt, two, one, judge, EXCHANGED.get(said[1], said[1])))
    frame = pd.DataFrame(rows, columns=["question_id", "model_1", "model_2", "judge", "winner"])
    errors = int((frame["winner"] == ERROR).sum())
    said_of_all = (
        f"judgments of {TOOL}, in both orders (g2 with the sides exchanged), a prompt for each turn of a question"
    )
    return JudgedPairs(frame, said_of_all + (f"; {errors:,} × {ERROR!r} an abstention" if errors else ""), ERROR)


def _alpaca(table: pd.DataFrame, what: str, where: Where) -> JudgedPairs | None:
    """The nearer of two answers to each preference from 1 to 2; None where preferences are no numbers.

    A preference is one more than the probability that the second answer is better. AlpacaEval shows both in an order
    that it draws and does not write down, and the first is always the reference's.
    """
    numbers = pd.to_numeric(table["preference"], errors="coerce")
    if table["preference"].notna().any() and numbers.isna().all():
        return None
    is_known = numbers.between(FIRST, SECOND) | numbers.isin(TIES) | table["preference"].isna()
    if (wrong := np.flatnonzero(~is_known)).size:
        row = int(wrong[0])
        raise AnnotationError(
            f"{what}, column 'preference', {where(row)}: the value is {table['preference'].tolist()[row]!r}; expected "
            f"{FIRST} for output_1, {SECOND} for output_2, a fraction between them, {TIES[0]} or {TIES[1]} for a tie, "
            "or nothing where the judge failed"
        )
    is_tie, failed = numbers.isin(TIES), numbers.isna()
    first_is_left = np.random.default_rng(0).random(len(table)) < 0.5
    prefers_left = (numbers < sum((FIRST, SECOND)) / 2) == first_is_left
    winner = np.select([failed, is_tie, prefers_left], [UNREADABLE, "tie", "left"], "right")
    one, two = table["generator_1"], table["generator_2"]
    frame = table.assign(
        generator_1=one.where(first_is_left, two), generator_2=two.where(first_is_left, one), winner=winner
    )[["instruction", "generator_1", "generator_2", "annotator", "winner"]]
    apart = one != two
    fractions = apart & ~is_tie & ~failed & (numbers % 1 != 0)
    unsure = int((fractions & numbers.between(FIRST + SURE, SECOND - SURE)).sum())
    said = "annotations of AlpacaEval, whose files do not say which output was shown first: sides are drawn at random "
    said += "with a fixed seed, and no position bias can be told"
    if n := int(fractions.sum()):
        said += f"; of {count_text(n, 'fraction')} the nearer side is taken"
        said += f" ({unsure:,} from {FIRST + SURE} to {SECOND - SURE}, where the judge was not sure)"
    if n := int((apart & is_tie).sum()):
        said += f"; {n:,} × {TIES[0]} or {TIES[1]} a tie"
    if n := int((apart & failed).sum()):
        said += f"; no preference {n:,} ×, an abstention called {UNREADABLE!r}"
    if n := int((~apart).sum()):
        said += f"; {count_text(n, ALONE)} left out"
    return JudgedPairs(frame[apart], said, UNREADABLE, drawn=True)


def _arena(table: pd.DataFrame, what: str, where: Where) -> JudgedPairs | None:
    """A row for each game of a model with the baseline; None of other games.

    The baseline's answer is A in the first game and B in the second. A game that failed is an abstention.
    """
    key = next((name for name in ("uid", "question_id") if name in table), None)
    if key is None or not all(isinstance(games, list) for games in table["games"]):
        return None
    several = "category" in table and table["category"].nunique() > 1  # each may have a baseline of its own
    rows, left_out, strong, unnamed = [], Counter[str](), 0, dict[str, None]()
    for place, record in enumerate(table.to_dict("records")):
        model, baseline = str(record["model"]), record.get("baseline")
        if not isinstance(baseline, str):
            baseline = f"{BASELINE} of {record['category']}" if several else BASELINE
            unnamed[baseline] = None
        if model == baseline or not record["games"]:
            left_out[ALONE if model == baseline else "judgment without games"] += 1
            continue
        for number, game in enumerate(record["games"]):
            score = game.get("score") if isinstance(game, Mapping) else None
            side = VERDICTS.side(score) if isinstance(score, str) else None
            if score is not None and side is None:
                raise AnnotationError(
                    f"{what}, {where(place)}: the score of games[{number}] is {score!r}; expected A>>B, A>B, A=B, B>A "
                    "or B>>A, or null where the judge came to no verdict"
                )
            strong += score is not None and (">>" in score or "<<" in score)
            sides = (baseline, model) if number % 2 == 0 else (model, baseline)
            rows.append((record[key], *sides, str(record["judge"]), UNREADABLE if side is None else CLASSES[side]))
    if not rows:
        raise AnnotationError(f"{what}: there is no game of two models; each judgment needs games with their scores")
    frame = pd.DataFrame(rows, columns=["prompt_id", "model_a", "model_b", "judge", "winner"])
    said = "judgments of Arena-Hard, in both orders (the baseline is A in the first game and B in the second)"
    if unnamed:
        said += f"; the files do not name the baseline, here {' and '.join(map(repr, unnamed))}"
    if strong:
        said += f"; {strong:,} × A>>B or B>>A of {len(rows):,} is A>B or B>A, as comparisons have no strength"
    if n := int((frame["winner"] == UNREADABLE).sum()):
        said += f"; no verdict {n:,} ×, an abstention called {UNREADABLE!r}"
    said += "".join(f"; {count_text(n, kind)} left out" for kind, n in left_out.items())
    return JudgedPairs(frame, said, UNREADABLE)


READERS: tuple[tuple[tuple[str, ...], Callable[[pd.DataFrame, str, Where], JudgedPairs | None]], ...] = (
    (FASTCHAT, _fastchat),
    (ALPACA, _alpaca),
    (ARENA, _arena),
)
"""By columns that a tool's judgments of pairs have, what reads them."""
