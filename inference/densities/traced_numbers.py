"""Hyperparameters that are numbers to calculate with, for any value of which one compiled program serves."""

import inspect
from dataclasses import replace
from functools import lru_cache

import jax
import jax.numpy as jnp
from jax import Array

from ...data import Annotations
from ...models import Story
from ...models.parts.general import hyperparameters_of
from .enumerated import density
from .model import Frame, Model
from .sites import starting_point


def with_numbers(model: Model, annotations: Annotations) -> Model:
    """The model whose numbers are leaves, as many of them as the story takes without a look at their values.

    A real number is one where the story, traced with an abstract number in its place, runs to its density and its
    starting point. A story that branches on it, or turns it into a shape, does not; then it stays static, and each of
    its values has programs of its own. A whole number counts as a real one where the story says that it takes real
    numbers, by the parameter's default or annotation; others stay static.

    Args:
        model: a story that runs on the annotations: what it says of wrong values it has said before.
        annotations: of the structure of the data; their sizes do not matter.
    """
    candidates = {name: value for name, value in model.hyperparameters.items() if isinstance(value, float)}
    if whole := {name: value for name, value in model.hyperparameters.items() if type(value) is int}:
        candidates |= {name: whole[name] for name in _real_ones(model.story) & whole.keys()}
    if not candidates:
        return model
    found = _numbers(replace(model, numbers=tuple(sorted(candidates))).frame, _Example(annotations, candidates))
    given = {name: float(candidates[name]) for name in found}
    return Model(model.story, dict(model.hyperparameters) | given, found)


def _real_ones(story: Story) -> set[str]:
    """Names of the hyperparameters that are real numbers by their default or annotation."""
    written = {
        each.name: each.annotation if isinstance(each.annotation, str) else inspect.formatannotation(each.annotation)
        for each in inspect.signature(story).parameters.values()
    }
    defaults = hyperparameters_of(story)
    return {name for name, value in defaults.items() if isinstance(value, float) or "float" in written.get(name, "")}


class _Example:
    """Annotations and numbers to try a story with; equal where the annotations have the same fields."""

    def __init__(self, annotations: Annotations, numbers: dict[str, float]) -> None:
        self.annotations = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), annotations)
        self.numbers = numbers
        sizes = (
            annotations.n_classes,
            annotations.n_categories,
            annotations.informative,
            annotations.kind,
            annotations.scored,
        )
        self._key = (*sizes, *(name for name, x in vars(annotations).items() if x is not None))

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Example) and self._key == other._key


@lru_cache(maxsize=256)
def _numbers(frame: Frame, example: _Example) -> tuple[str, ...]:
    """Those of the frame's numbers that the story does not look at: all together, or else one after the other."""
    if _runs(frame, frame.numbers, example):
        return frame.numbers
    found: tuple[str, ...] = ()
    for name in frame.numbers:
        if _runs(frame, (*found, name), example):
            found = (*found, name)
    return found


def _runs(frame: Frame, names: tuple[str, ...], example: _Example) -> bool:
    """Return whether the story runs with abstract numbers in the place of the hyperparameters ``names``."""

    def run(values: list[Array], annotations: Annotations) -> Array:
        hyperparameters = frame.others | example.numbers | dict(zip(names, values, strict=True))
        model = Model(frame.story, hyperparameters, names)
        start = starting_point(model, annotations, jax.random.key(0))
        return density(model, start, annotations).log_posterior

    try:
        jax.eval_shape(run, [jax.ShapeDtypeStruct((), jnp.result_type(float)) for _ in names], example.annotations)
    except Exception:  # whatever a story of a user's own does with a number that has no value
        return False
    return True
