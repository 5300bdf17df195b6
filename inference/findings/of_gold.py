"""Gold labels that a fit used, and what speaks against them."""

from collections.abc import Iterator

import numpy as np

from ...data.description import count_text
from ..fitted.misled import told_label
from .of_crowd import FEW
from .register import Labels, Said, check


@check("contradicted_gold", "gold", needs={"memory"})
def contradicted_gold(of: Labels) -> Iterator[Said]:
    """Gold labels that a fit used and a crowd that agrees contradicts: the first of them, and how many there are."""
    annotations = of.annotations
    known = told_label(annotations)
    votes = np.asarray(annotations.of_classes().votes(), float)
    n = votes.sum(1)
    against = (known >= 0) & (n >= FEW) & (votes.max(1) == n) & (votes.argmax(1) != known)
    if not against.any():
        return
    first = int(np.argmax(against))
    task, classes = list(annotations.tasks)[first], list(annotations.classes)
    gold, given = classes[known[first]], classes[int(votes[first].argmax())]
    others = f"; so it is with {count_text(int(against.sum()) - 1, 'other task')}" if against.sum() > 1 else ""
    yield Said(
        f"the gold label of the task {task!r} is {gold!r}, and all {n[first]:g} annotations of it are {given!r}"
        f"{others}",
        "The gold label counts as known; look whether it is right",
        {"task": task, "gold": gold, "given": given, "tasks": against.sum()},
    )
