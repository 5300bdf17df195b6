"""Exports as JSON: Label Studio, Labelbox, Argilla, Prodigy, doccano, Ground Truth, LeWiDi, and panels of judges."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pandas as pd

from ..column_names import is_name_of
from ..errors import AnnotationError, warn
from ..nested import Records
from ..text import as_numbers
from .batch_output import is_of_batch, read_batch_output
from .gathered import Gathered, Held, chosen_question
from .langsmith_feedback import (
    has_feedback,
    has_means,
    is_feedback,
    read_feedback,
    refuse_lists_of_feedback,
    refuse_means,
)


def read_records(records: Records, what: str, question: str | None, name: str) -> Held | None:
    """Return what an export of a known tool holds; None where it is none that is known.

    Args:
        records: the list in the file, or its lines.
        what: the file, for messages.
        question: the one that was asked for.
        name: of the file without its suffix; the annotator's where a tool writes a file for each.

    Raises:
        AnnotationError: the tool is known, and the question is not, or an annotation cannot be used.
    """
    for is_of, reader in READERS:
        if any(is_of(record) for record in records[:50]):
            return reader(records, what, question, name)
    return None


def _is_label_studio(record: Mapping[str, Any]) -> bool:
    made = record.get("predictions")
    if isinstance(made, list) and made and all(isinstance(each, Mapping) and "result" in each for each in made):
        return True
    given = record.get("annotations", record.get("completions"))
    if isinstance(given, Mapping):
        return "data" in record
    if not (isinstance(given, list) and all(isinstance(each, Mapping) for each in given)):
        return False
    return any("result" in each for each in given) or ("data" in record and not given)


def _label_studio(records: Records, what: str, question: str | None, name: str) -> Held:
    what = f"{what}: Label Studio export"
    asked = chosen_question(question, list(studio_patterns(records)), what)
    gathered = Gathered(what, asked)
    for task, place, each in _studio_results(records):
        if each.get("was_cancelled"):
            gathered.leave_out("cancelled annotation")
            continue
        labels = [studio_label(result) for result in each.get("result") or [] if str(result.get("from_name")) == asked]
        is_model = "completed_by" not in each
        label = labels[0] if len(labels) == 1 else [one for many in labels for one in _as_list(many)]
        if each.get("ground_truth"):
            gathered.add_gold(task, label, place)
        worker = (each.get("model_version") or "prediction") if is_model else _studio_worker(each["completed_by"])
        gathered.add(task, worker, label, place, seconds=each.get("lead_time"), is_model=is_model)
    return gathered.held()


def _studio_results(records: Records) -> Iterable[tuple[Any, str, Mapping[str, Any]]]:
    """Task, place and annotation of each annotation and prediction."""
    for number, record in enumerate(records):
        task = studio_task(record, number)
        for kind in ("annotations", "completions", "predictions"):
            given = record.get(kind) or []
            if not isinstance(given, list):
                raise AnnotationError(f"task {task!r}: {kind} is a {type(given).__name__}; a list is needed")
            for position, each in enumerate(given):
                place = f"task {task!r}, {kind}[{position}]"
                results = each.get("result") or [] if isinstance(each, Mapping) else None
                if not (isinstance(results, list) and all(isinstance(result, Mapping) for result in results)):
                    raise AnnotationError(f"{place}: a dictionary with a list of results is needed, not {each!r}")
                yield task, place, each


def studio_patterns(records: Records) -> dict[str, dict[str, Any]]:
    """Return the first result of each question of a Label Studio export that is a class, by the question's name."""
    found: dict[str, dict[str, Any]] = {}
    for _, _, each in _studio_results(records):
        for result in each.get("result") or []:
            if studio_label(result) is not None:
                found.setdefault(str(result.get("from_name")), dict(result))
    return found


def studio_task(record: Mapping[str, Any], number: int) -> Any:
    """Return what names a task of Label Studio: its id, or where it stands in the file."""
    return record.get("id", record.get("inner_id", number))


def _studio_worker(completed_by: Any) -> Any:
    if isinstance(completed_by, Mapping):
        return completed_by.get("email") or completed_by.get("username") or completed_by.get("id")
    return completed_by


def studio_label(result: Mapping[str, Any]) -> Any:
    """Return the label of a result that is a class: choices, a path in a taxonomy, a rating, a number, or a side."""
    value = result.get("value")
    key = studio_key(value)
    if key is None:
        return None
    label = value[key]  # type: ignore[index]
    if key != "taxonomy" or not isinstance(label, list):
        return label
    return [" / ".join(map(str, path)) if isinstance(path, list) else path for path in label]


def studio_key(value: Any) -> str | None:
    """Return under what name a result's value has the class; None where it has none, as of a part of an image."""
    if not isinstance(value, Mapping) or "start" in value or "x" in value:
        return None
    return next((key for key in ("choices", "rating", "number", "selected", "taxonomy") if key in value), None)


def is_argilla(record: Mapping[str, Any]) -> bool:
    """Return whether a record is of an Argilla export."""
    if isinstance(record.get("responses"), Mapping | list) or isinstance(record.get("suggestions"), Mapping | list):
        return "fields" in record
    return any(str(key).endswith((".responses", ".suggestion")) for key in record)


def _argilla(records: Records, what: str, question: str | None, name: str) -> Held:
    what = f"{what}: Argilla export"
    flat = [_argilla_flat(record) for record in records]
    asked = _argilla_question(flat, question, what)
    gathered = Gathered(what, asked)
    for number, each in enumerate(flat):
        task = each.get("id", number)
        values = _as_list(each.get(f"{asked}.responses"))
        users = _as_list(each.get(f"{asked}.responses.users")) or [None] * len(values)
        states = _as_list(each.get(f"{asked}.responses.status")) or ["submitted"] * len(values)
        if not len(values) == len(users) == len(states):
            raise AnnotationError(
                f"{what}, record {task!r}: {asked}.responses has {len(values)}, its users {len(users)}, its status "
                f"{len(states)}; one each is needed"
            )
        for value, user, state in zip(values, users, states, strict=True):
            place = f"record {task!r}, {asked}.responses of {user!r}"
            if state not in ("submitted", None):
                gathered.leave_out(f"{state} response")
            elif user is None:
                raise AnnotationError(f"{place}: {asked}.responses.users names nobody")
            else:
                gathered.add(task, str(user), value, place)
        suggestion = each.get(f"{asked}.suggestion")
        if suggestion is not None:
            agent = each.get(f"{asked}.suggestion.agent") or "suggestion"
            gathered.add(task, str(agent), suggestion, f"record {task!r}, {asked}.suggestion", is_model=True)
    return gathered.held()


def argilla_question(records: Records, question: str | None, what: str) -> str | None:
    """The one question of an Argilla export, or the one that was asked for; None where the records are no export of it.

    Raises:
        AnnotationError: there are several, or not this one.
    """
    if not all(isinstance(record, Mapping) for record in records) or not any(map(is_argilla, records)):
        return None
    return _argilla_question([_argilla_flat(record) for record in records], question, f"{what}: Argilla export")


def _argilla_question(flat: Records, question: str | None, what: str) -> str:
    ends = (".responses", ".suggestion")
    known = {str(key).removesuffix(end): None for each in flat for key in each for end in ends if key.endswith(end)}
    return chosen_question(question, list(known), what)


def _argilla_flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record with columns as in a table, where it is nested."""
    flat, responses, suggestions = dict(record), record.get("responses"), record.get("suggestions")
    answers: dict[Any, list[tuple[Any, Mapping[str, Any]]]] = {}
    if isinstance(responses, Mapping):
        answers = {name: [(each.get("value"), each) for each in given] for name, given in responses.items()}
    listed = responses if isinstance(responses, list) else []  # as Argilla's server and its first versions have them
    for each in listed:
        for name, answer in (each.get("values") or {}).items():
            answers.setdefault(name, []).append((answer.get("value") if isinstance(answer, Mapping) else answer, each))
    for name, given in answers.items():
        flat[f"{name}.responses"] = [value for value, _ in given]
        flat[f"{name}.responses.users"] = [each.get("user_id") for _, each in given]
        flat[f"{name}.responses.status"] = [each.get("status", "submitted") for _, each in given]
    if isinstance(suggestions, list):
        suggestions = {each.get("question_name", each.get("question_id")): each for each in suggestions}
    for name, made in suggestions.items() if isinstance(suggestions, Mapping) else ():
        flat[f"{name}.suggestion"], flat[f"{name}.suggestion.agent"] = made.get("value"), made.get("agent")
    return flat


def _is_prodigy(record: Mapping[str, Any]) -> bool:
    return "answer" in record and ("_input_hash" in record or "_task_hash" in record)


def _prodigy(records: Records, what: str, question: str | None, name: str) -> Held:
    what = f"{what}: Prodigy export"
    is_choice = any("accept" in record for record in records)
    labels = [] if is_choice else list(dict.fromkeys(str(r["label"]) for r in records if r.get("label") is not None))
    asked = None
    if question is not None or len(labels) > 1:
        asked = chosen_question(question, labels, what)
    elif labels:
        asked = labels[0]
    gathered = Gathered(what, asked)
    for number, record in enumerate(records):
        place = f"line {number + 1}"
        if not is_choice and asked is not None and str(record.get("label")) != asked:
            continue
        hashes = ("_task_hash", "_input_hash") if record.get("spans") else ("_input_hash", "_task_hash")
        task = next(record[name] for name in hashes if name in record)  # a span that is accepted is a task of its own
        worker = record.get("_annotator_id") or record.get("_session_id") or "annotator"
        answer = record.get("answer")
        if answer == "ignore":
            gathered.leave_out("ignored example")
        elif not is_choice and str(record.get("_view_id")).endswith("_manual"):
            gathered.leave_out(f"example of {record['_view_id']}, whose spans are no class,")
        elif not is_choice:
            gathered.add(task, worker, answer, place)
        elif answer == "reject":
            gathered.leave_out("rejected example")
        else:
            gathered.add(task, worker, record.get("accept"), place)
    return gathered.held()


def _is_doccano(record: Mapping[str, Any]) -> bool:
    if "id" not in record or not ({"text", "data", "filename"} & set(record)):
        return False
    given = record.get("annotations")
    if isinstance(given, list) and given:
        return all(isinstance(each, Mapping) and "label" in each and "user" in each for each in given)
    if any(
        isinstance(each, list) and is_name_of(str(name).removesuffix("s"), "worker") for name, each in record.items()
    ):
        return False  # a label of each of these workers
    return isinstance(record.get("label"), list) or isinstance(record.get("labels"), list)


def _doccano(records: Records, what: str, question: str | None, name: str) -> Held:
    if question is not None:
        raise AnnotationError(f"{what}: a doccano export has one question without a name; leave out question=")
    gathered = Gathered(f"{what}: doccano export")
    for number, record in enumerate(records):
        task, place = record.get("id", number), record.get("_place", f"line {number + 1}")
        if isinstance(record.get("annotations"), list):
            by_user: dict[Any, list[Any]] = {}
            for each in record["annotations"]:
                by_user.setdefault(each["user"], []).append(each["label"])
            for user, labels in by_user.items():
                gathered.add(task, user, labels, f"{place}, user {user!r}")
            continue
        worker = record.get("annotator") or record.get("username") or record.get("_file", name)
        gathered.add(task, worker, record.get("label", record.get("labels")), place)
    return gathered.held()


def _is_labelbox(record: Mapping[str, Any]) -> bool:
    return isinstance(record.get("data_row"), Mapping) and isinstance(record.get("projects"), Mapping)


def _labelbox(records: Records, what: str, question: str | None, name: str) -> Held:
    what = f"{what}: Labelbox export"
    answers = [
        (task, place, each, answer)
        for task, place, each in _labelbox_labels(records)
        for answer in (each.get("annotations") or {}).get("classifications") or []
        if "radio_answer" in answer or "checklist_answers" in answer
    ]
    asked = chosen_question(question, list(dict.fromkeys(str(answer.get("name")) for *_, answer in answers)), what)
    gathered = Gathered(what, asked)
    for task, place, each, answer in answers:
        if str(answer.get("name")) != asked:
            continue
        chosen = answer.get("radio_answer", answer.get("checklist_answers"))
        label = [one.get("name") for one in (chosen if isinstance(chosen, list) else [chosen]) if one]
        seconds = (each.get("performance_details") or {}).get("seconds_to_create")
        gathered.add(task, (each.get("label_details") or {}).get("created_by"), label, place, seconds=seconds)
    return gathered.held()


def _labelbox_labels(records: Records) -> Iterable[tuple[Any, str, Mapping[str, Any]]]:
    """Task, place and content of each label; those of all projects."""
    for number, record in enumerate(records):
        row = record["data_row"]
        task = row.get("global_key") or row.get("id", number)
        for project in record["projects"].values():
            for position, each in enumerate(project.get("labels") or []):
                yield task, f"data row {task!r}, label {position}", each


def _is_ground_truth(record: Mapping[str, Any]) -> bool:
    given = record.get("annotations")
    return isinstance(given, list) and any(isinstance(each, Mapping) and "annotationData" in each for each in given)


def _ground_truth(records: Records, what: str, question: str | None, name: str) -> Held:
    what = f"{what}: annotations of SageMaker Ground Truth"
    found: list[tuple[Any, Any, str, dict[str, Any]]] = []
    for number, record in enumerate(records):
        task = record.get("datasetObjectId", number)
        for position, each in enumerate(record["annotations"]):
            place = f"object {task!r}, annotations[{position}]"
            content = each["annotationData"].get("content")
            found.append((task, each.get("workerId"), place, dict(task_answers(content, f"{what}, {place}: content"))))
    asked = chosen_question(question, list(dict.fromkeys(key for *_, answers in found for key in answers)), what)
    gathered = Gathered(what, asked)
    for task, worker, place, answers in found:
        gathered.add(task, worker, answers.get(asked), place)
    return gathered.held()


def _is_of_one_job(record: Mapping[str, Any]) -> bool:
    made = [value for name, value in record.items() if str(name).endswith("-metadata") and isinstance(value, Mapping)]
    return any("human-annotated" in value for value in made) or {"answerContent", "workerId"} <= record.keys()


def _refuse_job(records: Records, what: str, question: str | None, name: str) -> Held:
    """Refuse the labels that Ground Truth made of all workers', and a file of workers' that does not name its object.

    Raises:
        AnnotationError: always; the message has the code that reads the workers'.
    """
    is_of_workers = "workerId" in records[0]
    held = "the workers' labels of one object" if is_of_workers else "one label of each object, made of all workers'"
    raise AnnotationError(
        f"{what} is output of SageMaker Ground Truth, with {held}. The folder annotations/worker-response of the job "
        "has those of each worker: cp.read([{'task': file.parent.name, 'worker': each['workerId'], 'label': "
        "next(iter(each['answerContent'].values()))['label']} for file in "
        "pathlib.Path('worker-response').rglob('*.json') for each in json.loads(file.read_text())['answers']])"
    )


def task_answers(text: Any, place: str) -> Iterable[tuple[str, Any]]:
    """Yield question and answer of each part of what a worker of MTurk or Ground Truth sent in, JSON as text.

    Args:
        text: of a dictionary by question, or a list of such; nothing for other values.
        place: where it stands, for messages.

    Raises:
        AnnotationError: it is no JSON.
    """
    if not isinstance(text, str):
        return
    try:
        answers = json.loads(text)
    except json.JSONDecodeError as error:
        raise AnnotationError(f"{place} is no JSON: {error}") from None
    for answer in answers if isinstance(answers, list) else [answers]:
        for key, value in answer.items():
            if isinstance(value, dict) and "label" in value:
                yield key, value["label"]
            elif isinstance(value, dict) and value and all(isinstance(is_on, bool) for is_on in value.values()):
                on = [option for option, is_on in value.items() if is_on]
                yield key, on if len(on) > 1 else (on[0] if on else None)
            elif not isinstance(value, dict | list):
                yield key, value


READERS: tuple[tuple[Callable[[Mapping[str, Any]], bool], Callable[[Records, str, str | None, str], Held]], ...] = (
    (is_of_batch, read_batch_output),
    (is_feedback, read_feedback),
    (has_feedback, refuse_lists_of_feedback),
    (has_means, refuse_means),
    (_is_label_studio, _label_studio),
    (_is_labelbox, _labelbox),
    (_is_ground_truth, _ground_truth),
    (_is_of_one_job, _refuse_job),
    (is_argilla, _argilla),
    (_is_prodigy, _prodigy),
    (_is_doccano, _doccano),
)


def read_mapping(by_name: Mapping[str, Any], what: str, outer: str | None) -> Held | None:
    """Return what a dictionary holds: LeWiDi's, a panel of judges', or {task: {worker: label}}; None for others.

    Args:
        by_name: the dictionary.
        what: the file, for messages.
        outer: whether the outer keys are tasks or workers, where it was said.

    Raises:
        AnnotationError: an annotation cannot be used.

    Warns:
        AnnotationWarning: there are more inner keys than outer ones, which are taken for workers.
    """
    values = list(by_name.values())
    if not values or not all(isinstance(value, Mapping) for value in values):
        return None
    if all("annotations" in value for value in values):
        return _lewidi(by_name, what)
    by_name = {one: {other: _label_in(label) for other, label in by_key.items()} for one, by_key in by_name.items()}
    values = list(by_name.values())
    if any(isinstance(label, Mapping | list) for value in values for label in value.values()):
        return None
    pairs, of_workers = _named_pairs(by_name, what, outer)
    form = "{worker: {task: label}}" if of_workers else "{task: {worker: label}}"
    gathered = Gathered(f"{what}: dictionaries {form}")
    for (task, worker), label in zip(pairs, (label for value in values for label in value.values()), strict=True):
        gathered.add(task, worker, label, f"task {task!r}, worker {worker!r}")
    return gathered.held()


def _named_pairs(by_name: Mapping[str, Any], what: str, outer: str | None) -> tuple[list[tuple[Any, Any]], bool]:
    """The task and the worker of each inner value, and whether the outer keys are the workers, of whom there are fewer.

    Raises:
        AnnotationError: `outer` is another word.
    """
    inner = dict.fromkeys(key for value in by_name.values() for key in value)
    if outer is None and len(by_name) < len(inner):
        outer = "worker"
        warn(
            f"{what}: {len(by_name):,} dictionaries of {len(inner):,} keys are read as {len(by_name):,} workers; "
            "outer='task' says that they are tasks"
        )
    if outer not in (None, "task", "worker"):
        raise AnnotationError(f"outer={outer!r}: 'task' or 'worker' is needed")
    first, second = as_numbers(by_name), as_numbers(inner)
    pairs = [(first[one], second[other]) for one, value in by_name.items() for other in value]
    return [pair[::-1] for pair in pairs] if outer == "worker" else pairs, outer == "worker"


def criteria_table(by_name: Mapping[str, Any], what: str, outer: str | None) -> pd.DataFrame | None:
    """Return ``{worker: {task: {criterion: score}}}``, or by task first, as a table with a column for each criterion.

    Args:
        by_name: the dictionary.
        what: the file, for messages.
        outer: whether the outer keys are tasks or workers, where it was said.

    Returns:
        The columns task and worker, and those of the criteria; None of another dictionary.

    Raises:
        AnnotationError: `outer` is another word.
    """
    by_key = [value for value in by_name.values() if isinstance(value, Mapping)]
    cells = [cell for value in by_key for cell in value.values()]
    if len(by_key) < len(by_name) or not cells or not all(isinstance(cell, Mapping) for cell in cells):
        return None
    if any(isinstance(score, Mapping | list) for cell in cells for score in cell.values()):
        return None
    pairs, _ = _named_pairs(by_name, what, outer)
    criteria = pd.DataFrame([dict(cell) for cell in cells])
    if {"task", "worker"} & set(criteria.columns):
        return None
    return pd.concat([pd.DataFrame(pairs, columns=["task", "worker"]), criteria], axis=1)


def _label_in(given: Any) -> Any:
    """The label of ``{"label": "yes", "reason": "…"}``; what else there is as it is."""
    found = (
        [value for key, value in given.items() if is_name_of(str(key), "label")] if isinstance(given, Mapping) else []
    )
    return found[0] if len(found) == 1 else given


def _lewidi(by_task: Mapping[str, Any], what: str) -> Held:
    gathered = Gathered(f"{what}: LeWiDi dataset")
    for task, item in by_task.items():
        given, names = item["annotations"], item.get("annotators")
        if isinstance(given, Mapping):
            pairs = list(given.items())
        else:
            labels = given.split(",") if isinstance(given, str) else list(given)
            workers = names.split(",") if isinstance(names, str) else list(names or [])
            if len(labels) != len(workers):
                raise AnnotationError(
                    f"{what}: task {task!r} has {len(labels)} annotations by {len(workers)} annotators; one each is "
                    "needed"
                )
            pairs = list(zip(workers, labels, strict=True))
        for worker, label in pairs:
            label = label.strip() if isinstance(label, str) else label
            gathered.add(task, str(worker).strip(), label, f"task {task!r}, annotator {worker!r}")
    return gathered.held()


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    tolist = getattr(value, "tolist", None)  # arrays, as tables of other libraries have them
    value = tolist() if callable(tolist) else value
    return list(value) if isinstance(value, list | tuple) else [value]
