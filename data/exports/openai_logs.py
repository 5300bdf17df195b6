"""Logs of OpenAI's evals: JSON Lines with the run's specification, then its events; or a run's items of the API."""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import AnnotationError
from ..json_files import numbered_lines, read_json
from ..text_files import start_of_text
from .verdicts import LARGEST, Log, Verdict, scorer_name

TOOL = "OpenAI evals"
START = re.compile(rb'\s*\{\s*"spec"\s*:\s*\{[^\n]*"(eval_name|completion_fns)"\s*:')
ITEM = "eval.run.output_item"
ITEMS = re.compile(rb'"object"\s*:\s*"eval\.run\.output_item"')
UNIQUE = re.compile(r"-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")  # which the API puts after a grader's name
INVALID = "__invalid__"  # a judge's choice that could not be parsed


def is_openai_log(path: Path) -> bool:
    """Return whether a file is a log of OpenAI's evals, by its first line, or has a run's items of the API."""
    start = start_of_text(path)
    return START.match(start) is not None or ITEMS.search(start) is not None


def read_openai_log(path: Path) -> Log:
    """Return the verdicts of a log of OpenAI's evals.

    A ``match`` is a verdict, and so is a judge's score in ``metrics``, or its choice where it has none; each other
    number there is a scorer. The first completion function is the model under test, and of several the last one judges.
    Of a run's items of the API each grader is a scorer, and whether it passed its verdict.

    Raises:
        AnnotationError: a line is no JSON, or no event, or an item lacks what is needed.
    """
    if START.match(start_of_text(path)) is None:
        return _of_items(path)
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


def _of_items(path: Path) -> Log:
    """The verdicts of a run's items, as the API lists them: in a page, a list or lines."""
    content = read_json(path, largest=LARGEST)
    items = content.get("data") if isinstance(content, Mapping) and "data" in content else content
    items = [items] if isinstance(items, Mapping) else items
    verdicts: list[Verdict] = []
    left_out: Counter[str] = Counter()
    answers: Counter[tuple[Any, Any]] = Counter()
    for number, item in enumerate(items if isinstance(items, list) else []):
        results = item.get("results") if isinstance(item, Mapping) else None
        if not isinstance(results, list) or item.get("object") != ITEM or item.get("datasource_item_id") is None:
            raise AnnotationError(f"{path}, item {number}: an {ITEM} with datasource_item_id and results is needed")
        sample = item.get("sample") if isinstance(item.get("sample"), Mapping) else {}
        of, model = item["datasource_item_id"], str(sample.get("model") or item.get("run_id") or path.stem)
        answers[of, model] += 1
        if sample.get("error") or not results:
            left_out["sample with an error" if sample.get("error") else "sample without graders"] += 1
            continue
        names: Counter[str] = Counter()
        for each in results:
            if not isinstance(each, Mapping):
                raise AnnotationError(f"{path}, item {number}: a result is {each!r}; a dictionary is needed")
            name = UNIQUE.sub("", str(each.get("name") or each.get("type") or "grader"))
            names[name] += 1
            name = name if names[name] == 1 else f"{name} {names[name]}"
            common: dict[str, Any] = {"suite": str(item.get("eval_id") or path.stem), "sample": of, "scorer": name}
            common |= {"epoch": answers[of, model], "model": model}
            common |= {"place": f"{path.name}, item {number}, scorer {name!r}"}
            common |= {"uuid": f"{item['id']} {name}" if item.get("id") else None}
            verdicts.append(Verdict(key=None, value=each.get("passed"), **common))
            if isinstance(each.get("score"), int | float):
                verdicts.append(Verdict(key="score", value=each["score"], aside=True, **common))
    return Log(TOOL, verdicts, left_out)


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
