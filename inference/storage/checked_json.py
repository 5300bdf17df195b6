"""JSON of files that others may have changed: read strictly, and held against a schema that comes with the package."""

import json
import stat
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pandas as pd

from ...data.errors import StorageError
from ...data.id_json import decode_id, encode_id
from ...models.parts.truth_prior import ClassPrior

DECODING = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
"""Errors that decoding values of the wrong kind may raise."""

_SHOWN = 80  # letters of a value in a message, at the most


def check_regular(folder: Path, name: str) -> None:
    """Refuse a file that is missing, a link to another place, or no file at all, such as a pipe that never ends.

    Raises:
        StorageError: with the file's name.
    """
    try:
        mode = (folder / name).lstat().st_mode
    except OSError as error:
        raise StorageError(f"{folder} holds no fit: {name} cannot be read ({error.strerror})") from error
    if stat.S_ISLNK(mode):
        raise StorageError(f"{folder / name} is a symbolic link, which is not followed; copy the files (cp -rL)")
    if not stat.S_ISREG(mode):
        raise StorageError(f"{folder / name} is no regular file")


def read_json_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file.

    Raises:
        StorageError: it is no regular file, no JSON, no object, names a key twice, or is nested too deeply.
    """
    check_regular(path.parent, path.name)
    try:
        found = json.loads(path.read_bytes().decode("utf-8"), object_pairs_hook=_distinct, parse_constant=_refuse)
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise StorageError(f"{path.parent} holds no fit: {path.name} is no JSON that can be read: {error}") from None
    if not isinstance(found, dict):
        raise StorageError(f"{path.parent} holds no fit: {path.name} holds a {type(found).__name__}, and no object")
    return found


def _distinct(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice in an object")
    return found


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


@cache
def schema() -> dict[str, Any]:
    """Return the JSON schema of the manifest, ``inference/storage/manifest.schema.json``, of the draft 2020-12."""
    text = files(__package__).joinpath("manifest.schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def check_schema(value: dict[str, Any], path: Path) -> None:
    """Refuse what the schema does not describe.

    Raises:
        StorageError: with where in the file what was found, and what the schema says.
    """
    from jsonschema import Draft202012Validator

    found = min(Draft202012Validator(schema()).iter_errors(value), key=lambda e: list(map(str, e.path)), default=None)
    if found is not None:
        place = "".join(f"[{part!r}]" for part in found.absolute_path)
        message = found.message if len(found.message) <= 2 * _SHOWN else f"{found.message[: 2 * _SHOWN]}…"
        raise StorageError(f"{path}{place and ': '}{place}: {message}; the file was altered, or is of something else")


def is_plain(value: object) -> bool:
    """Return whether JSON holds the value unchanged."""
    return value is None or isinstance(value, bool | int | str) or (isinstance(value, float) and np.isfinite(value))


def encode(name: str, value: object) -> Any:
    """A hyperparameter as JSON: plain values as they are, others as an object with their kind.

    Raises:
        StorageError: it is of a kind that JSON cannot hold.
    """
    if is_plain(value):
        return value
    if isinstance(value, float):
        return {"float": repr(value)}
    if isinstance(value, ClassPrior):
        return {"truth_prior": value.to_json()}
    if isinstance(value, tuple | list):
        return {"tuple": [encode(name, item) for item in value]}
    if isinstance(value, pd.DataFrame):
        return {"frame": {str(column): [encode_id(v) for v in value[column].tolist()] for column in value}}
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        return {"array": np.asarray(value).tolist(), "dtype": str(value.dtype)}
    instead = ""
    if callable(value):
        instead = (
            f": give it in a story of your own, def mine(annotations): story(annotations, {name}=…), whose fit "
            "cp.load_fit(path, story=mine) brings back"
        )
    raise StorageError(
        f"the hyperparameter {name}={value!r} is a {type(value).__name__}, which a file cannot hold{instead}"
    )


def encode_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """An engine's settings as JSON; what JSON cannot hold, such as a function, as its text."""
    found = {}
    for name, value in settings.items():
        try:
            found[name] = encode(name, value)
        except StorageError:
            found[name] = repr(value)
    return found


def decode(value: Any) -> Any:
    """The value that :func:`encode` wrote; what it is not raises one of :data:`DECODING`."""
    if not isinstance(value, dict):
        return value
    if "float" in value:
        return float(value["float"])
    if "tuple" in value:
        return tuple(decode(item) for item in value["tuple"])
    if "frame" in value:
        return pd.DataFrame({column: [decode_id(v) for v in values] for column, values in value["frame"].items()})
    return np.array(value["array"], dtype=value["dtype"])
