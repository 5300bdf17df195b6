"""Content of logs of evaluations: verdicts of scorers on a model's answers to samples."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

TASKS = ("sample", "answer", "epoch")
"""Kinds of tasks: a sample whichever model answers it, a model's answer to it, or the answer of one epoch."""

LARGEST = 2**30
"""Bytes of a log in plain JSON beyond which it is refused; in memory it takes several times that."""

OURS = "crowdppl"
"""The scorer that labels are written as, and that is left out where logs are read."""


class Verdict(NamedTuple):
    """One scorer's verdict on one answer; a tuple, since there are hundreds of thousands in a log.

    Args:
        place: where it stands, for messages.
        suite: the evaluation that the sample is of, such as ``"gsm8k"``.
        sample: the sample's id there.
        epoch: which of the model's answers to the sample it is, from 1.
        model: the model under test.
        scorer: the scorer's name, with its judge's where it has one.
        key: which of a scorer's several values it is; None where it gives one.
        value: the score; None where the scorer came to none.
        answer: the model's answer as the scorer read it; None where the log has none.
        target: the right answer; None where the log has none, or several.
        uuid: the answer's, which a retried evaluation's log has again; None where the log has none.
        is_text: whether the value is one of the scorer's own words, whatever letters like it mean elsewhere.
        aside: whether it is read only where its key is asked for, as a question.
    """

    place: str
    suite: str
    sample: Any
    epoch: int
    model: str
    scorer: str
    key: str | None
    value: Any
    answer: str | None = None
    target: str | None = None
    uuid: str | None = None
    is_text: bool = False
    aside: bool = False


@dataclass(frozen=True)
class Log:
    """A log of one evaluation.

    Args:
        tool: what wrote it.
        verdicts: all there are.
        left_out: what was left out, by what it is and how often.
        said: what there is to say of the log as a whole, such as that it was cancelled; empty for nothing.
    """

    tool: str
    verdicts: Sequence[Verdict]
    left_out: Counter[str] = field(default_factory=Counter)
    said: str = ""


def task_name(suite: str, sample: Any, epoch: int, model: str, tasks: str, *, with_suite: bool) -> Any:
    """Return the name of a task: the sample's id, and what else tells tasks apart.

    Args:
        suite: the evaluation that the sample is of.
        sample: the sample's id there.
        epoch: which of the model's answers it is.
        model: the model under test.
        tasks: what a task is, one of `TASKS`.
        with_suite: whether samples of several evaluations are told apart.
    """
    if not with_suite and tasks == "sample":
        return sample
    text = f"{suite}: {sample}" if with_suite else str(sample)
    text += "" if tasks == "sample" else f" @ {model}"
    return f"{text} #{epoch}" if tasks == "epoch" else text


def scorer_name(name: str, judge: Any) -> str:
    """Return a scorer's name with its judge's, where the log says which: ``rubric (openai/gpt-4o)``."""
    return f"{name} ({judge})" if isinstance(judge, str) and judge else name
