"""What an experiment of a paper is: cells to run, the paper's tables beside ours, figures, and claims to judge."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Cell = dict[str, Any]
"""Settings of one run, and its seed: values that JSON knows."""

HOLDS, FAILS, HOLDS_IF, NOT_TESTED = "holds", "fails", "holds if", "not tested"
REPRODUCED = "reproduced"
"""Of a figure that is found again in data that are given: nothing was drawn, so that nothing is tested."""


def twice(unit: str) -> str:
    """Return the rule by which :func:`above` judges, of differences by a unit."""
    return (
        f"The mean difference over {unit}, in the direction of the claim, is more than twice its standard error above "
        "zero."
    )


TWICE = twice("seeds")
"""The rule of a claim that names no other."""


@dataclass(frozen=True)
class Finding:
    """What became of a claim.

    Attributes:
        ours: the figures that were measured.
        verdict: ``"holds"``, ``"fails"``, ``"reproduced"``, or a sentence that begins with ``"holds if"`` or
            ``"not tested"``.
    """

    ours: str
    verdict: str

    def __post_init__(self) -> None:
        if not (self.verdict in (HOLDS, FAILS, REPRODUCED) or self.verdict.startswith((HOLDS_IF, NOT_TESTED))):
            raise ValueError(
                f"verdict={self.verdict!r}: 'holds', 'fails', 'reproduced', 'holds if …' or 'not tested: …' is needed"
            )


NOT_RUN = Finding("", f"{NOT_TESTED}: the cells have not been run")


@dataclass(frozen=True)
class Claim:
    """What a paper claims.

    Attributes:
        says: the claim, in a sentence.
        where: in the paper.
        paper: the paper's figures; empty where it gives none.
        judge: of the frame of all cells.
        rule: when it holds, in sentences; what `judge` does.
    """

    says: str
    where: str
    paper: str
    judge: Callable[[pd.DataFrame], Finding]
    rule: str = TWICE


@dataclass(frozen=True)
class NotRun:
    """A part of a paper that was not run.

    Attributes:
        says: what it is.
        where: in the paper.
        why: it was not run, and what is nearest to it here.
        takes: what running it would take.
    """

    says: str
    where: str
    why: str
    takes: str


@dataclass(frozen=True, eq=False)
class Experiment:
    """An experiment of a paper.

    Attributes:
        name: by which the command line knows it.
        title: what is done, in a sentence.
        paper: authors, title and year.
        cells: what to run for a number of seeds, the cheap cells first.
        run: runs one cell, which gives its settings by name, and returns a row of numbers or several.
        tables: of the frame of all rows, the paper's figures beside ours, by title.
        figures: of the same frame, the paper's figures by the stem of their files.
        claims: of the paper.
        needs: datasets under ``$CROWDPPL_DATA``.
        notes: what differs from the paper, and how what was chosen was chosen.
        not_run: parts of the paper that belong here and were not run.
    """

    name: str
    title: str
    paper: str
    cells: Callable[[int], list[Cell]]
    run: Callable[..., Mapping[str, Any] | Sequence[Mapping[str, Any]]]
    tables: Callable[[pd.DataFrame], dict[str, pd.DataFrame]]
    figures: Callable[[pd.DataFrame], dict[str, Figure]]
    claims: tuple[Claim, ...]
    needs: tuple[str, ...] = ()
    notes: str = ""
    not_run: tuple[NotRun, ...] = ()


def percent_right(probabilities: Any, truth: Any) -> float:
    """Return how many of the most probable classes of rows ``(n, K)`` are the true ones ``(n,)``, in percent."""
    import numpy as np

    return 100 * float((np.asarray(probabilities).argmax(-1) == np.asarray(truth)).mean())


def mean_sd(values: Any, digits: int = 1) -> str:
    """Return the mean ± the standard deviation of values, one for each seed; one value alone, a dash for none."""
    given = [float(value) for value in values if value is not None and math.isfinite(value)]
    if not given:
        return "–"
    mean = math.fsum(given) / len(given)
    if len(given) == 1:
        return f"{mean:.{digits}f}"
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in given) / (len(given) - 1))
    return f"{mean:.{digits}f} ± {deviation:.{digits}f}"


def above(
    frame: pd.DataFrame,
    measure: str,
    first: Mapping[str, Any],
    second: Mapping[str, Any],
    digits: int = 1,
    *,
    less: bool = False,
) -> Finding:
    """Judge by :data:`TWICE` that one method has more of a measure than another; one seed cannot say.

    Args:
        frame: a row for each cell, with a column ``seed``.
        measure: its column.
        first: settings that pick the rows of the method that is said to have more.
        second: those of the other.
        digits: of the figures.
        less: judge that it has less.
    """
    one, other = (_by_seed(frame, measure, settings) for settings in (first, second))
    if one is None or other is None:
        return NOT_RUN
    difference = (one - other).dropna()
    ours = f"{mean_sd(one, digits)} against {mean_sd(other, digits)}"
    if len(difference) < 2:
        return Finding(ours, f"{NOT_TESTED}: two seeds are needed to tell")
    ours += f"; difference {mean_sd(difference, digits)}, n = {len(difference)}"
    mean = -difference.mean() if less else difference.mean()
    holds = mean > 2 * difference.std(ddof=1) / math.sqrt(len(difference)) and mean > 0
    return Finding(ours, HOLDS if holds else FAILS)


def draw_spread(ax: Any, values: Any, place: float, **style: Any) -> None:
    """Draw the mean of values over seeds at a height, with a bar of their standard deviation to both sides."""
    ax.errorbar(values.mean(), place, xerr=values.std() if len(values) > 1 else 0, fmt="o", **style)


def rows_of(frame: pd.DataFrame, settings: Mapping[str, Any]) -> pd.DataFrame:
    """Return the rows that have these settings; none where a column is missing."""
    picked = frame
    for name, value in settings.items():
        picked = picked[picked[name] == value] if name in picked else picked.iloc[:0]
    return picked


def _by_seed(frame: pd.DataFrame, measure: str, settings: Mapping[str, Any]) -> pd.Series | None:
    picked = rows_of(frame, settings)
    if measure not in picked or picked.empty:
        return None
    return picked.groupby("seed")[measure].mean()
