"""Levels of annotations that are no classes of the truth, such as scores from 0 to 9 of a truth that is no or yes."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from .columns import Column
from .errors import AnnotationError
from .ids import Ids
from .kinds import Kind, Ordered


class Scored(NamedTuple):
    """A column of levels with the classes of the truth."""

    label: Column  # codes into the K classes, which no row has, and then the L levels
    classes: Ids
    kind: Kind  # of the classes


def scored(label: Column, truth_classes: Iterable[Any]) -> Scored:
    """Return a column of L ordered levels as one of annotations whose truth has other classes.

    Args:
        label: with codes into the levels, which are its `ids`, from the least to the greatest.
        truth_classes: the K classes of the truth in the order of the levels that speak for them.

    Raises:
        AnnotationError: there are fewer classes than two, or fewer levels than classes.
    """
    classes = Ids(truth_classes, what="truth_classes")
    if not 2 <= len(classes) <= len(label.ids):
        raise AnnotationError(
            f"truth_classes={list(classes)!r}: from 2 to {len(label.ids)} classes can be told by the "
            f"{len(label.ids)} levels of {label.title}"
        )
    column = Column(label.title, (label.codes + len(classes)).astype(np.int32), label.ids, label.where)
    return Scored(column, classes, Ordered())


def level_shares(n_levels: int, n_classes: int) -> np.ndarray:
    r"""Return how much of each level lies in each class where both cut the same line evenly, shape (L, K).

    Level l is the interval from l / L to (l + 1) / L, and class k that from k / K to (k + 1) / K: of two classes the
    upper half of the levels speaks for the second, and a level in the middle for both alike.
    """
    level, of_class = np.arange(n_levels + 1) / n_levels, np.arange(n_classes + 1) / n_classes
    low = np.maximum(level[:-1, None], of_class[:-1])
    high = np.minimum(level[1:, None], of_class[1:])
    return n_levels * np.maximum(high - low, 0.0)


def verdicts(n_levels: int, n_classes: int) -> np.ndarray:
    """Return the class that most of each level lies in, shape (L,) int32; −1 where two have as much of it."""
    shares = np.round(level_shares(n_levels, n_classes), 9)
    most = shares == shares.max(-1, keepdims=True)
    return np.where(most.sum(-1) == 1, shares.argmax(-1), -1).astype(np.int32)
