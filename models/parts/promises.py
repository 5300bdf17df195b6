"""Promises of the package for its own stories and truth priors, so that no fit looks at it again.

A story of a user's own is looked at before or after it is fitted. A promise says that

- it gives on padded data what it gives on the data themselves (``inference/densities/portable.py``), which
  the tests find out of every registered story by the same comparison;
- the rows of its emission are probabilities (``inference/densities/emission_rows.py``);
- its density has a maximum, whatever scales it learns (``inference/findings/of_scales.py``).
"""

from typing import Any, TypeVar

PROMISED = "_promised"
"""The attribute, which has the thing itself: what copies attributes, such as ``functools.wraps``, copies no promise."""

T = TypeVar("T")


def promised(thing: T) -> T:
    """Declare all of this of a story, or a class of truth priors."""
    setattr(thing, PROMISED, thing)
    return thing


def is_promised(thing: Any) -> bool:
    """Return whether it was declared of this very thing; a subclass or a wrapper of it promises nothing."""
    return getattr(thing, PROMISED, None) is thing
