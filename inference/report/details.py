"""Details of a task or a worker, shown at a click: numbers in the page, which its script turns into a dialog."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from ...data import Annotations
from ...data.id_text import name_text
from ..fitted.intervals import INTERVAL, of_draws
from ..fitted.posterior import Posterior
from .sections import is_beside, number, number_cells
from .subject import Subject

SCORES = ("entropy", "ambiguity", "surprise_p")  # of a task
MOST_CLASSES = 8  # of a task's label, the most probable
MOST_ANNOTATIONS = 60  # of a task
MOST_MATRIX = 12  # categories of annotations up to which a worker's confusion matrix is shown as a whole
MOST_CELLS = 400_000  # of all workers' matrices; beyond it they are without bounds
MOST_ERRORS = 10  # of larger matrices, the most probable errors
EXAMPLES = 6  # annotations of a worker that are least in line with the labels


def task_details(subject: Subject, shown: np.ndarray, accuracies: pd.Series | None, labels: pd.DataFrame) -> Markup:
    """Probabilities and annotations of each task, as data of the page.

    Args:
        shown: positions of the tasks, in the order of the table's rows.
        accuracies: of the workers; None where no worker is named.
        labels: a row for each task of the annotations, with scores that the table leaves out.
    """
    scores = [name for name in SCORES if name in labels]
    values = labels[scores].to_numpy(dtype=float)
    annotations, posterior = subject.annotations, subject.source.posterior
    order, starts = _rows_by(np.asarray(annotations.task), annotations.n_tasks)
    kind, worker = np.asarray(annotations.label), None if annotations.worker is None else np.asarray(annotations.worker)
    counts = annotations.row_counts
    used: dict[int, int] = {}
    rows = []
    for task in shown.tolist():
        best = annotations.kind.shown(posterior[task], MOST_CLASSES)
        own = order[starts[task] : starts[task + 1]]
        given = [
            [int(kind[row]), int(counts[row]), -1 if worker is None else used.setdefault(int(worker[row]), len(used))]
            for row in own[:MOST_ANNOTATIONS]
        ]
        probabilities = [[int(k), round(float(posterior[task, k]), 3)] for k in best]
        rows.append(
            [probabilities, given, max(len(own) - MOST_ANNOTATIONS, 0), list(map(number, values[task].tolist()))]
        )
    names: Any = annotations.workers.to_index() if annotations.named else []
    found = {
        "of": "task",
        "kinds": list(map(str, annotations.categories)),
        "classes": annotations.n_classes,
        "workers": [name_text(names[j]) for j in used],
        "accuracies": None if accuracies is None else [round(float(accuracies.iloc[j]), 3) for j in used],
        "scores": [name.replace("_", " ") for name in scores],
        "rows": rows,
    }
    return data(found)


def worker_details(subject: Subject, shown: np.ndarray, more: pd.DataFrame) -> Markup:
    """Confusion matrix, further scores and the least expected annotations of each worker, as data of the page.

    Args:
        shown: positions of the workers, in the order of the table's rows.
        more: scores that the table leaves out, a row for each worker of the annotations.
    """
    source, annotations = subject.source, subject.annotations
    categories = annotations.verdicts().categories
    n_classes, n_categories = annotations.n_classes, len(categories)
    matrices = source.confusion_draws.mean((0, 1))[shown]
    examples = _examples(source, annotations, shown)
    names = [name for name in map(str, more) if not is_beside(name, more)]
    found: dict[str, Any] = {
        "of": "worker",
        "kinds": list(map(str, categories)),
        "classes": n_classes,
        "scores": [name.replace("_", " ") for name in names],
        "interval": f"{INTERVAL:.0%}",
        "rows": [],
    }
    whole = n_categories <= MOST_MATRIX
    bounds = None
    if whole and matrices.size <= MOST_CELLS:
        bounds = of_draws(source.with_uncertainty.confusion_draws[:, :, shown], INTERVAL, matrices)
    texts = _score_texts(more.iloc[shown], names)
    for row in range(len(shown)):
        matrix = _cells(matrices[row], None if bounds is None else bounds[:, row]) if whole else _errors(matrices[row])
        found["rows"].append([matrix, texts[row], examples[row]])
    found["whole"] = whole
    return data(found)


def data(found: object) -> Markup:
    """Numbers and names that are no script: a browser reads nothing in it as markup or as code."""
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    safe = text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return Markup(f'<script type="application/json">{safe}</script>')


def _rows_by(of: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows in the order of what they are of, and where those of each begin, ``(n + 1,)``."""
    return np.argsort(of, kind="stable"), np.concatenate([[0], np.cumsum(np.bincount(of, minlength=n))])


def _cells(matrix: np.ndarray, bounds: np.ndarray | None) -> list[list[int]]:
    """Probabilities in per cent, row by row, and the bounds of their intervals where there are any."""
    parts = [matrix] if bounds is None else [matrix, *bounds]
    return [np.rint(100 * part).astype(int).ravel().tolist() for part in parts]


def _errors(matrix: np.ndarray) -> list[list[int]]:
    """The most probable errors: true class, annotation, and the probability in per cent."""
    wrong = matrix.copy()
    np.fill_diagonal(wrong, -1.0)
    first = np.argpartition(-wrong, MOST_ERRORS, axis=None)[:MOST_ERRORS]
    first = first[np.argsort(-wrong.ravel()[first], kind="stable")]
    pairs = zip(*np.unravel_index(first, wrong.shape), strict=True)
    return [[int(k), int(given), int(np.rint(100 * wrong[k, given]))] for k, given in pairs]


def _examples(source: Posterior, annotations: Annotations, shown: np.ndarray) -> list[list[Sequence[Any]]]:
    """Of each worker the annotations that are least in line with the labels: task, annotation, label, probability.

    The probability is that of the class that was given; annotations of the label's own class are none.
    """
    task, kind = np.asarray(annotations.task), np.asarray(annotations.label)
    is_class = kind < annotations.n_classes
    p = np.where(is_class, source.posterior[task, np.minimum(kind, annotations.n_classes - 1)], 1.0)
    labels = annotations.kind.label(source.posterior)
    order, starts = _rows_by(np.asarray(annotations.worker), annotations.n_workers)
    names = annotations.tasks.to_index()
    found: list[list[Sequence[Any]]] = []
    for worker in shown.tolist():
        own = order[starts[worker] : starts[worker + 1]]
        own = own[is_class[own] & (kind[own] != labels[task[own]])]
        own = own[np.argsort(p[own], kind="stable")[:EXAMPLES]]
        found.append(
            [
                [name_text(names[task[row]]), int(kind[row]), int(labels[task[row]]), round(float(p[row]), 3)]
                for row in own
            ]
        )
    return found


def _score_texts(more: pd.DataFrame, names: list[str]) -> list[list[str]]:
    """Of each worker the scores of these names as text, with their intervals."""
    columns = [
        [f"{cell.shown} ({cell.beside})" if cell.beside else cell.shown for cell in number_cells(more, name)]
        for name in names
    ]
    return [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in range(len(more))]
