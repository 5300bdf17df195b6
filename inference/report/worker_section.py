"""The sections on workers: their scores, and their agreement as people report it."""

import numpy as np
import pandas as pd

from ...data.description import count_text
from ...data.questions import workers_noun
from ..fitted.counted_as_one import groups_text
from ..fitted.given_models import model_frame
from ..fitted.intervals import INTERVAL
from ..fitted.item_ranking import takes_as_given
from ..fitted.posterior import Posterior
from ..plots.agreement_intervals import plot_agreement
from ..plots.confusion_matrices import plot_confusions
from ..plots.sensitivity import plot_sensitivity_specificity
from ..plots.shown_workers import meanings
from ..plots.style import every
from ..plots.worker_accuracy import plot_workers
from ..scores.worker_agreement import NAMES, Agreement, agreement
from .details import worker_details
from .sections import Section, section
from .subject import Subject

MOST_WORKERS = 2_000  # that are listed
MOST_MATRICES = 10, 2, 8  # confusion matrices that are drawn: of up to 5 classes, of up to 10, of more
COLUMNS = (  # what the table has; a click on a worker shows the others
    "group",
    "annotations",
    "reason",
    "accuracy",
    "spammer_score",
    "sensitivity",
    "specificity",
    "abstention_rate",
    "error_correlation",
    "gold_accuracy",
)

DRAWS = 200  # resamples of the tasks
MOST_LISTED = 100  # pairs of workers, and workers


def workers_section(subject: Subject) -> Section | None:
    """Workers' scores, and plots of their accuracy and confusion matrices; None of preferences taken as given."""
    source, annotations = subject.source, subject.annotations
    if annotations.preferences and takes_as_given(source):
        return None
    if not annotations.named:
        return section("workers", "Workers", named=False)
    scores = subject.scores
    assert scores is not None
    order = np.argsort(-scores["annotations"].to_numpy(), kind="stable")[:MOST_WORKERS]
    order = order[np.argsort(-scores["accuracy_low"].to_numpy()[order], kind="stable")]
    kept = [name for name in scores if any(name in (one, f"{one}_low", f"{one}_high") for one in COLUMNS)]
    shown, more = scores[kept].iloc[order], scores.drop(columns=[*kept, "review"])
    n, noun = len(scores), workers_noun(annotations.workers)
    files = [(f"{every(n, noun)}, with all scores", scores)]
    files.append((f"{len(shown):,} of {count_text(n, noun)}, those with the most annotations", scores.iloc[order]))
    said_of = meanings(annotations.classes)
    meant = "; ".join(f"{name.replace('_', ' ')}: {means}" for name, means in said_of.items() if name in scores)
    n_classes = annotations.n_classes
    most = MOST_MATRICES[0 if n_classes <= 5 else 1 if n_classes <= 10 else 2]
    return section(
        "workers",
        "Workers",
        named=True,
        n=n,
        noun=noun,
        shown=shown,
        interval=f"{INTERVAL:.0%}",
        files=files,
        details=worker_details(subject, order, more),
        copies=groups_text(source),
        meanings=meant,
        models=_models(source),
        accuracies=lambda: plot_workers(source, max_workers=None),  # type: ignore[arg-type]
        binary=(lambda: plot_sensitivity_specificity(source)) if n_classes == 2 else None,
        confusions=lambda: plot_confusions(source, max_workers=most),  # type: ignore[arg-type]
    )


def _models(source: Posterior) -> pd.DataFrame | None:
    """The models whose probabilities were given to a fit; None where there are none."""
    if source.only is None or not len(source.annotations.models):
        return None
    frame = model_frame(source)
    frame.index = frame.index.map(str).rename("model")
    return frame


def agreement_section(subject: Subject) -> Section | None:
    """Coefficients with intervals, by class, worker, pair and group; None where no task has two annotations."""
    if (subject.annotations.of_classes().votes().sum(-1) < 2).all():
        return None
    return section_of(agreement(subject.annotations, subject.source, draws=DRAWS, seed=subject.seed))


def section_of(found: Agreement, noun: str = "worker") -> Section:
    """Return the section on coefficients that were made already, with the noun for who annotated."""
    coefficients = found.table.rename(index=NAMES).rename_axis("coefficient")
    groups = found.by_group["estimate"].unstack("coefficient") if len(found.by_group) else None
    pairs = found.pairs.sort_values("kappa", ascending=False, kind="stable") if len(found.pairs) else None
    files = [("By crowd, class, worker, pair and group", found.to_frame().set_index(["of", "name", "quantity"]))]
    return section(
        "agreement",
        f"Agreement of the {noun}s",
        noun=noun,
        metric=found.metric,
        interval=f"{found.interval:.0%}",
        tasks=count_text(found.n_tasks, "task"),
        misled=str(found).splitlines()[-1] if found.misleads else "",
        coefficients=coefficients.rename(columns={"low": "estimate_low", "high": "estimate_high"}),
        by_class=found.by_class,
        by_worker=found.by_worker.head(MOST_LISTED).rename_axis(index={"worker": noun}),
        n_workers=len(found.by_worker),
        pairs=None
        if pairs is None
        else pairs.head(MOST_LISTED).reset_index("other").rename_axis(index={"worker": noun}),
        n_pairs=0 if pairs is None else len(pairs),
        groups=groups,
        files=files,
        drawn=(lambda: plot_agreement(found)) if np.isfinite(found.table["estimate"]).any() else None,
    )
