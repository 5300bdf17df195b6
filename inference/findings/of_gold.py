"""Gold labels that a fit used, what speaks against them, and what they would tell where there are none."""

from collections.abc import Iterator

import numpy as np

from ...data.description import count_text
from ...data.id_text import name_quoted
from ..fitted.misled import told_label
from ..fitted.posterior import Posterior
from .of_crowd import FEW
from .register import Labels, Said, check

FEW_GOLD = 5  # labels below which one class among them says nothing
ASKED = 20  # gold labels to ask for, of half of the tasks at the most


@check("contradicted_gold", "gold", needs={"memory"})
def contradicted_gold(of: Labels) -> Iterator[Said]:
    """Gold labels that a fit used and a crowd that agrees contradicts: the first of them, and how many there are."""
    annotations = of.annotations
    known = told_label(annotations)
    if not (known >= 0).any():
        return
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
        f"the gold label of the task {name_quoted(task)} is {gold!r}, and all {n[first]:g} annotations of it are "
        f"{given!r}{others}",
        "The gold label counts as known; look whether it is right",
        {"task": task, "gold": gold, "given": given, "tasks": against.sum()},
    )


@check("gold_would_tell", "gold", needs={"average"})
def gold_would_tell(of: Posterior) -> Iterator[Said]:
    """Tasks that the stories of an average and the votes label differently, where no gold label says which is right."""
    if (told_label(of.annotations) >= 0).any():
        return
    votes = np.asarray(of.annotations.votes(), float)
    labels = [fitted.posterior.argmax(1) for fitted, _ in of.weighty]
    differs = (np.ptp(np.stack(labels), axis=0) > 0) | (votes[np.arange(len(votes)), labels[0]] < votes.max(1))
    if not differs.any():
        return
    share, n = float(differs.mean()), max(min(ASKED, len(votes) // 2), 1)
    yield Said(
        f"the stories and the votes label {share:.1%} of the tasks differently, and annotations alone do not tell "
        f"which to believe: by so much may true labels of {count_text(n, 'task')} improve the labels",
        f"cp.next_gold(fit, {n}) names tasks to check, cp.fit('auto', …, gold=gold) learns from them",
        {"share": share, "tasks": n},
        "note",
    )


@check("one_gold_class", "gold", needs={"memory"})
def one_gold_class(of: Labels) -> Iterator[Said]:
    """Gold labels that a fit used and that are all of one class, where others are likely."""
    annotations = of.annotations
    known = told_label(annotations)
    given = known[known >= 0]
    if len(given) < FEW_GOLD or (given != given[0]).any():
        return
    name = annotations.classes[int(given[0])]
    yield Said(
        f"all {len(given):,} gold labels are {name!r}: they do not tell how workers err on the other classes",
        "check tasks of the other classes too; cp.next_gold(fit, 20) draws from all",
        {"class": name, "gold": len(given)},
        "note",
    )
