r"""An annotation follows a confusion matrix that all workers share, or the worker's own (Chu, Ma & Wang 2021, CoNAL).

.. math::
    C_k &\sim \text{Dirichlet}(\gamma_k), \quad B_{jk} \sim \text{Dirichlet}(\gamma_k) & (K, K), (J, K, K) \\
    \omega_{ij} &= \sigma\left(\frac{1}{\tau} \frac{u_j}{|u_j|} \cdot \frac{v_i}{|v_i|}\right),
    \quad v_i = W^\top x_i & (A) \\
    z_i &\sim \text{Categorical}(f(x_i)) & (N) \\
    P(y_a = l \mid z_i = k) &= \omega_{ij} C_{kl} + (1 - \omega_{ij}) B_{jkl} & (A)

(Their equations 3 to 5; :math:`W` and :math:`u` have standard normal priors.) Without features of the tasks the switch
:math:`\omega_j` is a coin of each worker. Their regulariser adds
:math:`\lambda \sum_j \lVert C - B_j \rVert_2` to the log-posterior, which drives the confusion matrices apart.

Here the annotations to a task share one truth. In the paper each annotation is scored by itself: with
``truth="answer"`` it is :math:`P(y_a = l) = \sum_k f_k(x_i) P(y_a = l \mid z_i = k)`, so that labels are the
classifier's. The authors' program has no probabilities in its matrices either: with ``kernels="free"`` they are
unconstrained, start at :math:`2 I`, and

.. math::
    P(y_a = l) = \text{softmax}_l\left(\sum_k f_k(x_i) (\omega_{ij} C_{kl} + (1 - \omega_{ij}) B_{jkl})\right), \quad
    C = 2 I + \epsilon \, c, \quad B_j = 2 I + \epsilon \, b_j, \quad
    c_{kl}, b_{jkl} \sim \text{Normal}(0, (s / \epsilon)^2)

with :math:`\epsilon = 0.1`, as in ``crowd_layer``. What was published is ``common_individual(truth="answer",
kernels="free", hidden=128, bias=True, separation=1e-5 * A)`` of A annotations.
"""

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax import Array

from ..data import Annotations
from ..data.errors import check_name
from ..data.padding import n_real_workers
from .annotator_groups import share_of_a_group
from .parts.concentration import diagonal_concentration, positive, sample_shares, whole
from .parts.contract import StoryError
from .parts.derived import derived, share_of_annotations
from .parts.embeddings import unit_embeddings
from .parts.emissions import Confusion, Emission, PerAnnotation, Switch, switch_of
from .parts.kernels import SMALLEST, row_weights, safe_log
from .parts.model_probabilities import refuse_probabilities
from .parts.offsets import PACE, sample_offsets
from .parts.own_classes import wrong_classes
from .parts.scored_annotations import by_classifier
from .parts.starts import k_means, vote_confusions
from .parts.switched_kernels import SwitchedKernels
from .parts.truth import named_workers, needed_features, observe, tasks
from .parts.truth_prior import TruthPrior
from .parts.whole_sums import over_all

DIAGONAL, COIN, EMBEDDING, SPREAD = 2.0, 1.0, 20, 5.0  # where nothing is given
KERNEL = 2.0  # free kernels start at so many times the identity


def common_individual(
    annotations: Annotations,
    *,
    truth_prior: TruthPrior | None = None,
    truth: Literal["shared", "answer"] = "shared",
    kernels: Literal["rows", "free"] = "rows",
    groups: int = 1,
    by_task: bool | None = None,
    embedding: int | None = None,
    hidden: int | None = None,
    bias: bool = False,
    temperature: float | None = None,
    separation: float = 0.0,
    diagonal: float | None = None,
    off_diagonal: float | None = None,
    coin: float | None = None,
    share: float | None = None,
    spread: float | None = None,
) -> None:
    r"""Annotations follow a confusion matrix that all workers have in common, or the worker's own, by a switch.

    Sites: ``common (K, K)``, ``individual (J, K, K)``; with more groups ``common (M, K, K)`` and ``weights (J, M)``;
    with free kernels ``common_offset (K, K)`` and ``individual_offset (J, K, K)`` in their place. With a switch by task
    ``task_embedding (D, E)`` and ``worker_embedding (J, E)``, or ``(F, E)`` where the workers have F features, with a
    hidden layer ``task_hidden (D, H)`` and ``task_embedding (H, E)``, with biases ``task_bias (E,)``,
    ``worker_bias (E,)``, ``task_hidden_bias (H,)``; else ``coin (J, 2)`` (individual, common). Derived:
    ``switch (A,)``, the probability that an annotation follows the common one, and its means ``switch_by_worker (J,)``
    and ``switch_by_task (N,)``; with more groups ``group_share (M,)``; with free kernels ``common`` and ``individual``.

    Args:
        annotations: who labelled what; workers are named.
        truth_prior: prior of the true labels; a prevalence with a flat Dirichlet by default.
        truth: whether the annotations to a task share one truth, or each is scored by itself under the classifier's
            probabilities, as in the paper; that needs a classifier, or other probabilities by task.
        kernels: rows of probabilities, or ``"free"`` for unconstrained matrices that are applied to the classifier's
            probabilities before a softmax, as in the authors' program. These need ``truth="answer"``.
        groups: M, number of groups of workers with a common confusion matrix each. A worker has weights over them, and
            the common confusion matrix of the worker is their mixture. Groups need rows of probabilities.
        by_task: whether the switch depends on the tasks' features; None for yes where there are features.
        embedding: E, length of the embeddings; 20 by default. The switch is by task.
        hidden: H, units of a hidden layer between features and embedding, without a nonlinearity, as in the authors'
            program, which has 128; None for no such layer. The switch is by task.
        bias: whether the layers of both embeddings have biases, as published. The switch is by task.
        temperature: :math:`\tau`, by which the cosine is divided; 1 by default, as published, which confines the switch
            to 0.269 to 0.731. The switch is by task.
        separation: :math:`\lambda`, weight of the distance of each worker's confusion matrix from the common one, in
            nats; the paper's :math:`10^{-5}` is of a mean over annotations, so it is :math:`10^{-5} A` here.
        diagonal: Dirichlet concentration of right annotations, :math:`\gamma_{kk}`; 2 by default. Of rows.
        off_diagonal: of each wrong annotation, :math:`\gamma_{kl}`; :math:`1 / (K - 1)` by default. Of rows.
        coin: concentration of both sides of a worker's coin; 1 by default. The switch is not by task.
        share: concentration of each group's weight for a worker; 0.1 by default, which puts workers into about one
            group each. Of more groups than one.
        spread: :math:`s`, standard deviation of each number of a free kernel around where it starts; 5 by default.

    Raises:
        UnknownNameError: ``truth`` or ``kernels`` is another word.
        StoryError: no worker is named, a number is not positive, the switch is to depend on features that the tasks
            do not have, there is no prior by task where annotations are scored by themselves, or an option is given
            that the others leave without an effect.
    """
    check_name("truth", truth, ("shared", "answer"))
    check_name("kernels", kernels, ("rows", "free"))
    n_workers, free = named_workers(annotations), kernels == "free"
    by_task = annotations.features is not None if by_task is None else by_task
    options = {"embedding": embedding, "hidden": hidden, "bias": bias or None, "temperature": temperature}
    refuse_idle(truth, kernels, groups, by_task, separation, options, coin, (diagonal, off_diagonal), spread)
    log_probs: Any = truth_prior
    if truth == "answer":
        refuse_probabilities(annotations, "and common_individual(truth='answer') has no annotations that share a truth")
        log_probs = by_classifier("common_individual(truth='answer')", annotations, truth_prior)
    if free:
        common, individual = _free(annotations, positive("spread", SPREAD if spread is None else spread))
        mixed = common
    else:
        right = DIAGONAL if diagonal is None else diagonal
        prior = diagonal_concentration(annotations.n_classes, right, off_diagonal, wrong_classes(annotations))
        common, individual = _rows(annotations, prior, whole("groups", groups))
        mixed = _of_workers(common, annotations, share)
    if is_number_without_value(separation) or separation:
        distance = jnp.sqrt(((mixed - individual) ** 2).sum((-1, -2)) + SMALLEST)
        with numpyro.plate("worker", n_workers, dim=-1):
            numpyro.factor("separation", separation * distance)
    workers, of_tasks, toss = _switch(annotations, by_task, options, coin, free=free)
    emission: Emission
    if free:
        classes = jnp.exp(log_probs)
        if annotations.evidence is not None:
            classes = jax.nn.softmax(log_probs + annotations.evidence)
        emission = SwitchedKernels(common, individual, classes, workers, of_tasks)
    elif toss is None:
        emission = Switch(mixed, individual, workers, of_tasks)
    else:
        emission = Confusion(toss[:, 0, None, None] * individual + toss[:, 1, None, None] * mixed)
    if truth == "answer" and not free:
        emission = PerAnnotation(emission, log_probs, annotations.evidence)
    with tasks(annotations, log_probs) as true_class:
        observe(true_class, emission, annotations)
    if toss is None:
        follows = switch_of(workers, of_tasks, annotations.worker, annotations.task)
    else:
        follows = toss[jnp.asarray(annotations.worker), 1]
    _describe(follows, annotations)
    if free:
        derived("common", common, "class", "annotation")
        derived("individual", individual, "worker", "class", "annotation")


def refuse_idle(
    truth: str,
    kernels: str,
    groups: int,
    by_task: bool,
    separation: float,
    of_embeddings: dict[str, Any],
    coin: float | None,
    concentrations: tuple[float | None, float | None],
    spread: float | None,
) -> None:
    """Refuse options that a story with these others would not look at.

    Raises:
        StoryError: such an option is given, or the separation is negative.
    """
    if not is_number_without_value(separation) and not separation >= 0:
        raise StoryError(f"separation={separation!r}: a number from 0 is needed")
    if kernels == "free":
        if truth != "answer":
            raise StoryError(
                "kernels='free' are applied to the classifier's probabilities, annotation by annotation; they need "
                "truth='answer'"
            )
        if groups != 1:
            raise StoryError(f"groups={groups!r}: groups have rows of probabilities; they need kernels='rows'")
        given = dict(zip(("diagonal", "off_diagonal"), concentrations, strict=True))
        _refuse(given, "free kernels have no Dirichlet prior; give spread=, or kernels='rows'")
    else:
        _refuse({"spread": spread}, "it belongs to kernels='free'")
    if by_task:
        _refuse(
            {"coin": coin}, "the switch depends on the tasks' features; give by_task=False for a coin of each worker"
        )
    else:
        _refuse(of_embeddings, "the switch is a coin of each worker; give features of the tasks, and not by_task=False")


def is_number_without_value(number: float) -> bool:
    """Return whether it stands for any number in a compiled program, so that one program serves every weight."""
    return isinstance(number, jax.core.Tracer)


def _refuse(options: dict[str, Any], why: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise StoryError(f"{name}={value!r} would be ignored: {why}")


def _rows(annotations: Annotations, prior: Any, groups: int) -> tuple[Array, Array]:
    """The common confusion matrix ``(K, K)``, or each group's ``(M, K, K)``, and the workers' own ``(J, K, K)``."""
    n_workers, n_classes = annotations.n_workers, annotations.n_classes
    if groups > n_workers:
        raise StoryError(f"groups={groups}: there are {n_workers} workers; give 1 to that many groups")

    def start(key: Array) -> Array:
        points = vote_confusions(annotations).reshape(n_workers, -1)
        return k_means(points, groups, key, n_real_workers(annotations))[1].reshape(groups, n_classes, n_classes)

    def of_classes(**infer: Any) -> Array:
        with numpyro.plate("class", n_classes, dim=-1):
            return numpyro.sample("common", dist.Dirichlet(prior), infer={"event_dims": ["annotation"], **infer})

    if groups == 1:
        common = of_classes(role="confusion")
    else:
        with numpyro.plate("group", groups, dim=-2):
            common = of_classes(role="group_confusion", start=start)
    with numpyro.plate("worker", n_workers, dim=-1):
        rows = dist.Dirichlet(prior).to_event(1)
        individual = numpyro.sample(
            "individual", rows, infer={"event_dims": ["class", "annotation"], "role": "confusion"}
        )
    return common, individual


def _of_workers(common: Array, annotations: Annotations, share: float | None) -> Array:
    """The common confusion matrix ``(K, K)``, or each worker's mixture of those of the groups ``(J, K, K)``."""
    groups = 1 if common.ndim == 2 else len(common)
    concentration = share_of_a_group(share, "worker", groups)
    if groups == 1:
        return common
    weights = sample_shares("weights", groups, concentration, "group", plate=("worker", annotations.n_workers))
    derived("group_share", share_of_annotations(weights, annotations), "group", role="group_share")
    return jnp.einsum("jm,mkl->jkl", weights, common)


def _free(annotations: Annotations, spread: float) -> tuple[Array, Array]:
    """The common kernel ``(K, K)`` and the workers' own ``(J, K, K)``, around twice the identity."""
    n_classes, dims = annotations.n_classes, ["class", "annotation"]
    shape, deviation = (n_classes, n_classes), spread / PACE
    around = KERNEL * jnp.eye(n_classes)
    common = around + PACE * sample_offsets("common_offset", shape, deviation, dims)
    with numpyro.plate("worker", annotations.n_workers, dim=-1):
        offsets = sample_offsets("individual_offset", shape, deviation, dims, n=annotations.n_workers)
    return common, around + PACE * offsets


def _switch(
    annotations: Annotations, by_task: bool, options: dict[str, Any], coin: float | None, *, free: bool
) -> tuple[Array, Array, Array | None]:
    """Vectors whose products are the switch's log-odds, ``(J, E)`` and ``(N, E)``, and the coins ``(J, 2)`` or None."""
    if by_task:
        needed_features(annotations, "common_individual(by_task=True)", ", or by_task=False for a coin of each worker")
        size = whole("embedding", EMBEDDING if options["embedding"] is None else options["embedding"])
        hidden = None if options["hidden"] is None else whole("hidden", options["hidden"])
        workers, of_tasks = unit_embeddings(annotations, size, hidden, bias=options["bias"] is not None)
        if options["temperature"] is not None:
            workers = workers / positive("temperature", options["temperature"])
        return workers, of_tasks, None
    even = jnp.full(2, positive("coin", COIN if coin is None else coin))
    infer = {"event_dims": ["is_common"], "exact_step": not free}
    with numpyro.plate("worker", annotations.n_workers, dim=-1):
        toss = numpyro.sample("coin", dist.Dirichlet(even), infer=infer)
    log_odds = jnp.diff(safe_log(toss))
    return log_odds, jnp.ones((annotations.n_tasks, 1)), toss


def _describe(follows: Array, annotations: Annotations) -> None:
    """Derive the switch of each annotation ``follows (A,)``, and its means by worker and task."""
    n_workers, n_tasks = annotations.n_workers, annotations.n_tasks
    derived("switch", follows, "row", role="switch")
    by_worker = _mean(follows, annotations, annotations.worker, n_workers, over_all)
    derived("switch_by_worker", by_worker, "worker", role="switch")
    derived("switch_by_task", _mean(follows, annotations, annotations.task, n_tasks), "task", role="switch")


def _mean(
    share: Array,
    annotations: Annotations,
    index: Array | None,
    size: int,
    whole: Callable[[Array], Array] = lambda total: total,
) -> Array:
    """The mean over the rows of each unit; ``whole`` completes sums of units that have rows elsewhere too."""
    weight = row_weights(annotations)
    total, of = (whole(jax.ops.segment_sum(x, jnp.asarray(index), size)) for x in (weight * share, weight))
    return jnp.where(of > 0, total / jnp.maximum(of, 1.0), jnp.nan)
