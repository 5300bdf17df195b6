"""Datasets by name: those in the package, and every folder under $CROWDPPL_DATA.

A folder holds `annotations.csv` (task, worker, label) or `counts.npz` (counts (N, K), classes, truth; tasks are numbers
from 0). It may hold `truth.csv` (task, label) and `features.npz` (task, x and, for held-out tasks, x_valid, y_valid,
x_test, y_test). The label "abstain" in `annotations.csv` is an annotation that is no class. Both tables have a column
question where several are asked about each task; true labels that are means of scores are no gold labels.
"""

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from .anesthesia import anesthesia
from .annotations import Annotations
from .cards import Listing
from .digits import FACTS as DIGITS_FACTS
from .digits import digits, digits_test
from .errors import AnnotationError, UnknownNameError, check_name, look_up
from .frames import read_text_table, with_whole_numbers
from .gold import resolve_gold
from .ids import Ids
from .questions import QUESTION
from .toy import TOY, TOY_SPARSE

VARIABLE = "CROWDPPL_DATA"
ABSTAIN = "abstain"
"""The label of a dataset's annotations that are no class."""


class Embedded(NamedTuple):
    """A dataset in the package."""

    arguments: Callable[[], dict[str, Any]]  # returns the arguments of `Annotations.from_frame`
    facts: Callable[[], dict[str, Any]]  # returns, quickly, a row of `list_datasets` without name and where
    splits: Mapping[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {}  # return features and labels


_EMBEDDED = {
    "anesthesia": Embedded(lambda: {"frame": anesthesia(), "ordered": True}, lambda: _count(anesthesia())),
    "digits": Embedded(digits, lambda: DIGITS_FACTS, {"test": digits_test}),
    "toy": Embedded(TOY.arguments, lambda: TOY.facts),
    "toy_sparse": Embedded(TOY_SPARSE.arguments, lambda: TOY_SPARSE.facts),
}


def load_dataset(name: str, **options: Any) -> Annotations:
    """Return the annotations of a dataset, with its gold labels and features where it has them.

    Tasks that only have a gold label follow those with annotations; classes that only gold labels have are sorted
    among the others.

    >>> load_dataset("anesthesia").n_annotations
    315

    Args:
        name: one of `list_datasets()`.
        **options: as for `Annotations.from_frame` (`from_counts` where no worker is named); they replace what the
            dataset gives.

    Raises:
        UnknownNameError: there is no such dataset.
    """
    if name in _EMBEDDED:
        return Annotations.from_frame(**(_EMBEDDED[name].arguments() | options))
    folder = _folder(name)
    if (folder / "counts.npz").exists():
        return _from_counts(folder, options)
    truth_file = folder / "truth.csv"
    files = [folder / "annotations.csv", *([truth_file] if truth_file.exists() and not _has_means(truth_file) else [])]
    columns = {role: role for role in ("task", "worker", "label")}
    table, *truths = with_whole_numbers(*map(read_text_table, files), columns=columns)
    truth = next(iter(truths), None)
    defaults: dict[str, Any] = {}
    if QUESTION in table.columns:
        defaults["question"] = QUESTION
        if pd.api.types.is_integer_dtype(table["label"]):
            defaults["ordered"] = True
    if truth is not None and QUESTION in table.columns:
        pairs = pd.concat([table[["task", QUESTION]], truth[["task", QUESTION]]]).drop_duplicates()
        defaults |= {"gold": truth, "tasks": list(pairs.itertuples(index=False, name=None))}
    elif truth is not None:
        tasks = pd.concat([table["task"], truth["task"]])
        labels = pd.concat([table["label"], truth["label"]]).dropna()
        classes = np.sort(pd.unique(labels))
        defaults = {"gold": truth, "tasks": pd.unique(tasks), "classes": classes[classes != ABSTAIN]}
    if (table["label"] == ABSTAIN).any():
        defaults["abstain"] = [ABSTAIN]
    return Annotations.from_frame(table, **(defaults | _features(folder) | options))


def _features(folder: Path) -> dict[str, Any]:
    """Return the argument that gives each task its features, where the folder has them."""
    if not (folder / "features.npz").exists():
        return {}
    with np.load(folder / "features.npz") as arrays:
        return {"features": dict(zip(arrays["task"].tolist(), arrays["x"], strict=True))}


def _has_means(truth: Path) -> bool:
    """Return whether the true labels of a file are means of scores, such as 4.667, which are no classes."""
    labels = pd.to_numeric(pd.read_csv(truth)["label"], errors="coerce")
    return bool((labels.dropna() % 1 != 0).any())


def load_split(name: str, split: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the features and true labels of held-out tasks, which nobody annotated.

    Args:
        name: a dataset with such tasks: "digits", or one whose `features.npz` has them.
        split: "test" or "valid".

    Returns:
        x, shape (M, ...) float32, and y, shape (M,) int32, indices into `load_dataset(name).classes`.

    Raises:
        UnknownNameError: there is no such dataset, or it has no such split.
        AnnotationError: a held-out label is none of the classes.
    """
    splits = _EMBEDDED[name].splits if name in _EMBEDDED else _splits(_folder(name) / "features.npz")
    if not splits:
        raise UnknownNameError(f"{name} has no split {split!r}: it has no features, and so no held-out tasks")
    x, labels = look_up(f"split of {name}", split, dict(sorted(splits.items())))()
    y = resolve_gold(dict(enumerate(labels.tolist())), Ids.range(len(labels)), load_dataset(name).classes)
    return x.astype(np.float32), y


def list_datasets() -> pd.DataFrame:
    """Return the available datasets, sorted by name.

    The columns are name, where, the numbers of tasks, workers, classes and annotations, gold (for how many
    tasks) and features (the shape of one task's). To be quick, each file is read once and nothing is checked.
    """
    found = [{"name": name, "where": "in the package", **data.facts()} for name, data in _EMBEDDED.items()]
    found += [_summary(folder) for folder in _folders().values()]
    return Listing.of(
        pd.DataFrame(found).sort_values("name", ignore_index=True), "`cp.load_dataset(name)` has the annotations"
    )


def _splits(file: Path) -> dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]]:
    """Return, by split, the function that reads its held-out tasks from a file of features; none without a file."""
    if not file.exists():
        return {}

    def read(split: str) -> tuple[np.ndarray, np.ndarray]:
        with np.load(file) as arrays:
            return arrays[f"x_{split}"], arrays[f"y_{split}"]

    with np.load(file) as arrays:
        names = [key.removeprefix("x_") for key in arrays.files if key.startswith("x_")]
    return {name: partial(read, name) for name in names}


def _count(table: pd.DataFrame) -> dict[str, Any]:
    return {
        "tasks": table["task"].nunique(),
        "workers": table["worker"].nunique(),
        "classes": table["label"][table["label"] != ABSTAIN].nunique(),
        "annotations": len(table),
        "gold": 0,
        "features": "",
    }


def _summary(folder: Path) -> dict[str, Any]:
    if (folder / "counts.npz").exists():
        with np.load(folder / "counts.npz") as arrays:
            counts, gold = arrays["counts"], len(arrays["truth"]) if "truth" in arrays.files else 0
        n_tasks, n_classes = counts.shape
        sizes = {"tasks": n_tasks, "workers": 0, "classes": n_classes, "annotations": int(counts.sum()), "gold": gold}
        facts = {"name": folder.name, "where": str(folder), **sizes, "features": ""}
    else:
        facts = {"name": folder.name, "where": str(folder), **_count(pd.read_csv(folder / "annotations.csv"))}
    if (folder / "truth.csv").exists():
        facts["gold"] = len(pd.read_csv(folder / "truth.csv"))
    if (folder / "features.npz").exists():
        with np.load(folder / "features.npz") as arrays:
            facts["features"] = " x ".join(map(str, arrays["x"].shape[1:]))
    return facts


def _from_counts(folder: Path, options: dict[str, Any]) -> Annotations:
    with np.load(folder / "counts.npz") as arrays:
        counts, classes = arrays["counts"], arrays["classes"]
        defaults: dict[str, Any] = {"classes": classes}
        if "truth" in arrays.files:
            defaults["gold"] = dict(enumerate(classes[arrays["truth"]].tolist()))
    return Annotations.from_counts(counts, **(defaults | _features(folder) | options))


def _folders() -> dict[str, Path]:
    root = os.environ.get(VARIABLE)
    if not root:
        return {}
    if not Path(root).is_dir():
        raise AnnotationError(f"{VARIABLE}={root!r} is no folder; set it to a folder of datasets, or unset it")
    has = ("annotations.csv", "counts.npz")
    folders = [path for path in sorted(Path(root).iterdir()) if any((path / file).exists() for file in has)]
    return {path.name: path for path in folders if path.name not in _EMBEDDED}


def _folder(name: str) -> Path:
    folders = _folders()
    try:
        return folders[check_name("dataset", name, sorted({*_EMBEDDED, *folders}))]
    except UnknownNameError as error:
        root = os.environ.get(VARIABLE)
        hint = f"{VARIABLE} is {root!r}." if root else f"{VARIABLE} is not set; it may name a folder of datasets."
        raise UnknownNameError(f"{error}. {hint}") from None
