"""Test runs of deepeval: ``.latest_run_full.json`` or ``.latest_test_run.json`` in its folder ``.deepeval``.

In its results folder they are ``test_run_<date>.json``.
"""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from ..errors import AnnotationError
from ..json_files import read_json
from ..text_files import start_of_text, suffix_of
from .verdicts import LARGEST, Log, Verdict, scorer_name

TOOL = "deepeval"
RUN = "testRunData"
"""The key of a run in a file that has more, such as its link."""

_TEXTS = rb'\s*\{\s*("\w+"\s*:\s*("[^"]*"|null)\s*,\s*)*'  # the start of a dictionary, and values that are text
START = re.compile(_TEXTS + rb'("' + RUN.encode() + rb'"\s*:' + _TEXTS + rb')?"testCases"\s*:\s*\[')
CASES = ("testCases", "conversationalTestCases")


def is_deepeval_log(path: Path) -> bool:
    """Return whether a file is a test run of deepeval, by how its JSON begins."""
    return suffix_of(path) == ".json" and START.match(start_of_text(path, 1024)) is not None


def read_deepeval_log(path: Path) -> Log:
    """Return the verdicts of a test run: each metric is a scorer, with its judge; whether it succeeded its verdict.

    The model under test is the hyperparameter ``model``, else the run's identifier, else the file's name.

    Raises:
        AnnotationError: the file cannot be read, or a test case lacks what is needed.
    """
    run = read_json(path, largest=LARGEST)
    if not isinstance(run, Mapping):
        raise AnnotationError(f"{path} is no test run of deepeval: a dictionary with testCases is needed")
    run = run[RUN] if isinstance(run.get(RUN), Mapping) else run
    given = run.get("hyperparameters")
    settings = {str(name).lower(): value for name, value in given.items()} if isinstance(given, Mapping) else {}
    model = str(settings.get("model") or run.get("identifier") or path.stem)
    suite = str(run.get("datasetAlias") or run.get("testFile") or TOOL)
    verdicts: list[Verdict] = []
    left_out: Counter[str] = Counter()
    for kind in CASES:
        cases = run.get(kind) or []
        if not isinstance(cases, list):
            raise AnnotationError(f"{path}: {kind} is a {type(cases).__name__}; a list is needed")
        for number, case in enumerate(cases):
            metrics = case.get("metricsData") if isinstance(case, Mapping) else None
            if not isinstance(case, Mapping) or not isinstance(case.get("name"), str):
                raise AnnotationError(f"{path}, {kind}[{number}]: a test case with a name is needed")
            if not metrics:
                left_out["test case without metrics"] += 1
                continue
            if not isinstance(metrics, list) or not all(isinstance(each, Mapping) for each in metrics):
                raise AnnotationError(f"{path}, {kind}[{number}]: metricsData is to be a list of metrics")
            for metric in metrics:
                scorer = scorer_name(str(metric.get("name")), metric.get("evaluationModel"))
                failed = metric.get("error") is not None
                common = {"suite": suite, "sample": case["name"], "epoch": 1, "model": model, "scorer": scorer}
                common |= {"place": f"{path.name}, {case['name']!r}, scorer {scorer!r}"}
                verdicts.append(Verdict(key=None, value=None if failed else metric.get("success"), **common))
                if not failed and isinstance(metric.get("score"), int | float):
                    verdicts.append(Verdict(key="score", value=metric["score"], aside=True, **common))
    return Log(TOOL, verdicts, left_out)
