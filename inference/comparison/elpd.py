r"""The expected log predictive density of a story: how well it predicts what it has not seen."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

UNITS = ("task", "annotation")


@dataclass(frozen=True, eq=False, repr=False)
class Elpd:
    r"""Log-probability of each task, or of each annotation, predicted by a story that was fitted without it.

    .. math:: \text{elpd} = \sum_u \log p(y_u \mid y_{-u})

    (Vehtari, Gelman & Gabry 2017, eq. 4). A task stands for all its annotations together, its true label summed out; an
    annotation is predicted from the other annotations to its task too.

    Args:
        story: its name.
        kind: ``"loo"`` (importance sampling from one fit) or ``"kfold"`` (refits).
        by: ``"task"`` or ``"annotation"``.
        units: the tasks, or task, worker and label of the rows; only those with annotations.
        values: in nats, one a unit; a row that stands for several annotations has their sum.
        pareto_k: how heavy the tail of each unit's importance weights is; None without them.
        good_k: up to where ``pareto_k`` lets a unit's value be trusted.
        p: effective number of parameters, how much better the units are told once they were seen; None by K folds.
    """

    story: str
    kind: str
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
        r"""Standard error of :attr:`elpd`, :math:`\sqrt{n \operatorname{Var}_u}`."""
        return float(np.sqrt(len(self.values) * self.values.var()))

    @property
    def table(self) -> pd.DataFrame:
        """By unit: elpd, and pareto_k where there is one."""
        columns = {"elpd": self.values} | ({} if self.pareto_k is None else {"pareto_k": self.pareto_k})
        return pd.DataFrame(columns, index=self.units)

    @property
    def high_k(self) -> pd.DataFrame:
        """The units whose importance weights cannot be trusted, the worst first."""
        if self.pareto_k is None:
            return self.table.iloc[:0]
        bad = self.table[~(self.pareto_k <= self.good_k)]
        return bad.sort_values("pareto_k", ascending=False, kind="stable")

    def __repr__(self) -> str:
        how = {"loo": "leave-one-out", "kfold": "K folds"}[self.kind]
        n_high_k = f", {len(self.high_k)} with Pareto k̂ over {self.good_k:.2f}" if self.pareto_k is not None else ""
        units = f"{len(self.values):,} {self.by}{'' if len(self.values) == 1 else 's'}"
        return f"Elpd({self.story!r}: {self.elpd:,.2f} ± {self.se:,.2f} nats by {how}, {units}{n_high_k})"
