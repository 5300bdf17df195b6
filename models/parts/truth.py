"""The true labels: their prior, the evidence about them, and the plate they live in."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array
from numpyro.distributions import Distribution, constraints

from ...data import Annotations
from .emissions import SMALLEST, Emission
from .responses import Responses, select
from .story_error import StoryError

TruthPrior = Callable[[Annotations], Array]
"""A truth prior is called once, outside the plates, and returns log-probabilities ``(K,)`` or ``(N, K)``."""


class Truth(Distribution):
    r"""True classes :math:`z_i \sim \text{Categorical}(e^{\text{log_probs}_i})` of the tasks, ready to be enumerated.

    Args:
        log_probs: ``(K,)`` for one prevalence, ``(N, K)`` for a prior by task; not normalised again, so that
            gradients with respect to tables are expected counts.
    """

    arg_constraints: ClassVar[dict] = {"log_probs": constraints.independent(constraints.real, 1)}
    has_enumerate_support = True
    pytree_data_fields = ("log_probs",)

    def __init__(self, log_probs: Array, n_tasks: int, *, validate_args: bool | None = None) -> None:
        self.log_probs = jnp.atleast_2d(log_probs)  # one row for all tasks stays one: it is scored once
        super().__init__((n_tasks,), (), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        """The classes, 0 to K − 1."""
        return constraints.integer_interval(0, self.log_probs.shape[-1] - 1)

    def enumerate_support(self, expand: bool = True) -> Array:
        """All classes, ``(K, 1)``, or ``(K, N)`` where expanded."""
        classes = jnp.arange(self.log_probs.shape[-1])[:, None]
        return jnp.broadcast_to(classes, (len(classes), *self.batch_shape)) if expand else classes

    def log_prob(self, value: Array) -> Array:
        """Log-probability of the classes ``value (..., N)``, or ``(..., 1)`` where enumerated."""
        value = jnp.asarray(value)
        by_task = select(self.log_probs, value)
        return jnp.broadcast_to(by_task, jnp.broadcast_shapes(by_task.shape, self.batch_shape))

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Array:
        """Classes of all tasks: ``sample_shape + (N,)``."""
        return jax.random.categorical(key, self.log_probs, shape=sample_shape + self.batch_shape)


@dataclass(frozen=True)
class Prevalence:
    r"""One share of each class for all tasks, :math:`\rho \sim \text{Dirichlet}(\alpha)`: the site ``prevalence``.

    Args:
        concentration: :math:`\alpha`, one positive number, or one for each class ``(K,)``.
    """

    concentration: float | tuple[float, ...] = 1.0

    def __call__(self, annotations: Annotations) -> Array:
        """Sample the prevalence and return its logarithms, ``(K,)``."""
        prior = dist.Dirichlet(self.by_class(annotations))
        prevalence = numpyro.sample("prevalence", prior, infer={"event_dims": ["truth"]})
        return jnp.log(jnp.maximum(prevalence, SMALLEST))

    def by_class(self, annotations: Annotations) -> np.ndarray:
        """The concentration of each class, ``(K,)``.

        Raises:
            StoryError: it is not positive, or has another number of classes.
        """
        concentration = np.asarray(self.concentration, dtype=np.float32)
        if concentration.shape not in {(), (annotations.n_classes,)} or not (concentration > 0).all():
            raise StoryError(
                f"Prevalence(concentration={self.concentration}): give one positive number, "
                f"or one for each of the {annotations.n_classes} classes {list(annotations.classes)}"
            )
        return np.broadcast_to(concentration, (annotations.n_classes,))


@dataclass(frozen=True)
class Given:
    """Probabilities of each task's classes that are given from outside: ``annotations.prior``.

    ``crowdppl.fit(truth_prior=frame)`` makes it of a table tasks × classes.

    Args:
        by: the classifier that they are of, where it is one that NumPyro cannot run.
    """

    by: Any = field(default=None, compare=False)  # so that compiled engines are shared

    def __call__(self, annotations: Annotations) -> Array:
        """Logarithms of the given probabilities, ``(N, K)``."""
        return jnp.log(jnp.maximum(self.probabilities(annotations), SMALLEST))

    def probabilities(self, annotations: Annotations) -> Any:
        """The given probabilities, ``(N, K)``.

        Raises:
            StoryError: none are given.
        """
        if annotations.prior is None:
            raise StoryError("truth_prior=Given(): no probabilities are given; pass truth_prior=frame, tasks × classes")
        return annotations.prior


@contextmanager
def tasks(annotations: Annotations, truth_prior: TruthPrior | Array | None = None) -> Iterator[Array]:
    """The plate ``task``, and in it the site ``truth``: the true class of each task, which engines enumerate.

    Evidence about single tasks (gold labels, another model's probabilities: ``annotations.evidence``, log-weights
    ``(N, K)``) is added as the factor ``evidence``. A batch that stands for a larger population is scaled up to it.

    Args:
        truth_prior: a prior, or what :func:`class_log_probs` made of one where the story needs it elsewhere too; a
            :class:`Prevalence` by default.
    """
    log_probs = class_log_probs(annotations, truth_prior)
    n_tasks = annotations.n_tasks
    with numpyro.plate("task", annotations.population or n_tasks, subsample_size=n_tasks, dim=-1):
        truth = numpyro.sample("truth", Truth(log_probs, n_tasks), infer={"enumerate": "parallel"})
        if annotations.evidence is not None:
            numpyro.factor("evidence", select(annotations.evidence, truth))
        yield truth


def class_log_probs(annotations: Annotations, truth_prior: TruthPrior | Array | None = None) -> Array:
    """Prior log-probabilities of the true classes, ``(K,)`` or ``(N, K)``; of a :class:`Prevalence` by default.

    A story that needs them beside the truth calls this once, and gives what it got to :func:`tasks`.
    """
    if truth_prior is None:
        truth_prior = Prevalence()
    return truth_prior(annotations) if callable(truth_prior) else truth_prior


def observe(truth: Array, emission: Emission, annotations: Annotations) -> Array:
    """The site ``annotation``: what the workers annotated, observed, or drawn where ``annotations.label`` is None."""
    return numpyro.sample("annotation", Responses(truth, emission, annotations), obs=annotations.label)


def named_workers(annotations: Annotations) -> int:
    """How many workers there are.

    Raises:
        StoryError: where no worker is named, as in counts by task.
    """
    if annotations.worker is None:
        raise StoryError(
            "this story follows each worker, and the annotations name none; bring them with a worker column, or tell "
            "annotator_groups with membership='answer', which needs no names"
        )
    return annotations.n_workers


def two_classes(annotations: Annotations) -> None:
    """Do nothing where there are two classes.

    Raises:
        StoryError: there are others.
    """
    if annotations.n_classes != 2:
        raise StoryError(
            f"this story is of two classes, the annotations have {annotations.n_classes}: "
            f"{list(annotations.classes[:5])}; tell dawid_skene or one_coin"
        )
