"""Exports as tables: crowdsourcing platforms, Label Studio's tables, answers to a form, and files of comparisons.

MTurk, Toloka, CrowdFlower, Appen and Zooniverse have a row for each annotation; a form has a row for each worker and a
column for each task; a file of comparisons has two columns of items, and one of which of both is better.
"""

import json
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from ..abstentions import abstentions_of
from ..annotations import Annotations
from ..arrays import groups_sharing
from ..column_names import INFER, NAMES, missing_column, named_for, plain, stem
from ..columns import row_number
from ..comparison_columns import find_comparison_columns, needed_comparison_columns, two_sides
from ..comparisons import OWN, ComparisonColumns, comparison_fields, more_than_ties
from ..description import count_text
from ..errors import AnnotationError
from ..id_text import listing
from ..nested import parsed_cells
from ..text import convert_text
from ..wide import MOST_VALUES, Wide, hashed, shares, tells_rows
from .eval_logs import held_of
from .gathered import Gathered, Held, chosen_question
from .json_tools import task_answers
from .known_columns import Asked, left_out
from .langfuse_scores import TRACES, read_traces, traces_of_table
from .langsmith_feedback import NEEDED, read_feedback
from .llm_judge import turn_name

OF_FORMS = (
    "timestamp", "zeitstempel", "horodateur", "marcatemporal", "starttime", "completiontime", "submittedat",
    "startdate", "enddate", "recordeddate", "datesubmitted",
)  # fmt: skip
"""Names that forms give to the column that says when a row was filled in."""
PEOPLE = ("email", "emailaddress", "responseid", "name")
"""Names that forms give to who filled in a row, beside the names of workers."""
ROLES = ("task", "worker", "label", "question")
TURN = "turn"  # of a conversation, as in the human judgments of MT-bench
OF_RAGAS = ({"user_input", "response"}, {"question", "answer", "contexts"})
"""Columns of RAGAS's results beside its metrics: those of today, and those of before version 0.2."""

EXAMPLES = ("inputs", "outputs")
"""Columns of a table of an experiment that LangSmith's page writes, whose cells are dictionaries."""

OF_RUN = re.compile(
    r"(run|example|dataset|session|trace)?(id|name|split|version)|status|error|latency|metadata|tags|.*"
    r"(tokens|cost|time|inputs?|outputs?|reference)"
)
"""Names, in plain letters, of columns of a run that no evaluator gave."""

OTHERS = ("columns", "outer")
"""Options that say that a table is something else."""


def read_tool_table(table: pd.DataFrame, what: str, question: str | None) -> Held | None:
    """Return what a table of a known tool holds; None where it is none that is known.

    Args:
        table: of text, NaN where a cell is empty.
        what: the file, for messages.
        question: the one that was asked for.

    Raises:
        AnnotationError: the tool is known, and the question is not, or an annotation cannot be used.
    """
    for columns, title, reader in READERS:
        if columns <= set(map(str, table.columns)):
            return reader(table, f"{what}: {title}", question)
    return None


def _zooniverse(table: pd.DataFrame, what: str, question: str | None) -> Held:
    given: list[dict[str, Any]] = []
    for row, text in enumerate(table["annotations"]):
        try:
            parts = json.loads(text) if isinstance(text, str) else []
            answers = {str(part["task"]): part.get("value") for part in parts}
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise AnnotationError(
                f"{what}, row {row}: annotations is {text!r:.60}; a list of dictionaries with task and value is "
                f"needed, as JSON ({error})"
            ) from None
        given.append({task: value for task, value in answers.items() if _are_choices(value)})
    asked = chosen_question(question, list(dict.fromkeys(task for answers in given for task in answers)), what)
    gathered = Gathered(what, asked)
    for row, (task, worker) in enumerate(_rows(table["subject_ids"], table["user_name"])):
        gathered.add(task, worker, given[row].get(asked), row_number(row))
    return gathered.held()


def _are_choices(value: Any) -> bool:
    """Return whether an answer is one choice, or several; marks in a picture are dictionaries."""
    return isinstance(value, str | int) or (isinstance(value, list) and all(isinstance(one, str) for one in value))


def _mturk(table: pd.DataFrame, what: str, question: str | None) -> Held:
    answers = _mturk_answers(table, what)
    question = None if question is None else question.removeprefix("Answer.").removesuffix(".label")
    asked = chosen_question(question, [str(name) for name in answers if is_question(answers[name])], what)
    gathered = Gathered(what, asked)
    status = _column(table, "AssignmentStatus")
    seconds = _column(table, "WorkTimeInSeconds")
    for row, (task, worker, label) in enumerate(_rows(table["HITId"], table["WorkerId"], answers[asked])):
        if status[row] == "Rejected":
            gathered.leave_out("rejected assignment")
        else:
            gathered.add(task, worker, label, row_number(row), seconds=seconds[row])
    return gathered.held()


def _mturk_answers(table: pd.DataFrame, what: str) -> pd.DataFrame:
    """The answers by question: of radio buttons that are a column each, and out of JSON."""
    found: dict[str, list[Any]] = {}
    for name in [column for column in map(str, table.columns) if column.startswith("Answer.")]:
        short, values = name.removeprefix("Answer."), table[name]
        if short == "taskAnswers":
            for row, text in enumerate(values):
                for key, value in task_answers(text, f"{what}, {row_number(row)}: Answer.taskAnswers"):
                    found.setdefault(key, [None] * len(table))[row] = value
            continue
        group, dot, option = short.rpartition(".")
        given = values.dropna().str.casefold()
        if dot and len(given) and given.isin(["true", "false"]).all() and option not in ("label",):
            chosen = found.setdefault(group, [None] * len(table))
            for row in np.flatnonzero(values.str.casefold() == "true").tolist():
                if chosen[row] is not None:
                    raise AnnotationError(
                        f"{what}, {row_number(row)}: Answer.{group} has {chosen[row]!r} and {option!r}; one is needed"
                    )
                chosen[row] = option
        else:
            found[short.removesuffix(".label")] = values.tolist()
    return pd.DataFrame(found, index=table.index, dtype=object)


def _toloka(table: pd.DataFrame, what: str, question: str | None) -> Held:
    outputs = [name.removeprefix("OUTPUT:") for name in map(str, table.columns) if name.startswith("OUTPUT:")]
    question = None if question is None else question.removeprefix("OUTPUT:")
    asked = chosen_question(question, [name for name in outputs if is_question(table[f"OUTPUT:{name}"])], what)
    gathered = Gathered(what, asked)
    inputs = [name for name in map(str, table.columns) if name.startswith("INPUT:")]
    if "ASSIGNMENT:task_id" in table:
        tasks = table["ASSIGNMENT:task_id"].tolist()
    elif inputs:
        tasks = table[inputs[0]].tolist() if len(inputs) == 1 else list(map(tuple, table[inputs].fillna("").to_numpy()))
    else:
        raise AnnotationError(f"{what}: neither ASSIGNMENT:task_id nor a column INPUT:… names the tasks")
    status = _column(table, "ASSIGNMENT:status")
    labels, gold = _together(table[f"OUTPUT:{asked}"], _column(table, f"GOLDEN:{asked}"))
    for row, (worker,) in enumerate(_rows(table["ASSIGNMENT:worker_id"])):
        gathered.add_gold(tasks[row], gold[row], row_number(row))
        if status[row] == "REJECTED":
            gathered.leave_out("rejected assignment")
        else:
            gathered.add(tasks[row], worker, labels[row], row_number(row))
    return gathered.held()


def _appen(table: pd.DataFrame, what: str, question: str | None) -> Held:
    if "_worker_id" not in table:
        raise AnnotationError(f"{what}: it has no column '_worker_id', so it is aggregated; export the full report")
    names = [name for name in map(str, table.columns) if not name.startswith("_")]
    with_gold = [name for name in names if f"{name}_gold" in table]
    others = [name for name in names if not name.endswith(("_gold", "_gold_reason", ":confidence"))]
    known = with_gold or [name for name in others if is_question(table[name])]
    asked = chosen_question(question, known if question is None else others, what)
    gathered = Gathered(what, asked)
    tainted = _column(table, "_tainted")
    labels, gold = _together(table[asked], _column(table, f"{asked}_gold"))
    several = set()
    for row, (task, worker) in enumerate(_rows(table["_unit_id"], table["_worker_id"])):
        if isinstance(gold[row], str) and "\n" in gold[row]:
            several.add(task)
        else:
            gathered.add_gold(task, gold[row], row_number(row))
        if str(tainted[row]).casefold() == "true":
            gathered.leave_out("tainted judgment")
        else:
            gathered.add(task, worker, labels[row], row_number(row))
    for _ in several:
        gathered.leave_out("gold label of several classes")
    return gathered.held()


def _label_studio(table: pd.DataFrame, what: str, question: str | None) -> Held:
    own = {"annotator", "annotation_id", "created_at", "updated_at", "lead_time", "id"}
    task = table["id"] if "id" in table else pd.Series(range(len(table)))
    others = [name for name in map(str, table.columns) if name not in own]
    known = [name for name in others if is_question(table[name]) and not _is_of_task(table[name], task)]
    asked = chosen_question(question, known, what)
    gathered = Gathered(what, asked)
    seconds = _column(table, "lead_time")
    for row, (name, worker, label) in enumerate(_rows(task, table["annotator"], table[asked])):
        gathered.add(name, worker, label, row_number(row), seconds=seconds[row])
    return gathered.held()


def _langsmith(table: pd.DataFrame, what: str, question: str | None) -> Held:
    names = [name for name in (*NEEDED, "value") if name in table]
    numbers = pd.to_numeric(table["score"], errors="coerce")
    if numbers.notna().equals(table["score"].notna()):
        table = table.assign(score=numbers)
    rows = _rows(*(table[name] for name in names))
    return read_feedback([dict(zip(names, row, strict=True)) for row in rows], what.rpartition(": ")[0], question)


def _mlflow(table: pd.DataFrame, what: str, question: str | None) -> Held:
    name = what.rpartition(": ")[0]
    return held_of([read_traces(traces_of_table(table), name)], name, question)


READERS: tuple[tuple[set[str] | frozenset[str], str, Callable[[pd.DataFrame, str, str | None], Held]], ...] = (
    ({"HITId", "WorkerId"}, "MTurk results", _mturk),
    ({"ASSIGNMENT:worker_id"}, "Toloka assignments", _toloka),
    ({"_unit_id"}, "CrowdFlower (Appen) report", _appen),
    (NEEDED, "feedback of LangSmith", _langsmith),
    (TRACES, "traces of MLflow", _mlflow),
    ({"annotator", "annotation_id"}, "Label Studio table", _label_studio),
    ({"classification_id", "user_name", "subject_ids", "annotations"}, "Zooniverse classifications", _zooniverse),
)
"""By columns that a tool's tables have, what messages call them, and what reads them."""


def is_question(values: pd.Series) -> bool:
    """Return whether a column's values may be classes: few, and used again."""
    given = values.dropna()
    if not len(given):
        return False
    try:
        n_distinct = given.nunique()
    except TypeError:  # lists
        n_distinct = given.astype(str).nunique()
    return bool(n_distinct <= min(MOST_VALUES, max(len(given) // 2, 2)))


def _is_of_task(values: pd.Series, task: pd.Series) -> bool:
    """Return whether each task has one value, which no other task has: its text, say."""
    pairs = pd.DataFrame({"task": task.to_numpy(), "value": values.astype(str).to_numpy()}).drop_duplicates()
    return bool(pairs["task"].is_unique and pairs["value"].is_unique)


def _rows(*columns: Sequence[Any] | pd.Series) -> Iterable[tuple[Any, ...]]:
    """The rows of some columns; those of text become whole numbers where all values are."""
    given: list[list[Any]] = []
    for column in columns:
        series = pd.Series(column)
        is_text = series.dropna().map(lambda value: isinstance(value, str)).all()
        given.append((convert_text(series)[0] if is_text else series).tolist())
    return zip(*given, strict=True)


def _together(labels: pd.Series, gold: list[Any]) -> tuple[list[Any], list[Any]]:
    """Annotations and gold labels, as whole numbers where all of both are; None where a cell is empty."""
    pair = [pd.Series(column, dtype=object).reset_index(drop=True) for column in (labels, gold)]
    return tuple([None if v != v else v for v in column] for column in convert_text(*pair))  # type: ignore[return-value]


def _column(table: pd.DataFrame, name: str) -> list[Any]:
    """A column's values; None where a cell is empty, and in each row where there is no such column."""
    if name not in table:
        return [None] * len(table)
    return [None if value != value else value for value in table[name].tolist()]


def form_roles(table: pd.DataFrame, what: str, *, worker: str | None, asked: bool) -> Wide | None:
    """Return the columns of a table with a row for each worker, or None where it is none.

    It is taken for one where no column is named as tasks or labels are, and one says when the row was filled in, or is
    named as workers are with another value in each row. The columns of tasks share their values; of two scales that
    share none, the one of more columns is taken.

    Args:
        table: the table.
        what: the table, for messages.
        worker: the column of workers; None for the one that is known by its name.
        asked: whether it was said that the columns are tasks.

    Raises:
        AnnotationError: there is no such column, none tells the workers, or less than two are of tasks.
    """
    names = [str(name) for name in table.columns]
    if worker is not None and worker not in names:
        if not asked:
            return None  # what looks for the columns of a row for each annotation says what is wrong
        raise missing_column(worker, "worker", names, what)
    stamps = [name for name in names if plain(name) in OF_FORMS]
    people = [name for name in names if stem(name) in NAMES["worker"] or plain(name) in PEOPLE]
    people.sort(key=lambda name: stem(name) not in NAMES["worker"])
    if not asked:
        free = [name for name in names if plain(name) not in ("id", *PEOPLE)]
        of_rows = any(stem(name) in (*NAMES["task"], *NAMES["label"]) for name in free)
        named = [worker] if worker else [name for name in people if stem(name) in NAMES["worker"]]
        if of_rows or not (stamps or named) or not all(tells_rows(table[name]) for name in named[:1]):
            return None
    alone, of_time = ([name for name in of if tells_rows(table[name])] for of in (people, stamps))
    mostly = [name for name in people if 2 * table[name].nunique() > len(table)]  # who answers again is one worker
    repeated = [name for name in people if asked and table[name].notna().all()]
    worker = worker or next(iter(alone + mostly + of_time + repeated), None)
    free = [name for name in names if name not in (worker, *people, *stamps) and plain(name) != "id"]
    tasks = _of_one_scale(table[free])
    if len(tasks) < 2 or worker is None:
        if not asked:
            return None
        lacking = "no column of workers; name it by worker='COL'" if worker is None else "no two columns of few labels"
        raise AnnotationError(f"columns='tasks': {what} has {lacking}")
    return Wide(worker, tasks, tuple(name for name in names if name != worker and name not in tasks))


def without_import_rows(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table without the two rows that Qualtrics puts below the header: the questions' texts and ImportIds."""
    second = table.iloc[1:2].to_numpy().ravel()
    is_of_ids = any(isinstance(value, str) and value.startswith('{"ImportId"') for value in second)
    return table.iloc[2:].reset_index(drop=True) if is_of_ids else table


def _of_one_scale(table: pd.DataFrame) -> tuple[str, ...]:
    """The columns of labels: the most that share their values with each other."""
    found: dict[str, set[Hashable]] = {str(name): set(map(hashed, column.dropna())) for name, column in table.items()}
    found = {name: values for name, values in found.items() if 0 < len(values) <= MOST_VALUES}
    alike = [name for name, values in found.items() if shares(values, name, found)]
    scales = groups_sharing([found[name] for name in alike])
    return tuple(alike[at] for at in max(scales, key=len, default=[]))


def refuse_metrics(table: pd.DataFrame, what: str) -> None:
    """Refuse results of RAGAS, whose metrics are real numbers from 0 to 1, of no worker.

    Raises:
        AnnotationError: they are such; the message has the code that makes classes of them.
    """
    of_ragas = next((names for names in OF_RAGAS if names <= set(table.columns)), None)
    if of_ragas is None or named_for("worker", list(table.columns)):
        return
    numbers = {str(name): pd.to_numeric(table[name], errors="coerce") for name in table if name not in of_ragas}
    metrics = [name for name, each in numbers.items() if each.between(0, 1).any() and not (each > 1).any()]
    if not any((numbers[name] % 1 > 0).any() for name in metrics):
        return
    task = min(of_ragas & {"user_input", "question"})
    raise AnnotationError(
        f"{what} has results of RAGAS: scores from 0 to 1 in {listing(metrics, len(metrics))}, and annotations are "
        f"classes. Make steps of them, such as 0 to 4: table[{metrics}] = (table[{metrics}] * 4).round(). Then read it "
        f"with each metric a question: worker=None and task={task!r}, question={metrics}. Tables of several judges "
        "stand below each other (pd.concat), with a column 'worker' in the place of worker=None"
    )


def refuse_examples(table: pd.DataFrame, what: str) -> None:
    """Refuse an experiment of LangSmith that its page wrote: evaluators' columns among others of each run.

    Raises:
        AnnotationError: it is one; the message has the code that takes the evaluators' columns.
    """
    names = list(map(str, table.columns))
    if not set(EXAMPLES) <= set(names) or not any(parsed_cells(table[name]) for name in EXAMPLES):
        return
    free = [name for name in names if not OF_RUN.fullmatch(plain(name))]
    evaluators = [name for name in free if is_question(table[name])] or ["correctness", "conciseness"]
    example = next((name for name in ("example_id", "id") if name in names), "inputs")
    columns = [example, *evaluators]
    has_failed = "error" in names and table["error"].notna().any()
    runs = f".loc[lambda runs: runs['error'].isna(), {columns}]" if has_failed else f"[{columns}]"
    raise AnnotationError(
        f"{what} has examples of LangSmith, and what evaluators gave beside what else is known of a run: take the "
        f"columns of evaluators that share a scale{', of the runs without an error' if has_failed else ''}, "
        f"cp.read(pd.read_csv({what!r}){runs}, columns='workers')"
    )


def comparison_roles(table: pd.DataFrame, what: str, asked: Asked) -> ComparisonColumns | None:
    """Return the columns of a table of comparisons; None where it is none, or was said to be something else.

    Raises:
        AnnotationError: it was said to be one, and is none.
    """
    roles = asked.roles | {"question": INFER if asked.question is None else asked.question}
    named = {role: name for role, name in roles.items() if role in ROLES and name != INFER}
    question = named.get("question", INFER)
    several = isinstance(question, list | tuple)
    if not set(question if several else [question]) <= {INFER, *table.columns}:
        return None
    about: dict[str, Any] = {"given": named, "abstain": abstentions_of(asked.options.get("abstain"))}
    about["looks"] = asked.looks
    about["meaning"] = asked.meaning
    if asked.comparisons or asked.meaning or asked.preferences:
        return needed_comparison_columns(table, what, **about)
    if any(getattr(asked, name) is not None for name in OTHERS):
        return None
    found = find_comparison_columns(table, **about)
    has_tasks = found is not None and (found.task or found.prompt) is not None
    return None if has_tasks and asked.options.get("ordered") is not None else found


def compared_annotations(
    table: pd.DataFrame, found: ComparisonColumns, what: str, asked: Asked
) -> tuple[Annotations, str]:
    """Return the annotations of a table of comparisons, and what was taken for what.

    Raises:
        AnnotationError: as :meth:`.Annotations.from_comparisons`, with the table.
    """
    names = [found.left, found.right, *found.answers, found.worker, found.task, found.prompt]
    of_questions = found.question if isinstance(found.question, str) else None
    columns = {name: table[name] for name in (*names, of_questions) if name is not None}
    turns = _turns(table, found, what) if "task" not in asked.named else None
    if turns is not None and found.prompt is not None:
        columns[found.prompt] = turns
    others = (asked.count, asked.seconds, asked.options.get("when"))
    columns |= {name: table[name] for name in others if name is not None and name in table}
    of_numbers: list[list[str | None]] = [[found.left, found.right], [found.worker], [found.task], [found.prompt]]
    of_numbers.append([of_questions])
    for same in of_numbers:
        texts = [columns[name] for name in same if name is not None]
        if texts and all(isinstance(value, str) for column in texts for value in column.dropna()):
            columns |= dict(zip([name for name in same if name is not None], convert_text(*texts), strict=True))
    items = {str(item): item for side in (found.left, found.right) for item in columns[side].dropna().unique()}
    for name in found.answers:
        columns[name] = columns[name].map(lambda value: items.get(value, value), na_action="ignore")
    options = dict(asked.options)
    when = options.pop("when", None)
    try:
        fields = comparison_fields(
            pd.DataFrame(columns),
            replace(
                found,
                label="label" if len(found.answers) > 1 else found.label,
                count=asked.count,
                seconds=None if asked.seconds == INFER else asked.seconds,
                when=when,
            ),
            abstain=options.pop("abstain", None),
            meaning=asked.meaning,
            preferences=asked.preferences,
            item_features=asked.item_features,
            gold=asked.truth,
            **options,
        )
    except AnnotationError as error:
        other = "" if asked.comparisons else f"; where {found.label!r} has classes like any other: comparisons=False"
        raise AnnotationError(f"{what}: {error}{other}") from None
    annotations = Annotations(**fields)
    given = (value for name in found.answers for value in columns[name].dropna().unique())
    bad = more_than_ties(given, [*(asked.meaning or ()), *abstentions_of(asked.options.get("abstain"))])
    ties = f", {' and '.join(map(repr, bad))} as a tie" if bad else ""
    pairs = np.unique(np.sort(np.asarray(annotations.sides), axis=1), axis=0)
    sizes = f"{count_text(annotations.n_annotations, 'comparison')} of {count_text(len(annotations.items), 'item')}, "
    sizes += f"{count_text(len(pairs), 'pair')}, "
    sizes += count_text(annotations.n_workers, "worker") if annotations.named else "workers not named"
    sizes += f", {count_text(len(annotations.questions), 'question')}" if len(annotations.questions) else ""
    of_turns = "" if turns is None else f", each {TURN!r} of which is a prompt of its own"
    used = [*columns, *([] if turns is None else [TURN])]
    rest = left_out(table.columns, used, takes_gold=False, takes_when=when is None and annotations.named)
    of_turns += "" if when is None else f", when {when!r}"
    own = f"; {OWN}" if annotations.preferences and asked.preferences is None else ""
    return annotations, f"{what}: comparisons ({found.said()}{of_turns}{ties}): {sizes}{rest}{own}"


def _turns(table: pd.DataFrame, found: ComparisonColumns, what: str) -> pd.Series | None:
    """The prompts with their turns, where a prompt has several; None where turns are no part of the prompts.

    Raises:
        AnnotationError: a row is without its turn.
    """
    if found.prompt is None or TURN not in table or table.groupby(found.prompt)[TURN].nunique().max() < 2:
        return None
    if (empty := np.flatnonzero(table[TURN].isna())).size:
        raise AnnotationError(
            f"{what}: column {TURN!r}, row {empty[0]}: there is no turn, and prompts have several; add it, or take all "
            f"turns for one prompt by task={found.prompt!r}"
        )
    return pd.Series(list(map(turn_name, table[found.prompt], table[TURN])), table.index, dtype=object)


def not_compared(table: pd.DataFrame, asked: Asked) -> str:
    """Return that two columns named like items are not compared, and what says that they are; nothing without such."""
    sides = two_sides([str(name) for name in table.columns]) if asked.comparisons is None else None
    return f"; {sides[0]!r} and {sides[1]!r} are not compared (comparisons=True says that they are)" if sides else ""
