"""Parts that any story takes, by hyperparameters beside its own: errors that workers share, difficulty, pooling."""

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...data.errors import truth_value
from . import pooled_questions, shared_error, task_difficulty
from .contract import Story, StoryError


@dataclass(frozen=True)
class Part:
    """A part that any story takes.

    Args:
        name: of the hyperparameter that asks for it; ``with_`` and this is the function that does.
        says: what it is, in the plural.
        defaults: of all its hyperparameters, by name.
        over: the story and the part's other hyperparameters to the story with the part.
        is_portable: whether it reads no identifiers, so that padded data give the same.
    """

    name: str
    says: str
    defaults: Mapping[str, Any]
    over: Callable[..., Story]
    is_portable: bool = True


PARTS = (
    Part("pooled_questions", "pooled questions", pooled_questions.GENERAL, pooled_questions.pooling, is_portable=False),
    Part("shared_error", "shared errors", shared_error.GENERAL, shared_error.sharing),
    Part("task_difficulty", "difficulties of tasks", task_difficulty.GENERAL, task_difficulty.hardening),
)
"""The parts from the innermost, which comes right over the story whatever the order that they are asked for in: an
annotation that follows a common impression does so on a difficult task too."""

GENERAL: dict[str, Any] = {name: value for part in PARTS for name, value in part.defaults.items()}
"""Hyperparameters that every story takes, with their defaults."""

SAYS = {
    "pooled_questions": "whether a worker's quality on a question is near that on all; cp.fit(…, quality='pooled').",
    "shared_error": "whether workers may fall for the same wrong class of a task.",
    "worker_families": "which workers err together, as families by worker; else all do.",
    "shared_weight": "how many pseudo-annotations the prior of the shared errors counts like.",
    "task_difficulty": "whether workers err more on some tasks than on others.",
    "difficulty_weight": "how many pseudo-annotations the prior of the tasks' difficulties counts like.",
}
"""A sentence on each of them."""

PARTS_OF = "_parts_of"
"""The attribute of a story with parts that has the story beneath and the hyperparameters."""


def with_part(story: Story, name: str, **given: Any) -> Story:
    """Return the story with a part over it, and with those that it has already.

    Args:
        name: of the part.
        given: its hyperparameters.

    Raises:
        StoryError: the story has that part already.
    """
    part = next(part for part in PARTS if part.name == name)
    inner, known = split_parts(story, {})
    if known.get(name):
        raise StoryError(f"{story.__name__} has {part.says} already; give with_{name} the story without them")
    changed = {key: value for key, value in given.items() if value is not part.defaults[key]}
    hyperparameters = known | {name: True} | changed
    whole, _ = apply_parts(inner, hyperparameters)
    setattr(whole, PARTS_OF, (inner, hyperparameters))
    return whole


def split_parts(story: Story, hyperparameters: Mapping[str, Any]) -> tuple[Story, dict[str, Any]]:
    """Return the story beneath its parts, with what these were given among its hyperparameters.

    So both ways to ask for a part are one fit, which a file can hold. Other stories stay as they are.

    Raises:
        StoryError: a part's hyperparameter is given here and there.
    """
    inner, known = getattr(story, PARTS_OF, (story, {}))
    for name in known:
        if name in hyperparameters:
            part = next(part for part in PARTS if name in part.defaults)
            raise StoryError(
                f"{name} is given twice: the story is with_{part.name}({inner.__name__}) already; leave {name}= out, "
                f"or give the story {inner.__name__} itself"
            )
    return inner, known | dict(hyperparameters)


def without_parts(story: Story, hyperparameters: Mapping[str, Any]) -> tuple[Story, dict[str, Any]]:
    """Return the story without its parts, and the story's own hyperparameters; both as they are where it has none."""
    inner, known = split_parts(story, hyperparameters)
    if not any(known.get(part.name) for part in PARTS):
        return story, dict(hyperparameters)
    return inner, {name: value for name, value in known.items() if name not in GENERAL}


def apply_parts(story: Story, hyperparameters: Mapping[str, Any]) -> tuple[Story, dict[str, Any]]:
    """Return the story with the parts that its hyperparameters ask for, and the story's own hyperparameters.

    Raises:
        StoryError: a flag is something else than True or False, or a part's hyperparameters are given without it.
    """
    story, hyperparameters = split_parts(story, hyperparameters)
    for part in PARTS:
        if part.defaults.keys().isdisjoint(hyperparameters):
            continue
        given = {name: value for name, value in hyperparameters.items() if name in part.defaults}
        asked = given.pop(part.name, False)
        if truth_value(part.name, asked, error=StoryError):
            story = part.over(story, **given)
            continue
        for name, value in given.items():
            said = "…" if np.ndim(value) else repr(value)
            raise StoryError(f"{name}={said} would be ignored: it belongs to {part.says}; give {part.name}=True too")
    own = {name: value for name, value in hyperparameters.items() if name not in GENERAL}
    for name, maybe in _flags(story).items():
        if name in own:
            truth_value(name, own[name], maybe=maybe, error=StoryError)
    return story, own


@functools.cache
def _flags(story: Story) -> dict[str, bool]:
    """The hyperparameters that are True or False by their annotation, and whether each may be None."""
    of = {each.name: each.annotation for each in inspect.signature(story).parameters.values()}
    written = {name: kind if isinstance(kind, str) else inspect.formatannotation(kind) for name, kind in of.items()}
    return {name: kind != "bool" for name, kind in written.items() if kind in ("bool", "bool | None")}


def hyperparameters_of(story: Story) -> dict[str, Any]:
    """Return the names of a story's hyperparameters, those that every story takes among them, with their defaults."""
    parameters = list(inspect.signature(story).parameters.values())[1:]
    return {p.name: p.default for p in parameters if p.kind is not inspect.Parameter.VAR_KEYWORD} | GENERAL


def are_portable(hyperparameters: Mapping[str, Any]) -> bool:
    """Return whether the parts that are asked for give on padded data what they give on the data themselves."""
    return all(part.is_portable or not hyperparameters.get(part.name) for part in PARTS)


def takes_any(story: Story) -> bool:
    """Return whether a story takes hyperparameters of any name."""
    return any(p.kind is inspect.Parameter.VAR_KEYWORD for p in inspect.signature(story).parameters.values())


def coordinates(hyperparameters: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Return the labels of the dimensions of the parts' parameters, by name."""
    found = shared_error.coordinates(hyperparameters)
    found |= {pooled_questions.DIM: pooled_questions.OF} if hyperparameters.get("pooled_questions") else {}
    return found | ({task_difficulty.DIM: task_difficulty.LEVELS} if hyperparameters.get("task_difficulty") else {})
