"""Labels that lost a class on the way, or may be turned around."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..fitted.averaged_labels import thin_at_mode
from ..fitted.beyond_chance import agreement
from ..fitted.fitted import Fitted
from ..fitted.reversal import reversal_doubt
from ..sources.on_disk import Files
from .of_crowd import is_one_sided
from .register import NEEDS, Labels, Said, check

MUCH = 0.25  # without workers' names: share of the annotations from which a class should be some tasks' label
ENOUGH = 5  # tasks that such a class should have before its absence says anything
AGREES = 3.0  # standard deviations by which workers agree on the class beyond chance
LEFT = 0.1  # of the class's tasks
LESS_SURE = 0.05  # of the mean probability of the labels, by which averaging has to lower it to be told of
SCARCE = 2.0  # annotations for each parameter, of fewer of which labels at the mode are warned of
DOUBT = 0.05  # that the labels are turned around, beyond which it is said
REMEDY = "compare with majority vote, give gold labels or another story"


@check("lost_class", "crowd")
def lost_class(of: Any) -> Iterator[Said]:
    """Classes that workers agree on beyond chance and hardly any task has.

    Where annotations are in memory and their workers are named, a class is lost to which the majority vote gives five
    tasks or more, on which workers agree by more than three standard deviations (:mod:`.beyond_chance`), and of which
    the labels have less than a tenth of these tasks, by their probabilities or as the most probable class, of which
    equal ones share a task: an average with the votes leaves each class a share that decides no task. Of workers who
    give one class each (:func:`.is_one_sided`) no agreement is known, and the vote says enough. Else, by sums over all
    tasks, one that a quarter of the annotations give. Data so small that the class would have fewer than five tasks say
    nothing. Warned are none of 120 healthy crowds (``benchmarks/findings.py``).
    """
    if NEEDS["workers"](of):
        yield from _of_agreement(of)
    elif hasattr(of, "class_totals"):
        yield from _of_totals(of)


def _of_agreement(of: Any) -> Iterator[Said]:
    found, posterior = agreement(of.annotations), np.asarray(of.posterior, float)
    tasks = np.minimum(posterior.sum(0), of.annotations.kind.majority(posterior).sum(0))
    classes, votes, z = list(of.annotations.classes), found.votes, found.z_by_class
    if one_sided := is_one_sided(of.annotations):
        given = of.annotations.votes()
        votes = (of.annotations.kind.majority(given) * (given.sum(1) > 0)[:, None]).sum(0)
    for k in np.flatnonzero((votes >= ENOUGH) & (one_sided | (z > AGREES)) & (tasks < LEFT * votes)).tolist():
        agree = "" if one_sided else f" workers agree on it by {z[k]:.1f} standard deviations more than by chance,"
        yield Said(
            f"the labels have lost the class {classes[k]!r}: the majority vote gives it {votes[k]:.0f} tasks,{agree} "
            f"and by the labels {tasks[k]:.1f} tasks are of it",
            REMEDY,
            {"class": classes[k], "tasks_of_votes": votes[k], "tasks": tasks[k], "z": z[k]},
        )


def _of_totals(of: Any) -> Iterator[Said]:
    totals = of.class_totals
    tasks, votes, classes = totals["tasks"].to_numpy(), totals["annotations"].to_numpy(), list(totals.index)
    n_tasks = tasks.sum()
    given, found = votes / max(votes.sum(), 1), tasks / max(n_tasks, 1)
    for k in np.flatnonzero((given >= MUCH) & (given * n_tasks >= ENOUGH) & (found < LEFT * given)).tolist():
        yield Said(
            f"the labels have lost the class {classes[k]!r}: {given[k]:.0%} of the annotations are of it, and "
            f"{found[k]:.1%} of the tasks",
            REMEDY,
            {"class": classes[k], "of_annotations": given[k], "of_tasks": found[k]},
        )


@check("turned_around", "crowd", needs={"workers"})
def turned_around(of: Labels) -> Iterator[Said]:
    """Labels by which workers are hardly better than chance in the mean, so that the other party may be right.

    It is said from a doubt of 5 % on (:mod:`.reversal`), which speaks of ten workers or more: of none of 60 healthy
    crowds, and of four in ten of two classes where everybody guesses (``benchmarks/one_finding.py``).
    """
    doubt = reversal_doubt(of.annotations, of.posterior)
    if doubt > DOUBT:
        yield Said(
            f"by the labels, workers are hardly better than chance in the mean: with a probability of {doubt:.0%} it "
            "is the other workers who are right",
            "compare with gold labels of some tasks, and give them to the fit",
            {"doubt": doubt},
        )


@check("averaged_labels", "labels", needs={"story"})
def averaged_labels(of: Fitted) -> Iterator[Said]:
    """Labels of EM that are averaged over what the parameters may be, and far less sure than at the mode, as a note."""
    facts = of.outcome.facts
    if of.method != "em" or facts.get("sure_at_mode", 0) - facts.get("sure", 0) <= LESS_SURE:
        return
    yield Said(
        f"with {facts['per_parameter']:.1f} annotations for each parameter the data do not tell the parameters well: "
        f"label probabilities are averaged over {facts['sweeps']} sweeps of data augmentation, and {facts['sure']:.2f} "
        f"in the mean, where those at the mode would be {facts['sure_at_mode']:.2f}",
        "sweeps=0 gives those at the mode, method='svi' and 'nuts' draws of the parameters",
        {name: facts[name] for name in ("sweeps", "per_parameter", "sure", "sure_at_mode")},
        severity="note",
    )


@check("labels_at_mode", "labels", needs={"story"})
def labels_at_mode(of: Fitted) -> Iterator[Said]:
    """Labels of EM at the mode alone where few annotations tell each of many parameters.

    It is a warning under :data:`SCARCE` annotations for each: of crowds of 600 tasks and 2,400 annotations with ten,
    twenty and forty classes, 1.1 to .1 for each, a third to nine in ten of the wrong labels have a probability over
    .99 at the mode, and one in ten with five classes, of 4.8 for each.
    """
    per_parameter = thin_at_mode(of)
    if per_parameter is None:
        return
    at_once = " without a batch_size" * (of.settings.get("batch_size") is not None)
    in_memory = f"sweeps=15{at_once} averages them, method='svi' draws the parameters, and 'auto' is less sure"
    of_files = "method='svi' draws the parameters; 'auto', and sweeps=15, which averages them, read all into memory"
    yield Said(
        f"with {per_parameter:.1f} annotations for each parameter the data do not tell the parameters well, and label "
        "probabilities, which are those at the mode, are surer than that allows",
        of_files if isinstance(of.whole, Files) else in_memory,
        {"per_parameter": per_parameter},
        severity="warning" if per_parameter < SCARCE else "note",
    )
