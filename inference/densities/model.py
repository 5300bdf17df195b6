"""A story with its hyperparameters."""

import hashlib
import pickle
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import jax
import numpy as np

from ...data import Annotations
from ...models import Prevalence, Story
from ...models.parts.classifier import Classifier
from ...models.parts.general import apply_parts, hyperparameters_of, without_parts
from ...models.parts.truth_prior import ClassPrior

MAY_BE_READ = ("worker", "features", "worker_features")  # of annotations, by a story of a user's own, and may be None

ONLY_TRACED = (
    "A story is compiled before its parameters and the labels have values: calculate with jax.numpy instead of numpy, "
    "choose by jnp.where instead of if, and let only cp.observe read annotations.label."
)


class ByKey:
    """An object that is equal to others of its class by their keys; with a hash, so that programs are kept by it."""

    _key: Any

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self._key == other._key


@jax.tree_util.register_pytree_node_class
@dataclass(frozen=True, eq=False)
class Model(ByKey):
    """A story and its hyperparameters; equal where both are, so that compiled engines are shared between fits.

    It is a JAX pytree: the hyperparameters that are ``numbers`` are its leaves, so that programs are compiled for any
    value of theirs; the story and the other hyperparameters are static. It can be a static argument as well.

    Args:
        story: the story.
        hyperparameters: by name.
        numbers: names of the hyperparameters with which the story only calculates, as
            :func:`.portable.with_numbers` finds them.
    """

    story: Story
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    numbers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Keep arrays as they are now: JAX keeps what it has made of an array, whatever is written into it later."""
        kept = {name: _unchanging(value) for name, value in self.hyperparameters.items()}
        object.__setattr__(self, "hyperparameters", kept)

    def tree_flatten(self) -> tuple[tuple, "Frame"]:
        """The numbers as leaves, and the rest."""
        return self._leaves, self.frame

    @classmethod
    def tree_unflatten(cls, frame: "Frame", leaves: tuple) -> "Model":
        """Return the model from its leaves and its frame, as compiled functions see it."""
        return cls(frame.story, frame.others | dict(zip(frame.numbers, leaves, strict=True)), frame.numbers)

    def __call__(self, annotations: Annotations) -> None:
        """Run the story, as a NumPyro program.

        Where it fails on what is None in the annotations, or on a value that is known only when it runs, a note of the
        error says so.
        """
        story, own = apply_parts(self.story, self.hyperparameters)
        try:
            story(annotations, **own)
        except (AttributeError, TypeError, ValueError) as error:
            missing = [name for name in MAY_BE_READ if getattr(annotations, name) is None]
            if missing and "None" in str(error):
                error.add_note(f"These annotations have no {', no '.join(missing)}, which are None in the story.")
            if isinstance(error, jax.errors.JAXTypeError):
                error.add_note(ONLY_TRACED)
            raise

    @cached_property
    def classifier(self) -> Classifier | None:
        """The classifier that is the truth's prior, where there is one."""
        prior = self.hyperparameters.get("truth_prior")
        return prior if isinstance(prior, Classifier) else None

    @property
    def has_network(self) -> bool:
        """True where the truth's prior is a network, which is trained in minibatches."""
        return self.classifier is not None and self.classifier.is_network

    @property
    def has_weights(self) -> bool:
        """True where the truth's prior is a classifier that has weights: a network or a logistic regression."""
        return self.has_network or self.logistic is not None

    @property
    def logistic(self) -> Classifier | None:
        """The truth's prior where it is a logistic regression, whose moves are Newton's."""
        return self.classifier if self.classifier is not None and self.classifier.is_linear else None

    @property
    def truth_prior(self) -> ClassPrior:
        """The truth's prior; the stories' own where none was given."""
        prior = self.given_prior
        return prior if isinstance(prior, ClassPrior) else Prevalence()

    @property
    def given_prior(self) -> Any:
        """The truth's prior as it was given; the story's own where none was, None where it leaves it to the labels."""
        return self.hyperparameters.get("truth_prior", hyperparameters_of(self.story).get("truth_prior"))

    @property
    def plain(self) -> "Model | None":
        """The story without its parts (:mod:`crowdppl.models.parts.general`); None of a story that has none."""
        story, hyperparameters = without_parts(self.story, self.hyperparameters)
        if hyperparameters.keys() == self.hyperparameters.keys() and story is self.story:
            return None
        numbers = tuple(name for name in self.numbers if name in hyperparameters)
        return replace(self, story=story, hyperparameters=hyperparameters, numbers=numbers)

    @cached_property
    def frame(self) -> "Frame":
        """The static part that programs are compiled for: the story and the hyperparameters that are no numbers."""
        others = {name: value for name, value in self.hyperparameters.items() if name not in self.numbers}
        return Frame(self.story, others, self.numbers)

    @cached_property
    def _leaves(self) -> tuple:
        return tuple(self.hyperparameters[name] for name in self.numbers)

    @cached_property
    def _key(self) -> tuple:
        return (self.frame, *self._leaves)


@dataclass(frozen=True, eq=False)
class Frame(ByKey):
    """A story with the hyperparameters that are no numbers, and the names of those that are; it compares by value."""

    story: Story
    others: dict[str, Any]
    numbers: tuple[str, ...]

    def __post_init__(self) -> None:
        """Take the key now: JAX asks for it when it compares, and an array may have changed by then."""
        _ = self._key

    @cached_property
    def _key(self) -> tuple:
        others = {name: _by_value_or_identity(self.others[name]) for name in sorted(self.others)}
        return (self.story, self.numbers, *others.items())


@dataclass(frozen=True, eq=False)
class _Same:
    value: object

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value


def _unchanging(value: Any) -> Any:
    """Return a read-only copy of an array that may be written to; anything else as it is."""
    if isinstance(value, np.ndarray) and value.flags.writeable:
        value = value.copy()
        value.flags.writeable = False
    return value


def _by_value_or_identity(value: object) -> object:
    """A key of a hyperparameter: itself, or what it holds now where it may change in place, as arrays and lists may."""
    with suppress(TypeError):
        hash(value)
        return value
    if isinstance(value, jax.Array):
        return _Same(value)
    try:
        return hashlib.blake2b(pickle.dumps(value)).digest()
    except Exception:  # whatever an object of a user's own says when it is pickled
        return _Same(value)
