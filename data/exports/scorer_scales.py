"""Scales of scorers' values in logs of evaluations: which share one, what questions they make, and classes' order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ..arrays import groups_sharing
from ..errors import AnnotationError
from ..id_text import listing
from ..text import all_whole_numbers
from .verdicts import Verdict

UNREADABLE = "unreadable"
"""The abstention of a scorer that came to no verdict, or of a model without an answer."""

LETTERS = {"I": 0.0, "P": 0.5, "C": 1.0}  # inspect_ai's verdicts, and the numbers that it takes them for
NO_ANSWER = "N"


@dataclass(frozen=True)
class Scale:
    """The kind of a scorer's values.

    Args:
        name: verdict, score, fraction or text.
        keeps: whether letters stand for verdicts that are numbers, too.
        own: what the question is called where scorers of this kind share no labels with others; None for the kind.
    """

    name: str
    keeps: bool = False
    own: str | None = None

    def label(self, value: Any, *, no_answer: bool) -> Any:
        """Return the label of a value; ``N`` is one where `no_answer`, else ``I``."""
        if value is None:
            return UNREADABLE
        if self.name == "verdict":
            if value == NO_ANSWER:
                return NO_ANSWER if no_answer else "I"
            if self.keeps and not isinstance(value, str):
                return next(letter for letter, number in LETTERS.items() if number == value)
            return value if isinstance(value, str) else int(value)
        return int(value) if self.name == "score" and float(value).is_integer() else value


def scales_of(verdicts: Sequence[Verdict]) -> dict[tuple[str, str | None], Scale]:
    """Return the scale of each scorer's values, and of each of its keys."""
    given: dict[tuple[str, str | None], list[Any]] = {}
    texts = {(verdict.scorer, verdict.key) for verdict in verdicts if verdict.is_text}
    for verdict in verdicts:
        of_scorer = given.setdefault((verdict.scorer, verdict.key), [])
        if verdict.value is not None:
            of_scorer.append(verdict.value)
    values = {of: [] if of in texts else column for of, column in given.items()}
    has_letters = any(
        value in (*LETTERS, NO_ANSWER) for column in values.values() for value in column if type(value) is str
    )
    names = {of: _scale_name(column, has_letters=has_letters) for of, column in values.items()}
    names |= {of: "score" if all_whole_numbers(map(str, given[of])) else "text" for of in texts}
    if not has_letters:  # scores of which 0 and 1 alone are used
        scores = [value for of, name in names.items() if name == "score" and of[1] is None for value in values[of]]
        few = [of for of, name in names.items() if name == "verdict" and of[1] is None]
        names |= dict.fromkeys((of for of in few if _are_among(values[of], scores)), "score")
    own = _apart([of for of, name in names.items() if name == "text" and of[1] is None], verdicts)
    return {of: Scale(name, keeps=has_letters, own=own.get(of)) for of, name in names.items()}


def _are_among(given: Sequence[Any], scores: Sequence[Any]) -> bool:
    """Return whether numbers, none of them true or false, are in the range of scores."""
    if not scores or any(isinstance(value, bool) for value in given):
        return False
    return all(min(scores) <= value <= max(scores) for value in given)


def _apart(scorers: Sequence[tuple[str, str | None]], verdicts: Sequence[Verdict]) -> dict[Any, str]:
    """The names of questions of scorers whose texts are of several scales, which share none: those who answer each."""
    texts: dict[Any, set[str]] = {of: set() for of in scorers}
    for verdict in verdicts:
        if (verdict.scorer, verdict.key) in texts and verdict.value is not None:
            texts[verdict.scorer, verdict.key].add(str(verdict.value).strip().casefold())
    given = [of for of in scorers if texts[of]]
    groups = groups_sharing([texts[of] for of in given])
    if len(groups) < 2:
        return {}
    return {given[at]: ", ".join(given[each][0] for each in group) for group in groups for at in group}


def _scale_name(values: Sequence[Any], *, has_letters: bool) -> str:
    text = [value for value in values if isinstance(value, str)]
    numbers = [value for value in values if not isinstance(value, str)]
    halves = tuple(LETTERS.values()) if has_letters else (0, 1)
    if all(value in (*LETTERS, NO_ANSWER) for value in text) and all(value in halves for value in numbers):
        return "verdict"
    if text:
        return "text"
    steps = 2 if max(numbers, default=0) > 1 else 1  # halves, such as 7.5 of 10, are scores, and 0.5 of 1 is a fraction
    return "score" if all(float(steps * value).is_integer() for value in numbers) else "fraction"


def question_of(verdict: Verdict, scales: Mapping[tuple[str, str | None], Scale]) -> str:
    """Return the question that a verdict answers: its key, or the kind of its scorer's values."""
    if verdict.key is not None:
        return verdict.key
    scale = scales[verdict.scorer, None]
    return scale.own or scale.name


def chosen_questions(
    given: Any, verdicts: Sequence[Verdict], scales: Mapping[tuple[str, str | None], Scale], what: str
) -> tuple[str, ...]:
    """Return the questions to read: the only one, or those asked for.

    Raises:
        AnnotationError: there are several and none is named, or none of that name.
    """
    by_question: dict[str, dict[str, None]] = {}
    for verdict in verdicts:
        by_question.setdefault(question_of(verdict, scales), {})[verdict.scorer] = None
    known = list(by_question)
    names = ", ".join(map(repr, known))
    asked = tuple(given) if isinstance(given, list | tuple) else () if given is None else (given,)
    if unknown := [name for name in asked if name not in known]:
        raise AnnotationError(f"{what}: there is no question {unknown[0]!r}; there are {names}")
    if not asked and len(known) > 1:
        of_scale = {scale.name for (_, key), scale in scales.items() if key is None and not scale.own}
        by = "; ".join(f"{name} by {listing(list(by_question[name]), 3)}" for name in known if name in of_scale)
        classes = [name for name in known if name != "fraction"] or known  # fractions are no classes
        several = f", or read several by question={classes!r}, each with classes of its own" * (len(classes) > 1)
        raise AnnotationError(
            f"{what}: the scorers' values are of several questions or scales: {names}"
            f"{f' ({by})' if by else ''}; say which by question={classes[0]!r}{several}"
        )
    return asked or tuple(known)


def in_order_by_question(frame: pd.DataFrame) -> dict[Any, list[Any]]:
    """Return the classes of each question that has an order, where all of them together have none."""
    labels = {question: set(rows["label"]) - {UNREADABLE} for question, rows in frame.groupby("question", sort=False)}
    found = {question: in_order(used) for question, used in labels.items()}
    return {question: classes for question, classes in found.items() if classes is not None}


def beside_yes_or_no(verdicts: Sequence[Verdict], scales: Mapping[tuple[str, str | None], Scale]) -> list[str]:
    """Return the questions beside those whose values are all true or false; none where there are no such."""
    values: dict[str, list[Any]] = {}
    for verdict in verdicts:
        of_question = values.setdefault(question_of(verdict, scales), [])
        of_question += [] if verdict.value is None else [verdict.value]
    others = [name for name, given in values.items() if not all(isinstance(value, bool) for value in given)]
    return others if len(others) < len(values) else []


def in_order(labels: set[Any]) -> list[Any] | None:
    """Return the classes from the least to the greatest where they have an order: I, P, C, or three scores or more."""
    if "P" in labels and labels <= LETTERS.keys():
        return [letter for letter in LETTERS if letter in labels or letter != "P"]
    if len(labels) > 2 and all(type(label) in (int, float) and float(2 * label).is_integer() for label in labels):
        return sorted(labels)
    return None
