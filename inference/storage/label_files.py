"""Labels back to where people work: beside their own table, and as files that annotation tools and evaluators read."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from ...data import Annotations
from ...data.atomic import whole_file, whole_folder
from ...data.column_names import missing_column, tasks_of_rows
from ...data.comparison_columns import two_sides
from ...data.comparisons import PROMPT, TASK, columns_of_tasks, prompts_of
from ...data.errors import AnnotationError, look_up, warn
from ...data.exports.gathered import chosen_question
from ...data.exports.inspect_logs import header_and_samples, is_inspect_log
from ...data.exports.json_tools import argilla_question, studio_key, studio_patterns, studio_task
from ...data.exports.opening import files_in, records_in, table_of
from ...data.exports.verdicts import OURS, TASKS, task_name
from ...data.harmless_csv import write_csv
from ...data.id_json import encode_id
from ...data.id_text import name_text
from ...data.questions import QUESTION, questions_of, tasks_of
from ...data.text_files import suffix_of
from ..engines.progress import progress_bar
from ..fitted.by_batch import label_frame, posteriors
from ..fitted.decisions import expected_where_ordered
from ..fitted.posterior import Posterior
from ..sources.on_disk import Files, OnDiskError

AGENT = "crowdppl"
JOINED = ("label", "probability", "entropy")
DIGITS = 6


def join_labels(fit: Posterior, table: Any, task: str | None = None, prefix: str = "") -> pd.DataFrame:
    """Return a table with the labels of its tasks: columns label, probability (of it) and entropy (nats).

    Args:
        table: of pandas, polars, pyarrow or Hugging Face, with a column of tasks, in any order and with repeats, and
            one called "question" where the fit has several. Of comparisons whose tasks are pairs, or prompts and pairs,
            it has two columns of items, such as left and right, and that of prompts, which `task` may name; labels are
            of the sides as the row has them.
        task: that column; None for the one that is called so or has nothing but tasks of the fit, and without one for
            the index of a pandas table, if it has some.
        prefix: put before the names of the new columns.

    Returns:
        a pandas table with the rows that were given.

    Raises:
        AnnotationError: there is no such column, a new column has the name of one that is there, or no task is known.
    """
    table = table_of(table)
    if task is not None and task not in table.columns:
        raise missing_column(task, "task", table.columns, "the table")
    if taken := [f"{prefix}{name}" for name in JOINED if f"{prefix}{name}" in table.columns]:
        raise AnnotationError(f"the table has a column {taken[0]!r} itself; give a prefix=, such as prefix='crowd_'")
    labels = fit.labels
    units = fit.annotations.tasks
    own = fit.annotations.known_columns(table.columns)
    task = task or own.get(TASK) or own.get(PROMPT)
    question = asked if isinstance(asked := own.get(QUESTION), str) else QUESTION
    known = pd.Index(list(tasks_of(units)), dtype=object, tupleize_cols=False)
    by_pair = _tasks_of_pairs(fit.annotations, table, task)
    given, where, left = by_pair or (*_tasks_of(table, task, known), None)
    if questions_of(units):
        if question not in table.columns:
            raise missing_column(QUESTION, None, table.columns, "the table")
        given = list(zip(given, table[question].tolist(), strict=True))
    known = pd.Index(list(units), dtype=object, tupleize_cols=False)
    place = known.get_indexer(pd.Index(given, dtype=object, tupleize_cols=False))
    if len(table) and not (place >= 0).any():
        mend = _mend_of_pairs(fit.annotations) if by_pair is None else "is the type of each the same?"
        raise AnnotationError(f"{where}: none of its values is a task of the fit, such as {units[0]!r}; {mend}")
    if (unknown := int((place < 0).sum())) > 0:
        row = int(np.flatnonzero(place < 0)[0])
        warn(f"{unknown} rows name tasks that the fit does not have, such as {given[row]!r} in row {row}")
    found = labels.take(np.maximum(place, 0)).set_axis(table.index)[list(JOINED)]
    if left is not None:
        classes, mirror = list(fit.annotations.classes), fit.annotations.kind.mirror(fit.annotations.n_classes)
        is_shown = (fit.annotations.pairs["left"].take(np.maximum(place, 0)) == left).to_numpy()
        exchanged = found["label"].map(lambda label: classes[mirror[classes.index(label)]])
        found["label"] = found["label"].where(is_shown, exchanged)
    found = found.astype({"label": object}) if unknown else found  # a class that is a whole number stays one
    return table.assign(**{f"{prefix}{name}": found[name].where(place >= 0) for name in JOINED})


def _tasks_of_pairs(
    annotations: Annotations, table: pd.DataFrame, prompt: str | None
) -> tuple[list[Any], str, list[Any]] | None:
    """The task of each row by its two items, and its prompt; where they stand; and the item that each has left.

    None where the tasks are not named by their items, or the table has no columns of two.

    Raises:
        AnnotationError: no column has the prompts.
    """
    sides = two_sides([str(name) for name in table.columns])
    if annotations.sides is None or sides is None or (n_asked := columns_of_tasks(annotations)) is None:
        return None
    where = f"columns {sides[0]!r} and {sides[1]!r}"
    heads: list[tuple[Any, ...]] = [()] * len(table)
    if n_asked:
        known = pd.Index(dict.fromkeys(prompts_of(annotations)), dtype=object, tupleize_cols=False)
        try:
            of_row, column = _tasks_of(table, prompt, known)
        except AnnotationError:
            raise missing_column(PROMPT, TASK, table.columns, "the table") from None
        where, heads = f"{column} and {where}", [(each,) for each in of_row]
    elif prompt is not None:
        return None
    place = {item: at for at, item in enumerate(annotations.items)}
    left, right = (table[side].tolist() for side in sides)
    pairs = [sorted(pair, key=lambda item: place.get(item, -1)) for pair in zip(left, right, strict=True)]
    return [(*head, *pair) for head, pair in zip(heads, pairs, strict=True)], where, left


def _mend_of_pairs(annotations: Annotations) -> str:
    """Say which columns tell the tasks of a table, where none does."""
    if annotations.preferences:
        return "each is a preference of its own, and fit.ranking has what all of them say of the items"
    n_asked = None if annotations.sides is None else columns_of_tasks(annotations)
    if n_asked is None:
        return "is its type the same?"
    return f"give two columns of items, such as left and right{', and one of prompts' if n_asked else ''}"


def _tasks_of(table: pd.DataFrame, task: str | None, known: pd.Index) -> tuple[list[Any], str]:
    """The task of each row, and where it stands, for messages."""
    if task is None:
        try:
            of_row, where = tasks_of_rows(table, known)
        except AnnotationError:
            index = table.index.tolist()
            counted = isinstance(table.index, pd.RangeIndex) and table.index.name is None
            if counted or not (known.get_indexer(pd.Index(index, dtype=object)) >= 0).any():
                raise
            return index, "the index"
        return of_row.tolist(), where
    return table[task].tolist(), f"column {task!r}"


def iter_labels(fit: Posterior) -> Iterator[pd.DataFrame]:
    """Yield the labels chunk by chunk, as frames indexed by task; those of annotations in memory are one chunk.

    The columns are label (ties: the first class), probability, entropy in nats, of ordered classes the expected score
    with its interval and the median, and ``p_<class>`` with the probability of each class. Tasks of a scan come in
    ascending order.
    """
    files = fit.source
    if not isinstance(files, Files):
        yield label_table(fit)
        return
    fitted = fit.fitted
    found = posteriors(fitted.model, files, fitted.draws, fitted.stored_posterior)
    for piece, posterior in zip(files.plan.slices, found, strict=True):
        yield label_frame(posterior, files.store.tasks(piece), files.classes, files.kind)


def write_labels(
    fit: Posterior,
    path: str | PathLike[str],
    *,
    to: str | None = None,
    question: str | None = None,
    source: str | PathLike[str] | None = None,
    overwrite: bool = False,
) -> Path:
    """Write the labels as predictions with scores, in the shape that a tool imports.

    Those of a fit of a scan are written chunk by chunk, as a Parquet data set, which is there when all are written. Its
    columns are task and those of :func:`iter_labels`; the files ``part-00000.parquet``, … of the folder `path` are in
    the order of their tasks.

    - ``"label-studio"``: JSON of tasks with predictions; with ``source``, the export that was read, they are its tasks
      with their ids and data, and the results have the shape of its question. Without, they are choices for tasks
      whose data are their names.
    - ``"argilla"``: JSON of records with suggestion, score and agent; with ``source``, the export that was read, of its
      question.
    - ``"hf"``: Parquet for ``datasets.load_dataset("parquet", …)``: task, label, label_name, probability, and
      ``probabilities``, the soft label to train on.
    - ``"csv"``: task, label, probability, entropy, and ``p_<class>`` for each class; of ordered classes expected,
      expected_low, expected_high and median. Cells that a spreadsheet would run
      are made harmless (:mod:`crowdppl.data.harmless_csv`), and come back the same where crowdppl reads them.
    - ``"jsonl"``: a line of JSON for each task, or task and question: task, question where there are several, label,
      probability, ``probabilities`` by class, and expected, the expected score, where the classes have an order.
    - ``"inspect"``: copies of the logs of inspect_ai that were read, ``source``, in which crowdppl is one more scorer:
      its values are the labels, of several questions dictionaries, and the scores' metadata have the probabilities.

    Args:
        path: the file to write or to replace: .json, .parquet for ``"hf"``, .csv for ``"csv"``, .jsonl for ``"jsonl"``;
            for ``"inspect"`` and of a fit of a scan the new folder, such as ``"labels/"``.
        to: the tool, one of these, which has no default; a fit of a scan takes none.
        question: its name there: of the control tag in Label Studio, of the question in Argilla; by default the one
            that the source has, else ``"label"``. Where the annotations have several questions, the one to write.
        source: for Label Studio the export in JSON that was read; for Argilla the export that was read; for inspect_ai
            the log, or the folder of logs.
        overwrite: replace a folder that has something in it.

    Returns:
        the path.

    Raises:
        UnknownNameError: no such tool is known.
        AnnotationError: no tool is named; the source is no export of the tool, has none of the tasks, or several
            questions, or is missing; an option or a suffix is of another tool.
        StorageError: the file or the folder cannot be written, or the folder has something in it.
        OnDiskError: the labels of a scan are asked for in the shape of a tool.
    """
    if isinstance(fit.source, Files):
        if (to, question, source) != (None, None, None):
            raise OnDiskError
        return _write_chunks(fit, fit.source, Path(path), overwrite=overwrite)
    suffix, options = Path(path).suffix.lower(), {"question": question, "source": source}
    if to is None:
        fitting = [tool for tool, each in TOOLS.items() if suffix and suffix == each.suffix]
        said = " or ".join(f"to={tool!r}" for tool in fitting or TOOLS)
        raise AnnotationError(f"{path}: to= says for what the labels are written: {', '.join(TOOLS)}; give {said}")
    tool = look_up("tool", to, TOOLS)
    if suffix != tool.suffix:
        shape = f"a {tool.suffix} file; give it that suffix" if tool.suffix else "a folder; give it no suffix"
        raise AnnotationError(f"{path}: to={to!r} writes {shape}")
    for name, value in options.items():
        if value is not None and name not in tool.takes:
            takes = " or ".join(repr(other) for other, each in TOOLS.items() if name in each.takes)
            raise AnnotationError(f"{name}= is of to={takes}, and to={to!r} takes none")
    origin = None if source is None else Path(source)
    if tool.suffix:
        with whole_file(path) as part:
            tool.write(fit, part, question, origin)
    else:
        with whole_folder(path, overwrite=overwrite) as folder:
            tool.write(fit, folder, question, origin)
    return Path(path)


def _write_chunks(fit: Posterior, files: Files, path: Path, *, overwrite: bool) -> Path:
    with (
        whole_folder(path, overwrite=overwrite) as folder,
        progress_bar("labels", files.n_batches, show=files.progress) as bar,
    ):
        for number, (piece, frame) in enumerate(zip(files.plan.slices, iter_labels(fit), strict=True)):
            table = pa.Table.from_pandas(frame, preserve_index=False)
            table = table.add_column(0, "task", files.store.task_values(piece))
            pq.write_table(table, folder / f"part-{number:05}.parquet")
            bar(number + 1, "")
    return path


def _rows(fit: Posterior, question: str | None) -> list[tuple[Any, Any, float]]:
    """Task, label and its probability, as JSON knows them; where there are several questions, those of one."""
    labels, units = fit.labels, fit.annotations.tasks
    rows: list[Any] = list(zip(units, labels["label"].tolist(), labels["probability"], strict=True))
    if asked := questions_of(units):
        chosen = chosen_question(question, [str(name) for name in asked], "the fit")
        rows = [(task, label, p) for (task, name), label, p in rows if str(name) == chosen]
    return [(encode_id(task), encode_id(label), round(float(p), 6)) for task, label, p in rows]


def _as_json(
    make: Callable[[Posterior, str | None, Path | None], list[dict[str, Any]]],
) -> Callable[[Posterior, Path, str | None, Path | None], None]:
    """A function that writes what another makes."""

    def write(fit: Posterior, path: Path, question: str | None, source: Path | None) -> None:
        path.write_text(json.dumps(make(fit, question, source), ensure_ascii=False, indent=1), encoding="utf-8")

    return write


def _label_studio(fit: Posterior, question: str | None, source: Path | None) -> list[dict[str, Any]]:
    rows = _rows(fit, question)
    if source is None:
        pattern = {"from_name": question or "label", "to_name": "text", "type": "choices"}
        return [
            {"data": {"task": task}, "predictions": [_prediction(pattern, {"choices": [str(label)]}, p)]}
            for task, label, p in rows
        ]
    records = records_in(source)
    if records is None or not all("data" in each for each in records):
        raise AnnotationError(f"{source} is no Label Studio export in JSON: a list of tasks with data is needed")
    by_task = {task: (label, p) for task, label, p in rows}
    named = [(studio_task(record, number), record) for number, record in enumerate(records)]
    if not any(task in by_task for task, _ in named):
        raise AnnotationError(f"{source} has none of the tasks of the fit, such as {rows[0][0]!r}")
    patterns = studio_patterns(records)
    pattern = patterns[chosen_question(question, list(patterns), f"{source}: Label Studio export")]
    found = []
    for task, record in named:
        if task in by_task:
            label, p = by_task[task]
            own = {"id": record["id"]} if "id" in record else {}
            found.append(
                own | {"data": record["data"], "predictions": [_prediction(pattern, _value(pattern, label), p)]}
            )
    return found


def _value(pattern: Mapping[str, Any], label: Any) -> dict[str, Any]:
    """A label in the shape that the question's results have: choices, rating, number, or one side of a pair."""
    key = studio_key(pattern["value"])
    return {str(key): [[label]] if key == "taxonomy" else [label] if key == "choices" else label}


def _prediction(pattern: Mapping[str, Any], value: Mapping[str, Any], score: float) -> dict[str, Any]:
    result = {name: pattern[name] for name in ("from_name", "to_name", "type") if name in pattern}
    return {"model_version": AGENT, "score": score, "result": [{**result, "value": dict(value)}]}


def _argilla(fit: Posterior, question: str | None, source: Path | None) -> list[dict[str, Any]]:
    asked_of_fit = question
    if source is not None:
        records = records_in(source)
        asked = None if records is None else argilla_question(records, question, str(source))
        if asked is None:
            raise AnnotationError(f"{source} is no Argilla export: records with responses are needed")
        question = asked
    question = question or "label"
    return [
        {
            "id": str(task),
            f"{question}.suggestion": label,
            f"{question}.suggestion.score": p,
            f"{question}.suggestion.agent": AGENT,
        }
        for task, label, p in _rows(fit, asked_of_fit)
    ]


def _hugging_face(fit: Posterior) -> pd.DataFrame:
    labels, classes = fit.labels, list(fit.annotations.classes)
    code = {name: number for number, name in enumerate(classes)}
    posterior = np.asarray(fit.posterior, dtype=np.float32)
    tasks = fit.annotations.tasks.to_columns("task", np.arange(fit.annotations.n_tasks))
    return pd.DataFrame(
        {name: _of_one_type(ids) for name, ids in tasks.items()}
        | {
            "label": [code[name] for name in labels["label"]],
            "label_name": [str(name) for name in labels["label"]],
            "probability": labels["probability"].to_numpy(),
            "probabilities": list(posterior),
        }
    )


def _of_one_type(ids: Any) -> Any:
    """Return identifiers, as text where they are of several types, which a column of Parquet cannot be."""
    try:
        pa.array(ids)
    except pa.ArrowException:
        return [name_text(each) for each in ids]
    return ids


def label_table(fit: Posterior) -> pd.DataFrame:
    """Return by task: label, probability, entropy, and a column ``p_<class>`` with the probability of each class.

    Of ordered classes the expected score, its interval and the median stand before these. Of comparisons the prompt,
    where tasks are named by it and the items, and the items on the left and on the right come first, and the better one
    after the label.
    """
    names = [f"p_{name}" for name in fit.annotations.classes]
    columns = [
        fit.labels.astype({"probability": fit.posterior.dtype}),  # with the digits of the classes' columns
        expected_where_ordered(fit.probabilities, fit.annotations.kind),
        fit.probabilities.set_axis(names, axis=1),
    ]
    table = pd.concat(columns, axis=1)
    if fit.annotations.sides is not None:
        for place, (side, items) in enumerate(fit.annotations.pairs.items()):
            table.insert(place, side, items.to_numpy())
        if columns_of_tasks(fit.annotations):
            table.insert(0, PROMPT, prompts_of(fit.annotations))
    return table


@dataclass(frozen=True)
class Tool:
    """The writer of labels for a tool.

    Args:
        write: takes the fit, the file or folder, the question and the source.
        suffix: of the file; empty where it is a folder.
        takes: which of question and source it takes.
    """

    write: Callable[[Posterior, Path, str | None, Path | None], None]
    suffix: str
    takes: tuple[str, ...] = ()


TOOLS = {
    "label-studio": Tool(_as_json(_label_studio), ".json", ("question", "source")),
    "argilla": Tool(_as_json(_argilla), ".json", ("question", "source")),
    "hf": Tool(lambda fit, path, *_: _hugging_face(fit).to_parquet(path), ".parquet"),
    "csv": Tool(lambda fit, path, *_: write_csv(label_table(fit), path), ".csv"),
    "jsonl": Tool(lambda fit, path, *_: write_jsonl(fit, path), ".jsonl"),
    "inspect": Tool(lambda fit, folder, _, source: write_inspect_logs(fit, folder, source), "", ("source",)),
}
"""Writers of labels, by tool."""


def label_records(fit: Posterior) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield each task of annotations, or pair of a task and a question, with what is known of it as JSON has it.

    That is task, question where there are several, label, probability (of it), probabilities by class, and expected,
    the expected score, where the classes have an order, or better, the better item, of comparisons.
    """
    units, labels, classes = fit.annotations.tasks, fit.labels, [str(name) for name in fit.annotations.classes]
    asked, expected = questions_of(units), expected_where_ordered(fit.probabilities, fit.annotations.kind)
    rows = zip(units, labels["label"].tolist(), labels["probability"].tolist(), fit.posterior, strict=True)
    unit: Any
    for number, (unit, label, probability, posterior) in enumerate(rows):
        task, question = unit if asked else (unit, None)
        record = {"task": encode_id(task)} | ({QUESTION: encode_id(question)} if asked else {})
        record |= {"label": encode_id(label), "probability": round(float(probability), DIGITS)}
        record["probabilities"] = {
            name: round(float(p), DIGITS) for name, p in zip(classes, posterior.tolist(), strict=True)
        }
        if "better" in labels:
            record["better"] = encode_id(labels["better"].iloc[number])
        if "expected" in expected:
            record["expected"] = round(float(expected["expected"].iloc[number]), DIGITS)
        yield unit, record


def write_jsonl(fit: Posterior, path: Path) -> None:
    """Write a line of JSON for each task, or task and question."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for _, record in label_records(fit):
            file.write(json.dumps(record, ensure_ascii=False) + "\n")


def write_inspect_logs(fit: Posterior, folder: Path, source: Path | None) -> None:
    """Write copies of inspect_ai's logs, as ``.json``, in which ``crowdppl`` is one more scorer.

    Its value is the label, of several questions a dictionary; the metadata have the probabilities. Samples without
    scores get none.

    Raises:
        AnnotationError: there is no source, no log in it, or none of its samples is a task of the fit.
    """
    if source is None:
        raise AnnotationError("to='inspect' writes copies of logs: give source=, the logs that were read")
    files = [source] if source.is_file() else files_in(source)
    logs = [file for file in files if is_inspect_log(file)]
    if not logs:
        raise AnnotationError(f"{source} has no log of inspect_ai: .json or .eval is needed")
    scores = _scores(fit)
    naming = _naming(scores, logs)
    if naming is None:
        task = next(iter(fit.annotations.tasks))
        raise AnnotationError(f"{source}: no sample in it is a task of the fit, such as {task!r}; are these its logs?")
    written: set[Path] = set()
    for log in logs:
        name = log.relative_to(source) if source.is_dir() else Path(log.name)
        place = name.with_name(f"{log.name.rpartition(suffix_of(log))[0] or log.stem}.json")
        place = name.with_name(f"{log.name}.json") if place in written else place
        written.add(place)
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        with (folder / place).open("w", encoding="utf-8", newline="\n") as file:
            json.dump(_scored(log, scores, naming), file, ensure_ascii=False, indent=2)


def _scores(fit: Posterior) -> dict[Any, dict[str, Any]]:
    """By task the score that inspect_ai reads."""
    scores: dict[Any, dict[str, Any]] = {}
    for unit, record in label_records(fit):
        label = record["label"] if isinstance(record["label"], str | int | float | bool) else str(record["label"])
        about = {name: record[name] for name in record if name not in ("task", QUESTION, "label")}
        said = f"label {label} with probability {record['probability']:.3f}"
        if QUESTION not in record:
            scores[unit] = {"value": label, "explanation": said, "metadata": about}
            continue
        question = str(record[QUESTION])
        score = scores.setdefault(unit[0], {"value": {}, "explanation": "", "metadata": {}})
        score["value"][question], score["metadata"][question] = label, about
        score["explanation"] += f"{'; ' if score['explanation'] else ''}{question}: {said}"
    return scores


def _naming(scores: Mapping[Any, Any], logs: list[Path]) -> tuple[str, bool] | None:
    """The kind of the fit's tasks, and whether their names have the evaluation's; None where no sample is one."""
    for tasks in TASKS:
        for with_suite in (False, True):
            if any(_task_of(log, sample, tasks, with_suite) in scores for log, sample in _samples(logs)):
                return tasks, with_suite
    return None


def _samples(logs: list[Path]) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """The evaluation of each sample, and the sample."""
    for log in logs:
        header, samples = header_and_samples(log)
        for _, sample in samples:
            yield header["eval"], sample


def _task_of(spec: Mapping[str, Any], sample: Mapping[str, Any], tasks: str, with_suite: bool) -> Any:
    suite, epoch = str(spec["task"]), sample.get("epoch", 1)
    return task_name(suite, sample.get("id"), epoch, spec["model"], tasks, with_suite=with_suite)


def _scored(log: Path, scores: Mapping[Any, dict[str, Any]], naming: tuple[str, bool]) -> dict[str, Any]:
    """The log with the scores of one more scorer."""
    header, samples = header_and_samples(log)
    spec = header["eval"]
    scorers = [each for each in spec.get("scorers") or [] if each.get("name") != OURS]
    made = []
    for _, sample in samples:
        score = scores.get(_task_of(spec, sample, *naming))
        if score is not None and sample.get("scores"):
            sample = {**sample, "scores": {**sample["scores"], OURS: score}}
        made.append(sample)
    return {**header, "eval": {**spec, "scorers": [*scorers, {"name": OURS, "options": {}}]}, "samples": made}
