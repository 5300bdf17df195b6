"""Judgments of FastChat's llm_judge, as of MT-bench: of single answers (a log), and of pairs (comparisons)."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ..errors import AnnotationError
from ..json_files import first_record, numbered_lines
from .verdicts import Log, Verdict, scorer_name

TOOL = "FastChat llm_judge"
SINGLE = ("question_id", "model", "judge", "score")
PAIR = ("question_id", "model_1", "model_2", "judge", "g1_winner", "g2_winner")
SCORES_OF_PAIR = ("m1_score", "m2_score")  # of pairs whose winner has the higher score of two single judgments
UNPARSED = -1
"""The score of a judgment in which none was found."""

ERROR = "error"
"""The winner of a pair where none was found in the judgment."""

SIDES = {"model_1": "left", "model_2": "right", "tie": "tie", ERROR: ERROR}
EXCHANGED = {"left": "right", "right": "left"}


def is_judge_log(path: Path) -> bool:
    """Return whether a file has judgments of single answers, by its first line."""
    record = first_record(path)
    return all(name in record for name in SINGLE) and _is_judge(record["judge"])


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
        if not _is_judge(record["judge"]):
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


def are_judged_pairs(names: Iterable[Any]) -> bool:
    """Return whether a table or records with these columns have judgments of pairs, each in both orders."""
    return set(PAIR) <= set(names)


def pairs_judged(table: pd.DataFrame, what: str) -> tuple[pd.DataFrame, str]:
    """Return a row for each order in which a pair was judged, with its sides as they were shown, and what to say of it.

    The columns are model_1 and model_2, on the left and on the right, winner ("left", "right", "tie" or "error"), judge
    and question_id, with the turn. Pairs that were not judged together, but have the winner of two scores, have one
    row.

    Raises:
        AnnotationError: a winner is neither model, and no tie or error.
    """
    rows = []
    of_scores = set(SCORES_OF_PAIR) <= set(table.columns)
    for place, record in enumerate(table.to_dict("records")):
        prompt = turn_name(record["question_id"], record.get("turn"))
        judge = str(record["judge"][0] if _is_judge(record["judge"]) else record["judge"])
        one, two = str(record["model_1"]), str(record["model_2"])
        said = []
        for name in ("g1_winner", "g2_winner"):
            if record[name] not in SIDES:
                raise AnnotationError(
                    f"{what}, row {place}: {name} is {record[name]!r}; expected {', '.join(map(repr, SIDES))}"
                )
            said.append(SIDES[record[name]])
        rows.append((prompt, one, two, judge, said[0]))
        if not (of_scores and all(record[name] == record[name] for name in SCORES_OF_PAIR)):
            rows.append((prompt, two, one, judge, EXCHANGED.get(said[1], said[1])))
    found = pd.DataFrame(rows, columns=["question_id", "model_1", "model_2", "judge", "winner"])
    errors = int((found["winner"] == ERROR).sum())
    told = f"judgments of {TOOL}, in both orders (g2 with the sides exchanged), a prompt for each turn of a question"
    return found, told + (f"; {errors:,} × {ERROR!r} an abstention" if errors else "")


def turn_name(question: Any, turn: Any) -> str:
    """Return the name of a turn of a question: ``81, turn 1``; the question's alone where no turn is known."""
    known = turn is not None and turn == turn
    return f"{question}, turn {int(turn) if isinstance(turn, float) else turn}" if known else str(question)


def _is_judge(judge: Any) -> bool:
    return isinstance(judge, list | tuple) and len(judge) == 2 and all(isinstance(part, str) for part in judge)
