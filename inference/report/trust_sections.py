"""The sections on how far to trust the labels: model comparison, posterior predictive checks, gold labels."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...data import AnnotationError
from ..checks import check
from ..checks.check_results import Checks
from ..checks.discrepancy_result import LEVEL
from ..comparison.stacking import why
from ..fitted.intervals import INTERVAL, jeffreys
from ..plots import plot_checks, plot_comparison, plot_reliability, plot_roc
from ..plots.style import counted
from ..scores.against_gold import GoldTasks, against_gold
from ..scores.label_scores import label_confusion, score
from .html import Html, Section, individuals, paragraph, section, together, warning
from .pictures import picture
from .said_first import p_value
from .subject import Subject
from .tables import table

MAJORITY_VOTE = "majority_vote"  # the baseline, which needs no other majority vote beside it
_OF_VOTES = " Majority vote: the class with the most annotations, ties shared; it has no probabilities to score."
MOST_CLASSES = 20  # up to which gold labels and labels are cross-tabulated
MOST_CONFUSED = 100  # pairs of classes that are listed where there are more classes
MOST_FLAGGED = 50  # flagged units that are listed
DRAWS, DRAWS_OF_MANY = 50, 15  # of the parameters, from which checks replicate the annotations
MANY_ANNOTATIONS = 100_000  # above which they are fewer, as each takes a second
SHOWN = {"low": "replicated_low", "high": "replicated_high"}  # columns of checks


def comparison_section(subject: Subject) -> Section | None:
    """The comparison of stories by how well they predict; None where there is only one."""
    stack = subject.stack
    if stack is None and subject.comparison is None:
        return None
    parts: list[object] = []
    found = subject.comparison
    if found is None:
        assert stack is not None
        stories = "this story" if len(stack.fits) == 1 else "these stories, by these weights"
        and_votes = f", and of the votes, which count for {stack.votes:.0%}" if stack.votes else ""
        allowing = stack.summary().facts.get("misled")
        parts.append(paragraph(f"The labels are averages of {stories}{and_votes}."))
        parts.append(paragraph(f"{str(allowing).capitalize()}.") if allowing else None)
        parts.append(table(stack.weights.to_frame(), "Weights"))
    else:
        by_folds = bool(found["pareto_k"].isna().all())
        parts.append(paragraph(f"{why(found)}. {_whose(subject)}"))
        parts += _high_k(found)
        parts.append(picture(lambda: plot_comparison(found), "Stories by expected log predictive density"))
        shown = found.rename(columns={"se": "elpd_se"}).dropna(axis=1, how="all")
        parts.append(table(shown, "Stories, the best first"))
        parts.append(paragraph(_columns(by_folds), class_="note"))
    if stack is not None and stack.left_out:
        reasons = pd.DataFrame({"reason": stack.left_out}).rename_axis("story")
        parts.append(table(reasons, "Stories that do not fit these data"))
    return section("comparison", "Average" if found is None else "Model comparison", *parts)


def make_checks(subject: Subject) -> Checks | str:
    """Posterior predictive checks of the fit that leads, or why there are none."""
    draws = DRAWS if subject.annotations.n_annotations <= MANY_ANNOTATIONS else DRAWS_OF_MANY
    try:
        return check(subject.lead[1], draws=draws, seed=subject.seed)
    except AnnotationError as error:
        return str(error)


def checks_section(subject: Subject, checks: Checks | str) -> Section:
    """Return the section that compares annotations replicated by the fitted story with the observed annotations."""
    title = "Posterior predictive checks"
    if isinstance(checks, str):
        return section("checks", title, paragraph(f"There are no posterior predictive checks of this fit: {checks}."))
    name, _ = subject.lead
    found = checks.table
    failed = found.index[found["p_value"] < LEVEL]
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
    caption = f"Flagged units: {'all ' if len(flagged) <= MOST_FLAGGED else f'{MOST_FLAGGED} of '}{len(flagged):,}"
    said = checks_in_words(checks, name)
    return section(
        "checks",
        title,
        warning(subject.of_lead, said) if len(failed) else paragraph(subject.of_lead, said),
        paragraph(
            "The fitted story replicates the annotations: the same workers annotate the same tasks again. Each "
            "discrepancy of the observed annotations is compared with those of the replicates. The p-value is the "
            f"share of replicates whose discrepancy is larger; a check fails where it is below {LEVEL}. A unit (a "
            "worker, a pair of workers, …) is flagged where its own p-value, after correction for the number of units, "
            f"is below {LEVEL}. A check can fail without a flagged unit, where many units deviate a little. ",
            *(f"{note} " for note in checks.notes),
            class_="note",
        ),
        picture(lambda: plot_checks(checks), "Posterior predictive checks: observed over replicated annotations"),
        table(shown, f"Discrepancies, with {INTERVAL:.0%} intervals of the replicates"),
        individuals("The list of flagged units") if len(listed) else None,
        table(listed.set_index("discrepancy"), caption) if len(listed) else None,
    )


def checks_in_words(checks: Checks, name: str) -> str:
    """Which posterior predictive checks of the fit with this name failed, with their p-values, in a sentence."""
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
        return section("gold", "Gold labels", paragraph(f"{str(error)[:1].upper()}{str(error)[1:]}."))
    named = {"average": source, **subject.fits} if subject.stack is not None else subject.fits
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
    parts: list[object] = [
        table(scores, "Scores on gold tasks"),
        paragraph(
            f"Beside the accuracy is its {INTERVAL:.0%} interval (Jeffreys’), beside other scores the standard error. "
            "Accuracy: share of the labels that equal the gold label. Log score: "
            "mean log-probability of the gold label in nats, higher is better. Brier: squared error of the "
            "probabilities, 0 to 2, lower is better. ECE: expected calibration error, the mean difference between a "
            "label’s probability and the share of such labels that are right."
            + (" AUC: area under the ROC curve." if "auc" in scores else "")
            + (
                " Given: gold tasks whose gold label the fit was given, which are not scored."
                if "given" in scores
                else ""
            )
            + ("" if MAJORITY_VOTE in scores.index else _OF_VOTES),
            class_="note",
        ),
        picture(lambda: plot_reliability(source), "Reliability diagram"),
    ]
    if len(found.classes) == 2 and len(set(found.gold.tolist())) == 2:
        parts.append(picture(lambda: plot_roc(source), "ROC curve"))
    return section("gold", "Gold labels", *parts, _confusion(subject))


def _majority_vote(subject: Subject, found: GoldTasks) -> pd.Series:
    """Accuracy of the majority vote on the gold tasks that are scored, with the other scores missing."""
    annotations = subject.annotations
    votes = annotations.votes()[annotations.tasks.index_of(list(found.tasks))]
    best = votes == votes.max(-1, keepdims=True)
    shares = pd.DataFrame(best / best.sum(-1, keepdims=True), index=found.tasks, columns=found.classes)
    scores = score(shares, pd.Series(found.classes[found.gold], index=found.tasks))
    assert isinstance(scores, pd.Series)
    return scores[["tasks", "gold_used", "accuracy", "accuracy_se"]]


def _whose(subject: Subject) -> str:
    """A sentence that says whether the labels of the page are of one fit or of the average."""
    if subject.stack is not None:
        return "The labels of this page are those of the average."
    return f"The labels of this page are those of {subject.lead[0]} alone."


def _high_k(found: pd.DataFrame) -> list[Html]:
    """Warnings of stories with units whose Pareto k is high."""
    said = []
    for name, units, k in zip(found.index, found["n_high_k"], found["pareto_k"], strict=True):
        if not pd.isna(units) and units > 0:
            said.append(
                warning(
                    f"{name}: the leave-one-out elpd is unreliable for {counted(int(units), 'unit')} with a high "
                    f"Pareto k (up to {k:.2f}); compare by K folds (method='kfold') or refit without them (reloo=True)."
                )
            )
    return said


def _columns(by_folds: bool) -> str:
    """Return the meaning of the comparison's columns."""
    how = "K-fold cross-validation" if by_folds else "leave-one-out cross-validation, by importance sampling"
    said = (
        f"elpd: expected log predictive density of held-out data in nats (by {how}), higher is better; difference: in "
        "elpd from the best story; beside both are standard errors; weight: stacking weight; pseudo bma: pseudo-BMA+ "
        "weight, by elpd with Bayesian bootstrap."
    )
    if by_folds:
        return said
    return said + (
        " p: effective number of parameters; pareto k: the highest Pareto k of the importance weights; n high k: "
        "number of units whose Pareto k is above the threshold, and whose elpd is unreliable."
    )


def _confusion(subject: Subject) -> Html:
    """Numbers of gold tasks by gold label and label; of many classes the pairs that differ."""
    counts = label_confusion(subject.source)
    wrong = int(counts.to_numpy().sum() - np.trace(counts.to_numpy()))
    head = paragraph(f"{wrong:,} of {int(counts.to_numpy().sum()):,} labels differ from the gold label.")
    counts = counts.set_axis([str(name) for name in counts.index], axis=0).rename_axis("gold")
    counts = counts.set_axis([str(name) for name in counts.columns], axis=1)
    if len(counts) <= MOST_CLASSES:
        return together([head, table(counts, "Gold tasks by gold label (rows) and label (columns)")])
    cells = counts.to_numpy() * ~np.eye(len(counts), dtype=bool)
    rows, columns = np.nonzero(cells)
    order = np.argsort(-cells[rows, columns], kind="stable")[:MOST_CONFUSED]
    if not len(order):
        return head
    pairs = pd.DataFrame(
        {
            "gold": counts.index[rows[order]],
            "label": counts.columns[columns[order]],
            "tasks": cells[rows, columns][order],
        }
    ).set_index("gold")
    many = "" if len(rows) <= MOST_CONFUSED else f", {MOST_CONFUSED} of {len(rows):,} pairs"
    return together(
        [head, table(pairs, f"Labels that differ from the gold label{many}; cp.label_confusion(fit) has all")]
    )
