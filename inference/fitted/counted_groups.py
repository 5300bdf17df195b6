"""Workers of whom several counted as one in a fit, as its findings name them, and whose estimates stand for whose."""

from collections.abc import Hashable, Iterable
from typing import NamedTuple

import numpy as np

from ...data import Annotations
from ...data.id_text import places_of
from ..engines.finding import Finding


class CountedGroup(NamedTuple):
    """Workers who counted as one."""

    workers: np.ndarray  # their positions
    by: int  # position of the one who has the group's annotations
    n: int  # how many these are
    question: Hashable = None  # where they counted as one; None for everywhere


def groups_of(findings: Iterable[Finding], annotations: Annotations) -> list[CountedGroup]:
    """Return the groups that the findings on a fit name.

    Args:
        annotations: those that the fit counted, of a group one worker's alone.
    """
    named = [one for finding in findings for one in finding.values.get("as_one", ())]
    return [_group(annotations, one["workers"], one.get("question")) for one in named]


def _group(annotations: Annotations, names: list[object], question: Hashable) -> CountedGroup:
    workers = np.array(places_of(names, annotations.workers))
    asked = annotations if question is None else annotations.of_question(question)
    counted = asked.n_by_worker()[workers]
    return CountedGroup(workers, int(workers[counted.argmax()]), int(counted.max()), question)


def stand_ins(groups: Iterable[CountedGroup], annotations: Annotations) -> np.ndarray:
    """Return by worker the position of the one whose estimates are the worker's, ``(J,)``: mostly the worker's own.

    Of a group's members who have no annotations left it is the one who has the group's.

    Args:
        annotations: those that the fit counted.
    """
    places, counted = np.arange(annotations.n_workers), annotations.n_by_worker()
    for group in groups:
        places[group.workers[counted[group.workers] == 0]] = group.by
    return places
