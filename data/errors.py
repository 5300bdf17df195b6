"""The errors and warnings of input, names that are looked up, and checks of arguments that are numbers or flags.

A message names the argument or the place, its value, and what would be accepted. NumPy is imported where a number is
checked, since the command line starts without it.
"""

import difflib
import math
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

_LISTED = 30  # options at the most

Value = TypeVar("Value")


class AnnotationError(ValueError):
    """Annotations, gold labels or features that cannot be used; the message names column, row and value."""


class UnknownNameError(ValueError):
    """A name (of a story, an engine, a dataset, ...) that does not exist; see `look_up`."""


class StorageError(ValueError):
    """A file or folder that cannot be written or read; the message names it and says why."""


class AnnotationWarning(UserWarning):
    """Annotations can be used, but not all of them or not as given; the message says how."""


def look_up(kind: str, name: object, known: Mapping[str, Value]) -> Value:
    """Return what a name stands for.

    >>> look_up("engine", "em", {"em": 1, "nuts": 2})
    1

    Args:
        kind: what the names are of, for the message: "engine", "value of repeats".
        name: the name that was given, of any type.
        known: what each name stands for.

    Raises:
        UnknownNameError: there is no such name; the message suggests the nearest one and lists those there are.
    """
    return known[check_name(kind, name, known)]


def check_name(kind: str, name: object, known: Iterable[str]) -> str:
    """Return a name that is one of those known.

    Args:
        kind: what the names are of, for the message.
        name: the name that was given, of any type.
        known: the names there are.

    Raises:
        UnknownNameError: there is no such name; the message suggests the nearest one and lists those there are.
    """
    names = list(known)
    if isinstance(name, str) and name in names:
        return name
    raise unknown_name(kind, name, names)


def given_path(path: str | os.PathLike[str], error: type[ValueError] = AnnotationError) -> Path:
    """Return a path that is not empty: an empty one would be the current folder.

    Raises:
        AnnotationError: (or `error`) it is empty.
    """
    if not os.fspath(path):
        raise error("the path is empty; name a file or a folder, '.' for the current one")
    return Path(path)


def nearest(name: object, options: Iterable[object]) -> str | None:
    """Return the option whose text is most like that of `name`, or None where none is near."""
    by_text = {str(option).casefold(): str(option) for option in options}
    found = difflib.get_close_matches(str(name).casefold(), list(by_text), n=1, cutoff=0.6)
    return by_text[found[0]] if found else None


def unknown_name(
    kind: str, name: object, options: Iterable[object], *, others: Iterable[str] = (), meant: str | None = None
) -> UnknownNameError:
    """Return the error for a `name` of some `kind` that is none of `options`, for the caller to raise.

    The message suggests the nearest option and lists the first thirty. `look_up` and `check_name` raise it:

    >>> str(unknown_name("engine", "nutz", ["em", "svi", "nuts"]))
    "unknown engine 'nutz'; did you mean 'nuts'? There are: em, svi, nuts"

    Args:
        kind: what the names are of.
        name: the name that was given, of any type.
        options: the names there are.
        others: further names, which are suggested where they are near, but not listed.
        meant: the option that the name stands for elsewhere, which is suggested whatever is near.
    """
    names = [str(option) for option in options]
    near = meant or nearest(name, [*names, *others])
    suggestion = f"; did you mean {near!r}?" if near else "."
    shown = ", ".join(names[:_LISTED]) + (f", … {len(names):,} in all" if len(names) > _LISTED else "")
    listing = f"There are: {shown}" if names else "There are none."
    return UnknownNameError(f"unknown {kind} {name!r}{suggestion} {listing}")


def warn(message: str, category: type[Warning] = AnnotationWarning) -> None:
    """Issue a warning that points at the caller outside this package."""
    package = __name__.rsplit(".", 2)[0]
    level = 1
    while sys._getframe(level).f_globals.get("__name__", "").startswith(f"{package}."):
        level += 1
    warnings.warn(message, category, stacklevel=level + 1)


@contextmanager
def each_once() -> Iterator[None]:
    """Issue each warning of a block once, when it ends, however often it was given there."""
    given: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as given:
            yield
    finally:
        for one in {(one.category, str(one.message)): one for one in reversed(given)}.values():
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def truth_value(name: str, value: Any, *, maybe: bool = False, error: type[ValueError] = ValueError) -> Any:
    """Return True or False, or None where that is one of the values.

    Text is none of them: "no" counts as true in Python.

    >>> truth_value("resume", False)
    False

    Args:
        name: the argument, for the message.
        value: what was given; Python's and NumPy's truth values are accepted.
        maybe: whether None is accepted.
        error: the type of the error.

    Raises:
        ValueError: (or `error`) the value is something else.
    """
    if maybe and value is None:
        return None
    import numpy as np

    if not isinstance(value, bool | np.bool_):
        raise error(f"{name}={value!r}: {'True, False or None' if maybe else 'True or False'} is needed")
    return bool(value)


def whole_number(
    name: str, value: Any, least: int = 0, most: int | None = None, *, error: type[ValueError] = ValueError
) -> int:
    """Return a whole number as a Python int.

    >>> whole_number("draws", 100, least=1)
    100

    Args:
        name: the argument, for the message.
        value: what was given; Python's and NumPy's integers are accepted, truth values and floats are not.
        least: the least number accepted.
        most: the largest number accepted; None for any.
        error: the type of the error.

    Raises:
        ValueError: (or `error`) the value is no whole number from `least` to `most`.
    """
    import numpy as np

    is_whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not (is_whole and value >= least and (most is None or value <= most)):
        bounds = f"from {least:,}" if most is None else f"from {least:,} to {most:,}"
        raise error(f"{name}={value!r}: a whole number {bounds} is needed")
    return int(value)


def real_number(
    name: str,
    value: Any,
    least: float | None = None,
    most: float | None = None,
    *,
    above: float | None = None,
    below: float | None = None,
    error: type[ValueError] = ValueError,
) -> float:
    """Return a finite number as a Python float.

    >>> real_number("interval", 0.9, above=0, below=1)
    0.9

    Args:
        name: the argument, for the message.
        value: what was given; Python's and NumPy's integers and floats are accepted, truth values are not.
        least: the least number accepted.
        most: the largest number accepted.
        above: a bound that the number must exceed.
        below: a bound that the number must stay under.
        error: the type of the error.

    Raises:
        ValueError: (or `error`) the value is no finite number within the bounds.
    """
    import numpy as np

    is_real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    inside = (
        is_real
        and math.isfinite(value)
        and all(
            (
                least is None or value >= least,
                most is None or value <= most,
                above is None or value > above,
                below is None or value < below,
            )
        )
    )
    if not inside:
        bounds = (("from", least), ("above", above), ("to", most), ("below", below))
        words = [f"{word} {bound:g}" for word, bound in bounds if bound is not None]
        if len(words) == 2 and words[1].startswith("below"):
            words.insert(1, "and")
        raise error(f"{name}={value!r}: {' '.join(['a finite number', *words])} is needed")
    return float(value)
