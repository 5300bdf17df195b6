"""Levels of another truth: nearly all tasks in one class though workers tell them apart, and even classes."""

from collections.abc import Iterator

import numpy as np

from ...data import Annotations
from ...data.arrays import midranks
from ...models import Prevalence
from ..fitted.fitted import Fitted
from .of_crowd import crowd_of, open_question
from .register import Labels, Said, check

NEARLY_ALL = 0.95  # of the label probabilities, in one class
APART = 3.0  # standard errors by which workers put tasks in the same order


@check("one_class_of_levels", "crowd", needs={"workers"})
def one_class_of_levels(of: Labels) -> Iterator[Said]:
    """Nearly all tasks in one class, where workers' levels tell the tasks apart.

    A class that hardly any task has, and a scale that is hardly used on one side of where it is cut, look alike. Of 20
    panels of 60 tasks and 5 workers whose scale is shifted by three halves of their noise, and whose shares of the
    classes have a flat prior, 10 have such labels and were warned of, the others not, nor 20 without the shift.
    """
    annotations, crowd = of.annotations, crowd_of(of)
    if not annotations.scored or crowd is None or crowd.knows_names:
        return
    shares = crowd.posterior.mean(0)
    most = int(shares.argmax())
    if shares[most] < NEARLY_ALL or order_in_common(annotations) < APART:
        return
    name = annotations.classes[most]
    yield open_question(
        f"where the levels are cut: {shares[most]:.0%} of the label probabilities are {name!r}, although workers put "
        "the tasks in the same order, as where hardly any task is of another class, or where the scale is hardly used "
        "on one side of its middle",
        "truth_prior='uniform', or the shares of the classes, and the story score_factor, which takes no level for the "
        "middle, label by order",
        share=shares[most],
        of_class=name,
    )


@check("even_classes", "labels", needs={"story", "memory"})
def even_classes(of: Fitted) -> Iterator[Said]:
    """A truth of other classes than the levels, whose shares the story takes as equal."""
    annotations = of.annotations
    if not annotations.scored or annotations.evidence is not None:
        return
    if not isinstance(of.model.truth_prior, Prevalence) or "prevalence" in of.draws:
        return  # shares that were given, or that are learned
    names = [repr(name) for name in annotations.classes]
    yield Said(
        f"{of.story} does not learn how frequent the truth's classes are, and takes {' and '.join(names)} as equally "
        "frequent",
        "truth_prior={class: share, …} says otherwise; cp.estimate(fit, gold) has the shares by gold labels, and "
        "graded_response learns them where the scores tell",
        severity="note",
    )


def order_in_common(annotations: Annotations) -> float:
    """Return by how many standard errors two workers' levels of one task are alike, each by its rank of the worker's.

    The sum over tasks of the products of two workers' standardised midranks, beside its spread where they are
    independent.
    """
    worker, task = np.asarray(annotations.worker), np.asarray(annotations.task)
    score = np.zeros(len(worker))
    for rows in np.split(np.argsort(worker, kind="stable"), np.cumsum(np.bincount(worker))[:-1]):
        ranks = midranks(np.asarray(annotations.label)[rows])
        if len(rows) and ranks.std() > 0:
            score[rows] = (ranks - ranks.mean()) / ranks.std()
    total, squares = (np.bincount(task, score**power) for power in (1, 2))
    products, spread = total**2 - squares, squares**2 - np.bincount(task, score**4)
    return float(products.sum() / np.sqrt(max(2 * spread.sum(), 1e-12)))
