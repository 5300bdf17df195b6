r"""Any torch module as prior of the true labels: :math:`z_i \sim \text{Categorical}(\text{softmax}(f_w(x_i)))`."""

import copy
import dataclasses
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import torch
from jax import Array
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.data import DataLoader, Dataset

from ...data import Annotations
from ...models import StoryError
from ...models.parts.classifier import refuse_probabilities
from ...models.parts.kernels import safe_log
from ...models.parts.truth_prior import ClassPrior
from .dlpack import home

NAME = "classifier"  # of the weights, in a fit
CHUNK = 256  # tasks whose probabilities are taken at a time


class TorchClassifier:
    """A torch module that gives logits ``(n, K)``, whose probabilities are the prior of the true labels.

    A copy of the module is kept, so that what is trained is the fit's and starts from the weights that the module has
    now.

    Args:
        module: called with features ``(n, ...)``; with the entries by keyword where an input is a mapping. It returns
            logits, or something that has them as ``.logits``.
        autocast: precision of its forward pass, such as ``torch.bfloat16``; None for that of the weights.

    Raises:
        StoryError: it is no module.
    """

    def __init__(self, module: nn.Module, autocast: torch.dtype | None = None) -> None:
        if not isinstance(module, nn.Module):
            raise StoryError(
                f"classifier={module!r}: backend='pyro' takes a torch.nn.Module from features to logits, such as "
                "torch.nn.Linear(n_features, n_classes); give one, or leave out backend"
            )
        self.module = copy.deepcopy(module)
        self.autocast = autocast

    def __repr__(self) -> str:
        n_weights = sum(weight.numel() for weight in self.module.parameters())
        return f"TorchClassifier({type(self.module).__name__} of {n_weights:,} weights)"

    @property
    def device(self) -> torch.device:
        """The device of its weights; the CPU for a module without any."""
        return next((p.device for p in self.module.parameters()), torch.device("cpu"))

    @property
    def is_linear(self) -> bool:
        """True for a logistic regression: a single layer, ``nn.Linear``."""
        return isinstance(self.module, nn.Linear)

    @property
    def normalises_batches(self) -> bool:
        """True where it has a layer of batch norm, which cannot learn from a single task."""
        return any(isinstance(part, _BatchNorm) for part in self.module.modules())

    def log_probs(self, inputs: Any, n_tasks: int, n_classes: int, *, train: bool = False) -> Tensor:
        """Log-probabilities of the classes of ``n_tasks`` tasks, ``(n, K)``, where JAX computes.

        Args:
            inputs: of the tasks, on any device.
            n_tasks: n.
            n_classes: K.
            train: run the module in training mode: dropout drops, batch norm normalises by the batch.

        Raises:
            StoryError: the logits are not ``(n, K)``.
        """
        self.module.train(train)
        logits = self.logits(inputs, n_tasks, n_classes)
        return torch.log_softmax(logits, dim=-1).to(home())

    def logits(self, inputs: Any, n_tasks: int, n_classes: int, weights: Mapping[str, Tensor] | None = None) -> Tensor:
        """The module's logits ``(n, K)`` of inputs on any device, checked, in torch's default precision.

        Args:
            inputs: of the tasks.
            n_tasks: n.
            n_classes: K.
            weights: by name, in the place of the module's own.
        """
        inputs = on(inputs, self.device)
        named, given = (inputs, ()) if isinstance(inputs, Mapping) else ({}, (inputs,))
        with nullcontext() if self.autocast is None else torch.autocast(self.device.type, dtype=self.autocast):
            out = torch.func.functional_call(self.module, dict(weights or {}), given, dict(named))
        logits = getattr(out, "logits", out)
        if not isinstance(logits, Tensor) or logits.shape != (n_tasks, n_classes):
            shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise StoryError(
                f"the classifier gives {shape} for {n_tasks} tasks of {n_classes} classes; logits of shape "
                f"(tasks, classes) = {(n_tasks, n_classes)} are needed"
            )
        return logits.to(torch.get_default_dtype())

    def probabilities(self, batches: Iterator[Any], n_classes: int) -> np.ndarray:
        """Probabilities ``(n, K)`` of batches of inputs, on the CPU, in evaluation mode."""
        self.module.eval()
        here = (on(inputs, self.device) for inputs in batches)
        with torch.no_grad():
            parts = [
                torch.softmax(self.logits(inputs, size(inputs), n_classes), dim=-1).cpu().numpy() for inputs in here
            ]
        return np.concatenate(parts) if parts else np.zeros((0, n_classes), dtype=np.float32)

    def predict_proba(self, x: Any, n_classes: int) -> np.ndarray:
        """Probabilities of the classes, ``(n, K)``, of a dataset's items or of features ``(n, ...)``."""
        if isinstance(x, Dataset):
            return self.probabilities(iter(DataLoader(x, batch_size=CHUNK)), n_classes)
        features = as_inputs(x)
        return self.probabilities(iter(features.split(CHUNK)) if len(features) else iter(()), n_classes)

    def check(self, inputs: Any, n_tasks: int, n_classes: int) -> None:
        """Look at what the module gives for a few tasks.

        Raises:
            StoryError: it does not take the inputs, gives another shape than logits have, or probabilities.
        """
        self.module.eval()
        try:
            with torch.no_grad():
                logits = self.logits(inputs, n_tasks, n_classes)
        except RuntimeError as error:
            shape = "" if isinstance(inputs, Mapping) else f", of shape {tuple(np.shape(inputs))}"
            usual, own = torch.get_default_dtype(), next((w.dtype for w in self.module.parameters()), None)
            mend = "give a module from such inputs to logits"
            if own is not None and own.is_floating_point and own is not usual and self.autocast is None:
                mend = f"its weights are {own}, and inputs {usual}: give module.to({usual})"
            said = str(error).rstrip(".")
            raise StoryError(
                f"the classifier does not take the tasks' inputs{shape}, one row a task: {said}; {mend}"
            ) from error
        refuse_probabilities(to_array(logits))

    def state(self) -> dict[str, np.ndarray]:
        """Weights and running statistics by site, ``classifier.…``, as arrays."""
        return {f"{NAME}.{name}": to_array(value) for name, value in self.module.state_dict().items()}

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Take weights and running statistics as :meth:`state` gave them.

        Raises:
            StoryError: they are of another module.
        """
        own = self.module.state_dict()
        theirs = {name.removeprefix(f"{NAME}."): value for name, value in state.items()}
        for name in sorted(own.keys() | theirs.keys()):
            here, there = (tuple(np.shape(s[name])) if name in s else "none" for s in (own, theirs))
            if here != there:
                raise StoryError(f"these are the weights of another module: {name!r} has shape {there}, {here} here")
        self.module.load_state_dict({name: torch.as_tensor(np.array(value)) for name, value in theirs.items()})


@dataclass(frozen=True)
class GivenByTorch(ClassPrior):
    """Probabilities of each task's classes that a torch module gives: a truth prior that learns outside of the story.

    A story reads them from ``annotations.prior``; while the module is trained these are logarithms, along which the
    module takes the slope of the story's density. New tasks are the module's own to predict.

    Args:
        by: the classifier.
        is_network: whether it is more than a logistic regression.
        logarithms: whether ``annotations.prior`` holds logarithms.
    """

    by: Any = field(default=None, compare=False)  # so that compiled engines are shared
    is_network: bool = field(default=True, repr=False)
    logarithms: bool = field(default=False, repr=False)

    kind: ClassVar[str] = "torch"
    by_task: ClassVar[bool] = True
    learns: ClassVar[bool] = True

    def __call__(self, annotations: Annotations) -> Array:
        """Log-probabilities of the classes of each task, ``(N, K)``.

        Raises:
            StoryError: there are none.
        """
        if annotations.prior is None:
            raise StoryError(
                "the truth prior is a torch module, and nobody has given its probabilities; give "
                "annotations.replace(prior=probabilities), tasks × classes"
            )
        return annotations.prior if self.logarithms else safe_log(annotations.prior)

    def in_logarithms(self) -> Self:
        """The prior that reads logarithms."""
        return dataclasses.replace(self, logarithms=True)

    def predict_proba(
        self, x: Any, n_classes: int, draws: Mapping[str, Any] | None = None, fixed: Mapping[str, Any] | None = None
    ) -> np.ndarray:
        """Probabilities of the classes ``(n, K)`` of a dataset's items or of features ``(n, ...)``."""
        return self.by.predict_proba(x, n_classes)

    def restored(self, weights: Mapping[str, np.ndarray], annotations: Annotations) -> Self:
        """The prior, with the weights loaded into its module.

        Raises:
            StoryError: they are another module's.
        """
        self.by.load(dict(weights))
        return self

    def to_json(self) -> dict[str, Any]:
        """Return its kind alone: a file has the module's weights elsewhere."""
        return {"kind": self.kind}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any], network: Any = None) -> Self:
        """The prior, with a classifier of the module ``network``; :meth:`restored` gives it its weights.

        Raises:
            StoryError: no module is given, or what is given is none.
        """
        if network is None:
            raise StoryError(
                "the classifier is a torch module, of which the file has the weights alone; give the module: "
                "classifier=module"
            )
        classifier = network if isinstance(network, TorchClassifier) else TorchClassifier(network)
        return cls(classifier, not classifier.is_linear)


def to_array(value: Tensor) -> np.ndarray:
    """A tensor's values; of a precision that NumPy does not have as float32."""
    value = value.detach().cpu()
    return (value.float() if value.dtype is torch.bfloat16 else value).numpy().copy()


def on(inputs: Any, device: torch.device | str | None) -> Any:
    """Inputs of a batch, moved: a tensor, a mapping, or the only entry of a tuple, as ``TensorDataset`` gives it.

    Raises:
        StoryError: they are a tuple of several, so that x is ambiguous.
    """
    if isinstance(inputs, Mapping):
        return {name: on(value, device) for name, value in inputs.items()}
    if isinstance(inputs, tuple | list):
        if len(inputs) != 1:
            raise StoryError(
                f"each item of the dataset is a tuple of {len(inputs)}; it must be the task's x alone: a tensor, or a "
                "mapping of tensors for a module that takes keywords"
            )
        return on(inputs[0], device)
    if isinstance(inputs, Tensor):
        return inputs.to(device, torch.get_default_dtype() if inputs.dtype is torch.float64 else None)
    return inputs


def as_inputs(features: Any) -> Tensor:
    """Features as a tensor, real numbers in torch's default precision."""
    tensor = features if isinstance(features, Tensor) else torch.as_tensor(np.array(features))
    return tensor.to(torch.get_default_dtype()) if tensor.is_floating_point() else tensor


def size(inputs: Any) -> int:
    """Return the number of tasks of a batch of inputs."""
    return size(next(iter(inputs.values()))) if isinstance(inputs, Mapping) else len(inputs)
