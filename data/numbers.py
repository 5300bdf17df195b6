"""Checks of arguments that are numbers or flags: messages name the argument, its value and what is accepted."""

import math
from typing import Any

import numpy as np


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
