"""Features of tasks or of workers, in the order of the identifiers."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from .arrays import read_only
from .column_names import missing_column
from .columns import type_hint
from .errors import AnnotationError
from .frames import as_frame, is_frame
from .ids import Ids

NO_NAMES = Ids()
FEATURES_OF = {
    "features": ("task", "tasks"),
    "worker_features": ("worker", "workers"),
    "item_features": ("item", "items"),
}
"""Fields of annotations that have features: of which noun, and the field that has its identifiers."""


def resolve_features(
    features: Any,
    ids: Ids,
    *,
    noun: str,
    column: str,
    ordered: bool,
    option: str = "features",
    flat: bool = False,
    known: Ids = NO_NAMES,
) -> np.ndarray:
    """Return features in the order of `ids`, shape (len(ids), ...) float32.

    Args:
        features: a mapping id -> array, all of one shape; a table with the column `column` of identifiers
            (or, in pandas, an index of them) and numbers in all other columns; or an array of shape
            (len(ids), ...).
        ids: the tasks or workers.
        noun: "task" or "worker".
        column: the table's column of identifiers.
        ordered: whether the caller gave the order of `ids`. Where not, an array's rows cannot be told apart.
        option: the argument's name, for messages.
        flat: whether each row must be a vector.
        known: the names and the order of a table's features; without any, its own.

    Raises:
        AnnotationError: an id is missing or unknown, the shape is wrong, a table's features are not those that are
            known, or a number is not finite.
    """
    names: list[Any] | None = None
    if isinstance(features, Mapping):
        keys, rows = list(features), [np.asarray(row) for row in features.values()]
        _check_shapes(keys, rows, noun, option)
        array = np.stack(rows) if rows else np.empty((0, 0))
        array = array[_order(keys, ids, noun, option)]
    elif is_frame(features):
        frame = columns_by_name(_indexed(features, column, option), known, option)
        names = list(frame.columns)
        array = table_values(frame, option).to_numpy()[_order(frame.index, ids, noun, option)]
    else:
        if not ordered:
            raise AnnotationError(
                f"{option}: an array's rows can only be matched to {noun}s whose order is given: pass "
                f"{noun}s=[...] in the order of the rows, or {option} as a dictionary {noun} -> vector or a "
                f"table indexed by {noun}"
            )
        array = np.asarray(features)
    return _checked(array, ids, names, noun, option, flat)


def resolve_worker_features(features: Any, workers: Ids, *, known: Ids = NO_NAMES) -> np.ndarray:
    """Return features of workers as :func:`resolve_features` does, a vector each: ``(J, D)``."""
    about: dict[str, Any] = {"option": "worker_features", "flat": True, "known": known}
    return resolve_features(features, workers, noun="worker", column="worker", ordered=True, **about)


def features_fields(
    name: str, features: Any, ids: Ids, noun: str, *, column: str | None = None, ordered: bool = True
) -> dict[str, Any]:
    """Return the field of features in the order of `ids`, and where a table gives names the field of these.

    Args:
        name: a field of :data:`FEATURES_OF`.
        features: as for :func:`resolve_features`.
        ids: the tasks, workers or items.
        noun: what they are.
        column: a table's column of identifiers; None for the noun.
        ordered: whether the caller gave the order of `ids`, in which the rows of an array are.

    Raises:
        AnnotationError: as :func:`resolve_features`.
    """
    about: dict[str, Any] = {"noun": noun, "column": column or noun, "ordered": ordered, "flat": name != "features"}
    names = {f"{name[:-1]}_names": feature_names(features, column or noun)} if is_frame(features) else {}
    return {name: read_only(resolve_features(features, ids, option=name, **about)), **names}


def feature_names(features: Any, column: str) -> Ids:
    """Return the names of a table's features, which are its columns but for the one of identifiers; else none."""
    return Ids(_indexed(features, column, "features").columns, what="features") if is_frame(features) else NO_NAMES


def ids_of_features(features: Any, column: str, what: str) -> Ids:
    """Return whose features these are: the keys of a mapping, a table's identifiers; of an array's rows numbers."""
    if isinstance(features, Mapping):
        return Ids(list(features), what=what)
    return Ids(_indexed(features, column, what).index, what=what) if is_frame(features) else Ids.range(len(features))


def columns_by_name(frame: pd.DataFrame, known: Ids, option: str) -> pd.DataFrame:
    """Return a table's columns in the order of those that are known; unchanged where none are.

    Raises:
        AnnotationError: a column is missing, or is none of them.
    """
    if not len(known):
        return frame
    there = Ids(frame.columns, what=f"{option}, columns")
    missing, extra = [name for name in known if name not in there], [name for name in there if name not in known]
    if missing or extra:
        wrong = [f"lacks the columns {missing}"] * bool(missing) + [f"has the columns {extra} more"] * bool(extra)
        raise AnnotationError(f"{option}: the table {' and '.join(wrong)}; those of the fit are {list(known)}")
    return frame.iloc[:, there.index_of(known)]


def _check_shapes(keys: list[Any], rows: list[np.ndarray], noun: str, option: str) -> None:
    for key, row in zip(keys, rows, strict=True):
        if row.shape != rows[0].shape:
            raise AnnotationError(
                f"{option}: {noun} {key!r} has shape {row.shape}, but {noun} {keys[0]!r} has "
                f"{rows[0].shape}; all must have one shape"
            )


def _indexed(table: Any, column: str, option: str) -> pd.DataFrame:
    if isinstance(table, pd.DataFrame):
        return table.set_index(column) if column in table.columns else table
    frame = as_frame(table, option)
    if column not in frame.columns:
        raise missing_column(column, None, frame.columns, option)
    return frame.to_pandas().set_index(column)


def table_values(frame: pd.DataFrame, option: str) -> pd.DataFrame:
    """Return a table's numbers as floats.

    Raises:
        AnnotationError: a column has no numbers.
    """
    for name, dtype in frame.dtypes.items():
        if not pd.api.types.is_numeric_dtype(dtype):
            no_numbers = frame[name][pd.to_numeric(frame[name], errors="coerce").isna()]
            such_as = (no_numbers if len(no_numbers) else frame[name]).iloc[:1].to_list()
            raise AnnotationError(
                f"{option}, column {name!r}: expected numbers, got values of type {dtype} such as "
                f"{such_as[0]!r}; leave the column out or encode it as numbers"
                if len(frame)
                else f"{option}: the table has no rows"
            )
    return frame.astype(np.float64)


def _order(keys: Any, ids: Ids, noun: str, option: str) -> np.ndarray:
    """Return the row of each of `ids`, shape (len(ids),)."""
    given = Ids(keys, what=f"{option}, {noun}s")
    if (extra := np.flatnonzero(ids.index_of(given) < 0)).size:
        value = given[int(extra[0])]
        raise AnnotationError(
            f"{option}: {noun} {value!r} is not among the annotated {noun}s{type_hint(value, ids)}; "
            + (
                f"to keep {noun}s without annotations, list all in {noun}s=[...]"
                if noun != "prompt"
                else "leave it out"
            )
        )
    rows = given.index_of(ids)
    if (without := np.flatnonzero(rows < 0)).size:
        raise AnnotationError(
            f"{option}: {noun} {ids[int(without[0])]!r} has no features ({without.size} of {len(ids)} {noun}s); "
            f"give every {noun} its row"
        )
    return rows


def _checked(array: np.ndarray, ids: Ids, names: list[Any] | None, noun: str, option: str, flat: bool) -> np.ndarray:
    wanted = f"({len(ids)}, D)" if flat else f"({len(ids)}, ...) with at least one feature"
    if array.ndim < 2 or (flat and array.ndim != 2) or len(array) != len(ids) or array.size == 0 < len(ids):
        raise AnnotationError(
            f"{option}: expected shape {wanted}, one row a {noun}, got {array.shape}"
            + (f"; pass {option}[:, None] for a single feature" if array.ndim == 1 else "")
        )
    try:
        with np.errstate(over="ignore"):
            values = np.array(array, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise AnnotationError(f"{option}: expected numbers, got {array.dtype}: {error}") from None
    if not np.isfinite(values).all():
        cell = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
        place = repr(names[cell[1]]) if names else ", ".join(map(str, cell[1:]))
        raise AnnotationError(
            f"{option}, {noun} {ids[cell[0]]!r}, column {place}: {float(array[cell])!r} is not a finite "
            f"number in single precision ({int((~np.isfinite(values)).sum())} such); fill it in or scale it "
            "first"
        )
    return values


def checked_features(x: Any, shape: tuple[int, ...], names: Ids) -> np.ndarray:
    """The features, of the shape that they had in the training, and finite; a table's in the order of these names."""
    if is_frame(x):
        frame = as_frame(x, "x").to_pandas().drop(columns="task", errors="ignore")
        x = table_values(columns_by_name(frame, names, "x"), "x")
    needed = f"(n, {', '.join(map(str, shape))}) is needed, as in the training"
    try:
        x = np.asarray(x, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise ValueError(f"x is a {type(x).__name__} that is no array of numbers; {needed}") from error
    if x.shape[1:] != shape or x.ndim != len(shape) + 1:
        raise ValueError(f"x has shape {x.shape}; {needed}")
    if not np.isfinite(x).all():
        row, *place = (int(each[0]) for each in np.nonzero(~np.isfinite(x)))
        more = int((~np.isfinite(x)).sum())
        where = f"column {place[0]}" if len(place) == 1 else f"place {tuple(place)}"
        raise ValueError(f"x, row {row}, {where}: {x[row][*place]} is not finite ({more} such); fill it in")
    return x
