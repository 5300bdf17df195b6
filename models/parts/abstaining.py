r"""Annotations that are no class: how often each worker abstains, beneath whatever a story says of the others.

.. math::
    r_{jk} &\sim \text{Dirichlet}(\eta_{jk}) & (J, K, 1 + L - K) \\
    P(y_a = l \mid z_i = k) &= r_{jk0} \, P_\text{story}(y_a = l \mid z_i = k), \quad l < K & (A) \\
    P(y_a = l \mid z_i = k) &= r_{jk, 1 + l - K}, \quad l \geq K

Where abstentions are informative the rate may depend on the true class, as where a labelling function abstains from
most of what is no spam. Its prior lies around the worker's own rate over all tasks, :math:`\bar r_j`, since a flat one
would say of a worker who abstains from 99 % of the tasks that it annotates the rare classes most:

.. math::
    \eta_{jkm} = \Big(\frac{1/2}{\min(\bar r_{j0}, 1 - \bar r_{j0})} + 0.3 \, u_j n_j\Big) \bar r_{jm} w_{jkm},
        \qquad w_{jk0} = \frac{\sum_{l < K} \bar y_{jl} c_{lk}}{\sum_{k'} s_{k'} \sum_{l < K} \bar y_{jl} c_{lk'}},
        \quad w_{jkm} = 1 \text{ else}

The first part counts like half of whichever the worker does more rarely, to annotate or to abstain, as in Jeffreys'
prior, so that few annotations decide. :math:`\bar y_j` are the worker's shares of the classes, and :math:`c_{lk}` is
0.8 where l is k and even over the others: who gives a class gives it more to its own tasks. How frequent these are,
:math:`s_k`, is the share of the class among the crowd's annotations, so that the rates over all tasks have the mean
:math:`\bar r_j`. Were all classes as frequent instead, tasks that nobody annotated would be of the class that workers
give least. Of a worker who gives one class alone only the rate can say that, and workers who share errors turn it
around. So it counts like 0.3 of the worker's :math:`n_j` annotations more, with :math:`u_j` the probability that the
worker gives one class alone (:func:`one_class_alone`), and labelling functions are told apart from people who happened
to meet one class. All of it follows from the annotations, as in empirical Bayes, so that the M-step of EM stays exact;
where there are none, as in simulation, :math:`\eta = 1`.

Where abstentions are not informative the rate is one of each worker, with a flat prior, and cancels in the labels'
posterior. A confusion matrix
:math:`(K, L)` whose rows are Dirichlet is the same: a Dirichlet row is the product of a Dirichlet row of its classes,
scaled to one, and of the Dirichlet shares of all classes together and of each abstention. So no story has abstentions
of its own.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax import Array

from ...data import Annotations
from .contract import StoryError, set_to
from .emissions import Emission, Over, columns_of
from .kernels import rows_of, safe_log, sum_by_task

SITE = "abstention"
"""The site of the rates: of the classes together, and of each abstention."""

DIM = "abstaining"
"""The name of its last dimension, of length 1 + L − K."""

RARER = 0.5  # of what a worker does more rarely, annotating or abstaining, that the prior of its rate counts like
RIGHT = 0.9  # how often one who gives one class alone is expected to be right, were all classes as frequent
ONE_CLASS = 0.3  # of such a worker's annotations, that this expectation counts like
USUALLY = 0.1  # the share of workers who are expected to be such
STRAY = 0.01  # of their annotations are of other classes

_rates: ContextVar[Array | None] = ContextVar("rates", default=None)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Abstaining(Over):
    r"""Workers abstain at a rate by true class; what they annotate where they do not follows another emission.

    Args:
        emission: of the K classes.
        rate: :math:`r`, of the classes together and of each abstention, rows sum to one: ``(J, K, 1 + L - K)``; or
            ``(1, K, 1 + L - K)`` for all workers alike.
    """

    emission: Emission
    rate: Array

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
        outcome = jnp.maximum(annotation - self.n_classes + 1, 0)
        return rows_of(columns_of(safe_log(self.rate)), self._row(worker, task) * self.rate.shape[-1] + outcome)

    def probs_given(self, worker: Array | None, task: Array, truth: Array) -> Array:
        """Of all categories of annotations under one true class a row: ``(A, L)``."""
        rate = jnp.asarray(self.rate)[self._row(worker, task), truth]
        return jnp.concatenate([rate[..., :1] * self.emission.probs_given(worker, task, truth), rate[..., 1:]], axis=-1)

    def sample(self, key: Array, worker: Array | None, task: Array, truth: Array) -> Array:
        """One annotation a row, ``(A,)``: whether it is a class, and if so which, as the emission beneath draws it."""
        abstention_key, annotation_key = jax.random.split(key)
        rate = jnp.asarray(self.rate)[self._row(worker, task), truth]
        outcome = jax.random.categorical(abstention_key, safe_log(rate))
        label = self.emission.sample(annotation_key, worker, task, truth)
        return jnp.where(outcome == 0, label, self.n_classes - 1 + outcome).astype(label.dtype)

    def over_classes(self, wrap: Callable[[Emission], Emission]) -> "Abstaining":
        """Return the rates over ``wrap`` of the emission beneath."""
        return replace(self, emission=self.emission.over_classes(wrap))

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
        """The position of the worker whose rate each row has, ``(A,)``."""
        if worker is None or self.rate.shape[0] == 1:
            return jnp.zeros(jnp.shape(task), jnp.int32)
        return jnp.asarray(worker)


def of_classes(annotations: Annotations, annotation: Array) -> tuple[Annotations, Array]:
    """The annotations with a count of 0 for each abstention, and labels with a class in its place.

    Args:
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


def sample_rates(annotations: Annotations) -> Array:
    """Sample the site ``abstention``, ``(J, K, 1 + L - K)``, or ``(J, 1 + L - K)`` where abstentions say nothing.

    Where no worker is named all have one rate, without the dimension J.

    Returns:
        the rates of each worker and class, ``(J or 1, K, 1 + L - K)``.
    """
    n_classes, n_outcomes = annotations.n_classes, 1 + annotations.n_categories - annotations.n_classes
    by_class, by_worker = annotations.informative, annotations.worker is not None
    plates = [numpyro.plate(f"class.{SITE}", n_classes, dim=-1)] if by_class else []
    if by_worker:
        plates.insert(0, numpyro.plate(f"worker.{SITE}", annotations.n_workers, dim=-2 if by_class else -1))
    rate = _sampled_in(plates, dist.Dirichlet(_concentration(annotations)))
    rate = rate if by_class else rate[..., None, :]
    rate = rate if by_worker else rate[None]
    return jnp.broadcast_to(rate, (rate.shape[0], n_classes, n_outcomes))


def _concentration(annotations: Annotations) -> Array:
    """The prior of the rates: ``(J, K, 1 + L - K)``, without J where no worker is named; else flat ``(1 + L - K,)``."""
    n_classes, n_categories = annotations.n_classes, annotations.n_categories
    if not annotations.informative or annotations.label is None:
        return jnp.ones(1 + n_categories - n_classes)
    counts = jnp.asarray(category_counts(annotations))
    smoothed = counts + jnp.where(jnp.arange(n_categories) < n_classes, RARER / n_classes, RARER)
    annotated, n = smoothed[:, :n_classes].sum(1), smoothed.sum(1)
    usual = jnp.where(jnp.eye(n_classes, dtype=bool), RIGHT, (1 - RIGHT) / max(n_classes - 1, 1))
    share = counts[:, :n_classes].sum(0) + 1  # of the classes, as the crowd gives them
    given = smoothed[:, :n_classes] @ usual  # (J, K), up to a factor of each worker
    given *= (annotated / (given @ (share / share.sum())))[:, None]
    abstained = jnp.broadcast_to(smoothed[:, None, n_classes:], (*given.shape, n_categories - n_classes))
    own = jnp.concatenate([given[..., None], abstained], -1) / n[:, None, None]
    weight = RARER * n / jnp.minimum(annotated, n - annotated) + ONE_CLASS * one_class_alone(counts[:, :n_classes]) * n
    concentration = weight[:, None, None] * own
    return concentration if annotations.named else concentration[0]


def category_counts(annotations: Annotations) -> Array:
    """Annotations by worker and category, ``(J, L)``; all workers together where none is named, ``(1, L)``."""
    if annotations.category_counts is not None:
        return annotations.category_counts
    n_workers, n_categories = max(annotations.n_workers, 1), annotations.n_categories
    label = jnp.asarray(annotations.label)
    cell = label if annotations.worker is None else jnp.asarray(annotations.worker) * n_categories + label
    count = jnp.ones(label.shape) if annotations.count is None else jnp.asarray(annotations.count)
    return jax.ops.segment_sum(count, cell, n_workers * n_categories).reshape(n_workers, n_categories)


def with_category_counts(annotations: Annotations) -> Annotations:
    """Return the annotations with what their parts need to have the prior of all of them, where they abstain."""
    return annotations.replace(category_counts=category_counts(annotations)) if annotations.abstains else annotations


def one_class_alone(counts: Array) -> Array:
    """The probability that a worker gives one class whatever the task, or abstains: ``(J,)``.

    It is that of a mixture of two kinds of workers, one in ten of whom gives one class but for 1 % of its annotations;
    the others give the classes as the crowd does. Four annotations of one of two equal classes say as much for the
    one as the share says for the other.

    Args:
        counts: of each worker's annotations by class, ``(J, K)``.
    """
    n_classes = counts.shape[-1]
    crowd = counts.sum(0) + 1
    alone = jnp.where(jnp.eye(n_classes, dtype=bool), 1 - STRAY, STRAY / max(n_classes - 1, 1))
    log_odds = counts @ (jnp.log(alone) - jnp.log(crowd / crowd.sum())).T
    return jax.nn.sigmoid(log_odds.max(-1) + jnp.log(USUALLY / (1 - USUALLY)))


def _sampled_in(plates: list[numpyro.plate], prior: dist.Distribution) -> Array:
    if not plates:
        return numpyro.sample(SITE, prior, infer={"event_dims": [DIM]})
    with plates[0]:
        return _sampled_in(plates[1:], prior)


def with_rates(rates: Array) -> AbstractContextManager[Any]:
    """Keep the rates for the emission that the block observes."""
    return set_to(_rates, rates)


def with_abstentions(emission: Emission) -> Emission:
    """The emission of a story with the rates of abstention over it.

    Raises:
        StoryError: the plate ``task`` was not opened by :func:`crowdppl.tasks`, which samples the rates.
    """
    rates = _rates.get()
    if rates is None:
        raise StoryError(
            "the annotations have abstentions, and their rates are sampled by cp.tasks: open the plate 'task' with "
            "cp.tasks(annotations, truth_prior) as truth, or leave the abstentions out by annotations.of_classes()"
        )
    return emission.wrapped(lambda inner: Abstaining(inner, rates))
