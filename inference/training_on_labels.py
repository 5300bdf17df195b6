"""Training on labels that were made before: label first and then train, and self-training."""

from collections.abc import Mapping
from functools import partial
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from ..data import AnnotationError, Annotations, unknown_name
from ..data.errors import truth_value
from ..data.exports.reading import read_if_needed
from ..models import ALIASES, KNOWN_STORIES, find_story
from .baselines.fit_baseline import BASELINES
from .baselines.self_training import SelfTraining
from .baselines.self_training import self_train as train_on_own_annotations
from .baselines.two_step import SOFT, label_by_rule, trained
from .baselines.votes import RULES
from .engines.checkpoints import CheckpointOptions
from .findings.look import findings
from .fit_story import fit_story
from .fitted.by_rule import ByRule
from .fitted.members import checked_members, from_seeds, mean_of_members
from .fitted.posterior import Posterior
from .result import Fit

TWO_STEP: dict[str, tuple[str, dict[str, Any]]] = {
    "dl_mv": ("majority_vote", {}),
    "dl_ns": ("naive_soft", {}),
    "dl_wawa": ("wawa", {}),
    "dl_ds": ("dawid_skene", {"sweeps": 0}),
    "dl_glad": ("glad", {"sweeps": 0}),
    "dl_wc": ("annotator_groups", {"membership": "worker", "share": 0.1, "sweeps": 0}),
}
"""By the name of papers, which rule or story labels the tasks, with its options. Labels are those at EM's mode there.

DL-WC has workers who share the confusion matrix of their cluster (Imamura, Sato & Sugiyama 2018): the sparse prior of a
worker's weights puts the worker into one group.
"""


def label_then_train(
    labels: str | Posterior,
    annotations: Annotations,
    *,
    classifier: Any,
    soft: bool | None = None,
    label_options: Mapping[str, Any] | None = None,
    seed: int = 0,
    progress: bool = True,
    checkpoint: str | PathLike[str] | None = None,
    every: float | str | None = None,
    resume: bool = False,
    **options: Any,
) -> Fit:
    """Label the tasks first, and then train a classifier on the labels alone.

    Args:
        labels: what labels the tasks: a rule (``"majority_vote"``, ``"wawa"``, ``"naive_soft"``), any story's name, the
            name that papers give to the two steps together (``"dl_mv"``, ``"dl_ns"``, ``"dl_wawa"``, ``"dl_ds"``,
            ``"dl_glad"``, ``"dl_wc"``), or a fit of these annotations.
        annotations: the data, with features of the tasks, as for :func:`crowdppl.fit`, in memory.
        classifier: as for :func:`crowdppl.fit`.
        soft: whether the classifier learns from the labels' probabilities; else from the most probable class of each
            task. None for yes after ``"naive_soft"`` and ``"smoothed_votes"``, and no after everything else, as in the
            papers.
        label_options: options of the fit that labels, such as ``{"method": "svi"}``.
        seed: of both steps.
        progress: show a progress bar.
        checkpoint: a folder where both steps keep where they stand, each in a folder within it, as for
            :func:`crowdppl.fit`: the first is not run again once it is finished.
        every: likewise.
        resume: likewise.
        options: of the training: ``epochs``, ``batch_size``, ``network_rate``, and others of EM.

    Returns:
        The labels of the first step, and ``predict_proba`` of the classifier.

    Raises:
        UnknownNameError: nothing of that name labels tasks.
        AnnotationError: the labels are of other tasks.
        StoryError: the tasks have no features.
        ValueError: for options that cannot be.
    """
    annotations, soft = _in_memory(annotations, tell=progress), truth_value("soft", soft, maybe=True)
    checkpoints = CheckpointOptions.of(checkpoint, every, resume)
    checkpoints.check_new()
    first: Any = labels
    if isinstance(labels, str):
        name, given = TWO_STEP.get(labels.lower().replace("-", "_"), (labels, {}))
        given = {**given, **_checked_options(label_options, name)}
        if name in RULES:
            first = label_by_rule(name, annotations, **given)
        elif _is_story(name):
            where = None if checkpoints.folder is None else checkpoints.within("labels")
            first = fit_story(name, annotations, checkpoints=where, **{"seed": seed, "progress": progress, **given})
        else:
            raise unknown_name("rule, story or two-step method", name, [*RULES, *TWO_STEP, *KNOWN_STORIES, *ALIASES])
        name = f"{name}, then train"
    else:
        if label_options:
            raise ValueError("label_options are of the rule or story that labels tasks, and labels are given as a fit")
        name = f"{getattr(labels, 'story', 'labels')}, then train"
        if list(labels.annotations.tasks) != list(annotations.tasks):
            raise AnnotationError("the labels are of other tasks than the annotations; give a fit of these annotations")
    soft = name.startswith(SOFT) if soft is None else soft
    labelled = ByRule(name, first.annotations, np.asarray(first.posterior, dtype=np.float32))
    kept = checkpoints.within("training")
    training: dict[str, Any] = {"seed": seed, "progress": progress, "checkpoints": kept}
    return Fit.of(trained(labelled, name, classifier, soft=soft, **training, **options))


def _checked_options(label_options: Mapping[str, Any] | None, name: str) -> Mapping[str, Any]:
    """The options of what labels."""
    if label_options is None:
        return {}
    if not isinstance(label_options, Mapping):
        raise ValueError(f"label_options={label_options!r}: options by name are needed, such as {{'method': 'svi'}}")
    unknown = [option for option in label_options if option != "gold"] if name in RULES else []
    if unknown:
        raise ValueError(
            f"label_options: {name} labels by a rule, whose one option is 'gold', not {', '.join(map(repr, unknown))}; "
            "options of the classifier's training stand beside label_options"
        )
    return label_options


def _is_story(name: str) -> bool:
    try:
        find_story(name)
    except ValueError:
        return False
    return True


def self_train(
    story: str | Any,
    annotations: Annotations,
    *,
    rounds: int = 5,
    growth: float = 8.0,
    select: str = "distribution",
    anew: bool = True,
    held_out: float = 0.0,
    members: int = 1,
    seed: int = 0,
    progress: bool = False,
    checkpoint: str | PathLike[str] | None = None,
    every: float | str | None = None,
    resume: bool = False,
    **options: Any,
) -> SelfTraining:
    """Fit a story and let it annotate for its workers what they have not annotated, round by round (DASC).

    A round fits the story, predicts each worker's annotation of each task that the worker has not annotated, and adds
    those it trusts as pseudo-annotations to what the next round is fitted to. They are chosen against the imbalance of
    the classes (Shi, Li & Huang 2022): :mod:`crowdppl.inference.baselines.self_training`. Gold labels are used for
    ``rounds``' scores alone, unless ``gold=`` gives them to the fits.

    The paper's schedule, 10,000 pseudo-annotations more in each of five rounds, is ``self_train("crowd_layer",
    annotations, classifier=cp.Classifier("mlp"), rounds=5, growth=10_000 / annotations.n_annotations, epochs=25,
    batch_size=512, weight_decay=5e-4, network_rate=1e-3)``, whose networks start on the shares of the votes
    (``warmup``).

    Args:
        story: as for :func:`crowdppl.fit`; ``"crowd_layer"``, ``"anno_reg"``, or any story, with a classifier; or a
            baseline, such as ``"wdn"``.
        annotations: the data, as for :func:`crowdppl.fit`, in memory; workers are named, and there are no abstentions.
        rounds: how many times pseudo-annotations are added; at the most, with ``held_out``.
        growth: how many a round adds for each annotation that was given.
        select: ``"distribution"`` for the paper's quotas of each class; ``"confidence"`` for the surest whatever their
            class, and ``"random"``, which it compares with.
        anew: whether each round predicts and chooses all pseudo-annotations anew, those of earlier rounds too.
        held_out: share of the annotations that choose the number of rounds: the first course of rounds is without them,
            and predicts them; the second is of all annotations, for as many rounds as predicted them best.
        members: how many times all of it is done, each from another seed, where there is a network: ``fit`` is then
            their average, as of :func:`crowdppl.fit`, ``rounds`` and ``stopped`` are by member, too, and ``pseudo`` has
            a column of it.
        seed: of the fits, and of what is drawn.
        progress: show each fit's progress bar.
        checkpoint: a folder where the fit of each round keeps where it stands, in a folder within it, as for
            :func:`crowdppl.fit`: finished rounds are not run again.
        every: likewise.
        resume: likewise.
        options: of :func:`crowdppl.fit`: ``classifier``, ``method``, hyperparameters, and options of the engine.

    Raises:
        AnnotationError: no worker is named, there are abstentions, or what is given are no annotations in memory.
        UnknownNameError: there is no such way to select.
        ValueError: for numbers that cannot be.
        StoryError: as :func:`crowdppl.fit`.
    """
    is_rule = isinstance(story, str) and story in (*BASELINES, "auto")
    members = checked_members(members, story, options.get("classifier"), averages=is_rule)
    train = partial(
        train_on_own_annotations,
        story,
        _in_memory(annotations, tell=progress),
        rounds=rounds,
        growth=growth,
        select=select,
        anew=anew,
        held_out=held_out,
        progress=progress,
        **options,
    )
    keeping = CheckpointOptions.of(checkpoint, every, resume)
    if members == 1:
        found = train(seed=seed, checkpoints=keeping)
    else:
        found = _together(from_seeds(train, members, seed, keeping))
    findings(found.fit).warn(stacklevel=2)
    return found._replace(fit=Fit.of(found.fit))


def _together(each: Mapping[str, SelfTraining]) -> SelfTraining:
    """Self-training from several seeds as one: the mean of the last fits, and tables by member."""
    fits = {name: fitted for name, one in each.items() for fitted in one.fit.members.values()}
    rounds, pseudo = (
        pd.concat({name: getattr(one, of) for name, one in each.items()}, names=["member"])
        for of in ("rounds", "pseudo")
    )
    stopped = {name: one.stopped for name, one in each.items() if one.stopped is not None}
    return SelfTraining(
        mean_of_members(fits),
        rounds,
        pseudo.reset_index("member").reset_index(drop=True),
        pd.concat(stopped, names=["member"]) if stopped else None,
    )


def _in_memory(data: Any, *, tell: bool) -> Annotations:
    """Return annotations, or what a path, a table or records have."""
    found = read_if_needed(data, tell=tell)
    if not isinstance(found, Annotations):
        raise AnnotationError(
            f"annotations in memory are needed second, got a {type(found).__name__}; make them with "
            "cp.read(path or table)"
        )
    return found
