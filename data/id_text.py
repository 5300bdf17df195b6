"""Identifiers as people read them: in tables, plots and messages, and lists of which some are left out."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any


def name_text(name: object) -> str:
    """Return an identifier as text: of a tuple, such as a task and its question, its parts with a dot between.

    >>> name_text(("t1", "fluency"))
    't1 · fluency'
    """
    return " · ".join(map(name_text, name)) if isinstance(name, tuple) else str(name)


def places_of(names: Iterable[object], others: Iterable[object]) -> list[int]:
    """Return where each name stands among others that are written alike, such as names that were saved as text."""
    places = {name_text(other): place for place, other in enumerate(others)}
    return [places[name_text(name)] for name in names]


def as_sentence(text: str, *, named: bool = False, first: bool = False) -> str:
    """Return a text as a sentence, with a capital letter and a full stop.

    >>> as_sentence("dawid_skene: 3 workers give one class ('Art. 5'). Leave them out", named=True, first=True)
    "dawid_skene: 3 workers give one class ('Art. 5')."

    Args:
        text: what is said.
        named: whether it begins with a name, which stays as it is.
        first: whether its first sentence is enough.
    """
    if first:
        text = re.split(r"\. (?=[A-Z])", text, maxsplit=1)[0]
    return (text if named else f"{text[:1].upper()}{text[1:]}") + ("" if text.endswith(".") else ".")


def name_quoted(name: object) -> str:
    """Return an identifier as messages have it: as Python writes it, and of a tuple its text in quotation marks."""
    return repr(name_text(name)) if isinstance(name, tuple) else repr(name)


def n_shown(n: int, most: int) -> int:
    """Return how many of a list of n are shown: all of them where one alone would be left out, else `most`."""
    return n if n < most + 2 else most


def listing(
    names: Sequence[Any],
    most: int,
    text: Callable[[Any], str] = repr,
    *,
    of: str = "",
    between: str = ", ",
    last: str | None = None,
) -> str:
    """Return the first names of a list in words, and how many more there are (:func:`n_shown`).

    >>> listing("abc", 2), listing("abcd", 2, str, of="classes"), listing("abc", 3, last=" and ")
    ("'a', 'b', 'c'", 'a, b and 2 more classes', "'a', 'b' and 'c'")

    Args:
        names: all of them.
        most: how many are named where more than one are left out.
        text: what is said of each.
        of: what the others are, in the plural; empty where the sentence says it.
        between: what stands between two names.
        last: what stands before the last one where all are named; None for what stands between the others.
    """
    shown = [text(name) for name in names[: n_shown(len(names), most)]]
    if left := len(names) - len(shown):
        return f"{between.join(shown)} and {left:,} more{of and ' '}{of}"
    return (between if last is None else last).join(filter(None, [between.join(shown[:-1]), *shown[-1:]]))
