"""Scores of langfuse, from its page of scores, a blob storage or its API, and annotations of Phoenix's spans."""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..column_names import plain
from ..errors import AnnotationError
from ..frames import read_text_table
from ..json_files import JSON, read_json
from ..text_files import first_bytes, suffix_of
from .opening import TEXT, as_records
from .verdicts import LARGEST, Log, Verdict

TOOL = "langfuse"
NEEDED = ("traceid", "name", "value", "source", "datatype")
"""Columns without which a table is no export of scores; their names are written in several ways."""

OF_PHOENIX = ("spanid", "annotationname", "annotatorkind")
"""Columns of annotations of spans that Phoenix's client gets."""

KEY = re.compile(rb'"([A-Za-z_ ]{2,30})"\s*:')
RATERS = ("authoruserid", "authorusername", "evaluatorid")
PEOPLE = ("ANNOTATION", "HUMAN")  # sources of scores that people gave
TYPES = ("NUMERIC", "BOOLEAN", "CATEGORICAL")


def is_langfuse_log(path: Path) -> bool:
    """Return whether a file has scores of langfuse, or annotations of Phoenix, by its columns or keys."""
    suffix = suffix_of(path)
    if suffix not in (*TEXT, *JSON):
        return False
    start = first_bytes(path)
    if suffix in TEXT:
        header = start.partition(b"\n")[0].decode("utf-8", "replace")
        names = {plain(name) for name in re.split("[,;\t]", header)}
    else:
        names = {plain(name.decode()) for name in KEY.findall(start)}
    return set(NEEDED) <= names or set(OF_PHOENIX) <= names


def read_langfuse_log(path: Path) -> Log:
    """Return the scores of an export.

    A sample is an observation, or a trace where a score is of none. Where several people or evaluators gave scores of
    one name, names are questions and those who gave them scorers; else names are scorers.

    Raises:
        AnnotationError: the file cannot be read, or a score lacks what is needed.
    """
    rows = [{plain(str(name)): value for name, value in row.items()} for row in _rows(path)]
    tool = TOOL
    if rows and set(OF_PHOENIX) <= rows[0].keys():
        rows, tool = [_of_phoenix(row) for row in rows], "Phoenix"
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
            raise AnnotationError(f"{path}, score {number}: a name is needed")
        if not sample:
            left_out["score of no trace"] += 1
            continue
        if kind not in TYPES:
            left_out[f"score of the type {kind}"] += 1
            continue
        place = f"{path.name}, score {number} ({name!r})"
        verdicts.append(
            Verdict(
                place=place,
                suite=tool,
                sample=str(sample),
                epoch=1,
                model="",
                scorer=_rater(row) if are_questions else name,
                key=name if are_questions and len(raters) > 1 else None,
                value=_value(row, str(kind), f"{path}, score {number} ({name!r})"),
                uuid=row.get("id") or None,
                is_text=kind == "CATEGORICAL",
            )
        )
    as_what = "its name is a question" if are_questions and len(raters) > 1 else "its name is the scorer"
    as_what = "the scorer is who gave it" if are_questions and len(raters) == 1 else as_what
    return Log(tool, verdicts, left_out, f"a sample is an observation or a trace, and of a score {as_what}")


def _rows(path: Path) -> list[Mapping[str, Any]]:
    if suffix_of(path) in TEXT:
        return list(as_records(read_text_table(path)))
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
