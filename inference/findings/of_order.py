"""Stretches of the data, task by task, on which workers hardly agree, while they do on the others.

So it is where the labels of a batch were shifted by a row, or joined to other tasks, for all workers: nothing shows it
in who gave them, and the labels of these tasks are worth nothing. Or the tasks are much harder, and their labels are
less sure than a story takes them for that has each worker as good all along. Agreement is the excess over each worker's
own shares of the classes, as in :mod:`.beyond_chance`; tasks are in the order in which the data have them.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...data import Annotations
from ...data.arrays import cross_counts
from ...data.some_tasks import some_tasks
from .of_crowd import crowd_of
from .of_time import changed_agreement
from .register import Labels, Said, check, once

BLOCKS = 40  # of tasks, of which stretches are made
FEWEST = 40  # tasks of a stretch, and outside of it
CLEARLY = 5.0  # standard errors by which a stretch agrees less than the rest: many are looked at
LITTLE = 0.3  # part of the others' agreement beyond chance, which a stretch has at the most
CLEAR = 0.15  # of that agreement, where there is enough to miss
MOST = 0.8  # of the tasks that a stretch has
LOOKED_AT, NUMBERS = 200_000, 2e7  # annotations, and these times classes; of more a random sample of the tasks


class Stretch(NamedTuple):
    """Tasks that follow each other: the first, the last, and how many; the share of all annotations that are theirs.

    Args:
        excess: agreement of two annotations of a task beyond chance, there and on the other tasks.
    """

    first: object
    last: object
    n_tasks: int
    share: float
    excess: tuple[float, float]


@once
def stretch_of_little(given: Annotations) -> Stretch | None:
    """Return the stretch of tasks whose agreement is farthest below that of the others, None where none has little.

    Args:
        given: annotations of named workers, without abstentions.
    """
    names, most = given.tasks, min(LOOKED_AT, NUMBERS / given.n_classes)
    chosen = np.random.default_rng(0).random(given.n_tasks) * given.n_rows < most
    if not chosen.all():
        given = some_tasks(given, chosen)
    task, worker, label = (np.asarray(getattr(given, name)) for name in ("task", "worker", "label"))
    count, k = given.row_counts, given.n_classes
    shares = cross_counts((given.n_workers, k), worker, label, weight=count)
    shares = shares / np.maximum(shares.sum(1, keepdims=True), 1)
    beyond = np.eye(k)[label] - shares[worker]
    sums = np.stack([np.bincount(task, count * one, given.n_tasks) for one in beyond.T], 1)
    n = np.bincount(task, count, given.n_tasks)
    agree = (sums**2).sum(1) - np.bincount(task, count * (beyond**2).sum(1), given.n_tasks)
    several = np.flatnonzero(n > 1)
    if len(several) < 2 * FEWEST:
        return None
    agree, pairs = agree[several] / n[several], n[several] - 1  # each annotation counts once beside the others
    ends = np.unique(np.linspace(0, len(several), BLOCKS + 1).astype(int))
    upto = [
        np.concatenate([[0], np.cumsum(values)])[ends] for values in (agree, pairs, agree**2, agree * pairs, pairs**2)
    ]
    first, last = np.triu_indices(len(ends), 1)
    inside = np.array([sums[last] - sums[first] for sums in upto])
    outside = np.array([sums[-1] for sums in upto])[:, None] - inside
    (here, its_error), (there, their_error) = _mean(inside), _mean(outside)
    sizes = ends[last] - ends[first]
    is_one = (
        (sizes <= MOST * len(several))
        & (sizes >= FEWEST)
        & (len(several) - sizes >= FEWEST)
        & (here < LITTLE * there)
        & (there > CLEAR)
    )
    z = np.where(is_one, (there - here) / np.maximum(np.hypot(its_error, their_error), 1e-9), 0.0)
    at = int(z.argmax())
    if z[at] < CLEARLY:
        return None
    looked_at = np.flatnonzero(chosen)[several]
    begin, end = (int(looked_at[place]) for place in (ends[first[at]], ends[last[at]] - 1))
    share = float(inside[1, at] / upto[1][-1])
    return Stretch(names[begin], names[end], end - begin + 1, share, (float(here[at]), float(there[at])))


def _mean(sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ratio of the sums of two numbers, and its standard error (linearized).

    Args:
        sums: of both, of the first's squares, of their products, and of the second's squares.
    """
    total = np.maximum(sums[1], 1e-9)
    mean = sums[0] / total
    return mean, np.sqrt(np.maximum(sums[2] - 2 * mean * sums[3] + mean**2 * sums[4], 0.0)) / total


@check("stretch_apart", "crowd", needs={"workers", "memory"})
def stretch_apart(of: Labels) -> Iterator[Said]:
    """A stretch of tasks on which workers hardly agree (:func:`stretch_of_little`).

    Nothing is said where it is known since when tasks are harder or easier, and said (:mod:`.of_time`).
    """
    if (crowd := crowd_of(of)) is None or (found := stretch_of_little(crowd.given)) is None or changed_agreement(of):
        return
    yield Said(
        f"from {found.first!r} to {found.last!r}, {found.n_tasks:,} tasks that follow each other in the data, workers "
        f"agree hardly more than by chance ({found.excess[0]:.2f} beyond it, and {found.excess[1]:.2f} on the other "
        "tasks): their labels belong to other tasks, as where rows are shifted by one, or these tasks are much harder, "
        "and the probabilities of their labels are too high",
        "Look there in the file; if the labels are of other tasks, leave these out until that is mended",
        found._asdict(),
    )
