"""Annotations padded to one of a few sizes, so that data of nearby sizes share compiled programs.

A program is compiled for shapes. The rows, tasks and workers of annotations are rounded up to a ladder of sizes: padded
rows have a count of 0, padded tasks have no rows, and padded workers gave none. How many are real travels with the data
as numbers, which programs are not compiled for. Sums over tasks or workers as such leave the padded ones out by
:func:`real_tasks` and :func:`n_real_workers`.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from .annotations import Annotations, Array, as_pytree
from .arrays import BY_TASK, counts, longer
from .ids import NO_IDS, Ids

FINE = (1.0, 1.25, 1.6)
"""Rungs from one power of two to the next: a third more at the most, an eighth more on average."""

MOST_ROWS = 2**19
"""Rows beyond which nothing is padded: an iteration takes so long that padding would cost more than a compilation."""


@dataclass(frozen=True)
class Ladder:
    """Sizes to round up to: ``first · ratio^i`` as far as ``coarse``, and from there :data:`FINE` steps.

    Small sizes have few buckets, since padding costs little there beside what a program costs at all.
    """

    first: int
    ratio: int
    coarse: int

    def bucket(self, size: int) -> int:
        """The smallest size of the ladder that holds ``size``; 0 stays 0.

        >>> [Ladder(8, 2, 32).bucket(size) for size in (0, 3, 9, 33, 41, 60)]
        [0, 8, 16, 40, 52, 64]
        """
        if size == 0:
            return 0
        bucket = self.first
        while bucket < self.coarse:
            if size <= bucket:
                return bucket
            bucket = min(bucket * self.ratio, self.coarse)
        while True:
            for step in FINE:
                if size <= (found := -(-int(bucket * step) // 4) * 4):
                    return found
            bucket *= 2

    def fine(self) -> "Ladder":
        """The ladder with :data:`FINE` steps from its first size on.

        >>> [Ladder(8, 2, 32).fine().bucket(size) for size in (3, 9, 17, 33)]
        [8, 12, 20, 40]
        """
        return dataclasses.replace(self, coarse=self.first)


ROWS = Ladder(64, 4, 4096)
TASKS = Ladder(16, 4, 1024)
WORKERS = Ladder(8, 2, 128)


@dataclass(frozen=True, eq=False, repr=False)
class PaddedAnnotations(Annotations):
    """Annotations of the sizes of the ladder, whose identifiers are numbers.

    Attributes:
        n_real: (2,) int32, how many of the tasks and of the workers are real; those are the first.
        copies: (N,) float32, how many tasks that look alike each task stands for, 0 where it is padded; None for one.
        once: whether every row of a real task counts once.
    """

    n_real: Array = (0, 0)
    copies: Array | None = None
    once: bool = False

    @property
    def is_real(self) -> Array:
        """True for each task that is real, ``(N,)``."""
        return jnp.arange(self.n_tasks) < self.n_real[0]


as_pytree(PaddedAnnotations, "once")


def padded(annotations: Annotations, *, fine: bool = False, spare: int = 0) -> PaddedAnnotations:
    """The annotations at the next sizes of the ladder, without gold labels and times.

    Args:
        annotations: with labels; no minibatch.
        fine: whether small sizes have as many buckets as large ones, for what runs so long that padding costs more than
            a compilation.
        spare: how many of the rows, of the tasks and of the workers, where they are named, are padded at the least.

    Returns:
        their rows, tasks and workers in the same order, and then padded ones. Every row has a count.
    """
    n_rows, n_tasks, n_workers = (
        (ladder.fine() if fine else ladder).bucket(size)
        for ladder, size in (
            (ROWS, annotations.n_rows + spare),
            (TASKS, annotations.n_tasks + max(spare, 1)),  # padded rows are of a padded task
            (WORKERS, annotations.n_workers + spare * annotations.named),
        )
    )
    return PaddedAnnotations(
        task=longer(annotations.task, n_rows, n_tasks - 1),
        tasks=_range(n_tasks),
        n_real=np.array([annotations.n_tasks, annotations.n_workers], np.int32),
        **lengthened_fields(
            annotations,
            n_workers,
            partial(longer, size=n_rows),
            partial(longer, size=n_tasks),
            fine=fine,
        ),
    )


def lengthened_fields(
    annotations: Annotations,
    n_workers: int,
    by_row: Callable[..., Array | None],
    by_task: Callable[..., Array | None],
    *,
    fine: bool = False,
) -> dict[str, Any]:
    """Return the fields of padded annotations, by name, but for their tasks and how many are real.

    Args:
        annotations: the data.
        n_workers: padded ones among them.
        by_row: makes longer what has a value for each row, with ``filling=``.
        by_task: the same for each task.
        fine: as of :func:`padded`.
    """
    filling = {"prior": 1 / annotations.n_classes, "model_scores": np.nan}
    return {
        **{name: by_row(getattr(annotations, name), filling=0) for name in ("worker", "label", "mirrored")},
        **{name: by_task(getattr(annotations, name), filling=filling.get(name, 0)) for name in BY_TASK},
        "count": by_row(counts(annotations), filling=0),
        "gold": None,
        "worker_features": longer(annotations.worker_features, n_workers, 0),
        "workers": _range(n_workers),
        "classes": _range(annotations.n_classes),
        **numbered(annotations),
        "category_counts": longer(annotations.category_counts, max(n_workers, 1), 0),
        "informative": annotations.informative,
        "item_features": annotations.item_features,
        "model_reference": _longer_reference(annotations, fine=fine),
        "once": annotations.count is None,
        "kind": annotations.kind,
        "scored": annotations.scored,
        "preferences": annotations.preferences,
    }


def _longer_reference(annotations: Annotations, *, fine: bool = False) -> Array | None:
    """The models' reference tasks at the next size of the ladder: NaN weighs nothing there."""
    reference = annotations.model_reference
    if reference is None:
        return None
    by_task = np.asarray(reference).swapaxes(0, 1)
    return longer(by_task, (TASKS.fine() if fine else TASKS).bucket(len(by_task)), np.nan).swapaxes(0, 1)


def real_by_plate(annotations: Annotations) -> dict[str, Array]:
    """Masks of the real tasks ``(N,)`` and workers ``(J,)``, by the plate's name; empty where nothing is padded."""
    if not isinstance(annotations, PaddedAnnotations):
        return {}
    workers = jnp.arange(annotations.n_workers) < n_real_workers(annotations)
    return {"task": annotations.is_real, "worker": workers}


def anonymous(annotations: Annotations) -> Annotations:
    """Return the annotations with numbers as identifiers, which all data of these sizes share."""
    names = {"tasks": annotations.n_tasks, "workers": annotations.n_workers, "classes": annotations.n_classes}
    sizes = {name: _range(size) for name, size in names.items()}
    return annotations.replace(**sizes, **numbered(annotations), repeats="keep", columns=())


def unread(annotations: Annotations) -> Annotations:
    """Return the annotations with identifiers that raise where they are read."""
    fields = {field.name: getattr(annotations, field.name) for field in dataclasses.fields(annotations)}
    return annotations.replace(
        **{name: Ids.unread(len(value)) for name, value in fields.items() if isinstance(value, Ids)}
    )


def numbered(annotations: Annotations) -> dict[str, Ids]:
    """Numbers in the place of models, questions, items and abstentions, which come after the classes: K to L − 1."""
    found = {name: _range(len(getattr(annotations, name))) for name in ("models", "questions", "items")}
    given = len(annotations.abstentions) > 0
    return found | {"abstentions": Ids(range(annotations.n_classes, annotations.n_categories)) if given else NO_IDS}


def real_tasks(annotations: Annotations) -> Array | None:
    """Return whether each task is real, ``(N,)`` of bool; None where all are."""
    return annotations.is_real if isinstance(annotations, PaddedAnnotations) else None


def task_copies(annotations: Annotations) -> Array | None:
    """Return how many tasks that look alike each task stands for, ``(N,)``; None for one each."""
    return annotations.copies if isinstance(annotations, PaddedAnnotations) else None


def n_real_workers(annotations: Annotations) -> Array | int:
    """Return the number of workers that are real: the first ones."""
    return annotations.n_real[..., 1].max() if isinstance(annotations, PaddedAnnotations) else annotations.n_workers


def counts_by_task(annotations: Annotations) -> Array | None:
    """Return the weights of rows in sums by task, ``(A,)``; None where it is one for every row of a real task.

    Padded rows belong to a padded task, whose sums nobody looks at, so that they need no weight there.
    """
    if isinstance(annotations, PaddedAnnotations) and annotations.once:
        return None
    return annotations.count


@cache
def _range(size: int) -> Ids:
    return Ids.range(size)
