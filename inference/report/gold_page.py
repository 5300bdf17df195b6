"""A page on which somebody who knows gives true labels, by mouse or keyboard, and saves them as a table."""

import base64
import csv
import hashlib
import io
import mimetypes
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...data import Annotations
from ...data.atomic import check_new_file, write_whole
from ...data.column_names import is_of_annotations, own_or_known_column
from ...data.columns import positions_of
from ...data.description import count_text
from ...data.errors import warn
from ...data.frames import as_frame, take_column
from ...data.gold import INCLUSION
from ...data.harmless_csv import harmless
from ...data.id_text import name_text
from ..fitted.fitted import Fitted
from ..fitted.next_gold import next_gold
from ..fitted.posterior import Posterior, posterior_of
from .page import standalone

KEYS = "123456789abcdefghijklmnopqrtuvwxyz"
"""Keys that choose a class, in the classes' order; S saves."""

PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".avif", ".bmp")


def gold_page(
    fit: Posterior | Fitted,
    path: str | os.PathLike[str],
    asked: int | pd.DataFrame = 20,
    *,
    content: Any = None,
    folder: str | os.PathLike[str] = ".",
    seed: int = 0,
    title: str | None = None,
) -> pd.DataFrame:
    """Write a page (HTML) on which a person gives the true labels of the tasks that are most worth it.

    It shows a task at a time, its annotations folded so that they sway nobody who does not ask for them, takes a class
    by a click or a key, keeps what was chosen in the browser, also when it is closed, and saves ``gold.csv``, which
    ``crowdppl fit --gold``, :func:`crowdppl.fit` and :func:`crowdppl.estimate` read. The page is one file that needs no
    network.

    Args:
        fit: a fit of any story, an average, or labels by a rule.
        path: the file to write, ending in ``.html`` or ``.htm``.
        asked: how many tasks, which :func:`crowdppl.next_gold` chooses; or a table that it gave.
        content: what the tasks are: a table with a column of tasks, and text, or paths of pictures, in others. Columns
            are left out that differ within a task, or have names of workers, labels, times or gold labels.
        folder: what paths of pictures are relative to; pictures become part of the page.
        seed: of the draw.
        title: heading of the page.

    Returns:
        The tasks, as :func:`crowdppl.next_gold` gives them.

    Warns:
        AnnotationWarning: a picture is not there, or tasks are not in the content.

    Raises:
        StorageError: the file cannot be written.
        AnnotationError: every task has a known label, a task that is asked about is not known, or the content has no
            column of tasks.

    Examples:
        >>> import tempfile
        >>> import crowdppl as cp
        >>> fit = cp.fit("auto", cp.load_dataset("anesthesia").without_gold(), progress=False)
        >>> len(cp.gold_page(fit, f"{tempfile.mkdtemp()}/gold.html", 5))
        5
    """
    check_new_file(path, (".html", ".htm"))
    annotations = posterior_of(fit).annotations
    drawn = asked if isinstance(asked, pd.DataFrame) else next_gold(fit, asked, seed=seed)
    names = [name for name in drawn.columns if name not in (INCLUSION, "why", "label")]
    units = list(drawn[names[0]]) if len(names) == 1 else list(drawn[names].itertuples(index=False, name=None))
    places = positions_of(units, annotations.tasks, "asked: the task")
    shown = _content(content, drawn["task"].tolist(), Path(folder), annotations) if content is not None else {}
    rest = [name for name in (INCLUSION, "why") if name in drawn]
    cards = [
        {
            "name": ", ".join(name_text(part) for part in (unit if len(names) > 1 else (unit,))),
            "before": _cells(drawn.loc[row, names]),
            "after": _cells(drawn.loc[row, rest]),
            "content": [*_pair(annotations, place), *shown.get(drawn.loc[row, "task"], [])],
            "given": given,
        }
        for row, unit, place, given in zip(drawn.index, units, places, _given(annotations, places), strict=True)
    ]
    classes = [{"name": name_text(name), "cell": _cells([name])} for name in annotations.classes]
    head = _cells([*names, "label", *rest])
    key = hashlib.sha256(repr((head, [card["before"] for card in cards], classes)).encode()).hexdigest()[:16]
    values = {"cards": cards, "classes": classes, "keys": KEYS, "head": head, "key": key}
    heading = title or f"True labels of {count_text(len(cards), 'task')}"
    write_whole(Path(path), standalone("gold_page", title=heading, **values))
    return drawn


def _cells(values: Iterable[Any]) -> str:
    """A part of a row of CSV, with cells that no spreadsheet runs."""
    text = io.StringIO()
    cells = [harmless(value) if isinstance(value, str) else value for value in values]
    csv.writer(text, lineterminator="").writerow(cells)
    return text.getvalue()


def _given(annotations: Annotations, places: np.ndarray) -> Iterator[list[tuple[str, str]]]:
    """Of each task who gave what, or how many gave it where no worker is named."""
    frame = annotations.by_sides().to_frame()
    rows = {place: np.flatnonzero(np.asarray(annotations.task) == place) for place in places}
    for place in places:
        of_task = frame.iloc[rows[place]]
        said = [name_text(label) for label in of_task["label"]]
        count = of_task["count"].tolist() if "count" in of_task else [1] * len(of_task)
        by = (
            [name_text(worker) for worker in of_task["worker"]]
            if "worker" in of_task
            else [f"{number:,} of them" for number in count]
        )
        yield list(zip(by, said, strict=True))


def _pair(annotations: Annotations, place: int) -> list[dict[str, str]]:
    """The two items of a task of comparisons."""
    if annotations.sides is None:
        return []
    pair = annotations.pairs.iloc[int(place)]
    return [{"name": side, "text": name_text(pair[side])} for side in ("left", "right")]


def _content(
    table: Any, tasks: list[Any], folder: Path, annotations: Annotations
) -> Mapping[Any, list[dict[str, str]]]:
    """By task what each column says of it: its name, and text, a link or a picture."""
    frame = as_frame(table, "content")
    columns = [str(name) for name in frame.columns]
    column = own_or_known_column("task", columns, "content")
    by_text = {str(task): task for task in tasks}
    keys = [by_text.get(str(task)) for task in take_column(frame, column, "task", "content").tolist()]
    others = {column, *(map(str, annotations.workers)), *(("left", "right") if annotations.sides is not None else ())}
    of_tasks: dict[Any, dict[str, str]] = {task: {} for task in tasks}
    for name in columns:
        if name in others or is_of_annotations(name):
            continue
        cells = take_column(frame, name, "content", "content").tolist()
        found: dict[Any, set[str]] = {}
        for task, cell in zip(keys, cells, strict=True):
            if task is not None and not pd.isna(cell) and str(cell).strip():
                found.setdefault(task, set()).add(str(cell))
        if found and all(len(values) == 1 for values in found.values()):
            for task, values in found.items():
                of_tasks[task][name] = values.pop()
    missing = [task for task in tasks if task not in set(keys)]
    if missing:
        warn(f"content: {count_text(len(missing), 'task')} of {len(tasks):,} are not in it, such as {missing[0]!r}")
    return {task: [_shown(name, text, folder) for name, text in cells.items()] for task, cells in of_tasks.items()}


def _shown(name: str, text: str, folder: Path) -> dict[str, str]:
    """A picture that is there as part of the page, an address as a link, anything else as text."""
    if text.startswith(("http://", "https://")):
        return {"name": name, "link": text}
    if text.lower().endswith(PICTURES) and len(text.splitlines()) == 1:
        path = folder / text
        if path.is_file():
            kind = mimetypes.guess_type(path.name)[0] or "image/png"
            data = base64.b64encode(path.read_bytes()).decode("ascii")
            return {"name": name, "picture": f"data:{kind};base64,{data}"}
        warn(f"content: there is no picture {path}; its name is shown")
    return {"name": name, "text": text}
