"""Where a fit over chunks stands, as a checkpoint has it: between two passes over the data, and within one."""

from __future__ import annotations

from typing import Any

from .checkpoints import FILE, Nest, packed, unpacked

STAGE = "passes"  # of a checkpoint: where the fit stands after the last whole pass
PART = "pass"  # and how far the pass after it has come


def noted(state: Any) -> Nest:
    """Return what a checkpoint has of a state: a NamedTuple of trees of arrays, numbers and tuples of numbers."""
    fields = state._asdict()
    trees = [value for value in fields.values() if not _is_plain(value)]
    return {"arrays": packed(trees), **{name: value for name, value in fields.items() if _is_plain(value)}}


def went_on(found: Nest, kind: Any, like: Any) -> Any:
    """Return the state of :func:`noted`.

    Args:
        found: what the checkpoint has.
        kind: of the state, a class of NamedTuples.
        like: shapes of its trees of arrays, in their order.

    Raises:
        StorageError: the checkpoint is damaged.
    """
    trees = iter(unpacked(found["arrays"], tuple(like)))
    return kind(**{name: found[name] if name in found else next(trees) for name in kind._fields})


def _is_plain(value: Any) -> bool:
    """Whether JSON holds it: a number, or a tuple of numbers that is no tree of arrays."""
    numbers = value if type(value) is tuple else (value,)
    return all(isinstance(number, int | float) for number in numbers)


__all__ = ["FILE", "PART", "STAGE", "noted", "went_on"]
