"""The fingerprint of a fit: its data, story, options and versions, as texts that are the same in another process."""

import functools
import hashlib
import json
import platform
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from types import CodeType, FunctionType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from ...data import Annotations, Ids
from ..densities.model import Model

SAID = {
    "story": "story",
    "method": "method",
    "backend": "backend",
    "hyperparameters": "hyperparameters",
    "data": "annotations",
    "files": "files, or way to read them",
    "seed": "seed",
    "options": "options",
    "devices": "number of devices",
    "precision": "precision",
    "versions": "versions",
}
"""Entries that must be the same to go on, by the name that messages have for them."""

LIBRARIES = ("jax", "jaxlib", "numpyro", "optax", "numpy")
DEEP = 8  # objects within objects that are looked into


def about_fit(model: Model, *, libraries: Iterable[str] = LIBRARIES, **others: Any) -> dict[str, Any]:
    """Return what a fit must have in common with an earlier one to go on where that stopped.

    Args:
        libraries: names of the packages whose versions count.
        others: by the names of :data:`SAID`.
    """
    return {
        "story": story_text(model.story),
        "hyperparameters": {name: described(value) for name, value in sorted(model.hyperparameters.items())},
        "precision": str(jnp.zeros((), float).dtype),
        "versions": {
            "crowdppl": sys.modules[__name__.split(".")[0]].__version__,
            "Python": ".".join(platform.python_version_tuple()[:2]),
            **{name: version(name) for name in libraries},
        },
        **others,
    }


def about_data(annotations: Annotations) -> dict[str, str]:
    """Return a fingerprint of each field of the annotations that has something."""
    given = {field.name: getattr(annotations, field.name) for field in fields(annotations)}
    return {name: described(value) for name, value in given.items() if value is not None}


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Return what two fits do not have in common, in words; nothing where they are the same."""
    return "; ".join(filter(None, (_differing(said, before.get(kind), now.get(kind)) for kind, said in SAID.items())))


def _differing(said: str, before: Any, now: Any) -> str:
    if before == now:
        return ""
    if not (isinstance(before, Mapping) and isinstance(now, Mapping)):
        return f"not the same {said}{_both(before, now)}"
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return f"not the same {said}: " + ", ".join(f"{name}{_both(before.get(name), now.get(name))}" for name in names)


def _both(before: Any, now: Any) -> str:
    """Both values where they say something to a reader."""
    texts = ["nothing" if value is None else str(value) for value in (before, now)]
    if any(_HASH.search(text) for text in texts):
        return ""
    return " ({} there, {} now)".format(*(text if len(text) <= 80 else f"{text[:77]}…" for text in texts))


def story_text(story: Any) -> str:
    """Return the name of a story, with a fingerprint of its code where the package's version does not say it."""
    name = f"{story.__module__}.{getattr(story, '__qualname__', type(story).__name__)}"
    return name if _comes_with_the_package(story) else f"{name} {described(story)}"


def _comes_with_the_package(story: Any) -> bool:
    """Return whether a story is at the top of one of the package's modules, whose code the version stands for."""
    module = sys.modules.get(story.__module__)
    is_within = story.__module__.startswith(f"{__name__.split('.')[0]}.models.")
    return is_within and getattr(module, getattr(story, "__name__", ""), None) is story


def described(value: Any, deep: int = DEEP) -> str:
    """Return an object as text that is the same in another process, and another one for another object.

    Arrays, tables and identifiers are hashed; functions are known by their name, code and what they hold; modules of
    torch and Flax by their structure and weights; other objects by what they consist of.
    """
    within = functools.partial(described, deep=deep - 1)
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | np.generic):
        return repr(value.item() if isinstance(value, np.generic) else value)
    if isinstance(value, Ids):
        return f"{len(value)} " + hashed(repr(one).encode() for one in value)
    if isinstance(value, np.ndarray | jax.Array):
        return _array(np.asarray(value))
    if isinstance(value, pd.DataFrame | pd.Series):
        return f"{type(value).__name__}{value.shape} " + hashed([value.to_csv().encode()])
    if deep == 0:
        return _plain(repr(value))
    if isinstance(value, Mapping):
        return "{" + ", ".join(sorted(f"{within(key)}: {within(one)}" for key, one in value.items())) + "}"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(within, value)) + "]"
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(map(within, value))) + "}"
    if isinstance(value, functools.partial):
        return f"partial({within(value.func)}, {within(value.args)}, {within(value.keywords)})"
    if isinstance(value, FunctionType):
        held = [cell.cell_contents for cell in value.__closure__ or () if _is_full(cell)]
        said = [_code(value.__code__), within(value.__defaults__), within(value.__kwdefaults__), within(held)]
        return f"{value.__qualname__} " + hashed(text.encode() for text in said)
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    name = type(value).__qualname__
    if callable(getattr(value, "state_dict", None)):  # a module of torch
        return f"{name} " + hashed([_plain(repr(value)).encode(), within(dict(value.state_dict())).encode()])
    if callable(getattr(value, "detach", None)) and callable(getattr(value, "numpy", None)):  # a tensor
        return within(value.detach().cpu().float().numpy())
    leaves, structure = jax.tree.flatten(value)
    if leaves != [value]:  # a module of Flax, or another of JAX's trees
        return f"{name} " + hashed([_plain(str(structure)).encode(), within(leaves).encode()])
    if is_dataclass(value):
        return f"{name}({within({field.name: getattr(value, field.name) for field in fields(value)})})"
    if hasattr(value, "__dict__") and type(value).__repr__ is object.__repr__:
        return f"{name}({within(vars(value))})"
    if hasattr(value, "__dict__") and not hasattr(value, "__qualname__"):
        return f"{name}({_plain(repr(value))}, {within(vars(value))})"
    return getattr(value, "__qualname__", None) or _plain(repr(value))


def hashed(parts: Iterable[bytes]) -> str:
    """Return a fingerprint of texts in their order."""
    found = hashlib.blake2b(digest_size=8)
    for part in parts:
        found.update(len(part).to_bytes(8, "little") + part)
    return f"#{found.hexdigest()}"


_HASH = re.compile("#[0-9a-f]{16}")


def _array(value: np.ndarray) -> str:
    if value.dtype.hasobject:
        return f"{value.shape} " + hashed(repr(one).encode() for one in value.ravel().tolist())
    content = hashlib.blake2b(digest_size=8)
    content.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
    return f"{value.dtype}{value.shape} #{content.hexdigest()}"


def _code(code: CodeType) -> str:
    """A function's code as text, without where it stands."""
    held = [_code(one) if isinstance(one, CodeType) else described(one) for one in code.co_consts]
    return json.dumps([code.co_code.hex(), code.co_names, code.co_varnames, code.co_freevars, held])


def _is_full(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018  # a function that is not there yet has none
    except ValueError:
        return False
    return True


def _plain(text: str) -> str:
    """A representation without addresses in memory."""
    return re.sub(r" at 0x[0-9a-f]+|0x[0-9a-f]{6,}", "", text)
