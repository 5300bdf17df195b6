"""Results of promptfoo, of ``promptfoo eval --output``: ``results.json``, ``results.jsonl`` or ``results.csv``."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ..columns import row_number
from ..errors import AnnotationError
from ..frames import read_text_table
from ..json_files import LINES, first_record, read_json
from ..text_files import read_header, start_of_text, suffix_of
from .verdicts import LARGEST, Log, Verdict, scorer_name

TOOL = "promptfoo"
VERSIONS = (2, 3)
"""The versions of the results that are read."""

START = re.compile(rb'\s*\{\s*("evalId"\s*:\s*("[^"]*"|null)\s*,\s*)?"results"\s*:\s*\{\s*"version"\s*:')
OF_LINE = {"failureReason", "gradingResult", "promptIdx", "provider"}
"""Fields by which a line is known."""

OF_TABLE = (b"Status,Score,Named Scores,", b"Grader Reason,Comment")
"""Parts of a table's header by which it is known."""

METRIC = "Metric: "  # before a metric's name in a table's header
PROMPT = re.compile(r"\[(.*?)\] (.*)", re.DOTALL)  # a provider and a prompt there
PASSED = {"PASS": True, "FAIL": False}
ALL = "all assertions"
"""The scorer that whether all assertions of a test passed is of, in a table, which has not each."""

SHORT = 40  # characters of a prompt's label beyond which it is the prompt itself, and its number names it
ERROR = 2  # `failureReason` where the model or a scorer failed


def is_promptfoo_log(path: Path) -> bool:
    """Return whether a file has results of promptfoo, by how its JSON begins, by its first line, or by its header."""
    if suffix_of(path) == ".csv":
        start = start_of_text(path)
        return all(part in start for part in OF_TABLE)
    if suffix_of(path) in LINES:
        return first_record(path).keys() >= OF_LINE
    return suffix_of(path) == ".json" and START.match(start_of_text(path, 512)) is not None


def read_promptfoo_log(path: Path) -> Log:
    """Return the verdicts of promptfoo's results: each assertion is a scorer, whether it passed its verdict.

    The model under test is a provider, with its prompt where there are several. Tests with the same variables,
    description and assertions are one sample, repeated by ``--repeat``. A table has metrics, and whether all assertions
    of a test passed, and not each: :func:`_of_table`.

    Raises:
        AnnotationError: the file cannot be read, is of another version, or a result lacks what is needed.
    """
    if suffix_of(path) == ".csv":
        return _of_table(path)
    rows, config = _rows(read_json(path, largest=LARGEST), path)
    suite = config.get("description") if isinstance(config, Mapping) else None
    suite = suite if isinstance(suite, str) and suite else path.stem
    verdicts: list[Verdict] = []
    left_out: Counter[str] = Counter()
    samples: dict[str, Any] = {}
    answers: Counter[tuple[Any, str]] = Counter()
    prompts = _prompts((_provider(row), _prompt_number(row)) for row in rows if isinstance(row, Mapping))
    for number, row in enumerate(rows):
        place = f"{path.name}, results[{number}]"
        if not isinstance(row, Mapping) or not isinstance(row.get("provider"), Mapping):
            raise AnnotationError(f"{path}, results[{number}]: a result with a provider is needed")
        sample = samples.setdefault(_test(row), row.get("testIdx", len(samples)))
        prompt = row.get("prompt")
        label = prompt.get("label") if isinstance(prompt, Mapping) else None
        model = _model(_provider(row), label, _prompt_number(row), prompts)
        answers[sample, model] += 1
        grading = row.get("gradingResult")
        components = grading.get("componentResults") if isinstance(grading, Mapping) else None
        if row.get("failureReason") == ERROR or not components:
            left_out["sample with an error" if row.get("error") else "sample without assertions"] += 1
            continue
        names: Counter[str] = Counter()
        of_answer = (suite, sample, answers[sample, model], model)
        for each in components:
            assertion = each.get("assertion") if isinstance(each, dict) else None
            if not isinstance(assertion, dict) or each.get("componentResults"):
                continue  # the sum of a set of assertions, which stand beside it
            name = scorer_name(str(assertion.get("metric") or assertion.get("type")), _grader(assertion))
            names[name] += 1
            name = name if names[name] == 1 else f"{name} {names[name]}"
            metadata = each.get("metadata")
            failed = isinstance(metadata, dict) and metadata.get("graderError") is True
            at, uuid = f"{place}, scorer {name!r}", f"{row['id']} {name}" if row.get("id") else None
            verdicts.append(Verdict(at, *of_answer, name, None, None if failed else each.get("pass"), uuid=uuid))
            if not failed and isinstance(each.get("score"), int | float):
                verdicts.append(Verdict(at, *of_answer, name, "score", each["score"], uuid=uuid, aside=True))
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


def _provider(row: Mapping[str, Any]) -> str:
    provider = row.get("provider")
    return str(provider.get("label") or provider.get("id")) if isinstance(provider, Mapping) else ""


def _prompt_number(row: Mapping[str, Any]) -> int:
    number = row.get("promptIdx")
    return number if isinstance(number, int) else 0


def _prompts(columns: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """By provider the numbers of its prompts, which promptfoo counts over all providers."""
    found: dict[str, list[int]] = {}
    for provider, number in sorted(set(columns)):
        found.setdefault(provider, []).append(number)
    return found


def _model(provider: str, label: Any, number: int, prompts: Mapping[str, Sequence[int]]) -> str:
    """The name of a provider, with its prompt where it has several: the prompt's label, or which of them it is."""
    if len(prompts[provider]) < 2:
        return provider
    is_name = isinstance(label, str) and 0 < len(label) <= SHORT and "\n" not in label
    return f"{provider}, {label}" if is_name else f"{provider}, prompt {prompts[provider].index(number) + 1}"


def _grader(assertion: Mapping[str, Any]) -> Any:
    """The model that grades, where the assertion says which."""
    provider = assertion.get("provider")
    return provider.get("id") if isinstance(provider, Mapping) else provider


def _of_table(path: Path) -> Log:
    """The verdicts in a table: each metric is a scorer; whether all assertions passed is one where there is no metric.

    Where there are metrics it has the key ``outcome``, and the score of all assertions has the key ``score``.
    """
    header = read_header(path, may_repeat=True)
    table = read_text_table(path, may_repeat=True)
    models = _models_of_header(header)
    own = table.iloc[:, : models[0][1]].fillna("").to_numpy().tolist() if models else []
    has_metrics = any(name.startswith(METRIC) for name in header)
    verdicts: list[Verdict] = []
    left_out: Counter[str] = Counter()
    samples: dict[Any, int] = {}
    answers: Counter[tuple[int, str]] = Counter()
    for row, variables in enumerate(own):
        sample = samples.setdefault(tuple(variables), row)
        for model, at in models:
            status = str(table.iat[row, at + 1])
            answers[sample, model] += 1
            if status not in PASSED:
                left_out["sample with an error" if status == "ERROR" else "test that was not run"] += 1
                continue
            place = f"{path.name}, {row_number(row)}, {header[at]!r}"
            common: dict[str, Any] = {"suite": path.stem, "sample": sample, "epoch": answers[sample, model]}
            common |= {"model": model, "place": place}
            metrics = list(_metrics(header, table.iloc[row], at, place))
            left_out["test without a metric"] += has_metrics and not metrics
            verdicts += [Verdict(scorer=name, key=None, value=value, **common) for name, value in metrics]
            key = "outcome" if has_metrics else None
            verdicts.append(Verdict(scorer=ALL, key=key, value=PASSED[status], aside=has_metrics, **common))
            if (score := _number(table.iat[row, at + 2], f"{place}, Score")) is not None:
                verdicts.append(Verdict(scorer=ALL, key="score", value=score, aside=True, **common))
    kept = "metrics" if has_metrics else "whether all assertions passed"
    said = f"{path.name} has {kept} and not each assertion, which `promptfoo eval --output results.json` keeps"
    return Log(TOOL, verdicts, +left_out, said)


def _models_of_header(header: Sequence[str]) -> list[tuple[str, int]]:
    """The models of a table, and the columns of their answers, which what was found of these follows."""
    places = [at for at in range(len(header)) if header[at + 1 : at + 4] == ["Status", "Score", "Named Scores"]]
    named = [PROMPT.fullmatch(header[at]) for at in places]
    given = [(match[1], match[2]) if match else ("", header[at]) for match, at in zip(named, places, strict=True)]
    prompts = _prompts((provider, at) for (provider, _), at in zip(given, places, strict=True))
    names = [_model(provider, label, at, prompts) for (provider, label), at in zip(given, places, strict=True)]
    labels = [name or label for name, (_, label) in zip(names, given, strict=True)]
    return list(zip(labels, places, strict=True))


def _metrics(header: Sequence[str], row: pd.Series, at: int, place: str) -> Iterator[tuple[str, float]]:
    """The metrics of an answer, in the columns from its named scores to the grader's reason."""
    for column in range(at + 4, len(header)):
        if not header[column].startswith(METRIC):
            return
        if (value := _number(row.iloc[column], f"{place}, {header[column]!r}")) is not None:
            yield header[column].removeprefix(METRIC), value


def _number(text: Any, place: str) -> float | None:
    if not isinstance(text, str):
        return None
    try:
        return float(text)
    except ValueError:
        raise AnnotationError(f"{place}: {text!r} is no number, as promptfoo writes a score") from None
