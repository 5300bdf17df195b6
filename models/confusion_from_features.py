r"""A worker's confusion matrix for a task comes from features of both (Herde, Huseljic & Sick 2023, MaDL).

.. math::
    B_{kl} &\sim \text{Normal}\left([k = l] \log\frac{\eta (K - 1)}{1 - \eta}, s^2\right) & (K, K) \\
    W_{fkl} &\sim \text{Normal}(0, s^2 / F), \quad V_{dkl} \sim \text{Normal}(0, s^2 / D) & (F, K, K), (D, K, K) \\
    \Lambda_{ij} &= B + \sum_f e_{jf} W_f + \sum_d x_{id} V_d & (A, K, K) \\
    z_i &\sim \text{Categorical}(f(x_i)) & (N) \\
    P(y_a = l \mid z_i = k) &= \text{softmax}_l(\Lambda_{ijk}) & (A)

:math:`e_j` are the F features of the worker, and :math:`x_i` the D features of the task. Where workers have no features
:math:`e_j` is the worker's number as one hot, so that :math:`W_j`, of variance :math:`s^2`, is the worker's own. With
every weight at zero the matrix is right with probability :math:`\eta` in every class: that is how the paper starts
training (its equation 19, :math:`\eta = 0.8`).

With ``hidden=H`` a network takes the place of the linear map:

.. math::
    u_j = U^\top e_j, \quad v_i = V^\top x_i, \quad
    h_{ij} = \tanh\left(r + R^\top [u_j, v_i, u_j \odot v_i]\right), \quad \Lambda_{ij} = B + \sum_h O_h h_{ijh}

of which only the output :math:`O_h`, with variance :math:`s^2 / H`, starts at zero; the other weights have the variance
of one over the number of their inputs, and start at random. So a worker may be good at some tasks and bad at others;
the linear map has the same tasks difficult for all.

Theirs scores each annotation by itself, :math:`\sum_k f_k(x_i) P(y_a = l \mid z_i = k)` (``truth="answer"``), by a
network with an outer product of both embeddings, batch norm and a residual connection, and has no prior of its weights.
It also weighs the annotations by how many other workers have an embedding nearby (equations 21 to 25), against workers
who err alike; a likelihood has no such weights, and ``shared_error=True`` is the story for these.
"""

import math
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import Array

from ..data import Annotations
from ..data.errors import check_name, real_number
from .parts.concentration import positive, whole
from .parts.confusion_logits import AddedLogits, NetworkLogits, through_hidden
from .parts.contract import StoryError
from .parts.derived import derived
from .parts.emissions import Confusion, Emission, PerAnnotation
from .parts.model_probabilities import refuse_probabilities
from .parts.offsets import sample_offsets
from .parts.own_classes import beside
from .parts.scored_annotations import by_classifier
from .parts.truth import named_workers, needed_features, observe, tasks
from .parts.truth_prior import TruthPrior, differs_by_task

EMBEDDING = 16


def confusion_from_features(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    truth: Literal["shared", "answer"] = "shared",
    by_task: bool | None = None,
    hidden: int | None = None,
    embedding: int | None = None,
    accuracy: float = 0.8,
    spread: float = 1.0,
) -> None:
    r"""Confusion matrices come from the features of the worker and of the task.

    Sites: ``base (K, K)`` and, as standard normals that are scaled as above, ``worker_weights (F, K, K)``, or
    ``(J, K, K)`` where workers have no features, and ``task_weights (D, K, K)``. With a hidden layer
    ``worker_embedding (F, E)`` or ``(J, E)``, ``task_embedding (D, E)``, ``hidden_weights (3 E, H)``, or ``(E, H)``
    where the tasks' features do not enter, ``hidden_bias (H,)`` and ``output (H, K, K)``. Derived:
    ``base_confusion (K, K)``, the confusion matrix where all features are zero, and where the tasks' features do not
    enter ``confusion (J, K, K)``.

    Features are best scaled to about one: the prior expects what they change to have the size of ``spread``. A worker
    who has not annotated anything has a confusion matrix too, from the worker's features:
    :meth:`.Fit.new_worker_confusions`.

    Args:
        annotations: who labelled what; workers are named. Their ``worker_features`` are the features of the workers.
        truth_prior: prior of the true labels; a prevalence with a flat Dirichlet by default.
        truth: whether the annotations to a task share one truth, or each is scored by itself under the classifier's
            probabilities, as in the paper; that needs a classifier, or other probabilities by task.
        by_task: whether the tasks' features enter the confusion matrices; None for yes where there are features and a
            classifier, or another prior of the truth by task. Without one the features say nothing of the truth, and
            confusion matrices that follow them may take its place: a table of annotations alone does not tell a class
            from a kind of task.
        hidden: H, units of a hidden layer; None for a linear map of the features.
        embedding: E, length of the embeddings of workers and tasks; 16 by default. Of a hidden layer.
        accuracy: :math:`\eta`, probability of a right annotation where nothing is known of worker and task.
        spread: :math:`s`, standard deviation of the log-odds around this, of what workers' features change in them, and
            of what tasks' features change.

    Raises:
        UnknownNameError: ``truth`` is another word.
        StoryError: no worker is named, the accuracy is not between 0 and 1, a number is not positive, the tasks'
            features are to enter and there are none, there is no prior by task where annotations are scored by
            themselves, or an embedding is given without a hidden layer.
    """
    named_workers(annotations)
    check_name("truth", truth, ("shared", "answer"))
    by_task = checked_by_task(annotations, by_task, differs_by_task(truth_prior, annotations))
    sizes = checked_sizes(hidden, embedding)
    width = positive("spread", spread)
    log_probs: Any = truth_prior
    if truth == "answer":
        name = "confusion_from_features(truth='answer')"
        refuse_probabilities(annotations, f"and {name} has no annotations that share a truth")
        log_probs = by_classifier(name, annotations, truth_prior)
    shape = (annotations.n_classes, annotations.n_classes)
    right = diagonal_log_odds(accuracy, beside(annotations)) * jnp.eye(annotations.n_classes)
    infer = {"event_dims": ["class", "annotation"], "start": lambda key: right}
    base = numpyro.sample("base", dist.Normal(right, width).to_event(2), infer=infer)
    emission, confusion = _emission(annotations, base, shape, width, sizes, by_task=by_task)
    if truth == "answer":
        emission = PerAnnotation(emission, log_probs, annotations.evidence)
    with tasks(annotations, log_probs) as true_class:
        observe(true_class, emission, annotations)
    derived("base_confusion", jax.nn.softmax(base, axis=-1), "class", "annotation", role="confusion")
    if confusion is not None:
        derived("confusion", confusion, "worker", "class", "annotation", role="confusion")


def checked_by_task(annotations: Annotations, by_task: bool | None, prior_by_task: bool) -> bool:
    """Return whether the tasks' features enter: unasked where the truth's prior is by task, as a classifier's.

    Raises:
        StoryError: they are to, and there are none.
    """
    if by_task is None:
        return annotations.features is not None and prior_by_task
    if by_task:
        instead = ", or by_task=False for one matrix of each worker"
        needed_features(annotations, "confusion_from_features(by_task=True)", instead)
    return bool(by_task)


def checked_sizes(hidden: int | None, embedding: int | None) -> tuple[int, int] | None:
    """Lengths of the embeddings and of the hidden layer, E and H; None for a linear map.

    Raises:
        StoryError: one is no whole number from 1, or an embedding is given without a hidden layer.
    """
    if hidden is None:
        if embedding is not None:
            raise StoryError(
                f"embedding={embedding!r} would be ignored: a linear map has no embeddings; give hidden= too"
            )
        return None
    return whole("embedding", EMBEDDING if embedding is None else embedding), whole("hidden", hidden)


def diagonal_log_odds(accuracy: float, n_classes: np.ndarray) -> Any:
    r"""Log-odds of a right annotation against each wrong one, :math:`\log(\eta (K - 1) / (1 - \eta))`, ``(K,)``.

    Raises:
        StoryError: the accuracy is not between 0 and 1.
    """
    if isinstance(accuracy, jax.core.Tracer):
        return jnp.log(accuracy * (n_classes - 1) / (1 - accuracy))
    accuracy = real_number("accuracy", accuracy, above=0, below=1, error=StoryError)
    return np.log(accuracy * (n_classes - 1) / (1 - accuracy))


def _emission(
    annotations: Annotations,
    base: Array,
    shape: tuple[int, int],
    width: Any,
    sizes: tuple[int, int] | None,
    *,
    by_task: bool,
) -> tuple[Emission, Array | None]:
    """The emission, and the workers' confusion matrices ``(J, K, K)`` where tasks have the same."""
    if sizes is None:
        of_workers = base + width * _of_workers(annotations, "worker_weights", shape, ("class", "annotation"))
        if by_task:
            of_tasks = width * _of_tasks(annotations, "task_weights", shape, ("class", "annotation"))
            return AddedLogits(of_workers, of_tasks), None
    else:
        size, hidden = sizes
        workers = _of_workers(annotations, "worker_embedding", (size,), ("embedding",), at_random=True)
        at = _of_tasks(annotations, "task_embedding", (size,), ("embedding",), at_random=True) if by_task else None
        n_inputs = 3 * size if by_task else size
        weights = sample_offsets("hidden_weights", (n_inputs, hidden), 1.0, ("input", "hidden"), at_random=True)
        weights = weights / math.sqrt(n_inputs)
        bias = sample_offsets("hidden_bias", (hidden,), 1.0, ("hidden",))
        output = sample_offsets("output", (hidden, *shape), 1.0, ("hidden", "class", "annotation"))
        output = width / math.sqrt(hidden) * output
        if at is not None:
            return NetworkLogits(workers, at, weights, bias, output, base), None
        of_workers = through_hidden(workers, weights, bias, output, base)
    confusion = jax.nn.softmax(of_workers, axis=-1)
    return Confusion(confusion), confusion


def _of_workers(
    annotations: Annotations, name: str, shape: tuple[int, ...], dims: tuple[str, ...], *, at_random: bool = False
) -> Array:
    """Contribution of the workers' features, ``(J, ...)``; of workers without features, each worker's own."""
    if annotations.worker_features is None:
        with numpyro.plate("worker", annotations.n_workers, dim=-1):
            return sample_offsets(name, shape, 1.0, dims, n=annotations.n_workers, at_random=at_random)
    features = jnp.asarray(annotations.worker_features)
    dims = ("worker_feature", *dims)
    return _mapped(features, sample_offsets(name, (features.shape[-1], *shape), 1.0, dims, at_random=at_random))


def _of_tasks(
    annotations: Annotations, name: str, shape: tuple[int, ...], dims: tuple[str, ...], *, at_random: bool = False
) -> Array:
    """Contribution of the tasks' features, ``(N, ...)``."""
    x = jnp.asarray(annotations.features).reshape(annotations.n_tasks, -1)
    return _mapped(x, sample_offsets(name, (x.shape[-1], *shape), 1.0, ("feature", *dims), at_random=at_random))


def _mapped(features: Array, weights: Array) -> Array:
    """Features ``(n, D)`` by weights ``(D, ...)`` of variance one, divided by the root of D: ``(n, ...)``."""
    return jnp.tensordot(features, weights, axes=1) / math.sqrt(features.shape[-1])
