"""Which classes there are, and in what order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd

from .columns import Column, Where, encode, row_number
from .errors import AnnotationError
from .ids import Ids
from .text import are_digits

MOST_CLASSES = 1000
"""More distinct labels than this are taken for identifiers, unless `classes=` lists them."""


LARGEST_WHOLE = 2.0**53
"""Below it, double precision has each whole number."""


def encode_labels(
    values: pd.Series, title: str, where: Where = row_number, classes: Iterable[Any] | None = None
) -> Column:
    """Turn a column of labels into codes; whole floats are the integers that they are.

    Args:
        values: the labels, shape (A,).
        title: the column's name for messages.
        where: says where a row is, for messages.
        classes: those that were given; floats among them leave all labels of the type that they have.

    Raises:
        AnnotationError: as `encode`.
    """
    has_floats = classes is not None and any(isinstance(value, float) for value in classes)
    return encode(values if has_floats else whole_as_integers(values), title, where)


def whole_as_integers(values: pd.Series) -> pd.Series:
    """Return a column with its floats as integers where all of them are whole; else unchanged.

    Tables make floats of whole numbers beside an empty cell. Missing values stay.
    """
    if isinstance(values.dtype, pd.CategoricalDtype):
        return values.cat.rename_categories(whole_as_integers(values.cat.categories.to_series()).to_list())
    if values.dtype != object and values.dtype.kind != "f":
        return values
    known = values.notna().to_numpy(dtype=bool)
    if values.dtype == object:
        known = known & values.map(lambda value: isinstance(value, float | np.floating)).to_numpy(dtype=bool)
    floats = values[known].to_numpy(dtype=np.float64)
    if not floats.size or not (np.abs(floats) < LARGEST_WHOLE).all() or (floats != np.floor(floats)).any():
        return values
    whole = values.astype(object)
    whole[known] = floats.astype(np.int64).tolist()
    return whole.astype(np.int64) if known.all() else whole


def resolve_classes(label: Column, classes: Iterable[Any] | None, suggest: Callable[[], str] = lambda: "") -> Column:
    """Return the label column with codes into the classes, which are its `ids`.

    The classes are those given, in that order; else those that the column's type lists (a pandas Categorical, a
    polars Enum), in its order; else the distinct labels, sorted: text that is whole numbers by number, labels of
    several types by their text.

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
    return label.aligned(Ids(sorted_labels(label.ids)), "classes")


def sorted_labels(labels: Iterable[Any]) -> list[Any]:
    """Return labels sorted: text that is whole numbers by number, and labels of several types by their text."""
    values = list(labels)
    if all(isinstance(value, str) for value in values) and are_digits(values):
        return sorted(values, key=lambda text: (int(text), text))
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
