"""The places of classes in their order, also where questions have classes and orders of their own."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ...data import Annotations
from ...data.arrays import groups_sharing
from ...data.id_text import listing
from .contract import StoryError
from .of_levels import level_places
from .truth import ordered_classes


class OrderOfClasses(NamedTuple):
    """Where classes and the levels of annotations lie.

    Args:
        place: of the classes, ``(K,)``.
        level: of the levels, ``(L,)``.
        lines: the classes of each line from the least to the greatest, as class indices; classes of two lines have no
            order.
    """

    place: np.ndarray
    level: np.ndarray
    lines: tuple[np.ndarray, ...]

    @property
    def beside(self) -> np.ndarray | None:
        """Of which two classes the places can be compared, ``(K, K)`` of bool; None for all."""
        if len(self.lines) == 1:
            return None
        line = np.zeros(len(self.place), int)
        for number, classes in enumerate(self.lines):
            line[classes] = number
        return line[:, None] == line


def order_of_classes(annotations: Annotations) -> OrderOfClasses:
    """Return the places of the classes: 0 to K - 1 of ordered classes, and where questions have classes of their own.

    Questions that share classes are of one line, on which each class is one step beyond the last that some question
    has before it; so 1 to 5 lie one after the other whether or not another question has 1, 3 and 5 alone. Questions
    without a class in common have lines of their own. Two classes have one order either way.

    Raises:
        StoryError: more than two classes have no order, of the annotations or of a question, or two questions have
            theirs in two orders.
    """
    kind, n_classes = annotations.kind, annotations.n_classes
    if kind.own is None:
        place = np.arange(float(ordered_classes(annotations)))
        return OrderOfClasses(place, level_places(annotations), (np.arange(n_classes),))
    names = list(annotations.questions)
    own = [kind.classes_of(question, n_classes) for question in range(len(names))]
    for question, classes in enumerate(own):
        if len(classes) > 2 and not kind.of_question(question).in_order:
            listed = listing([annotations.classes[int(k)] for k in classes], 4)
            raise StoryError(
                f"this story uses the order of the classes, and {listed} of the question {names[question]!r} have "
                f"none; make the annotations with ordered={{{names[question]!r}: [...]}}, all classes from the least "
                "to the greatest, or fit dawid_skene, which needs no order"
            )
    place = np.zeros(n_classes)
    for _ in range(n_classes + 1):  # each pass moves classes beyond those before them; an order ends within K
        before = place.copy()
        for classes in own:
            for lower, upper in pairwise(classes):
                place[upper] = max(place[upper], place[lower] + 1)
        if (place == before).all():
            break
    else:
        raise StoryError(
            f"this story uses the order of the classes, and the questions {', '.join(map(repr, names))} have theirs in "
            "two orders: state one by ordered={question: [...]}, or fit each question alone, "
            "annotations.of_question(name)"
        )
    lines = []
    for group in groups_sharing([set(np.flatnonzero(row)) for row in kind.own]):
        classes = np.flatnonzero(np.logical_or.reduce(kind.own[group]))
        lines.append(classes[np.argsort(place[classes], kind="stable")])
    return OrderOfClasses(place, place, tuple(lines))
