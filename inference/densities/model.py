"""A story with its hyperparameters."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...data import Annotations
from ...models import Prevalence, Story
from ...models.parts.classifier import Classifier
from ...models.parts.truth_prior import ClassPrior


@dataclass(frozen=True, eq=False)
class Model:
    """A story and its hyperparameters; equal where both are, so that compiled engines are shared between fits."""

    story: Story
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, annotations: Annotations) -> None:
        """Run the story, as a NumPyro program."""
        self.story(annotations, **self.hyperparameters)

    @property
    def classifier(self) -> Classifier | None:
        """The classifier that is the truth's prior, where there is one."""
        prior = self.hyperparameters.get("truth_prior")
        return prior if isinstance(prior, Classifier) else None

    @property
    def truth_prior(self) -> ClassPrior:
        """The truth's prior; the stories' own where none was given."""
        prior = self.hyperparameters.get("truth_prior")
        return prior if isinstance(prior, ClassPrior) else Prevalence()

    @cached_property
    def _key(self) -> tuple:
        return (self.story, *((name, _by_value_or_identity(value)) for name, value in self.hyperparameters.items()))

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self._key == other._key


@dataclass(frozen=True, eq=False)
class _Same:
    value: object

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value


def _by_value_or_identity(value: object) -> object:
    try:
        hash(value)
    except TypeError:
        return _Same(value)
    return value
