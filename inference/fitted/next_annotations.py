"""Where one more annotation is expected to lower the uncertainty of labels most."""

import heapq
from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array

from ...data import AnnotationError, Annotations
from ...data.columns import positions_of
from ...data.errors import whole_number
from ...data.ids import one_or_several
from ...data.questions import Units, of_each_question
from ..densities.enumerated import Parameters
from ..densities.programs import compiled
from .confusion_scores import entropy
from .confusions import mean_confusions
from .fitted import Fitted
from .posterior import Posterior, posterior_of

MOST_DRAWS = 50  # over which the joint probabilities of truth and annotation are averaged
MOST_WORKERS = 32  # of whom the typical one is the average
MOST_OUTCOMES = 100_000  # sets of annotations to one task that are looked through


def next_annotations(
    fit: Posterior | Fitted,
    n: int,
    *,
    workers: Any = None,
    repeats: int = 1,
    most_per_worker: int | None = None,
) -> pd.DataFrame:
    r"""The tasks to have annotated again, and by whom: where the labels' entropy is expected to fall most.

    .. math::
        \text{expected\_gain}_{ij} = H(z_i \mid y) - \sum_l P(y_{ij} = l \mid y) \, H(z_i \mid y, y_{ij} = l)
        = I(z_i; y_{ij} \mid y),

    the mutual information of truth and annotation (Lindley 1956; MacKay 1992) under
    :math:`P(z_i = k, y_{ij} = l \mid y) = \mathrm{E}_\theta P(z_i = k, y_{ij} = l \mid y, \theta)`, averaged over up
    to 50 draws of the parameters. What an annotation says of the parameters, and so of other tasks, is left out.

    Pairs are chosen one after the other, the largest gain first. A task's second annotation gains what the first, whose
    outcome is not known yet, leaves; annotations of a task are then independent given its truth. So the gains fall, and
    the greedy choice of n annotations is near the best one (Nemhauser, Wolsey & Fisher 1978).

    Args:
        fit: a fit of any story, or a stack, whose joint probabilities are averaged by weight. Where its annotations do
            not bear on a task's own truth all gains are 0. EM's mode takes workers of few annotations for better, or
            worse, than draws of the posterior do; choose workers by NUTS or SVI.
        n: how many annotations to ask for; less come back where there are not so many left to ask.
        workers: the workers that can be asked, one or several, each for at most one annotation of a task and none of a
            task that the worker annotated before; where workers have a quality on each question also pairs of a worker
            and a question. None for a typical worker: one of the crowd, drawn by the number of
            annotations given, so that the gain is that of the average confusion matrix (of 32 workers spread evenly
            from the worst to the best where there are more).
        repeats: how often the same task may be asked, at the most.
        most_per_worker: how many annotations each of the `workers` may be asked for, on all questions together.

    Returns:
        In the order of the choice: task, left and right (of comparisons), worker (where `workers` are given),
        expected_gain and entropy (the label's now) in nats, annotations (that the task has now).

    Raises:
        AnnotationError: a worker is unknown, or the annotations name none.
        ValueError: `n`, `repeats` or `most_per_worker` is no whole number from 1, `repeats` asks for more than 100,000
            sets of annotations to a task, or `most_per_worker` is given without `workers`.
    """
    source = posterior_of(fit)
    annotations = source.annotations
    n, repeats = whole_number("n", n, least=1), whole_number("repeats", repeats, least=1)
    if most_per_worker is not None:
        most_per_worker = whole_number("most_per_worker", most_per_worker, least=1)
    if annotations.n_categories**repeats > MOST_OUTCOMES:
        raise ValueError(
            f"repeats={repeats} annotations of a task can be {annotations.n_categories}^{repeats} different ones; "
            f"{MOST_OUTCOMES:,} at the most can be looked through"
        )
    if workers is None:
        if most_per_worker is not None:
            raise ValueError("most_per_worker limits the workers that can be asked; give workers=")
        asked = None
        each = iter([_typical_joint(source)])
    else:
        asked = asked_workers(annotations, workers)
        each = (joint_of(source, np.array([j]), np.ones(1)) for j in asked)
    gains, joints = [], []
    for joint in each:
        blocks = np.array_split(joint, max(joint.size // 10**6, 1))  # of about a million numbers each
        gains.append(np.concatenate([information(some.astype(float)) for some in blocks]))
        if repeats > 1:
            joints.append(joint)
    is_open = _open(source.given, asked)
    pairs = annotations.workers  # of whom each counts with what is asked on all questions
    who = np.arange(len(gains)) if asked is None else pairs.task[asked] if isinstance(pairs, Units) else asked
    limits = repeats, most_per_worker
    chosen = _choose(np.stack(gains), joints, is_open, n, *limits, who, again=asked is None and repeats > 1)
    rows = pd.DataFrame(chosen, columns=["task", "worker", "expected_gain"])
    task = rows["task"].to_numpy(dtype=int)
    found = annotations.tasks.to_columns("task", task)
    if annotations.sides is not None:
        found |= {side: annotations.pairs[side].to_numpy()[task] for side in ("left", "right")}
    if asked is not None:
        found |= annotations.workers.to_columns("worker", asked[rows["worker"].to_numpy(dtype=int)])
    return pd.DataFrame(
        found
        | {
            "expected_gain": rows["expected_gain"].astype(float),
            "entropy": entropy(source.posterior.astype(float))[task],
            "annotations": source.given.counts_by_kind().sum(-1)[task],
        }
    )


def _choose(
    gains: np.ndarray,
    joints: list[np.ndarray],
    is_open: np.ndarray,
    n: int,
    repeats: int,
    most: int | None,
    who: np.ndarray,
    *,
    again: bool,
) -> Iterator[tuple[int, int, float]]:
    """Pairs of task and worker with their gains, the largest first.

    A gain only falls as a task's other annotations are chosen, so that one which is still the largest when it is
    computed anew is the largest of all (Minoux 1978).

    Args:
        gains: of the first annotation to a task, ``(W, N)``.
        joints: of each worker, ``P(z_i = k, y_{ij} = l)``, ``(N, K, L)``; not looked at where `repeats` is 1.
        is_open: which pairs may be chosen, ``(W, N)``.
        repeats: how often a task may be chosen.
        most: how often a worker may be, or None.
        who: the worker of each row of `gains`, several of which may be one's, ``(W,)``.
        again: whether a pair may be chosen again.
    """
    heap = [(-gains[w, i], 0, int(i), int(w)) for w, i in np.argwhere(is_open)]  # gain, after how many choices
    heapq.heapify(heap)
    outcomes: dict[int, np.ndarray] = {}
    load, times = np.zeros(who.max() + 1, int), np.zeros(gains.shape[1], int)
    found = 0
    while heap and found < n:
        gain, after, i, w = heapq.heappop(heap)
        if times[i] >= repeats or (most is not None and load[who[w]] >= most):
            continue
        if after < times[i]:
            fresh = float(information(_with_annotation(outcomes[i], joints[w][i]), given=True))
            heapq.heappush(heap, (-fresh, int(times[i]), i, w))
            continue
        yield i, w, max(-gain, 0.0)
        found += 1
        times[i] += 1
        load[who[w]] += 1
        if repeats > 1:
            before = outcomes.get(i, joints[w][i].astype(float).sum(-1)[None])
            outcomes[i] = np.concatenate(np.moveaxis(_with_annotation(before, joints[w][i]), -1, 0))
            if again:
                heapq.heappush(heap, (gain, after, i, w))


def information(joint: np.ndarray, *, given: bool = False) -> np.ndarray:
    """Mutual information of truth and annotation in nats, from their joint probabilities ``(..., K, L)``: ``(...)``.

    Args:
        joint: of class and annotation.
        given: the first dimension is of outcomes that will be known, with their probabilities; sum over it.
    """
    alone = entropy(joint.sum(-1)) + entropy(joint.sum(-2))
    found = alone - entropy(joint).sum(-1) - entropy(joint.sum((-1, -2))[..., None])
    return found.sum(0) if given else found


def _with_annotation(outcomes: np.ndarray, joint: np.ndarray) -> np.ndarray:
    """Probabilities of class and earlier annotations ``(O, K)``, split by one more annotation: ``(O, K, L)``."""
    p = joint.sum(-1)
    confusion = joint / np.where(p > 0, p, 1.0)[:, None]
    return outcomes[:, :, None] * confusion


def _typical_joint(source: Posterior) -> np.ndarray:
    """:func:`joint_of` a typical worker: of pairs of a worker and a question those of the task's question."""
    annotations, own = source.annotations, _own_question(source.annotations)
    if own is None:
        return joint_of(source, *_typical(source))
    by_question = [joint_of(source, *_typical(source, own == place)) for place in range(len(annotations.questions))]
    return np.stack(by_question)[annotations.question, np.arange(annotations.n_tasks)]


def _own_question(annotations: Annotations) -> np.ndarray | None:
    """The position of each worker's question, ``(J,)``, −1 of no single one; None where workers are no such pairs."""
    pairs = annotations.workers
    if not isinstance(pairs, Units):
        return None
    places = {name: place for place, name in enumerate(annotations.questions)}
    return np.array([places.get(name, -1) for name in pairs.questions])[pairs.question]


def _typical(source: Posterior, of: np.ndarray | bool = True) -> tuple[np.ndarray | None, np.ndarray]:
    """Workers whose average, with these weights, is the typical one of some; None where no worker is named."""
    annotations = source.annotations
    if not annotations.named:
        return None, np.ones(1)
    share = np.where(of, annotations.n_by_worker(), 0)
    share = share / share.sum()
    if len(share) <= MOST_WORKERS:
        return np.arange(len(share)), share
    confusion = np.sum([weight * mean_confusions(fitted) for fitted, weight in source.weighty], axis=0)
    order = np.argsort(np.einsum("jkk->j", confusion[..., : annotations.n_classes]), kind="stable")
    at = np.searchsorted(share[order].cumsum(), (np.arange(MOST_WORKERS) + 0.5) / MOST_WORKERS)
    return order[np.minimum(at, len(share) - 1)], np.full(MOST_WORKERS, 1 / MOST_WORKERS)


def asked_workers(annotations: Annotations, workers: Any) -> np.ndarray:
    """Return the positions of the workers that can be asked, ``(W,)``.

    Raises:
        AnnotationError: a worker is unknown, or the annotations name none.
        ValueError: there is none.
    """
    if not annotations.named:
        raise AnnotationError("the annotations name no workers, so none can be asked for by name; leave workers out")
    listed = [*of_each_question(one_or_several(workers, annotations.workers), annotations.workers)]
    typical = "; leave workers out for the tasks that a typical worker is to be asked for"
    positions = positions_of(listed, annotations.workers, "workers:", typical)
    if not listed:
        raise ValueError("workers=[]: no worker can be asked; give some, or leave workers out for a typical worker")
    return np.unique(positions)


def _open(annotations: Annotations, asked: np.ndarray | None) -> np.ndarray:
    """A mask of the pairs of worker and task without an annotation yet, ``(W, N)``; all, for a typical worker.

    A pair of a worker and a question is asked about tasks of this question alone.
    """
    if asked is None:
        return np.ones((1, annotations.n_tasks), bool)
    annotated = np.zeros((annotations.n_workers, annotations.n_tasks), bool)
    annotated[annotations.worker, annotations.task] = True
    if (own := _own_question(annotations)) is not None:
        annotated |= own[:, None] != annotations.question
    return ~annotated[asked]


def joint_of(source: Posterior, workers: np.ndarray | None, weights: np.ndarray) -> np.ndarray:
    """``P(z_i = k, y = l)`` for the annotation of one of the workers, drawn by the weights: ``(N, K, L)``."""
    return np.sum([weight * _joint_under(fitted, workers, weights) for fitted, weight in source.weighty], axis=0)


def _joint_under(fitted: Fitted, workers: np.ndarray | None, weights: np.ndarray) -> np.ndarray:
    """Return the same probabilities ``(N, K, L)`` as :func:`joint_of`, under one story."""
    annotations = fitted.data
    more = np.arange(annotations.n_tasks, dtype=np.int32)
    task = np.concatenate([annotations.task, more])
    order = np.argsort(task, kind="stable")
    worker = None if workers is None else np.concatenate([annotations.worker, np.zeros_like(more)])[order]
    count = annotations.row_counts
    asked = annotations.replace(
        task=task[order],
        worker=worker,
        label=np.concatenate([annotations.label, more * 0])[order],
        count=np.concatenate([count, np.ones(len(more))]).astype(np.float32)[order],
        mirrored=None if annotations.mirrored is None else np.concatenate([annotations.mirrored, more < 0])[order],
    )
    some = fitted.thinned(min(int(np.prod(fitted.shape)), MOST_DRAWS))
    is_new = order >= annotations.n_rows
    return np.asarray(_joint(some, asked, is_new, workers, weights))


@compiled
def _joint(fitted: Fitted, asked: Annotations, is_new: Array, workers: Array | None, weights: Array) -> Array:
    """By the densities of all annotations with one more to each task, whatever else a task's annotations share.

    Args:
        asked: its annotations with one more row to each task.
        is_new: which rows of `asked` these are.
        workers: who may give the new annotations; None where nobody is named.
        weights: their probabilities.
    """
    data = fitted.annotations
    labels = jnp.arange(data.n_categories)
    tasks = jnp.arange(data.n_tasks)

    def of_draw(draw: Parameters) -> Array:
        at = fitted.at(draw)
        emission = at.likelihood.emission
        further = emission.further(data, jnp.asarray(data.label))
        if further is not None:

            def of_worker(total: Array, one: tuple[Array | None, Array]) -> tuple[Array, None]:
                worker, weight = one
                who = None if worker is None else jnp.full_like(tasks, worker)
                return total + weight * further.probs(who, tasks), None

            zero = jnp.zeros((data.n_tasks, data.n_classes, data.n_categories))
            probs = jax.lax.scan(of_worker, zero, (workers, weights))[0]
            return at.posterior[..., None] * probs

        before = at.log_joint - emission.by_task(data, data.label) - at.log_likelihood[:, None]
        if asked.mirrored is not None:
            emission = fitted.with_data(asked).at(draw).likelihood.emission

        def of_label(rows: Annotations, label: Array) -> Array:
            return jnp.exp(before + emission.by_task(rows, jnp.where(is_new, label, rows.label)))

        def add(total: Array, one: tuple[Array | None, Array]) -> tuple[Array, None]:
            worker, weight = one
            rows = (
                asked if worker is None else asked.replace(worker=jnp.where(is_new, worker, jnp.asarray(asked.worker)))
            )
            return total + weight * jax.lax.map(partial(of_label, rows), labels), None

        zero = jnp.zeros((data.n_categories, data.n_tasks, data.n_classes))
        return jnp.moveaxis(jax.lax.scan(add, zero, (workers, weights))[0], 0, -1)

    joint = fitted.mean_over_draws(of_draw)
    return joint / joint.sum((-1, -2), keepdims=True)
