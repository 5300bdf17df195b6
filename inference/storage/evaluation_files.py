"""Labels for those who evaluate models: as JSON Lines, and as one more scorer in copies of inspect_ai's logs."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...data.errors import AnnotationError
from ...data.exports.inspect_logs import header_and_samples, is_inspect_log
from ...data.exports.opening import files_in
from ...data.exports.verdicts import OURS, TASKS, task_name
from ...data.id_json import encode_id
from ...data.questions import QUESTION, questions_of
from ...data.text_files import suffix_of
from ..fitted.expected_scores import expected_where_ordered
from ..fitted.posterior import Posterior

DIGITS = 6


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
