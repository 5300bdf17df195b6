"""Logs of OpenAI's evals: JSON Lines with the run's specification, then its events."""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import AnnotationError
from ..json_files import numbered_lines
from ..text_files import first_bytes
from .verdicts import Log, Verdict, scorer_name

TOOL = "OpenAI evals"
START = re.compile(rb'\s*\{\s*"spec"\s*:\s*\{[^\n]*"(eval_name|completion_fns)"\s*:')
INVALID = "__invalid__"  # a judge's choice that could not be parsed


def is_openai_log(path: Path) -> bool:
    """Return whether a file is a log of OpenAI's evals, by its first line."""
    return START.match(first_bytes(path)) is not None


def read_openai_log(path: Path) -> Log:
    """Return the verdicts of a log of OpenAI's evals.

    A ``match`` is a verdict, and so is a judge's score in ``metrics``, or its choice where it has none; each other
    number there is a scorer. The first completion function is the model under test, and of several the last one judges.

    Raises:
        AnnotationError: a line is no JSON, or no event.
    """
    spec: Mapping[str, Any] = {}
    verdicts: list[Verdict] = []
    left_out: Counter[str] = Counter()
    times: Counter[tuple[Any, str]] = Counter()
    ended = False
    for number, line in numbered_lines(path):
        if not isinstance(line, Mapping):
            raise AnnotationError(f"{path}, line {number}: an event is needed, as evals writes it")
        if isinstance(line.get("spec"), Mapping):
            spec = line["spec"]
            continue
        ended = ended or "final_report" in line
        kind, data = line.get("type"), line.get("data")
        if kind == "error":
            left_out["sample with an error"] += 1
        if kind not in ("match", "metrics") or "final_report" in line:
            continue
        if not isinstance(data, Mapping) or line.get("sample_id") is None:
            raise AnnotationError(f"{path}, line {number}: an event with sample_id and data is needed")
        models = [str(name) for name in spec.get("completion_fns") or [path.stem]]
        suite = str(spec.get("base_eval") or spec.get("eval_name") or path.stem)
        of_event = (
            [("match", None, data.get("correct"))] if kind == "match" else _of_metrics(data, spec, models, left_out)
        )
        for scorer, key, value in of_event:
            times[line["sample_id"], f"{scorer} {key}"] += 1
            verdicts.append(
                Verdict(
                    place=f"{path.name}, line {number}, scorer {scorer!r}",
                    suite=suite,
                    sample=line["sample_id"],
                    epoch=times[line["sample_id"], f"{scorer} {key}"],
                    model=models[0],
                    scorer=scorer,
                    key=key,
                    value=value,
                    answer=_text(data.get("picked")),
                    target=_text(data.get("expected")),
                    is_text=isinstance(value, str),
                    aside=key is not None,
                )
            )
    return Log(TOOL, verdicts, left_out, "" if ended else f"the evaluation {path.name} has no final report")


def _of_metrics(
    data: Mapping[str, Any], spec: Mapping[str, Any], models: list[str], left_out: Counter[str]
) -> list[tuple[str, str | None, Any]]:
    """Scorer, key and value; a judge's choice has a key where it has a score, too."""
    if "choice" in data:
        args = ((spec.get("run_config") or {}).get("eval_spec") or {}).get("args") or {}
        scorer = scorer_name(str(args.get("modelgraded_spec") or "choice"), models[-1])
        choice = None if data["choice"] == INVALID else data["choice"]
        if not isinstance(data.get("score"), int | float):
            return [(scorer, None, choice)]
        return [(scorer, None, None if choice is None else data["score"]), (scorer, "choice", choice)]
    numbers: list[tuple[str, str | None, Any]] = [
        (name, None, value) for name, value in data.items() if isinstance(value, int | float)
    ]
    if not numbers:
        left_out["event of metrics without a number"] += 1
    return numbers


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
