"""Judges weighed: a fit of their annotations, and what it and gold labels say of each."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ...data import AnnotationError, Annotations
from ...data.description import count_text
from ...data.errors import each_once
from ...data.exports.reading import NAMING, read
from ...data.id_text import listing, name_quoted
from ...data.questions import tasks_of
from ..engines.finding import Finding
from ..findings.constant_workers import constant_workers
from ..findings.copies import AgreeingGroup, copying_groups, same_groups
from ..findings.copies_on_gold import OnGold, on_gold
from ..findings.of_copies import always_the_same, better_than_rest, perhaps_copies
from ..findings.review import spammers
from ..fit import fit as fit_story
from ..fitted.error_correlation import ErrorCorrelation, error_correlation
from ..fitted.intervals import INTERVAL, checked_tail
from ..fitted.item_ranking import item_ranking, ranks_items
from ..fitted.next_gold import next_gold
from ..fitted.posterior import Posterior
from ..result import Fit
from ..scores.estimates import estimate, estimate_workers
from ..scores.gold_plan import gold_needed
from ..scores.worker_agreement import agreement
from .of_panel import NAMED, Panel
from .systems import scores_of_classes, system_scores, systems_of

WIDTH = 0.1  # of the interval of the labels' accuracy that gold labels are counted for
ASKED = 20  # tasks to have checked first


def judge(
    source: Any,
    gold: Any = None,
    *,
    system: Any = None,
    positive: Any = None,
    story: Any = "auto",
    width: float = WIDTH,
    n_gold: int = ASKED,
    interval: float = INTERVAL,
    seed: int = 0,
    progress: bool = False,
    **options: Any,
) -> Panel:
    """Weigh a panel of judges, such as language models that score answers: whom to trust, whom to drop.

    The labels are those of a fit that was not told the gold labels, so that these judge it. What a judge gets right is
    by the fit and, with gold labels, by them alone; how judges err together too.

    Args:
        source: annotations of named judges; a path, such as a folder of logs, or table that :func:`crowdppl.read`
            takes; or a fit.
        gold: known true labels of tasks that were drawn at random, as for :func:`crowdppl.estimate`; None for those
            that the annotations carry.
        system: what was judged: the system of each task, a mapping or series; or the column of a table that has it. By
            default the model that gave the answer, of logs and of tables with a column such as "model" or "system".
        positive: of classes without an order, the one whose share is a system's score; by default the one that is
            called C, correct, yes, pass, true or 1, else the last.
        story: as for :func:`crowdppl.fit`, where `source` is no fit.
        width: of the interval of the labels' accuracy that ``gold_needed`` is for.
        n_gold: how many tasks to name that should be checked first.
        interval: mass of the intervals.
        seed: of the fit and of all that is drawn.
        progress: show the fit's progress, and say what was taken for what in a file.
        **options: further ones of :func:`crowdppl.fit` and, where `source` is a path or table, of
            :func:`crowdppl.read`, such as ``question=["helpful", "safe"]``.

    Raises:
        AnnotationError: no judge is named, or only one, no task has two annotations, or gold labels or systems do not
            fit the tasks.
        TypeError: `system` is something else.

    Example:
        >>> import crowdppl as cp
        >>> annotations, _ = cp.simulate("one_coin", n_tasks=200, n_workers=5, annotations_per_task=5, seed=0)
        >>> panel = cp.judge(annotations, story="one_coin")
        >>> list(panel.judges.columns[:3])
        ['annotations', 'right', 'right_low']
    """
    checked_tail(interval)
    if isinstance(source, Posterior | Annotations):
        annotations = source.annotations if isinstance(source, Posterior) else source
    else:
        reading = {name: options.pop(name) for name in list(options) if name in NAMING}
        annotations = read(source, tell=progress, **reading)
    if not annotations.named:
        raise AnnotationError(
            f"the annotations name no workers, so that no judge can be weighed{_to_rank(annotations)}"
        )
    if len(names := tasks_of(annotations.workers)) < 2:
        raise AnnotationError(f"{names[0]!r} alone annotated, and a panel needs two judges, who can be compared")
    if annotations.sides is not None and (annotations.counts_by_kind().sum(-1) < 2).all():
        raise AnnotationError(
            f"no comparison has two annotations, so that no judge can be weighed{_to_rank(annotations)}"
        )
    annotations = annotations if gold is None else annotations.with_gold(gold)
    tasks = systems_of(annotations, system, source)
    if isinstance(source, Posterior):
        found = Fit.of(source)
    else:
        options = {"copies": "keep"} | options  # every judge is weighed by its own annotations
        found = fit_story(story, annotations.without_gold(), seed=seed, progress=progress, **options)
    known = gold if gold is not None or annotations.gold is None else annotations
    judged = None if known is None else estimate_workers(found, known, interval=interval)
    agreed = agreement(annotations, found, interval=interval, seed=seed)
    errors = _errors(found, annotations, interval, seed)
    groups = [(group, on_gold(annotations, group)) for group in copying_groups(annotations)]
    better = {tuple(group.workers.tolist()) for group, gold in groups if gold is not None and gold.is_better}
    same = [group for group in same_groups(annotations) if tuple(group.workers.tolist()) not in better]
    scores = found.worker_scores(interval)
    judges = _judges(scores, annotations, judged, agreed.by_worker, errors)
    values, said = scores_of_classes(annotations.kind, list(annotations.classes), positive)
    with each_once():  # both warn of gold labels that contradict all annotations
        estimated = None if known is None else estimate(found, known, interval=interval, seed=seed)
        needed = gold_needed(found, width, gold=known, interval=interval)
    return Panel(
        fit=found,
        judges=judges,
        copies=_copies(groups, annotations),
        doubts=_doubts(found, annotations, groups),
        drop=_to_drop(found, judged, list(judges.index), same, annotations),
        errors=errors,
        agreement=agreed,
        systems=None if tasks is None else system_scores(found, tasks, values, interval=interval, seed=seed),
        system_score=said,
        system_column=None if tasks is None else tasks.column,
        ranking=item_ranking(found, interval) if ranks_items(found) else None,
        estimate=estimated,
        gold_needed=needed,
        next_gold=_next_gold(found, annotations, n_gold, seed),
        gold=annotations.gold,
        interval=interval,
        seed=seed,
    )


def _to_rank(annotations: Annotations) -> str:
    """Return how the items of comparisons are ranked all the same; nothing of other annotations."""
    return "" if annotations.sides is None else "; cp.fit('auto', cp.read(…, preferences=True)) ranks the items"


def _errors(fit: Fit, annotations: Annotations, interval: float, seed: int) -> ErrorCorrelation | None:
    """Return how judges err together: by gold labels where all tasks have them, else by the labels' probabilities."""
    knows_all = annotations.gold is not None and bool((np.asarray(annotations.gold) >= 0).all())
    try:
        return error_correlation(annotations if knows_all else fit, interval=interval, seed=seed)
    except AnnotationError:  # nobody errs, or nobody shares a task
        return None


def _judges(
    scores: pd.DataFrame,
    annotations: Annotations,
    judged: pd.DataFrame | None,
    others: pd.DataFrame,
    errors: ErrorCorrelation | None,
) -> pd.DataFrame:
    """Return the figures of each judge, those first who are most often right for sure."""
    k = annotations.n_classes
    leaning = list(annotations.kind.worker_scores(np.eye(k)[None], np.full(k, 1 / k)))
    frame = scores[["annotations"]].copy()
    renamed = {"realised_accuracy": "right", "sensitivity": "sensitivity", "specificity": "specificity"}
    renamed |= {name: name for name in leaning} | {"abstention_rate": "abstention_rate"}
    parts = [_with_ends(scores, name, new) for name, new in renamed.items() if name in scores]
    if judged is not None:
        by_gold = judged.rename(columns={"estimate": "gold_right", "low": "gold_right_low", "high": "gold_right_high"})
        parts.insert(1, by_gold[["gold_right", "gold_right_low", "gold_right_high", "n_gold"]])
    parts.append(_with_ends(others, "kappa"))
    if errors is not None:
        parts.append(_with_ends(errors.by_worker, "n_effective"))
    for part in parts:
        frame = frame.join(part)
    first = "gold_right_low" if judged is not None else "right_low" if "right_low" in frame else "right"
    return frame.rename_axis(index={"worker": "judge"}).sort_values(
        [first, "annotations"], ascending=False, kind="stable"
    )


def _with_ends(frame: pd.DataFrame, name: str, new: str | None = None) -> pd.DataFrame:
    """Return a column with the columns of its interval, by another name."""
    names = [f"{name}{end}" for end in ("", "_low", "_high") if f"{name}{end}" in frame]
    return frame[names].rename(columns=lambda one: one.replace(name, new or name, 1))


def _copies(groups: list[tuple[AgreeingGroup, OnGold | None]], annotations: Annotations) -> pd.DataFrame:
    rows = [
        {
            "judges": [annotations.workers[j] for j in group.workers.tolist()],
            "question": group.question,
            "same": group.within,
            "others": group.outside,
            "tasks": group.n_tasks,
            "by_gold": None if gold is None else gold.told,
            "said": _of_group([annotations.workers[j] for j in group.workers.tolist()], group, gold),
        }
        for group, gold in groups
    ]
    return pd.DataFrame(rows, columns=["judges", "question", "same", "others", "tasks", "by_gold", "said"])


def _of_group(judges: list[Any], group: AgreeingGroup, gold: OnGold | None) -> str:
    """Return what agreement, and gold labels where there are some, say of a group."""
    question = "" if group.question is None else f" of question {group.question!r}"
    agreed = (
        f"{listing(judges, NAMED, last=' and ')} give the same label on {group.within:.0%} of "
        f"{count_text(group.n_tasks, 'task')}{question}, and that of another judge on {group.outside:.0%}"
    )
    either = f"{agreed}: copies, or much better than the rest"
    return f"{either}." if gold is None else f"{either if gold.told == 'open' else agreed}. {gold.text}."


@dataclass(frozen=True, eq=False)
class _Judged:
    """Labels by a fit, beside annotations with gold labels that it was not told."""

    annotations: Annotations
    posterior: np.ndarray


def _doubts(
    found: Fit, annotations: Annotations, groups: list[tuple[AgreeingGroup, OnGold | None]]
) -> tuple[Finding, ...]:
    """Return the findings on judges who may copy or are better, other than `groups`, by gold labels where there are."""
    of = _Judged(annotations, np.asarray(found.posterior))
    known = [[annotations.workers[j] for j in group.workers.tolist()] for group, _ in groups]
    each = (one for check in (perhaps_copies, always_the_same, better_than_rest) for one in check(of))
    return tuple(one for one in each if one.values.get("workers") not in known)


def _to_drop(
    found: Fit,
    judged: pd.DataFrame | None,
    judges: list[Any],
    same: list[AgreeingGroup],
    annotations: Annotations,
) -> pd.DataFrame:
    """Return whom to leave out and why: each judge once for all questions, for the first reason that holds."""
    workers = annotations.workers
    reasons: dict[tuple[Any, Any], str] = {}
    if judged is not None:
        for name, row in judged[judged["drop"]].iterrows():
            text = (
                f"right on at most {row['high']:.0%} by {count_text(int(row['n_gold']), 'gold label')}, as by guessing"
            )
            reasons[name, None] = text
    constant = constant_workers(annotations)
    for worker, code, place in zip(constant.workers, constant.classes, constant.questions, strict=True):
        question = annotations.questions[int(place)] if place >= 0 else None
        said = f"gives {annotations.classes[int(code)]!r} whatever the task"
        if (workers[int(worker)], None) not in reasons:
            reasons[workers[int(worker)], question] = said
    for name, reason in spammers(found).items():
        reasons.setdefault((name, None), reason)
    for group in same:
        names = [workers[j] for j in group.workers.tolist()]
        kept = next((name for name in judges if name in names and (name, None) not in reasons), None)
        for name in names:
            if kept is not None and name != kept and (name, None) not in reasons:
                place = "" if group.question is None else f" of question {group.question!r}"
                reason = f"the same as {name_quoted(kept)} on {group.within:.0%} of the tasks{place}"
                reasons[name, group.question] = reason
    index = pd.Index([name for name, _ in reasons], name="judge", dtype=object)
    questions = [question for _, question in reasons]
    return pd.DataFrame({"question": questions, "reason": list(reasons.values())}, index, dtype=object)


def _next_gold(fit: Fit, annotations: Annotations, n: int, seed: int) -> pd.DataFrame | None:
    """Return the tasks to have checked first, of those whose true label is unknown; None where none is."""
    tasks = annotations.tasks
    known = np.zeros(len(tasks), bool) if annotations.gold is None else np.asarray(annotations.gold) >= 0
    if known.all():
        return None
    among = [tasks[int(i)] for i in np.flatnonzero(~known)]
    try:
        return next_gold(fit, min(n, len(among)), seed=seed, among=among)
    except AnnotationError:  # the fit knows them all
        return None
