"""A story in both its forms with its data and its classifier: what the engines for Pyro get."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch import Tensor

from ....data import Annotations
from ....models import Given, StoryError
from ....models.pyro import STORIES, TorchClassifier, program_of, tensors
from ....models.pyro.classifier import CHUNK, GivenByTorch
from ...densities.model import Model
from .. import em
from .batches import TaskSource
from .density import Parameters
from .options import TorchOptions

FEW = 16  # tasks on which a classifier is tried before anything runs


@dataclass(frozen=True)
class Problem:
    """A story to fit.

    Args:
        model: the Pyro story.
        twin: the same story for NumPyro, with a torch classifier's probabilities as given ones.
        data: the annotations, with JAX's arrays, for the twin.
        source: the annotations, with tensors, and the classifier's inputs.
        classifier: the torch classifier that is the truth's prior, where there is one.
        options: the user's.
    """

    model: Model
    twin: Model
    data: Annotations
    source: TaskSource
    classifier: TorchClassifier | None
    options: TorchOptions

    def with_probabilities(self) -> Annotations:
        """Return the twin's data, with the classifier's current probabilities as prior of the true labels."""
        if self.classifier is None:
            return self.data
        return self.data.replace(prior=jnp.asarray(self._probabilities()))

    def start(self, key: jax.Array, *, perturbed: bool = False) -> Parameters:
        """Return where EM starts, as for NumPyro: the parameters after the M-step of the soft majority vote."""
        at = em.init(self.twin, self.with_probabilities(), key, perturbed=perturbed).parameters
        device, dtype = self.source.device, torch.get_default_dtype()
        return {name: torch.tensor(np.asarray(value), dtype=dtype, device=device) for name, value in at.items()}

    def plain(self) -> "Problem":
        """Return the problem without the options that EM over all data does not use."""
        return replace(self, options=TorchOptions(device=self.options.device))

    def check_batches(self, size: int) -> None:
        """Refuse what cannot be trained in batches of ``size``.

        Raises:
            ValueError: a batch of one with batch norm.
        """
        if size == 1 and self.classifier is not None and self.classifier.normalises_batches:
            raise ValueError(
                "the classifier has batch norm, which cannot learn from a batch of one task; give batch_size=2 or "
                "more, or a module with nn.GroupNorm or nn.LayerNorm"
            )

    def settled(self) -> "Problem":
        """Return the problem with the classifier's current probabilities as given ones, so that it is not trained."""
        if self.classifier is None:
            return self
        prior = torch.as_tensor(self._probabilities(), dtype=torch.get_default_dtype())
        model = Model(self.model.story, {**self.model.hyperparameters, "truth_prior": Given()})
        annotations = self.source.annotations.replace(prior=prior)
        return replace(
            self, model=model, source=TaskSource(annotations, None, None, self.source.device), classifier=None
        )

    def fixed(self) -> dict[str, np.ndarray]:
        """Return the values without a posterior: the classifier's weights."""
        return {} if self.classifier is None else self.classifier.state()

    def _probabilities(self) -> np.ndarray:
        assert self.classifier is not None
        return self.classifier.probabilities(self.source.inputs(CHUNK), self.data.n_classes)


def make(twin: Model, data: Annotations, options: Mapping[str, Any]) -> Problem:
    """Put a problem together and try the classifier on a few tasks.

    Args:
        twin: NumPyro's story; a torch classifier is there as ``truth_prior=GivenByTorch(by=module)``.
        data: the annotations, with JAX's arrays.
        options: the user's, by the names of :class:`.options.TorchOptions`.

    Raises:
        ValueError: the story has no Pyro program, there is a dataset without a classifier, or its length is not the
            number of tasks.
        StoryError: the Pyro program lacks a hyperparameter, or the classifier is no module, on another device than
            asked for, has nothing to look at, or gives no logits.
    """
    chosen, program = TorchOptions(**options), program_of(twin.story)
    if program is None:
        raise ValueError(
            f"backend='pyro' has the stories {list(STORIES)}; {getattr(twin.story, '__name__', twin.story)!r} needs "
            "backend='numpyro', or a Pyro program of it that crowdppl.models.pyro.twin_of declares"
        )
    _refuse_unknown(program, twin)
    prior = twin.hyperparameters.get("truth_prior")
    if not isinstance(prior, GivenByTorch):
        if chosen.dataset is not None:
            raise ValueError("dataset= has the inputs of a classifier, and there is none; give classifier=")
        if chosen.autocast is not None:
            raise ValueError("autocast= is the precision of a classifier, and there is none; give classifier=")
        source = TaskSource(tensors(data), None, chosen.loader, torch.device(chosen.device or "cpu"))
        return Problem(Model(program, twin.hyperparameters), twin, data, source, None, chosen)
    classifier = TorchClassifier(prior.by, chosen.autocast)
    source = TaskSource(tensors(data), chosen.dataset, chosen.loader, _device(classifier, chosen.device))
    _try_out(classifier, source)
    return Problem(
        Model(program, {**twin.hyperparameters, "truth_prior": classifier}),
        Model(twin.story, {**twin.hyperparameters, "truth_prior": GivenByTorch(by=classifier)}),
        data.replace(prior=jnp.full((data.n_tasks, data.n_classes), 1 / data.n_classes)),  # until it has run
        source,
        classifier,
        chosen,
    )


def _refuse_unknown(program: Callable[..., None], twin: Model) -> None:
    """Refuse hyperparameters that the Pyro program does not have.

    Raises:
        StoryError: there is one.
    """
    parameters = inspect.signature(program).parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    for name, value in twin.hyperparameters.items():
        if name not in parameters:
            story = getattr(twin.story, "__name__", repr(twin.story))
            raise StoryError(f"{story} in Pyro has no {name}= (given {value!r}); fit with backend='numpyro'")


def _try_out(classifier: TorchClassifier, source: TaskSource) -> None:
    """Run the classifier on the first few tasks.

    Raises:
        StoryError: there is nothing to look at, or it does not give logits.
    """
    annotations = source.annotations
    if source.dataset is None and annotations.features is None:
        classifier(annotations)
    inputs = next(iter(source.inputs(min(FEW, annotations.n_tasks))))
    classifier.check(inputs, min(FEW, annotations.n_tasks), annotations.n_classes)


def _device(classifier: TorchClassifier, asked: str | torch.device | None) -> torch.device:
    if asked is None:
        return classifier.device
    device = torch.device(asked)
    where = classifier.device
    if where.type != device.type or device.index not in (None, where.index):
        raise StoryError(
            f"the classifier's weights are on {str(where)!r}, and device={str(device)!r} was asked for; move "
            f"them there with module.to({str(device)!r}), or leave out device"
        )
    return where


def to_arrays(parameters: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
    """Return parameters as arrays."""
    return {name: value.detach().cpu().numpy().copy() for name, value in parameters.items()}
