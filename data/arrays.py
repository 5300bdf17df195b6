"""Arrays made longer and shorter along an axis, tables of counts, and connected parts of a graph or of sets."""

import math
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, overload

import numpy as np
from scipy import sparse

Array = Any  # NumPy where people hold it, JAX inside compiled functions

BY_ROW = ("worker", "label", "count", "seconds", "when", "mirrored")
BY_TASK = ("gold", "features", "evidence", "prior", "model_scores", "sides", "question")
"""Fields of annotations with a value for each row, beside its task, and for each task, beside its name."""


def rows_of(annotations: Any) -> dict[str, Array | None]:
    """Return the fields of annotations with a value for each row, with their tasks."""
    return {name: getattr(annotations, name) for name in ("task", *BY_ROW)}


def lengthened(values: Array, axis: int, size: int) -> np.ndarray:
    """Values with copies of the last entry along an axis, as far as ``size``."""
    widths = [(0, 0)] * np.ndim(values)
    widths[axis] = (0, size - np.shape(values)[axis])
    return np.pad(np.asarray(values), widths, mode="edge")


def shortened(values: Array, axes: Sequence[tuple[int, int]]) -> Array:
    """The first entries of values along some axes.

    Args:
        values: an array.
        axes: each axis with how many of its entries to keep.
    """
    index = [slice(None)] * np.ndim(values)
    for axis, size in axes:
        index[axis] = slice(size)
    return values[tuple(index)]


@overload
def longer(values: None, size: int, filling: float) -> None: ...


@overload
def longer(values: Array, size: int, filling: float) -> np.ndarray: ...


def longer(values: Array | None, size: int, filling: float) -> np.ndarray | None:
    """Values with a filling along the first axis, as far as ``size``."""
    if values is None:
        return None
    values = np.asarray(values)
    found = np.full((size, *values.shape[1:]), filling, values.dtype)
    found[: len(values)] = values
    return found


def counts(annotations: Any) -> np.ndarray:
    """Return the number of annotations that each row stands for, ``(A,)``."""
    if annotations.count is None:
        return np.ones(annotations.n_rows, np.float32)
    return np.asarray(annotations.count)


def cross_counts(shape: Sequence[int], *codes: Array, weight: Array | None = None) -> np.ndarray:
    """Return how many rows have each combination of codes, of ``shape``.

    Args:
        shape: how many values each of the codes may have.
        codes: by row, ``(A,)`` each, from 0.
        weight: of each row, ``(A,)``, in the place of one.
    """
    cell = np.asarray(codes[0], np.int64)
    for size, code in zip(shape[1:], codes[1:], strict=True):
        cell = cell * size + np.asarray(code)
    return np.bincount(cell, weight, math.prod(shape)).reshape(tuple(shape))


def midranks(values: np.ndarray) -> np.ndarray:
    """Return the ranks of values ``(n,)`` from 1 on, of equal ones the mean of theirs.

    SciPy's ``stats`` has them too, and takes a third of a second to import.

    >>> midranks(np.array([3, 1, 3]))
    array([2.5, 1. , 2.5])
    """
    _, place, n = np.unique(values, return_inverse=True, return_counts=True)
    found: np.ndarray = (n.cumsum() - (n - 1) / 2)[place]
    return found


def expected_counts(annotations: Any, label: Array, truth: np.ndarray, *, by_row: bool = False) -> np.ndarray:
    """Return the expected numbers of annotations by worker, true class and kind, ``(J, K, L)``.

    It is the product of a sparse matrix, of who gave what by task, with the labels.

    Args:
        annotations: A rows, of named workers.
        label: the kind of each row, ``(A,)``.
        truth: probabilities of the true class of each task, ``(N, K)``.
        by_row: whether they are of each row, ``(A, K)``.
    """
    n_workers, n_kinds, n_rows = annotations.n_workers, annotations.n_categories, annotations.n_rows
    cell = np.asarray(annotations.worker, np.int64) * n_kinds + np.asarray(label)
    n = np.ones(n_rows, np.int64) if by_row else np.bincount(np.asarray(annotations.task), minlength=len(truth))
    gave = sparse.csc_array((annotations.row_counts, cell, np.append(0, n.cumsum())), (n_workers * n_kinds, len(n)))
    return np.asarray(gave @ truth).reshape(n_workers, n_kinds, -1).swapaxes(1, 2)


def changed(annotations: Any, names: Iterable[str], change: Callable[[Array], Array]) -> dict[str, Array]:
    """Return the fields of these names that annotations have, each changed by a function."""
    fields = {name: getattr(annotations, name) for name in names}
    return {name: change(value) for name, value in fields.items() if value is not None}


def read_only(value: Any) -> Any:
    """Return the value itself, made read-only where it is an array."""
    if isinstance(value, np.ndarray):
        value.setflags(write=False)
    return value


def connected_parts(first: np.ndarray, second: np.ndarray, n: int) -> np.ndarray:
    """Return the number of the connected part that each of n nodes is of, ``(n,)``, in the order of their first nodes.

    >>> connected_parts(np.array([3, 0]), np.array([1, 4]), 5).tolist()
    [0, 1, 2, 1, 0]

    Args:
        first: a node of each edge, ``(E,)``.
        second: the other, ``(E,)``.
        n: nodes.
    """
    from scipy.sparse.csgraph import connected_components  # imported where a crowd is looked at

    edges = sparse.coo_array((np.ones(len(first), bool), (first, second)), (n, n))
    return np.asarray(connected_components(edges, directed=False)[1], np.int64)


def groups_sharing(sets: Sequence[AbstractSet[Any]]) -> list[list[int]]:
    """Return the positions of sets in groups of those that share values, directly or by others.

    >>> groups_sharing([{1, 2}, {5}, {2, 3}])
    [[0, 2], [1]]
    """
    groups: list[tuple[AbstractSet[Any], list[int]]] = []
    for place, values in enumerate(sets):
        shared = [group for group in groups if group[0] & values]
        groups = [group for group in groups if not any(group is each for each in shared)]
        groups.append(
            (set(values).union(*(each for each, _ in shared)), sorted([place, *(i for _, of in shared for i in of)]))
        )
    return sorted(places for _, places in groups)
