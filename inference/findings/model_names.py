"""Names of language models, of which one is written in several ways: with its provider, and with its snapshot."""

import re
from collections.abc import Sequence

import numpy as np

SNAPSHOT = re.compile(r"[-@](\d{4}-\d\d-\d\d|20\d{6}|\d{4}|0\d\d)(-preview)?$")
"""The end of a model's name that says which version of it answered: a date, a month or a number."""

NO_SNAPSHOT = re.compile(r"[-:]latest$|-v\d+:\d+$")
"""Ends of a name that tell no version of the model."""

PROVIDER = re.compile(r"^([a-z]{2,}\.)+(?=[a-z])|^([a-z_]+:)+(?=[a-z]\w*[-.\d])")
"""Beginnings of a model's name, beside all up to a stroke: ``anthropic.`` and ``openai:chat:``."""


def short_name(name: object) -> str:
    """Return a model's name without its provider, in small letters.

    >>> short_name("openai/GPT-4o"), short_name("openai:chat:gpt-4o"), short_name("us.anthropic.claude-3-opus")
    ('gpt-4o', 'gpt-4o', 'claude-3-opus')
    """
    bare = re.sub(r"[\s_]+", "-", str(name).rpartition("/")[2].strip().casefold())
    return PROVIDER.sub("", NO_SNAPSHOT.sub("", bare))


def same_models(names: Sequence[object], others: Sequence[object]) -> np.ndarray:
    """Return of each name the position of the other that names the same model, −1 where there is none or several.

    It is the one that is written alike but for the provider; else the one with which it is alike but for a snapshot
    that only one of both has: two snapshots are two models.

    >>> same_models(["openai/gpt-4o-2024-08-06", "gpt-4-0314"], ["gpt-4o", "gpt-4-0613"]).tolist()
    [0, -1]
    """
    theirs = [short_name(other) for other in others]
    return np.array([_place(short_name(name), theirs) for name in names], dtype=int)


def _place(name: str, others: Sequence[str]) -> int:
    alike = [place for place, other in enumerate(others) if other == name]
    if not alike:
        model = SNAPSHOT.sub("", name)
        alike = [at for at, other in enumerate(others) if SNAPSHOT.sub("", other) == model and model in (name, other)]
    return alike[0] if len(alike) == 1 else -1
