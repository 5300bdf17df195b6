"""Descriptions of annotations: a table of their sizes and agreement, a text, and HTML for notebooks."""

import re
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from .agreement import krippendorff_alpha
from .cards import bar, card, histogram, short, table
from .cards import facts as facts_card
from .id_text import listing, n_shown
from .kinds import NOMINAL, Kind

SHARE = "share of annotation "
"""The beginning of the names of facts about single classes."""

_LISTED = 10  # classes in a text
_SHARES = 12  # classes in a card


def facts(
    counts: np.ndarray,
    classes: Sequence[Hashable],
    abstentions: Sequence[Hashable] = (),
    *,
    by_worker: np.ndarray | None = None,
    repeated: tuple[int, int] | None = None,
    gold: np.ndarray | None = None,
    seconds: np.ndarray | None = None,
    kind: Kind = NOMINAL,
    alpha: float | None = None,
) -> pd.Series:
    """Return sizes, annotations per task and worker, repeats, gold, agreement and class shares by name.

    Args:
        counts: how many annotations of each kind each task has, shape (N, L).
        classes: the K classes.
        abstentions: the L − K categories that are no class.
        by_worker: how many annotations each worker gave, shape (J,); None where no worker is named.
        repeated: how many annotations a worker gave to a task beyond their first one there, and how many of these
            repeat a label that the worker had given there; None where no worker is named.
        gold: the gold label of each task, shape (N,), −1 where it is unknown; None where there are none.
        seconds: how long each annotation took, NaN where it is unknown; None where no times were given.
        kind: the kind of the labels, which agreement is measured by.
        alpha: Krippendorff's alpha where it is no matter of the counts alone.
    """
    total, votes = int(counts.sum()), counts[:, : len(classes)]
    found: dict[str, Any] = {
        "tasks": len(votes),
        "workers": "not named" if by_worker is None else len(by_worker),
        "classes": len(classes),
        "annotations": total,
        **_spread("annotations per task", counts.sum(axis=1)),
    }
    if by_worker is not None:
        found |= _spread("annotations per worker", by_worker)
    if repeated is not None:
        found["repeated annotations"], found["repeated annotations with the same label"] = repeated
    found["share of tasks with gold"] = 0.0 if gold is None else float(np.mean(gold >= 0))
    if seconds is not None:
        found["seconds per annotation, median"] = _median_known(seconds)
    found["Krippendorff's alpha"] = krippendorff_alpha(votes, kind) if alpha is None else alpha
    if len(abstentions):
        found["share of abstentions"] = float(1 - votes.sum() / total)
        found["tasks with abstentions only"] = int(((votes.sum(1) == 0) & (counts.sum(1) > 0)).sum())
    for name, share in zip([*classes, *abstentions], counts.sum(axis=0) / total, strict=True):
        found[f"{SHARE}{name!r}"] = float(share)
    return pd.Series(found, name="annotations", dtype=object)


def text(
    n_annotations: int,
    n_tasks: int,
    n_workers: int | None,
    classes: Sequence[Hashable],
    extras: Sequence[str] = (),
    *,
    unit: str = "annotation",
) -> str:
    """Return three lines: sizes, classes, and what else is known.

    Args:
        n_annotations: how many annotations there are, or how many of what `unit` says.
        n_tasks: how many tasks there are.
        n_workers: how many workers there are; None where none is named.
        classes: the classes.
        extras: what else is known, such as "gold labels of 3 tasks".
        unit: "row" inside compiled functions, where counts have no values.
    """
    by_whom = "unnamed workers" if n_workers is None else count_text(n_workers, "worker")
    return (
        f"Annotations: {count_text(n_annotations, unit)} of {count_text(n_tasks, 'task')} by {by_whom}\n"
        f"  {len(classes)} classes: {listing(classes, _LISTED)}\n"
        f"  with {', '.join(extras) if extras else 'neither gold labels nor features'}"
    )


def count_text(n: int, noun: str) -> str:
    """Return a number with its noun: "1 task", "1,200 tasks", "3 columns of labels"."""
    first = re.split(r" (?:of|with|without|that) ", noun, maxsplit=1)[0]
    return f"{n:,} {first}{'' if n == 1 else 's'}{noun.removeprefix(first)}"


def annotations_card(found: pd.Series, by_task: np.ndarray, by_worker: np.ndarray | None) -> str:
    """Return a card of `facts` for notebooks, with histograms of annotations by task and worker, and the shares.

    Args:
        found: from `facts`.
        by_task: how many annotations each task has, shape (N,).
        by_worker: how many annotations each worker gave, shape (J,); None where no worker is named.
    """
    is_share, is_spread = found.index.str.startswith(SHARE), found.index.str.startswith("annotations per ")
    known = {str(name): _number(value) for name, value in found[~is_share & ~is_spread].items()}
    shares = list(found[is_share].items())
    n = n_shown(len(shares), _SHARES)
    rows = ([short(str(name).removeprefix(SHARE)), bar(value, f"{value:.1%}")] for name, value in shares[:n])
    left = f"and {len(shares) - n:,} more" if len(shares) > n else ""
    spreads = [_histogram("annotations by task", by_task)]
    if by_worker is not None:
        spreads.append(_histogram("annotations by worker", by_worker))
    then = ("annotations.describe()", "annotations.to_frame()", "cp.fit(story, annotations)")
    return card(
        "Annotations", "", facts_card(known), *spreads, table("given", ["class", "share"], rows, left), then=then
    )


def sizes_card(said: str) -> str:
    """Return a card of the text alone, for annotations too many to be counted whenever they are shown."""
    title, *lines = said.splitlines()
    return card(title, "", facts_card({line.strip(): "" for line in lines}), then=("annotations.describe()",))


def _histogram(title: str, numbers: np.ndarray) -> Markup | None:
    """Return the histogram of counts, in at most 20 columns."""
    if not len(numbers):
        return None
    low, high = int(numbers.min()), int(numbers.max())
    columns = max(min(high - low + 1, 20), 1)
    counts, _ = np.histogram(numbers, columns, (low - 0.5, high + 0.5))
    median = f" (median {np.median(numbers):g})"
    return histogram(title + median, counts, f"{low:,}", f"{high:,}" if high > low else "")


def _spread(title: str, numbers: np.ndarray) -> dict[str, Any]:
    values = {"min": numbers.min(), "median": np.median(numbers), "max": numbers.max()}
    return {f"{title}, {name}": _plain(value) for name, value in values.items()}


def _plain(value: Any) -> int | float:
    return int(value) if float(value).is_integer() else float(value)


def _median_known(seconds: np.ndarray) -> float:
    known = seconds[~np.isnan(seconds)]
    return float(np.median(known)) if len(known) else float("nan")


def _number(value: Any) -> str:
    if value != value:
        return "–"  # where it is not defined, as agreement of one class
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}" if isinstance(value, float) else str(value)
