"""Logs of lm-evaluation-harness: ``samples_<task>_<date>.jsonl``, with ``results_<date>.json`` beside."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import AnnotationError
from ..json_files import first_record, numbered_lines
from .verdicts import Log, Verdict

TOOL = "lm-evaluation-harness"
NAME = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.-]+)\.jsonl")
RESULTS = re.compile(r"results_\d{4}-\d\d-\d\dT[\d.-]+\.json")
NEEDED = ("doc_id", "metrics", "filter")
SAMPLE = ("doc_id", "target", "resps", "filtered_resps")
"""Fields by which a file of another name is known."""

INVALID = "[invalid]"  # what a filter gives for a response in which it found no answer
VERSION = "0.4.13"
"""The version whose logs the tests have; a sample of an older one that lacks a field is refused."""


def is_harness_log(path: Path) -> bool:
    """Return whether a file has the name that lm-evaluation-harness gives to its samples, or begins with one."""
    return NAME.fullmatch(path.name) is not None or set(SAMPLE) <= first_record(path).keys()


def is_beside(path: Path) -> bool:
    """Return whether a file has the name that lm-evaluation-harness gives to the results beside its samples."""
    return RESULTS.fullmatch(path.name) is not None


def means_alone(path: Path) -> AnnotationError:
    """Make the error for results without samples."""
    return AnnotationError(
        f"{path} has results of {TOOL}, which are means over samples; evaluate with --log_samples, and give the folder "
        "with samples_<task>_<date>.jsonl in it"
    )


def read_harness_log(path: Path) -> Log:
    """Return the verdicts of a task's samples: of each metric and filter as a scorer.

    Metrics that are no number of one sample, such as those of perplexity, are left out. The name of a file that was
    renamed is taken as the model's.

    Raises:
        AnnotationError: a line is no JSON, or no sample that names its metrics and filter.
    """
    named = NAME.fullmatch(path.name)
    task, model = (named["task"], _model(path, named["date"])) if named else ("", path.name.partition(".jsonl")[0])
    verdicts: list[Verdict] = []
    left_out: Counter[str] = Counter()
    for number, sample in numbered_lines(path):
        if not isinstance(sample, Mapping) or not all(name in sample for name in NEEDED):
            raise AnnotationError(
                f"{path}, line {number}: a sample with {', '.join(NEEDED)} is needed, as lm-evaluation-harness writes "
                f"it in version {VERSION}; evaluate with that, or add them: metrics lists the names of the scores, and "
                "filter is 'none' where there is one"
            )
        names = sample["metrics"]
        if not isinstance(names, list) or not all(isinstance(name, str) and name in sample for name in names):
            raise AnnotationError(
                f"{path}, line {number}: metrics is to be a list of names in the sample, not {names!r}"
            )
        for name in names:
            value, by = sample[name], sample["filter"]
            if not isinstance(value, bool | int | float):
                left_out[f"value of {name!r} that is no number"] += 1
                continue
            scorer = name if by == "none" else f"{name},{by}"
            place = f"{path.name}, line {number}, scorer {scorer!r}"
            value = None if value != value else value
            of_sample: dict[str, Any] = {"answer": _answer(sample.get("filtered_resps")), "target": _target(sample)}
            verdicts.append(Verdict(place, task, sample["doc_id"], 1, model, scorer, None, value, **of_sample))
    said = f"{path.name} is not named as lm-evaluation-harness names it, and its model taken to be {model!r}"
    return Log(TOOL, verdicts, left_out, "" if named else said)


def _answer(responses: Any) -> str | None:
    """A model's answer as a filter read it: a text, or of several choices the number of the likeliest, from 0.

    It is empty where the filter found none; None where the responses are no answer, as of a text's likelihood alone.
    """
    if not isinstance(responses, list) or not responses:
        return None
    if isinstance(responses[0], str):
        return "" if responses[0] == INVALID else responses[0]
    if len(responses) < 2 or not all(isinstance(each, list) and len(each) == 2 for each in responses):
        return None
    try:
        likelihoods = [float(likelihood) for likelihood, _ in responses]
    except (TypeError, ValueError):
        return None
    return str(likelihoods.index(max(likelihoods)))


def _target(sample: Mapping[str, Any]) -> str | None:
    target = sample.get("target")
    is_one = isinstance(target, str | int) and not isinstance(target, bool) and target != ""
    return str(target) if is_one else None


def _model(path: Path, date: str) -> str:
    """The model's name: of the results of the same run, else of the folder, which bears it."""
    results = path.with_name(f"results_{date}.json")
    if results.is_file():
        try:
            name = json.loads(results.read_text(encoding="utf-8")).get("model_name")
        except (ValueError, AttributeError, RecursionError) as error:
            raise AnnotationError(f"{results}: it is no JSON of results: {error}; leave the file out") from None
        if isinstance(name, str) and name:
            return name
    return path.resolve().parent.name
