"""Terms between a story and the engines: its error, names of plates, what is set while it runs, and promises.

A story of a user's own is looked at before or after it is fitted. A promise says that

- it gives on padded data what it gives on the data themselves, and on tasks that stand for several alike what it gives
  on all of these (``inference/densities/portable.py``), which the tests find out of every registered story by the same
  comparisons;
- the rows of its emission are probabilities (``inference/densities/sites.py``);
- its density has a maximum, whatever scales it learns (``inference/findings/of_scales.py``).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

PROMISED = "_promised"
"""The attribute, which has the thing itself: what copies attributes, such as ``functools.wraps``, copies no promise."""

Story = Callable[..., None]
"""A function of annotations, and of its hyperparameters."""

T = TypeVar("T")


def dim_of_plate(name: str) -> str:
    """The dimension that a plate runs over: its name, up to a full stop.

    NumPyro takes all plates of one name for one, with one place among the dimensions. A part of a story that does not
    know where the story has its plate ``worker`` therefore calls its own ``worker.abstention``.

    >>> dim_of_plate("worker"), dim_of_plate("worker.abstention")
    ('worker', 'worker')
    """
    return name.partition(".")[0]


@contextmanager
def set_to(variable: ContextVar[Any], value: T) -> Iterator[T]:
    """Set a variable of this thread within the block, which is given the value."""
    token = variable.set(value)
    try:
        yield value
    finally:
        variable.reset(token)


def promised(thing: T) -> T:
    """Declare these promises of a story, or of a class of truth priors."""
    setattr(thing, PROMISED, thing)
    return thing


def is_promised(thing: Any) -> bool:
    """Return whether it was declared of this very thing; a subclass or a wrapper of it promises nothing."""
    return getattr(thing, PROMISED, None) is thing


class StoryError(ValueError):
    """A story does not fit these annotations or hyperparameters; the message says what would be accepted."""
