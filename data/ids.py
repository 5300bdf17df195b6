"""`Ids`: the original identifiers of tasks, workers and classes, in order."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, cast, overload

import numpy as np
import pandas as pd

from .errors import AnnotationError
from .id_json import decode_id, encode_id
from .id_text import name_text

# Values of one of these types are the same identifier where they are equal; a tuple's parts have own types.
_PLAIN = {str, int, float, bool}


class UnreadError(RuntimeError):
    """An identifier was read where only their number is known."""


class _Unread(Sequence[Hashable]):
    """The values of identifiers that cannot be read."""

    def __init__(self, n: int) -> None:
        self._n = n

    def __len__(self) -> int:
        return self._n

    def __hash__(self) -> int:
        return hash((_Unread, self._n))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Unread) and self._n == other._n

    def _read(self, *_: Any, **__: Any) -> Any:
        raise UnreadError("a story read the identifiers of annotations of which it is to know only how many there are")

    __getitem__ = __iter__ = __contains__ = __reversed__ = __array__ = index = count = _read


_Values = range | tuple[Hashable, ...] | _Unread


class Ids(Sequence[Hashable]):
    """Distinct identifiers in order: any hashable values, immutable, and hashable themselves.

    Two `Ids` are equal when they hold the same values *of the same types* in the same order, so that
    `Ids([1])` and `Ids([True])` are two things. Equality looks at identity, then at the cached hash, then at
    the contents, which makes them cheap as static metadata of compiled functions.

    Args:
        values: the identifiers; NumPy scalars become Python ones. 0, 1, ..., n − 1 is kept as a range.
        what: what they identify, for messages.

    Raises:
        AnnotationError: a value is unhashable, or there twice, or two values differ only in type (1 and "1").
    """

    __slots__ = ("_hash", "_kind", "_positions", "_values")

    _values: _Values
    _kind: type | None  # the type of all values where there is only one and it is plain
    _hash: int | None
    _positions: dict[Hashable, int] | None

    def __init__(self, values: Iterable[Any] = (), *, what: str = "ids") -> None:
        if isinstance(values, Ids):
            self._values, self._kind, self._hash = values._values, values._kind, values._hash
            self._positions = values._positions
            return
        listed = python_values(values, what)
        self._hash = self._positions = None
        self._kind = _single_kind(listed)
        check_distinct(listed, self._kind, what)
        # One form for 0, 1, ..., n − 1, whichever way it came: equal contents must have equal hashes.
        counts_up = self._kind is int and listed[-1] == len(listed) - 1 and listed == list(range(len(listed)))
        self._values = range(len(listed)) if counts_up else tuple(listed)

    @classmethod
    def range(cls, n: int) -> Ids:
        """Return the identifiers 0, 1, ..., n − 1, without listing them."""
        return cls._of(range(n), int) if n else NO_IDS

    @classmethod
    def unread(cls, n: int) -> Ids:
        """Return n identifiers that can be counted and compared as a whole; to read one raises `UnreadError`."""
        return cls._of(_Unread(n), int)

    @classmethod
    def _of(cls, values: _Values, kind: type) -> Ids:
        """Return identifiers that are known to be distinct."""
        ids = cls.__new__(cls)
        ids._values, ids._kind, ids._hash, ids._positions = values, kind, None, None
        return ids

    @property
    def kind(self) -> type | None:
        """The type of all identifiers where it is one of text, whole numbers, floats or truth values; else None."""
        return self._kind

    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, index: int) -> Hashable: ...
    @overload
    def __getitem__(self, index: slice) -> Ids: ...
    def __getitem__(self, index: int | slice) -> Hashable | Ids:
        return Ids(self._values[index]) if isinstance(index, slice) else self._values[index]

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._values)

    def __contains__(self, value: object) -> bool:
        return bool(self.index_of([value])[0] >= 0)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self._values)
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Ids):
            return NotImplemented
        if len(self) != len(other) or hash(self) != hash(other) or self._kind is not other._kind:
            return False
        if self._kind is not None:
            return self._values == other._values
        return all(typed(a) == typed(b) for a, b in zip(self, other, strict=True))

    def __repr__(self) -> str:
        shown = ", ".join(repr(value) for value in self._values[:5])
        return f"Ids([{shown}{f', ... {len(self)} in all' if len(self) > 5 else ''}])"

    def index_of(self, values: Iterable[Any]) -> np.ndarray:
        """Return where each of `values` stands here, shape (len(values),) int32; −1 where it does not.

        Types count: 1 is not found where True, 1.0 or "1" stands.

        Raises:
            AnnotationError: a value is unhashable.
        """
        if isinstance(values, Ids):
            if values == self:
                return np.arange(len(self), dtype=np.int32)
            listed, kind = list(values), values._kind
        else:
            listed = python_values(values, "ids")
            kind = _single_kind(listed)
        plain = self._kind is not None and kind is self._kind
        found: Iterable[int]
        if plain and isinstance(self._values, range):
            last = len(self) - 1
            found = (value if 0 <= value <= last else -1 for value in cast(list[int], listed))
        else:
            positions = self._lookup()
            found = (positions.get(value if plain else self._key(value), -1) for value in listed)
        try:
            return np.fromiter(found, np.int32, len(listed))
        except TypeError:
            raise unhashable(listed, "ids") from None

    def to_index(self, name: str | None = None) -> pd.Index:
        """Return a pandas index of the identifiers, which gives them back with their types."""
        if isinstance(self._values, range):
            return pd.RangeIndex(len(self), name=name)
        kinds = {type(value) for value in self._values}
        dtype = None if self._kind is not None or kinds == {pd.Timestamp} else object
        return pd.Index(list(self._values), dtype=dtype, name=name, tupleize_cols=False)

    def to_columns(self, name: str, at: np.ndarray) -> dict[str, pd.Series]:
        """Return the columns of a table whose rows are some of the identifiers: one, called `name`.

        Args:
            name: of the column.
            at: the positions of the rows' identifiers, shape (rows,).
        """
        return {name: self.to_index()[at].to_series(index=pd.RangeIndex(len(at)))}

    def coords(self) -> np.ndarray:
        """Return a coordinate for netCDF, shape (len(self),): int64 if all are ints, else their text."""
        if self._kind is int:
            numbers = np.asarray(self._values)
            if numbers.dtype == np.int64:
                return numbers
        return np.array([name_text(value) for value in self._values], dtype=str)

    def to_json(self) -> Any:
        """Return a JSON value from which `from_json` makes the same identifiers.

        Raises:
            AnnotationError: an identifier is of a type that JSON cannot bring back.
        """
        if isinstance(self._values, range):
            return {"range": len(self)}
        return [encode_id(value) for value in self._values]

    @classmethod
    def from_json(cls, data: Any) -> Ids:
        """Return the identifiers that `to_json` turned into `data`."""
        return cls.range(data["range"]) if isinstance(data, dict) else cls([decode_id(value) for value in data])

    def _lookup(self) -> dict[Hashable, int]:
        if self._positions is None:
            self._positions = {self._key(value): position for position, value in enumerate(self._values)}
        return self._positions

    def _key(self, value: Hashable) -> Hashable:
        """Return the key of a value: with its type, unless all identifiers are of this one plain type."""
        if self._kind is None:
            return typed(value)
        return value if type(value) is self._kind else (type(value), value)


def class_values(classes: pd.Index) -> np.ndarray:
    """Return the classes as values of a column: whole numbers and truth values as NumPy has them, else objects.

    >>> class_values(pd.Index([0, 1])).dtype, class_values(pd.Index(["no", "yes"])).dtype
    (dtype('int64'), dtype('O'))

    Args:
        classes: K of them.

    Returns:
        ``(K,)``, of dtype int64, bool or object.
    """
    values = classes.to_numpy()
    return values if values.dtype.kind in "ib" else classes.to_numpy(dtype=object)


def typed(value: Hashable) -> tuple[type, Hashable]:
    """Return a value together with its type, and a tuple's parts with theirs: 1 and True are told apart."""
    return type(value), tuple(typed(part) for part in value) if isinstance(value, tuple) else value


def one_or_several(given: Any, known: Ids) -> list[Any]:
    """The identifiers that were given, as a list: one alone, or several.

    >>> one_or_several("ann", Ids(["ann", "bob"])), one_or_several(["ann", "bob"], Ids(["ann", "bob"]))
    (['ann'], ['ann', 'bob'])

    Args:
        given: text, anything else that is no iterable, or a tuple that is known is one identifier.
        known: the identifiers there are.
    """
    is_one = isinstance(given, str | bytes) or not isinstance(given, Iterable)
    return [given] if is_one or (isinstance(given, tuple) and given in known) else python_values(given, "ids")


def python_values(values: Iterable[Any], what: str) -> list[Any]:
    """Return the values of any array, series, index or iterable as a list of Python objects."""
    if isinstance(values, str | bytes):
        raise AnnotationError(f"{what} must be a list of identifiers, not one text: got {values!r}")
    if isinstance(values, np.ndarray) and values.dtype.kind in "mM":
        values = pd.Index(values)  # NumPy's own conversion turns nanoseconds into bare ints
    for method in ("tolist", "to_pylist", "to_list"):
        if hasattr(values, method):
            listed = getattr(values, method)()
            break
    else:
        listed = list(values)
    if any(issubclass(kind, np.generic | tuple) for kind in set(map(type, listed))):
        return [_python_value(value) for value in listed]
    return listed


def _python_value(value: Any) -> Any:
    if isinstance(value, np.datetime64):
        return pd.Timestamp(value)
    if isinstance(value, np.timedelta64):
        return pd.Timedelta(value)
    if isinstance(value, np.generic):
        return value.item()
    return tuple(_python_value(part) for part in value) if type(value) is tuple else value


def _single_kind(values: list[Any]) -> type | None:
    kinds = set(map(type, values))
    return kinds.pop() if len(kinds) == 1 and kinds <= _PLAIN else None


def unhashable(
    values: Iterable[Any], what: str, where: Callable[[int], str] = lambda position: f"position {position}"
) -> AnnotationError:
    """Make the error for the first value that cannot be hashed; ``where`` says where a position is."""
    for position, value in enumerate(values):
        try:
            hash(value)
        except TypeError:
            return AnnotationError(
                f"{what}, {where(position)}: {value!r} is a {type(value).__name__}, which cannot be an id; "
                "an id must be hashable, such as text, a number or a tuple of these"
            )
    return AnnotationError(f"{what}: a value cannot be hashed")


def check_distinct(values: list[Any], kind: type | None, what: str) -> None:
    """Raise AnnotationError where a value stands twice, or where two differ only in type."""
    try:
        if kind is not None and len(set(values)) == len(values):
            return
        clash = type_clash(values)
    except TypeError:
        raise unhashable(values, what) from None
    if clash:
        raise AnnotationError(f"{what}: {clash_text(values, *clash)}")
    seen: dict[Hashable, int] = {}
    for position, value in enumerate(values):
        if (first := seen.setdefault(typed(value), position)) != position:
            raise AnnotationError(f"{what}: {value!r} stands at positions {first} and {position}; once is enough")


def type_clash(values: Iterable[Any]) -> tuple[int, int] | None:
    """Return the positions of the first two values that are equal or look equal but differ in type."""
    exact: dict[Hashable, int] = {}
    loose: dict[Hashable, int] = {}
    for position, value in enumerate(values):
        if typed(value) in exact:
            continue
        exact[typed(value)] = position
        for face in (("value", value), ("text", str(value))):
            first = loose.setdefault(face, position)
            if first != position:
                return first, position
    return None


def clash_text(values: Sequence[Any], first: int, second: int) -> str:
    """Say what is wrong with two values that differ only in type."""
    one, two = values[first], values[second]
    how = "are the same as text" if type(one) is type(two) and one != two else "differ only in type"
    return (
        f"{one!r} ({type(one).__name__}) and {two!r} ({type(two).__name__}) {how}, so that tables and files "
        "could not show them apart; convert them to one type"
    )


NO_IDS = Ids()
"""No identifiers."""
