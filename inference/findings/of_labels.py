"""Labels that lost a class on the way."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from .register import Said, check

MUCH = 0.25  # share of the annotations from which a class should be some tasks' label
ENOUGH = 5  # tasks that such a class should have before its absence says anything


@check("lost_class", "labels", needs={"story"})
def lost_class(of: Any) -> Iterator[Said]:
    """Classes that many annotations give and hardly any task has, by sums over all tasks.

    Data so small that the class would have fewer than five tasks say nothing: four annotations may well disagree.
    """
    totals = of.class_totals
    tasks, votes, classes = totals["tasks"].to_numpy(), totals["annotations"].to_numpy(), list(totals.index)
    n_tasks = tasks.sum()
    given, found = votes / max(votes.sum(), 1), tasks / max(n_tasks, 1)
    for k in np.flatnonzero((given >= MUCH) & (given * n_tasks >= ENOUGH) & (found < given / 10)).tolist():
        yield Said(
            f"{given[k]:.0%} of the annotations are {classes[k]!r}, and {found[k]:.1%} of the tasks: the story may "
            "have lost the class to its other parameters",
            "compare with majority vote, give gold labels or another story",
            {"class": classes[k], "of_annotations": given[k], "of_tasks": found[k]},
        )
