r"""Self-training: a fit predicts annotations that nobody gave, and learns from those it trusts (Shi, Li & Huang 2022).

Round by round the fit predicts what each worker would annotate to each task that the worker has not annotated. Of the
pairs whose most probable annotation is class c, the :math:`M_c` of least entropy become pseudo-annotations, and the
story is fitted anew to all annotations. The quotas lean against the imbalance,

.. math:: M_c = t_c M, \quad t_c = \frac{1 / n_c}{\sum_{c'} 1 / n_{c'}}

with :math:`n_c` annotations of class c (their equations 2 to 4, algorithm 1: DASC). A quota that exceeds the supply
takes what there is, and leaves the rest to no other class, whose annotations would grow beyond theirs.

Round r has r times as many pseudo-annotations as the first. They are all predicted and chosen anew, so that a round
corrects what an earlier one got wrong, and the quotas are by the annotations that were given; or earlier ones are kept,
and count for the quotas.

What is trained is a story, or a baseline: both have labels, and say what each worker would annotate.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax import Array

from ...data import Annotations
from ...data.errors import check_name, real_number, truth_value, warn, whole_number
from ..densities.enumerated import Parameters
from ..densities.programs import compiled
from ..engines.checkpoints import NOT_KEPT, CheckpointOptions
from ..engines.finding import OF_DATA, ConvergenceWarning
from ..findings.look import look_at
from ..fit_story import fit_story
from ..fitted.by_rule import ByRule
from ..fitted.confusion_scores import entropy
from ..fitted.fitted import Fitted
from ..fitted.posterior import Posterior
from .fit_baseline import BASELINES, fit_baseline
from .imbalance import imbalance_ratio
from .training import refuse_nameless

SELECTIONS = ("distribution", "confidence", "random")
OF_EACH_TASK = ("evidence", "prior", "model_scores", "model_reference", "models")
"""Fields of annotations in which a fit keeps what it was given of each task, and a torch module's probabilities."""

Learnt = Fitted | ByRule
"""Result of a round's training; it has ``posterior``, and :func:`predicted_annotations` takes it."""


class SelfTraining(NamedTuple):
    """Result of self-training. Made by :func:`crowdppl.self_train`.

    Attributes:
        fit: the fit of the last round, beside the annotations that were given, of which its findings on the crowd are.
        rounds: by round, from 0 for the fit without pseudo-annotations: pseudo_annotations; imbalance, annotations of
            the most frequent class for each of the rarest; where gold labels are known precision and recall of the
            pseudo-annotations, accuracy and balanced accuracy of the labels, means over the classes but for accuracy.
        pseudo: the pseudo-annotations of the last round: task, worker, label, and the round in which each was made.
        stopped: by round the score of held-out annotations by which the number of rounds was chosen; None where it was
            given.
    """

    fit: Any
    rounds: pd.DataFrame
    pseudo: pd.DataFrame
    stopped: pd.Series | None = None


def self_train(
    story: Any,
    annotations: Annotations,
    *,
    rounds: int = 5,
    growth: float = 8.0,
    select: str = "distribution",
    anew: bool = True,
    held_out: float = 0.0,
    seed: int = 0,
    watch: Callable[[int, Learnt], dict[str, float]] | None = None,
    checkpoints: CheckpointOptions | None = None,
    **options: Any,
) -> SelfTraining:
    """Fit a story and let it annotate for its workers, round by round: see :func:`crowdppl.self_train`."""
    rounds = whole_number("rounds", rounds, least=0)
    growth = real_number("growth", growth, above=0)
    held_out = real_number("held_out", held_out, least=0, below=1)
    check_name("select", select, SELECTIONS)
    anew = truth_value("anew", anew)
    refuse_nameless("self-training annotates for workers", annotations)
    checkpoints = NOT_KEPT if checkpoints is None else checkpoints
    checkpoints.check_new()
    annotations = annotations.replace(mirrored=None)  # annotations that a story makes up were shown in no order
    given = {"growth": growth, "select": select, "anew": anew, "seed": seed, "watch": watch, **options}
    if held_out:
        kept, out = _split(annotations, held_out, seed)
        tried = _rounds(story, kept, rounds, out=out, checkpoints=checkpoints.within("held out"), **given)
        stopped = tried.rounds["held_out"]
        chosen = int(np.argmax(stopped))
        found = _rounds(story, annotations, chosen, checkpoints=checkpoints.within("chosen"), **given)
        return found._replace(stopped=stopped)
    return _rounds(story, annotations, rounds, checkpoints=checkpoints, **given)


def _rounds(
    story: Any,
    annotations: Annotations,
    rounds: int,
    *,
    growth: float,
    select: str,
    anew: bool,
    seed: int,
    watch: Callable[[int, Learnt], dict[str, float]] | None,
    checkpoints: CheckpointOptions,
    out: tuple[np.ndarray, ...] | None = None,
    **options: Any,
) -> SelfTraining:
    """Fit, annotate, and fit again; ``out`` are held-out tasks, workers and labels to score the predictions by."""
    grid, first = completed(annotations)
    rng = np.random.default_rng(seed)
    label, count, since = np.array(grid.label), np.array(grid.count), np.zeros(grid.n_rows, int)
    is_open = np.zeros(grid.n_rows, bool)
    is_open[first:] = True
    order = np.argsort(np.asarray(grid.task), kind="stable")  # given rows first, then sorted by task as rows have to be
    task, worker = np.asarray(grid.task), np.asarray(grid.worker)
    if out is not None:
        is_open[first:] &= ~np.isin(_cell(grid, task[first:], worker[first:]), _cell(grid, out[0], out[1]))
    rows = []
    number, said = 0, False
    while True:
        data = grid.replace(
            task=task[order], worker=worker[order], label=label[order], count=count[order].astype(np.float32)
        )
        fitted = _fit(story, data, checkpoints.within(f"round {number}"), seed=seed, **options)
        predicted = predicted_annotations(fitted)
        own = _beside(fitted, annotations)
        row = {"round": number, **_round_scores(annotations, own, data, label, since, task, is_open | (since > 0))}
        if out is not None:
            row["held_out"] = float(np.log(np.maximum(predicted[out[0], out[1], out[2]], 1e-30)).mean())
        rows.append(row | ({} if watch is None else watch(number, own)))
        if number == rounds:
            break
        number += 1
        p, total = predicted[task, worker], growth * annotations.n_annotations
        if anew:
            is_open, count, since = is_open | (since > 0), np.where(since > 0, 0.0, count), np.zeros_like(since)
            total = number * total
        chosen = select_pairs(p, is_open, np.bincount(label, count, grid.n_classes), total, select, rng)
        if not said and len(chosen) == is_open.sum():
            said = True
            warn(
                f"round {number} asks for {total:,.0f} pseudo-annotations, and takes all {len(chosen):,} open pairs of "
                f"a task and a worker: select={select!r} selects nothing; give a smaller growth= or fewer rounds",
                ConvergenceWarning,
            )
        label[chosen], count[chosen], since[chosen] = p[chosen].argmax(-1), 1.0, number
        is_open[chosen] = False
    made = np.flatnonzero(since)
    names = grid.tasks.to_columns("task", task[made]) | grid.workers.to_columns("worker", worker[made])
    pseudo = pd.DataFrame(names | grid.classes.to_columns("label", label[made]))
    own = own.replace(stored_posterior=own.posterior) if isinstance(own, Fitted) else own
    own = replace(own, findings=(*(each for each in own.findings if each.about not in OF_DATA), *look_at(own, OF_DATA)))
    return SelfTraining(Posterior.of(own), pd.DataFrame(rows).set_index("round"), pseudo.assign(round=since[made]))


def _fit(story: Any, annotations: Annotations, kept: CheckpointOptions, **options: Any) -> Learnt:
    if isinstance(story, str) and story in BASELINES:
        return fit_baseline(story, annotations, checkpoints=kept, **options)
    return fit_story(story, annotations, checkpoints=None if kept.folder is None else kept, **options)


def _beside(found: Learnt, annotations: Annotations) -> Learnt:
    """Return the fit or baseline beside the annotations that were given, without the pseudo-annotations.

    What the fit was given of each task, or a torch module says of it, stays there.
    """
    own = annotations.replace(**{name: getattr(found.annotations, name) for name in OF_EACH_TASK})
    return found.with_data(own) if isinstance(found, Fitted) else replace(found, annotations=own)


def completed(annotations: Annotations) -> tuple[Annotations, int]:
    """The annotations with a row of count 0 for each task and worker without one, after the given rows.

    Rows are not sorted by task. All rounds have these rows, so that nothing is compiled anew.

    Returns:
        the annotations, and the number of rows that were given.
    """
    n, j = annotations.n_tasks, annotations.n_workers
    missing = np.ones(n * j, bool)
    missing[_cell(annotations, np.asarray(annotations.task), np.asarray(annotations.worker))] = False
    cell = np.flatnonzero(missing)
    count = annotations.row_counts
    found = annotations.replace(
        task=np.concatenate([annotations.task, cell // j]).astype(np.int32),
        worker=np.concatenate([annotations.worker, cell % j]).astype(np.int32),
        label=np.concatenate([annotations.label, np.zeros(len(cell))]).astype(np.int32),
        count=np.concatenate([count, np.zeros(len(cell))]).astype(np.float32),
        seconds=None,
        when=None,
    )
    return found, annotations.n_rows


def select_pairs(
    p: np.ndarray, is_open: np.ndarray, n_by_class: np.ndarray, total: float, select: str, rng: np.random.Generator
) -> np.ndarray:
    """Rows that become pseudo-annotations.

    Args:
        p: predicted annotations, ``(A, K)``.
        is_open: rows that may be chosen, ``(A,)``.
        n_by_class: annotations of each class so far, ``(K,)``.
        total: M, how many to choose.
        select: one of :data:`SELECTIONS`.
        rng: of what is drawn.
    """
    rows = np.flatnonzero(is_open)
    if select == "random":
        return rng.choice(rows, min(round(total), len(rows)), replace=False)
    rows = rows[np.argsort(entropy(p[rows].astype(float)), kind="stable")]
    if select == "confidence":
        return rows[: round(total)]
    guess = p[rows].argmax(-1)
    quota = total * class_shares(n_by_class)
    return np.concatenate([rows[guess == c][: round(quota[c])] for c in range(len(quota))])


def class_shares(n_by_class: np.ndarray) -> np.ndarray:
    r"""Each class's share of the quota, :math:`t_c \propto 1 / n_c`, ``(K,)``; a class that nobody gave counts one."""
    inverse = 1 / np.maximum(n_by_class, 1.0)
    return inverse / inverse.sum()


def predicted_annotations(fitted: Learnt) -> np.ndarray:
    r"""Return the probability of each label that each worker may give to each task.

    For a story :math:`\sum_k P(z_i = k \mid y) P(y_{ij} = l \mid z_i = k)`, averaged over the draws; for a baseline its
    own predictions.

    Returns:
        ``(N, J, K)``.
    """
    if isinstance(fitted, ByRule):
        return np.asarray(fitted.predicted_annotations(), dtype=float)
    found = np.asarray(_predicted(fitted), dtype=float)[..., : fitted.annotations.n_classes].swapaxes(0, 1)
    return found / found.sum(-1, keepdims=True)


@compiled(once=True)
def _predicted(fitted: Fitted) -> Array:
    task = jnp.arange(fitted.annotations.n_tasks)

    def of_draw(draw: Parameters) -> Array:
        at = fitted.at(draw)
        emission, posterior = at.likelihood.emission, at.posterior

        def of_worker(worker: Array) -> Array:
            return jnp.einsum("nk,nkl->nl", posterior, emission.probs(jnp.full_like(task, worker), task))

        return jax.lax.map(of_worker, jnp.arange(fitted.annotations.n_workers))

    return fitted.mean_over_draws(of_draw)


def _round_scores(
    annotations: Annotations,
    fitted: Learnt,
    data: Annotations,
    label: np.ndarray,
    since: np.ndarray,
    task: np.ndarray,
    candidates: np.ndarray,
) -> dict[str, float]:
    """Sizes and imbalance of a round, and where gold is known how right its pseudo-annotations and labels are."""
    pseudo = since > 0
    found: dict[str, float] = {"pseudo_annotations": int(pseudo.sum()), "imbalance": imbalance_ratio(data)}
    if annotations.gold is None:
        return found
    gold = np.asarray(annotations.gold)
    of_row, right, recalled, of_label = gold[task], [], [], []
    for c in range(annotations.n_classes):
        hit = (pseudo & (label == c) & (of_row == c)).sum()
        right.append(hit / max((pseudo & (label == c) & (of_row >= 0)).sum(), 1))
        recalled.append(hit / max((candidates & (of_row == c)).sum(), 1))
        of_label.append(
            (annotations.kind.label(fitted.posterior) == c)[gold == c].mean() if (gold == c).any() else np.nan
        )
    precision, recall = (float(np.mean(x)) if pseudo.any() else np.nan for x in (right, recalled))
    accuracy = float((annotations.kind.label(fitted.posterior) == gold)[gold >= 0].mean())
    return found | {
        "precision": precision,
        "recall": recall,
        "accuracy": accuracy,
        "balanced_accuracy": float(np.nanmean(of_label)),
    }


def _split(annotations: Annotations, share: float, seed: int) -> tuple[Annotations, tuple[np.ndarray, ...]]:
    """The annotations without a share of their rows, and those: tasks, workers, labels."""
    out = np.random.default_rng(seed).random(annotations.n_rows) < share
    taken = (annotations.task, annotations.worker, annotations.label)
    return annotations.rows(~out), tuple(np.asarray(values)[out] for values in taken)


def _cell(annotations: Annotations, task: np.ndarray, worker: np.ndarray) -> np.ndarray:
    return np.asarray(task, np.int64) * annotations.n_workers + np.asarray(worker)
