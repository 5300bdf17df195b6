r"""Gold labels of workers who agree as copies do tell whether these are better than the rest, and share errors.

Agreement alone does not tell copies from workers much better than the rest; true labels of some tasks do. On the gold
tasks that a member of the group and another worker annotated, with :math:`r_i` and :math:`o_i` the shares of the
members' and of the others' annotations that are right, the members are better where the interval of the mean of
:math:`r_i - o_i` is above 0. Where a member is wrong, with :math:`m_i` and :math:`n_i` the shares of the other members
and of the others who give the same wrong label, they share errors where the interval of the mean of
:math:`m_i - n_i` is above what their own errors add to the others': :math:`\max(0, \bar n \bar e / \bar f - \bar n)`,
with :math:`\bar e` and :math:`\bar f` the members' and the others' shares of wrong annotations, so that members who err
twice as often meet in twice as many errors. The ratio :math:`\bar n / \bar f`, below 1 where there are several wrong
labels to give and above 1 where tasks mislead, is drawn towards 1 by :data:`UNKNOWN` tasks. A task that misleads many
misleads the others, too, and is no sign of copies. Both are Student's intervals over tasks, which are independent of
each other as members are not.

Of who are not better, or too seldom wrong for that, it is compared how often they are right with how often they give
the same label: of two who err by e independently of each other labels differ in about 2e of the tasks, so that who are
right less often than they agree, up to the high end of Jeffreys' interval, are not good enough to agree so.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from ...data import Annotations
from ...data.arrays import cross_counts
from ...data.description import count_text
from ...data.questions import Units
from ...data.repeats import first_annotations
from ..fitted.intervals import INTERVAL, checked_tail, jeffreys
from .copies import AgreeingGroup
from .gold_share import FEWEST_GOLD

FEWEST_WRONG = 5  # gold tasks on which a member is wrong, from which these say whether errors are shared
UNKNOWN = 2  # tasks as if each wrong label met the others' wherever they are wrong

Told = Literal["copies", "better", "better copies", "open"]
WORDS: dict[Told, str] = {
    "copies": "tell that they are copies, or err together as copies do",
    "better": "tell that they are better than the rest, and do not show them to copy",
    "better copies": "tell that they are better than the rest, and copies all the same, or err together as copies do",
    "open": "do not tell yet",
}


@dataclass(frozen=True)
class OnGold:
    """The evidence of gold labels on a group of workers.

    Attributes:
        n_gold: gold tasks that one of the group and another worker annotated.
        right: the share of the group's annotations that are right, the mean of these tasks.
        others: the same of the other workers'.
        lead: the interval of the difference, low and high.
        n_wrong: gold tasks on which one of several of the group is wrong, and another worker is there.
        same: the share of the others of the group who give the same wrong label there; NaN where there is none.
        same_others: the same of the other workers.
        told: what follows.
    """

    n_gold: int
    right: float
    others: float
    lead: tuple[float, float]
    n_wrong: int
    same: float
    same_others: float
    told: Told

    @property
    def text(self) -> str:
        """The evidence as clauses."""
        low, high = (f"{100 * end:.0f}" for end in self.lead)
        wrong = (
            f"; where one of them is wrong ({count_text(self.n_wrong, 'task')}) another of them gives the same wrong "
            f"label in {self.same:.0%}, and one of the rest in {self.same_others:.0%}"
            if self.n_wrong
            else ""
        )
        return (
            f"{count_text(self.n_gold, 'gold label')} {WORDS[self.told]}: they are right in {self.right:.0%}, and the "
            f"rest in {self.others:.0%} ({INTERVAL:.0%} interval of the difference {low} to {high} percentage "
            f"points){wrong}"
        )

    @property
    def is_better(self) -> bool:
        """True where they are better, and no copies as far as gold labels tell."""
        return self.told == "better"

    @property
    def is_copy(self) -> bool:
        """True where they are copies, better or not."""
        return self.told in ("copies", "better copies")


def on_gold(annotations: Annotations, group: AgreeingGroup) -> OnGold | None:
    """Return what the gold labels of annotations say of a group; None where too few tasks have one.

    Args:
        annotations: of all workers, none of whom counts as another; their gold labels, used by a fit or not.
        group: of these workers, of all tasks or of one question.
    """
    if annotations.gold is None or annotations.scored:
        return None
    gold = np.where(of_question(annotations, group), np.asarray(annotations.gold), -1)
    if (gold >= 0).sum() < FEWEST_GOLD:
        return None
    ours, others = _label_counts(annotations, gold, group.workers)
    gold, at = gold[gold >= 0], np.arange(len(ours))
    n_ours, n_others = ours.sum(1), others.sum(1)
    met = (n_ours > 0) & (n_others > 0)
    if met.sum() < FEWEST_GOLD:
        return None
    right, right_others = (side[at, gold][met] / side.sum(1)[met] for side in (ours, others))
    lead = _mean_interval(right - right_others)
    wrong, wrong_others = ours.copy(), others.copy()
    wrong[at, gold] = wrong_others[at, gold] = 0
    erring = met & (n_ours > 1) & (wrong.sum(1) > 0)
    same = ((wrong * (wrong - 1)).sum(1) / np.maximum(wrong.sum(1) * (n_ours - 1), 1))[erring]
    same_others = ((wrong * wrong_others).sum(1) / np.maximum(wrong.sum(1) * n_others, 1))[erring]
    is_better, n_wrong = lead[0] > 0, int(erring.sum())
    is_copy = False
    if n_wrong >= FEWEST_WRONG:
        met_others, wrong_others_share = float(same_others.mean()), 1 - float(right_others.mean())
        met_each = (met_others * n_wrong + UNKNOWN) / (wrong_others_share * n_wrong + UNKNOWN)
        own = max((1 - float(right.mean())) * met_each - met_others, 0.0)
        is_copy = _mean_interval(same - same_others)[0] > own
    if not is_copy and not (is_better and n_wrong >= FEWEST_WRONG):
        most = jeffreys(np.array(right.sum()), np.array(len(right)), INTERVAL)[1]
        is_copy = bool(most < group.within)
    told: Told = ("better copies" if is_better else "copies") if is_copy else "better" if is_better else "open"
    return OnGold(
        int(met.sum()),
        float(right.mean()),
        float(right_others.mean()),
        lead,
        n_wrong,
        float(same.mean()) if n_wrong else np.nan,
        float(same_others.mean()) if n_wrong else np.nan,
        told,
    )


def of_question(annotations: Annotations, group: AgreeingGroup) -> np.ndarray:
    """Return which tasks a group counts in, ``(N,)`` bool."""
    units = annotations.tasks
    if group.question is None or not isinstance(units, Units):
        return np.ones(annotations.n_tasks, bool)
    return units.question == list(units.questions).index(group.question)


def _label_counts(annotations: Annotations, gold: np.ndarray, workers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how many of the group, and how many others, give each gold task each class: ``(G, K)`` each.

    Of a worker who annotated a task again the first annotation counts.
    """
    first = first_annotations(annotations)
    known = gold[first.task] >= 0
    task, worker, label = first.task[known], first.worker[known], first.label[known]
    place = np.cumsum(gold >= 0) - 1
    shape = (int((gold >= 0).sum()), annotations.n_classes)
    inside = np.isin(worker, workers)
    ours, others = (cross_counts(shape, place[task[side]], label[side]) for side in (inside, ~inside))
    return ours, others


def _mean_interval(values: np.ndarray) -> tuple[float, float]:
    """Return Student's interval of a mean; of one value from -1 to 1."""
    n = len(values)
    if n < 2:
        return -1.0, 1.0
    half = special.stdtrit(n - 1, 1 - checked_tail(INTERVAL)) * values.std(ddof=1) / np.sqrt(n)
    return float(values.mean() - half), float(values.mean() + half)
