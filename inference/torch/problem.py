"""A story with its data, its torch classifier and the classifier's inputs: what the engines of this room get."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from ...data import Annotations
from ...models import Classifier, StoryError
from ...models.parts.truth import needed_features
from ..densities.enumerated import Parameters
from ..densities.model import Model
from ..engines import em
from ..engines.minibatch_em import refuse_batches_of_one
from .module_classifier import CHUNK, GivenByTorch, TorchClassifier, as_inputs
from .torch_options import TorchOptions, refuse_unused_options

FEW = 16  # tasks on which a classifier is tried before anything runs
OURS = ("batch_sampler", "batch_size", "dataset", "drop_last", "sampler", "shuffle")  # of a DataLoader's arguments


class TaskInputs:
    """The classifier's input of each task.

    Args:
        annotations: whose features they are, unless there is a dataset.
        dataset: the input of each task, in the order of ``annotations.tasks``.
        loader: arguments of its DataLoader.

    Raises:
        StoryError: there are neither features nor a dataset.
        ValueError: the dataset has not as many items as there are tasks, or an argument of the loader is ours to set.
    """

    def __init__(self, annotations: Annotations, dataset: Dataset | None, loader: Mapping[str, Any] | None) -> None:
        self.n_tasks, self.dataset, self.loader = annotations.n_tasks, dataset, dict(loader or {})
        if dataset is None:
            instead = ", or dataset=, a torch Dataset of the tasks"
            self.features = as_inputs(needed_features(annotations, "the classifier", instead))
            return
        n_items = len(dataset)  # type: ignore[arg-type]
        if n_items != self.n_tasks:
            raise ValueError(
                f"the dataset has {n_items} items, the annotations {self.n_tasks} tasks; "
                "item i must be the x of annotations.tasks[i], also of tasks without annotations"
            )
        for name in OURS:
            if name in self.loader:
                raise ValueError(
                    f"loader has {name!r}, which crowdppl sets; batch_size is an option of fit, and tasks are shuffled"
                )

    def batches(self, chosen: Sequence[np.ndarray], seed: int = 0) -> Iterator[Any]:
        """Inputs of the tasks ``chosen``, positions by batch; ``seed`` is that of the workers that load them."""
        if self.dataset is None:
            return (self.features[torch.as_tensor(np.array(which)).long()] for which in chosen)
        generator = torch.Generator().manual_seed(seed)
        order = [which.tolist() for which in chosen]
        return iter(DataLoader(self.dataset, batch_sampler=order, **{"generator": generator, **self.loader}))

    def all_tasks(self) -> Iterator[Any]:
        """Inputs of all tasks, in their order, some at a time."""
        return self.batches(np.array_split(np.arange(self.n_tasks), range(CHUNK, self.n_tasks, CHUNK)))


@dataclass(frozen=True)
class Problem:
    """A story to fit.

    Args:
        model: the story; where there is a classifier its truth prior is given by that.
        data: the annotations, with JAX's arrays.
        classifier: the torch module that is the truth's prior, where there is one.
        inputs: what it sees of the tasks.
        options: the user's.
    """

    model: Model
    data: Annotations
    classifier: TorchClassifier | None
    inputs: TaskInputs | None
    options: TorchOptions

    @property
    def module(self) -> torch.nn.Module | None:
        """The classifier's module."""
        return None if self.classifier is None else self.classifier.module

    @property
    def device(self) -> torch.device:
        """The device of the classifier's weights."""
        return torch.device("cpu") if self.classifier is None else self.classifier.device

    def with_probabilities(self) -> Annotations:
        """The data with the classifier's current probabilities as prior of the true labels."""
        if self.classifier is None or self.inputs is None:
            return self.data
        probabilities = self.classifier.probabilities(self.inputs.all_tasks(), self.data.n_classes)
        return self.data.replace(prior=jnp.asarray(probabilities))

    def log_prior(self, inputs: Any, n_tasks: int, *, train: bool) -> Tensor | None:
        """The classifier's log-probabilities of ``n_tasks`` tasks with these inputs, ``(n, K)``; None without one."""
        if self.classifier is None:
            return None
        return self.classifier.log_probs(inputs, n_tasks, self.data.n_classes, train=train)

    def start(self, key: jax.Array, *, perturbed: bool = False) -> Parameters:
        """The start of EM: the parameters after the M-step towards the soft majority vote."""
        return em.init(self.model, self.with_probabilities(), key, perturbed=perturbed).parameters

    def check_batches(self, size: int) -> None:
        """Refuse what cannot be trained in batches of ``size``.

        Raises:
            ValueError: a batch of one with batch norm.
        """
        normalises = self.classifier is not None and self.classifier.normalises_batches
        refuse_batches_of_one(size, normalises=normalises, instead="a module with nn.GroupNorm or nn.LayerNorm")

    def fixed(self) -> dict[str, np.ndarray]:
        """The values without a posterior: the classifier's weights."""
        return {} if self.classifier is None else self.classifier.state()


def make(model: Model, data: Annotations, method: str, options: Mapping[str, Any]) -> Problem:
    """A problem, whose classifier has been tried on a few tasks.

    Args:
        model: the story; a torch module is there as ``truth_prior=GivenByTorch(…)``.
        data: the annotations.
        method: name of the engine.
        options: the user's, by the names of :class:`.torch_options.TorchOptions`.

    Raises:
        ValueError: an option would be ignored, or the dataset's length is not the number of tasks.
        StoryError: the classifier is on another device than asked for, has nothing to look at, gives no logits, or is a
            network of JAX's that is to be trained.
    """
    chosen = TorchOptions(**options)
    prior: Any = model.hyperparameters.get("truth_prior")
    data = jax.tree.map(jnp.asarray, data)
    has_module = isinstance(prior, GivenByTorch)
    refuse_unused_options(chosen, method, has_module=has_module)
    if isinstance(prior, Classifier) and method != "em":
        _check_network(prior, method)
    if not has_module:
        return Problem(model, data, None, None, chosen)
    classifier: TorchClassifier = prior.by
    classifier.autocast = chosen.autocast
    _check_device(classifier, chosen.device)
    inputs = TaskInputs(data, chosen.dataset, chosen.loader)
    n = min(FEW, data.n_tasks)
    classifier.check(next(inputs.batches([np.arange(n)])), n, data.n_classes)
    # even ones until the classifier has run
    even = jnp.full((data.n_tasks, data.n_classes), 1 / data.n_classes)
    return Problem(model, data.replace(prior=even), classifier, inputs, chosen)


def _check_network(classifier: Classifier, method: str) -> None:
    """Refuse a network of JAX's that Pyro's engines would not train as it asks for."""
    drops = isinstance(classifier.network, str) and classifier.dropout > 0 and method == "svi"
    if classifier.is_network and (not classifier.has_posterior or drops):
        lacks = "switches units off in training" if classifier.has_posterior else "has weights without a prior"
        raise StoryError(
            f"classifier={classifier!r} {lacks}, and method={method!r} with backend='pyro' samples its weights and "
            "trains none: give it dropout=0.0 and a prior, as in cp.Classifier('mlp', dropout=0.0, prior=1.0), a "
            "torch.nn.Module, which is trained, or leave out backend"
        )


def _check_device(classifier: TorchClassifier, asked: str | torch.device | None) -> None:
    if asked is None:
        return
    device, where = torch.device(asked), classifier.device
    if where.type != device.type or device.index not in (None, where.index):
        raise StoryError(
            f"the classifier's weights are on {str(where)!r}, and device={str(device)!r} was asked for; move "
            f"them there with module.to({str(device)!r}), or leave out device"
        )
