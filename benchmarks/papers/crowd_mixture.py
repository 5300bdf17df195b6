"""What the experiments of the Crowd Mixture Model have in common: priors, rivals by the paper's names, verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .experiment import FAILS, HOLDS, HOLDS_IF, NOT_TESTED, TWICE, Finding, above

if TYPE_CHECKING:
    import pandas as pd

    from crowdppl.data import Annotations

PAPER = (
    "Mena & Ñanculef, Revisiting Machine Learning from Crowds: a Mixture Model for Grouping Annotations (CIARP 2019)."
)
PRIORS: dict[str, dict[str, Any]] = {
    "default": {},
    "one each": {"diagonal": 1.0, "off_diagonal": 1.0},
    "none": {"diagonal": 0.01, "off_diagonal": 0.01},
}
"""Hyperparameters of the priors of confusion matrices, by the names of the tables."""

PRIORS_SAY = (
    "Priors: 'default' is the story's, two right pseudo-annotations and one wrong one in each row of a confusion "
    "matrix; 'one each' adds one in each cell, as the authors' program does in CMM and DL-EM; 'none' adds 0.01, which "
    "is maximum likelihood but for empty cells, as in the authors' Dawid & Skene."
)
OURS = "one truth a task"
RESTARTS = 20
AS_PUBLISHED: dict[str, Any] = {
    "truth": "answer",
    "groups": 3,
    "start": "annotations",
    "warmup": 1,
    **PRIORS["one each"],
}
"""The paper's model: a truth for each annotation, three groups that k-means over annotations starts."""

BY_PRIOR = f"{TWICE} Judged under each prior of the other method; 'holds if' names those under which it does."
"""The rule of :func:`above_by_prior`."""

CONVERGED = 0.001  # relative change of the log-posterior in an iteration; the authors' program stops at 0.03


def nameless(annotations: Annotations) -> Annotations:
    """The annotations without their workers: the paper's *Global* setting."""
    from crowdppl.data import Ids

    return annotations.replace(worker=None, workers=Ids())


def each_alone(annotations: Annotations) -> Annotations:
    """The annotations as of a worker of its own each, which the paper's rivals have in the *Global* setting."""
    import numpy as np

    from crowdppl.data import Ids

    n = annotations.n_rows
    return annotations.replace(worker=np.arange(n, dtype=np.int32), workers=Ids.range(n))


def first_majority(annotations: Annotations) -> dict[Any, Any]:
    """The most frequent class of every annotated task, the first one of a tie, as in the authors' program."""
    import numpy as np

    votes = annotations.votes()
    tasks, classes = list(annotations.tasks), list(annotations.classes)
    return {tasks[i]: classes[votes[i].argmax()] for i in np.flatnonzero(votes.sum(-1))}


def trained(
    method: str,
    annotations: Annotations,
    prior: str = "default",
    *,
    named: bool = True,
    alone: bool = False,
    restarts: int = 1,
    **training: Any,
) -> tuple[Any, Any]:
    """A fit with a classifier, by the paper's name of the method.

    Args:
        method: ``"truth known"``, ``"softMV"``, ``"hardMV"``, ``"DL-DS"``, ``"DL-EM"``, ``"CMM"`` or :data:`OURS`.
        annotations: tasks with features.
        prior: one of :data:`PRIORS`; CMM is as published with ``"one each"``.
        named: whether DL-DS and DL-EM know the workers; else they have one confusion matrix for all annotations.
        alone: whether each annotation is of a worker of its own for them, as :func:`each_alone` has it.
        restarts: of CMM as published.
        training: ``classifier``, ``seed`` and options of the training.

    Returns:
        the fit, and the fit that has the confusion matrices, which is another one where the network is trained on
        another one's labels.
    """
    from crowdppl import fit, label_then_train

    found: Any
    training = {"progress": False, **training}
    without = nameless(annotations)
    if method in ("DL-DS", "DL-EM"):
        one: dict[str, Any]
        story, told, one = ("dawid_skene", annotations, {}) if named else ("cmm", without, {"groups": 1})
        if alone:
            story, told, one = "dawid_skene", each_alone(annotations), {"constant_workers": "keep"}
        options = {**one, **PRIORS[prior]}
        if method == "DL-DS":
            aggregated = fit(story, told, **options, sweeps=0, seed=training["seed"], progress=training["progress"])
            return label_then_train(aggregated, told, **training), aggregated
        found = fit(story, told, **options, **training)
    elif method == "truth known":
        found = fit("majority_vote", annotations, gold=True, **training)
    elif method == "softMV":
        found = label_then_train("naive_soft", annotations, **training)
    elif method == "hardMV":
        found = fit("majority_vote", annotations, gold=first_majority(annotations), **training)
    elif method == OURS:
        found = fit("cmm", without, **PRIORS[prior], **training)
    elif prior == "one each":
        found = fit("cmm", without, **AS_PUBLISHED, restarts=restarts, **training)
    else:
        found = fit("cmm", without, truth="answer", warmup=1, **PRIORS[prior], **training)
    return found, found


def converged_at(history: Any) -> int:
    """The first epoch after which no epoch changes the log-posterior by more than :data:`CONVERGED` of itself."""
    import numpy as np

    values = np.asarray(history, dtype=float)
    moved = np.flatnonzero(np.abs(np.diff(values) / values[:-1]) > CONVERGED)
    return int(moved[-1]) + 2 if len(moved) else 1


def above_by_prior(
    frame: pd.DataFrame,
    first: Mapping[str, Any],
    second: Mapping[str, Any],
    measure: str = "accuracy",
    *,
    digits: int = 1,
    less: bool = False,
) -> Finding:
    """Judge that one method has more of a measure than another under each prior of the other.

    It holds if it holds under all priors, and fails if it does under none.

    Args:
        frame: of all rows.
        first: settings of the method that is said to have more.
        second: those of the other, without its prior.
        measure: the column.
        digits: of the figures.
        less: judge that it has less.
    """
    ours, verdicts = [], {}
    for prior in PRIORS:
        finding = above(frame, measure, first, {**second, "prior": prior}, digits, less=less)
        if not finding.verdict.startswith(NOT_TESTED):
            verdicts[prior] = finding.verdict
            ours.append(f"{prior}: {finding.ours}")
    if not verdicts:
        return Finding("", f"{NOT_TESTED}: two seeds are needed to tell")
    holds = [repr(prior) for prior, verdict in verdicts.items() if verdict == HOLDS]
    if len(holds) in (0, len(verdicts)):
        return Finding("; ".join(ours), HOLDS if holds else FAILS)
    return Finding("; ".join(ours), f"{HOLDS_IF} the other's prior is {' or '.join(holds)}")
