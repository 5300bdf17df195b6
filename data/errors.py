"""What goes wrong with input, said so that the reader can mend it."""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterable

_LISTED = 30  # options at the most


class AnnotationError(ValueError):
    """Annotations, gold labels or features that cannot be used; the message names column, row and value."""


class UnknownNameError(ValueError):
    """A name (of a story, an engine, a dataset, ...) that does not exist; see `unknown_name`."""


def nearest(name: object, options: Iterable[object]) -> str | None:
    """Return the option whose text is most like that of `name`, or None where none is near."""
    by_text = {str(option).casefold(): str(option) for option in options}
    found = difflib.get_close_matches(str(name).casefold(), list(by_text), n=1, cutoff=0.6)
    return by_text[found[0]] if found else None


def unknown_name(kind: str, name: object, options: Iterable[object]) -> UnknownNameError:
    """Make the error for a `name` of some `kind` that is none of `options`.

    The text suggests the nearest option and lists them, many of them in part. The caller raises it:

    >>> str(unknown_name("engine", "nutz", ["em", "svi", "nuts"]))
    "unknown engine 'nutz'; did you mean 'nuts'? There are: em, svi, nuts"
    """
    names = [str(option) for option in options]
    near = nearest(name, names)
    suggestion = f"; did you mean {near!r}?" if near else "."
    shown = ", ".join(names[:_LISTED]) + (f", … {len(names):,} in all" if len(names) > _LISTED else "")
    listing = f"There are: {shown}" if names else "There are none."
    return UnknownNameError(f"unknown {kind} {name!r}{suggestion} {listing}")


def warn(message: str) -> None:
    """Warn the caller outside this package, however deep inside it we are."""
    package = __name__.rsplit(".", 2)[0]
    level = 1
    while sys._getframe(level).f_globals.get("__name__", "").startswith(f"{package}."):
        level += 1
    warnings.warn(message, UserWarning, stacklevel=level + 1)
