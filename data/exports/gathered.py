"""The annotations that an export holds, gathered one by one, and what is said of them."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from ..description import count_text
from ..errors import AnnotationError


@dataclass(frozen=True)
class Held:
    """Annotations and gold labels of a file.

    Args:
        what: the file and what it is, for messages: "export.json: Label Studio export".
        frame: a row for each annotation: task, worker, label, seconds where the file has times, and
            question where several are read.
        said: what was taken for what, a sentence without its full stop.
        gold: true labels by task; empty where the file has none.
        places: where each row is, for messages.
        several: what is wrong with each annotation and gold label of several classes; they are not in `frame`.
        abstain: labels that are abstentions.
        classes: all there are; empty for those that annotations have.
        ordered: the classes from the least to the greatest, or those of each question that have an order; empty where
            there is none.
        tidy: whether labels that differ by slips alone are one, as of language models that answer in free text.
    """

    what: str
    frame: pd.DataFrame
    said: str
    gold: Mapping[Any, Any] = field(default_factory=dict)
    places: Sequence[str] = ()
    several: Sequence[str] = ()
    abstain: Sequence[Any] = ()
    classes: Sequence[Any] = ()
    ordered: Sequence[Any] | Mapping[Any, Sequence[Any]] = ()
    tidy: bool = False

    def without_abstentions(self) -> "Held":
        """Return it without its own abstentions, which levels of another truth cannot have; it says how many."""
        abstains = self.frame["label"].isin(list(self.abstain)).to_numpy()
        if not abstains.any():
            return self
        places = [place for place, out in zip(self.places, abstains, strict=True) if not out] if self.places else ()
        left = count_text(int(abstains.sum()), "abstention")
        said = f"{self.said}; {left} left out, as truth_classes= is of levels alone"
        frame = self.frame[~abstains].reset_index(drop=True)
        return replace(self, frame=frame, places=places, said=said, abstain=())


class Gathered:
    """Annotations of one question of an export, as they are found.

    Args:
        what: the export, as messages call it: "Label Studio export".
        question: the question's name; None where the export has one question without a name.
    """

    def __init__(self, what: str, question: str | None = None) -> None:
        self.what, self.question = what, question
        self.rows: list[tuple[Any, Any, Any, float | None]] = []
        self.places: list[str] = []
        self.gold: dict[Any, Any] = {}
        self.left_out: Counter[str] = Counter()
        self.several: list[str] = []
        self.people: dict[Hashable, None] = {}
        self.models: dict[Hashable, None] = {}

    def add(
        self, task: Any, worker: Any, label: Any, place: str, *, seconds: Any = None, is_model: bool = False
    ) -> None:
        """Take one annotation; a label of None or an empty list is left out and counted, several are set aside.

        Raises:
            AnnotationError: it is nothing that can be a class.
        """
        if self._are_several(label, place, "annotation"):
            return
        if (label := single(label, f"{self.what}, {place}")) is None:
            self.left_out["empty annotation"] += 1
            return
        self.rows.append((task, worker, label, seconds))
        self.places.append(place)
        (self.models if is_model else self.people)[worker] = None

    def leave_out(self, kind: str) -> None:
        """Count an annotation that is left out, of a kind such as "cancelled annotation"."""
        self.left_out[kind] += 1

    def add_gold(self, task: Any, label: Any, place: str) -> None:
        """Take a true label; several are set aside.

        Raises:
            AnnotationError: the task has another one.
        """
        if self._are_several(label, place, "gold label"):
            return
        if (label := single(label, f"{self.what}, {place}")) is None:
            return
        if self.gold.setdefault(task, label) != label:
            raise AnnotationError(
                f"{self.what}, {place}: the gold label is {label!r}, and elsewhere {self.gold[task]!r}; keep one"
            )

    def _are_several(self, label: Any, place: str, kind: str) -> bool:
        """Set aside what is several classes in one, and say whether it is."""
        if not (isinstance(label, list | tuple) and len(label) > 1):
            return False
        self.several.append(
            f"{self.what}, {place}: there are {len(label)} labels, {', '.join(map(repr, label))}, and a task has one "
            "class; give several='leave_out' to read the others, or make a question of each class"
        )
        self.leave_out(f"{kind} of several classes")
        return True

    def held(self) -> Held:
        """Return what was gathered.

        Raises:
            AnnotationError: there is no annotation.
        """
        about = self.what + (f", question {self.question!r}" if self.question is not None else "")
        out = [f"{count_text(n, kind)} left out" for kind, n in self.left_out.items()]
        if not self.rows and self.several:
            raise AnnotationError(self.several[0])
        if not self.rows:
            raise AnnotationError(f"{about}: there is no annotation{' (' + '; '.join(out) + ')' if out else ''}")
        frame = pd.DataFrame(self.rows, columns=["task", "worker", "label", "seconds"], dtype=object)
        if frame["seconds"].isna().all():
            frame = frame.drop(columns="seconds")
        who = [count_text(len(self.people), "annotator")] if self.people else []
        who += [count_text(len(self.models), "model")] if self.models else []
        gold = [count_text(len(self.gold), "gold label")] if self.gold else []
        said = f"{about}: {', '.join([count_text(frame['task'].nunique(), 'task'), *who, *gold, *out])}"
        return Held(self.what, frame, said, self.gold, self.places, self.several)


def single(label: Any, place: str) -> Any:
    """Return the one label there is, out of a list of one; None where there is none.

    Raises:
        AnnotationError: it is something that cannot be a class.
    """
    if isinstance(label, Mapping) or (isinstance(label, list | tuple) and len(label) > 1):
        raise AnnotationError(f"{place}: {label!r} is no class; text or a number is needed")
    if isinstance(label, list | tuple):
        return single(label[0], place) if label else None
    return None if label is None or label == "" or label != label else label


def chosen_question(given: str | None, known: Sequence[str], what: str) -> str:
    """Return the question to read: the one there is, or the one that was asked for.

    Raises:
        AnnotationError: there are several or none, or none of that name.
    """
    names = ", ".join(map(repr, known))
    if given is not None:
        if given not in known:
            raise AnnotationError(f"{what} has no question {given!r} whose annotations are classes; it has {names}")
        return given
    if not known:
        raise AnnotationError(f"{what} has no question whose annotations are classes")
    if len(known) > 1:
        raise AnnotationError(f"{what} has several questions: {names}; say which by question={known[0]!r}")
    return known[0]
