"""Feedback of LangSmith: a dump of `list_feedback`, and what is refused: runs with feedback in lists, or with means."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..description import count_text
from ..errors import AnnotationError, warn
from ..id_text import listing
from ..nested import Records
from .gathered import Gathered, Held, chosen_question

NAMED = 5  # keys of feedback that an error lists
NEEDED = frozenset({"run_id", "key", "score", "feedback_source"})
"""Fields without which a record is no feedback of the list that LangSmith's client gives."""


def is_feedback(record: Mapping[str, Any]) -> bool:
    """Return whether a record is one feedback."""
    return record.keys() >= NEEDED


def read_feedback(records: Records, what: str, question: str | None, name: str = "") -> Held:
    """Return feedback as annotations of runs: the score, or the value where there is no score.

    Where people or evaluators of several kinds gave feedback of one key, or some labels are numbers and others text,
    keys are questions, and who gave it is the worker; else keys are the workers, as evaluators are.

    Raises:
        AnnotationError: keys are questions and none is named, or a value is no class.

    Warns:
        AnnotationWarning: a worker gave a run feedback of one key several times.
    """
    what = f"{what}: feedback of LangSmith"
    sources = [_source(each["feedback_source"]) for each in records]
    labels = [_label(each) for each in records]
    by_key: dict[str, set[str]] = {}
    for each, source in zip(records, sources, strict=True):
        by_key.setdefault(str(each["key"]), set()).add(source)
    are_mixed = len({isinstance(label, str) for label in labels if label is not None}) > 1
    are_questions = are_mixed or any(len(found) > 1 for found in by_key.values())
    if question is not None and not are_questions:
        raise AnnotationError(f"{what} has one source for each key, which is the worker; leave out question=")
    asked = chosen_question(question, list(by_key), what) if are_questions else None
    gathered = Gathered(what, asked)
    for number, (each, source, label) in enumerate(zip(records, sources, labels, strict=True)):
        key = str(each["key"])
        if asked in (None, key):
            gathered.add(each["run_id"], source if are_questions else key, label, f"feedback {number} ({key!r})")
    held = gathered.held()
    again = held.frame.duplicated(["task", "worker"], keep=False)
    if again.any():
        names = held.frame["worker"][again].unique().tolist()
        warn(
            f"{what}: {listing(names, NAMED)} gave feedback of one key several times to "
            f"{count_text(held.frame['task'][again].nunique(), 'run')}; evaluators that share a key are one worker, "
            "since feedback names the kind of its source alone: give each a key of its own"
        )
    return replace(held, said=f"{held.said}; {'who gave it' if are_questions else 'its key'} is the worker")


def _label(feedback: Mapping[str, Any]) -> Any:
    given = [feedback["score"], feedback.get("value")]
    return next((each for each in given if each is not None and each == each), None)


def _source(given: Any) -> str:
    """Who gave feedback: the person where one is named, else the kind; also of a dictionary's text, as in CSV."""
    if not isinstance(given, Mapping):
        given = dict(re.findall(r"['\"](type|user_id|user_name)['\"]: *(?:UUID\()?['\"]([^'\"]+)", str(given)))
    return str(given.get("user_name") or given.get("user_id") or given.get("type") or "unknown")


def has_feedback(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a run with a list of feedback."""
    given = record.get("feedback")
    if not isinstance(given, list) or not given:
        return False
    return all(isinstance(each, Mapping) and {"key", "score"} <= each.keys() for each in given)


def refuse_lists_of_feedback(records: Records, what: str, question: str | None, name: str) -> Held:
    """Refuse runs with feedback, of which the file does not say by what name who gave it is known.

    Raises:
        AnnotationError: always; the message has the code that makes a table of them.
    """
    given = [each for record in records for each in record.get("feedback") or []]
    keys = list(dict.fromkeys(str(each.get("key")) for each in given if isinstance(each, Mapping)))
    run = next((key for key in ("run_id", "id", "example_id") if key in records[0]), "run_id")
    raise AnnotationError(
        f"{what} has runs of LangSmith with feedback of {listing(keys, NAMED)}, and a row for each feedback is needed, "
        f"whose worker is what gave it: cp.read([{{'task': run[{run!r}], 'worker': each.get('evaluator', each['key']), "
        "'question': each['key'], 'label': each['score']} for run in runs for each in run['feedback']])"
    )


def has_means(record: Mapping[str, Any]) -> bool:
    """Return whether a record is a run with means of feedback alone."""
    return isinstance(record.get("feedback_stats"), Mapping) and "feedback" not in record


def refuse_means(records: Records, what: str, question: str | None, name: str) -> Held:
    """Refuse runs with means of feedback.

    Raises:
        AnnotationError: always; the message has the code that gets each feedback.
    """
    keys = list(dict.fromkeys(str(key) for record in records for key in record.get("feedback_stats") or {}))
    raise AnnotationError(
        f"{what} has runs of LangSmith with means of feedback ({listing(keys, NAMED)}), and a row for each feedback is "
        "needed: cp.read([{'task': str(each.run_id), 'worker': each.key, 'label': each.score} for each in "
        "langsmith.Client().list_feedback(run_ids=[run['id'] for run in runs]) if each.score is not None])"
    )
