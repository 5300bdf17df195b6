"""A panel of judges: what its annotations, a fit of them and gold labels say of each judge and of all together."""

import json
import os
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...data.atomic import check_new_file, write_whole
from ...data.cards import never_raising
from ...data.description import count_text
from ...data.id_text import listing, name_quoted, name_text
from ...data.questions import tasks_text
from ..engines.finding import Finding
from ..findings.of_crowd import HELP
from ..findings.verdict import NOTED
from ..fitted.error_correlation import ErrorCorrelation
from ..plots.ranking import draw_ordered
from ..plots.shown_workers import meanings
from ..report.label_sections import labels_section, question_section, ranking_section
from ..report.overview import Alert
from ..report.page import page, tiles
from ..report.sections import Section, render, section
from ..report.subject import subject
from ..report.trust_sections import gold_section
from ..report.worker_section import section_of
from ..result import Fit
from ..scores.estimates import Estimate
from ..scores.gold_plan import GoldNeeded
from ..scores.worker_agreement import Agreement

NAMED = 4  # judges that a sentence names
DOUBTED = ("perhaps_copies", "always_the_same")
"""Codes of findings on judges who may be copies, which are said by :attr:`Panel.doubts`."""

MEANINGS = {
    "right": "share of the judge’s annotations that are the truth, by the fit",
    "gold_right": "the same by gold labels alone",
    "n_gold": "annotations of gold tasks",
    "bias": "how many classes the judge’s annotations are above the truth, on average",
    "mean_absolute_error": "how many classes they are away from it, on average",
    "kappa": "agreement with another judge beyond chance",
    "n_effective": "like how much of an independent judge the judge counts beside the others",
}
"""Of the columns of judges that ``fit.workers`` does not have, or has by another name."""


@dataclass(frozen=True, eq=False, repr=False)
class Panel:
    """A panel of judges, by :func:`judge`. Columns ``x_low`` and ``x_high`` are the interval of ``x``.

    Attributes:
        fit: the labels and what was fitted, with ``fit.labels`` and ``fit.findings``.
        judges: by judge, the best first: ``annotations``; ``right``, the share of its annotations that are the truth,
            by the fit; with gold labels ``gold_right``, the same by them alone, and ``n_gold``; what the kind of the
            labels has of a judge's leaning, such as ``bias`` of ordered classes (how many classes too high) and
            ``mean_absolute_error``, or ``sensitivity`` and ``specificity`` of two; ``abstention_rate``; ``kappa`` with
            the others; ``n_effective``, like how much of an independent judge it counts.
        copies: by group of judges who agree more than independent ones can: ``judges``, ``question`` (the one in which
            they do, or None), ``same`` (the share of tasks of two of them with one label), ``others`` (the same of one
            of them and another judge), ``tasks``, ``by_gold`` (what gold labels tell: "copies", "better", "better
            copies" for both, "open"; None where they are too few) and ``said``, all of it as a sentence.
        doubts: findings on further judges who may copy, who decide the labels, or always give the same, by gold labels
            where there are enough.
        drop: by judge and ``question`` (None for all) the ``reason`` to leave it out.
        errors: how the judges err together, and like how many independent ones they count; None where nothing tells.
        agreement: coefficients of agreement.
        systems: what was judged, by :func:`.system_scores`; None where no task is of a system.
        system_score: what their score is, in words.
        system_column: the column of the table that names them; None where something else does.
        ranking: of comparisons the items by their scores, by :func:`.item_ranking`; None where the fit gives no scores.
        estimate: how often the labels are right, by gold labels; None without.
        gold_needed: how many gold labels make the panel's accuracy known as well as wanted.
        next_gold: tasks to have checked first, with the probability of having been drawn; None where all are known.
        gold: the true class of each task, −1 where unknown, shape (N,); None without gold labels.
        interval: mass of the intervals.
        seed: of what was drawn.
    """

    fit: Fit
    judges: pd.DataFrame
    copies: pd.DataFrame
    doubts: tuple[Finding, ...]
    drop: pd.DataFrame
    errors: ErrorCorrelation | None
    agreement: Agreement
    systems: pd.DataFrame | None
    system_score: str
    system_column: str | None
    ranking: pd.DataFrame | None
    estimate: Estimate | None
    gold_needed: GoldNeeded
    next_gold: pd.DataFrame | None
    gold: np.ndarray | None
    interval: float
    seed: int = 0

    @property
    def n_judges(self) -> int:
        """The number of judges, who have a row for each question where their quality is by question."""
        return int(self.judges.index.get_level_values("judge").nunique())

    @property
    def sentences(self) -> tuple[str, ...]:
        """Sentences that can be repeated: on the panel, its judges, labels, what was judged, the ranking."""
        said = [self._of_independence(), self._of_judges(), self._of_positions(), self._of_labels()]
        if self.systems is not None and len(self.systems) > 1:
            said.append(self._of_systems(self.systems))
        said.append(self._of_shared_leaning())
        if self.ranking is not None:
            said.append(_of_items(self.ranking))
        return tuple(one for one in said if one)

    @property
    def alerts(self) -> list[tuple[str, tuple[str, ...], str]]:
        """Findings to act on, the weightiest first: a title, sentences, and the section of the page that has more."""
        made: list[tuple[str, tuple[str, ...], str]] = []
        if len(doubted := self.copies[self.copies["by_gold"] != "better"]):
            texts = tuple(doubted["said"].head(NAMED))
            made.append((f"{count_text(len(doubted), 'group')} who agree as copies do", texts, "copies"))
        if len(self.drop):
            reasons = dict.fromkeys(self.drop["reason"].tolist())
            by_reason = {reason: list(self.drop.index[self.drop["reason"] == reason]) for reason in reasons}
            texts = tuple(f"{listing(names, NAMED)}: {reason}." for reason, names in by_reason.items())
            made.append((f"{count_text(len(self.drop.index.unique()), 'judge')} to leave out", texts, "drop"))
        if self.estimate is not None and self.estimate.accuracy["without_gold"] > self.estimate.accuracy["high"]:
            made.append(("Labels that are less often right than they say", (_of_too_sure(self.estimate),), "labels"))
        found = [one for one in self.fit.findings if one.severity == "warning" or one.code in NOTED]
        if may_copy := [one for one in self.doubts if one.severity == "warning" or one.code in NOTED]:
            title = "Judges who count as one" if may_copy[0].severity == "warning" else "Judges who may copy"
            made.append((title, tuple(map(self._standing, may_copy)), "copies"))
        if others := [one for one in found if one.code not in ("copies", *DOUBTED)]:
            made.append(("Findings of the fit", tuple(map(self._standing, others)), "labels"))
        return made

    def _standing(self, finding: Finding) -> str:
        """Return a finding as a sentence, without the advice to give gold labels that the panel has already.

        Without gold labels it is that they tell; the panel says for which tasks, and takes them as ``gold=``.
        """
        instead = "" if self.gold is not None else "Gold labels of some tasks tell"
        if not finding.remedy.endswith(HELP):
            return finding.standing
        others = finding.remedy.removesuffix(HELP).removesuffix(". ")
        return replace(finding, remedy=". ".join(filter(None, [others, instead]))).standing

    def report(self, path: str | os.PathLike[str], *, title: str | None = None) -> Path:
        """Write the panel's page (HTML): judges, copies, agreement, what was judged, gold labels to get, labels.

        Args:
            path: the file to write, ending in ``.html`` or ``.htm``.
            title: heading of the page; by default the numbers of tasks and judges.

        Returns:
            The path of the page.

        Raises:
            StorageError: `path` does not end so, or cannot be written.
        """
        path = Path(path)
        check_new_file(path, (".html", ".htm"))
        about = subject(self.fit, None, self.gold, self.seed)
        found = [Alert(*one) for one in self.alerts]
        first = render("opening", verdict=None, sentences=self.sentences, alerts=found, all_clear=[])
        shown = tiles(about, "judge")
        if self.errors is not None:
            least = "" if self.errors.sees_shared else ", at most"
            shown.insert(2, (f"independent judges that they count like{least}", f"{self.errors.n_effective:.1f}"))
        made = [self._judges_section(), self._copies_section(), self._drop_section(), self._systems_section()]
        made += [ranking_section(about, self.interval), self._human_labels_section(), gold_section(about)]
        made += [section_of(self.agreement, "judge"), question_section(about), labels_section(about)]
        told = "; gold labels were not told to it, so that they judge it"
        lead = f"Labels by {self.fit.story}{', without gold labels to judge it' if self.gold is None else told}."
        heading = f"A panel of {count_text(self.n_judges, 'judge')} on {tasks_text(about.annotations.tasks)}"
        write_whole(path, page(title or heading, lead, first, shown, [one for one in made if one is not None]))
        return path

    def _judges_section(self) -> Section:
        known = meanings(self.fit.annotations.classes) | MEANINGS
        meant = "; ".join(f"{name.replace('_', ' ')}: {means}" for name, means in known.items() if name in self.judges)
        return section(
            "judges",
            "Judges",
            judges=self.judges,
            meanings=meant,
            interval=f"{self.interval:.0%}",
            files=[(count_text(len(self.judges), "judge"), self.judges)],
            drawn=None if self._right is None else partial(self._draw_judges, self._right),
        )

    @property
    def _right(self) -> str | None:
        """The column that says how often judges are right: by gold labels where there are any; None where all lack."""
        columns = [name for name in ("gold_right", "right") if name in self.judges and self.judges[name].notna().any()]
        return columns[0] if columns else None

    def _draw_judges(self, by: str) -> Any:
        """Draw how often judges are right: the figures, the intervals and the order of :attr:`judges`."""
        source = "the gold labels" if by == "gold_right" else "the fit"
        measured = "share of annotations that are right"
        return self._draw(self.judges, by, "judge", measured, f"How often judges are right, by {source}")

    def _draw(self, frame: pd.DataFrame, by: str, of: str, measured: str, heading: str) -> Any:
        """Draw a column of a table, with its intervals and in its order."""
        names = {by: "value", f"{by}_low": "low", f"{by}_high": "high"}
        table = frame.rename(columns=names).filter(list(names.values())).dropna().iloc[::-1]
        heading += f"\nwith {self.interval:.0%} intervals" if "low" in table else ""
        return draw_ordered(None, table, of=of, measured=measured, heading=heading)

    def _copies_section(self) -> Section:
        shown = self.copies.assign(judges=self.copies["judges"].map(lambda names: listing(names, NAMED)))
        empty = [name for name in ("question", "by_gold") if shown[name].isna().all()]
        said = [*self.copies["said"], *map(self._standing, self.doubts)]
        values = {
            "copies": shown.drop(columns=[*empty, "said"]).set_index("judges"),
            "said": said,
            "errors": self.errors,
        }
        return section("copies", "Who copies whom", **values)

    def _drop_section(self) -> Section:
        shown = self.drop.set_axis(self.drop.index.map(name_text).rename("judge"))
        if self.drop["question"].isna().all():
            shown = shown.drop(columns="question")
        return section("drop", "Whom to leave out", drop=shown)

    def _systems_section(self) -> Section | None:
        if self.systems is None:
            return None
        frame = self.systems.set_axis(self.systems.index.map(str).rename("system"))
        files = [(count_text(len(frame), "system"), frame)]
        draw = partial(self._draw, frame, "score", "system", self.system_score, "Systems")
        return section(
            "systems",
            "What was judged",
            systems=frame,
            said=f"{self.system_score}{self.by_column}",
            files=files,
            drawn=draw if len(frame) > 1 else None,
        )

    def _human_labels_section(self) -> Section:
        asked = self.next_gold
        if asked is not None:
            asked = asked.assign(task=asked["task"].map(name_text)).set_index("task")
        return section("human_labels", "How many human labels would settle it", said=str(self.gold_needed), asked=asked)

    def to_json(self) -> dict[str, Any]:
        """Return all figures as values of JSON: sentences, tables as lists of rows, and numbers."""
        tables = {
            "judges": self.judges,
            "copies": self.copies,
            "drop": self.drop,
            "systems": self.systems,
            "ranking": self.ranking,
            "next_gold": self.next_gold,
        }
        found: dict[str, Any] = {name: None if table is None else _records(table) for name, table in tables.items()}
        errors, estimate = self.errors, self.estimate
        return {
            "sentences": list(self.sentences),
            **found,
            "agreement": _records(self.agreement.table),
            "n_judges": self.n_judges,
            "n_effective": None if errors is None else errors.n_effective,
            "n_effective_interval": None if errors is None else list(errors.interval),
            "estimate": None if estimate is None else _records(estimate.table),
            "gold_needed": int(self.gold_needed),
            "system_score": self.system_score,
            "interval": self.interval,
        }

    def write_json(self, path: str | os.PathLike[str]) -> Path:
        """Write :meth:`to_json` to a file ending in ``.json``, and return its path."""
        path = Path(path)
        check_new_file(path, (".json",))
        write_whole(path, json.dumps(self.to_json(), indent=2, ensure_ascii=False) + "\n")
        return path

    def __str__(self) -> str:
        acted = [f"{title}. {' '.join(texts)}" for title, texts, _ in self.alerts]
        return "\n".join([*self.sentences, *acted, str(self.gold_needed)])

    __repr__ = __str__

    @never_raising
    def _repr_html_(self) -> str:
        return self.judges.style.format(precision=3, na_rep="–").to_html()

    def _of_independence(self) -> str:
        judged = f"{count_text(self.n_judges, 'judge')} annotated {tasks_text(self.fit.annotations.tasks)}"
        if self.errors is None:
            return f"{judged}; nothing tells like how many independent ones they count."
        errors = self.errors
        low, high = errors.interval
        if errors.sees_shared and errors.is_known:
            return f"{judged}, and count like {errors.n_effective:.1f} independent ones ({low:.1f}–{high:.1f})."
        if errors.sees_shared:
            return (
                f"{judged}, and count like {errors.n_effective:.1f} independent ones as far as the fit tells; gold "
                "labels tell for sure."
            )
        return (
            f"{judged}, and count like at most {errors.n_effective:.1f} independent ones: the story is nearly blind to "
            "errors that they share."
        )

    def _of_judges(self) -> str:
        by = self._right
        if by is None:
            return "Nothing tells how often a judge is right."
        known = self.judges[self.judges[by].notna()]  # the first is most often right for sure
        least = int(known[f"{by}_high" if f"{by}_high" in known else by].argmin())
        ends = known.iloc[sorted({0, least})]
        each = [
            f"{name_quoted(name)} {row[by]:.0%}"
            + (f" ({row[f'{by}_low']:.0%}–{row[f'{by}_high']:.0%})" if _has_width(row, by) else "")
            for name, row in ends.iterrows()
        ]
        is_open = known[by].max() > known[by].iloc[0]  # of somebody else, of whom less is sure
        best = f"Most often right{', as far as is sure,' if is_open else ''} is {each[0]}"
        counted = by == "gold_right" and not any(_has_width(row, by) for _, row in known.iterrows())
        source = "by the gold labels of all tasks, so that these shares are counts, and intervals have no width"
        source = (
            source
            if counted
            else "by gold labels"
            if by == "gold_right"
            else "by the fit"
            if self.gold is not None
            else "by the fit, which no gold label has judged"
        )
        return f"{best}{f', least often {each[1]}' if len(each) > 1 else ''}, {source}."

    def _of_positions(self) -> str:
        """Return which judges of comparisons prefer a side, for all that is known; nothing where none does."""
        if "position_bias_low" not in self.judges:
            return ""
        low, high = self.judges["position_bias_low"], self.judges["position_bias_high"]
        biased = self.judges[(low > 0) | (high < 0)].sort_values("position_bias", key=abs, ascending=False)
        if not len(biased):
            return ""
        each = [
            f"{bias:.2f} ({low:.2f} to {high:.2f}) of {name_quoted(name)}"
            for name, bias, low, high in biased[
                ["position_bias", "position_bias_low", "position_bias_high"]
            ].itertuples()
        ]
        return (
            f"{count_text(len(biased), 'judge')} of {len(self.judges)} name{'s' * (len(biased) == 1)} an item for its "
            "side: position bias is "
            f"{listing(each, NAMED, str)}, from -1 for always what is at the right to 1 for always what is at the left."
        )

    def _of_labels(self) -> str:
        if self.estimate is not None:
            return str(self.estimate)
        promised = float(np.asarray(self.fit.posterior).max(-1).mean())
        needed = self.gold_needed
        n_gold = int(needed.table["n_gold"].loc["accuracy"].iloc[0])
        return (
            f"The labels say that {promised:.0%} of them are right, and labels without gold are often too sure; "
            f"{count_text(n_gold, 'gold label')} would tell it by an interval {needed.width:g} wide."
        )

    @property
    def by_column(self) -> str:
        """Where the systems' names are from, in words; nothing where that is no column."""
        return "" if self.system_column is None else f" (column {self.system_column!r})"

    def _of_systems(self, systems: pd.DataFrame) -> str:
        best = systems.iloc[0]
        first = (
            f"Of {count_text(len(systems), 'system')}{self.by_column} the best is {systems.index[0]!r}, "
            f"{self.system_score} {best['score']:.3f} ({best['score_low']:.3f}–{best['score_high']:.3f})"
        )
        return f"{first}, with probability {best['best']:.2f} that none is better, as far as the labels are right."

    def _of_shared_leaning(self) -> str:
        """Return what cannot be seen of a leaning that most judges share, where classes are ordered; else nothing."""
        if "bias" not in self.judges:
            return ""
        scored = several = ""
        if self.systems is not None:
            several = " and between systems" * (len(self.systems) > 1)
            scored = ", and systems' scores shift with it" if several else ", and the system's score shifts with it"
        return (
            "A leaning that most judges share shows only in gold labels, and the fit uses none: biases are relative to "
            f"the panel{scored}, beyond the intervals, while differences between judges{several} hardly change. How "
            "often a judge is right is relative to the panel, too: who leans as it does comes out too well."
        )


def _of_too_sure(estimate: Estimate) -> str:
    """Return by how much the probabilities of the labels say more than gold labels do."""
    said, low, right, high = (100 * estimate.accuracy[name] for name in ("without_gold", "low", "estimate", "high"))
    return (
        f"By gold labels the labels' probabilities are too high by {said - right:.0f} percentage points on average "
        f"({estimate.interval:.0%} interval {said - high:.0f} to {said - low:.0f})."
    )


def _of_items(ranking: pd.DataFrame) -> str:
    """Return the best item; of several parts that no comparison connects, the best of the first ones."""
    if "part" not in ranking:
        return f"Of {count_text(len(ranking), 'item')} the best is {_of_best(ranking)}, with probability " + (
            f"{ranking['p_best'].iloc[0]:.2f} that none is better."
        )
    parts = [part for _, part in ranking.groupby("part")]
    each = [f"{_of_best(part)} of {count_text(len(part), 'item')}" for part in parts]
    return (
        f"{count_text(len(ranking), 'item')} are in {count_text(len(parts), 'part')} that no comparison joins, so that "
        f"no data say which part is better; the best of each is {listing(each, NAMED, str)}."
    )


def _of_best(ranking: pd.DataFrame) -> str:
    """Return the first item of a ranking with its score."""
    best = ranking.iloc[0]
    return f"{ranking.index[0]!r}, score {best['score']:.2f} ({best['score_low']:.2f} to {best['score_high']:.2f})"


def _has_width(row: pd.Series, name: str) -> bool:
    return f"{name}_low" in row and row[f"{name}_high"] > row[f"{name}_low"]


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table, its index as columns, as values of JSON."""
    has_names = table.index.names != [None]
    rows = (table.reset_index() if has_names else table).to_dict("records")
    return [{str(name): _value(value) for name, value in row.items()} for row in rows]


def _value(value: Any) -> Any:
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, list | tuple):
        return [_value(one) for one in value]
    return value if value is None or isinstance(value, str) else str(value)
