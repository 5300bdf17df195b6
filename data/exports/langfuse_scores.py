"""Scores of langfuse, from its page, a blob storage or its API; annotations of Phoenix's spans; MLflow's traces."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ..column_names import plain
from ..errors import AnnotationError
from ..frames import read_text_table
from ..json_files import JSON, read_json
from ..nested import parsed_cells
from ..text_files import start_of_text, suffix_of
from .opening import TEXT, as_records
from .verdicts import LARGEST, Log, Verdict

TOOL = "langfuse"
NEEDED = ("traceid", "name", "value", "source", "datatype")
"""Columns without which a table is no export of scores; their names are written in several ways."""

OF_PHOENIX = ("spanid", "annotationname", "annotatorkind")
"""Columns of annotations of spans that Phoenix's client gets."""

TRACES = frozenset({"trace_id", "assessments"})
"""Columns of traces of MLflow, and of its evaluations, that their assessments are read from."""

OF_MLFLOW = b"mlflow.trace"  # in the tags of every trace
KEY = re.compile(rb'"([A-Za-z_ ]{2,30})"\s*:')
RATERS = ("authoruserid", "authorusername", "evaluatorid")
PEOPLE = ("ANNOTATION", "HUMAN")  # sources of scores that people gave
TYPES = ("NUMERIC", "BOOLEAN", "CATEGORICAL")


def is_langfuse_log(path: Path) -> bool:
    """Return whether a file has scores of langfuse, annotations of Phoenix or traces of MLflow, by columns or keys."""
    suffix = suffix_of(path)
    if suffix not in (*TEXT, *JSON):
        return False
    start = start_of_text(path)
    if suffix in TEXT:
        header = start.partition(b"\n")[0].decode("utf-8", "replace")
        names = {plain(name) for name in re.split("[,;\t]", header)}
    else:
        names = {plain(name.decode()) for name in KEY.findall(start)}
    return set(NEEDED) <= names or set(OF_PHOENIX) <= names or (OF_MLFLOW in start and "traceid" in names)


def read_langfuse_log(path: Path) -> Log:
    """Return the scores of an export: :func:`_of_scores`.

    Raises:
        AnnotationError: the file cannot be read, or a score lacks what is needed.
    """
    records = _rows(path)
    if any(_info(record).keys() >= TRACES for record in records):
        return read_traces(records, path.name)
    rows = [{plain(str(name)): value for name, value in row.items()} for row in records]
    if rows and set(OF_PHOENIX) <= rows[0].keys():
        return _of_scores([_of_phoenix(row) for row in rows], "Phoenix", path.name)
    return _of_scores(rows, TOOL, path.name)


def traces_of_table(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the traces in a table of MLflow, whose assessments a CSV file has as text."""
    cells = parsed_cells(table["assessments"])
    return as_records(table if cells is None else table.assign(assessments=pd.Series(cells, table.index, object)))


def read_traces(records: Iterable[Mapping[str, Any]], what: str) -> Log:
    """Return the feedback on traces of MLflow as scores: :func:`_of_scores`. Feedback with an error has no value.

    Expectations are left out, and feedback that who gave it gave anew. What somebody else overrode stays: it is what
    the first one said.
    """
    left_out: Counter[str] = Counter()
    log = _of_scores(list(_feedback(records, left_out)), "MLflow", what)
    return Log(log.tool, log.verdicts, log.left_out + left_out, log.said)


def _feedback(records: Iterable[Mapping[str, Any]], left_out: Counter[str]) -> Iterator[dict[str, Any]]:
    """Feedback of MLflow in langfuse's fields; what else there is is counted."""
    for record in records:
        info = _info(record)
        given = info.get("assessments")
        given = [each for each in (given if isinstance(given, Iterable) else []) if isinstance(each, Mapping)]
        source_of = {each.get("assessment_id"): each.get("source") for each in given}
        anew = {each.get("overrides") for each in given if source_of.get(each.get("overrides")) == each.get("source")}
        spans = {each.get("span_id") for each in given} - {None}
        for each in given:
            feedback, source = each.get("feedback"), each.get("source") or {}
            if not isinstance(feedback, Mapping):
                left_out["expectation"] += 1
                continue
            if each.get("assessment_id") in anew - {None}:
                left_out["feedback that was given anew"] += 1
                continue
            value = feedback.get("value")
            types = (bool, "BOOLEAN"), (int | float | None, "NUMERIC"), (str, "CATEGORICAL")
            yield {
                "name": each.get("assessment_name") or each.get("name"),
                "traceid": info.get("trace_id"),
                "observationid": each.get("span_id")
                if len(spans) > 1
                else None,  # else people mean the same by the trace
                "id": each.get("assessment_id"),
                "datatype": next((name for of, name in types if isinstance(value, of)), type(value).__name__),
                "value": value,
                "stringvalue": value,
                "source": source.get("source_type"),
                "authoruserid": source.get("source_id"),
            }


def _info(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part of a record in which MLflow describes the trace: the record itself, or what it has of that name."""
    info = record.get("info")
    return info if isinstance(info, Mapping) else record


def _of_scores(rows: Sequence[Mapping[str, Any]], tool: str, what: str) -> Log:
    """Return a log of scores.

    A sample is an observation, or a trace where a score is of none. Where several people or evaluators gave scores of
    one name, names are questions and those who gave them scorers; else names are scorers.

    Args:
        rows: the scores, in langfuse's fields.
        tool: what wrote them.
        what: where they are, for messages.

    Raises:
        AnnotationError: a score lacks what is needed.
    """
    left_out: Counter[str] = Counter()
    raters: dict[str, set[str]] = {}
    for row in rows:
        raters.setdefault(str(row.get("name")), set()).add(_rater(row))
    are_questions = any(len(of_name) > 1 for of_name in raters.values())
    verdicts: list[Verdict] = []
    for number, row in enumerate(rows, start=1):
        name, kind = row.get("name"), row.get("datatype")
        sample = row.get("observationid") or row.get("traceid")
        if not isinstance(name, str) or not name:
            raise AnnotationError(f"{what}, score {number}: a name is needed")
        if not sample:
            left_out["score of no trace"] += 1
            continue
        if kind not in TYPES:
            left_out[f"score of the type {kind}"] += 1
            continue
        place = f"{what}, score {number} ({name!r})"
        verdicts.append(
            Verdict(
                place=place,
                suite=tool,
                sample=str(sample),
                epoch=1,
                model="",
                scorer=_rater(row) if are_questions else name,
                key=name if are_questions and len(raters) > 1 else None,
                value=_value(row, str(kind), f"{what}, score {number} ({name!r})"),
                uuid=row.get("id") or None,
                is_text=kind == "CATEGORICAL",
            )
        )
    as_what = "its name is a question" if are_questions and len(raters) > 1 else "its name is the scorer"
    as_what = "the scorer is who gave it" if are_questions and len(raters) == 1 else as_what
    return Log(tool, verdicts, left_out, f"a sample is an observation or a trace, and of a score {as_what}")


def _rows(path: Path) -> Sequence[Mapping[str, Any]]:
    if suffix_of(path) in TEXT:
        table = read_text_table(path)
        return traces_of_table(table) if set(table.columns) >= TRACES else list(as_records(table))
    content = read_json(path, largest=LARGEST)
    if isinstance(content, Mapping):
        content = content.get("data", [content])
    if not isinstance(content, list) or not all(isinstance(row, Mapping) for row in content):
        raise AnnotationError(f"{path}: a list of scores is needed")
    return content


def _of_phoenix(row: Mapping[str, Any]) -> dict[str, Any]:
    """An annotation of a span in langfuse's fields: its score, or its label where it has none."""
    score, label = (row.get(f"result{name}", row.get(name)) for name in ("score", "label"))
    has_score = score not in (None, "") and score == score
    found = {"traceid": row.get("spanid"), "name": row.get("annotationname"), "source": row.get("annotatorkind")}
    found |= {"datatype": "NUMERIC" if has_score else "CATEGORICAL", "value": score, "stringvalue": label}
    return found | {"id": row.get("id"), "authoruserid": row.get("userid") or row.get("identifier")}


def _rater(row: Mapping[str, Any]) -> str:
    """The rater of a score: a person or an evaluator where the export names one, else its source."""
    source = str(row.get("source"))
    named = next((str(row[name]) for name in RATERS if row.get(name)), None)
    if named is None:
        return source
    return named if source in PEOPLE else f"{source} ({named})"


def _value(row: Mapping[str, Any], kind: str, place: str) -> Any:
    value, text = row.get("value"), row.get("stringvalue")
    if kind == "CATEGORICAL":
        return text if text not in (None, "") else None if value in (None, "") else str(value)
    if value in (None, ""):
        return None
    if kind == "BOOLEAN" and str(value).lower() in ("true", "false"):
        return str(value).lower() == "true"
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise AnnotationError(f"{place}: the value {value!r} is no number, and its type is {kind}") from None
    return bool(number) if kind == "BOOLEAN" else number
