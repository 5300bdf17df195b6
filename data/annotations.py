"""`Annotations`: who annotated what to which task, with what else is known about tasks and workers."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pandas as pd

from . import describe as _describe
from .agreement import krippendorff_alpha
from .build import read_only
from .constructors import Constructors
from .files import as_gold
from .gold import resolve_gold
from .ids import Ids

Array = Any  # NumPy where people hold it, JAX inside compiled functions

_STATIC = ("tasks", "workers", "classes", "population")


@dataclass(frozen=True, eq=False, repr=False)
class Annotations(Constructors):
    """The annotations of J workers to N tasks with K classes, in long form: A rows, sorted by task.

    Made by `from_frame` and its sisters, which check everything; the plain constructor and `replace` check
    nothing. It is a JAX pytree: the arrays are leaves, identifiers and population are static, so that it can
    be an argument of compiled functions.

    Attributes:
        task: (A,) int32, ascending; rows of one task are in the order of the input.
        worker: (A,) int32, or None where no worker is named.
        label: (A,) int32, the annotations as indices into `classes`.
        count: (A,) float32, how many equal annotations a row stands for; None for one each.
        gold: (N,) int32, the true label where it is known, −1 where not; None where no gold was given.
        features: (N, ...) float32 or None.
        worker_features: (J, D) float32 or None.
        tasks: the N original identifiers.
        workers: the J original identifiers, none where no worker is named.
        classes: the K classes in their order.
        population: how many tasks these stand for when they are a batch; None for their own number.
        evidence: (N, K) float32, what else is known of the true labels, as log-weights of the classes; None
            where nothing is. `crowdppl.fit` puts gold labels and other models' probabilities here.
        prior: (N, K) float32, probabilities of the classes that are given as the truth's prior; None where none are.
        seconds: (A,) float32, how long each annotation took, NaN where that is unknown; None where no times were given.
            No story looks at it.
    """

    task: Array
    worker: Array | None
    label: Array
    count: Array | None
    gold: Array | None
    features: Array | None
    worker_features: Array | None
    tasks: Ids
    workers: Ids
    classes: Ids
    population: int | None = None
    evidence: Array | None = None
    prior: Array | None = None
    seconds: Array | None = None

    @property
    def n_tasks(self) -> int:
        """N, the number of tasks, also of those without an annotation."""
        return len(self.tasks)

    @property
    def n_workers(self) -> int:
        """J, the number of workers; 0 where none is named."""
        return len(self.workers)

    @property
    def n_classes(self) -> int:
        """K, the number of classes, also of those that nobody used."""
        return len(self.classes)

    @property
    def n_rows(self) -> int:
        """A, the number of rows."""
        return int(self.task.shape[0])

    @property
    def n_annotations(self) -> int:
        """The number of annotations, which is the sum of the counts where rows have counts."""
        return self.n_rows if self.count is None else int(np.sum(np.asarray(self.count), dtype=np.float64))

    @property
    def named(self) -> bool:
        """Whether it is known which worker gave which annotation."""
        return self.worker is not None

    def replace(self, **changes: Any) -> Annotations:
        """Return the same annotations with some attributes changed, unchecked."""
        return dataclasses.replace(self, **changes)

    def with_gold(self, gold: Any) -> Annotations:
        """Return the same annotations with other gold labels, given as for `from_frame`; None for none.

        Raises:
            AnnotationError: gold for an unknown task, or of an unknown class.
        """
        if gold is None:
            return self.replace(gold=None)
        gold, where = as_gold(gold, "task", "label")
        return self.replace(gold=read_only(resolve_gold(gold, self.tasks, self.classes, where=where)))

    def votes(self) -> np.ndarray:
        """Return how many annotations of each class each task has, shape (N, K) int64."""
        cell = np.asarray(self.task, np.int64) * self.n_classes + np.asarray(self.label)
        weights = None if self.count is None else np.asarray(self.count)
        votes = np.bincount(cell, weights=weights, minlength=self.n_tasks * self.n_classes)
        return votes.astype(np.int64).reshape(self.n_tasks, self.n_classes)

    def n_by_worker(self) -> np.ndarray:
        """Return how many annotations each worker gave, shape (J,)."""
        return np.bincount(np.asarray(self.worker), self.count, self.n_workers)

    def expanded(self) -> Annotations:
        """Return the same annotations without counts: a row that stands for several annotations comes as often."""
        if self.count is None:
            return self
        times = np.asarray(self.count).astype(np.int64)
        rows = {name: getattr(self, name) for name in ("task", "worker", "label", "seconds")}
        repeated = {name: None if value is None else np.repeat(value, times) for name, value in rows.items()}
        return self.replace(count=None, **repeated)

    def krippendorff_alpha(self) -> float:
        """Return Krippendorff's alpha for nominal data: 1 where all agree, 0 where no more than by chance."""
        return krippendorff_alpha(self.votes())

    def describe(self) -> pd.Series:
        """Return sizes, annotations per task and worker, repeats, gold, alpha and class shares, by name."""
        return _describe.describe(self)

    def to_frame(self) -> pd.DataFrame:
        """Return the annotations with their original identifiers, A rows.

        The columns are task, worker (where workers are named), label, count (where rows have counts) and seconds
        (where times were given).
        """
        columns = {"task": self.tasks.to_index()[np.asarray(self.task)]}
        if self.worker is not None:
            columns["worker"] = self.workers.to_index()[np.asarray(self.worker)]
        columns["label"] = self.classes.to_index()[np.asarray(self.label)]
        rows = pd.RangeIndex(self.n_rows)
        frame = pd.DataFrame({name: index.to_series(index=rows) for name, index in columns.items()})
        if self.count is not None:
            frame["count"] = np.asarray(self.count).astype(np.int64)
        return frame if self.seconds is None else frame.assign(seconds=np.asarray(self.seconds))

    def __repr__(self) -> str:
        return _describe.text(self)

    def _repr_html_(self) -> str:
        return _describe.html_table(self)


jax.tree_util.register_dataclass(
    Annotations,
    data_fields=[field.name for field in dataclasses.fields(Annotations) if field.name not in _STATIC],
    meta_fields=list(_STATIC),
)
