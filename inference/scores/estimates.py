"""Prevalence and accuracy of the labels from a few gold labels, with intervals that hold where the story is wrong."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import pandas as pd

from ...data import AnnotationError
from ...data.arrays import cross_counts
from ...data.description import count_text
from ...data.errors import check_name, look_up, warn
from ...data.id_text import listing, name_text
from ..findings.summary import Summary
from ..fitted.intervals import INTERVAL, checked_tail, wilson
from .against_gold import with_gold
from .gold_plan import planned_width
from .gold_sample import FEW, GoldSample, gold_sample
from .gold_shares import GoldDraw, Shares, counted, estimated

OF = ("tasks", "population")
LISTED = 6  # classes that a sentence names
NAMES = {"ppi": "prediction-powered inference", "rogan_gladen": "Rogan & Gladen's estimate", "classical": "counting"}
DRAWS = 4000


@dataclass(frozen=True, eq=False, repr=False)
class Estimate:
    """Accuracy and prevalence, estimated from gold labels.

    Attributes:
        table: by ``quantity`` ("accuracy", "prevalence") and ``of`` ("labels", or the class): ``estimate``, ``low``,
            ``high``, and ``without_gold``, what the label probabilities alone say.
        method: "ppi", "rogan_gladen" or "classical".
        of: "tasks" or "population".
        interval: mass of the intervals.
        n_tasks: how many tasks have labels.
        n_gold: how many gold labels the estimates are from.
        gold_used: how many gold labels are left out, because the fit was told them.
        contradicted: by task, gold labels that contradict all annotations: gold, annotation, annotations.
        of_sides: whether the classes are the sides of comparisons, whose shares say only how items were placed.
    """

    table: pd.DataFrame
    method: str
    of: str
    interval: float
    n_tasks: int
    n_gold: int
    gold_used: int
    contradicted: pd.DataFrame
    of_sides: bool = False

    @property
    def accuracy(self) -> pd.Series:
        """The share of the labels that are right: estimate, low, high, without_gold."""
        return self.table.loc["accuracy"].iloc[0].rename("accuracy")

    @property
    def prevalence(self) -> pd.DataFrame:
        """By class its share of the tasks: estimate, low, high, without_gold."""
        return self.table.loc[["prevalence"]].droplevel("quantity").rename_axis("class")

    def summary(self) -> Summary:
        """Return a summary: gold labels, method and estimates; prints as text, shows as a table in notebooks."""
        odd = len(self.contradicted)
        facts = {
            "gold": f"{count_text(self.n_gold, 'gold label')} of {count_text(self.n_tasks, 'task')}",
            "method": f"{NAMES[self.method]}, {self.interval:.0%} intervals",
            "in words": str(self),
        }
        if self.gold_used:
            facts["left out"] = f"{count_text(self.gold_used, 'gold label')} that the fit was told"
        if odd:
            facts["contradicted"] = f"{count_text(odd, 'task')}: the gold label contradicts all annotations"
        return Summary("Estimated from gold labels", facts, {"estimates": self.table})

    @property
    def knows_all(self) -> bool:
        """True where every task has a gold label, so that of these tasks nothing is left to estimate."""
        return self.of == "tasks" and self.n_gold >= self.n_tasks

    def __str__(self) -> str:
        accuracy, prevalence = self.accuracy, self.prevalence
        what = f"{self.n_tasks:,} labels" if self.of == "tasks" else "labels of tasks like these"
        text = _share if self.knows_all else _text
        shares = [f"{name_text(name)!r} {text(row)}" for name, row in prevalence.iterrows()]
        shown = "" if self.of_sides else f" Prevalence: {listing(shares, LISTED, str, of='classes')}."
        if self.knows_all:
            return (
                f"{accuracy['estimate']:.1%} of {what} are right, and their probabilities say "
                f"{accuracy['without_gold']:.1%}.{shown} All {self.n_gold:,} true "
                "labels are known: for these tasks intervals have no width, and "
                "cp.estimate(fit, gold, of='population') has those for tasks like these."
            )
        return (
            f"{accuracy['estimate']:.1%} of {what} are right ({self.interval:.0%} interval {_bounds(accuracy)}; their "
            f"probabilities say {accuracy['without_gold']:.1%}).{shown} By "
            f"{NAMES[self.method]} from {count_text(self.n_gold, 'gold label')}: these intervals hold even "
            "where the story is wrong, those of a fit's summary and report only where it is right."
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


def estimate_workers(source: Any, gold: Any = None, *, interval: float = INTERVAL) -> pd.DataFrame:
    """Each worker's share of right annotations of classes, from gold labels alone, whatever the story says.

    The gold tasks that a worker annotated are a sample of all that the worker did: the interval is that of a count
    (:func:`.of_count`), and holds where they were drawn as for :func:`estimate`, which their inclusion probabilities
    weigh.

    Args:
        gold: as for :func:`estimate`; labels that the fit was told count too, since the annotations are the workers'.

    Returns:
        By worker, the worst first: ``estimate``, ``low``, ``high``, ``n_gold`` (annotations of gold tasks),
        ``annotations`` (of classes), and ``drop``, True where even the high end is below what a guess among all classes
        would have. Without an annotation of a gold task the first three are NaN.

    Raises:
        AnnotationError: there are no gold labels, they do not fit the tasks or classes, or no worker is named.
        TypeError: `source` is something else.
    """
    checked_tail(interval)
    found = with_gold(source, gold)
    annotations = found.annotations
    if annotations is None or not annotations.named:
        raise AnnotationError("the annotations name no workers, so that no gold label speaks of one")
    chance = np.ones(len(found.gold)) if found.inclusion is None else found.inclusion
    rows = np.asarray(annotations.label) < annotations.n_classes
    worker, task, label = (np.asarray(getattr(annotations, name))[rows] for name in ("worker", "task", "label"))
    known = found.gold[task] >= 0
    lines = []
    for j in range(annotations.n_workers):
        mine = worker == j
        judged = mine & known
        n, others = int(judged.sum()), int((mine & ~known).sum())
        is_right = (label[judged] == found.gold[task[judged]])[:, None].astype(float)
        line = {"estimate": np.nan, "low": np.nan, "high": np.nan}
        if n:
            stands_for = 1 / chance[task[judged]] - 1 if found.inclusion is not None else np.full(n, others / n)
            one = counted(is_right, GoldDraw(n + others, np.arange(n), stands_for), interval)
            share = float(one.estimate[0])
            line = {"estimate": share, "low": share - float(one.below[0]), "high": share + float(one.above[0])}
        lines.append(line | {"n_gold": n, "annotations": n + others})
    table = pd.DataFrame(lines, index=annotations.workers.to_index("worker"))
    table["drop"] = table["high"] < 1 / annotations.n_classes
    return table.sort_values(["high", "estimate"], kind="stable")


@overload
def estimate(
    source: Any,
    gold: Any = None,
    *,
    by: None = None,
    method: str = "ppi",
    of: str = "tasks",
    interval: float = INTERVAL,
    seed: int = 0,
) -> Estimate: ...


@overload
def estimate(source: Any, gold: Any = None, *, by: str, interval: float = INTERVAL) -> pd.DataFrame: ...


def estimate(
    source: Any,
    gold: Any = None,
    *,
    by: str | None = None,
    method: str = "ppi",
    of: str = "tasks",
    interval: float = INTERVAL,
    seed: int = 0,
) -> Estimate | pd.DataFrame:
    """Estimate the accuracy of the labels and the prevalence of the classes from a few gold labels.

    The intervals hold whatever story was fitted, and however wrong it is: its labels and probabilities are taken as
    predictions, whose errors the gold labels measure. What they rest on is the draw. **The gold tasks must be drawn at
    random from all tasks** whose labels the fit was not told, each equally likely, or each with the inclusion
    probability that :func:`crowdppl.next_gold` gives; gold labels of the tasks that were easy, uncertain or first in
    line give intervals of something else, and nothing here can see it. Gold labels that the fit was told are left out
    of the sample, and the labels of those tasks count as known.

    Example:
        >>> import numpy as np
        >>> import crowdppl as cp
        >>> annotations, _ = cp.simulate("glad", n_tasks=500, n_workers=20, annotations_per_task=5, seed=1)
        >>> fit = cp.fit("one_coin", annotations.without_gold(), progress=False)
        >>> drawn = np.random.default_rng(0).choice(500, 100, replace=False)
        >>> found = cp.estimate(fit, {int(i): int(annotations.gold[i]) for i in drawn})
        >>> right = float((fit.labels["label"] == annotations.gold).mean())
        >>> bool(found.accuracy["low"] <= right <= found.accuracy["high"])
        True

    Args:
        source: a fit, a stack, or a frame of probabilities, tasks × classes.
        gold: label by task: a mapping, a Series, a table with the columns task and label, or the path of a file with
            one; or annotations that carry gold labels. None for the gold labels of the fit's annotations. A table may
            have a column ``inclusion_probability``, as the one that :func:`crowdppl.next_gold` returns: the tasks are
            then weighed by it.
        by: ``"worker"`` for each worker's share of right annotations, and whom to drop: :func:`.estimate_workers`;
            `method`, `of` and `seed` are then not used.
        method: ``"ppi"``, prediction-powered inference: the shares among the gold tasks, corrected by how the
            probabilities of the gold tasks differ from those of the others (:mod:`.gold_shares`). ``"rogan_gladen"``:
            from the labels' error rates within each class, for which the gold tasks need to be drawn at random only
            within each class (:func:`.solved`). ``"classical"``: the shares among the gold tasks, without
            predictions. Both have mid-P intervals of a count among finitely many tasks (:func:`.of_count`).
        of: ``"tasks"`` for the shares among these N tasks, ``"population"`` for those among the tasks that they were
            drawn from, whose intervals are wider.
        interval: mass of the intervals, between 0 and 1.
        seed: of the draws of ``"rogan_gladen"``.

    Returns:
        :class:`Estimate`, which prints as sentences: ``accuracy`` and ``prevalence``, each with ``estimate``, ``low``
        and ``high``; the accuracy is the share of ``fit.labels`` that are right. Or a frame by worker.

    Warns:
        AnnotationWarning: there are fewer than 20 gold labels, or some contradict all annotations of their task.

    Raises:
        AnnotationError: there is no gold label that the fit was not told; gold labels are of an unknown task or class;
            or, for ``"rogan_gladen"``, no gold label is of some class, or labels say nothing of the classes.
        UnknownNameError: there is no such `by`, `method` or `of`.
        ValueError: `interval` is not between 0 and 1.
        TypeError: `source` is something else.

    Source:
        Angelopoulos, Duchi & Zrnic 2023, "PPI++: Efficient prediction-powered inference"; Rogan & Gladen 1978,
        "Estimating prevalence from the results of a screening test"; Wilson 1927.
    """
    if by is not None:
        check_name("value of by", by, ("worker",))
        return estimate_workers(source, gold, interval=interval)
    find = look_up("method", method, METHODS)
    check_name("value of of", of, OF)
    checked_tail(interval)
    sample = gold_sample(source, gold)
    found = _with_told(sample, find(sample, interval, seed))
    if of == "population":
        found = _of_population(found, len(sample.tasks), interval)
    table = _table(sample, found)
    counts = len(sample.tasks), len(sample.gold), sample.gold_used
    result = Estimate(table, method, of, interval, *counts, sample.contradicted, sample.of_sides)
    if len(sample.gold) < FEW:
        warn(_few_text(result, sample))
    return result


def _ppi(sample: GoldSample, interval: float, seed: int) -> Shares:
    y, f = sample.properties()
    parts = [slice(None, -1), slice(-1, None)]  # the classes have one λ, so that their estimates sum to 1
    found = [estimated(y[:, part], f[:, part], sample.draw, interval) for part in parts]
    return Shares(*(np.concatenate(both) for both in zip(*found, strict=True)))


def _classical(sample: GoldSample, interval: float, seed: int) -> Shares:
    return counted(sample.properties()[0], sample.draw, interval)


def _rogan_gladen(sample: GoldSample, interval: float, seed: int) -> Shares:
    if sample.inclusion is not None:
        raise AnnotationError(
            "method='rogan_gladen' takes gold tasks that were drawn at random within each class, and these have "
            "inclusion probabilities of their own; take method='ppi' or 'classical'"
        )
    k = len(sample.classes)
    counts = cross_counts((k, k), sample.gold, sample.label[sample.at])
    if (missing := np.flatnonzero(counts.sum(-1) == 0)).size:
        raise AnnotationError(
            f"no gold label is of class {sample.classes[missing[0]]!r}: method='rogan_gladen' needs the labels' error "
            "rates in every class; give gold labels of it, or take method='ppi'"
        )
    rates = counts / counts.sum(-1, keepdims=True)
    if abs(np.linalg.det(rates)) < 1e-9:
        raise AnnotationError(
            "the gold tasks of different classes have labels in the same proportions, so that the labels say nothing "
            "of the prevalence: method='rogan_gladen' cannot be used; take method='ppi'"
        )
    shares = np.bincount(sample.label, minlength=k) / len(sample.label)
    point = solved(rates, shares)
    draws = solved(drawn_rates(counts, len(sample.label), seed), shares)
    tail = checked_tail(interval)
    low, middle, high = np.quantile(draws, [tail, 0.5, 1 - tail], axis=0)
    below, above = np.maximum(point - low, 0.0), np.maximum(high - point, 0.0)
    # where a class has few gold tasks the draws are less right than the counts, and so are all classes together
    below[-1], above[-1] = max(below[-1], middle[-1] - low[-1]), max(above[-1], high[-1] - middle[-1])
    return Shares(point, below, above)


METHODS: Mapping[str, Callable[[GoldSample, float, int], Shares]] = {
    "ppi": _ppi,
    "rogan_gladen": _rogan_gladen,
    "classical": _classical,
}


def _with_told(sample: GoldSample, found: Shares) -> Shares:
    """The shares among all tasks: those that the fit was told of are known, and their labels are right."""
    rest, told = len(sample.probabilities), len(sample.told)
    known = np.append(np.bincount(sample.told, minlength=len(sample.classes)), told)
    total = rest + told
    return Shares((rest * found.estimate + known) / total, rest / total * found.below, rest / total * found.above)


def _of_population(found: Shares, n_tasks: int, interval: float) -> Shares:
    """The shares in the population that the tasks were drawn from: Wilson's distances for N tasks are added."""
    wider = [wilson(float(np.clip(p, 0, 1)), n_tasks, interval) for p in found.estimate]
    low, high = np.array(wider).T
    point = np.clip(found.estimate, 0, 1)
    return Shares(found.estimate, np.hypot(found.below, point - low), np.hypot(found.above, high - point))


def _table(sample: GoldSample, found: Shares) -> pd.DataFrame:
    """The figures, the accuracy first."""
    low, high = found.estimate - found.below, found.estimate + found.above
    without = _with_told(sample, Shares(sample.properties()[1].mean(0), *np.zeros((2, len(low))))).estimate
    columns = {"estimate": found.estimate, "low": low, "high": high, "without_gold": without}
    return sample.figures({name: np.clip(values, 0.0, 1.0) for name, values in columns.items()})


def _few_text(found: Estimate, sample: GoldSample) -> str:
    width = found.accuracy["high"] - found.accuracy["low"]
    text = (
        f"{count_text(found.n_gold, 'gold label')} {'is' if found.n_gold == 1 else 'are'} few: the "
        f"{found.interval:.0%} interval of the accuracy is {width:.2f} wide ({_bounds(found.accuracy)})"
    )
    if len(sample.probabilities) <= 50:
        return f"{text}; gold labels of all {len(sample.probabilities):,} tasks would leave no doubt"
    planned = planned_width(sample.right, 50, len(sample.probabilities), found.interval)
    return f"{text}; 50 would make it about {planned:.2f} wide"


def _share(row: pd.Series) -> str:
    return f"{row['estimate']:.1%}"


def _text(row: pd.Series) -> str:
    return f"{row['estimate']:.1%} ({_bounds(row)})"


def _bounds(row: pd.Series) -> str:
    return f"{100 * row['low']:.1f}–{100 * row['high']:.1f} %"


def solved(rates: np.ndarray, shares: np.ndarray) -> np.ndarray:
    r"""Prevalence and accuracy, ``(..., K + 1)``, of error rates ``(..., K, K)`` and shares of labels ``(K,)``.

    With :math:`q_l` the share of tasks with label l, and :math:`M_{kl}` the share of label l among the gold tasks of
    true class k, the prevalence :math:`\pi` solves :math:`q = M^\top \pi`; for two classes it is
    :math:`(q + \text{specificity} - 1) / (\text{sensitivity} + \text{specificity} - 1)` (Rogan & Gladen 1978). The
    accuracy is :math:`\sum_k \pi_k M_{kk}`. What lies outside of 0 … 1 is cut, and the prevalence is scaled to sum 1.

    It asks less of the gold tasks than the others: they need to be drawn at random within each class, not over all, so
    that a class that is rare may have more than its share of them. It pays with wider intervals.
    """
    target = np.broadcast_to(shares, rates.shape[:-1])[..., None]
    found = np.clip(np.linalg.solve(np.swapaxes(rates, -1, -2), target)[..., 0], 0.0, None)
    total = found.sum(-1, keepdims=True)
    found = np.where(total > 0, found / np.where(total > 0, total, 1.0), 1 / len(shares))
    accuracy = (found * np.diagonal(rates, axis1=-2, axis2=-1)).sum(-1, keepdims=True)
    return np.concatenate([found, accuracy], -1)


def drawn_rates(counts: np.ndarray, n_tasks: int, seed: int) -> np.ndarray:
    r"""Draws of the error rates, ``(draw, K, K)``: each row Dirichlet, with :math:`1/K` added to each count.

    They are moved towards the counted rates, to :math:`\sqrt{1 - n/N}` of their distance, since the rates are those of
    finitely many tasks, n of which are gold.
    """
    k = len(counts)
    gamma = np.random.default_rng(seed).gamma(counts + 1 / k, size=(DRAWS, k, k))
    counted = counts / counts.sum(-1, keepdims=True)
    return counted + np.sqrt(1 - counts.sum() / n_tasks) * (gamma / gamma.sum(-1, keepdims=True) - counted)
