"""Labels within what language models answer: ``Rating: [[8]]``, ``I'd say 4/5``, ``{"score": 4, "why": "…"}``."""

import json
import re
from collections.abc import Mapping
from typing import Any

from .column_names import is_name_of

NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
SCALE = re.compile(rf"({NUMBER.pattern}) ?(?:/|out of|of) ?(\d+(?:\.\d+)?)")
"""A number with the largest that it might be: 4/5, 4 out of 5."""

_WORDS = r"(?:score|rating|grade|label|class|category|answer|verdict|judge?ment|rank)"
BEFORE = re.compile(
    rf"(?:(?:the|my|final|overall|total) ){{0,2}}{_WORDS}\s*(?:[:=]|is )\s*(?=\S)|"
    r"I(?:'d|\u2019d| would)? (?:say|(?:give|rate|score) (?:it|this|that)(?: as)?(?: an?)?) (?=\d)",
    re.IGNORECASE,
)
"""Words that language models write before a label: "Score: ", "Final answer: ", "I'd say "."""

FINAL = re.compile(r"(?:(?:the|my) )?(?:final|overall|total) [^:=]*[:=]?", re.IGNORECASE)
LONGEST = 40  # characters of a label
WORD = re.compile(
    r"(yes|no|true|false|pass|fail|correct|incorrect)(?=\s*$|\s*[.;:!\u2013\u2014]| - |,? (?:because|as|since) )",
    re.IGNORECASE,
)
REFUSED = re.compile(r"(i['\u2019]?m|i am|we are)? ?(sorry|unable)|i (can['\u2019]?t|cannot|can not) |as an ai", re.I)
THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL)
MARKED = (
    re.compile(r"\[\[\s*([^\[\]]{1,40}?)\s*\]\]"),
    re.compile(r"\\boxed\{\s*([^{}]{1,40}?)\s*\}"),
    re.compile(rf"<{_WORDS}>\s*([^<>]{{1,40}}?)\s*</", re.I),
)
"""Signs around a label that leave no doubt."""


def fields_in(answer: str) -> dict[str, str]:
    """Return what may be labels in an answer that is a dictionary in JSON, or has one, by key; none of another.

    They are those under a label's name, or where none has such a name all numbers and truth values.
    """
    start, end = answer.find("{"), answer.rfind("}")
    try:
        found = json.loads(answer[start : end + 1]) if -1 < start < end else None
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, Mapping):
        return {}
    single = {str(key): _text(value) for key, value in found.items() if isinstance(value, str | int | float)}
    single = {key: value for key, value in single.items() if 0 < len(value) <= LONGEST}
    named = {key: value for key, value in single.items() if is_name_of(key, "label")}
    return named or {key: value for key, value in single.items() if not isinstance(found[key], str)}


def label_in(answer: str) -> str | None:
    """Return the label that an answer says beside other words; None where it says none, or some that differ.

    It is looked for in a dictionary in JSON, then within signs that mark it (``[[8]]``, ``\\boxed{8}``,
    ``<score>8</score>``), after words such as "Score:", of which a final or overall one goes before others, as "4/5",
    and in a first word, or a first or last line, that is yes, no or the like.
    """
    answer = THOUGHT.sub("", answer).strip()
    if fields := fields_in(answer):
        return next(iter(fields.values())) if len(fields) == 1 else None
    for marked in MARKED:
        if found := set(marked.findall(answer)):
            return found.pop() if len(found) == 1 else None
    lines = [" ".join(line.split()).lstrip("#>*_ ") for line in answer.replace("**", "").splitlines() if line.strip()]
    by_rank: list[list[str]] = [[], [], []]  # after "Final score:", "Score:" and "the score is"
    for line in lines:
        for place in BEFORE.finditer(line):
            begins = place.start() == 0 or line[place.start() - 1] in " (\"'"
            rank = 0 if FINAL.match(place[0]) else 1 if place[0].rstrip()[-1] in ":=" else 2
            if begins and (label := _first(line[place.end() :], short=rank == 2)) is not None:
                by_rank[rank].append(label)
    said = next(filter(None, by_rank), [])
    said = said or [one[0] for line in lines for one in SCALE.finditer(line) if _is_scale(one)]
    said = said or [word[1] for line in lines[:1] + lines[-1:] if (word := WORD.match(line))]
    said = said or [line.rstrip(".") for line in lines[:1] + lines[-1:] if NUMBER.fullmatch(line.rstrip("."))]
    return said[0] if len({label.casefold() for label in said}) == 1 else None


def verdict_in(answer: str) -> str | None:
    """Return the label that an answer says or is, where it is short; None of a refusal, and where there is none."""
    if (label := label_in(answer)) is not None:
        return label
    if fields_in(answer) or any(marked.search(answer) for marked in MARKED):
        return None  # it says several
    whole = answer.strip().strip("\"'`*.").strip()
    return whole if 0 < len(whole) <= LONGEST and "\n" not in whole and not REFUSED.match(whole) else None


def _first(rest: str, *, short: bool) -> str | None:
    """The label at the start of the rest of a line: a number, a word such as yes, or all of it, if `short` one word."""
    rest = rest.strip("\"'`*_ ").removesuffix(".").strip("\"'`*_ ")
    if scale := SCALE.match(rest):
        return scale[0]
    if (number := NUMBER.match(rest)) and rest[number.end() : number.end() + 1] in ("", " ", "/", ",", ".", ";", "("):
        return number[0]
    if word := WORD.match(rest):
        return word[1]
    return rest if 0 < len(rest) <= LONGEST and not (short and " " in rest) else None


def _is_scale(found: re.Match[str]) -> bool:
    """Return whether "4/5" is a score, and no date, fraction or "24/7"."""
    around = found.string[max(found.start() - 1, 0) : found.start()] + found.string[found.end() : found.end() + 1]
    return 3 <= float(found[2]) <= 100 and float(found[1]) <= float(found[2]) and not re.search(r"[/\d$]", around)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value).strip()
