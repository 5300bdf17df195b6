"""Questions with classes of their own: which classes and which kind of labels each question has."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd

from .abstentions import abstentions_of
from .arrays import groups_sharing
from .columns import Column, type_hint
from .errors import AnnotationError, unknown_name, warn
from .id_text import listing
from .ids import Ids
from .kinds import KINDS, NOMINAL, Kind, are_scores, kind_of, sorted_labels, stated_classes
from .questions import Units
from .text import are_digits

SHOWN = 5  # classes, or questions, that a sentence lists
OFTEN = 20  # rows of a question, from which on labels that none has may be none of its scale
MORE = 4  # labels, from which on a scale is another than one of two


@dataclass(frozen=True)
class ByQuestion(Kind):
    """Labels of several questions, each of which has classes and a kind of its own.

    The K classes are those of all questions together, without an order. Whatever follows from a question alone, such as
    means and totals, asks the kind of the question.

    Attributes:
        n_classes: K.
        of: the classes of each question in their order, as class indices.
        kinds: the kind of the labels of each question.
    """

    n_classes: int
    of: tuple[tuple[int, ...], ...]
    kinds: tuple[Kind, ...]

    name: ClassVar[str] = "by_question"
    remark: ClassVar[str] = "each question with classes of its own"
    by_question: ClassVar[bool] = True

    @property
    def own(self) -> np.ndarray | None:
        """A mask of the classes that each question has, shape (Q, K) bool; None where every question has all."""
        own = np.zeros((len(self.of), self.n_classes), bool)
        for question, classes in enumerate(self.of):
            own[question, list(classes)] = True
        return None if own.all() else own

    def near(self, n_classes: int) -> int:
        """Return the most classes that a label of some question may be off."""
        return max(kind.near(len(classes)) for kind, classes in zip(self.kinds, self.of, strict=True))

    def certainty(self, posterior: Any, question: Any = None) -> Any:
        """Return the probability that each label is right, or near enough by the kind of its question, shape (N,)."""
        each = [
            kind.certainty(posterior[:, classes]) for kind, classes in zip(self.kinds, map(list, self.of), strict=True)
        ]
        return sum((question == place) * of for place, of in enumerate(each))

    def values(self, classes: Sequence[Any]) -> np.ndarray:
        """Refuse: the classes of all questions together have no mean.

        Raises:
            AnnotationError: always.
        """
        raise AnnotationError(
            f"the classes of all questions together, {listing(classes, SHOWN)}, have no order, and so no mean: take "
            "one question, annotations.of_question(name), or say which question's classes have an order by "
            "ordered={question: [...]}, all classes from the least to the greatest"
        )

    def of_question(self, question: int) -> Kind:
        """Return the kind of one question's labels."""
        return self.kinds[question]

    def classes_of(self, question: int, n_classes: int) -> np.ndarray:
        """Return the classes of one question in their order, as class indices."""
        return np.array(self.of[question])

    def to_json(self) -> Any:
        """Return a JSON value from which `kind_from_json` makes the same kind."""
        return {"classes": self.n_classes, "of": self.of, "kinds": [kind.to_json() for kind in self.kinds]}


def kind_from_json(saved: Any) -> Kind:
    """Return the kind whose `to_json` returned a value.

    Raises:
        ValueError: there is no such kind.
    """
    if isinstance(saved, str) and saved in KINDS:
        return KINDS[saved]
    if not isinstance(saved, Mapping) or {"classes", "of", "kinds"} - set(saved):
        raise ValueError(f"kind={saved!r}; the kinds of labels are {', '.join(KINDS)}, and of each question one")
    n_classes, of = int(saved["classes"]), tuple(tuple(map(int, classes)) for classes in saved["of"])
    if any(not 0 <= k < n_classes for classes in of for k in classes) or len(of) != len(saved["kinds"]):
        raise ValueError(f"kind={saved!r}, of classes or questions that there are not")
    return ByQuestion(n_classes, of, tuple(map(kind_from_json, saved["kinds"])))


class OwnClasses(NamedTuple):
    """The classes of all questions, and those of each with their kind."""

    classes: Ids
    of: dict[Any, Ids]  # by question, in its order
    kinds: dict[Any, Kind]

    def kind(self, questions: Iterable[Any]) -> Kind:
        """Return the kind of all labels, of questions in this order; where all questions are alike that of each."""
        asked = list(questions)
        if all(self.of[name] == self.classes and self.kinds[name] == self.kinds[asked[0]] for name in asked):
            return self.kinds[asked[0]]
        of = tuple(tuple(self.classes.index_of(self.of[name]).tolist()) for name in asked)
        return ByQuestion(len(self.classes), of, tuple(self.kinds[name] for name in asked))


def own_classes(
    label: Column,
    units: Ids,
    task: np.ndarray,
    *,
    classes: Any,
    ordered: Any,
    abstain: Any = None,
    suggest: Callable[[], str] = lambda: "",
    tell: bool = True,
) -> OwnClasses | None:
    """Return what classes each question has, where they have not all the same ones; None where they have.

    They have where the options say it, and by themselves where some questions share no label with the others, which a
    warning says. Questions that share labels have all labels of each other.

    Args:
        label: the labels of the rows.
        units: the tasks, which have questions or none.
        task: the unit of each row, shape (A,).
        classes: the classes of questions by question; or a list of all classes, which all questions have; or None.
        ordered: by question True, False, None, or its classes from the least to the greatest; or one for all.
        abstain: the values that are no class.
        suggest: as for :meth:`.Kind.with_classes`.
        tell: whether to warn of what was taken.

    Raises:
        AnnotationError: a question is unknown, an option by question is given of annotations without questions, or the
            labels of a question cannot be used, with the row of the first.
    """
    by_question = {
        name: given for name, given in (("classes", classes), ("ordered", ordered)) if isinstance(given, Mapping)
    }
    if not isinstance(units, Units):
        if "classes" in by_question:
            raise AnnotationError(
                f"classes={classes!r} is by question, and the annotations have one question; name the column of "
                "questions by question=, or list the classes: classes=[...]"
            )
        return None
    for name, by in by_question.items():
        for question in by:
            if question not in units.questions:
                raise unknown_name(f"question in {name}", question, list(units.questions))
    silent = abstentions_of(abstain, label.ids)
    used = _used(label, units, task, silent)
    groups = groups_sharing([set(np.flatnonzero(row)) for row in used])
    if tell and not by_question and stated_classes(classes, ordered).classes is None:
        _tell_two_scales(used, label.ids, list(units.questions))
    if not by_question and (
        stated_classes(classes, ordered).classes is not None
        or len(groups) < 2
        or label.in_order
        or (label.categories is not None and any(name not in label.ids for name in label.categories))
    ):
        return None
    found: dict[Any, Ids] = {}
    kinds: dict[Any, Kind] = {}
    scores: list[Any] = []
    asked = list(units.questions)
    of_rows = units.question[task]
    options = {
        name: {q: given.get(q) if isinstance(given, Mapping) else given for q in asked}
        for name, given in (("classes", classes), ("ordered", ordered))
    }
    stated = {q: stated_classes(options["classes"][q], options["ordered"][q]) for q in asked}
    for group in groups:
        open_ones = [q for q in group if stated[asked[q]].classes is None]
        for members in [[q] for q in group if q not in open_ones] + [open_ones]:
            if not members:
                continue
            named = [asked[q] for q in members]
            own = _rows_of(label, np.isin(of_rows, members), named, silent)
            given, is_ordered, option = stated[named[0]]
            if own is None and given is None:
                raise AnnotationError(
                    f"question {named[0]!r} has abstentions alone, so that no class of it is known; list its classes: "
                    f"classes={{{named[0]!r}: [...]}}"
                )
            if given is not None:
                given = Ids(given, what=f"{option}[{named[0]!r}]")
                if len(given) < 2:
                    raise AnnotationError(f"{option}[{named[0]!r}]={list(given)!r} must list at least two classes")
                _refuse_others(own, named[0], given)
            elif own is not None and len(own.ids) < 2:
                raise AnnotationError(
                    f"question {named[0]!r} has a single class, {own.ids[0]!r}, in all of its {len(own.codes):,} rows, "
                    f"so that there is nothing to infer; if it has classes that nobody used, list all: "
                    f"classes={{{named[0]!r}: [...]}}; or leave the question out"
                )
            for asking in named:
                kind, of_itself = (
                    (kind_of(own, given, stated[asking].ordered))
                    if own is not None
                    else (KINDS["ordered"] if is_ordered else NOMINAL, False)
                )
                found[asking] = given if own is None else kind.with_classes(own, given, suggest, option).ids
                kinds[asking] = kind
                scores += [asking] * of_itself
    if tell:
        given_of = {q: [name for code, name in enumerate(label.ids) if used[i, code]] for i, q in enumerate(asked)}
        _tell(found, kinds, scores, given_of, said=bool(by_question))
        silent_on_order = [q for q in asked if stated[q].classes is not None and stated[q].ordered is None]
        _tell_names([q for q in silent_on_order if are_scores(found[q])], found)
    return OwnClasses(Ids(dict.fromkeys(name for question in asked for name in found[question])), found, kinds)


def with_scales(
    table: pd.DataFrame, question: Any, label: Any, text: Iterable[str] = (), abstain: Any = None
) -> pd.DataFrame:
    """Return a table of a text file in which labels of questions that have whole numbers alone are numbers.

    A column of labels is text where any label is; a question that shares no label with others is read as if alone.

    Args:
        table: with a row for each annotation, or with a column for each question.
        question: the column of questions, or several columns, one for each question.
        label: the column of labels, where there is one column of questions.
        text: labels that stay text, since they are listed so.
        abstain: the values that are no class.
    """
    if isinstance(question, str) and not {question, label} <= set(table.columns):
        return table
    answers = [label] if isinstance(question, str) else [name for name in question if name in table.columns]
    if all(pd.api.types.is_numeric_dtype(table[name]) for name in answers):
        return table
    silent = {str(value) for value in abstentions_of(abstain)}
    if isinstance(question, str):
        found = {name: set(own.dropna()) - silent for name, own in table.groupby(question, sort=False)[label]}
    else:
        found = {name: set(table[name].dropna()) - silent for name in answers}
    every = list(dict.fromkeys(value for values in found.values() for value in values))
    if not all(isinstance(value, str) for value in every):
        return table
    groups, names, used = groups_sharing(list(found.values())), list(found), list(found.values())
    labels = [set().union(*(used[place] for place in group)) for group in groups]
    of_numbers = [group for group, own in zip(groups, labels, strict=True) if are_digits(own) and not own & set(text)]
    scales = {names[place] for group in of_numbers for place in group} if len(groups) > 1 else set()

    def made(values: pd.Series, is_scale: np.ndarray) -> pd.Series:
        pairs = zip(values, is_scale, strict=True)
        numbers = [int(y) if own and isinstance(y, str) and are_digits([y]) else y for y, own in pairs]
        return pd.Series(numbers, values.index, dtype=object)

    if isinstance(question, str):
        return table.assign(**{label: made(table[label], table[question].isin(scales).to_numpy(dtype=bool))})
    chosen = [name for name in answers if name in scales]
    return table.assign(**{name: made(table[name], np.ones(len(table), bool)) for name in chosen})


def with_truth_values(table: pd.DataFrame, question: Any, label: Any, classes: Mapping[Any, Any]) -> pd.DataFrame:
    """Return a table of a text file in which truth values of questions whose listed classes are 0 and 1 are these.

    Args:
        table: with a row for each annotation, or with a column for each question.
        question: the column of questions, or several columns, one for each question.
        label: the column of labels, where there is one column of questions.
        classes: the listed classes by question.
    """
    for name, given in classes.items():
        needed = [question, label] if isinstance(question, str) else [name]
        if {*needed} <= {*table.columns} and are_0_and_1(given):
            values = table[needed[-1]].astype(object)
            number = values.astype(str).str.capitalize().map({"False": 0, "True": 1})
            is_asked = (table[question] == name) if isinstance(question, str) else True
            table = table.assign(**{needed[-1]: values.mask(number.notna() & is_asked, number)})
    return table


def are_0_and_1(classes: Iterable[Any]) -> bool:
    """Return whether the classes that a question is said to have are the whole numbers 0 and 1."""
    return {(type(each), each) for each in classes} == {(int, 0), (int, 1)}


def within(shares: np.ndarray, kind: Kind, question: np.ndarray | None) -> np.ndarray:
    """Return shares of the classes, shape (N, K), with nothing of classes that a task's question does not have.

    A row without any share of its classes has equal ones of them.

    Args:
        shares: rows that sum to one.
        kind: of the labels.
        question: the question of each task, shape (N,).
    """
    if question is None or kind.own is None:
        return shares
    own = kind.own[np.asarray(question)]
    inside = np.where(own, shares, 0)
    total = inside.sum(-1, keepdims=True)
    return np.where(total > 0, inside / np.where(total > 0, total, 1), own / own.sum(-1, keepdims=True))


def refuse_not_own(
    kind: Kind,
    classes: Ids,
    questions: Ids,
    units: Ids,
    at: np.ndarray,
    code: np.ndarray,
    say: Callable[[int], str],
) -> None:
    """Refuse labels that are no class of the question, where questions have classes of their own.

    Args:
        kind: of the labels.
        classes: the K classes.
        questions: the questions that the kind knows.
        units: the tasks.
        at: the unit of each label, shape (n,).
        code: the labels as class indices, shape (n,); others are passed over.
        say: says where a label is, by its position.

    Raises:
        AnnotationError: with the first such label, its question, and the classes that the question has; or a question
            is new.
    """
    if kind.own is None or not isinstance(units, Units):
        return
    known = questions.index_of(list(units.questions))
    if (new := np.flatnonzero(known < 0)).size:
        raise AnnotationError(
            f"the question {units.questions[int(new[0])]!r} is none of {', '.join(map(repr, questions))}, which have "
            "classes of their own, and its classes are not known; make annotations of everything with "
            "classes={question: [...]}"
        )
    question, is_class = known[units.question[at]], (code >= 0) & (code < len(classes))
    wrong = np.flatnonzero(is_class & ~kind.own[question, np.where(is_class, code, 0)])
    if len(wrong):
        first = int(wrong[0])
        asked = int(question[first])
        own = [classes[int(k)] for k in kind.classes_of(asked, len(classes))]
        name = classes[int(code[first])]
        raise AnnotationError(
            f"{say(first)}: {name!r} is no class of the question {questions[asked]!r}, whose classes are "
            f"{listing(own, 10)}{type_hint(name, Ids(own))}"
        )


def _used(label: Column, units: Units, task: np.ndarray, silent: Ids) -> np.ndarray:
    """Return how many rows of each question have each label, abstentions aside: ``(Q, L)``."""
    used = np.zeros((len(units.questions), len(label.ids)), int)
    np.add.at(used, (units.question[task], label.codes), 1)
    used[:, label.ids.index_of([value for value in silent if value in label.ids])] = 0
    return used


def _rows_of(label: Column, chosen: np.ndarray, questions: list[Any], silent: Ids) -> Column | None:
    """Return the labels of some questions that are no abstentions, as a column of them alone; None where none is."""
    chosen = chosen & ~np.isin(label.codes, label.ids.index_of([value for value in silent if value in label.ids]))
    rows = np.flatnonzero(chosen)
    if not len(rows):
        return None
    codes, place = np.unique(label.codes[rows], return_inverse=True)
    ids = Ids([label.ids[int(code)] for code in codes])
    listed = label.categories
    categories = None if listed is None else Ids([name for name in listed if name in ids])
    title = f"{label.title}, question {', '.join(map(repr, questions[:SHOWN]))}"
    return replace(
        label,
        title=title,
        codes=place.astype(np.int32),
        ids=ids,
        where=lambda row: label.where(int(rows[row])),
        categories=categories,
    )


def _refuse_others(own: Column | None, question: Any, classes: Ids) -> None:
    """Refuse labels of a question that are none of its listed classes."""
    if own is None:
        return
    for code, name in enumerate(own.ids):
        if name not in classes:
            row = int(own.rows_with(code)[0])
            raise AnnotationError(
                f"{own.title}, {own.where(row)}: {name!r} is no class of the question {question!r}, whose classes are "
                f"{listing(classes, 10)}{type_hint(name, classes)}"
            )


def _tell(
    found: Mapping[Any, Ids],
    kinds: Mapping[Any, Kind],
    scores: list[Any],
    given: Mapping[Any, list[Any]],
    *,
    said: bool,
) -> None:
    """Say which classes each question has, where nobody did, and which are ordered for their numbers alone.

    Of a question that has labels of others as well, `given` are those that it was given.
    """
    if not said:
        each = []
        for name, classes in found.items():
            alone = f", of which it was given {listing(sorted_labels(given[name]), SHOWN)} alone"
            alone *= 0 < len(given[name]) < len(classes)
            each.append(f"{name!r} ({listing(classes, SHOWN)}{', in this order' * kinds[name].in_order}{alone})")
        warn(
            f"questions that share no label have classes of their own: {listing(each, SHOWN, str)}; "
            "classes={question: [...]} and ordered={question: True} say it otherwise, and classes=[...] that all "
            "questions have all classes"
        )
    elif scores:
        warn(
            f"the whole numbers of the question {', '.join(map(repr, scores[:SHOWN]))} are taken as ordered classes; "
            f"ordered={{{scores[0]!r}: True}} says so, and False that they are names"
        )


def _tell_two_scales(used: np.ndarray, labels: Ids, questions: list[Any]) -> None:
    """Warn of a question of two whole numbers, such as 0 and 1, that shares one with a question of more."""
    n_labels = (used > 0).sum(1)
    for two in np.flatnonzero((n_labels == 2) & (used.sum(1) >= OFTEN)):
        scales = [[labels[int(k)] for k in np.flatnonzero(row + used[two])] for row in used]
        shares = (used[:, used[two] > 0] > 0).any(1) & np.array([are_scores(scale) for scale in scales])
        if (wider := np.flatnonzero(shares & (n_labels >= MORE))).size:
            own, other = (sorted_labels([labels[int(k)] for k in np.flatnonzero(used[q])]) for q in (two, wider[0]))
            warn(
                f"question {questions[two]!r} has the labels {listing(own, SHOWN)} alone, and {questions[wider[0]]!r} "
                f"{listing(other, SHOWN)}; they share some, and so have all of each other: where they are two scales, "
                f"say classes={{{questions[two]!r}: {own}}}"
            )
            return


def _tell_names(questions: list[Any], found: Mapping[Any, Ids]) -> None:
    """Say which questions' classes are listed whole numbers that are taken as names, as nobody said their order."""
    if questions:
        first = questions[0]
        warn(
            f"the classes of the question {', '.join(map(repr, questions[:SHOWN]))} are whole numbers that are listed "
            f"without an order, and taken as names; ordered={{{first!r}: {list(found[first])!r}}} says that they are "
            f"ordered, and ordered={{{first!r}: False}} that they are not"
        )
