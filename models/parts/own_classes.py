r"""Questions that have classes of their own: what is left of a story's probabilities where only some classes can be.

The K classes of annotations are those of all questions. Of a task whose question has the classes :math:`C`,

.. math::
    P(z_i = k) = \frac{\rho_k}{1 - \sum_{m \notin C} \rho_m}, \qquad
    P(y_a = l \mid z_i = k) = \frac{P(l \mid k, j_a)}{1 - \sum_{m \notin C} P(m \mid k, j_a)}, \qquad k, l \in C

and zero for every other class. A Dirichlet row that is cut so is the Dirichlet row of the classes that are left, and
the rest of the row has no part in it. The sum is written over what is cut, so that the gradient of EM's M-step counts
there what it takes to see one annotation within :math:`C` (EM of truncated counts; Dempster, Laird & Rubin 1977,
section 4.2).
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...data import Annotations
from .contract import StoryError
from .emissions import Confusion, Emission, Over, SharedConfusion
from .kernels import SMALLEST, mean_by_worker, row_weights, rows_of, safe_log

NEVER = -1e9
"""The log-probability of a class that a question does not have: finite, and below whatever annotations say."""


def own_of_tasks(annotations: Annotations) -> Array | None:
    """A mask of the classes that each task may have, ``(N, K)`` of bool; None where all have all."""
    own = annotations.kind.own
    return None if own is None else jnp.asarray(own)[annotations.question]


def wrong_classes(annotations: Annotations) -> np.ndarray:
    """The share of each wrong annotation among all wrong ones where they are spread evenly: ``(K, K)``.

    Of a class that some questions have it is over the classes of these.
    """
    n_classes, own = annotations.n_classes, annotations.kind.own
    beside = np.ones((n_classes, n_classes), bool) if own is None else (own[:, :, None] & own[:, None, :]).any(0)
    wrong = beside & ~np.eye(n_classes, dtype=bool)
    return wrong / np.maximum(wrong.sum(-1, keepdims=True), 1)


def log_fewer_errors(annotations: Annotations) -> Array | float:
    """The addition to the log-odds of a right annotation where errors spread evenly over fewer classes than K − 1.

    A probability of being right is so that among the classes of the task's question: ``(N,)``, or 0.
    """
    own = own_of_tasks(annotations)
    return 0.0 if own is None else jnp.log((own.sum(-1) - 1) / (annotations.n_classes - 1))


def beside(annotations: Annotations) -> np.ndarray:
    """The number of classes that a task of each class might be of, ``(K,)``; fewer where questions have own ones."""
    return (wrong_classes(annotations) > 0).sum(-1) + 1


def within(log_probs: Array, own: Array | None) -> Array:
    """Log-probabilities of classes given that they are among some, in which the others have :data:`NEVER`.

    Args:
        log_probs: ``(..., K)``, which broadcast with `own`.
        own: which classes there may be, ``(..., K)`` of bool; None for all.
    """
    if own is None:
        return log_probs
    cut = jnp.where(own, 0.0, jnp.exp(log_probs)).sum(-1, keepdims=True)
    return jnp.where(own, log_probs - safe_log(1 - cut), NEVER)


def shares_within(shares: Array, own: Array) -> Array:
    """Shares that are cut and scaled so, with 0 for the others: ``(..., K)``."""
    cut = jnp.where(own, 0.0, shares).sum(-1, keepdims=True)
    return jnp.where(own, shares / jnp.maximum(1 - cut, SMALLEST), 0.0)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class OfQuestion(Over):
    """Another emission, cut to the classes of the task's question.

    Under a class that the question does not have, which no task of it is of, its classes are equally probable.

    Args:
        emission: of the K classes of all questions.
        own: which classes each question has, ``(Q, K)`` of bool.
        question: of each task, ``(N,)``.
    """

    emission: Emission
    own: Array
    question: Array

    def probs(self, worker: Array | None, task: Array) -> Array:
        """The rows that are left: ``(A, K, L)``."""
        return cut_rows(self.emission.probs(worker, task), self._own(task))

    def log_prob(self, worker: Array | None, task: Array, annotation: Array) -> Array:
        """Log-probability of each annotation among the classes of its question: ``(A, K)``."""
        own = self._own(task)
        kept = safe_log(1 - self._cut(worker, task, own))
        score = self.emission.log_prob(worker, task, annotation) - jnp.where(own, kept, 0.0)
        return jnp.where(own, score, -jnp.log(own.sum(-1, keepdims=True)))

    def confusions(self, annotations: Annotations) -> Array:
        """Each worker's confusion matrix over the questions that have the class, as often as it was asked them."""
        if not isinstance(self.emission, Confusion | SharedConfusion):
            worker, task = jnp.asarray(annotations.worker), jnp.asarray(annotations.task)
            return mean_by_worker(self.probs(worker, task), annotations, self._own(task))
        tables = cut_rows(self.emission.confusions(annotations), self.own[:, None])
        return mean_over_questions(tables, self.own, self.question, annotations)

    def _own(self, task: Array) -> Array:
        return self.own[self.question[task]]

    def _cut(self, worker: Array | None, task: Array, own: Array) -> Array:
        """The probability of what the question does not have, under each class: ``(A, K)``."""
        table = getattr(self.emission, "table", None)
        if isinstance(self.emission, Confusion | SharedConfusion) and table is not None:
            others = jnp.where(self.own, 0.0, 1.0)
            by_question = jnp.einsum("...kl,ql->...qk", jnp.asarray(table), others)
            place = self.question[task]
            if isinstance(self.emission, Confusion):
                place = place + len(self.own) * jnp.asarray(worker)
            return rows_of(by_question.reshape(-1, by_question.shape[-1]), place)
        return jnp.where(own[:, None], 0.0, self.emission.probs(worker, task)).sum(-1)


RARELY = 1e-6  # annotations to a question that a worker was not asked, by which it counts where there is no other


def cut_rows(rows: Array, own: Array) -> Array:
    """Rows ``(..., K, L)`` of which the classes ``own (..., K)`` are left, on either side."""
    own = jnp.asarray(own)
    even = own / own.sum(-1, keepdims=True)
    return jnp.where(own[..., None], shares_within(rows, own[..., None, :]), even[..., None, :])


def mean_over_questions(tables: Array, own: Array, question: Array, annotations: Annotations) -> Array:
    """Confusion matrices over the questions that have the class, by how often each worker was asked: ``(J, K, L)``.

    Args:
        tables: of each question and worker, or of each question, ``(Q, J or 1, K, L)``.
        own: which classes each question has, ``(Q, K)`` of bool.
        question: of each task, ``(N,)``.
        annotations: who annotated what; of unnamed workers there is one row.
    """
    n_questions, n_workers = len(own), max(annotations.n_workers, 1)
    asked = question[annotations.task]
    asked = asked if annotations.worker is None else asked + n_questions * jnp.asarray(annotations.worker)
    n = jax.ops.segment_sum(row_weights(annotations), asked, n_workers * n_questions).reshape(n_workers, n_questions)
    weight = (n + RARELY)[..., None] * own  # (J, Q, K)
    tables = jnp.broadcast_to(tables, (n_questions, n_workers, *tables.shape[2:]))
    return jnp.einsum("jqk,qjkl->jkl", weight, tables) / weight.sum(1)[..., None]


def of_question(emission: Emission, annotations: Annotations) -> Emission:
    """The emission of a story where questions have classes of their own.

    Raises:
        StoryError: the annotations of a task depend on each other in it.
    """
    own = jnp.asarray(annotations.kind.own)

    def cut(inner: Emission) -> OfQuestion:
        if not inner.independent:
            raise StoryError(
                f"questions have classes of their own, and the annotations of a task depend on each other in "
                f"{type(inner).__name__}: fit each question alone, annotations.of_question(name), or another story, "
                "such as dawid_skene"
            )
        return OfQuestion(inner, own, jnp.asarray(annotations.question))

    return emission.wrapped(cut)
