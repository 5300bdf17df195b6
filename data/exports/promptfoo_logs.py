"""Results of promptfoo: the JSON of ``promptfoo eval --output results.json``, or the lines of ``results.jsonl``."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import AnnotationError
from ..json_files import LINES, first_record, read_json
from ..text_files import first_bytes, suffix_of
from .verdicts import LARGEST, Log, Verdict, scorer_name

TOOL = "promptfoo"
VERSIONS = (2, 3)
"""The versions of the results that are read."""

START = re.compile(rb'\s*\{\s*("evalId"\s*:\s*("[^"]*"|null)\s*,\s*)?"results"\s*:\s*\{\s*"version"\s*:')
OF_LINE = {"failureReason", "gradingResult", "promptIdx", "provider"}
"""Fields by which a line is known."""

SHORT = 40  # characters of a prompt's label beyond which it is the prompt itself, and its number names it
ERROR = 2  # `failureReason` where the model or a scorer failed


def is_promptfoo_log(path: Path) -> bool:
    """Return whether a file has results of promptfoo, by how its JSON begins, or by its first line."""
    if suffix_of(path) in LINES:
        return first_record(path).keys() >= OF_LINE
    return suffix_of(path) == ".json" and START.match(first_bytes(path, 512)) is not None


def read_promptfoo_log(path: Path) -> Log:
    """Return the verdicts of promptfoo's results: each assertion is a scorer, whether it passed its verdict.

    The model under test is a provider, with its prompt where there are several. Tests with the same variables,
    description and assertions are one sample, repeated by ``--repeat``.

    Raises:
        AnnotationError: the file cannot be read, is of another version, or a result lacks what is needed.
    """
    rows, config = _rows(read_json(path, largest=LARGEST), path)
    suite = config.get("description") if isinstance(config, Mapping) else None
    suite = suite if isinstance(suite, str) and suite else path.stem
    verdicts: list[Verdict] = []
    left_out: Counter[str] = Counter()
    samples: dict[str, Any] = {}
    answers: Counter[tuple[Any, str]] = Counter()
    several_prompts = len({row.get("promptIdx") for row in rows if isinstance(row, Mapping)}) > 1
    for number, row in enumerate(rows):
        place = f"{path.name}, results[{number}]"
        if not isinstance(row, Mapping) or not isinstance(row.get("provider"), Mapping):
            raise AnnotationError(f"{path}, results[{number}]: a result with a provider is needed")
        sample = samples.setdefault(_test(row), row.get("testIdx", len(samples)))
        model = _model(row, several_prompts=several_prompts)
        answers[sample, model] += 1
        grading = row.get("gradingResult")
        components = grading.get("componentResults") if isinstance(grading, Mapping) else None
        if row.get("failureReason") == ERROR or not components:
            left_out["sample with an error" if row.get("error") else "sample without assertions"] += 1
            continue
        names: Counter[str] = Counter()
        for each in components:
            assertion = each.get("assertion") if isinstance(each, Mapping) else None
            if not isinstance(assertion, Mapping) or each.get("componentResults"):
                continue  # the sum of a set of assertions, which stand beside it
            name = scorer_name(str(assertion.get("metric") or assertion.get("type")), _grader(assertion))
            names[name] += 1
            name = name if names[name] == 1 else f"{name} {names[name]}"
            failed = (each.get("metadata") or {}).get("graderError") is True
            common: dict[str, Any] = {"suite": suite, "sample": sample, "epoch": answers[sample, model], "model": model}
            common |= {"place": f"{place}, scorer {name!r}", "scorer": name}
            common |= {"uuid": f"{row['id']} {name}" if row.get("id") else None}
            verdicts.append(Verdict(key=None, value=None if failed else each.get("pass"), **common))
            if not failed and isinstance(each.get("score"), int | float):
                verdicts.append(Verdict(key="score", value=each["score"], aside=True, **common))
    return Log(TOOL, verdicts, left_out)


def _rows(content: Any, path: Path) -> tuple[list[Any], Any]:
    """The results, and the configuration where the file has it, as lines have not."""
    if isinstance(content, list):
        return content, None
    results = content.get("results") if isinstance(content, Mapping) else None
    if not isinstance(results, Mapping) or results.get("version") not in VERSIONS:
        version = results.get("version") if isinstance(results, Mapping) else None
        raise AnnotationError(
            f"{path}: the results have version {version!r} of promptfoo's format, and versions 2 and 3 are read; "
            "export them anew by `promptfoo export eval <id> --output results.json`"
        )
    rows = results.get("results")
    if not isinstance(rows, list):
        raise AnnotationError(f"{path}: results.results is a {type(rows).__name__}; a list is needed")
    return rows, content.get("config")


def _test(row: Mapping[str, Any]) -> str:
    """A text that is the same for repeats of one test."""
    case = row.get("testCase")
    case = case if isinstance(case, Mapping) else {}
    given = row.get("vars") if isinstance(row.get("vars"), Mapping) else case.get("vars")
    return json.dumps([given, case.get("description"), case.get("assert")], sort_keys=True, default=str)


def _model(row: Mapping[str, Any], *, several_prompts: bool) -> str:
    provider = str(row["provider"].get("label") or row["provider"].get("id"))
    if not several_prompts:
        return provider
    prompt = row.get("prompt")
    label = prompt.get("label") if isinstance(prompt, Mapping) else None
    is_name = isinstance(label, str) and 0 < len(label) <= SHORT and "\n" not in label
    number = int(row.get("promptIdx") or 0) + 1
    return f"{provider}, {label}" if is_name else f"{provider}, prompt {number}"


def _grader(assertion: Mapping[str, Any]) -> Any:
    """The model that grades, where the assertion says which."""
    provider = assertion.get("provider")
    return provider.get("id") if isinstance(provider, Mapping) else provider
