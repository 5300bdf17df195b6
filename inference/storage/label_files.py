"""Labels back to where people work: beside their own table, and as files that annotation tools import."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...data.atomic import whole_file
from ...data.csv_header import missing_column
from ...data.errors import AnnotationError, look_up, warn
from ...data.exports.opening import is_json, read_json
from ...data.id_json import encode_id
from ...data.text_files import first_bytes
from ..fitted.labelled import Labelled

AGENT = "crowdppl"
JOINED = ("label", "probability", "entropy")


def join_labels(fit: Labelled, table: pd.DataFrame, task: str = "task", prefix: str = "") -> pd.DataFrame:
    """Return a table with the labels of its tasks: columns label, probability (of it) and entropy (nats).

    Args:
        fit: what has the labels.
        table: with a column of tasks, in any order, and repeated as often as it likes.
        task: that column.
        prefix: put before the names of the new columns.

    Raises:
        AnnotationError: there is no such column, a new column has the name of one that is there, or no task is known.
    """
    if task not in table.columns:
        raise missing_column(task, "task", table.columns, "the table")
    if taken := [f"{prefix}{name}" for name in JOINED if f"{prefix}{name}" in table.columns]:
        raise AnnotationError(f"the table has a column {taken[0]!r} itself; give a prefix=, such as prefix='crowd_'")
    labels = fit.labels
    known = pd.Index(list(fit.annotations.tasks), dtype=object)
    place = known.get_indexer(pd.Index(table[task].tolist(), dtype=object))
    if not (place >= 0).any():
        raise AnnotationError(
            f"column {task!r}: none of its values is a task of the fit, such as {next(iter(fit.annotations.tasks))!r}; "
            "is its type the same?"
        )
    if (unknown := int((place < 0).sum())) > 0:
        row = int(np.flatnonzero(place < 0)[0])
        value = table[task].iloc[[row]].tolist()[0]
        warn(f"{unknown} rows name tasks that the fit does not have, such as {value!r} in row {row}")
    found = labels.take(np.maximum(place, 0)).set_axis(table.index)[list(JOINED)]
    return table.assign(**{f"{prefix}{name}": found[name].where(place >= 0) for name in JOINED})


def write_labels(
    fit: Labelled,
    path: str | PathLike[str],
    *,
    to: str,
    question: str = "label",
    source: str | PathLike[str] | None = None,
) -> Path:
    """Write the labels as predictions with scores, in the shape that a tool imports.

    - ``"label-studio"``: JSON of tasks with predictions of choices; with ``source`` the tasks of that export, with
      their data.
    - ``"argilla"``: JSON of records with suggestion, score and agent.
    - ``"hf"``: Parquet for ``datasets.load_dataset("parquet", …)``: task, label, label_name, probability, and
      ``probabilities``, the soft label to train on.

    Args:
        fit: what has the labels.
        path: the file to write or to replace.
        to: the tool.
        question: its name there: of the control tag in Label Studio, of the question in Argilla.
        source: for Label Studio, the export that was read.

    Returns:
        the path.

    Raises:
        UnknownNameError: no such tool is known.
        AnnotationError: the source is no Label Studio export, or has none of the tasks.
        StorageError: the file cannot be written.
    """
    make = look_up("tool", to, TOOLS)
    if source is not None and to != "label-studio":
        raise AnnotationError(f"source= is an export of Label Studio, and to={to!r} takes none")
    content = make(fit, question, None if source is None else Path(source))
    with whole_file(path) as part:
        if isinstance(content, pd.DataFrame):
            content.to_parquet(part)
        else:
            part.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")
    return Path(path)


def _rows(fit: Labelled) -> list[tuple[Any, Any, float]]:
    """Task, label and its probability, as JSON knows them."""
    labels = fit.labels
    return [
        (encode_id(task), encode_id(label), round(float(p), 6))
        for task, label, p in zip(fit.annotations.tasks, labels["label"].tolist(), labels["probability"], strict=True)
    ]


def _label_studio(fit: Labelled, question: str, source: Path | None) -> list[dict[str, Any]]:
    def prediction(label: Any, score: float) -> dict[str, Any]:
        value = {"choices": [str(label)]}
        result = {"from_name": question, "to_name": "text", "type": "choices", "value": value}
        return {"model_version": AGENT, "score": score, "result": [result]}

    rows = _rows(fit)
    if source is None:
        return [{"data": {"task": task}, "predictions": [prediction(label, p)]} for task, label, p in rows]
    records = read_json(source, None) if is_json(source, first_bytes(source, 64)) else None
    if not isinstance(records, list) or not all(isinstance(each, Mapping) and "data" in each for each in records):
        raise AnnotationError(f"{source} is no Label Studio export in JSON: a list of tasks with data is needed")
    by_task = {task: (label, p) for task, label, p in rows}
    if not any(record.get("id") in by_task for record in records):
        raise AnnotationError(f"{source} has none of the tasks of the fit, such as {rows[0][0]!r}")
    found = []
    for record in records:
        if record.get("id") in by_task:
            to_name = _to_name(record, question)
            made = prediction(*by_task[record["id"]])
            made["result"][0]["to_name"] = to_name
            found.append({"id": record["id"], "data": record["data"], "predictions": [made]})
    return found


def _to_name(record: Mapping[str, Any], question: str) -> str:
    for kind in ("annotations", "predictions"):
        for each in record.get(kind) or []:
            for result in each.get("result") or []:
                if result.get("from_name") == question and result.get("to_name"):
                    return str(result["to_name"])
    return "text"


def _argilla(fit: Labelled, question: str, source: Path | None) -> list[dict[str, Any]]:
    return [
        {
            "id": str(task),
            f"{question}.suggestion": label,
            f"{question}.suggestion.score": p,
            f"{question}.suggestion.agent": AGENT,
        }
        for task, label, p in _rows(fit)
    ]


def _hugging_face(fit: Labelled, question: str, source: Path | None) -> pd.DataFrame:
    labels, classes = fit.labels, list(fit.annotations.classes)
    code = {name: number for number, name in enumerate(classes)}
    posterior = np.asarray(fit.posterior, dtype=np.float32)
    return pd.DataFrame(
        {
            "task": list(fit.annotations.tasks),
            "label": [code[name] for name in labels["label"]],
            "label_name": [str(name) for name in labels["label"]],
            "probability": labels["probability"].to_numpy(),
            "probabilities": list(posterior),
        }
    )


TOOLS: dict[str, Callable[[Labelled, str, Path | None], Any]] = {
    "label-studio": _label_studio,
    "argilla": _argilla,
    "hf": _hugging_face,
}
"""What makes a file's content for each tool."""
