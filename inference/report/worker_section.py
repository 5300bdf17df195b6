"""The section on workers."""

from __future__ import annotations

import numpy as np

from ..fitted.fitted import Fitted
from ..fitted.given_models import model_frame
from ..fitted.intervals import INTERVAL
from ..plots import plot_confusions, plot_sensitivity_specificity, plot_workers
from ..plots.shown_workers import meanings
from ..plots.style import counted, every
from .details import worker_details
from .downloads import download
from .html import Section, individuals, paragraph, section
from .pictures import picture
from .subject import Subject
from .tables import table

MOST_WORKERS = 2_000  # that are listed
MOST_MATRICES = 10, 2, 8  # confusion matrices that are drawn: of up to 5 classes, of up to 10, of more
COLUMNS = (  # scores that the table has; a click on a worker shows the others
    "annotations",
    "accuracy",
    "realised_accuracy",
    "spammer_score",
    "sensitivity",
    "specificity",
    "abstention_rate",
    "error_correlation",
    "gold_accuracy",
)


def workers_section(subject: Subject) -> Section:
    """Workers' scores, and plots of their accuracy and confusion matrices."""
    source, annotations = subject.source, subject.annotations
    if not annotations.named:
        return section(
            "workers", "Workers", paragraph("The annotations name no workers, so there are no workers to score.")
        )
    scores = subject.scores
    assert scores is not None
    order = np.argsort(-scores["annotations"].to_numpy(), kind="stable")[:MOST_WORKERS]
    order = order[np.argsort(-scores["accuracy_low"].to_numpy()[order], kind="stable")]
    kept = [name for name in scores if any(name in (one, f"{one}_low", f"{one}_high") for one in COLUMNS)]
    shown, more = scores[kept].iloc[order], scores.drop(columns=kept)
    n = len(scores)
    said = (
        f"The table has {every(n, 'worker')}, by the lower bound of their accuracy."
        if n <= MOST_WORKERS
        else f"The table has the {MOST_WORKERS:,} of {n:,} workers with the most annotations; fit.workers, and the "
        "file workers.csv that the command crowdppl fit writes, have all."
    )
    files = [(f"{every(n, 'worker')}, with all scores", scores)]
    files.append((f"{len(shown):,} of {counted(n, 'worker')}, those with the most annotations", scores.iloc[order]))
    click = " A click on a worker shows the confusion matrix, more scores, and annotations to look at."
    said_of = meanings(annotations.classes)
    meant = "; ".join(f"{name.replace('_', ' ')}: {means}" for name, means in said_of.items() if name in scores)
    intervals = f" Beside a score is its {INTERVAL:.0%} credible interval."
    pictures = [picture(lambda: plot_workers(source, max_workers=None), "Workers by accuracy")]  # type: ignore[arg-type]
    if annotations.n_classes == 2:
        pictures.append(picture(lambda: plot_sensitivity_specificity(source), "Workers’ sensitivity and specificity"))
    n_classes = annotations.n_classes
    most = MOST_MATRICES[0 if n_classes <= 5 else 1 if n_classes <= 10 else 2]
    pictures.append(
        picture(lambda: plot_confusions(source, max_workers=most), "Workers’ confusion matrices")  # type: ignore[arg-type]
    )
    return section(
        "workers",
        "Workers",
        individuals("This section"),
        paragraph(said, intervals, click),
        pictures[0],
        download("workers", files),
        table(
            shown,
            "Workers’ scores" if n <= MOST_WORKERS else f"Workers’ scores: {MOST_WORKERS:,} of {n:,}",
            bars={"accuracy"},
            details=worker_details(subject, order, more),
        ),
        paragraph(f"{meant[0].upper()}{meant[1:]}.", class_="note"),
        *_models(source),
        *pictures[1:],
    )


def _models(source: object) -> list[str]:
    """A table of the models whose probabilities were given to a fit; none where there are none."""
    if not isinstance(source, Fitted) or not len(source.annotations.models):
        return []
    frame = model_frame(source)
    frame.index = frame.index.map(str).rename("model")
    meant = (
        "Slope: what a model’s log-probabilities are multiplied by, 1 where it is as sure as it may be, less where it "
        "is too sure; temperature: its reciprocal; accuracy, realised accuracy: of the class that the model puts "
        "first; calibration error: of its probabilities as they were given, by the labels’ probabilities."
    )
    return [table(frame, "Models whose probabilities were given", bars={"accuracy"}), paragraph(meant, class_="note")]
