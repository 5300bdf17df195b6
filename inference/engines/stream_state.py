"""Where EM over chunks stands, kept in a file, so that a later process goes on from there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from ...data.atomic import whole_file
from ...data.errors import StorageError
from ..densities.model import Model

FORMAT = 1
FILE = "em.npz"
SAID = {
    "story": "story",
    "hyperparameters": "hyperparameters",
    "fingerprint": "files, or way to read them",
    "seed": "seed",
    "step": "step",
    "learning_rate": "learning_rate",
    "halvings": "halvings",
    "max_iterations": "max_iterations",
    "guide": "guide",
    "particles": "particles",
    "precision": "precision",
    "format": "version of crowdppl",
}
"""What must be the same to go on, and how messages call it."""


def about_fit(model: Model, fingerprint: str, **options: Any) -> dict[str, Any]:
    """What a fit must have in common with an earlier one to go on where that stopped.

    Args:
        model: the story.
        fingerprint: of the data.
        options: others.
    """
    values = {name: described(value) for name, value in sorted(model.hyperparameters.items())}
    precision = str(jnp.zeros((), float).dtype)
    story = f"{model.story.__module__}.{model.story.__qualname__}"
    return {
        "format": FORMAT,
        "story": story,
        "hyperparameters": values,
        "fingerprint": fingerprint,
        "precision": precision,
        **options,
    }


def save(folder: Path, state: Any, about: Mapping[str, Any], n_rows: int) -> None:
    """Write the state, or leave the file as it was.

    Args:
        folder: where to; it is there.
        state: a NamedTuple of trees of arrays, numbers and tuples of numbers.
        about: :func:`about_fit`.
        n_rows: rows of a chunk, on which the rounding of sums depends.

    Raises:
        StorageError: it cannot be written.
    """
    fields = state._asdict()
    arrays = jax.tree.leaves([value for value in fields.values() if not _is_plain(value)])
    plain = {name: value for name, value in fields.items() if _is_plain(value)}
    plain |= {"about": dict(about), "n_rows": n_rows}
    values = {f"array_{i}": np.asarray(value) for i, value in enumerate(arrays)}
    with whole_file(folder / FILE) as part, part.open("wb") as file:
        np.savez(file, **{"plain": np.array(json.dumps(plain))} | values)  # type: ignore[arg-type]


def earlier_rows(folder: Path, about: Mapping[str, Any]) -> int | None:
    """Rows of a chunk of the fit that the folder holds; None where it holds none.

    Raises:
        StorageError: it holds a fit of another kind, or a damaged file.
    """
    plain = _plain(folder)
    if plain is None:
        return None
    for name, said in SAID.items():
        if (before := plain["about"].get(name)) != (now := about.get(name)):
            both = "" if name in ("fingerprint", "format") else f" ({_short(before)} there, {_short(now)} now)"
            raise StorageError(
                f"{folder} holds another fit, so that it cannot go on: not the same {said}{both}; name another folder, "
                f"or delete {folder / FILE} to begin anew"
            )
    return plain["n_rows"]


def load(folder: Path, kind: Any, like: Any) -> Any:
    """Read the state; None where there is none.

    Args:
        folder: that :func:`save` wrote to.
        kind: of the state, a class of NamedTuples.
        like: shapes of its trees of arrays, in their order.

    Raises:
        StorageError: the file is damaged.
    """
    plain = _plain(folder)
    if plain is None:
        return None
    with np.load(folder / FILE) as found:
        arrays = [jnp.asarray(found[f"array_{i}"]) for i in range(len(found.files) - 1)]
    trees = iter(jax.tree.unflatten(jax.tree.structure(tuple(like)), arrays))
    values = {name: plain[name] if name in plain else next(trees) for name in kind._fields}
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})


def _is_plain(value: Any) -> bool:
    """Whether JSON holds it: a number, or a tuple of numbers that is no tree of arrays."""
    numbers = value if type(value) is tuple else (value,)
    return all(isinstance(number, int | float) for number in numbers)


def _plain(folder: Path) -> dict[str, Any] | None:
    path = folder / FILE
    if not path.exists():
        return None
    try:
        with np.load(path) as found:
            return json.loads(str(found["plain"]))
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise StorageError(f"{path} is damaged: {error}; delete it to begin anew") from error


def described(value: Any) -> str:
    """A hyperparameter or an option as text that is the same in another process."""
    if isinstance(value, pd.DataFrame):
        value = value.to_csv()
    if isinstance(value, np.ndarray | jax.Array):
        content = np.ascontiguousarray(value)
        return f"{content.dtype}{content.shape} {hashlib.sha256(content.tobytes()).hexdigest()[:16]}"
    return getattr(value, "__qualname__", None) or repr(value)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
