"""Judgments of single answers by FastChat's llm_judge, as of MT-bench."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import AnnotationError
from ..json_files import first_record, numbered_lines
from .verdicts import Log, Verdict, scorer_name

TOOL = "FastChat llm_judge"
SINGLE = ("question_id", "model", "judge", "score")
UNPARSED = -1
"""The score of a judgment in which none was found."""


def is_judge_log(path: Path) -> bool:
    """Return whether a file has judgments of single answers, by its first line."""
    record = first_record(path)
    return all(name in record for name in SINGLE) and is_judge(record["judge"])


def read_judge_log(path: Path) -> Log:
    """Return the verdicts of judgments of single answers.

    A sample is a turn of a question, a scorer a judge. Where a judge has judged one answer by several templates, the
    template is part of the scorer's name. An answer that is judged again is an epoch of it.

    Raises:
        AnnotationError: a line is no JSON, or no judgment of a single answer.
    """
    rows: list[tuple[int, str, str, str, str, Any]] = []
    templates: dict[tuple[str, str, str], set[str]] = {}
    for number, record in numbered_lines(path):
        where = f"{path}, line {number}"
        if not isinstance(record, Mapping) or not all(name in record for name in SINGLE):
            raise AnnotationError(f"{where}: a judgment with {', '.join(SINGLE)} is needed, as llm_judge writes it")
        if not is_judge(record["judge"]):
            raise AnnotationError(
                f"{where}: judge is {record['judge']!r}; a list of a judge's name and a template's is needed"
            )
        score = record["score"]
        if not isinstance(score, int | float) or isinstance(score, bool):
            raise AnnotationError(f"{where}: score is {score!r}; a number is needed, {UNPARSED} where there is none")
        sample, model = turn_name(record["question_id"], record.get("turn")), str(record["model"])
        judge, template = record["judge"]
        rows.append((number, sample, model, judge, template, score))
        templates.setdefault((sample, model, judge), set()).add(template)
    with_template = {judge for (_, _, judge), used in templates.items() if len(used) > 1}
    times: Counter[tuple[str, str, str]] = Counter()
    verdicts = []
    for number, sample, model, judge, template, score in rows:
        scorer = scorer_name(judge, template if judge in with_template else None)
        times[sample, model, scorer] += 1
        verdicts.append(
            Verdict(
                place=f"{path.name}, line {number}",
                suite=TOOL,
                sample=sample,
                epoch=times[sample, model, scorer],
                model=model,
                scorer=scorer,
                key=None,
                value=None if score == UNPARSED or score != score else score,
            )
        )
    unparsed = sum(verdict.value is None for verdict in verdicts)
    said = f"a sample is a turn of a question, a scorer a judge{' by its template' if with_template else ''}"
    return Log(TOOL, verdicts, said=said + (f", and the score {UNPARSED} is no verdict" if unparsed else ""))


def turn_name(question: Any, turn: Any) -> str:
    """Return the name of a turn of a question: ``81, turn 1``; the question's alone where no turn is known."""
    known = turn is not None and turn == turn
    return f"{question}, turn {int(turn) if isinstance(turn, float) else turn}" if known else str(question)


def is_judge(judge: Any) -> bool:
    """Return whether a value is what llm_judge calls a judge: a model's name and a template's."""
    return isinstance(judge, list | tuple) and len(judge) == 2 and all(isinstance(part, str) for part in judge)
