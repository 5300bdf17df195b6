"""Which classes there are, and in what order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .columns import Column
from .errors import AnnotationError
from .ids import Ids

MOST_CLASSES = 1000
"""More distinct labels than this are taken for identifiers, unless `classes=` lists them."""


def resolve_classes(label: Column, classes: Iterable[Any] | None, suggest: Callable[[], str] = lambda: "") -> Column:
    """Return the label column with codes into the classes, which are its `ids`.

    The classes are those given, in that order; else those that the column's type lists (a pandas Categorical, a
    polars Enum), in its order; else the distinct labels, sorted (labels of several types by their text). Types are
    kept: a column of 1.0 and 2.0 has floats for classes.

    Args:
        label: the labels.
        classes: all classes in the wanted order, or None.
        suggest: says which other column may hold the labels, for the message where this one seems not to.

    Raises:
        AnnotationError: a label is none of the given classes; there is only one class; or the column looks
            like an identifier, with more than 1000 distinct values, or distinct values in more than half of
            50 rows or more.
    """
    if classes is not None:
        given = Ids(classes, what="classes")
        if len(given) < 2:
            raise AnnotationError(f"classes={list(given)!r} must list at least two classes")
        return label.aligned(given, "classes")
    _refuse_identifiers(label, suggest)
    if label.categories is not None and len(label.categories) > 1:
        return label.aligned(label.categories, "classes")
    if len(label.ids) == 1:
        raise AnnotationError(
            f"{label.title} holds a single class, {label.ids[0]!r}, in all {len(label.codes)} rows, so that "
            "there is nothing to infer; if there are classes that nobody used, list all in classes=[...]"
        )
    return label.aligned(Ids(_sorted(label.ids)), "classes")


def _sorted(ids: Ids) -> list[Any]:
    values: list[Any] = list(ids)
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=str)


def _refuse_identifiers(label: Column, suggest: Callable[[], str]) -> None:
    distinct, rows = len(label.ids), len(np.asarray(label.codes))
    if distinct > MOST_CLASSES or (rows >= 50 and distinct > rows / 2):
        raise AnnotationError(
            f"{label.title} has {distinct} distinct values in {rows} rows, such as {label.ids[0]!r} and "
            f"{label.ids[1]!r}: it looks like an identifier, not like labels.{suggest()} "
            "If these are the classes, list them in classes=[...]"
        )
