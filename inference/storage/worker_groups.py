"""Workers in groups of at least k of whom the same is shown: a table of the crowd in which nobody stands alone."""

from typing import Any, cast

import numpy as np
import pandas as pd

from ...data.errors import AnnotationError, whole_number

STEP = 0.1
"""Width of the intervals that accuracies are shown by."""

ANNOTATIONS = (1, 10, 100, 1_000, 10_000, 100_000)
"""Where the intervals begin that numbers of annotations are shown by."""

REST = "the rest"


def worker_groups(workers: pd.DataFrame, min_group: int) -> pd.DataFrame:
    """A table in which every row stands for at least `min_group` workers.

    Shown of a worker are an interval of how many annotations they gave, by :data:`ANNOTATIONS`, and an interval of
    their accuracy, by :data:`STEP`. Workers of whom the same is shown are one row. Workers with fewer than
    ``min_group − 1`` such peers are put together in the row :data:`REST`, of which their number alone is shown; where
    they are fewer than `min_group` themselves, the smallest of the other rows is put with them. So whoever knows what
    is shown of a worker finds at least `min_group` workers by it (k-anonymity, Sweeney 2002), and nothing else is shown
    of them. It says nothing against somebody who knows all other workers of a row, nor of two tables that are made of
    crowds that differ by one worker.

    Args:
        workers: :attr:`crowdppl.Fit.workers`, with the columns annotations and accuracy.
        min_group: k, at least 2.

    Returns:
        By row: annotations_from and annotations_to, accuracy_from and accuracy_to (of the rest none), and workers, how
        many they are.

    Raises:
        AnnotationError: k is no whole number of at least 2, or there are fewer workers than k.
    """
    min_group = whole_number("min_group", min_group, 2, error=AnnotationError)
    if len(workers) < min_group:
        raise AnnotationError(
            f"min_group={min_group}: there are {len(workers)} workers, so that no group can be that large; leave the "
            "table of workers out"
        )
    cuts = round(1 / STEP)
    given = np.searchsorted(ANNOTATIONS, workers["annotations"].to_numpy(dtype=float), side="right")
    accuracy = np.clip(np.floor(workers["accuracy"].to_numpy(dtype=float) * cuts + 1e-9), 0, cuts - 1).astype(int)
    sizes = pd.Series(1, index=pd.MultiIndex.from_arrays([given, accuracy])).groupby(level=[0, 1]).sum()
    kept, rest = sizes[sizes >= min_group], int(sizes[sizes < min_group].sum())
    if 0 < rest < min_group:
        smallest = kept.index[int(np.argmin(kept.to_numpy()))]
        rest += int(kept[smallest])
        kept = kept.drop(smallest)
    starts = (0, *ANNOTATIONS)
    rows: list[dict[str, Any]] = []
    for cell, size in kept.items():
        i, step = cast(tuple[int, int], cell)
        rows.append(
            {
                "annotations_from": starts[i],
                "annotations_to": starts[i + 1] - 1 if i + 1 < len(starts) else None,
                "accuracy_from": step * STEP,
                "accuracy_to": (step + 1) * STEP,
                "workers": int(size),
            }
        )
    names: list[object] = list(range(1, len(rows) + 1))
    if rest:
        rows.append(
            dict.fromkeys(("annotations_from", "annotations_to", "accuracy_from", "accuracy_to")) | {"workers": rest}
        )
        names.append(REST)
    found = pd.DataFrame(rows, index=pd.Index(names, name="group", dtype=object))
    whole = {"annotations_from": "Int64", "annotations_to": "Int64", "workers": "int64"}
    return found.astype(whole).astype({"accuracy_from": float, "accuracy_to": float}).round(6)
