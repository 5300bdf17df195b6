"""What annotations look like: a table of their sizes and agreement, and how notebooks show it."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .agreement import krippendorff_alpha

if TYPE_CHECKING:
    from .annotations import Annotations


def describe(annotations: Annotations) -> pd.Series:
    """Return the sizes, the spread of the annotations, repeats, gold, agreement and class shares by name.

    "repeated annotations" counts the annotations beyond the first of each worker to each task; "of which the same
    label again" those among them whose label that worker has already given to that task.
    """
    votes = annotations.votes()
    answers = int(votes.sum())
    facts: dict[str, Any] = {
        "tasks": annotations.n_tasks,
        "workers": annotations.n_workers if annotations.named else "not named",
        "classes": annotations.n_classes,
        "annotations": answers,
        **_spread("annotations per task", votes.sum(axis=1)),
    }
    if annotations.worker is not None:
        by_worker = np.bincount(annotations.worker, weights=annotations.count, minlength=annotations.n_workers)
        pair = np.asarray(annotations.task, np.int64) * annotations.n_workers + np.asarray(annotations.worker)
        facts |= _spread("annotations per worker", by_worker)
        facts["repeated annotations"] = answers - pd.unique(pair).size
        again = pair * annotations.n_classes + annotations.label
        facts["of which the same label again"] = answers - pd.unique(again).size
    known = 0.0 if annotations.gold is None else float(np.mean(annotations.gold >= 0))
    facts["share of tasks with gold"] = known
    if annotations.seconds is not None:
        facts["seconds per annotation, median"] = median_seconds(annotations)
    facts["Krippendorff's alpha"] = krippendorff_alpha(votes)
    for name, share in zip(annotations.classes, votes.sum(axis=0) / answers, strict=True):
        facts[f"share of annotation {name!r}"] = float(share)
    return pd.Series(facts, name="annotations", dtype=object)


def median_seconds(annotations: Annotations) -> float:
    """Return the median of how long the annotations took, of those whose time is known; NaN where none is."""
    seconds = np.asarray(annotations.seconds)
    if annotations.count is not None:
        seconds = np.repeat(seconds, np.asarray(annotations.count).astype(np.int64))
    known = seconds[~np.isnan(seconds)]
    return float(np.median(known)) if len(known) else float("nan")


def _spread(title: str, numbers: np.ndarray) -> dict[str, Any]:
    values = {"min": numbers.min(), "median": np.median(numbers), "max": numbers.max()}
    return {f"{title}, {name}": _plain(value) for name, value in values.items()}


def _plain(value: Any) -> int | float:
    return int(value) if float(value).is_integer() else float(value)


def text(annotations: Annotations) -> str:
    """Return a few lines that say what is there, also inside compiled functions, where no number is known."""
    by_whom = f"{annotations.n_workers:,} workers" if annotations.named else "workers who are not named"
    has = [
        f"{name} {tuple(np.shape(array))}"
        for name, array in (
            ("features", annotations.features),
            ("worker features", annotations.worker_features),
        )
        if array is not None
    ]
    if isinstance(annotations.gold, np.ndarray):
        has.append(f"gold labels of {int((annotations.gold >= 0).sum()):,} tasks")
    if isinstance(annotations.seconds, np.ndarray):
        has.append(f"seconds of {int((~np.isnan(annotations.seconds)).sum()):,} rows")
    concrete = annotations.count is None or isinstance(annotations.count, np.ndarray)
    answers = f"{annotations.n_annotations:,} annotations" if concrete else f"{annotations.n_rows:,} rows"
    names = ", ".join(map(repr, annotations.classes[:10])) + (", ..." if annotations.n_classes > 10 else "")
    return (
        f"Annotations: {answers} to {annotations.n_tasks:,} tasks by {by_whom}\n"
        f"  {annotations.n_classes} classes: {names}\n"
        f"  with {', '.join(has) if has else 'neither gold labels nor features'}"
    )


_CELL = "padding:1px 10px;text-align:{};border:none"
_BAR = "display:inline-block;height:9px;background:#4c78a8;border-radius:2px;width:{:.0f}px"


def html_table(annotations: Annotations) -> str:
    """Return a small table for notebooks: the facts of `describe`, the class shares as bars."""
    facts = describe(annotations)
    is_share = facts.index.str.startswith("share of annotation ")
    rows = [_row(str(name), html.escape(_number(value))) for name, value in facts[~is_share].items()]
    shares = facts[is_share]
    for name, value in list(shares.items())[:12]:
        rows.append(_row(str(name), f'<span style="{_BAR.format(120 * value)}"></span> {value:.1%}'))
    if len(shares) > 12:
        rows.append(_row("...", f"{len(shares) - 12} classes more"))
    head = '<table style="border-collapse:collapse"><caption><b>Annotations</b></caption>'
    return f"{head}{''.join(rows)}</table>"


def _row(name: str, value: str) -> str:
    label, cell = _CELL.format("left"), _CELL.format("left")
    return f'<tr><td style="{label}">{html.escape(name)}</td><td style="{cell}">{value}</td></tr>'


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}" if isinstance(value, float) else str(value)
