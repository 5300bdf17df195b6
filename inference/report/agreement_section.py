"""The section on the workers' agreement, as people report it, and what the fit says beside."""

import numpy as np

from ...data.description import count_text
from ..plots.agreement_intervals import plot_agreement
from ..scores.worker_agreement import NAMES, Agreement, agreement
from .sections import Section, section
from .subject import Subject

DRAWS = 200  # resamples of the tasks
MOST_LISTED = 100  # pairs of workers, and workers


def agreement_section(subject: Subject) -> Section | None:
    """Coefficients with intervals, by class, worker, pair and group; None where no task has two annotations."""
    if (subject.annotations.of_classes().votes().sum(-1) < 2).all():
        return None
    return section_of(agreement(subject.annotations, subject.source, draws=DRAWS, seed=subject.seed))


def section_of(found: Agreement) -> Section:
    """Return the section on coefficients that were made already."""
    coefficients = found.table.rename(index=NAMES).rename_axis("coefficient")
    groups = found.by_group["estimate"].unstack("coefficient") if len(found.by_group) else None
    pairs = found.pairs.sort_values("kappa", ascending=False, kind="stable") if len(found.pairs) else None
    files = [("By crowd, class, worker, pair and group", found.to_frame().set_index(["of", "name", "quantity"]))]
    return section(
        "agreement",
        "Agreement of the workers",
        metric=found.metric,
        interval=f"{found.interval:.0%}",
        tasks=count_text(found.n_tasks, "task"),
        misled=str(found).splitlines()[-1] if found.misleads else "",
        coefficients=coefficients.rename(columns={"low": "estimate_low", "high": "estimate_high"}),
        by_class=found.by_class,
        by_worker=found.by_worker.head(MOST_LISTED),
        n_workers=len(found.by_worker),
        pairs=None if pairs is None else pairs.head(MOST_LISTED).reset_index("other"),
        n_pairs=0 if pairs is None else len(pairs),
        groups=groups,
        files=files,
        drawn=(lambda: plot_agreement(found)) if np.isfinite(found.table["estimate"]).any() else None,
    )
