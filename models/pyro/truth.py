"""The true labels: their prior, the evidence about them, and the plate they live in."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import pyro
import pyro.distributions as dist
import torch
from numpyro.primitives import Messenger
from pyro.distributions import TorchDistribution
from torch import Tensor
from torch.distributions import constraints

from ...data import Annotations
from ..parts.abstaining import refuse_abstentions
from ..parts.scored_annotations import classifier_needed
from ..parts.story_error import StoryError
from ..parts.truth_prior import FixedPrevalence, Given, Prevalence, by_name
from .classifier import TorchClassifier
from .emissions import Emission, safe_log
from .responses import Responses, Size, select
from .tensors import tensor

TruthPrior = Prevalence | FixedPrevalence | Given | Callable[[Annotations], Tensor] | Sequence[float] | str
"""What NumPyro's stories take too, or a function of the annotations to log-probabilities ``(K,)`` or ``(N, K)``."""


class Truth(TorchDistribution):
    r"""True classes :math:`z_i \sim \text{Categorical}(e^{\text{log_probs}_i})` of the tasks, ready to be enumerated.

    Args:
        log_probs: ``(K,)`` for one prevalence, ``(N, K)`` for a prior by task; not normalised again, so that
            gradients with respect to tables are expected counts.
    """

    arg_constraints: ClassVar[dict] = {}
    has_enumerate_support = True

    def __init__(
        self, log_probs: Tensor, n_tasks: int, shape: tuple[int, ...] = (), *, validate_args: bool | None = None
    ) -> None:
        self.log_probs = log_probs if log_probs.ndim >= 2 else log_probs[None]
        lead = torch.broadcast_shapes(tuple(shape), self.log_probs.shape[:-2])  # of particles
        super().__init__(torch.Size([*lead, n_tasks]), validate_args=validate_args)

    def expand(self, batch_shape: Size, _instance: object = None) -> "Truth":
        """The same tasks, as many times as asked for."""
        if torch.Size(batch_shape) == self.batch_shape:
            return self
        return Truth(self.log_probs, batch_shape[-1], tuple(batch_shape[:-1]), validate_args=False)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """The classes, 0 to K − 1."""
        return constraints.integer_interval(0, self.log_probs.shape[-1] - 1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All classes, ``(K, 1)``, with a one for each dimension of particles too, or ``(K, N)`` where expanded."""
        classes = torch.arange(self.log_probs.shape[-1], device=self.log_probs.device)
        classes = classes.reshape(-1, *[1] * len(self.batch_shape))
        return classes.expand(-1, *self.batch_shape) if expand else classes

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-probability of the classes ``value (..., N)``, or ``(..., 1)`` where enumerated."""
        if (
            self.log_probs.ndim == 2 and len(self.log_probs) == 1 and value.shape[-1:] == (1,)
        ):  # one prior, and a class that is the same for all
            return self.log_probs[0][value].expand(torch.broadcast_shapes(value.shape, self.batch_shape))
        *lead, _, n_classes = self.log_probs.shape
        scores = select(self.log_probs.expand(*lead, self.batch_shape[-1], n_classes), value)
        return scores.expand(torch.broadcast_shapes(scores.shape, self.batch_shape))

    def sample(self, sample_shape: Size = ()) -> Tensor:
        """Classes of all tasks: ``sample_shape + (N,)``."""
        shape = torch.Size(sample_shape) + self.batch_shape
        return torch.distributions.Categorical(logits=self.log_probs.expand(*shape, -1)).sample()


@contextmanager
def tasks(annotations: Annotations, truth_prior: TruthPrior | Tensor | None = None) -> Iterator[Tensor]:
    """The plate ``task``, and in it the site ``truth``: the true class of each task, which engines enumerate.

    Evidence about single tasks (``annotations.evidence``, log-weights ``(N, K)``) is added as the factor ``evidence``.
    A batch that stands for a larger population is scaled up to it.

    Args:
        truth_prior: a prior, or what :func:`class_log_probs` made of one where the story needs it elsewhere too; a
            :class:`.Prevalence` by default.
    """
    log_probs = class_log_probs(annotations, truth_prior)
    n_tasks = annotations.n_tasks
    here = torch.arange(n_tasks, device=log_probs.device)  # given, or Pyro would shuffle the whole population
    with pyro.plate("task", annotations.population or n_tasks, subsample=here, dim=-1):
        truth = pyro.sample("truth", Truth(log_probs, n_tasks), infer={"enumerate": "parallel"})
        if annotations.evidence is not None:
            pyro.factor("evidence", select(annotations.evidence, truth))
        yield truth


def class_log_probs(annotations: Annotations, truth_prior: TruthPrior | Tensor | None = None) -> Tensor:
    """Prior log-probabilities of the true classes, ``(K,)`` or ``(N, K)``; of a :class:`.Prevalence` by default.

    Raises:
        StoryError: the prior is a function that samples sites with NumPyro.
    """
    prior: Any = by_name(Prevalence() if truth_prior is None else truth_prior, annotations)
    if isinstance(prior, FixedPrevalence):
        return safe_log(tensor(prior.by_class(annotations)).to(annotations.task.device))
    if isinstance(prior, Prevalence):
        concentration = tensor(prior.by_class(annotations)).to(annotations.task.device)
        return safe_log(pyro.sample("prevalence", dist.Dirichlet(concentration)))
    if isinstance(prior, Given):
        return safe_log(prior.probabilities(annotations))
    if not callable(prior):
        return prior
    with _NoNumPyro(prior):
        return prior(annotations)


class _NoNumPyro(Messenger):
    """Refuses sites that a truth prior samples with NumPyro, of which Pyro would know nothing."""

    def __init__(self, prior: Callable[..., Any]) -> None:
        super().__init__()
        self.prior = prior

    def process_message(self, msg: dict[str, Any]) -> None:
        if msg["type"] != "sample":
            return
        raise StoryError(
            f"truth_prior={getattr(self.prior, '__name__', repr(self.prior))} samples the site {msg['name']!r} with "
            "NumPyro: fit with backend='numpyro', or write a story of your own that samples it, and its Pyro program "
            "by crowdppl.models.pyro.twin_of"
        )


def differs_by_task(truth_prior: TruthPrior | Tensor | None, annotations: Annotations) -> bool:
    """Whether the prior's log-probabilities are ``(N, K)``, one row a task; no site is sampled to find out."""
    truth_prior = by_name(truth_prior, annotations)
    if truth_prior is None or isinstance(truth_prior, Prevalence | FixedPrevalence):
        return False
    if isinstance(truth_prior, Given | TorchClassifier):
        return True
    with pyro.poutine.block():
        return class_log_probs(annotations, truth_prior).ndim == 2


def by_classifier(story: str, annotations: Annotations, truth_prior: TruthPrior | Tensor | None) -> Tensor:
    """Log-probabilities of the classes by task, ``(N, K)``, of a story that learns nothing of labels without them.

    Raises:
        StoryError: tasks do not differ in them.
    """
    log_probs = None if truth_prior is None else class_log_probs(annotations, truth_prior)
    if log_probs is None or log_probs.ndim != 2:
        raise StoryError(classifier_needed(story))
    return log_probs


def observe(truth: Tensor, emission: Emission, annotations: Annotations) -> Tensor:
    """The site ``annotation``: what the workers annotated, observed, or drawn where ``annotations.label`` is None.

    Raises:
        StoryError: there are abstentions.
    """
    refuse_abstentions(annotations)
    return pyro.sample("annotation", Responses(truth, emission, annotations), obs=annotations.label)
