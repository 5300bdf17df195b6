r"""A classifier trained on labels that were made before: by a rule over votes, or by another fit.

.. math:: \max_w \sum_i \sum_k q_{ik} \log f_{w, k}(x_i)

with labels :math:`q_i`, hard or soft, that the classifier does not change.
"""

from typing import Any

import jax
import numpy as np

from ...data import Annotations, Ids, unknown_name
from ...data.padding import MOST_ROWS
from ...models import Classifier, observe, tasks
from ...models.parts.classifier import Network
from ...models.parts.scored_annotations import Taught
from ...models.parts.truth_prior import TruthPrior, class_log_probs
from ..densities.evidence import Gold, with_evidence
from ..engines.checkpoints import NOT_KEPT, CheckpointOptions
from ..engines.settings import EMSettings
from ..fit_story import ARGUMENTS
from ..fitted.by_rule import ByRule
from .training import checked_network, train
from .votes import RULES, agreement

SOFT = ("naive_soft", "smoothed_votes")
"""Rules whose shares a classifier learns, and not their most probable class."""


def label_by_rule(
    name: str,
    annotations: Annotations,
    *,
    classifier: Network | Classifier | None = None,
    gold: Gold = None,
    seed: int = 0,
    progress: bool = True,
    checkpoints: CheckpointOptions = NOT_KEPT,
    **options: Any,
) -> ByRule:
    """Label tasks by a rule over the votes, and train a classifier on the labels where one is given.

    Args:
        name: of one of :data:`.votes.RULES`.
        annotations: the data.
        classifier: as for :func:`crowdppl.fit`.
        gold: labels that are known, as for :func:`crowdppl.fit`; they take the place of the rule's.
        seed: of the classifier's start and batches.
        progress: whether to show a bar.
        checkpoints: where the training is kept; without a classifier there is nothing to keep.
        options: of the training: ``epochs``, ``batch_size``, ``network_rate``, and others of EM.

    Raises:
        AnnotationError: ``wawa`` of annotations that name no workers, or gold labels that do not fit.
        StoryError: there is a classifier and the tasks have no features.
        ValueError: an option of the training that cannot be, or that is given without a classifier.
        UnknownNameError: no option is called so.
    """
    found, annotations = with_known(RULES[name].probabilities(annotations), annotations, gold)
    by_worker = {"vote_weight": agreement(annotations)} if name == "wawa" else {}
    labelled = ByRule(name, annotations, found.astype(np.float32), by_worker=by_worker)
    if classifier is None:
        if checkpoints.folder is not None:
            raise ValueError(
                f"checkpoint={str(checkpoints.folder)!r}: {name} takes a moment, and has nothing to keep; leave it "
                "out, or give classifier="
            )
        for option in options:
            if option not in EMSettings._fields:
                raise unknown_name("option", option, ["classifier", "gold", "seed", "progress"], others=ARGUMENTS)
        if options:
            raise ValueError(
                f"{', '.join(map(repr, options))}: options of a classifier's training, and {name} trains none; leave "
                "them out, or give classifier="
            )
        return labelled
    soft = name in SOFT
    training: dict[str, Any] = {"seed": seed, "progress": progress, "checkpoints": checkpoints}
    return trained(labelled, name, classifier, soft=soft, **training, **options)


def with_known(posterior: np.ndarray, annotations: Annotations, gold: Gold) -> tuple[np.ndarray, Annotations]:
    """Labels' probabilities with the labels that are known in their place, and the annotations with these as evidence.

    Raises:
        AnnotationError: for gold labels that do not fit.
    """
    annotations = with_evidence(annotations, gold)
    if annotations.evidence is None:
        return posterior, annotations
    known = np.isneginf(np.asarray(annotations.evidence)).any(-1)
    found = np.array(posterior)
    found[known] = np.exp(np.asarray(annotations.evidence)[known])
    return found, annotations


def trained(
    labelled: ByRule,
    name: str,
    classifier: Network | Classifier,
    *,
    soft: bool,
    seed: int = 0,
    progress: bool = True,
    checkpoints: CheckpointOptions = NOT_KEPT,
    **options: Any,
) -> ByRule:
    """Train a classifier on labels; tasks that nobody annotated, and whose label is not known, teach nothing."""
    network = checked_network(name, labelled.annotations, classifier)
    lesson = lesson_of(labelled, soft=soft)
    prior = {"truth_prior": network}
    found = train(taught, lesson, prior, seed=seed, progress=progress, checkpoints=checkpoints, **options)
    changed = {option: value for option, value in options.items() if value is not None}
    about = {"settings": {**changed, "soft": soft, "seed": seed}, "by_worker": labelled.by_worker, **found._asdict()}
    return ByRule(name, labelled.annotations, labelled.posterior, classifier=network, **about)


def lesson_of(labelled: ByRule, *, soft: bool) -> Annotations:
    """The labels as annotations without workers: a row for each class of positive probability, which is its count.

    Where they are few there is a row for the other classes too, which counts 0, so that other labels of as many tasks
    are learnt from by the same compiled program.

    Args:
        labelled: labels of N tasks.
        soft: whether to take the probabilities; else the most probable class counts 1, and ties share.
    """
    data = labelled.annotations
    q = np.asarray(labelled.posterior, dtype=np.float32)
    if not soft:
        best = q == q.max(-1, keepdims=True)
        q = (best / best.sum(-1, keepdims=True)).astype(np.float32)
    is_known = np.zeros(data.n_tasks, bool) if data.evidence is None else np.ptp(data.evidence, axis=-1) > 0
    teaches = (data.votes().sum(-1) > 0) | is_known
    q = q * teaches[:, None]
    task, label = np.nonzero(np.ones_like(q) if q.size <= MOST_ROWS else q > 0)
    rows = {"task": task.astype(np.int32), "label": label.astype(np.int32), "count": q[task, label]}
    return data.without_workers().replace(gold=None, evidence=None, abstentions=Ids(), **rows)


def taught(annotations: Annotations, *, truth_prior: TruthPrior | None = None) -> None:
    """Labels are drawn from the classifier's probabilities: the story whose likelihood is the cross-entropy."""
    log_probs = class_log_probs(annotations, truth_prior)
    with tasks(annotations, jax.lax.stop_gradient(log_probs)) as truth:
        observe(truth, Taught(log_probs), annotations)
