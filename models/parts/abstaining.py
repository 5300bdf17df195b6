r"""Annotations that are no class: how often each worker abstains, beneath whatever a story says of the others.

.. math::
    r_{jk} &\sim \text{Dirichlet}(1, \dots, 1) & (J, K, 1 + L - K) \\
    P(y_a = l \mid z_i = k) &= r_{jk0} \, P_\text{story}(y_a = l \mid z_i = k), \quad l < K & (A) \\
    P(y_a = l \mid z_i = k) &= r_{jk, 1 + l - K}, \quad l \geq K

Where abstentions are informative the rate may depend on the true class, as where a labelling function abstains from
most of what is no spam; else it is one of each worker, which cancels in the labels' posterior. A confusion matrix
:math:`(K, L)` whose rows are Dirichlet is the same: a Dirichlet row is the product of a Dirichlet row of its classes,
scaled to one, and of the Dirichlet shares of all classes together and of each abstention. So no story has abstentions
of its own.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax import Array

from ...data import Annotations
from .emissions import Emission
from .kernels import SMALLEST, rows_of, sum_by_task
from .story_error import StoryError

SITE = "abstention"
"""The site of the rates: of the classes together, and of each abstention."""

DIM = "abstaining"
"""The name of its last dimension, of length 1 + L − K."""

_rates: ContextVar[Array | None] = ContextVar("rates", default=None)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Abstaining(Emission):
    r"""Workers abstain at a rate by true class; what they annotate where they do not follows another emission.

    Args:
        emission: of the K classes.
        rate: :math:`r`, of the classes together and of each abstention, rows sum to one: ``(J, K, 1 + L - K)``; or
            ``(1, K, 1 + L - K)`` for all workers alike.
    """

    emission: Emission
    rate: Array

    @property
    def independent(self) -> bool:  # type: ignore[override]  # as of the emission beneath
        """True where the annotations to a task are independent given its class."""
        return self.emission.independent

    @property
    def n_classes(self) -> int:
        """K."""
        return self.rate.shape[-2]

    def probs(self, worker: Array | None, task: Array) -> Array:
        """All categories of annotations of each pair: ``(A, K, L)``."""
        rate = jnp.asarray(self.rate)[self._row(worker, task)]
        return jnp.concatenate([rate[..., :1] * self.emission.probs(worker, task), rate[..., 1:]], axis=-1)

    def log_prob(self, worker: Array | None, task: Array, annotation: Array) -> Array:
        """Of the rate alone where the annotation is an abstention: ``(A, K)``, or as the emission beneath has it."""
        is_class = annotation < self.n_classes
        score = self.emission.log_prob(worker, task, jnp.where(is_class, annotation, 0))
        to_rows = (-1,) + (1,) * (score.ndim - 1)
        own = self.rate_scores(worker, task, annotation)
        return jnp.where(is_class.reshape(to_rows), score, 0.0) + own.reshape(own.shape + (1,) * (score.ndim - 2))

    def by_task(self, annotations: Annotations, annotation: Array) -> Array:
        """Of the annotations that are classes by the emission beneath, and of all by the rates: ``(N, K)``."""
        given, label = of_classes(annotations, annotation)
        return self.emission.by_task(given, label) + self.rates_by_task(annotations, annotation)

    def rates_by_task(self, annotations: Annotations, annotation: Array) -> Array:
        """Return the log-weights of each task's classes by who abstained and who did not: ``(N, K)``."""
        return sum_by_task(self.rate_scores(annotations.worker, annotations.task, annotation), annotations)

    def rate_scores(self, worker: Array | None, task: Array, annotation: Array) -> Array:
        """Log-probability that an annotation is a class, or which abstention it is: ``(A, K)``."""
        n_workers, n_classes, n_outcomes = self.rate.shape
        log_rate = jnp.log(jnp.maximum(self.rate, SMALLEST))
        columns = log_rate.swapaxes(-1, -2).reshape(n_workers * n_outcomes, n_classes)
        outcome = jnp.maximum(annotation - n_classes + 1, 0)
        return rows_of(columns, self._row(worker, task) * n_outcomes + outcome)

    def probs_given(self, worker: Array | None, task: Array, truth: Array) -> Array:
        """Of all categories of annotations under one true class a row: ``(A, L)``."""
        rate = jnp.asarray(self.rate)[self._row(worker, task), truth]
        return jnp.concatenate([rate[..., :1] * self.emission.probs_given(worker, task, truth), rate[..., 1:]], axis=-1)

    def sample(self, key: Array, worker: Array | None, task: Array, truth: Array) -> Array:
        """One annotation a row, ``(A,)``: whether it is a class, and if so which, as the emission beneath draws it."""
        abstention_key, annotation_key = jax.random.split(key)
        rate = jnp.asarray(self.rate)[self._row(worker, task), truth]
        outcome = jax.random.categorical(abstention_key, jnp.log(jnp.maximum(rate, SMALLEST)))
        label = self.emission.sample(annotation_key, worker, task, truth)
        return jnp.where(outcome == 0, label, self.n_classes - 1 + outcome).astype(label.dtype)

    def over_classes(self, wrap: Callable[[Emission], Emission]) -> "Abstaining":
        """Return the rates over ``wrap`` of the emission beneath."""
        return replace(self, emission=self.emission.over_classes(wrap))

    def tempered(self, power: Array | float) -> "Abstaining":
        """Return the rates over the emission beneath to the power."""
        return replace(self, emission=self.emission.tempered(power))

    def further(self, annotations: Annotations, annotation: Array) -> Emission | None:
        """Return the rates over the emission beneath, given the annotations that are classes."""
        beneath = self.emission.further(*of_classes(annotations, annotation))
        return None if beneath is None else replace(self, emission=beneath)

    def difficulties(self, annotations: Annotations, annotation: Array, posterior: Array) -> Array | None:
        """By the annotations that are classes, as the emission beneath has them."""
        return self.emission.difficulties(*of_classes(annotations, annotation), posterior)

    def confusions(self, annotations: Annotations) -> Array:
        """Each worker's confusion matrix with its columns of abstentions: ``(J, K, L)``."""
        table = self.emission.confusions(annotations)
        rate = jnp.broadcast_to(self.rate, (table.shape[0], *self.rate.shape[1:]))
        return jnp.concatenate([rate[..., :1] * table, rate[..., 1:]], axis=-1)

    def _row(self, worker: Array | None, task: Array) -> Array:
        """Which worker's rate each row has, ``(A,)``."""
        if worker is None or self.rate.shape[0] == 1:
            return jnp.zeros(jnp.shape(task), jnp.int32)
        return jnp.asarray(worker)


def of_classes(annotations: Annotations, annotation: Array) -> tuple[Annotations, Array]:
    """The annotations with a count of 0 for each abstention, and labels with a class in its place.

    Args:
        annotations: who annotated what.
        annotation: of each row a kind, ``(A,)``.

    Returns:
        the same two where there are no abstentions.
    """
    if not annotations.abstains:
        return annotations, annotation
    is_class = annotation < annotations.n_classes
    count = jnp.where(is_class, 1.0 if annotations.count is None else annotations.count, 0.0)
    counted = {"once": False} if hasattr(annotations, "once") else {}  # padded rows of real tasks have weights now
    return annotations.replace(count=count, **counted), jnp.where(is_class, annotation, 0)


def sample_rates(annotations: Annotations) -> Array | None:
    """Sample the site ``abstention``, ``(J, K, 1 + L - K)``, or ``(J, 1 + L - K)`` where abstentions say nothing.

    Where no worker is named all have one rate, without the dimension J.

    Returns:
        the rates of each worker and class, ``(J or 1, K, 1 + L - K)``; None where there are no abstentions.
    """
    if not annotations.abstains:
        return None
    n_classes, n_outcomes = annotations.n_classes, 1 + annotations.n_categories - annotations.n_classes
    by_class, by_worker = annotations.informative, annotations.worker is not None
    plates = [numpyro.plate(f"class.{SITE}", n_classes, dim=-1)] if by_class else []
    if by_worker:
        plates.insert(0, numpyro.plate(f"worker.{SITE}", annotations.n_workers, dim=-2 if by_class else -1))
    rate = _sampled_in(plates, dist.Dirichlet(jnp.ones(n_outcomes)))
    rate = rate if by_class else rate[..., None, :]
    rate = rate if by_worker else rate[None]
    return jnp.broadcast_to(rate, (rate.shape[0], n_classes, n_outcomes))


def _sampled_in(plates: list[numpyro.plate], prior: dist.Distribution) -> Array:
    if not plates:
        return numpyro.sample(SITE, prior, infer={"event_dims": [DIM]})
    with plates[0]:
        return _sampled_in(plates[1:], prior)


@contextmanager
def with_rates(rates: Array | None) -> Iterator[None]:
    """Keep the rates for the emission that the block observes."""
    token = _rates.set(rates)
    try:
        yield
    finally:
        _rates.reset(token)


def with_abstentions(emission: Emission, annotations: Annotations) -> Emission:
    """The emission of a story with the rates of abstention over it, where there are abstentions.

    Raises:
        StoryError: the plate ``task`` was not opened by :func:`crowdppl.tasks`, which samples the rates.
    """
    if not annotations.abstains:
        return emission
    rates = _rates.get()
    if rates is None:
        raise StoryError(
            "the annotations have abstentions, and their rates are sampled by cp.tasks: open the plate 'task' with "
            "cp.tasks(annotations, truth_prior) as truth, or leave the abstentions out by annotations.of_classes()"
        )
    return emission.wrapped(lambda inner: Abstaining(inner, rates))
