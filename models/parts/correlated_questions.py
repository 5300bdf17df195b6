r"""Truths of a task's questions that depend on each other: tasks are of kinds, which have shares of classes.

.. math::
    c_t &\sim \text{Categorical}(\pi) & (T) \\
    z_{tq} &\sim \text{Categorical}(\rho_{c_t q}) & (T, Q)

of T tasks with Q questions and M kinds of tasks: given its kind the true classes of a task's questions are independent.
With enough kinds it is any distribution over the vector of a task's classes (a latent class model, Lazarsfeld & Henry
1968). The kinds are summed out: with the annotations' likelihood :math:`L_{tqk}` under each class,

.. math::
    \log p(y_t) = \log \sum_m \pi_m \prod_q \sum_k \rho_{mqk} L_{tqk}.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax import Array
from jax.scipy.special import logsumexp

from ...data import Annotations
from ...data.questions import Units
from .concentration import positive, whole
from .contract import StoryError
from .kernels import safe_log
from .own_classes import within
from .starts import k_means, soft_votes
from .truth_prior import ClassPrior

DIM = "task_kind"
"""The name of the dimension of the kinds of tasks."""

OWN = 0.9  # of a kind's first shares: the others are even


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class KindsOfTasks:
    """Log-probabilities of kinds of tasks, and of the classes of each unit given its task's kind.

    Args:
        log_share: of the kinds, ``(M,)``.
        log_probs: of the classes of each unit, a pair of a task and a question, under each kind, ``(N, M, K)``.
        task: the task of each unit, ``(N,)``.
        units: how many units each task has, ``(T,)``.
    """

    log_share: Array
    log_probs: Array
    task: Array
    units: Array

    @property
    def marginal(self) -> Array:
        """Log-probabilities of the classes of each unit, whatever its task's kind: ``(N, K)``."""
        return logsumexp(self.log_share[:, None] + self.log_probs, axis=1)

    def by_task(self, values: Array) -> Array:
        """Sums over each task's units, ``(N, ...)`` to ``(T, ...)``."""
        return jax.ops.segment_sum(values, self.task, len(self.units))

    def log_prob(self, labels: Array, kinds: Array) -> Array:
        """The log-density of labels ``(N, K)`` and kinds ``(T, M)``, ones and zeros or probabilities: ``()``."""
        of_classes = jnp.where(labels[:, None] > 0, labels[:, None] * self.log_probs, 0.0).sum(-1)
        return (kinds * (self.log_share + self.by_task(of_classes))).sum()

    def within(self, own: Array) -> "KindsOfTasks":
        """The kinds with each unit's classes among some, ``own (N, K)`` of bool."""
        return replace(self, log_probs=within(self.log_probs, own[:, None]))

    def given(self, scores: Array) -> "TruthsOfTasks":
        """The truths where each unit has log-scores of its classes, ``(N, K)``, such as its annotations' likelihood."""
        return TruthsOfTasks(self, scores)

    def kinds_given(self, key: Array, truth: Array) -> Array:
        """Kinds of the tasks, ``(T,)``, drawn given their classes, ``(N,)``."""
        own = jnp.take_along_axis(self.log_probs, truth[:, None, None], axis=-1)[..., 0]
        return jax.random.categorical(key, self.log_share + self.by_task(own))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TruthsOfTasks:
    """The joint posterior of tasks' kinds and classes.

    Args:
        kinds: before the units' own scores.
        scores: log-scores of the classes of each unit, ``(N, K)``.
    """

    kinds: KindsOfTasks
    scores: Array

    @property
    def of_units(self) -> Array:
        """Log-likelihood of each unit under each kind, its class summed out: ``(N, M)``."""
        return logsumexp(self.scores[:, None] + self.kinds.log_probs, axis=-1)

    @property
    def of_kinds(self) -> Array:
        """Log-joint of each task's units and each kind: ``(T, M)``."""
        return self.kinds.log_share + self.kinds.by_task(self.of_units)

    @property
    def log_likelihood(self) -> Array:
        """Of each task, with kind and classes summed out: ``(T,)``."""
        return logsumexp(self.of_kinds, axis=-1)

    @property
    def log_joint(self) -> Array:
        """Log-probability of each unit's scores and class given the other units of its task: ``(N, K)``."""
        others = jax.nn.log_softmax(self.of_kinds[self.kinds.task] - self.of_units, axis=-1)
        return self.scores + logsumexp(others[..., None] + self.kinds.log_probs, axis=1)

    @property
    def spread(self) -> Array:
        """The log-likelihood of each task in equal parts for its units: ``(N,)``."""
        return (self.log_likelihood / self.kinds.units)[self.kinds.task]

    def drawn(self, key: Array) -> Array:
        """Classes of the units, ``(N,)``, drawn together."""
        of_kind, of_class = jax.random.split(key)
        kind = jax.random.categorical(of_kind, self.of_kinds)[self.kinds.task]
        own = jnp.take_along_axis(self.kinds.log_probs, kind[:, None, None], axis=1)[:, 0]
        return jax.random.categorical(of_class, self.scores + own)


@dataclass(frozen=True)
class CorrelatedQuestions(ClassPrior):
    r"""Truths of a task's questions that depend on each other, by kinds of tasks that are learned.

    Sites: ``kind_share (M,)``, :math:`\pi`, and ``kind_prevalence (M, Q, K)``, the shares of the classes of each
    question in tasks of each kind, :math:`\rho`. Kinds have no names: chains may have them in different orders.

    It takes all annotations in memory on one device, of stories that need no probabilities of a task's classes but in
    its truth. A posterior of one question is given the annotations of all; ``log_likelihood`` of a unit is that of its
    annotations given those of the other questions of its task.

    Args:
        kinds: M, how many kinds of tasks.
        concentration: of the Dirichlet priors of all these shares.
    """

    kinds: int = 8
    concentration: float = 1.0

    kind: ClassVar[str] = "correlated_questions"
    by_task: ClassVar[bool] = True
    joint: ClassVar[bool] = True

    def __call__(self, annotations: Annotations) -> Any:
        """Sample the shares; the log-probabilities of kinds and classes.

        Raises:
            StoryError: there is one question, or not all of the annotations are here; or an argument is none that it
                takes.
        """
        units, n_classes = annotations.tasks, annotations.n_classes
        if not isinstance(units, Units) or annotations.population is not None:
            raise StoryError(
                "truth_prior=CorrelatedQuestions() is of several questions about each task: bring annotations with "
                "question=, all of them in memory and on one device"
            )
        prior = positive("concentration", self.concentration)
        n_kinds, n_questions = whole("kinds", self.kinds), len(units.questions)
        shares = dist.Dirichlet(jnp.full(n_kinds, prior))
        share = numpyro.sample("kind_share", shares, infer={"event_dims": [DIM]})
        infer: dict[str, Any] = {"event_dims": ["truth"]}
        if annotations.label is not None:
            infer["start"] = lambda key: first_shares(annotations, units, n_kinds, key)
        with numpyro.plate(DIM, n_kinds, dim=-2), numpyro.plate("question", n_questions, dim=-1):
            prevalence = numpyro.sample("kind_prevalence", dist.Dirichlet(jnp.full(n_classes, prior)), infer=infer)
        log_probs = safe_log(prevalence)[:, annotations.question].swapaxes(0, 1)
        task = jnp.asarray(units.task)
        return KindsOfTasks(safe_log(share), log_probs, task, jnp.bincount(task, length=len(units.tasks)))


def first_shares(annotations: Annotations, units: Units, n_kinds: int, key: Array) -> Array:
    """Shares of the classes by kind and question where tasks are clustered by their votes: ``(M, Q, K)``."""
    n_classes = annotations.n_classes
    even = jnp.full((len(units.tasks), len(units.questions), n_classes), 1 / n_classes)
    votes = even.at[units.task, units.question].set(soft_votes(annotations))
    _, centres = k_means(votes.reshape(len(votes), -1), n_kinds, key)
    return OWN * centres.reshape(n_kinds, *votes.shape[1:]) + (1 - OWN) / n_classes
