"""What looks like a slip in annotations that can be used: said once, with the option that mends it."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from .columns import Column
from .errors import AnnotationError, warn
from .ids import Ids
from .text import are_digits

MISSING = frozenset({
    "n/a", "na", "nan", "null", "?", "missing", "refused", "refusal", "abstain", "abstained", "abstention", "skip",
    "skipped", "can't tell", "cannot tell", "don't know", "invalid", "error",
})  # fmt: skip
"""What labels are called that may stand for none, in small letters."""


def tell_classes(classes: Ids) -> None:
    """Warn of classes that differ by what tidy=True overlooks, and of those that stand for a missing value."""
    _tell_alike(classes)
    _tell_missing(classes)


def tell_repeated_table(task: np.ndarray, worker: np.ndarray, label: np.ndarray) -> None:
    """Warn where each row, ``(A,)`` of the three, is there twice or more often."""
    if _all_twice(task, worker, label):
        warn(
            f"each of the {len(task):,} annotations is there twice or more often, as where a table was appended to "
            "itself; repeats='first' keeps one of each"
        )


def tidied(label: Column, wanted: Iterable[Any] = ()) -> Column:
    """Return labels whose spellings that differ by slips alone (`_plain`) are one: a wanted one, or the most frequent.

    Raises:
        AnnotationError: two of those wanted differ by slips alone.
    """
    spelt: dict[str, str] = {}
    for name in wanted:
        if isinstance(name, str) and spelt.setdefault(_plain(name), name) != name:
            raise AnnotationError(
                f"{spelt[_plain(name)]!r} and {name!r} are one label under tidy=True, as they differ by case, blanks "
                "or a full stop alone; list one of them, or leave tidy=True out"
            )
    uses = np.bincount(label.codes, minlength=len(label.ids))
    spellings: dict[Hashable, list[int]] = {}
    for code, name in enumerate(label.ids):
        spellings.setdefault(_plain(name) if isinstance(name, str) else name, []).append(code)
    groups = [max(codes, key=lambda code: uses[code]) for codes in spellings.values()]
    place = np.empty(len(label.ids), np.int32)
    for number, codes in enumerate(spellings.values()):
        place[codes] = number
    names = [label.ids[code] for code in groups]
    tidy = [spelt.get(_plain(name), _tidy(name)) if isinstance(name, str) else name for name in names]
    return replace(label, codes=place[label.codes], ids=Ids(tidy, what=label.title), categories=None)


def spellings(given: Iterable[Hashable], classes: Iterable[Hashable]) -> dict[Hashable, Hashable]:
    """For each label that is no class the one class from which it differs by slips alone, if there is one."""
    known = set(classes)
    by_text: dict[str, list[Hashable]] = {}
    for name in known:
        if isinstance(name, str):
            by_text.setdefault(_plain(name), []).append(name)
    others = [name for name in given if isinstance(name, str) and name not in known]
    alike = {name: by_text.get(_plain(name), []) for name in others}
    return {name: found[0] for name, found in alike.items() if len(found) == 1}


def _tidy(name: str) -> str:
    tidy = " ".join(name.split())
    return tidy.removesuffix(".0") if re.fullmatch(r"-?\d+\.0", tidy) else tidy


def _plain(name: str) -> str:
    """A name without what may be a slip: case, blanks, ".0" after a whole number, and a full stop or quotation marks.

    Language models answer "yes", "Yes." and "**Yes**".
    """
    inner = re.sub(r"^([\"'`*]+)(.+)\1$", r"\2", _tidy(name).removesuffix("."))
    return _tidy(inner.removesuffix(".")).casefold() or name


def _tell_alike(classes: Iterable[Hashable]) -> None:
    by_text: dict[str, list[Hashable]] = {}
    for name in classes:
        if isinstance(name, str):
            by_text.setdefault(_plain(name), []).append(name)
    alike = [names for names in by_text.values() if len(names) > 1]
    if alike:
        groups = "; ".join(" and ".join(map(repr, names)) for names in alike[:3])
        more = f" and {len(alike) - 3} more" if len(alike) > 3 else ""
        warn(
            "classes differ by case, blanks, '.0', a full stop or quotation marks alone and count as different "
            f"classes: {groups}{more}; tidy=True makes one of them"
        )


def _tell_missing(classes: Ids) -> None:
    """Warn of names that stand for no label, and of the few words beside the numbers of a scale."""
    words = [name for name in classes if isinstance(name, str) and not are_digits([name])]
    n_numbers = len(classes) - len(words)
    found = [name for name in words if name == "None" or name.strip().casefold() in MISSING]
    found = words if words and n_numbers >= 3 * len(words) else found
    if found:
        listing = ", ".join(map(repr, found))
        warn(f"{listing} counts as a class; where it means that there is no label, give abstain=[{listing}]")


def _all_twice(task: np.ndarray, worker: np.ndarray, label: np.ndarray) -> bool:
    if len(task) < 4:
        return False
    rows = np.stack([task, worker, label], axis=1)
    _, counts = np.unique(rows, axis=0, return_counts=True)
    return bool((counts > 1).all())
