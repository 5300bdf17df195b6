"""Workers who copy, as one worker: of a group's annotations of a task one is kept, and the same member gives all."""

from collections.abc import Iterable, Sequence

import numpy as np

from ...data import Annotations
from ...data.errors import check_name
from ...data.id_text import name_text
from ...data.questions import Units
from ..engines.finding import Finding
from .copies import AgreeingGroup, copying_groups

RULES = ("keep", "one", "auto")
LEFT = 0.5  # of the annotations that are left with copies as one, from which on they count so by "auto"


def with_copies(annotations: Annotations, rule: str) -> tuple[Annotations, list[AgreeingGroup]]:
    """Return the annotations with each group of copies as one worker, and the groups; none where they count in full.

    Args:
        annotations: the data.
        rule: ``"one"``; ``"keep"`` for the annotations as they are; or ``"auto"``, by which they stay as they are where
            less than half of them (:data:`LEFT`) would be left. There most workers are of one group or another, as on
            judges_llmbar, and hardly anybody is left beside the groups.

    Raises:
        UnknownNameError: `rule` is none of these.
    """
    if check_name("copies", rule, RULES) == "keep" or not annotations.named:
        return annotations, []
    groups = copying_groups(annotations.of_classes())
    merged = as_one(annotations, groups)
    if rule == "auto" and merged.n_annotations < LEFT * annotations.n_annotations:
        return annotations, []
    return merged, groups


def as_one(annotations: Annotations, groups: Iterable[AgreeingGroup]) -> Annotations:
    """Return the annotations with one of each group for a task: what most of its members give, by one of them.

    That one is the member who gives most often what most members give, and whose word counts where they are tied. A
    class comes before an abstention.

    Args:
        annotations: of named workers.
        groups: of workers who count as one, each of all tasks or of one question.
    """
    for group in groups:
        worker, task, label = (np.asarray(getattr(annotations, name)) for name in ("worker", "task", "label"))
        at = np.flatnonzero(np.isin(worker, group.workers) & _of_question(annotations, group)[task])
        _, cell = np.unique(task[at].astype(np.int64) * annotations.n_categories + label[at], return_inverse=True)
        votes = np.bincount(cell)[cell] - (label[at] >= annotations.n_classes) * len(at)
        most = np.full(annotations.n_tasks, -len(at) - 1)
        np.maximum.at(most, task[at], votes)
        is_most = votes == most[task[at]]
        agrees = np.bincount(worker[at][is_most], minlength=annotations.n_workers)
        order = at[np.lexsort((-agrees[worker[at]], ~is_most, task[at]))]
        first = order[np.diff(task[order], prepend=-1) > 0]
        kept, by = np.ones(len(worker), bool), worker.copy()
        kept[at], kept[first] = False, True
        by[first] = group.workers[agrees[group.workers].argmax()]
        annotations = annotations.replace(worker=by).rows(kept)
    return annotations


def groups_before(findings: Iterable[Finding], annotations: Annotations) -> list[AgreeingGroup]:
    """Return the groups that counted as one in a fit with these findings.

    Args:
        findings: on the fit.
        annotations: of the same workers, and perhaps more.
    """
    position = {name_text(name): i for i, name in enumerate(annotations.workers)} if annotations.named else {}
    told = [one for finding in _on_one(findings) for one in finding.values["as_one"]]
    return [
        AgreeingGroup(np.array([position[name_text(name)] for name in one["workers"]]), *(one[k] for k in FIGURES))
        for one in told
    ]


def are_unasked(findings: Iterable[Finding]) -> bool:
    """Return whether workers counted as one in a fit with these findings though nobody asked for it."""
    return any(finding.severity == "warning" for finding in _on_one(findings))


def _on_one(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings on copies that counted as one."""
    return [finding for finding in findings if finding.code == "copies" and "as_one" in finding.values]


FIGURES = ("within", "outside", "n_tasks", "question")


def told(groups: Sequence[AgreeingGroup], workers: Sequence[object]) -> list[dict[str, object]]:
    """Return the groups as the finding on them has them, by the workers' names."""
    return [
        {"workers": [workers[j] for j in group.workers.tolist()]} | {name: getattr(group, name) for name in FIGURES}
        for group in groups
    ]


def _of_question(annotations: Annotations, group: AgreeingGroup) -> np.ndarray:
    """Return which tasks a group counts in, ``(N,)`` bool."""
    units = annotations.tasks
    if group.question is None or not isinstance(units, Units):
        return np.ones(annotations.n_tasks, bool)
    return units.question == list(units.questions).index(group.question)
