"""Emissions, one small object each: how a worker's annotation follows from the true class.

One distribution is behind every story: all annotations of all workers, ragged, given the true labels.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import logsumexp
from numpyro.distributions import Distribution, constraints
from numpyro.primitives import Messenger

from ...data import Annotations
from .contract import StoryError
from .kernels import (
    UNROLLED,
    drawn_kinds,
    inner_products,
    mean_by_worker,
    rows_of,
    safe_log,
    sum_by_task,
    tempered_rows,
)


class Emission:
    """The distribution of an annotation given worker, task and true class. Subclasses are pytrees of arrays.

    A subclass defines :meth:`probs`; most define a cheaper :meth:`log_prob` and :meth:`probs_given` too.

    Attributes:
        independent: whether the annotations to a task are independent given its class, so that :meth:`by_task` is the
            sum of :meth:`log_prob`. An emission whose annotations share more than the class says False.
        shares_errors: whether workers may fall for the same wrong class of a task, so that :class:`.SharedError` over
            it would say the same twice.
        by_truth: whether annotations follow the task's true class; False where they follow its prior alone.
    """

    independent: ClassVar[bool] = True
    shares_errors: ClassVar[bool] = False
    by_truth: ClassVar[bool] = True

    def check(self, annotations: Annotations) -> None:
        """Refuse arrays that are not of these workers, tasks and classes, which indexing would not notice.

        It is not inherited: a class that reads the arrays in another way has a check of its own, or none.

        Raises:
            StoryError: with the array, its shape, and the shape that is needed.
        """

    def probs(self, worker: Array | None, task: Array) -> Array:
        r"""All of :math:`P(y = l \mid z = k)` for each (worker, task) pair: ``(A, K, L)``."""
        raise NotImplementedError(f"{type(self).__name__} has no probs(worker, task)")

    def log_prob(self, worker: Array | None, task: Array, annotation: Array) -> Array:
        r"""Log-probability of each observed annotation under each true class: ``(A, K)``."""
        probs = jnp.take_along_axis(self.probs(worker, task), annotation[:, None, None], axis=-1)[..., 0]
        return safe_log(probs)

    def by_task(self, annotations: Annotations, annotation: Array) -> Array:
        """Log-probability of each task's annotations together under each true class: ``(N, K)``.

        The sum of :meth:`log_prob` over them, where they share no more than that class.
        """
        return sum_by_task(self.log_prob(annotations.worker, annotations.task, annotation), annotations)

    def probs_given(self, worker: Array | None, task: Array, truth: Array) -> Array:
        """Probabilities of all annotations under one true class a row, ``truth (A,)``: ``(A, L)``."""
        return jnp.take_along_axis(self.probs(worker, task), truth[:, None, None], axis=1)[:, 0]

    def sample(self, key: Array, worker: Array | None, task: Array, truth: Array) -> Array:
        """One annotation a row, ``(A,)``, of ``worker`` to ``task`` whose true class is ``truth (A,)``."""
        return drawn_kinds(key, self.probs_given(worker, task, truth))

    def wrapped(self, wrap: "Callable[[Emission], Emission]") -> "Emission":
        """The emission with ``wrap`` over what a worker annotates under one true class: over itself."""
        return wrap(self)

    def over_classes(self, wrap: "Callable[[Emission], Emission]") -> "Emission":
        """The emission with ``wrap`` over what it says of annotations that are classes: over itself."""
        return wrap(self)

    def tempered(self, power: Array | float) -> "Emission":
        """The emission whose rows of probabilities are to the power of ``power``, from 0 to 1, and sum to one again.

        At 1 it is itself, and at 0 all classes are equally probable. One whose annotations share more than the class
        says itself what that is (:attr:`independent`).
        """
        if not self.independent:
            raise NotImplementedError(
                f"{type(self).__name__}, whose annotations to a task are not independent, has no tempered(power)"
            )
        return Tempered(self, power)

    def further(self, annotations: Annotations, annotation: Array) -> "Emission | None":
        """The emission of one more annotation to each task, given those that it has; None where none is written.

        It is the emission itself where a task's annotations are independent given its class. For others it is worth
        writing, since without it one more annotation takes :meth:`by_task` of each kind that it may be.

        Args:
            annotation: of each row, ``(A,)``.
        """
        return self if self.independent else None

    def difficulties(self, annotations: Annotations, annotation: Array, posterior: Array) -> Array | None:
        """The expected level of each task's difficulty, ``(N,)``; None where tasks have no such level.

        Args:
            annotation: of each row, ``(A,)``.
            posterior: of the tasks' classes, ``(N, K)``.
        """
        return None

    def confusions(self, annotations: Annotations) -> Array:
        """Each worker's confusion matrix averaged over the tasks that the worker annotated: ``(J, K, L)``."""
        return mean_by_worker(self.probs(jnp.asarray(annotations.worker), annotations.task), annotations)


def misshaped(name: str, emission: Emission, annotations: Annotations, needed: str) -> StoryError:
    """The error of an emission whose array ``name`` has another shape than is ``needed``, for the caller to raise."""
    return StoryError(
        f"the {name} of {type(emission).__name__} has shape {jnp.shape(getattr(emission, name))}, and the annotations "
        f"have {annotations.n_classes} classes, {annotations.n_workers} workers and {annotations.n_tasks} tasks, sizes "
        f"to take from annotations.n_workers and the like; {needed}"
    )


class Over(Emission):
    """An emission that lies over another one, and whose annotations are to a power where that one's are."""

    emission: Emission

    @property
    def independent(self) -> bool:  # type: ignore[override]  # as of the emission beneath
        """True where the annotations to a task are independent given its class."""
        return self.emission.independent

    def tempered(self, power: Array | float) -> Self:
        """Return it over the emission beneath to the power."""
        return replace(self, emission=self.emission.tempered(power))  # type: ignore[type-var]

    def confusions(self, annotations: Annotations) -> Array:
        """The confusion matrices of the emission beneath: ``(J, K, L)``."""
        return self.emission.confusions(annotations)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Tempered(Emission):
    """Any emission with its rows of probabilities to a power, computed row by row.

    Args:
        emission: whose annotations to a task are independent given its class.
        power: from 0 to 1.
    """

    emission: Emission
    power: Array | float

    def probs(self, worker: Array | None, task: Array) -> Array:
        """The rows to the power: ``(A, K, L)``."""
        return tempered_rows(self.emission.probs(worker, task), self.power)

    def probs_given(self, worker: Array | None, task: Array, truth: Array) -> Array:
        """One of them each: ``(A, L)``."""
        return tempered_rows(self.emission.probs_given(worker, task, truth), self.power)


class OfTables(Emission):
    """Every worker has a confusion matrix, ``table (J, K, L)``."""

    table: Array

    def probs(self, worker: Array | None, task: Array) -> Array:
        """The workers' tables: ``(A, K, L)``."""
        return jnp.asarray(self.table)[worker]

    def log_prob(self, worker: Array | None, task: Array, annotation: Array) -> Array:
        """Columns of the tables, with the K numbers of one (worker, annotation) pair side by side: ``(A, K)``."""
        table = self.table
        cell = jnp.asarray(worker) * table.shape[-1] + annotation
        return rows_of(columns_of(safe_log(table)), cell)

    def probs_given(self, worker: Array | None, task: Array, truth: Array) -> Array:
        """Rows of the tables: ``(A, L)``."""
        return jnp.asarray(self.table)[worker, truth]

    def tempered(self, power: Array | float) -> "Confusion":
        """The tables with their rows to the power."""
        return Confusion(tempered_rows(self.table, power))

    def confusions(self, annotations: Annotations) -> Array:
        """The tables themselves: ``(J, K, L)``."""
        return self.table


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Confusion(OfTables):
    r"""Every worker has a confusion matrix: :math:`P(y = l \mid z = k, j) = \text{table}_j[k, l]`.

    Args:
        table: ``(J, K, L)``, rows sum to one.
    """

    table: Array

    def check(self, annotations: Annotations) -> None:
        """A table of every worker; its columns may be more than the classes."""
        n_classes = annotations.n_classes
        shape, needed = jnp.shape(self.table), (annotations.n_workers, n_classes, n_classes)
        if len(shape) != 3 or shape[:2] != needed[:2] or shape[2] < needed[2]:
            raise misshaped(
                "table",
                self,
                annotations,
                f"{needed} is needed; jnp.broadcast_to(table, {needed}) gives every worker the same table",
            )


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class SharedConfusion(Emission):
    r"""All workers share one confusion matrix, :math:`P(y = l \mid z = k) = \text{table}[k, l]`; they need no names.

    Args:
        table: ``(K, L)``, rows sum to one.
    """

    table: Array

    def check(self, annotations: Annotations) -> None:
        """One table; its columns may be more than the classes."""
        shape, n_classes = jnp.shape(self.table), annotations.n_classes
        if len(shape) != 2 or shape[0] != n_classes or shape[1] < n_classes:
            raise misshaped("table", self, annotations, f"{(n_classes, n_classes)} is needed")

    def probs(self, worker: Array | None, task: Array) -> Array:
        """The table for each annotation: ``(A, K, L)``."""
        return jnp.broadcast_to(self.table, (len(task), *self.table.shape))

    def log_prob(self, worker: Array | None, task: Array, annotation: Array) -> Array:
        """Columns of the table: ``(A, K)``."""
        return rows_of(safe_log(self.table).T, annotation)

    def probs_given(self, worker: Array | None, task: Array, truth: Array) -> Array:
        """Rows of the table: ``(A, L)``."""
        return jnp.asarray(self.table)[truth]

    def tempered(self, power: Array | float) -> "SharedConfusion":
        """The table with its rows to the power."""
        return SharedConfusion(tempered_rows(self.table, power))

    def confusions(self, annotations: Annotations) -> Array:
        """Return the one table for each worker: ``(J, K, L)``."""
        return jnp.broadcast_to(self.table, (annotations.n_workers, *self.table.shape))


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Gated(Emission):
    r"""A mixture of tables whose weights depend on the task.

    .. math:: P(y = l \mid z = k, i) = \sum_m \alpha_{im} \text{table}_m[k, l]

    Args:
        table: ``(M, K, L)``, rows sum to one.
        weights: :math:`\alpha`, of each task, ``(N, M)``.
    """

    table: Array
    weights: Array

    def probs(self, worker: Array | None, task: Array) -> Array:
        """Each task's mixture, ``(A, K, L)``."""
        return jnp.einsum("am,mkl->akl", jnp.asarray(self.weights)[task], self.table)

    def log_prob(self, worker: Array | None, task: Array, annotation: Array) -> Array:
        """Columns of each task's mixture, group by group: ``(A, K)``."""
        weights, columns = jnp.asarray(self.weights)[task], jnp.asarray(self.table).swapaxes(-1, -2)
        mixed = sum(weights[:, m, None] * columns[m][annotation] for m in range(len(columns)))
        return safe_log(mixed)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class PerAnnotation(Over):
    r"""Every annotation has a truth of its own, drawn from the task's prior and summed out of that annotation alone.

    .. math:: P(y = l \mid i, j) = \sum_k f_k(x_i) P(y = l \mid z = k, i, j)

    The same under each class, so that a task's annotations leave its class at its prior.

    Args:
        emission: what a worker annotates under each truth.
        log_probs: of the classes, ``(K,)`` or ``(N, K)``.
        evidence: log-weights of the classes, ``(N, K)``, or None.
    """

    emission: Emission
    log_probs: Array
    evidence: Array | None

    def probs(self, worker: Array | None, task: Array) -> Array:
        """The sum over the truths, under each class: ``(A, K, L)``."""
        of_each = self.emission.probs(worker, task)
        prior = jnp.broadcast_to(jnp.exp(self._prior(task)), of_each.shape[:2])
        mixed = jnp.einsum("ak,akl->al", prior, of_each)
        return jnp.broadcast_to(mixed[:, None], of_each.shape)

    def log_prob(self, worker: Array | None, task: Array, annotation: Array) -> Array:
        """The logarithm of the sum over the truths, under each class: ``(A, K)``."""
        of_each = self.emission.log_prob(worker, task, annotation)
        return jnp.broadcast_to(logsumexp(self._prior(task) + of_each, axis=-1, keepdims=True), of_each.shape)

    def by_task(self, annotations: Annotations, annotation: Array) -> Array:
        """The sums of the annotations' logarithms, the same under each class: ``(N, K)``."""
        if not isinstance(self.emission, SharedConfusion):
            return super().by_task(annotations, annotation)
        n_classes = self.log_probs.shape[-1]
        mixed = jnp.exp(jnp.atleast_2d(self._prior(slice(None)))) @ self.emission.table  # one row a task is enough
        log_mixed = safe_log(jnp.broadcast_to(mixed, (annotations.n_tasks, mixed.shape[-1])))
        scores = sum_by_task(log_mixed[annotations.task, annotation], annotations)
        return jnp.broadcast_to(scores[:, None], (annotations.n_tasks, n_classes))

    def wrapped(self, wrap: Callable[[Emission], Emission]) -> Emission:
        """Every annotation's truth summed out over ``wrap`` of the emission."""
        return replace(self, emission=wrap(self.emission))

    def _prior(self, task: Array | slice) -> Array:
        weights = self.log_probs if self.evidence is None else jax.nn.log_softmax(self.log_probs + self.evidence)
        return weights[task] if jnp.ndim(weights) == 2 else weights


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Switch(Emission):
    r"""An annotation follows the common confusion matrix or the worker's own, by how near the worker is to the task.

    .. math::
        P(y = l \mid z = k, i, j) = \omega_{ij} \, \text{common}[k, l] + (1 - \omega_{ij}) \, \text{individual}_j[k, l],
        \qquad \omega_{ij} = \sigma(u_j \cdot v_i)

    Args:
        common: ``(K, L)``, or ``(J, K, L)`` where groups of workers have one each; rows sum to one.
        individual: ``(J, K, L)``, rows sum to one.
        workers: :math:`u`, ``(J, E)``.
        tasks: :math:`v`, ``(N, E)``.
    """

    common: Array
    individual: Array
    workers: Array
    tasks: Array

    def switch(self, worker: Array | None, task: Array) -> Array:
        """Probability that an annotation follows the common table: ``(A,)``."""
        return switch_of(self.workers, self.tasks, worker, task)

    def probs(self, worker: Array | None, task: Array) -> Array:
        """The mixed tables: ``(A, K, L)``."""
        share = self.switch(worker, task)[:, None, None]
        common = jnp.asarray(self.common)
        ours = common if common.ndim == 2 else common[worker]
        return share * ours + (1 - share) * jnp.asarray(self.individual)[worker]

    def log_prob(self, worker: Array | None, task: Array, annotation: Array) -> Array:
        """Columns of the mixed tables: ``(A, K)``."""
        cell = jnp.asarray(worker) * self.individual.shape[-1] + annotation
        ours = self.common.T[annotation] if self.common.ndim == 2 else columns_of(self.common)[cell]
        share = self.switch(worker, task)[:, None]
        mixed = share * ours + (1 - share) * columns_of(self.individual)[cell]
        return safe_log(mixed)

    def probs_given(self, worker: Array | None, task: Array, truth: Array) -> Array:
        """Rows of the mixed tables: ``(A, L)``."""
        share = self.switch(worker, task)[:, None]
        common = jnp.asarray(self.common)
        ours = common[truth] if common.ndim == 2 else common[worker, truth]
        return share * ours + (1 - share) * jnp.asarray(self.individual)[worker, truth]


def columns_of(table: Array) -> Array:
    """Columns of workers' tables ``(J, K, L)``, one below the other: ``(J * L, K)``."""
    n_workers, n_classes, n_annotations = table.shape
    return table.swapaxes(-1, -2).reshape(n_workers * n_annotations, n_classes)


def switch_of(workers: Array, tasks: Array, worker: Array | None, task: Array) -> Array:
    r""":math:`\sigma(u_j \cdot v_i)` of each (worker, task) pair, of vectors ``(J, E)`` and ``(N, E)``: ``(A,)``."""
    workers, tasks = jnp.asarray(workers), jnp.asarray(tasks)
    if workers.shape[-1] > UNROLLED:
        return jax.nn.sigmoid((workers[worker] * tasks[task]).sum(-1))
    return jax.nn.sigmoid(inner_products(workers, tasks, worker, task))


def select(scores: Array, truth: Array) -> Array:
    r"""Pick :math:`s_{i, z_i}` for every task: scores ``(N, K)`` and truth ``(..., N)`` give ``(..., N)``.

    A truth that is the same for all tasks, ``(..., 1)``, takes whole columns. Enumeration asks for all of them in
    their order, which is a transposition: where a program is compiled with these numbers, it has nothing else.
    """
    n_classes = scores.shape[-1]
    if truth.shape[-1:] != (1,):
        scores = jnp.broadcast_to(scores, (*truth.shape, n_classes))
        return jnp.take_along_axis(scores, truth[..., None], axis=-1)[..., 0]
    columns = truth.ravel() if isinstance(truth, jax.core.Tracer) else np.asarray(truth).ravel()
    if len(columns) != n_classes:
        picked = jnp.take(scores, columns, axis=-1).T
    elif isinstance(columns, np.ndarray):
        picked = scores.T if np.array_equal(columns, np.arange(n_classes)) else scores.T[columns]
    else:
        in_order = (columns == jnp.arange(n_classes)).all()
        picked = jax.lax.cond(in_order, lambda s: s.T, lambda s: jnp.take(s, columns, axis=-1).T, scores)
    return picked.reshape(truth.shape[:-1] + scores.shape[:1])


class AnnotationLikelihood(Distribution):
    r"""All annotations to each task, given its true label.

    .. math:: \log p(y_i \mid z_i) = \sum_{a \in i} \log P(y_a \mid z_i, \text{worker}_a, \text{task}_i)

    The batch shape is that of the tasks, ``broadcast(truth.shape, (N,))``; the ``A`` annotations are one event, so the
    tasks may have any number of annotations each and nothing is padded.

    Args:
        truth: true classes, ``(..., N)``, or ``(K, 1, ..., 1)`` where enumerated.
        emission: what a worker annotates under each truth.
        annotations: which worker annotated which task; ``annotations.label`` is not looked at.
    """

    arg_constraints: ClassVar[dict] = {}  # to check the classes would cost operations of their own, again and again
    support = constraints.independent(constraints.nonnegative_integer, 1)
    pytree_data_fields = ("truth", "emission", "annotations")

    def __init__(
        self, truth: Array, emission: Emission, annotations: Annotations, *, validate_args: bool | None = None
    ) -> None:
        self.truth, self.emission, self.annotations = jnp.asarray(truth), emission, annotations
        batch_shape = jnp.broadcast_shapes(self.truth.shape, (annotations.n_tasks,))
        super().__init__(batch_shape, (len(annotations.task),), validate_args=validate_args)

    def log_prob(self, value: Array) -> Array:
        """Log-probability of the annotations ``value (A,)`` of each task: the batch shape."""
        scores = self.emission.by_task(self.annotations, value)
        return jnp.broadcast_to(select(scores, self.truth), self.batch_shape)

    def sample(self, key: Array, sample_shape: tuple[int, ...] = ()) -> Array:
        """Annotations ``sample_shape + truth.shape[:-1] + (A,)`` of the given workers to the given tasks."""
        truth = jnp.broadcast_to(self.truth, self.batch_shape)[..., self.annotations.task]
        draw = self.emission.sample
        for _ in truth.shape[:-1]:
            draw = jax.vmap(draw, in_axes=(0, None, None, 0))
        keys = jax.random.split(key, sample_shape + truth.shape[:-1])
        for _ in sample_shape:
            draw = jax.vmap(draw, in_axes=(0, None, None, None))
        return draw(keys, self.annotations.worker, self.annotations.task, truth)


class OverClasses(Messenger):
    """A handler that puts another emission over what the story under it says of annotations that are classes.

    Args:
        wrap: from the story's emission to the one over it: :meth:`.Emission.over_classes`.
    """

    def __init__(self, wrap: Callable[[Emission], Emission]) -> None:
        super().__init__(None)
        self._wrap = wrap

    def process_message(self, msg: dict[str, Any]) -> None:
        """Replace the emission of the site ``annotation``."""
        if msg["type"] == "sample" and msg["name"] == "annotation" and isinstance(msg["fn"], AnnotationLikelihood):
            fn = msg["fn"]
            msg["fn"] = AnnotationLikelihood(fn.truth, fn.emission.over_classes(self._wrap), fn.annotations)
