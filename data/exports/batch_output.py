"""Output of batches of requests to language models, of OpenAI, Anthropic and Gemini: their answers are annotations."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..answers import SCALE, fields_in, verdict_in
from ..description import count_text
from ..errors import AnnotationError
from ..nested import Records
from ..text import as_numbers
from .gathered import Gathered, Held, chosen_question
from .opening import FILE

UNREADABLE = "unreadable"
"""The abstention of a request that failed, or of an answer in which no label is said."""

TASKS = ("custom_id", "key")  # what names a request
ANSWERS = {"response", "result"}
ASKED = ("body", "params", "request")  # of OpenAI, Anthropic and Gemini
OF_REQUESTS = {*TASKS, *ASKED, "method", "url"}


def is_of_batch(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a line of the output of a batch, or a request."""
    response = record.get("response")
    of_gemini = isinstance(response, Mapping) and "candidates" in response
    return ("custom_id" in record and bool(ANSWERS & record.keys())) or of_gemini or _is_request(record)


def _is_request(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a request to a model, which has no answer yet."""
    return record.keys() - {*FILE} <= OF_REQUESTS and any(isinstance(record.get(name), Mapping) for name in ASKED)


def read_batch_output(records: Records, what: str, question: str | None, name: str) -> Held:
    """Return the labels in the answers of a batch, or several: a task is a request's own id, a worker a model.

    Requests beside them are left out.

    Where two files have a model's answers to the same tasks, as to two prompts, the file is part of the worker's name.
    A request that failed is an abstention, and so is an answer in which no label is said, or several that differ. An
    answer that is a dictionary in JSON with several labels has questions, of which `question` is read.

    Raises:
        AnnotationError: a line has no id, there are several questions and none is named, no label at all, or there are
            requests alone.
    """
    lines = [(number, record) for number, record in enumerate(records) if not _is_request(record)]
    requests = len(records) - len(lines)
    if not lines:
        raise AnnotationError(
            f"{what} has requests to a model, {requests:,} of them, and no answers; read the output of the batch, "
            f"whose lines have {' or '.join(map(repr, sorted(ANSWERS)))} beside custom_id or key"
        )
    answers = [answer for number, record in lines for answer in _answers(record, number, what, name)]
    files: dict[tuple[Any, str], set[str]] = {}
    of_file: dict[str, dict[str, None]] = {}
    for _, file, task, model, _ in answers:
        if model:
            files.setdefault((task, model), set()).add(file)
            of_file.setdefault(file, {})[model] = None
    models = {model for found in of_file.values() for model in found}
    with_file = {model for (_, model), found in files.items() if len(found) > 1}
    fields = [fields_in(text or "") for *_, text in answers]
    keys = dict.fromkeys(key for each in fields for key in each)
    asks = question is not None or any(len(each) > 1 for each in fields)
    key = chosen_question(question, list(keys), what) if asks else None
    gathered = Gathered(f"{what}: output of a batch of requests", key)
    for _ in range(requests):
        gathered.leave_out("request without an answer")
    unreadable = []
    for (place, file, task, model, text), each in zip(answers, fields, strict=True):
        own = of_file.get(file, {}) or models
        if model is None and len(own) != 1:
            gathered.leave_out("failed request of an unknown model")
            continue
        worker = model or next(iter(own))
        label = None if text is None else each.get(key) if key and each else verdict_in(text)
        unreadable += [place] if label is None else []
        gathered.add(
            task,
            f"{worker} ({file})" if worker in with_file else worker,
            UNREADABLE if label is None else label,
            place,
            is_model=True,
        )
    held = gathered.held()
    _refuse_two_scales(held)
    numbers = as_numbers(label for label in dict.fromkeys(held.frame["label"]) if label != UNREADABLE)
    frame = held.frame.assign(label=[numbers.get(label, label) for label in held.frame["label"]])
    said = held.said + f"; label = what {'each answer says' if key is None else f'the answers have as {key!r}'}"
    if again := int(held.frame.duplicated(["task", "worker"]).sum()):
        said += f"; {count_text(again, 'answer')} to a request that its model had answered already kept as repeats"
    if unreadable:
        said += f"; no label {len(unreadable):,} × (a request failed, or its answer says none), first {unreadable[0]}, "
        said += f"an abstention called {UNREADABLE!r}"
    return replace(held, frame=frame, said=said, abstain=(UNREADABLE,) if unreadable else (), tidy=True)


def _refuse_two_scales(held: Held) -> None:
    """Refuse answers such as "4/5" beside "8/10".

    Raises:
        AnnotationError: there are such; the message has the place of one of each.
    """
    first: dict[str, str] = {}
    for label, place in zip(held.frame["label"], held.places, strict=True):
        if scale := SCALE.fullmatch(str(label)):
            first.setdefault(scale[2], f"{place} has {label!r}")
    if len(first) > 1:
        raise AnnotationError(
            f"{held.what}: there are scores out of {' and out of '.join(first)}: {' and '.join(first.values())}; give "
            "the answers one scale, or read the files of each by themselves"
        )


def _answers(record: Mapping[str, Any], number: int, what: str, name: str) -> Iterator[tuple[str, str, Any, Any, Any]]:
    """Yield place, file, task, model and text of each answer of a line; the text is None where the request failed."""
    place = str(record.get("_place") or f"line {number + 1}")
    task = next((record[key] for key in TASKS if record.get(key) is not None), None)
    if task is None:
        raise AnnotationError(
            f"{what}, {place}: custom_id is missing; a line of a batch's output has the request's (or key, of Gemini)"
        )
    common = place, str(record.get("_file") or name), task
    outer = record.get("response") or record.get("result") or {}
    body = outer.get("body") or outer.get("message") or outer
    body = body if isinstance(body, Mapping) else {}
    parts = [each.get("message") or each.get("text") for each in body.get("choices") or []]  # chat completions
    parts += [each.get("content") for each in body.get("candidates") or []]  # of Gemini
    if not parts:  # responses of OpenAI, messages of Anthropic
        parts = [body.get("output") or body.get("content")]
    for part in parts:
        yield (*common, body.get("model") or body.get("modelVersion"), _text(part) or None)


def _text(part: Any) -> str:
    """The text in a message, its parts or a call of a tool, whose arguments are it; not that of thoughts."""
    if isinstance(part, str) or part is None:
        return part or ""
    if isinstance(part, list):
        return "\n".join(filter(None, map(_text, part)))
    if not isinstance(part, Mapping) or part.get("thought") or part.get("type") in ("reasoning", "thinking"):
        return ""
    if part.get("type") == "tool_use":
        return json.dumps(part.get("input"))
    call = part.get("function")
    part = call if isinstance(call, Mapping) else part
    names = ("text", "content", "parts", "arguments", "tool_calls")
    return next((text for name in names if (text := _text(part.get(name)))), "")
