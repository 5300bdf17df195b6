r"""The expected log predictive density of a story: how well it predicts held-out tasks or annotations."""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ...data import Annotations
from ...data.questions import QUESTION

UNITS = ("task", "annotation")


@dataclass(frozen=True, eq=False, repr=False)
class Elpd:
    r"""The log-probability of each task, or of each annotation, given all the others. Made by `cp.loo` and `cp.kfold`.

    .. math:: \text{elpd} = \sum_u \log p(y_u \mid y_{-u})

    (Vehtari, Gelman & Gabry 2017, eq. 4.) The units :math:`u` are tasks or annotations. A task is all its annotations
    together, its true label summed out; an annotation is predicted given the other annotations to its task too.

    Args:
        story: its name.
        method: ``"loo"`` (importance sampling from one fit) or ``"kfold"`` (refits).
        by: ``"task"`` or ``"annotation"``.
        units: U tasks that have annotations; or task, worker and label of each row of annotations.
        values: in nats, ``(U,)``; of a row that stands for several annotations their sum.
        pareto_k: the shape k̂ of the tail of each unit's importance weights, ``(U,)``; None without such weights.
        good_k: the largest ``pareto_k`` with which a unit's value can be trusted.
        p: the effective number of parameters: the sum over units of the log-probability in the fit to all data minus
            the held-out one; None by K folds.
    """

    story: str
    method: str
    by: str
    units: pd.Index
    values: np.ndarray
    pareto_k: np.ndarray | None = None
    good_k: float = 0.7
    p: float | None = None

    @property
    def elpd(self) -> float:
        """The sum over units, in nats: higher is better."""
        return float(self.values.sum())

    @property
    def se(self) -> float:
        r"""Standard error of :attr:`elpd`, :math:`\sqrt{U \operatorname{Var}_u}`, in nats."""
        return float(np.sqrt(len(self.values) * self.values.var()))

    @property
    def table(self) -> pd.DataFrame:
        """By unit: ``elpd`` in nats, and ``pareto_k`` where there is one."""
        columns = {"elpd": self.values} | ({} if self.pareto_k is None else {"pareto_k": self.pareto_k})
        return pd.DataFrame(columns, index=self.units)

    @property
    def high_k(self) -> pd.DataFrame:
        """The units of high Pareto k, above ``good_k``, in the columns of :attr:`table`; the highest first."""
        if self.pareto_k is None:
            return self.table.iloc[:0]
        high = self.table[~(self.pareto_k <= self.good_k)]
        return high.sort_values("pareto_k", ascending=False, kind="stable")

    @property
    def n_high_k(self) -> int:
        """Number of units with a high Pareto k."""
        return len(self.high_k)

    def __repr__(self) -> str:
        how = {"loo": "leave-one-out", "kfold": "K-fold cross-validation"}[self.method]
        high = f", {self.n_high_k:,} with high Pareto k (above {self.good_k:.2f})" if self.pareto_k is not None else ""
        units = f"{len(self.values):,} {self.by}{'' if len(self.values) == 1 else 's'}"
        return f"Elpd({self.story!r}: {self.elpd:,.2f} ± {self.se:,.2f} nats by {how}, {units}{high})"


def annotation_index(annotations: Annotations) -> pd.MultiIndex:
    """Task, worker (where workers are named) and label of each row; of comparisons the label by the task's sides."""
    columns = annotations.tasks.to_columns("task", np.asarray(annotations.task))
    if annotations.worker is not None:
        columns |= annotations.workers.to_columns("worker", np.asarray(annotations.worker))
    return pd.MultiIndex.from_frame(pd.DataFrame(columns | {"label": annotations.by_sides().to_frame()["label"]}))


def tasks_and_workers(units: pd.Index) -> list[tuple[Hashable, ...]]:
    """Return the task of each unit of an index, a pair where it has questions, and the worker of an annotation's."""
    if not isinstance(units, pd.MultiIndex):
        return [(task,) for task in units]
    level = {name: units.get_level_values(name) for name in ("task", QUESTION, "worker") if name in units.names}
    tasks = zip(level["task"], level[QUESTION], strict=True) if QUESTION in level else level["task"]
    return list(zip(tasks, level["worker"], strict=True)) if "worker" in level else [(task,) for task in tasks]
