"""Logs of evaluations as annotations: what is a task, a worker and a label there."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from ..description import count_text
from ..errors import AnnotationError, check_name, warn
from ..id_text import listing
from ..lazy import uncollected
from ..text_files import suffix_of
from .deepeval_logs import is_deepeval_log, read_deepeval_log
from .experiment_records import is_experiment, read_experiment
from .gathered import Held
from .harness_logs import is_harness_log, read_harness_log
from .inspect_logs import TOOL as INSPECT
from .inspect_logs import is_inspect_log, read_inspect_log
from .langfuse_scores import is_langfuse_log, read_langfuse_log
from .llm_judge import is_judge_log, read_judge_log
from .openai_logs import is_openai_log, read_openai_log
from .opening import TEXT
from .promptfoo_logs import is_promptfoo_log, read_promptfoo_log
from .scorer_scales import (
    NO_ANSWER,
    UNREADABLE,
    beside_yes_or_no,
    chosen_questions,
    in_order,
    in_order_by_question,
    question_of,
    scales_of,
)
from .verdicts import TASKS, Log, Verdict, task_name

READERS: tuple[tuple[Callable[[Path], bool], Callable[[Path], Log]], ...] = (
    (is_inspect_log, read_inspect_log),
    (is_harness_log, read_harness_log),
    (is_promptfoo_log, read_promptfoo_log),
    (is_openai_log, read_openai_log),
    (is_deepeval_log, read_deepeval_log),
    (is_langfuse_log, read_langfuse_log),
    (is_judge_log, read_judge_log),
    (is_experiment, read_experiment),
)
"""By format, whether a file is one, and what reads it."""

WORKERS = ("scorer", "model")
RIGHT = (1, "C")  # of a scorer of answers
MOST_NAMED = 11  # labels that are numbers are named where they are no more
LOOKED_AT = 1000  # tasks whose epochs are compared
ENOUGH, MARGIN, ERRORS = 20, 0.05, 3  # tasks, excess of the agreement, and its standard errors, to warn of


BY = " @ "
"""Between a sample and the model that answered it, in the name of a task."""


def is_log(path: Path) -> bool:
    """Return whether a file is a log of an evaluation that is known."""
    return any(is_of(path) for is_of, _ in READERS)


def read_logs(
    files: Sequence[Path],
    what: str,
    question: Any,
    tasks: str | None,
    workers: str | None,
    *,
    no_answer: bool,
    others: Sequence[Path] = (),
) -> Held:
    """Return the annotations in logs of evaluations.

    A task is a sample, and where several models are under test a model's answer to a sample; a worker is a scorer.
    Epochs are repeats, as several logs of one evaluation are; a sample that a retried log has again is read once.

    Args:
        files: the logs.
        what: where they are, for messages.
        question: of scorers that give several values, or values of different scales, the one to read, or several; None
            where there is one.
        tasks: what a task is: a ``"sample"`` whichever model answers it, a model's ``"answer"`` to it, or the answer of
            one ``"epoch"``; None to find out.
        workers: who annotates: ``"scorer"``, or ``"model"`` for the models under test, whose labels are their answers
            and whose gold labels are the samples' targets; None for scorers.
        no_answer: whether the verdict ``N`` stays; else it is ``I``.
        others: the other files there are.

    Raises:
        AnnotationError: a log cannot be read, or there is more than one question and none is named.
    """
    kept = _without_tables_beside(files)
    with uncollected():
        logs = [next(read for is_of, read in READERS if is_of(path))(path) for path in kept]
        if len(kept) < len(files):
            left_out = Counter({"table beside results of the same name": len(files) - len(kept)})
            logs[0] = replace(logs[0], left_out=logs[0].left_out + left_out)
        return held_of(logs, what, question, tasks, workers, no_answer=no_answer, others=others)


def _without_tables_beside(files: Sequence[Path]) -> list[Path]:
    """The files without tables that a tool wrote beside its results, which have the same name and more in them."""
    whole = {path.with_suffix("") for path in files if suffix_of(path) not in TEXT}
    return [path for path in files if suffix_of(path) not in TEXT or path.with_suffix("") not in whole]


def held_of(
    logs: Sequence[Log],
    what: str,
    question: Any,
    tasks: str | None = None,
    workers: str | None = None,
    *,
    no_answer: bool = False,
    others: Sequence[Path] = (),
) -> Held:
    """Return the annotations in logs that were read: see :func:`read_logs`."""
    for name, value, known in (("tasks", tasks, TASKS), ("workers", workers, WORKERS)):
        if value is not None:
            check_name(f"value of {name}", value, known)
    verdicts, n_again = _once([_checked(verdict) for log in logs for verdict in log.verdicts])
    verdicts, empty = _with_scores(verdicts)
    kinds = Counter(log.tool for log in logs)
    what = f"{what}: {' and '.join(count_text(n, f'log of {tool}') for tool, n in kinds.items())}"
    left_out = sum((log.left_out for log in logs), Counter[str]())
    notes = list(dict.fromkeys(log.said for log in logs if log.said))
    notes += [f"{count_text(n_again, 'score')} again in another log left out"] if n_again else []
    notes += [f"{count_text(n, kind)} left out" for kind, n in left_out.items()]
    notes += [f"{listing(empty, 3)} left out, as it has no score"] if empty else []
    notes += [f"{count_text(len(others), 'other file')} left out: {listing([file.name for file in others], 3)}"] * bool(
        others
    )
    notes += _of_several_tools(logs)
    if not verdicts:
        said = f" ({'; '.join(notes)})" if notes else ""
        of_inspect = ", or `inspect score` the logs" if INSPECT in kinds else ""
        raise AnnotationError(f"{what}: there is no score{said}; evaluate with a scorer{of_inspect}")
    if workers == "model":
        return _answers(verdicts, what, question, tasks, notes)
    return _verdicts(verdicts, what, question, tasks, notes, no_answer=no_answer)


def _with_scores(verdicts: list[Verdict]) -> tuple[list[Verdict], list[str]]:
    """The verdicts without those of a key that has no score anywhere, beside others, and these keys."""
    scored = {verdict.key for verdict in verdicts if verdict.value is not None}
    empty = [key for key in dict.fromkeys(verdict.key for verdict in verdicts) if key is not None and key not in scored]
    return (
        [verdict for verdict in verdicts if verdict.key not in empty] if scored else verdicts
    ), empty if scored else []


def _of_several_tools(logs: Sequence[Log]) -> list[str]:
    """A sentence on scorers that have one name in logs of several tools; none where there are no such."""
    tools: dict[str, set[str]] = {}
    for log in logs:
        for verdict in log.verdicts:
            tools.setdefault(verdict.scorer, set()).add(log.tool)
    shared = [name for name, of in tools.items() if len(of) > 1]
    return [f"one worker in logs of several tools: {listing(shared, 3)}"] if shared else []


def _checked(verdict: Verdict) -> Verdict:
    """The verdict, whose sample is a name and whose value may be a label.

    Raises:
        AnnotationError: they are not.
    """
    if not isinstance(verdict.sample, str | int | float | None):
        raise AnnotationError(f"{verdict.place}: the sample is {verdict.sample!r}; text or a number is needed")
    if not isinstance(verdict.value, str | bool | int | float | None):
        raise AnnotationError(
            f"{verdict.place}: the value {verdict.value!r} is no label; text, a number, true or false is needed"
        )
    return verdict


def _once(verdicts: Sequence[Verdict]) -> tuple[list[Verdict], int]:
    """The verdicts, those on an answer that several logs have from the first of them; how many were left out."""
    seen: dict[Any, Verdict] = {}
    for number, verdict in enumerate(verdicts):
        of = (verdict.uuid, verdict.scorer, verdict.key) if verdict.uuid is not None else number
        seen.setdefault(of, verdict)
    return list(seen.values()), len(verdicts) - len(seen)


def _verdicts(
    verdicts: Sequence[Verdict], what: str, question: Any, tasks: str | None, notes: list[str], *, no_answer: bool
) -> Held:
    """The annotations of models' answers by scorers."""
    asides = {verdict.key for verdict in verdicts if verdict.aside}
    named = question if isinstance(question, list | tuple) else (question,)
    if not asides & set(named):
        verdicts = [verdict for verdict in verdicts if not verdict.aside]
        notes = notes + [f"question={name!r} reads the {name}s" for name in sorted(map(str, asides))]
    scales = scales_of(verdicts)
    by_name = set(named) - {question_of(verdict, scales) for verdict in verdicts}  # scorers that are asked for
    if by_name & {verdict.scorer for verdict in verdicts}:
        verdicts = [v._replace(key=v.scorer) if v.key is None and v.scorer in by_name else v for v in verdicts]
        scales = scales_of(verdicts)
    chosen = chosen_questions(question, verdicts, scales, what)
    kept = [verdict for verdict in verdicts if question_of(verdict, scales) in chosen]
    several_models = len({verdict.model for verdict in kept}) > 1
    finds_out = tasks is None
    tasks = tasks or ("answer" if several_models else "sample")
    of_model = several_models and tasks == "sample"
    rows, places, scorers, models = [], [], dict[str, None](), dict[str, None]()
    name_of = _task_names(kept, tasks)
    no_answers = 0
    for verdict in kept:
        scale = scales[verdict.scorer, verdict.key]
        worker = f"{verdict.model}: {verdict.scorer}" if of_model else verdict.scorer
        no_answers += scale.name == "verdict" and verdict.value == NO_ANSWER and not no_answer
        label = scale.label(verdict.value, no_answer=no_answer)
        rows.append((name_of(verdict), worker, question_of(verdict, scales), label))
        places.append(verdict.place)
        scorers[verdict.scorer], models[verdict.model] = None, None
    frame = pd.DataFrame(rows, columns=["task", "worker", "question", "label"], dtype=object)
    if any(isinstance(label, float) and label % 1 for label in frame["label"]):  # beside which 1 and 1.0 are one number
        frame["label"] = frame["label"].map(lambda label: float(label) if type(label) is int else label).astype(object)
    task = {"sample": "a sample", "answer": "a model's answer to a sample", "epoch": "an answer of one epoch"}[tasks]
    suites = len({verdict.suite for verdict in kept})
    of_models = f" of {count_text(len(models), 'model')}" if all(models) else ""
    of_models += f" in {suites} evaluations" if suites > 1 else ""
    said = [f"task = {task} ({count_text(frame['task'].nunique(), 'task')}{of_models})"]
    said += [f"worker = {'a model and its' if of_model else 'a'} scorer ({', '.join(scorers)})"]
    numbers = {type(label) for label in frame["label"]} - {str}
    used = set(frame["label"])
    by_scorer = len(chosen) > 1 and any(verdict.key == verdict.scorer for verdict in kept)
    order = None if by_scorer else in_order(used - {UNREADABLE})  # each scorer's scale is its own
    by_question = {} if order else in_order_by_question(frame)
    if order and (scores := beside_yes_or_no(kept, scales)):
        order, by_question = None, in_order_by_question(frame.assign(question=frame["question"].isin(scores)))
        by_question = dict.fromkeys(scores, by_question[True]) if True in by_question else {}
    names = order or sorted(used - {UNREADABLE}, key=str)
    if by_question:
        each = [f"{name} {' < '.join(map(str, classes))}" for name, classes in by_question.items()]
        said += [f"label = the scorer's verdict, in the order {', '.join(each)}"]
    elif len(names) <= MOST_NAMED or not numbers:
        said += [f"label = the scorer's verdict ({(' < ' if order else ', ').join(map(str, names))})"]
    else:
        said += [f"label = score, from {names[0]} to {names[-1]}"]
    if no_answers:
        said += [f"{NO_ANSWER}, no answer by the model, is I {_times(no_answers)} (abstain='N' makes it an abstention)"]
    if len(chosen) == 1:
        _warn_of_ranges(frame.assign(scorer=[verdict.scorer for verdict in kept]), what)
    if finds_out:
        _warn_of_epochs(frame.assign(epoch=[verdict.epoch for verdict in kept]), what)
    return _held(
        what, frame, [*said, *_repeated(kept, tasks), *notes], places, order or by_question, several=len(chosen) > 1
    )


def _warn_of_ranges(frame: pd.DataFrame, what: str) -> None:
    """Warn where a scorer's greatest score is at most half of another's, as where one has 5 steps and the other 10."""
    scores = frame[[isinstance(label, int | float) for label in frame["label"]]]
    by_scorer = scores.groupby("scorer", sort=False)["label"].agg(["min", "max", "size"])
    by_scorer = by_scorer[by_scorer["size"] >= ENOUGH]
    if len(by_scorer) < 2 or by_scorer["max"].max() < max(2 * by_scorer["max"].min(), 3):
        return
    least, most = (by_scorer.loc[by_scorer["max"].astype(float).agg(of)] for of in ("idxmin", "idxmax"))
    warn(
        f"{what}: {least.name!r} gives {least['min']} to {least['max']} and {most.name!r} {most['min']} to "
        f"{most['max']}, and they are read as scores of one scale; where each has its own, question={[least.name]!r} "
        f"reads one, and question={[least.name, most.name]!r} makes a question of each"
    )


def _warn_of_epochs(frame: pd.DataFrame, what: str) -> None:
    """Warn where scorers agree more on one epoch's answer than across epochs: the answers differ in their truth.

    The first two epochs of some tasks are looked at.

    Args:
        frame: a row for each annotation: task, worker, question, label and epoch.
        what: where they are, for messages.
    """
    frame = frame[frame["label"] != UNREADABLE]
    of_task = frame.groupby(["task", "question"], sort=False, dropna=False)
    frame = frame[(of_task["epoch"].rank("dense") <= 2) & (of_task.ngroup() < LOOKED_AT)]
    pairs = frame.merge(frame, on=["task", "question"])
    pairs = pairs[pairs["worker_x"] < pairs["worker_y"]]
    same = pairs["label_x"] == pairs["label_y"]
    one = pairs["epoch_x"] == pairs["epoch_y"]
    by_task = [same[which].groupby([pairs["task"][which], pairs["question"][which]]).mean() for which in (one, ~one)]
    rates = pd.concat(by_task, axis=1, join="inner").to_numpy(dtype=float)
    if len(rates) < ENOUGH:
        return
    excess = rates[:, 0] - rates[:, 1]
    if excess.mean() > max(MARGIN, ERRORS * excess.std() / len(excess) ** 0.5):
        within, across = rates.mean(0)
        warn(
            f"{what}: two scorers agree in {within:.0%} where they judge one epoch's answer, and in {across:.0%} where "
            "they judge those of two: answers of one sample differ, and one truth for all of them makes good scorers "
            "look bad; tasks='epoch' gives each answer its own"
        )


def _answers(verdicts: Sequence[Verdict], what: str, question: Any, tasks: str | None, notes: list[str]) -> Held:
    """The answers of models, as a scorer read them: the one that is named, else in each evaluation the first that did.

    Gold labels are the samples' targets. One that no model gave, as where it is in words, is the answer that was scored
    as right, where one was.
    """
    if tasks not in (None, "sample"):
        raise AnnotationError(
            f"{what}: workers='model' takes the models' answers to samples; leave tasks={tasks!r} out"
        )
    reads = list(dict.fromkeys(verdict.scorer for verdict in verdicts if verdict.answer is not None))
    if not reads:
        raise AnnotationError(f"{what}: no scorer has the models' answers; give workers='scorer'")
    if question is not None and question not in reads:
        raise AnnotationError(
            f"{what}: workers='model' takes the models' answers as one scorer read them, and {question!r} is none of "
            f"{', '.join(map(repr, reads))}"
        )
    of_suite: dict[str, str] = {}
    for verdict in verdicts:
        if verdict.answer is not None and question in (None, verdict.scorer):
            of_suite.setdefault(verdict.suite, verdict.scorer)
    kept = _one_each([verdict for verdict in verdicts if of_suite.get(verdict.suite) == verdict.scorer])
    name_of = _task_names(kept, "sample")
    rows = [(name_of(v), v.model, None, v.answer if v.answer not in (None, "") else UNREADABLE) for v in kept]
    frame = pd.DataFrame(rows, columns=["task", "worker", "question", "label"], dtype=object)
    gold = _gold_of_answers(kept, name_of)
    used_by = list(dict.fromkeys(of_suite.values()))
    others = [scorer for scorer in reads if scorer not in used_by]
    said = [f"task = a sample ({count_text(frame['task'].nunique(), 'task')})"]
    said += [f"worker = a model under test ({', '.join(dict.fromkeys(frame['worker']))})"]
    said += [f"label = its answer as {' and '.join(used_by)} read it"]
    said[-1] += f" (question={others[0]!r} takes another's reading)" if others else ""
    said += [f"gold label = the target ({len(gold):,})"]
    if unread := sorted({verdict.suite for verdict in verdicts} - of_suite.keys()):
        said += [f"{count_text(len(unread), 'evaluation')} without such answers left out ({listing(unread, 3)})"]
    places = [verdict.place for verdict in kept]
    held = _held(what, frame, [*said, *_repeated(kept, "sample"), *notes], places, None, gold=gold)
    classes = {*frame["label"], *gold.values()} - {UNREADABLE}  # a target may be what no model answers
    return replace(held, classes=sorted(classes))


def _one_each(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The first verdict on each answer, of a scorer that may give several; logs in two folders may have one name."""
    times: Counter[str] = Counter()
    found: dict[tuple[str, int], Verdict] = {}
    for verdict in verdicts:
        times[verdict.place] += 1
        found.setdefault((verdict.place.partition(", scorer ")[0], times[verdict.place]), verdict)
    return list(found.values())


def _gold_of_answers(verdicts: Sequence[Verdict], name_of: Callable[[Verdict], Any]) -> dict[Any, str]:
    """The targets by task; in the place of one that no model gave, as where it is in words, the answer scored as right.

    A target that nobody got right stays, since gold labels of the others alone would be those of easy samples.
    """
    gold = {name_of(verdict): verdict.target for verdict in verdicts if verdict.target is not None}
    right = {name_of(verdict): verdict.answer for verdict in verdicts if verdict.answer and verdict.value in RIGHT}
    answers = {verdict.answer for verdict in verdicts}
    return gold | {task: right[task] for task, target in gold.items() if target not in answers and task in right}


def _held(
    what: str,
    frame: pd.DataFrame,
    said: list[str],
    places: Sequence[str],
    in_order: Sequence[Any] | Mapping[Any, Sequence[Any]] | None,
    *,
    several: bool = False,
    gold: Mapping[Any, Any] | None = None,
) -> Held:
    unreadable = int((frame["label"] == UNREADABLE).sum())
    if unreadable:
        said = [*said, f"no verdict {_times(unreadable)}, an abstention called {UNREADABLE!r}"]
    if not several:
        frame = frame.drop(columns="question")
    abstain = (UNREADABLE,) if unreadable else ()
    return Held(what, frame, f"{what}: {'; '.join(said)}", gold or {}, places, abstain=abstain, ordered=in_order or ())


def _task_names(verdicts: Sequence[Verdict], tasks: str) -> Callable[[Verdict], Any]:
    """Return what names a verdict's task: by the sample's id, and what else tells tasks apart in these logs."""
    with_suite = len({verdict.suite for verdict in verdicts}) > 1
    return lambda of: task_name(of.suite, of.sample, of.epoch, of.model, tasks, with_suite=with_suite)


def answered_by(task: Any) -> str | None:
    """Return the model that gave the answer which a task is; None of a task that is a sample, whoever answers it."""
    model = str(task).rpartition(BY)[2] if BY in str(task) else ""
    return re.sub(r" #\d+$", "", model) or None


def _repeated(verdicts: Sequence[Verdict], tasks: str) -> list[str]:
    """A sentence on epochs where they are repeats; none where they are not."""
    epochs = len({verdict.epoch for verdict in verdicts})
    if epochs < 2 or tasks == "epoch":
        return []
    return [f"{epochs} epochs are repeats by the same worker (tasks='epoch' makes each a task)"]


def _times(n: int) -> str:
    return "once" if n == 1 else f"{n:,} times"
