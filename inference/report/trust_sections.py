"""The sections that say how far to trust the labels: comparison, predictive checks, gold labels."""

from __future__ import annotations

import numpy as np
import pandas as pd

from ...data import AnnotationError
from ..checks import check
from ..comparison.stacking import why
from ..plots import plot_checks, plot_comparison, plot_reliability, plot_roc
from ..scores.against_gold import judged
from ..scores.label_scores import label_confusion, score
from .html import Html, Section, paragraph, section, together, warning
from .pictures import picture
from .subject import Subject
from .tables import table

MOST_CLASSES = 20  # up to which the confusion of labels is a square
MOST_CONFUSED = 100  # of more classes, the pairs that are listed
MOST_ODD = 50  # units that stand out in a check and are listed
DRAWS, DRAWS_OF_MANY = 50, 15  # of the parameters, from which checks replicate the annotations
MANY_ANSWERS = 100_000  # from which they are fewer, as each takes a second
BOUNDS = {"low": "replicated_low", "high": "replicated_high"}
SURE = 0.05  # a p-value below it says that the story would hardly have written such annotations


def comparison_section(subject: Subject) -> Section | None:
    """Which story the data support; None where there is but one."""
    stack = subject.stack
    if stack is None and subject.comparison is None:
        return None
    parts: list[object] = []
    found = subject.comparison
    if found is None:
        assert stack is not None
        parts.append(paragraph("The labels are averages over these stories, with weights that were given."))
        parts.append(table(stack.weights.to_frame(), "Weights"))
    else:
        by_folds = bool(found["pareto_k"].isna().all())
        parts.append(paragraph(f"{why(found)}. {_whose(subject)}"))
        parts += _n_high_k(found)
        parts.append(picture(lambda: plot_comparison(found), "Stories by how well they predict"))
        shown = found.rename(columns={"se": "elpd_se"}).dropna(axis=1, how="all")
        parts.append(table(shown, "Stories, the best first"))
        parts.append(paragraph(_columns(by_folds), class_="note"))
    if stack is not None and stack.left_out:
        reasons = pd.DataFrame({"reason": stack.left_out}).rename_axis("story")
        parts.append(table(reasons, "Stories that could not be told of these data"))
    return section("comparison", "Comparison of stories", *parts)


def checks_section(subject: Subject) -> Section:
    """Whether the story would have written annotations like these."""
    name, fit = subject.lead
    title = "Does the story fit?"
    try:
        draws = DRAWS if subject.annotations.n_annotations <= MANY_ANSWERS else DRAWS_OF_MANY
        checks = check(fit, draws=draws, seed=subject.seed)
    except AnnotationError as error:
        return section("checks", title, paragraph(f"No checks can be made: {error}."))
    found = checks.table
    odd = [str(which) for which in found.index[found["p_value"] < SURE]]
    said = (
        f"{name} would hardly have written annotations like these in what is counted by: {', '.join(odd)}."
        if odd
        else f"{name} could have written annotations like these, by all that is counted here."
    )
    shown = found.rename(columns=BOUNDS)
    shown.insert(0, "what", [checks.found[which].title for which in found.index])
    worst = checks.worst
    listed = worst.head(MOST_ODD).rename(columns=BOUNDS)
    caption = f"Units that stand out: {'all ' if len(worst) <= MOST_ODD else f'{MOST_ODD} of '}{len(worst):,}"
    return section(
        "checks",
        title,
        paragraph(subject.of_lead, said) if not odd else warning(subject.of_lead, said),
        paragraph(
            "The same workers annotate the same tasks again, by the fitted story, and what they write is compared with "
            "what they wrote. A p-value near 0 says that the annotations are odder than the story’s. ",
            *(f"{note} " for note in checks.notes),
            class_="note",
        ),
        picture(lambda: plot_checks(checks), "Observed annotations over replicated ones"),
        table(shown, "Checks"),
        table(listed.set_index("discrepancy"), caption) if len(listed) else None,
    )


def gold_section(subject: Subject) -> Section | None:
    """How good the labels are where the truth is known; None where it is nowhere."""
    if subject.annotations.gold is None:
        return None
    source = subject.source
    try:
        found = judged(source)
    except AnnotationError as error:
        return section("gold", "Gold labels", paragraph(f"{str(error).capitalize()}."))
    named = {"the average": source, **subject.fits} if subject.stack is not None else subject.fits
    scores = score(dict(named))
    assert isinstance(scores, pd.DataFrame)
    if not scores["told"].any():
        scores = scores.drop(columns="told")
    parts: list[object] = [
        table(scores, "Scores on gold tasks"),
        paragraph(
            "Beside a score is its standard error. Accuracy: the share of labels that are right. Log score: the mean "
            "log-probability of the gold label, higher is better. Brier: squared error of the probabilities, 0 to 2, "
            "lower is better. ECE: how far probabilities are from the share that is right."
            + (" AUC: the area under the ROC curve." if "auc" in scores else "")
            + (" Told: gold tasks whose label the fit was told, which are not scored." if "told" in scores else ""),
            class_="note",
        ),
        picture(lambda: plot_reliability(source), "Share of right labels over their probability"),
    ]
    if len(found.classes) == 2 and len(set(found.gold.tolist())) == 2:
        parts.append(picture(lambda: plot_roc(source), "ROC curve"))
    return section("gold", "Gold labels", *parts, _confusion(subject))


def _whose(subject: Subject) -> str:
    if subject.stack is not None:
        return "The labels of this page are that average’s."
    return f"The labels of this page are those of {subject.lead[0]} alone."


def _n_high_k(found: pd.DataFrame) -> list[Html]:
    """Words on units whose leave-one-out value cannot be trusted."""
    said = []
    for name, units, k in zip(found.index, found["n_high_k"], found["pareto_k"], strict=True):
        if not pd.isna(units) and units > 0:
            said.append(
                warning(
                    f"{name}: leave-one-out cannot be trusted for {units:,} of its units, whose Pareto k̂ is up to "
                    f"{k:.2f}; compare by K folds (method='kfold'), or refit without them (reloo=True)."
                )
            )
    return said


def _columns(by_folds: bool) -> str:
    how = "K folds, with refits" if by_folds else "leave-one-out, by importance sampling"
    said = (
        f"elpd: the log-probability of what a story was not shown (by {how}), higher is better; difference: to the "
        "best, both with standard errors; weight: in the average that predicts best (stacking); pseudo bma: weights by "
        "elpd with Bayesian bootstrap."
    )
    if by_folds:
        return said
    return said + (
        " p: the effective number of parameters; pareto k: the heaviest tail of importance weights; n_high_k: units "
        "whose tail is too heavy to be trusted."
    )


def _confusion(subject: Subject) -> Html:
    counts = label_confusion(subject.source)
    wrong = int(counts.to_numpy().sum() - np.trace(counts.to_numpy()))
    head = paragraph(f"{wrong:,} of {int(counts.to_numpy().sum()):,} labels are not the gold label.")
    counts = counts.set_axis([str(name) for name in counts.index], axis=0).rename_axis("gold")
    counts = counts.set_axis([str(name) for name in counts.columns], axis=1)
    if len(counts) <= MOST_CLASSES:
        return together([head, table(counts, "Tasks by gold label (rows) and label (columns)")])
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
    return together([head, table(pairs, f"What gold labels were taken for{many}; all are in cp.label_confusion(fit)")])
