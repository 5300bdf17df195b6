"""The section of the workers."""

from __future__ import annotations

import numpy as np

from ..fitted.intervals import INTERVAL
from ..fitted.workers import every_score, gold_scores
from ..plots import plot_confusions, plot_sensitivity_specificity, plot_workers
from .html import Section, paragraph, section
from .pictures import picture
from .subject import Subject
from .tables import table

MOST_WORKERS = 2_000  # who are listed
MOST_TABLES = 12  # that are drawn

MEANINGS = {
    "accuracy": "probability of a right annotation to a task of the crowd’s mix",
    "spammer_score": "0 for someone whose annotations say nothing of the truth, 1 for someone without error",
    "sensitivity": "probability of a right annotation where the truth is the second class",
    "specificity": "the same of the first class",
    "trace": "probability of a right annotation where all classes are equally frequent",
    "informativeness": "nats that an annotation says of the truth of a task of the crowd’s mix",
    "agreement": "share of the annotations given that equal the truth",
    "gold_accuracy": "share of the annotations to gold tasks that are right, counted",
    "seconds": "median of how long an annotation took",
}


def workers_section(subject: Subject) -> Section:
    """Everyone’s scores, and the pictures of their accuracy and tables."""
    source, annotations = subject.source, subject.annotations
    if not annotations.named:
        return section(
            "workers", "Workers", paragraph("The annotations do not say who gave them, so nobody can be scored.")
        )
    scores = every_score(source)
    if "gold_accuracy" not in scores and annotations.gold is not None:
        scores = scores.join(gold_scores(annotations))
    scores.index = scores.index.map(str).rename("worker")
    order = np.argsort(-scores["annotations"].to_numpy(), kind="stable")[:MOST_WORKERS]
    shown = scores.iloc[order].sort_values("accuracy", ascending=False, kind="stable")
    n = len(scores)
    said = (
        f"All {n:,} workers are below, the most accurate first."
        if n <= MOST_WORKERS
        else f"Below are the {MOST_WORKERS:,} of {n:,} workers with the most annotations; the others are in fit.workers, "
        "and in the workers.csv that the command crowdppl fit writes."
    )
    meant = "; ".join(f"{name.replace('_', ' ')}: {means}" for name, means in MEANINGS.items() if name in shown)
    intervals = f" Beside a score is its {INTERVAL:.0%} interval." if source.has_draws else ""
    pictures = [picture(lambda: plot_workers(source, max_workers=None), "Workers by accuracy")]  # type: ignore[arg-type]
    if annotations.n_classes == 2:
        pictures.append(picture(lambda: plot_sensitivity_specificity(source), "Workers’ sensitivity and specificity"))
    pictures.append(
        picture(lambda: plot_confusions(source, max_workers=MOST_TABLES), "Workers’ confusion matrices")  # type: ignore[arg-type]
    )
    return section(
        "workers",
        "Workers",
        paragraph(said, intervals),
        pictures[0],
        table(shown, "Everyone’s scores" if n <= MOST_WORKERS else "Scores", bars={"accuracy"}),
        paragraph(f"{meant[0].upper()}{meant[1:]}.", class_="note"),
        *pictures[1:],
    )
