"""Number of gold labels that an interval of a wanted width takes."""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ...data.description import count_text
from ...data.errors import real_number, warn
from ...data.id_text import listing, name_text
from ...data.questions import QUESTION
from ..fitted.intervals import INTERVAL, checked_tail, quantile, wilson
from .gold_sample import FEW, GoldSample, gold_sample
from .gold_shares import Residuals, estimated, residuals, slope

PILOT = 50  # gold labels that are worth having before others are planned
EACH = 10  # gold labels of one question from which they plan it, and not the label probabilities
QUESTIONS = 8  # that a sentence names
LISTED = 3  # classes that a sentence names; of more only the one that takes the most


@dataclass(frozen=True, eq=False, repr=False)
class GoldNeeded:
    """A number of gold labels, and what it is for.

    Attributes:
        n_gold: how many gold labels every interval of the wanted width takes, those of the pilot among them; also
            ``int(…)`` of the plan.
        table: by ``quantity`` ("accuracy", "prevalence") and ``of`` ("labels", or the class): ``n_gold``, how many it
            takes alone; ``expected``, the share that was assumed; ``width_now``, of the pilot's interval, NaN without.
            Of comparisons the accuracy alone: the shares of their sides say only how items were placed.
        at_most: how many are enough whatever the labels are worth.
        width: from the low to the high end.
        interval: mass of the intervals.
        n_tasks: how many tasks there are to draw from.
        pilot: how many gold labels the plan is from; 0 where it is from the label probabilities.
        by_question: of several questions about each task, by question: ``n_gold``, how many gold labels of this
            question alone the accuracy of its labels takes; ``expected``, the accuracy that was assumed; ``n_tasks``;
            and ``pilot``, of which fewer than ten are not used. None where there is one question.
    """

    n_gold: int
    table: pd.DataFrame
    at_most: int
    width: float
    interval: float
    n_tasks: int
    pilot: int
    by_question: pd.DataFrame | None = None

    def __int__(self) -> int:
        return self.n_gold

    def __str__(self) -> str:
        table = self.table.reset_index()
        many = "" if len(table) - 1 <= LISTED else f", the most of {len(table) - 1} classes"
        if many:
            table = table.iloc[[0, 1 + int(table["n_gold"].iloc[1:].argmax())]]
        parts = [
            f"{n:,} for the {quantity}{'' if quantity == 'accuracy' else f' of {name_text(of)!r}'}"
            for quantity, of, n in zip(table["quantity"], table["of"], table["n_gold"], strict=True)
        ]
        source = (
            f"a pilot of {count_text(self.pilot, 'gold label')}, "
            + ("which are enough" if self.pilot >= self.n_gold else "which are among them")
            if self.pilot
            else "the label probabilities, which are often too sure"
            + f": plan again with a pilot of {PILOT} gold labels" * (self.n_gold > PILOT)
        )
        drawn = f"of tasks drawn at random from {self.n_tasks:,}"
        if self.by_question is not None:
            drawn = f"drawn at random from {self.n_tasks:,} pairs of a task and a question, which pools all questions,"
        return (
            f"{count_text(self.n_gold, 'gold label')} {drawn} {'makes' if self.n_gold == 1 else 'make'} "
            f"{self.interval:.0%} intervals at most {self.width:g} wide ({', '.join(parts)}{many}), by {source}. "
            f"{self.at_most:,} {'is' if self.at_most == 1 else 'are'} enough whatever the labels are worth."
            f"{self._of_questions()}"
        )

    def _of_questions(self) -> str:
        """Return what each question takes by itself, as a sentence; nothing where there is one."""
        if self.by_question is None:
            return ""
        each = [
            f"{row['n_gold']:,.0f} for {name!r} ({row['expected']:.0%} right)"
            for name, row in self.by_question.sort_values("n_gold", ascending=False, kind="stable").iterrows()
        ]
        return f" The accuracy of one question's labels takes {listing(each, QUESTIONS, str, of='questions')}."

    __repr__ = __str__


def gold_needed(source: Any, width: float = 0.05, *, gold: Any = None, interval: float = INTERVAL) -> GoldNeeded:
    """Say how many gold labels make the intervals of :func:`crowdppl.estimate` as narrow as wanted.

    The width is nearly that of ``method="ppi"`` where as many gold tasks as expected have each property. What the
    predictions explain is measured on a pilot, or taken from the label probabilities as if they were right; on real
    crowds these are too sure, so that too few gold labels come out.

    Example:
        >>> import crowdppl as cp
        >>> annotations, _ = cp.simulate("one_coin", n_tasks=1000, n_workers=20, annotations_per_task=5, seed=1)
        >>> plan = cp.gold_needed(cp.fit("one_coin", annotations.without_gold(), progress=False), width=0.1)
        >>> 0 < int(plan) <= plan.at_most <= 1000
        True

    Args:
        source: a fit, a stack, or a frame of probabilities, tasks × classes.
        width: from the low to the high end of each interval, above 0 and below 1.
        gold: a pilot: gold labels of tasks drawn at random, as for :func:`crowdppl.estimate`. None for those of the
            fit's annotations, and for the label probabilities where there are none.
        interval: mass of the intervals, between 0 and 1.

    Returns:
        :class:`GoldNeeded`, a number that prints as a sentence.

    Warns:
        AnnotationWarning: the pilot has fewer than 20 gold labels, or some contradict all annotations of their task.

    Raises:
        AnnotationError: gold labels are of an unknown task or class, or the fit was told all of them.
        ValueError: `width` or `interval` is not between 0 and 1.
        TypeError: `source` is something else.
    """
    width = real_number("width", width, above=0, below=1)
    checked_tail(interval)
    sample = gold_sample(source, gold, needed=False)
    pilot, n_tasks = len(sample.gold), len(sample.probabilities)
    if 0 < pilot < FEW:
        warn(f"a pilot of {count_text(pilot, 'gold label')} says little of how many are needed; 50 say enough")
    columns = range(len(sample.classes) + 1)  # of the properties
    assumed = [_of_pilot(sample, q, interval) if pilot else _of_probabilities(sample, q) for q in columns]
    rows: dict[str, ArrayLike] = {
        "n_gold": [_fewest(one, width, interval) for one in assumed],
        "expected": [one.share for one in assumed],
        "width_now": [one.width(pilot, interval) if pilot else np.nan for one in assumed],
    }
    table = sample.figures(rows)
    if sample.of_sides:
        table = table.loc[["accuracy"]]
    at_most = _fewest(_alone(0.5, n_tasks), width, interval)
    return GoldNeeded(
        int(table["n_gold"].max()),
        table,
        at_most,
        width,
        interval,
        n_tasks,
        pilot,
        _by_question(sample, width, interval),
    )


def _by_question(sample: GoldSample, width: float, interval: float) -> pd.DataFrame | None:
    """Return what the accuracy of each question's labels takes; None where there is one question."""
    parts = sample.of_questions()
    if not parts:
        return None
    last, rows = len(sample.classes), []
    for part in parts.values():
        n_pilot = len(part.gold)
        assumed = _of_pilot(part, last, interval) if n_pilot >= EACH else _of_probabilities(part, last)
        n_gold = _fewest(assumed, width, interval)
        rows.append({"n_gold": n_gold, "expected": assumed.share, "n_tasks": assumed.n_tasks, "pilot": n_pilot})
    return pd.DataFrame(rows, pd.Index(list(parts), name=QUESTION, dtype=object))


class Assumed(NamedTuple):
    """Basis of a planned interval's width."""

    n_tasks: int  # of which some will be gold
    share: float  # of all tasks that have the property
    residual: Residuals  # of the one property

    def width(self, n_gold: int, interval: float) -> float:
        """Of the interval from so many gold tasks, by Wilson's for a sample of finitely many."""
        if n_gold >= self.n_tasks:
            return 0.0
        effective = n_gold / float(self.residual.shorter(n_gold, interval)[0])
        low, high = wilson(self.share, effective / (1 - n_gold / self.n_tasks), interval)
        return high - low


def planned_width(right: np.ndarray, n_gold: int, n_tasks: int, interval: float) -> float:
    r"""The width of the accuracy's interval from `n_gold` gold tasks alone, by those that there are.

    Where few are counted their share says little: it is moved towards a half by :math:`c^2` pseudo-tasks (Agresti &
    Coull 1998).

    Args:
        right: whether the label of each gold task is right, ``(n,)``.
        n_gold: how many there will be.
        n_tasks: of all tasks.
    """
    few = quantile(interval) ** 2
    share = float((right.sum() + few / 2) / (len(right) + few))
    return _alone(share, n_tasks).width(n_gold, interval)


def _alone(share: float, n_tasks: int) -> Assumed:
    """A property of which the predictions explain nothing."""
    return Assumed(n_tasks, share, Residuals(np.ones(1), np.ones(1)))


def _of_pilot(sample: GoldSample, q: int, interval: float) -> Assumed:
    """Return the basis from a pilot's gold tasks, for one property."""
    y, f = sample.properties()
    last = y.shape[1] - 1
    part, column = (slice(None, -1), q) if q < last else (slice(-1, None), 0)  # the estimate has one λ for all classes
    y, f = y[:, part], f[:, part]
    found = residuals(y, f[sample.draw.at], sample.draw, slope(y, f, sample.draw))
    share = estimated(y, f, sample.draw, interval).estimate[column]
    return Assumed(len(f), float(share), Residuals(*(values[[column]] for values in found)))


def _of_probabilities(sample: GoldSample, q: int) -> Assumed:
    """Return the basis from label probabilities taken as right, for one property: a task has it with probability f."""
    f = sample.properties()[1][:, [q]]
    share = f.mean(0)
    return Assumed(len(f), float(share[0]), Residuals((f * (1 - f)).mean(0), share * (1 - share)))


def _fewest(assumed: Assumed, width: float, interval: float) -> int:
    """The least number of gold labels whose interval is at most so wide; gold labels of all tasks leave no width."""
    numbers = range(1, assumed.n_tasks + 1)
    return numbers[bisect_left(numbers, -width, key=lambda n: -assumed.width(n, interval))]
