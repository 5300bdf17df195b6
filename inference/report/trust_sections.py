"""The sections on how far to trust the labels: model comparison, posterior predictive checks, gold labels."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ...data import AnnotationError
from ..checks.check_results import LEVEL, Checks
from ..checks.predictive import check
from ..findings.summary import summary, why
from ..fitted.intervals import INTERVAL, jeffreys
from ..fitted.posterior import posterior_of
from ..plots.compared_stories import plot_comparison
from ..plots.predictive_checks import plot_checks
from ..plots.reliability_and_roc import plot_reliability, plot_roc
from ..scores.against_gold import GoldTasks, against_gold
from ..scores.label_scores import label_confusion, score
from .overview import p_value
from .sections import Section, section
from .subject import Subject

MAJORITY_VOTE = "majority_vote"  # the baseline, which needs no other majority vote beside it
MOST_CLASSES = 20  # up to which gold labels and labels are cross-tabulated
MOST_CONFUSED = 100  # pairs of classes that are listed where there are more classes
MOST_FLAGGED = 50  # flagged units that are listed
SHOWN = {"low": "replicated_low", "high": "replicated_high"}  # columns of checks


def comparison_section(subject: Subject) -> Section | None:
    """The comparison of stories by how well they predict; None where there is only one."""
    stack = subject.stack
    if stack is None and subject.comparison is None:
        return None
    compared = subject.comparison
    averaged = {"why": "", "high_k": [], "by_folds": False}
    if compared is not None:
        high = compared[(compared["n_high_k"] > 0).fillna(False)]
        averaged = {
            "why": why(compared),
            "high_k": [(name, int(row["n_high_k"]), row["pareto_k"]) for name, row in high.iterrows()],
            "by_folds": bool(compared["pareto_k"].isna().all()),
        }
    misled = None if stack is None or compared is not None else summary(stack).facts.get("misled")
    return section(
        "comparison",
        "Average" if compared is None else "Model comparison",
        **averaged,
        compared=None if compared is None else compared.rename(columns={"se": "elpd_se"}).dropna(axis=1, how="all"),
        differences=None if compared is None else partial(plot_comparison, compared),
        lead=None if stack is not None else subject.lead[0],
        n_fits=len(subject.fits),
        votes=f"{stack.mean_votes:.0%}" if stack is not None and stack.votes else "",
        misled=str(misled).capitalize() if misled else "",
        weights=None if stack is None else stack.weights.to_frame(),
        left_out=pd.DataFrame({"reason": stack.left_out}).rename_axis("story") if stack and stack.left_out else None,
    )


def make_checks(subject: Subject, *, progress: bool = True) -> Checks | str:
    """Posterior predictive checks of the fit that leads, or why there are none."""
    try:
        return check(subject.lead[1], seed=subject.seed, progress=progress)
    except AnnotationError as error:
        return str(error)


def checks_section(subject: Subject, checks: Checks | str) -> Section:
    """Return the section that compares annotations replicated by the fitted story with the observed annotations."""
    title = "Posterior predictive checks"
    if isinstance(checks, str):
        return section("checks", title, refused=checks)
    name, _ = subject.lead
    found = checks.table
    shown = found.rename(columns=SHOWN)
    shown.insert(0, "what", [checks.results[which].title for which in found.index])
    shown = shown.reset_index(drop=True).set_index("what")
    shown["n_flagged"] = [
        "–" if not units else f"{flagged:,} of {units:,}"
        for units, flagged in zip(shown["units"], shown["n_flagged"], strict=True)
    ]
    shown = shown.drop(columns="units").rename(columns={"n_flagged": "flagged after correction"})
    flagged = checks.flagged
    listed = flagged.head(MOST_FLAGGED).rename(columns=SHOWN)
    return section(
        "checks",
        title,
        refused="",
        of_lead=subject.of_lead,
        said=checks_in_words(checks, name),
        failed=bool((found["p_value"] < LEVEL).any()),
        level=LEVEL,
        interval=f"{INTERVAL:.0%}",
        notes=checks.notes,
        discrepancies=lambda: plot_checks(checks),
        shown=shown,
        flagged=listed.set_index("discrepancy"),
        n_flagged=len(flagged),
    )


def checks_in_words(checks: Checks, name: str) -> str:
    """A sentence on the posterior predictive checks that the fit with this name failed, with their p-values."""
    p_values = checks.table["p_value"]
    failed = [f"{which} (p = {p_value(p)})" for which, p in p_values.items() if p < LEVEL]
    if failed:
        check_s = "check" if len(failed) == 1 else "checks"
        return f"{name}: posterior predictive {check_s} failed: {', '.join(failed)}."
    return f"{name}: all {len(p_values)} posterior predictive checks passed (p ≥ {LEVEL})."


def gold_section(subject: Subject) -> Section | None:
    """Scores of the labels by the gold labels, beside the majority vote; None where there are no gold labels."""
    if subject.annotations.gold is None:
        return None
    source = subject.source
    try:
        found = against_gold(source)
    except AnnotationError as error:
        return section("gold", "Gold labels", refused=str(error))
    each = {name: posterior_of(fit) for name, fit in subject.fits.items()}
    named = {"average": source, **each} if subject.stack is not None else each
    scores = score(dict(named))
    assert isinstance(scores, pd.DataFrame)
    if MAJORITY_VOTE not in scores.index:
        scores.loc["majority vote"] = _majority_vote(subject, found)
    scores = scores.rename(columns={"gold_used": "given"}).astype({"tasks": int, "given": int})
    if not scores["given"].any():
        scores = scores.drop(columns="given")
    tasks = scores["tasks"].to_numpy()
    low, high = jeffreys(scores["accuracy"].to_numpy() * tasks, tasks, INTERVAL)
    scores = scores.drop(columns="accuracy_se").assign(accuracy_low=low, accuracy_high=high)
    binary = len(found.classes) == 2 and len(set(found.gold.tolist())) == 2
    return section(
        "gold",
        "Gold labels",
        refused="",
        scores=scores,
        interval=f"{INTERVAL:.0%}",
        voted=MAJORITY_VOTE in scores.index,
        reliability=lambda: plot_reliability(source),
        roc=(lambda: plot_roc(source)) if binary else None,
        **_confusion(subject),
    )


def _majority_vote(subject: Subject, found: GoldTasks) -> pd.Series:
    """Accuracy of the majority vote on the gold tasks that are scored, with the other scores missing."""
    annotations = subject.annotations
    votes = annotations.kind.majority(annotations.votes()[annotations.tasks.index_of(list(found.tasks))])
    shares = pd.DataFrame(votes, index=found.tasks, columns=found.classes)
    scores = score(shares, pd.Series(found.classes[found.gold], index=found.tasks))
    assert isinstance(scores, pd.Series)
    return scores[["tasks", "gold_used", "accuracy", "accuracy_se"]]


def _confusion(subject: Subject) -> dict[str, Any]:
    """Numbers of gold tasks by gold label and label; of many classes the pairs that differ."""
    counts = label_confusion(subject.source)
    counts = counts.set_axis([str(name) for name in counts.index], axis=0).rename_axis("gold")
    counts = counts.set_axis([str(name) for name in counts.columns], axis=1)
    wrong = counts.to_numpy() * ~np.eye(len(counts), dtype=bool)
    rows, columns = np.nonzero(wrong)
    order = np.argsort(-wrong[rows, columns], kind="stable")[:MOST_CONFUSED]
    pairs = pd.DataFrame(
        {
            "gold": counts.index[rows[order]],
            "label": counts.columns[columns[order]],
            "tasks": wrong[rows, columns][order],
        }
    ).set_index("gold")
    return {
        "n_gold": int(counts.to_numpy().sum()),
        "n_wrong": int(wrong.sum()),
        "confusion": counts if len(counts) <= MOST_CLASSES else None,
        "pairs": pairs if len(pairs) else None,
        "n_pairs": len(rows),
    }
